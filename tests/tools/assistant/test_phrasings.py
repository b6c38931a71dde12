"""How people order a thing, each in many ways: every phrasing with what it must come to, and sentences that only
look like orders. Written from knowledge of speech before the tables were, a line a phrasing."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from exo.models.training.data import SEED
from exo.tools.assistant.rules import plan
from exo.tools.assistant.tongue import fold

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday

# the tables lie beside what the head `request.tool` learns from: the same sentences teach it
FOLDER = SEED / "tool" / "phrasings"
REMINDERS = "reminders"  # said | month-day hour:minute | a word of the text | repeat
TIMERS = "timers"  # said | seconds | label
TEXTS = "texts"  # said | tool | its argument, lower case
SAYINGS = "sayings"  # a call = what says it, parted by |
LATER = "later"  # a tool = what says it
NONE = "none"  # nothing of these may run, nor be answered by a question back


def lines_of(table: str) -> list[str]:
    return (FOLDER / f"{table}.txt").read_text(encoding="utf-8").splitlines()


def rows(table: str, width: int) -> list[tuple[str, ...]]:
    """The lines of a table, each with `width` cells."""
    lines = [[cell.strip() for cell in line.split("|")] for line in lines_of(table)]
    return [(*cells, *[""] * (width - len(cells))) for cells in lines]


def sayings(table: str) -> Iterator[tuple[str, str]]:
    for line in lines_of(table):
        what, _, said = line.partition(" = ")
        for each in said.split(" | "):
            yield each, what


LOOKALIKES = [each.strip() for line in lines_of(NONE) for each in line.split(" | ")]


def one(said: str) -> tuple[str, dict[str, Any]]:
    found = plan(said, NOW)
    assert len(found.calls) == 1, f"{said!r}: {found}"
    return found.calls[0]


@pytest.mark.parametrize(("said", "when", "text", "repeat"), rows(REMINDERS, 4))
def test_a_reminder_or_an_alarm_however_it_is_ordered(
    said: str, when: str, text: str, repeat: str
) -> None:
    tool, args = one(said)
    assert tool == "reminder"
    day = datetime.datetime.fromisoformat(args["at"])
    assert f"{day:%m-%d %H:%M}" == when and day.year == (2027 if when < "11" else 2026)
    assert text.lower() in args["text"].lower() and args.get("repeat", "") == repeat
    assert len(args["text"]) <= len(text) + 18  # nothing of the order stands in it


@pytest.mark.parametrize(("said", "seconds", "label"), rows(TIMERS, 3))
def test_a_timer_however_it_is_ordered(said: str, seconds: str, label: str) -> None:
    tool, args = one(said)
    assert (tool, args["seconds"]) == ("timer", int(seconds))
    # an alarm's timer is named after what it is
    assert args.get("label", "") in ({label} if label else {"", "alarm", "Wecker", "alarma"})


@pytest.mark.parametrize(("said", "what"), list(sayings(SAYINGS)))
def test_what_has_no_text_however_it_is_said(said: str, what: str) -> None:
    tool, args = one(said)
    name, *more = what.split()
    if name == "timers":
        assert tool == name and args.keys() <= {"what"}
    elif name in ("time", "undo", "stop", "repeat"):
        assert (tool, args) == (name, {})
    elif name == "cancel":
        want = {"what": more[0]} | ({"which": "all"} if more[1:] else {})
        got = dict(args)
        if got["what"] == "alarm":  # which is a reminder that wakes
            got["what"] = "reminder"
        if "which" in got:
            got["which"] = "all"  # in the words of the language
        assert (tool, got) == ("cancel", want)
    else:
        facts: dict[str, Any] = {}
        for each in more:
            facts = {"delta": int(f"{each}10")} if each in "+-" else {"value": int(each)}
        assert (tool, args) == ("device", {"action": name} | facts)


@pytest.mark.parametrize(("said", "tool", "text"), rows(TEXTS, 3))
def test_what_carries_a_text_however_it_is_said(said: str, tool: str, text: str) -> None:
    name, args = one(said)
    assert name == tool
    if tool == "add_time":
        assert args == {"seconds": int(text)}
        return
    key = {"forget": "id", "recall": "query", "cancel": "label"}.get(tool, "text")
    got = args[key].lower().strip(" .?")
    assert got == text or text in got and "list" in fold(said)


@pytest.mark.parametrize(("said", "tool"), list(sayings(LATER)))
def test_what_was_thought_of_later(said: str, tool: str) -> None:
    assert one(said)[0] == tool


def test_an_early_hour_of_another_day_is_one_of_its_afternoon() -> None:
    assert one("remind me on Friday at two to go home")[1]["at"] == "2026-12-04T14:00"
    assert one("remind me on Friday at 2 am to go home")[1]["at"] == "2026-12-04T02:00"
    assert one("remind me on Friday at 02:00 to go home")[1]["at"] == "2026-12-04T02:00"
    assert one("wake me on Friday at five")[1]["at"] == "2026-12-04T05:00"


@pytest.mark.parametrize("said", LOOKALIKES)
def test_what_only_looks_like_an_order_runs_nothing(said: str) -> None:
    found = plan(said, NOW)
    # a courtesy ("good night") may be answered, as talk
    assert not found.calls and (not found.said or found.kind == "chat")
