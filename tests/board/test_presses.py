from __future__ import annotations

from collections import Counter

import pytest
from exo.board.presses import NEVER, Gesture, Presses, Settler, Timing
from hypothesis import given, settings
from hypothesis import strategies as st

TIMING = Timing()
NAMES = ("talk", "up", "down", "ok", "back")
LATER = 10_000.0  # seconds: every time-out has passed
BOARD = {
    "repeats": {"up", "down"},
    "doubles": {"ok"},
    "chords": (frozenset({"up", "down"}), frozenset({"ok", "back"})),
}


def feed(presses: Presses, *steps: tuple[float, str, bool]) -> list[tuple[str, tuple[str, ...]]]:
    """Gestures of edges, and of the time until a second after the last; without downs and ups."""
    found: list[Gesture] = []
    for step in steps:
        found += presses.edge(*step)
    end = steps[-1][0] + 1.0
    while presses.due <= end:
        found += presses.tick(presses.due)
    found += presses.tick(end)
    return [(each.kind, each.names) for each in found if each.kind not in ("down", "up")]


def test_a_short_press_is_told_when_the_key_comes_up() -> None:
    presses = Presses(NAMES)
    assert feed(presses, (1.0, "ok", True), (1.2, "ok", False)) == [("press", ("ok",))]
    assert not presses.down


def test_a_long_press_is_a_hold_and_no_press() -> None:
    assert feed(Presses(NAMES), (1.0, "ok", True), (2.5, "ok", False)) == [("hold", ("ok",))]


def test_a_hold_is_told_while_the_key_is_still_down() -> None:
    presses = Presses(NAMES)
    presses.edge(1.0, "ok", True)
    presses.tick(1.0 + TIMING.settle)
    told = presses.tick(1.0 + TIMING.hold)
    assert [each.kind for each in told] == ["hold"]
    assert presses.down == {"ok"}


def test_a_release_that_still_settles_when_the_hold_is_due_makes_a_press() -> None:
    presses = Presses(NAMES)
    presses.edge(1.0, "ok", True)
    presses.tick(1.5)
    up = 1.0 + TIMING.hold - TIMING.settle / 2
    told = presses.edge(up, "ok", False)
    told += presses.tick(1.0 + TIMING.hold)
    told += presses.tick(up + TIMING.settle)
    assert [each.kind for each in told] == ["up", "press"]


def test_a_key_has_one_chord_a_press() -> None:
    pairs = (frozenset({"ok", "back"}), frozenset({"ok", "talk"}))
    steps = [(1.0, "ok", True), (1.05, "back", True), (1.1, "talk", True)]
    ups = [(1.3, name, False) for name in ("ok", "back", "talk")]
    told = feed(Presses(NAMES, chords=pairs), *steps, *ups)
    assert told == [("chord", ("back", "ok")), ("press", ("talk",))]


def test_two_presses_are_a_double_only_where_one_is_wanted() -> None:
    steps = [(1.0, "ok", True), (1.1, "ok", False), (1.3, "ok", True), (1.4, "ok", False)]
    assert feed(Presses(NAMES, doubles={"ok"}), *steps) == [("double", ("ok",))]
    assert feed(Presses(NAMES), *steps) == [("press", ("ok",))] * 2


def test_a_second_press_that_comes_late_is_one_of_its_own() -> None:
    steps = [(1.0, "ok", True), (1.1, "ok", False), (1.5, "ok", True), (1.6, "ok", False)]
    assert feed(Presses(NAMES, doubles={"ok"}), *steps) == [("press", ("ok",))] * 2


def test_keys_that_go_down_together_are_a_chord_and_nothing_else() -> None:
    presses = Presses(NAMES, chords=(frozenset({"up", "down"}),), repeats={"up", "down"})
    steps = [(1.0, "up", True), (1.1, "down", True), (3.0, "up", False), (3.1, "down", False)]
    assert feed(presses, *steps) == [("chord", ("down", "up"))]


def test_keys_that_go_down_one_after_the_other_are_no_chord() -> None:
    presses = Presses(NAMES, chords=(frozenset({"ok", "back"}),))
    steps = [(1.0, "ok", True), (1.3, "back", True), (1.4, "ok", False), (1.5, "back", False)]
    assert feed(presses, *steps) == [("press", ("ok",)), ("press", ("back",))]


def test_a_chord_after_a_single_press_keeps_that_press() -> None:
    presses = Presses(NAMES, doubles={"ok"}, chords=(frozenset({"ok", "back"}),))
    steps = [(1.0, "ok", True), (1.1, "ok", False), (1.2, "back", True), (1.25, "ok", True)]
    ups = [(1.3, "ok", False), (1.3, "back", False)]
    assert feed(presses, *steps, *ups) == [("press", ("ok",)), ("chord", ("back", "ok"))]


def test_an_arrow_that_is_held_repeats() -> None:
    presses = Presses(NAMES, repeats={"up"})
    told = presses.edge(1.0, "up", True)
    while presses.due < 2.0:
        told += presses.tick(presses.due)
    kinds = [each.kind for each in told]
    assert kinds[:2] == ["down", "press"]
    assert kinds[2:] == ["repeat"] * 5  # at 0.4 s and then each 0.12 s, within one second


def test_a_tick_that_comes_late_brings_one_repeat_not_a_volley() -> None:
    presses = Presses(NAMES, repeats={"up"})
    presses.edge(1.0, "up", True)
    presses.tick(1.1)
    assert [each.kind for each in presses.tick(31.0)] == ["repeat"]


