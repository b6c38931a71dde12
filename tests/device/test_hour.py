"""An hour with the handheld, second by second on a clock that a test moves: every page, every fault, nothing
that stays stuck."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.device import events as ev
from exo.device.pin import Pin
from exo.device.settings import OPTIONS
from exo.device.states import DEADLINES, RESTS, STATES
from exo.tools.clock import FakeClock

if TYPE_CHECKING:
    from conftest import Bench

LONGEST = 301.0  # seconds in one state but a rest, while nobody does anything


class System:
    def __init__(self) -> None:
        self.actions = dict.fromkeys(("restart", "off", "reset"), lambda: None)

    def storage(self) -> str:
        return "1.0 GB of 2.0 GB free"

    def about(self) -> str:
        return "Exo 1.0"


class Hour:
    """The bench, and how long it has been in which state."""

    def __init__(self, make_bench: Callable[..., Bench], folder: Path) -> None:
        clock = FakeClock()
        self.pin = Pin(folder / "pin", clock)
        options = {option.name: option.values[0] for option in OPTIONS}
        options |= {"screen.sleep": 90.0, "screen.language": "en", "lock.sleep": True}
        self.bench = make_bench(pin=self.pin, clock=clock, options=options, system=System())
        self.device = self.bench.device
        self.start = clock.monotonic()
        self.seen = {"starting"}

    @property
    def second(self) -> float:
        return self.bench.clock.monotonic() - self.start

    def until(self, second: float) -> None:
        """Let time pass, a second at a step."""
        while self.second < second:
            before, machine = self.bench.state, self.device.machine
            self.bench.pass_(1.0)
            self.seen.add(self.bench.state)
            if before == machine.state and before not in RESTS:
                assert machine.elapsed <= LONGEST, f"stuck in {before}"

    def tap(self, *names: str) -> str:
        for name in names:
            self.bench.press(name, 0.1)
            self.seen.add(self.bench.state)
            self.bench.pass_(0.5)
            self.seen.add(self.bench.state)
        return self.bench.state

    def light(self) -> None:
        """The press that lights a dark screen."""
        if self.device.dark:
            self.tap("ok")

    def hold(self, name: str, seconds: float = 0.9) -> str:
        self.bench.do(ev.Button(name, True))
        self.bench.pass_(seconds)
        self.seen.add(self.bench.state)
        self.bench.do(ev.Button(name, False))
        self.seen.add(self.bench.state)
        return self.bench.state

    def menu(self, *labels: str) -> str:
        self.tap("down")
        assert self.bench.state == "menu", self.bench.state
        for label in labels:
            page: Any = self.device.page
            while label not in page.items[page.chosen].label:
                self.tap("down")
            self.tap("ok")
        return self.bench.state

    def digits(self, digits: str) -> None:
        for digit in digits:
            page: Any = self.device.page
            while page.wheel[page._place] != digit:
                self.tap("up")
            self.tap("ok")
        self.hold("ok")

    def called(self, kind: str, **result: Any) -> None:
        self.bench.do(ev.Called(kind, self.device.talk.ticket, result))

    def asked(self, kind: str, **body: Any) -> str:
        self.bench.wire(kind, **body)
        self.seen.add(self.bench.state)
        self.bench.pass_(0.5)
        return self.bench.state

    def converse(self, words: str, reply: str) -> None:
        self.hold("talk", 1.5)
        self.bench.do(ev.Heard(self.device.talk.ticket, words))
        self.bench.wire("turn.started", turn="t1")
        self.bench.delta(reply[:20])
        self.seen.add(self.bench.state)
        message = {"id": "m1", "role": "assistant", "text": reply}
        self.bench.wire("message.completed", turn="t1", message=message)
        self.bench.wire("turn.completed", turn="t1", stop_reason="end", usage={}, recalled=["f1"])
        self.bench.do(ev.Spoken(self.device.talk.reply.voice))


def test_an_hour(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    hour = Hour(make_bench, tmp_path)
    bench, now = hour.bench, hour.bench.clock.now_ms
    # a morning: talk, why, a timer
    hour.until(30)
    hour.converse("what is my sister called", "You told me: Zelmira. And more of it.")
    hour.tap("ok")
    hour.called("why", text="Zelmira", evidence=[])
    assert bench.state == "why"
    hour.until(120)
    assert bench.state == "idle"
    rows = [{"id": "a", "kind": "timer", "due": now() + 500_000, "label": "Tea"}]
    hour.called("due", rows=rows)
    assert "Tea" in bench.screen or hour.device.dark
    # every page of the menu, each left alone or left by hand
    hour.light()
    assert hour.menu("Timers", "Tea") == "confirm"
    assert hour.tap("back") == "due"
    hour.hold("ok")
    hour.until(200)
    assert bench.state == "idle"
    assert hour.menu("Conversations") == "sessions"
    hour.called("sessions", sessions=[{"id": "s1", "title": "Zelmira"}])
    hour.until(262)
    assert hour.menu("Search") == "entry"
    hour.tap("ok", "down", "ok")
    hour.hold("ok")
    assert bench.state == "found"
    hour.called("hits", hits=[{"snippet": "«Zelmira»", "session": "s2"}])
    hour.tap("ok", "back", "back", "back")
    bench.wire(
        "ui.panel", panel="mail", kind="progress", data={"done": 1, "total": 9}, action="open"
    )
    hour.tap("back", "back", "back", "back", "back", "back")
    assert bench.state == "idle"
    assert hour.menu("mail") == "progress"
    hour.until(360)
    for way in (("Settings", "Letters"), ("Settings", "Storage"), ("Settings", "Power off")):
        hour.menu(*way)
        hour.until(hour.second + 65)
        assert bench.state == "idle", way
    # faults
    hour.hold("talk", 1.5)
    bench.do(ev.Deaf(hour.device.talk.ticket, "microphone", "unplugged"))
    assert "unplugged" in bench.screen
    hour.until(700)
    bench.do(ev.Battery(4, False), ev.Link("models", False))
    hour.tap("ok")
    bench.panel.broken = "no answer at 0x3C"
    hour.converse("are you there", "I am here, and I go on.")
    bench.panel.broken = ""
    bench.do(ev.Mute(hour.device.talk.reply.voice, "speaker", "unplugged"))
    hour.until(760)
    assert "4%" in bench.screen
    bench.do(ev.Typed("hello"))
    bench.wire("turn.started", turn="t1")
    bench.delta("Half a")
    bench.do(ev.Link("core", False, "Connection refused"))
    hour.until(800)
    assert bench.state == "idle"
    bench.do(ev.Link("core", True), ev.Link("models", True))
    bench.clock.set(-10_800)
    bench.do(ev.Typed("no answer comes"))
    hour.until(960)
    assert bench.state in ("notice", "idle")
    bench.do(ev.Button("up", True))  # a key that sticks
    hour.until(1100)
    bench.do(ev.Gesture("stuck", "up"))
    hour.until(1200)
    bench.do(ev.Button("up", False))
    # questions, with somebody there and with nobody
    body = {"summary": "rm thesis: no undo", "tool": "bash", "args": {}, "risk": "high"}
    bench.do(ev.Typed("delete it"))
    bench.wire("turn.started", turn="t1")
    assert hour.asked("approval.requested", request="r1", expires=now() + 60_000, **body) == "card"
    hour.hold("ok")
    assert bench.state == "thinking"
    assert hour.asked("approval.requested", request="r2", expires=now() + 60_000, **body) == "card"
    hour.until(1275)
    assert bench.state == "thinking"
    bench.complete("Nobody was there.")
    assert hour.asked("question.asked", question="q1", text="Which?", options=["a"]) == "question"
    hour.until(1700)
    assert bench.state == "idle"
    # the PIN: set, asked for after the dark, wrong, forgotten, a bell behind it
    hour.light()
    assert hour.menu("Settings", "PIN") == "pin"
    hour.digits("1234")
    hour.digits("1234")
    assert hour.pin.set
    hour.until(1900)
    assert bench.state == "locked" and hour.device.dark
    bench.wire("notice", session="", level="info", code="timer", text="Tea")
    assert bench.state == "ring"
    hour.seen.add("ring")
    hour.until(2100)
    assert bench.state == "locked"
    hour.light()
    hour.tap("ok")
    for _ in range(4):
        hour.digits("0000")
    hour.tap("down", "down", "down", "down")
    hour.tap("ok")
    assert bench.state == "lost"
    hour.until(2200)
    assert bench.state == "locked"
    hour.light()
    hour.tap("ok")
    hour.digits("1234")
    assert bench.state == "idle"
    hour.until(3600)
    assert bench.state == "locked" and hour.device.dark
    unseen = set(STATES) - hour.seen - {"off", "wifi"}  # wifi: this device has no radio
    assert not unseen
    assert all(limit is None or limit <= LONGEST for limit in DEADLINES.values())
