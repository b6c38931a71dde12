from __future__ import annotations

from exo.device.states import DEADLINES, TABLE, Machine
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

TRIGGERS = sorted({trigger for row in TABLE.values() for trigger in row})


def test_the_table_is_closed() -> None:
    assert set(TABLE) == set(DEADLINES)
    assert {target for row in TABLE.values() for target in row.values()} <= set(TABLE)


def test_every_state_can_be_left_by_a_person() -> None:
    for state, row in TABLE.items():
        assert state == "off" or {"back", "talk", "release"} & set(row), state


def test_every_state_but_idle_and_off_has_a_deadline() -> None:
    for state, row in TABLE.items():
        assert state in ("idle", "off") or (DEADLINES[state] and "timeout" in row), state


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
    assert machine.state in ("idle", "off")
    assert machine.state == "idle" or "quit" in inputs


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
