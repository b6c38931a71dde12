"""The line to exod: sessions that are forgotten, exods that die, turns that are refused."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.device.events import Called, Event, Link, Wire
from exo.device.link import Exod


class Line:
    """An Exod with an inbox."""

    def __init__(self, folder: Path) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.memo = folder / "state" / "device.json"
        models = folder / "state" / "models.sock"
        self.link = Exod(folder / "state" / "exod.sock", models, self.memo, self.events.put)

    def next(self, type_: type[Event], /, **match: Any) -> Any:
        end = time.monotonic() + 20
        while True:
            event = self.events.get(timeout=max(0.01, end - time.monotonic()))
            if isinstance(event, type_) and all(getattr(event, k) == v for k, v in match.items()):
                return event


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.link.close()


def test_one_session_is_made_and_used_again(exod: Any, line: Line, tmp_path: Path) -> None:
    line.link.start()
    line.next(Link, part="core", up=True)
    assert json.loads(line.memo.read_text()) == {"session": "s1"}
    again = Line(tmp_path)
    again.link.start()
    again.next(Link, part="core", up=True)
    again.link.close()
    assert again.link.session == "s1"
    assert exod.sessions == {"s1"}


@pytest.mark.parametrize("memo", ["", "{", '{"session": 3}', '{"session": "gone"}', "[]"])
def test_a_memo_that_is_no_use_is_replaced(exod: Any, line: Line, memo: str) -> None:
    line.memo.write_text(memo)
    line.link.start()
    line.next(Link, part="core", up=True)
    assert line.link.session == "s1"


def test_a_disk_that_takes_nothing_costs_only_the_memory_of_the_session(
    exod: Any, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exo.core.base.errors import StorageError

    def full(*_: object) -> None:
        raise StorageError("write device.json", "the disk is full")

    monkeypatch.setattr("exo.device.link.write_atomic", full)
    line.link.start()
    line.next(Link, part="core", up=True)
    assert line.link.session == "s1"


def test_a_session_that_vanished_is_replaced_within_the_turn(exod: Any, line: Line) -> None:
    line.link.start()
    line.next(Link, part="core", up=True)
    exod.sessions.clear()
    exod.sessions.add("other")
    line.link.send(1, "hello")
    assert line.next(Called, kind="send").result["turn"] == "t1"
    assert line.link.session == "s2"


def test_events_go_on_where_they_stopped(exod: Any, line: Line) -> None:
    line.link.start()
    line.next(Link, part="core", up=True)
    exod.notice("info", "x", "one")
    assert line.next(Wire).event["body"]["text"] == "one"
    exod.kill()
    assert not line.next(Link, part="core", up=False).up
    exod.notice("info", "x", "two")
    exod.start()
    line.next(Link, part="core", up=True)
    assert line.next(Wire).event["body"]["text"] == "two"


def test_another_record_with_lower_numbers_is_followed(exod: Any, line: Line) -> None:
    line.link.start()
    for _ in range(5):
        exod.notice("info", "x", "old")
    line.next(Link, part="core", up=True)
    exod.notice("info", "x", "the stream stands")
    line.next(Wire)
    exod.kill()
    line.next(Link, part="core", up=False)
    exod.events.clear()
    exod.start()
    line.next(Link, part="core", up=True)
    exod.notice("info", "x", "new")
    while line.next(Wire).event["body"]["text"] != "new":
        pass


def test_a_refusal_has_code_and_reason(exod: Any, line: Line) -> None:
    exod.kill()
    line.link.send(3, "hello")
    called = line.next(Called)
    assert (called.kind, called.ticket, called.result, called.code) == ("send", 3, None, "service")
    assert called.why


def test_a_turn_that_still_ends_is_waited_for(
    exod: Any, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exo.core.base.httpd import HttpError

    original, refusals = exod._command, [3]

    def busy(kind: str, body: dict[str, Any]) -> Any:
        if kind == "turn.send" and refusals[0]:
            refusals[0] -= 1
            raise HttpError(409, "turn_running", "a turn is running")
        return original(kind, body)

    monkeypatch.setattr(exod, "_command", busy)
    line.link.send(1, "hello")
    assert line.next(Called, kind="send").result
    assert refusals == [0]


def test_models_that_come_and_go_are_noticed(exod: Any, models: Any, line: Line) -> None:
    line.link.start()
    line.next(Link, part="models", up=True)
    models.kill()
    line.next(Link, part="models", up=False)


def test_another_session_goes_on_and_is_remembered(exod: Any, line: Line) -> None:
    line.link.start()
    line.next(Link, part="core", up=True)
    exod.sessions.add("older")
    line.link.switch("older")
    assert line.next(Called, kind="switch").result == {"session": "older"}
    assert line.link.session == "older"
    assert json.loads(line.memo.read_text()) == {"session": "older"}
    line.link.switch("")
    new = line.next(Called, kind="switch").result["session"]
    assert new not in ("older", "s1") and line.link.session == new
    line.link.switch("gone")
    assert line.next(Called, kind="switch").code == "unknown_session"
    assert line.link.session == new


def test_any_command_is_answered_or_its_refusal_told(exod: Any, line: Line) -> None:
    line.link.start()
    line.next(Link, part="core", up=True)
    line.link.call("mine", 7, "hello", {"protocol": 1, "client": "test"})
    assert line.next(Called, kind="mine", ticket=7).result["protocol"] == 1
    line.link.call("mine", 8, "turn.interrupt", {"session": "gone"})
    told = line.next(Called, kind="mine", ticket=8)
    assert told.result is None and told.code == "unknown_session" and told.why


def test_what_was_asked_before_it_came_is_still_open(exod: Any, line: Line) -> None:
    exod.notice("info", "x", "old news")
    exod.emit("s9", "approval.requested", {"request": "r1"})
    line.link.start()
    line.next(Link, part="core", up=True)
    exod.notice("info", "x", "news")
    seen = []
    while not seen or seen[-1] != "notice":
        seen.append(line.next(Wire).event["type"])
    assert seen == ["approval.requested", "notice"]
