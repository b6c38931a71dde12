"""An hour in seconds: the simulated handheld on a clock of its own, with exod, the ear and the voice as a
script wants them.

Owns time: nothing here waits, and whoever lets seconds pass drives the handheld's loop, its fingers and
its battery up to each moment at which something is due. What it cannot do: no model answers, no sound is
heard or made, and a script says what exod says. Invariant: the same script gives the same run."""

from __future__ import annotations

import datetime
import heapq
import itertools
import json
import math
from collections import deque
from collections.abc import Callable
from typing import Any

from exo.board.fake import FakeButtons
from exo.device import events as ev
from exo.device.handheld import Handheld
from exo.device.ports import SystemPort
from exo.device.power import Power
from exo.device.world import Breakable

START = datetime.datetime(2026, 11, 30, 10, 0, tzinfo=datetime.UTC)
STEP = 0.05  # seconds between two words of a reply
HEARS = 0.4  # seconds from the release of the button to the text
LETTERS = 15.0  # a second are spoken
PAUSE = 0.9  # seconds of silence that end what was said
NOTHING = 5.0  # seconds in which nobody began to speak
COMEBACK = 3.0  # seconds after which a supervisor has started again what was killed
NEAR = 1e-6  # seconds: what is due so soon is due now


class FastClock:
    """Stands still until it is moved; zone UTC."""

    def __init__(self) -> None:
        self._passed, self._shift = 0.0, 0.0

    def now_ms(self) -> int:
        return round(1000 * (START.timestamp() + self._passed + self._shift))

    def monotonic(self) -> float:
        return 1000.0 + self._passed

    def local(self, ms: int | None = None) -> datetime.datetime:
        at = self.now_ms() if ms is None else ms
        return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC)

    def stamp(self, wall: datetime.datetime) -> int:
        zoned = wall if wall.tzinfo is not None else wall.replace(tzinfo=datetime.UTC)
        return round(zoned.timestamp() * 1000)

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += max(0.0, seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock; no time passes."""
        self._shift += seconds


class Fast:
    """Time, and what is due when. `handheld` is given once it is made."""

    handheld: Handheld

    def __init__(self, clock: FastClock, buttons: FakeButtons) -> None:
        self.clock, self._buttons = clock, buttons
        self.power: Power | None = None
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Have `act` called when `seconds` have passed."""
        at = self.clock.monotonic() + seconds
        heapq.heappush(self._due, (at, next(self._numbers), act))

    def settle(self) -> None:
        """Let the handheld take what was posted, and show it."""
        self.handheld.step()
        while self.handheld.events.qsize():
            self.handheld.step()

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, and all happen that is due meanwhile, in its order."""
        end = self.clock.monotonic() + seconds
        self.settle()
        while self.handheld.machine.state != "off":
            now = self.clock.monotonic()
            at = min(self._next(now), end)
            self.clock.move(at - now)
            self._fire()
            self.settle()
            if at >= end:
                return
        self.clock.move(end - self.clock.monotonic())  # time goes on without it

    def _next(self, now: float) -> float:
        first = self._due[0][0] if self._due else math.inf
        power = self.power.due if self.power else math.inf
        rest = now + self.handheld.rest_for()
        return max(now, min(first, power, self._buttons.due, rest))

    def _fire(self) -> None:
        now = self.clock.monotonic() + NEAR
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2]()
        if self._buttons.due <= now:
            self._buttons.tick()
        if self.power and self.power.due <= now:
            self.power.look()


# what an exod with nothing in it returns, by the command
EMPTY: dict[str, dict[str, Any]] = {
    "config.get": {"settings": {}},
    "config.set": {},
    "session.list": {"sessions": []},
    "tasks.list": {"tasks": []},
    "search": {"hits": []},
    "command.run": {},
    "approval.respond": {},
    "question.answer": {},
}


class FastLink:
    """exod as a script has it: `replies` are what it says next, `answers` what commands return, by their
    name. Without either it says back what it heard, and has nothing in it."""

    def __init__(self, fast: Fast, post: Callable[[ev.Event], None]) -> None:
        self._fast, self._post = fast, post
        self.replies: deque[str] = deque()
        self.answers = dict(EMPTY)
        self.session, self.up = "s1", False
        self._turns = itertools.count(1)
        self._turn = ""

    def come(self) -> None:
        """exod answers."""
        self.up = True
        self._post(ev.Link("core", True))

    def go(self) -> None:
        """exod is gone, and comes again."""
        self.up, self._turn = False, ""
        self._post(ev.Link("core", False, "Connection refused"))
        self._fast.later(COMEBACK, self.come)

    def wire(self, kind: str, /, **body: Any) -> None:
        """Let an event of the protocol come."""
        self._post(ev.Wire({"seq": 1, "session": self.session, "type": kind, "body": body}))

    def send(self, ticket: int, text: str, channel: str = "typed") -> None:
        if not self.up:
            self._post(ev.Called("send", ticket, None, "service", "Connection refused"))
            return
        turn = self._turn = f"t{next(self._turns)}"
        reply = self.replies.popleft() if self.replies else f"You said: {text}"
        self._post(ev.Called("send", ticket, {"accepted": True, "turn": turn}))
        self._fast.later(STEP, lambda: self._say(turn, reply, 0))

    def _say(self, turn: str, reply: str, done: int) -> None:
        """One more word of a reply, until the turn is another."""
        if turn != self._turn:
            return
        if not done:
            self.wire("turn.started", turn=turn)
        end = reply.find(" ", done) + 1 or len(reply)
        self.wire("message.delta", turn=turn, message=f"m-{turn}", text=reply[done:end])
        if end < len(reply):
            self._fast.later(STEP, lambda: self._say(turn, reply, end))
            return
        message = {"id": f"m-{turn}", "role": "assistant", "text": reply}
        self.wire("message.completed", turn=turn, message=message)
        self._end("end")

    def _end(self, reason: str) -> None:
        turn, self._turn = self._turn, ""
        self.wire("turn.completed", turn=turn, stop_reason=reason, usage={})

    def interrupt(self) -> None:
        if self._turn:
            self._end("interrupted")

    def why(self, ticket: int, id_: str) -> None:
        self.call("why", ticket, "memory.query", {"id": id_})

    def call(self, kind: str, ticket: int, command: str, body: dict[str, Any]) -> None:
        result = self.answers.get(command)
        if self.up and result is not None:
            self._post(ev.Called(kind, ticket, result))
        else:
            why = f"no answer to {command} was given" if self.up else "Connection refused"
            self._post(ev.Called(kind, ticket, None, "service", why))

    def switch(self, session: str) -> None:
        self.session = session or "s2"

    def prefill(self) -> None:
        """There is nothing to be computed ahead."""


class FastEar:
    """Hears what a script says will be heard, a moment after the release."""

    def __init__(self, fast: Fast, post: Callable[[ev.Event], None], microphone: Breakable) -> None:
        self._fast, self._post, self._microphone = fast, post, microphone
        self.heard: deque[str] = deque()
        self.up = True  # exo-models
        self._ticket = 0

    def start(self, ticket: int) -> None:
        self._ticket = ticket
        if self._microphone.broken:
            self._post(ev.Deaf(ticket, "microphone", self._microphone.broken))
            return
        # a recording that was begun by a tap ends with what is heard, or because nothing is
        speaks = len(self.heard[0]) / LETTERS + PAUSE if self.heard else NOTHING
        why = "pause" if self.heard else "nothing"
        self._fast.later(speaks, lambda: self._ended(ticket, why))

    def _ended(self, ticket: int, why: str) -> None:
        if ticket == self._ticket and self.up:
            self._post(ev.SpeechEnded(ticket, why))

    def finish(self) -> None:
        ticket = self._ticket
        self._fast.later(HEARS, lambda: self._report(ticket))

    def cancel(self) -> None:
        self._ticket = 0

    def _report(self, ticket: int) -> None:
        if ticket != self._ticket or not ticket:
            return
        if self._microphone.broken:
            self._post(ev.Deaf(ticket, "microphone", self._microphone.broken))
        elif not self.up:
            self._post(ev.Deaf(ticket, "models", "Connection refused"))
        else:
            self._post(ev.Heard(ticket, self.heard.popleft() if self.heard else ""))


class FastVoice:
    """Speaks without sound, as long as it would take."""

    def __init__(self, fast: Fast, post: Callable[[ev.Event], None], speaker: Breakable) -> None:
        self._fast, self._post, self._speaker = fast, post, speaker
        self.volume, self.sounds, self.muted = 1.0, True, False
        self._ticket = 0
        self._until = 0.0  # when all was said

    @property
    def on(self) -> bool:
        return not self.muted

    def mute(self, on: bool) -> None:
        self.muted = on
        if on:
            self.cancel()

    def chime(self, name: str) -> None:
        """A tone is over at once."""

    def begin(self) -> int:
        self._ticket += 1
        self._until = self._fast.clock.monotonic()
        return self._ticket

    def say(self, ticket: int, sentence: str, place: int = 0) -> None:
        now = self._fast.clock.monotonic()
        start = max(now, self._until)
        self._until = start + len(sentence) / LETTERS
        self._fast.later(start - now, lambda: self._tell(ev.Uttered(ticket, place)))

    def end(self, ticket: int) -> None:
        rest = max(0.0, self._until - self._fast.clock.monotonic())
        self._fast.later(rest, lambda: self._tell(ev.Spoken(ticket)))

    def cancel(self) -> None:
        self._ticket += 1

    def _tell(self, event: ev.Uttered | ev.Spoken) -> None:
        if event.ticket != self._ticket:
            return
        if self._speaker.broken:
            self._ticket += 1
            self._post(ev.Mute(event.ticket, "speaker", self._speaker.broken))
        else:
            self._post(event)


class Stage:
    """exod, ear and voice of one fast run, and what a script says of them."""

    def __init__(
        self,
        fast: Fast,
        handheld: Handheld,
        system: SystemPort,
        microphone: Breakable,
        speaker: Breakable,
    ) -> None:
        self._fast, self._handheld = fast, handheld
        self.link = FastLink(fast, handheld.post)
        self.ear = FastEar(fast, handheld.post, microphone)
        self.voice = FastVoice(fast, handheld.post, speaker)
        fast.handheld = handheld
        handheld.attach(self.ear, self.voice, self.link, system)
        handheld.post(ev.Link("models", True))
        self.link.come()

    def kill(self, name: str) -> None:
        """End exod or models; either is back soon."""
        if name == "exod":
            self.link.go()
            return

        def come() -> None:
            self.ear.up = True
            self._handheld.post(ev.Link("models", True))

        self.ear.up = False
        self._handheld.post(ev.Link("models", False))
        self._fast.later(COMEBACK, come)

    def act(self, action: str, rest: str) -> None:
        """Carry out `heard`, `reply`, `wire` or `answer`."""
        if action == "heard":
            self.ear.heard.append(rest)
        elif action == "reply":
            self.link.replies.append(rest.replace("\\n", "\n"))
        else:
            name, _, body = rest.partition(" ")
            data = json.loads(body)
            if action == "wire":
                self.link.wire(name, **data)
            else:
                self.link.answers[name] = data


SAYINGS = {
    "heard": "heard [TEXT]",
    "reply": "reply TEXT",
    "wire": "wire EVENT {JSON}",
    "answer": "answer COMMAND {JSON}",
}


def check(action: str, rest: str) -> None:
    """Raise ValueError unless the line is one of SAYINGS."""
    usage = f"write `{SAYINGS[action]}`"
    if action == "heard":
        return
    if not rest:
        raise ValueError(usage)
    if action != "reply":
        name, _, body = rest.partition(" ")
        try:
            data = json.loads(body)
        except ValueError as error:
            raise ValueError(f"{usage}: {error}") from error
        if not isinstance(data, dict) or not name:
            raise ValueError(usage)
