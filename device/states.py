"""The states of the handheld as one table: what leads where, how long a state lasts, and what a person
presses to leave it. Pure: knows a clock, no screen, no wire.

Invariant: every state but the rests (idle, locked) and off has a deadline whose end leads, by one or more
steps, to a rest; and every state has keys that a person leaves it by. A trigger that a state does not
name changes nothing; it is written down in `refused`."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from exo.core.base.clock import Clock

RESTS = ("idle", "locked")  # where nothing is under way; `screen.sleep` darkens them


@dataclass(frozen=True)
class State:
    """`deadline` seconds until `timeout` (None: a rest); `out` the keys that leave it; `moves` the trigger
    and where it leads."""

    deadline: float | None
    out: tuple[str, ...]
    moves: dict[str, str]


def _page(up: str, deadline: float, *down: str, **more: str) -> State:
    """A page that is browsed: back leads `up`, and what rings, asks or fails comes first. `down` are
    the pages that it opens."""
    moves = {
        "back": up,
        "timeout": "idle",
        "home": "idle",
        "talk": "listening",
        "send": "thinking",
        "notice": "notice",
        "failed": "notice",
        "card": "card",
        "question": "question",
        "lock": "idle",
        "quit": "off",
    }
    return State(deadline, ("back",), moves | {each: each for each in down} | more)


STATES: dict[str, State] = {
    "starting": State(
        180.0,
        ("back",),
        {
            "ready": "idle",
            "failed": "notice",
            "timeout": "notice",
            "back": "idle",
            "lock": "locked",
            "quit": "off",
        },
    ),
    "idle": State(
        None,
        ("talk",),
        {
            "talk": "listening",
            "send": "thinking",
            "notice": "notice",
            "failed": "notice",
            "show": "reply",  # the last reply once more
            "menu": "menu",
            "card": "card",
            "question": "question",
            "answered": "thinking",  # a turn went on behind another page
            "lock": "locked",
            "quit": "off",
        },
    ),
    "listening": State(
        60.0,
        ("talk", "back"),
        {
            "release": "thinking",
            "short": "notice",
            "back": "idle",
            "failed": "notice",
            "send": "thinking",
            "timeout": "thinking",  # the longest recording ends itself
            "menu": "menu",  # pressed twice
            # what was to be said aside is not
            "entry": "entry",
            "card": "card",
            "question": "question",
            "lock": "idle",
            "quit": "off",
        },
    ),
    "thinking": State(
        150.0,
        ("talk", "back"),
        {
            "text": "reply",
            "done": "reply",
            "nothing": "notice",
            "failed": "notice",
            "talk": "listening",
            "send": "thinking",
            "back": "idle",
            "timeout": "notice",
            "card": "card",
            "question": "question",
            "entry": "entry",  # what was heard is typed
            "lock": "idle",
            "quit": "off",
        },
    ),
    "reply": State(
        150.0,
        ("talk", "back", "ok"),
        {
            "talk": "listening",
            "send": "thinking",
            "back": "idle",
            "failed": "notice",
            "notice": "notice",
            "timeout": "idle",
            "menu": "menu",
            "why": "why",
            "card": "card",
            "question": "question",
            "lock": "idle",
            "quit": "off",
        },
    ),
    "notice": State(
        6.0,
        ("talk", "ok", "back"),
        {
            "talk": "listening",
            "send": "thinking",
            "back": "idle",
            "notice": "notice",
            "failed": "notice",
            "timeout": "idle",
            "menu": "menu",
            "card": "card",
            "question": "question",
            "lock": "idle",
            "quit": "off",
        },
    ),
    # asked by exod; their deadline is the question's own. Aside: the turn that asked goes on behind them
    "card": State(
        120.0,
        ("ok", "back"),
        {
            "answered": "thinking",  # the turn that asked goes on
            "back": "idle",
            "talk": "listening",
            "send": "thinking",
            "failed": "notice",
            "timeout": "idle",
            "lock": "idle",
            "quit": "off",
        },
    ),
    "question": State(
        120.0,
        ("ok", "back"),
        {
            "answered": "thinking",
            "back": "idle",
            "talk": "listening",
            "send": "thinking",
            "card": "card",
            "entry": "entry",
            "failed": "notice",
            "timeout": "idle",
            "lock": "idle",
            "quit": "off",
        },
    ),
    # browsed
    "menu": _page("idle", 60.0, "sessions", "due", "entry", "settings", "progress"),
    "sessions": _page("menu", 60.0),
    "due": _page("menu", 60.0, "confirm"),
    "entry": _page("menu", 120.0, "found", "wifi"),
    "found": _page("entry", 60.0),
    "progress": _page("menu", 60.0),
    "why": _page("idle", 60.0, show="reply"),
    "settings": _page("menu", 60.0, "choice", "confirm", "about", "pin", "wifi"),
    "wifi": _page("settings", 300.0, "entry"),
    "choice": _page("settings", 60.0, "pin", "confirm"),
    "about": _page("settings", 60.0),
    "confirm": _page("menu", 30.0, "due", "settings"),
    "pin": _page("settings", 60.0, "choice", "confirm"),
    # behind a PIN: nothing but `open` leads out of these
    "locked": State(
        None,
        ("ok",),
        {"unlock": "unlock", "notice": "ring", "open": "idle", "quit": "off"},
    ),
    "unlock": State(
        30.0,
        ("back",),
        {
            "back": "locked",
            "timeout": "locked",
            "open": "idle",
            "lost": "lost",
            "notice": "ring",
            "quit": "off",
        },
    ),
    "lost": State(
        30.0,
        ("back",),
        {"back": "locked", "timeout": "locked", "notice": "ring", "quit": "off"},
    ),
    "ring": State(
        6.0,
        ("ok", "back"),
        {"back": "locked", "timeout": "locked", "notice": "ring", "quit": "off"},
    ),
    "off": State(None, (), {}),
}
TABLE = {name: state.moves for name, state in STATES.items()}
# seconds in a state before `timeout`; `Machine.touch` begins them again where there is life
DEADLINES = {name: state.deadline for name, state in STATES.items()}
ASKED = ("card", "question")
LOCKED = ("locked", "unlock", "lost", "ring")
BROWSED = tuple(name for name, state in STATES.items() if "home" in state.moves)


@dataclass
class Machine:
    """The state now. `history` holds the states entered since `forget`, the present one first."""

    clock: Clock
    deadlines: dict[str, float | None] = field(default_factory=lambda: dict(DEADLINES))
    state: str = "starting"
    history: list[str] = field(default_factory=list)
    refused: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=100))
    since: float = 0.0  # monotonic time of entering the state
    _until: float | None = None

    def __post_init__(self) -> None:
        self._enter(self.state)

    def fire(self, trigger: str) -> bool:
        """Take the transition that the table names; False (and no change) when there is none."""
        target = TABLE[self.state].get(trigger)
        if target is None:
            self.refused.append((self.state, trigger))
            return False
        self._enter(target)
        return True

    def can(self, trigger: str) -> bool:
        return trigger in TABLE[self.state]

    def touch(self, seconds: float | None = None) -> None:
        """Begin the state's deadline again, or give it `seconds` from now."""
        limit = self.deadlines[self.state] if seconds is None else seconds
        self._until = None if limit is None else self.clock.monotonic() + limit

    @property
    def left(self) -> float:
        """Seconds until the state's deadline; infinity without one."""
        return math.inf if self._until is None else self._until - self.clock.monotonic()

    def tick(self) -> bool:
        """Fire `timeout` when the deadline is over; whether it was."""
        if self._until is None or self.clock.monotonic() < self._until:
            return False
        return self.fire("timeout")

    @property
    def elapsed(self) -> float:
        """Seconds in this state."""
        return self.clock.monotonic() - self.since

    def forget(self) -> None:
        """Let `history` begin with the present state."""
        self.history = [self.state]

    def _enter(self, state: str) -> None:
        self.state = state
        self.since = self.clock.monotonic()
        self.history = [*self.history[-99:], state]
        self.touch()
