"""The states of the handheld as a table of allowed transitions. Pure: knows a clock, no screen, no wire.

Invariant: every state but `off` has a deadline whose end leads, by one or more steps, to `idle`; and in
every state there is something that the person can press to leave it. A trigger that a state does not
name changes nothing; it is written down in `refused`."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from exo.core.base.clock import Clock

# state -> trigger -> next state
TABLE: dict[str, dict[str, str]] = {
    "starting": {
        "ready": "idle",
        "failed": "notice",
        "timeout": "notice",
        "back": "idle",
        "quit": "off",
    },
    "idle": {
        "talk": "listening",
        "send": "thinking",
        "notice": "notice",
        "failed": "notice",
        "show": "reply",  # the last reply once more
        "quit": "off",
    },
    "listening": {
        "release": "thinking",
        "short": "notice",
        "back": "idle",
        "failed": "notice",
        "send": "thinking",
        "timeout": "thinking",  # the longest recording ends itself
        "quit": "off",
    },
    "thinking": {
        "text": "reply",
        "done": "reply",
        "nothing": "notice",
        "failed": "notice",
        "talk": "listening",
        "send": "thinking",
        "back": "idle",
        "timeout": "notice",
        "quit": "off",
    },
    "reply": {
        "talk": "listening",
        "send": "thinking",
        "back": "idle",
        "failed": "notice",
        "notice": "notice",
        "timeout": "idle",
        "quit": "off",
    },
    "notice": {
        "talk": "listening",
        "send": "thinking",
        "back": "idle",
        "notice": "notice",
        "failed": "notice",
        "timeout": "idle",
        "quit": "off",
    },
    "off": {},
}
# seconds in a state before `timeout`; `Machine.touch` begins them again where there is life
DEADLINES = {
    "starting": 180.0,
    "idle": None,
    "listening": 60.0,
    "thinking": 150.0,
    "reply": 150.0,
    "notice": 6.0,
    "off": None,
}


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
