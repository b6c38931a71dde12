from __future__ import annotations

import pytest
from exo.device.states import BROWSED, DEADLINES, LOCKED, RESTS, STATES, TABLE, Machine
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

TRIGGERS = sorted({trigger for row in TABLE.values() for trigger in row})


def test_the_table_is_closed() -> None:
    assert set(TABLE) == set(DEADLINES)
    assert {target for row in TABLE.values() for target in row.values()} <= set(TABLE)


@pytest.mark.parametrize("name", [name for name in STATES if name != "off"])
def test_every_state_has_a_deadline_and_a_persons_way_out(name: str) -> None:
    state = STATES[name]
    assert state.out, "nothing to press"
    assert set(state.out) <= {"talk", "ok", "back"}, "keys that not every board stands in for"
    leaves = {"talk", "release", "back", "unlock", "answered", "menu"} & set(state.moves)
    assert leaves, "no key leads anywhere"
    if name not in RESTS:
        assert state.deadline and "timeout" in state.moves
    assert state.moves["quit"] == "off"


def test_behind_a_pin_nothing_but_opening_leads_out() -> None:
    for name in LOCKED:
        for trigger, target in TABLE[name].items():
            assert target in LOCKED or trigger in ("open", "quit"), (name, trigger)
    into = {
        target for row in TABLE.values() for trigger, target in row.items() if trigger == "open"
    }
    assert into == {"idle"}


def test_what_is_browsed_gives_way_to_what_asks_and_goes_home() -> None:
    for name in BROWSED:
        row = TABLE[name]
        assert (row["card"], row["question"], row["failed"]) == ("card", "question", "notice")
        assert row["home"] == row["timeout"] == row["lock"] == "idle"


@given(
    st.lists(st.one_of(st.sampled_from(TRIGGERS), st.floats(0, 400), st.just("touch")), max_size=60)
)
def test_time_always_leads_back_to_idle(inputs: list[str | float]) -> None:
    clock = FakeClock()
    machine = Machine(clock)
    for each in inputs:
        if isinstance(each, float):
            clock.advance(each)
            machine.tick()
        elif each == "touch":
            machine.touch()
        else:
            before = machine.state
            taken = machine.fire(each)
            assert taken is (each in TABLE[before])
            assert machine.state == TABLE[before].get(each, before)
    for _ in range(4):
        clock.advance(1000)
        machine.tick()
    assert machine.state in (*RESTS, "off")
    assert machine.state in RESTS or "quit" in inputs


def test_a_refused_trigger_changes_nothing_and_is_written_down() -> None:
    machine = Machine(FakeClock(), state="idle")
    assert not machine.fire("release")
    assert machine.state == "idle"
    assert list(machine.refused) == [("idle", "release")]


def test_touch_begins_the_deadline_again() -> None:
    clock = FakeClock()
    machine = Machine(clock, state="thinking")
    clock.advance(149)
    machine.touch()
    clock.advance(149)
    assert not machine.tick()
    clock.advance(2)
    assert machine.tick()
    assert machine.state == "notice"


def test_history_begins_with_the_present_state() -> None:
    machine = Machine(FakeClock(), state="idle")
    machine.forget()
    machine.fire("send")
    machine.fire("text")
    assert machine.history == ["idle", "thinking", "reply"]
