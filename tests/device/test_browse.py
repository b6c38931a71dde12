"""Every page can be reached and left with the keys of every board, and does what it says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exo.board.profile import load, names
from exo.device import events as ev
from exo.device.pin import Pin
from exo.device.settings import OPTIONS
from exo.device.states import BROWSED
from exo.tools.clock import FakeClock

if TYPE_CHECKING:
    from conftest import Bench

KEYS = {
    "five": ("talk", "up", "down", "ok", "back"),
    "three": ("talk", "up", "down"),
    "two": ("talk", "ok"),
    "one": ("talk",),
}
SETTINGS = {option.name: option.values[0] for option in OPTIONS} | {"screen.language": "en"}


class System:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.actions = {
            name: lambda name=name: self.done.append(name) for name in ("restart", "off", "reset")
        }

    def storage(self) -> str:
        return "1.0 GB of 2.0 GB free\n" + "more\n" * 8

    def about(self) -> str:
        return "Exo 1.0"


def furnished(make_bench: Callable[..., Bench], folder: Path, keys: tuple[str, ...]) -> Bench:
    """A device on which every page has something to show."""
    clock = FakeClock()
    options = SETTINGS | {"screen.sleep": 0.0}
    bench = make_bench(
        names=keys, options=options, system=System(), pin=Pin(folder / "pin", clock), clock=clock
    )
    bench.device.known.ask("due")
    answer(bench)
    bench.wire(
        "ui.panel", panel="mail", kind="progress", action="open", data={"done": 1, "total": 4}
    )
    bench.ask("who is she?")
    message = {"id": "m1", "role": "assistant", "text": "Your sister."}
    bench.wire("message.completed", turn="t1", message=message)
    bench.wire("turn.completed", turn="t1", stop_reason="end", usage={}, recalled=["f1"])
    bench.do(ev.Spoken(1))
    bench.pass_(20)
    return bench


def answer(bench: Bench) -> None:
    """What exod would answer to what was asked."""
    now = bench.clock.now_ms()
    rows = [
        {"id": "a", "kind": "timer", "due": now + 299_000, "label": "Tea"},
        {"id": "b", "kind": "reminder", "due": now + 7_200_000, "label": "Dentist"},
        {"id": "c", "kind": "reminder", "due": now + 720_000_000, "label": "Plants"},
    ]
    talks = [{"id": "s1", "title": "France", "updated": now}, {"id": "s2", "updated": now}]
    hits = [{"session": "s2", "message": "m", "snippet": "water the «plants» twice"}]
    found = {"due": {"rows": rows}, "sessions": {"sessions": talks}, "hits": {"hits": hits}}
    for kind, ticket, *_ in [told[1:] for told in bench.link.told if told[0] == "call"]:
        if kind in found:
            bench.do(ev.Called(kind, ticket, found[kind]))
    for _, ticket, *_ in [told for told in bench.link.told if told[0] == "why"]:
        bench.do(ev.Called("why", ticket, {"text": "Zelmira", "evidence": []}))
    bench.link.told.clear()


def gestures(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """What a finger can do on such a board: taps, holds, and talk twice."""
    taps = [("tap", name) for name in keys if name != "talk"]
    holds = [("hold", name) for name in keys if name in ("ok", "talk")]
    return [("tap", "talk"), *taps, *holds, ("twice", "talk")]


def act(bench: Bench, gesture: tuple[str, str]) -> None:
    kind, name = gesture
    if kind == "hold":
        bench.do(ev.Button(name, True))
        for _ in range(9):
            bench.pass_(0.1)
        bench.do(ev.Button(name, False))
    else:
        for _ in range(2 if kind == "twice" else 1):
            bench.press(name, 0.1)
    bench.pass_(0.5)
    if bench.state == "thinking":  # nobody spoke
        bench.do(ev.Heard(bench.device.talk.ticket, ""))
    answer(bench)


def place(bench: Bench) -> tuple[Any, ...]:
    """Where the person is, as far as it matters for what a key does."""
    page = bench.device.page
    wheel = getattr(page, "wheel", None)
    return (
        bench.state,
        getattr(page, "title", ""),
        getattr(page, "chosen", 0) if wheel is None else getattr(page, "_place", 0),
        len(getattr(page, "text", "")) if wheel is not None else 0,
        len(getattr(page, "_typed", "")),
        getattr(page, "_no", False),
        page.parent.title if page and page.parent else "",
    )


def walk(make: Callable[[], Bench], keys: tuple[str, ...], most: int) -> dict[tuple[Any, ...], Any]:
    """Breadth first over all places, each reached anew by its shortest way; the ways by place."""
    start = make()
    ways: dict[tuple[Any, ...], list[tuple[str, str]]] = {place(start): []}
    todo = deque([[]])  # type: ignore[var-annotated]
    while todo and len(ways) < most:
        way = todo.popleft()
        for gesture in gestures(keys):
            bench = make()
            for each in (*way, gesture):
                act(bench, each)
            here = place(bench)
            deep = (
                here[3] > 1
                or here[4] > 1
                or here[0] in ("entry", "pin")
                and 2 < here[2] < (40 if here[0] == "entry" else 9)
            )
            if here not in ways and not deep:
                ways[here] = [*way, gesture]
                todo.append([*way, gesture])
    return ways


@pytest.mark.parametrize("profile", ["three", "one"])
@pytest.mark.slow
def test_every_page_is_reached_with_few_keys(
    make_bench: Callable[..., Bench], tmp_path: Path, profile: str
) -> None:
    keys = KEYS[profile]
    ways = walk(lambda: furnished(make_bench, tmp_path, keys), keys, 400)
    # one key alone goes the whole round of letters until it can send: too far for a walk
    far = {"found"} if profile == "one" else set()
    assert set(BROWSED) - far <= {each[0] for each in ways}, ways.keys()


def test_one_key_alone_writes_and_sends(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["one"])
    act(bench, ("twice", "talk"))
    choose(bench, "Search")
    act(bench, ("hold", "talk"))
    page: Any = bench.device.page
    assert len(page.text) == 1
    while page.wheel[page._place] != "send":
        act(bench, ("tap", "talk"))
    act(bench, ("hold", "talk"))
    assert bench.state == "found" and "water the" in bench.screen


def choose(bench: Bench, label: str) -> None:
    """Go to a row and choose it, with the keys that the board has."""
    keys = bench.device.fingers.names
    page: Any = bench.device.page
    for _ in range(40):
        items = page.items
        if label in items[page.chosen].label:
            break
        act(bench, ("tap", "down" if "down" in keys else "talk"))
    assert label in page.items[page.chosen].label
    if "ok" in keys:
        act(bench, ("tap", "ok"))
    else:
        act(bench, ("tap" if "up" in keys else "hold", "talk"))
        bench.pass_(0.5)


WAYS = {
    "sessions": ("Conversations",),
    "due": ("Timers",),
    "confirm": ("Timers", "Tea"),
    "entry": ("Search",),
    "progress": ("mail",),
    "settings": ("Settings",),
    "choice": ("Settings", "Letters"),
    "about": ("Settings", "Storage"),
    "pin": ("Settings", "PIN"),
}


@pytest.mark.parametrize("profile", KEYS)
@pytest.mark.parametrize("state", WAYS)
def test_each_page_is_reached_and_left(
    make_bench: Callable[..., Bench], tmp_path: Path, profile: str, state: str
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS[profile])
    act(bench, ("twice", "talk"))
    assert bench.state == "menu"
    for label in WAYS[state]:
        choose(bench, label)
    assert bench.state == state
    for _ in range(5):
        act(bench, ("tap", "back") if "back" in KEYS[profile] else ("twice", "talk"))
        if bench.state == "idle":
            return
        assert bench.state in BROWSED
    raise AssertionError(bench.state)


@pytest.mark.parametrize("state", WAYS)
def test_a_page_that_is_left_alone_goes_home(
    make_bench: Callable[..., Bench], tmp_path: Path, state: str
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    bench.tap("down")
    for label in WAYS[state]:
        choose(bench, label)
    assert bench.pass_(121) == "idle"


@pytest.mark.parametrize("name", sorted(names()))
def test_the_keys_of_every_board_open_and_leave_the_menu(
    make_bench: Callable[..., Bench], tmp_path: Path, name: str
) -> None:
    keys = tuple(button.name for button in load(name).buttons)
    bench = furnished(make_bench, tmp_path, keys)
    act(bench, ("twice", "talk"))
    assert bench.state == "menu"
    act(bench, ("tap", "back") if "back" in keys else ("twice", "talk"))
    assert bench.state == "idle"


def test_talk_pressed_twice_and_held_still_records(bench: Bench) -> None:
    bench.press("talk", 0.1)
    bench.press("talk", 1.0)
    assert bench.state == "thinking"


def test_a_press_in_between_makes_no_double(bench: Bench) -> None:
    bench.press("talk", 0.1)
    bench.press("ok", 0.05)
    bench.press("talk", 0.1)
    assert bench.state == "thinking"  # the second tap ends what the first began


def test_a_held_ok_reads_the_page_aloud_and_a_press_stops_it(bench: Bench) -> None:
    bench.tap("down", "down")
    act(bench, ("hold", "ok"))
    said = [told[2] for told in bench.voice.told if told[0] == "say"]
    assert said == ["Menu. Search. 2/3."]
    bench.tap("down")
    assert bench.voice.names()[-1] == "cancel"
    bench.tap("back")
    act(bench, ("hold", "ok"))
    assert any("Hold to talk" in str(told[2]) for told in bench.voice.told if told[0] == "say")


def test_a_session_is_chosen_and_a_new_one_begun(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    bench.tap("down")
    choose(bench, "Conversations")
    assert "France" in bench.screen and "New conversation" in bench.screen
    assert bench.device.view().rows[1].marked
    bench.tap("down", "down")
    bench.press("ok", 0.1)
    assert ("switch", "s2") in bench.link.told
    bench.tap("ok")
    bench.tap("down")
    choose(bench, "Conversations")
    bench.press("ok", 0.1)
    assert ("switch", "") in bench.link.told


def test_a_timer_is_cancelled_only_by_a_hold(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    bench.tap("down")
    choose(bench, "Timers")
    assert "Tea" in bench.screen and "4:59" in bench.screen and "Thu 23 Nov" in bench.screen
    first = bench.screen
    bench.pass_(1.0)
    assert bench.screen != first, "the time left runs"
    bench.press("ok", 0.1)
    assert bench.state == "confirm" and "Cancel it?" in bench.screen
    bench.press("ok", 0.1)
    assert bench.calls("command.run") == []
    bench.do(ev.Button("ok", True))
    bench.pass_(0.9)
    assert bench.calls("command.run") == [{"name": "cancel", "args": {"id": "a"}}]
    assert bench.state == "due" and "Tea" not in bench.screen


def test_text_is_searched_by_letters_and_by_voice(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    bench.tap("down")
    choose(bench, "Search")
    bench.tap("ok", "down", "ok")
    typed = bench.device.view().text
    assert len(typed) == 2
    assert bench.press("talk", 1.0) == "thinking"
    assert bench.do(ev.Heard(bench.device.talk.ticket, "the plants")) == "entry"
    assert bench.device.view().text == f"{typed} the plants"
    bench.tap("back")
    assert bench.device.view().text == f"{typed} the plant"
    act(bench, ("hold", "ok"))
    assert bench.state == "found" and "water the" in bench.screen
    bench.press("ok", 0.1)
    assert "water the plants" in bench.screen and "«" not in bench.screen
    bench.tap("back")
    assert bench.tap("back") == "entry"
    assert bench.device.view().text == f"{typed} the plant", "what was typed is kept"


def test_words_that_were_not_said_leave_the_line_as_it_was(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    bench.tap("down")
    choose(bench, "Search")
    bench.tap("ok")
    bench.press("talk", 1.0)
    assert bench.do(ev.Heard(bench.device.talk.ticket, "")) == "entry"
    bench.do(ev.Button("talk", True))
    assert bench.state == "listening"
    assert bench.tap("back") == "entry"
    assert len(bench.device.view().text) == 1


def test_a_setting_is_followed_once_exod_has_it(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    bench.tap("down")
    choose(bench, "Settings")
    choose(bench, "Brightness")
    bench.tap("down", "down")
    bench.press("ok", 0.1)
    value = OPTIONS[4].values[2]
    assert bench.calls("config.set") == [{"key": "screen.brightness", "value": value}]
    bench.do(ev.Called("set screen.brightness", 0, {"counts": "from the next start"}))
    assert bench.panel.level == 0.5
    choose(bench, "Language")
    choose(bench, "Deutsch")
    bench.do(ev.Called("set screen.language", 0, {}))
    assert "Halten und sprechen" in bench.screen
    bench.tap("down")
    choose(bench, "Einstellungen")
    choose(bench, "Stimme")
    bench.tap("down")
    bench.press("ok", 0.1)
    bench.do(ev.Called("set voice.backend", 0, None, "bad_setting", "the disk is full"))
    bench.pass_(61)
    assert "the disk is full" in bench.screen


def test_what_exod_does_not_know_has_no_row(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(options={"screen.sleep": 0.0})
    bench.tap("down")
    page: Any = bench.device.page
    assert [item.label for item in page.items] == ["Conversations", "Search", "Settings"]
    choose(bench, "Settings")
    page = bench.device.page
    assert [item.label for item in page.items] == ["Sleep after"]
    bench.tap("back", "back")
    bench.do(ev.Link("core", False, "gone"))
    bench.tap("down")
    page = bench.device.page
    assert [item.label for item in page.items] == ["Settings"]


def test_a_bell_rings_over_a_page_and_other_news_waits(bench: Bench) -> None:
    bench.tap("down")
    bench.wire("notice", session="", level="info", code="x", text="news")
    assert bench.state == "menu"
    bench.wire("notice", session="", level="info", code="timer", text="Tea")
    assert bench.state == "notice" and "Tea" in bench.screen
    bench.do(ev.Spoken(1))
    bench.tap("ok")
    bench.pass_(0.1)
    assert "news" in bench.screen


def test_sleep_and_what_ends_it(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(options={"screen.sleep": 60.0, "screen.brightness": 50})
    assert bench.panel.level == 0.5
    bench.pass_(59)
    bench.pass_(0.5)
    assert not bench.device.dark
    bench.pass_(1)
    assert bench.device.dark and bench.panel.level == 0 and bench.screen == ""
    bench.wire("notice", session="", level="info", code="timer", text="Tea")
    assert bench.panel.level == 0.5 and "Tea" in bench.screen
    bench.do(ev.Spoken(1))
    bench.tap("ok")
    bench.pass_(61)
    assert bench.device.dark
    bench.do(ev.Typed("hello"))
    assert bench.state == "thinking" and not bench.device.dark
    bench.device.apply("screen.sleep", 0)
    bench.tap("back")
    bench.pass_(100_000)
    assert not bench.device.dark


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_word_is_there(
    make_bench: Callable[..., Bench], language: str, tmp_path: Path
) -> None:
    bench = furnished(lambda **more: make_bench(language=language, **more), tmp_path, KEYS["five"])
    for option in OPTIONS:
        assert f"set.{option.name}" in bench.device.texts


@pytest.mark.parametrize("ts", [2**60, -(2**60), None, "x", 1.5, 2**47])
def test_times_that_no_calendar_has_and_rows_without_words_can_be_looked_at(
    make_bench: Callable[..., Bench], tmp_path: Path, ts: Any
) -> None:
    bench = furnished(make_bench, tmp_path, KEYS["five"])
    evidence = [{"ts": ts, "kind": "utterance", "text": "x"}, None, "x"]
    assert bench.tap("ok") == "reply"
    ticket = bench.device.talk.ticket
    assert bench.do(ev.Called("why", ticket, {"text": "Zelmira", "evidence": evidence})) == "why"
    bench.tap("back", "down")
    choose(bench, "Timers")
    bench.do(ev.Called("due", 0, {"rows": [{"due": ts, "label": "Tea", "id": "a"}]}))
    bench.tap("down", "back")
    choose(bench, "Conversations")
    bench.do(
        ev.Called("sessions", 0, {"sessions": [{"id": "s", "title": " \u200b", "updated": ts}]})
    )
    bench.tap("down")
    assert bench.state == "sessions" and "…" in bench.screen
