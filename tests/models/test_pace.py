"""Threads are taken away when they starve and given back when a core is idle."""

from __future__ import annotations

import pytest
from exo.models import pace as module
from exo.models.pace import Pace, idle_seconds


class Machine:
    """The idle time and the clock that the pace sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.idle = self.now = 0.0
        monkeypatch.setattr(module, "idle_seconds", lambda: self.idle)
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)

    def run(self, pace: Pace, steps: int, share: float, spare: float = 0.0) -> int:
        """`steps` calls of 0.1 s in which every thread gets `share` of the time."""
        for _ in range(steps):
            self.now += 0.1
            self.idle += 0.1 * spare
            pace.note(0.1, 0.1 * share, 0.1 * share * pace.threads)
        return pace.threads


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_starving_threads_are_taken_away_down_to_one(machine: Machine) -> None:
    pace = Pace(4, fixed=False)
    assert machine.run(pace, 10, 1.0) == 4
    assert machine.run(pace, 1, 0.5) == 4  # one slow call is no sign
    assert machine.run(pace, 2, 0.5) == 3
    assert machine.run(pace, 40, 0.5) == 1


def test_an_idle_core_gives_one_back_and_a_busy_one_does_not(machine: Machine) -> None:
    pace = Pace(2, fixed=False)
    assert machine.run(pace, 2, 0.5) == 1
    assert machine.run(pace, 40, 1.0, spare=0.1) == 1
    assert machine.run(pace, 12, 1.0, spare=1.0) == 2


def test_a_count_that_was_set_stays(machine: Machine) -> None:
    assert machine.run(Pace(3, fixed=True), 50, 0.2) == 3


def test_the_machine_says_how_idle_it_was() -> None:
    assert idle_seconds() >= 0
