"""Random walks: buttons, gestures, words, news, faults and time in any order. No exception, no page that cannot
be left, nothing of the person behind the PIN, and rest at the end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exo.core.base.errors import StorageError
from exo.device import events as ev
from exo.device import pin as pin_module
from exo.device.pin import Pin
from exo.device.settings import OPTIONS
from exo.device.states import LOCKED, RESTS, STATES
from exo.device.views import VIEWS
from exo.tools.clock import FakeClock

if TYPE_CHECKING:
    from conftest import Bench

BOARDS = (
    ("talk", "up", "down", "ok", "back"),
    ("talk", "up", "down", "left", "right", "ok", "back", "menu"),
    ("talk", "up", "down"),
    ("talk", "ok", "up", "down"),
    ("talk",),
)
OPTIONS_NOW = {option.name: option.values[-1] for option in OPTIONS} | {
    "screen.sleep": 45.0,
    "lock.sleep": True,
}
SECRET = "Zelmira"


class System:
    def __init__(self, chance: random.Random) -> None:
        self.actions = dict.fromkeys(("restart", "off", "reset"), self._act)
        self._chance = chance

    def _act(self) -> None:
        if self._chance.random() < 0.5:
            raise StorageError("reset", "the disk is full")

    def storage(self) -> str:
        return "1.0 GB of 2.0 GB free"

    def about(self) -> str:
        return "Exo 1.0"


class Walk:
    """One walker. Its steps follow from `seed` alone."""

    def __init__(self, make_bench: Callable[..., Bench], folder: Path, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        clock = FakeClock()
        pin = Pin(folder / f"pin{seed}", clock)
        if seed % 2:
            pin.change("0000")
        self.keys = BOARDS[seed % len(BOARDS)]
        self.bench = make_bench(
            names=self.keys,
            pin=pin,
            clock=clock,
            options=OPTIONS_NOW,
            system=System(chance),
            toggles=chance.random() < 0.2,
        )
        self.down: set[str] = set()
        self.seen: set[str] = set()

    def steps(self, count: int) -> None:
        for number in range(count):
            self.chance.choices(
                (
                    self.key,
                    self.tap,
                    self.gesture,
                    self.unlock,
                    self.converse,
                    self.news,
                    self.asked,
                    self.answered,
                    self.fault,
                ),
                (8, 8, 1, 2, 1, 3, 1, 3, 1),
            )[0]()
            self.bench.pass_(self.chance.choice((0, 0, 0.05, 0.1, 0.1, 0.4, 0.9, 3, 30, 200)))
            self.look()
            if number % 97 == 0:
                self.leave()

    def key(self) -> None:
        name = self.chance.choice(self.keys)
        down = name not in self.down if self.chance.random() < 0.9 else self.chance.random() < 0.5
        (self.down.add if down else self.down.discard)(name)
        self.bench.do(ev.Button(name, down))

    def tap(self) -> None:
        name = self.chance.choice(self.keys)
        self.down.discard(name)
        self.bench.press(name, self.chance.choice((0.05, 0.1, 0.1, 0.1, 1.0)))

    def gesture(self) -> None:
        kind = self.chance.choice(
            ("down", "up", "press", "hold", "double", "repeat", "chord", "stuck")
        )
        self.bench.do(ev.Gesture(kind, self.chance.choice((*self.keys, "ok+back", "no")), 1.0))

    def unlock(self) -> None:
        """The person comes back and knows the PIN."""
        self.tap()
        page: Any = self.bench.device.page
        if self.bench.state == "unlock":
            page.clear()
            for _ in range(4):
                page.key("ok")
            page.send()

    def converse(self) -> None:
        """A turn, or a part of one."""
        self.bench.do(ev.Typed("hello"))
        pieces: tuple[tuple[str, dict[str, Any]], ...] = (
            ("turn.started", {}),
            ("message.delta", {"message": "m", "text": f"{SECRET} said so. And"}),
            ("turn.completed", {"stop_reason": "end", "usage": {}, "recalled": ["f1"]}),
        )
        for kind, body in pieces[: self.chance.randrange(4)]:
            self.bench.wire(kind, turn="t1", **body)
        self.bench.do(ev.Spoken(self.bench.device.talk.reply.voice))

    def news(self) -> None:
        chance = self.chance
        turn = chance.choice(("t1", "t2", ""))
        message: Any = chance.choice(
            ("m", {"id": "m", "role": "assistant", "text": f"{SECRET}. More"})
        )
        body: dict[str, Any] = {
            "turn": turn, "message": message, "text": f"{SECRET} said so. And", "level": "info",
            "code": chance.choice(("timer", "reminder", "x")), "tool": "bash", "recalled": ["f1"],
            "panel": "mail", "kind": "progress", "action": chance.choice(("open", "close")),
            "data": chance.choice(({"title": SECRET, "done": 1, "total": 3}, {}, None)),
            "stop_reason": chance.choice(("end", "error", "interrupted")),
        }  # fmt: skip
        kind = chance.choice(
            ("turn.started", "message.delta", "message.delta", "message.completed", "turn.completed",
             "notice", "tool.started", "ui.panel", "task.updated", "x")
        )  # fmt: skip
        session = chance.choice(("s1", "s1", "s2", ""))
        self.bench.do(ev.Wire({"type": kind, "session": session, "body": body}))

    def asked(self) -> None:
        chance, now = self.chance, self.bench.clock.now_ms()
        id_ = f"r{chance.randrange(4)}"
        body: dict[str, Any] = {
            "request": id_, "question": id_, "summary": f"delete {SECRET}", "tool": "bash",
            "args": chance.choice(({"command": "rm " + SECRET * 40}, {}, None)), "text": f"{SECRET}?",
            "expires": chance.choice((now + 90_000, now - 5, now + 10**12, None, "x")),
            "options": chance.choice((["a", "b"], [], None, [1, None])), "by": chance.choice(("tui", "timeout")),
            "always": chance.choice((True, False)), "choice": chance.choice(("allow", "deny")),
        }  # fmt: skip
        kind = chance.choice(("approval.requested", "approval.resolved", "question.asked"))
        self.bench.do(ev.Wire({"type": kind, "session": "s1", "body": body}))

    def answered(self) -> None:
        chance, talk = self.chance, self.bench.device.talk
        ticket = chance.choice((talk.ticket, talk.ticket, talk.reply.voice, 0))
        now = self.bench.clock.now_ms()
        rows = {
            "rows": [{"id": "a", "due": now + 90_000, "label": SECRET}, {"due": "x"}, 5],
            "sessions": [{"id": "s1", "title": SECRET, "updated": now}, {}],
            "hits": [{"snippet": f"«{SECRET}»", "session": "s2"}],
            "settings": {"screen.text": {"value": "large"}, "screen.language": {"value": "de"}, "x": 1},
            "turn": "t1", "text": SECRET, "evidence": [],
        }  # fmt: skip
        kinds = ("send", "why", "answer", "sessions", "due", "hits", "config", "cancel", "switch",
                 "set screen.brightness", "prefill")  # fmt: skip
        self.bench.do(
            chance.choice(
                (
                    ev.Called(chance.choice(kinds), ticket, chance.choice((rows, rows, {}, None)), "x", "y"),
                    ev.Heard(ticket, chance.choice(("", "no", "words", SECRET))),
                    ev.Typed(chance.choice(("", "no", "yes", "words"))),
                    ev.Spoken(ticket),
                    ev.Uttered(ticket, 3),
                    ev.Level(ticket, 0.5),
                    ev.Battery(chance.choice((None, 4, 100)), chance.random() < 0.5),
                )
            )
        )  # fmt: skip

    def fault(self) -> None:
        chance, bench = self.chance, self.bench
        ticket = chance.choice((bench.device.talk.ticket, bench.device.talk.reply.voice))
        match chance.randrange(5):
            case 0:
                part = chance.choice(("core", "models"))
                bench.do(ev.Link(part, chance.random() < 0.6, "Connection refused"))
            case 1:
                bench.do(ev.Deaf(ticket, chance.choice(("microphone", "models")), "unplugged"))
            case 2:
                bench.do(ev.Mute(ticket, chance.choice(("speaker", "models")), "unplugged"))
            case 3:
                bench.panel.broken = chance.choice(("", "no answer at 0x3C"))
            case _:
                bench.clock.set(chance.choice((-10_800, 10_800, 86_400 * 400)))

    def look(self) -> None:
        """What holds at every moment."""
        device = self.bench.device
        state = device.machine.state
        assert state in STATES and state != "off"
        self.seen.add(state)
        assert (device.page is None) == (state in VIEWS)
        assert device.page is None or device.page.state == state
        drawn = device.pages.draw(device.view())
        if state in LOCKED:
            assert SECRET not in drawn.text, drawn.text
        if not device.dark and not self.bench.panel.broken:
            shown = device.display.shown
            assert shown is not None

    def leave(self) -> None:
        """A person leads it to rest, whatever it shows."""
        bench = self.bench
        for name in tuple(self.down):
            bench.do(ev.Button(name, False))
        self.down.clear()
        for _ in range(40):
            bench.pass_(0.5)
            if (
                bench.state == "locked"
                or bench.state == "idle"
                and not bench.device.notices.waiting
            ):
                return
            if "back" in self.keys:
                bench.press("back", 0.1)
            elif bench.device.page is not None:
                bench.press("talk", 0.1)
                bench.press("talk", 0.1)
            else:
                out = {"back", "ok", "talk"} & set(self.keys) & set(STATES[bench.state].out)
                bench.press(min(out, key=("back", "ok", "talk").index), 0.1)
                if bench.link.told[-1:] and bench.link.told[-1][0] == "why":
                    bench.do(ev.Called("why", bench.device.talk.ticket, {"text": SECRET}))
            bench.pass_(4)
        raise AssertionError(f"no way out of {bench.state}: {bench.screen}")

    def rest(self) -> None:
        """Left alone, it rests."""
        bench = self.bench
        bench.panel.broken = ""
        for name in self.keys:
            bench.do(ev.Button(name, False))
        for _ in range(80):
            bench.pass_(310)
        assert bench.state in RESTS, bench.state
        assert bench.device.dark


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash is made to cost; a walk enters many PINs."""
    monkeypatch.setattr(pin_module, "COST", {"n": 2, "r": 1, "p": 1})


@pytest.mark.parametrize("seed", range(10))
def test_a_walk_of_some_hundred_events_ends_at_rest(
    make_bench: Callable[..., Bench], tmp_path: Path, seed: int, capsys: Any
) -> None:
    walk = Walk(make_bench, tmp_path, seed)
    walk.steps(400)
    walk.rest()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_walk_of_a_hundred_thousand_events_ends_at_rest(
    make_bench: Callable[..., Bench], tmp_path: Path, seed: int, capsys: Any
) -> None:
    walk = Walk(make_bench, tmp_path, seed)
    walk.steps(10_000)
    walk.rest()
    assert {"menu", "entry", "card", "question", "reply", "thinking", "notice"} <= walk.seen
    if seed % 2:
        assert {"locked", "unlock", "ring"} <= walk.seen
