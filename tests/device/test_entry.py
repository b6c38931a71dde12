"""The wheel of letters, and which press is still good for something."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from exo.device.entry import LONGEST, Entry, likely
from exo.device.fingers import DOUBLE, HOLD, REPEAT, Fingers
from exo.device.locale import FOLDER
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from conftest import Bench

COMMON = json.loads((FOLDER / "en.json").read_text())["letters.common"]


def test_vowels_follow_consonants_and_the_other_way_round() -> None:
    assert likely("", COMMON) == "etaoin"
    assert likely("th", COMMON)[:4] == "eaoi"
    assert likely("be", COMMON)[:3] == "tns"


@pytest.mark.parametrize("language", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_every_letter_is_on_the_wheel_and_every_likely_one_exists(
    make_bench: Callable[..., Bench], language: str
) -> None:
    bench = make_bench(language=language)
    texts = bench.device.texts
    assert sorted(texts("letters")) == sorted(texts("letters.common"))
    entry = Entry(bench.device, "Search", lambda text: None)
    for text in ("", "a", "b ", "b", "ß"):
        entry.text = text
        wheel = entry.wheel
        assert set(texts("letters")) <= set(wheel)
        assert wheel[-3:] == ["back", "delete", "send"]
        assert (" " in wheel) is (text not in ("", "b "))


def test_what_acts_is_just_the_other_way(bench: Bench) -> None:
    sent: list[str] = []
    entry = Entry(bench.device, "Search", sent.append)
    entry.key("ok")
    entry.key("up")
    entry.key("ok")
    assert sent == ["e"]
    entry.key("up")
    entry.key("ok")
    assert entry.text == ""
    entry.hold()
    assert sent == ["e"], "nothing is sent that is nothing"


@given(st.lists(st.sampled_from(["up", "down", "ok", "left", "right"]), max_size=200))
def test_no_press_loses_the_place_or_grows_the_line_for_ever(keys: list[str]) -> None:
    class Device:
        texts = staticmethod(
            lambda name, **_: {"letters": "abc", "letters.common": "abc"}.get(name, ".")
        )
        label = staticmethod(str)
        fingers: Any = type(
            "F", (), {"ok": "ok", "single": False, "held": staticmethod(lambda name: 0.0)}
        )

    entry = Entry(Device(), "x", lambda text: None)  # type: ignore[arg-type]
    entry.back = lambda: None  # type: ignore[method-assign]
    for key in keys:
        entry.key(key)
        view = entry.view()
        assert view.rows[view.chosen].label and len(entry.text) <= LONGEST


def test_said_words_join_what_is_typed(bench: Bench) -> None:
    entry = Entry(bench.device, "Search", lambda text: None)
    entry.said("  water ")
    entry.said("the plants" + " on" * 200)
    assert entry.text.startswith("water the plants on") and len(entry.text) == LONGEST
    assert entry.view().rows[entry.view().chosen].label == "Send"


# fingers


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fingers(clock: FakeClock) -> Fingers:
    return Fingers(clock, ("talk", "up", "down", "ok", "back"))


def test_a_press_has_one_meaning(fingers: Fingers, clock: FakeClock) -> None:
    assert fingers.press("ok") and not fingers.press("ok")
    clock.advance(HOLD)
    assert fingers.held("ok") == pytest.approx(HOLD)
    assert fingers.spend("ok") and not fingers.spend("ok")
    assert fingers.held("ok") == 0
    assert fingers.release("ok") is None
    assert fingers.release("ok") is None


def test_what_is_void_stays_void_until_it_is_let_go(fingers: Fingers, clock: FakeClock) -> None:
    fingers.press("ok")
    fingers.press("up")
    fingers.void()
    clock.advance(5)
    assert fingers.held("ok") == 0 and fingers.repeats() == []
    assert fingers.release("ok") is None
    fingers.press("ok")
    clock.advance(1)
    assert fingers.held("ok") == pytest.approx(1)


def test_an_arrow_repeats_and_no_other_key(fingers: Fingers, clock: FakeClock) -> None:
    fingers.press("up")
    fingers.press("ok")
    clock.advance(REPEAT[0] + 0.001)
    assert fingers.repeats() == ["up"] and fingers.repeats() == []
    clock.advance(10)
    assert fingers.repeats() == ["up"], "a late look is no volley"


@pytest.mark.parametrize(("pause", "double"), [(DOUBLE - 0.05, True), (DOUBLE + 0.05, False)])
def test_two_taps_are_a_double(
    fingers: Fingers, clock: FakeClock, pause: float, double: bool
) -> None:
    fingers.press("talk")
    clock.advance(0.1)
    fingers.release("talk")
    clock.advance(pause)
    fingers.press("talk")
    assert fingers.doubled("talk") is double
    assert not fingers.doubled("talk"), "asked once"


def test_three_taps_are_a_double_and_one_more(fingers: Fingers, clock: FakeClock) -> None:
    doubles = []
    for _ in range(4):
        fingers.press("talk")
        doubles.append(fingers.doubled("talk"))
        clock.advance(0.05)
        fingers.release("talk")
        clock.advance(0.05)
    assert doubles == [False, True, False, True]


@pytest.mark.parametrize(
    ("names", "ok", "lone", "single"),
    [
        (("talk", "up", "down", "ok", "back"), "ok", False, False),
        (("talk", "up", "down"), "talk", False, False),
        (("talk", "ok"), "ok", True, False),
        (("talk",), "talk", True, True),
    ],
)
def test_talk_stands_in_for_what_a_board_lacks(
    clock: FakeClock, names: tuple[str, ...], ok: str, lone: bool, single: bool
) -> None:
    fingers = Fingers(clock, names)
    assert (fingers.ok, fingers.lone, fingers.single) == (ok, lone, single)