def test_bounce_is_one_press() -> None:
    presses = Presses(NAMES)
    bounce = [(1 + step / 1000, "ok", step % 2 == 0) for step in range(9)]
    bounce += [(1.5 + step / 1000, "ok", step % 2 == 1) for step in range(9)]
    assert feed(presses, *bounce) == [("press", ("ok",))]


def test_a_spike_shorter_than_settling_is_nothing() -> None:
    assert feed(Presses(NAMES), (1.0, "ok", True), (1.0 + TIMING.settle / 2, "ok", False)) == []


def test_a_key_held_at_boot_is_not_heard_until_it_comes_up() -> None:
    presses = Presses(NAMES, held={"ok"})
    assert feed(presses, (1.0, "ok", True)) == []
    assert feed(presses, (5.0, "ok", False)) == []
    assert feed(presses, (9.0, "ok", True), (9.1, "ok", False)) == [("press", ("ok",))]


def test_a_stuck_key_is_let_go_and_the_others_go_on() -> None:
    presses = Presses(NAMES)
    presses.edge(1.0, "talk", True)
    presses.tick(1.1)
    told = presses.tick(1.0 + TIMING.stuck)
    assert [each.kind for each in told] == ["hold", "up", "stuck"]
    assert feed(presses, (200.0, "ok", True), (200.1, "ok", False)) == [("press", ("ok",))]
    assert feed(presses, (300.0, "talk", False)) == []
    assert feed(presses, (310.0, "talk", True), (310.1, "talk", False)) == [("press", ("talk",))]


def test_a_lost_release_is_found_by_looking_at_the_pins() -> None:
    settler = Settler(NAMES)
    settler.edge(1.0, "talk", True)
    assert [change.down for change in settler.tick(1.1)] == [True]
    settler.tick(2.0, {"talk": False, "nobody": True})
    assert [change.down for change in settler.tick(2.1)] == [False]
    assert settler.due == NEVER


def test_a_change_has_the_time_of_its_edge() -> None:
    settler = Settler(NAMES)
    settler.edge(1.0, "talk", True)
    assert [change.at for change in settler.tick(7.0)] == [1.0]


def test_clean_changes_pass_at_once_without_settling() -> None:
    presses = Presses(NAMES, timing=Timing(settle=0))
    assert [each.kind for each in presses.edge(1.0, "ok", True)] == ["down"]
    assert [each.kind for each in presses.edge(1.1, "ok", False)] == ["up", "press"]


EDGES = st.lists(
    st.tuples(
        st.one_of(st.floats(-0.1, 0.5), st.floats(0, 200), st.just(NEVER), st.just(float("nan"))),
        st.sampled_from([*NAMES, "nobody", ""]),
        st.sampled_from([True, False, None]),  # None: time goes on, no edge
    ),
    max_size=60,
)


@settings(max_examples=400, deadline=None)
@given(steps=EDGES, held=st.sets(st.sampled_from(NAMES)), settle=st.sampled_from([0.0, 0.01]))
def test_any_edges_end_with_every_key_released(
    steps: list[tuple[float, str, bool | None]], held: set[str], settle: float
) -> None:
    presses = Presses(NAMES, held=held, timing=Timing(settle=settle), **BOARD)
    now, down, pushed = 0.0, Counter[str](), set[str]()
    ever: list[Gesture] = []
    for wait, name, level in steps:
        at = now + wait
        told = presses.tick(at) if level is None else presses.edge(at, name, level)
        now = at if at == at and at != NEVER else now
        if level:
            pushed.add(name)
        ever += told
        assert len(told) <= 60, "a volley"
        assert {key for each in told for key in each.names} <= pushed
    ever += presses.tick(now + LATER)
    for each in ever:
        for key in each.names:
            if each.kind == "down":
                down[key] += 1
            elif each.kind == "up":
                down[key] -= 1
            elif each.kind in ("hold", "double", "repeat", "chord"):
                assert down[key] == 1, f"{each.kind} of {key}, which is up"
            assert down[key] in (0, 1), f"{key} went {each.kind} twice"
    assert not presses.down
    assert not +down
    presses.tick(now + 2 * LATER)
    assert presses.due == NEVER, "something is still under way"


@settings(max_examples=200, deadline=None)
@given(steps=EDGES)
def test_each_press_has_one_meaning(steps: list[tuple[float, str, bool | None]]) -> None:
    presses = Presses(NAMES, **BOARD)
    now, told = 0.0, list[Gesture]()
    for wait, name, level in steps:
        now += wait if abs(wait) < NEVER else 0.0
        told += presses.tick(now) if level is None else presses.edge(now, name, level)
    told += presses.tick(now + LATER)
    downs = Counter(key for each in told if each.kind == "down" for key in each.names)
    meanings = Counter(
        key
        for each in told
        if each.kind in ("press", "hold", "chord", "double")
        for key in each.names
    )
    assert meanings <= downs


@pytest.mark.parametrize("name", NAMES)
def test_after_anything_a_plain_press_is_heard(name: str) -> None:
    presses = Presses(NAMES, held=set(NAMES), **BOARD)
    for step in range(200):
        presses.edge(step * 0.013, NAMES[step % 5], step % 3 == 0)
    for other in NAMES:
        presses.edge(500.0, other, False)
    presses.tick(600.0)
    told = feed(presses, (1000.0, name, True), (1000.2, name, False))
    assert told == [("press", (name,))]
