"""How full the battery is: a server on a real Unix socket, registers that a test fills, and what of it is
believed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exo.board.battery import (
    AGREE,
    CURVE,
    STALE,
    Ina219,
    Max1704x,
    PiSugar,
    Reading,
    Trust,
    curve,
    open_gauge,
)
from exo.board.bus import RecordedRegisters
from exo.board.profile import Battery
from exo.core.base.errors import BoardError
from hypothesis import given
from hypothesis import strategies as st

Answer = Callable[[str], str]
Serve = Callable[[Answer], Path]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A server of PiSugar's protocol; `answer` gets a command and returns what is sent for it."""
    path = tmp_path / "pisugar.sock"
    listener = socket.socket(socket.AF_UNIX)

    def begin(answer: Answer) -> Path:
        listener.bind(str(path))
        listener.listen(5)

        def run() -> None:
            while True:
                try:
                    link = listener.accept()[0]
                except OSError:
                    return
                with link, link.makefile("rb") as lines:
                    for line in lines:
                        link.sendall(answer(line.decode().strip()).encode())

        threading.Thread(target=run, daemon=True).start()
        return path

    yield begin
    listener.close()


def answers(**values: str) -> Answer:
    return lambda command: f"{command.removeprefix('get ')}: {values[command[4:]]}\n"


def test_pisugar_tells_percent_and_whether_power_comes_in(serve: Serve) -> None:
    values = {
        "battery": "93.4", "battery_power_plugged": "true", "battery_charging": "false"
    }  # fmt: skip
    gauge = PiSugar(serve(lambda command: f"{command[4:]}: {values[command[4:]]}\n"))
    assert gauge.read() == Reading(93, True)
    values["battery_power_plugged"] = "false"
    assert gauge.read() == Reading(93, False)


@pytest.mark.parametrize("said", ["I2C not connected", "NaN", "", "250", "-20"])
def test_what_pisugar_does_not_know_is_an_error_and_no_zero(serve: Serve, said: str) -> None:
    gauge = PiSugar(
        serve(answers(battery=said, battery_power_plugged="false", battery_charging="false"))
    )
    with pytest.raises(BoardError, match="battery"):
        gauge.read()


def test_button_events_between_the_answers_are_passed_over(serve: Serve) -> None:
    gauge = PiSugar(serve(lambda command: f"single\nlong\n{command[4:]}: 50\ndouble\n"))
    assert gauge.read() == Reading(50, None)


def test_a_command_that_an_old_server_does_not_know_is_not_known(serve: Serve) -> None:
    known = {"get battery": "battery: 12.6\n"}
    gauge = PiSugar(serve(lambda command: known.get(command, "error: unrecognized\n  hint\n")))
    assert gauge.read() == Reading(13, None)


def test_a_server_that_is_away_or_hangs_up_or_says_nothing_is_a_board_error(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BoardError, match="pisugar-server"):
        PiSugar(tmp_path / "none.sock").read()
    monkeypatch.setattr("exo.board.battery.ANSWER", 0.05)
    with pytest.raises(BoardError, match="timed out"):
        PiSugar(serve(lambda command: "")).read()


def test_a_server_that_talks_without_end_is_given_up(serve: Serve) -> None:
    with pytest.raises(BoardError, match="no answer to battery"):
        PiSugar(serve(lambda command: "single\n" * 50)).read()


@pytest.mark.parametrize(
    ("soc", "rate", "charging"),
    [(0x5A80, 0x0010, True), (0x5A80, 0xFFF0, False), (0x6480, 0, False)],
)
def test_a_fuel_gauge_of_each_kind(soc: int, rate: int, charging: bool) -> None:
    chip = RecordedRegisters({0x04: soc, 0x16: rate})
    percent = min(100, round(soc / 256))
    assert Max1704x(chip, rate=True).read() == Reading(percent, charging)
    chip.asked.clear()
    assert Max1704x(chip, rate=False).read() == Reading(percent, None)
    assert chip.asked == [0x04], "a MAX17043 has no register 16h"
    chip.words[0x04] = 0xFFFF
    with pytest.raises(BoardError, match="256"):
        Max1704x(chip, rate=True).read()


def test_an_ina219_beside_two_cells() -> None:
    chip = RecordedRegisters({0x02: (1960 << 3) | 0b010, 0x01: 0xFF00})  # 7.84 V, 3.92 a cell
    assert Ina219(chip, cells=2).read() == Reading(70, False)
    chip.words[0x01] = 0x0100
    assert Ina219(chip, cells=2).read().charging is True
    chip.words[0x02] = 0
    with pytest.raises(BoardError, match="no lithium cell"):
        Ina219(chip, cells=2).read()
    chip.broken = "no answer"
    with pytest.raises(BoardError, match="no answer"):
        Ina219(chip).read()


@given(st.floats(0, 6), st.floats(0, 6))
def test_more_volts_are_never_less_percent(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= curve(low) <= curve(high) <= 100
    assert all(curve(volts) == percent for volts, percent in CURVE)


def test_the_profile_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exo.board.battery.I2cRegisters", lambda number, address: None)
    assert open_gauge(Battery()) is None
    assert isinstance(open_gauge(Battery("pisugar", 0x57)), PiSugar)
    ina, old, new = (
        open_gauge(Battery(kind, 0x36, 2)) for kind in ("ina219", "max17043", "max17048")
    )
    assert isinstance(ina, Ina219) and ina._cells == 2
    assert isinstance(old, Max1704x) and not old._rate
    assert isinstance(new, Max1704x) and new._rate


# what is believed


def test_a_minute_without_an_answer_and_nothing_is_known() -> None:
    trust = Trust()
    assert trust.take(0, None) == Reading()
    assert trust.take(10, Reading(80, False)) == Reading(80, False)
    assert trust.take(10 + STALE, None) == Reading(80, False)
    assert trust.take(10.1 + STALE, None) == Reading()
    assert trust.take(200, Reading(20, True)) == Reading(20, True)


def test_a_leap_is_not_believed_until_it_is_said_three_times() -> None:
    trust = Trust()
    trust.take(0, Reading(80))
    assert trust.take(1, Reading(40)).percent == 80
    assert trust.take(2, Reading(79)).percent == 79
    for second in range(AGREE - 1):
        assert trust.take(3 + second, Reading(40)).percent == 79
    assert trust.take(5, Reading(39)).percent == 39


def test_a_first_zero_is_doubted() -> None:
    trust = Trust()
    assert trust.take(0, Reading(0)).percent is None
    assert trust.take(10, Reading(77)).percent == 77
    other = Trust()
    found = [other.take(10 * n, Reading(0)).percent for n in range(AGREE)]
    assert found == [None] * (AGREE - 1) + [0]


@given(st.lists(st.tuples(st.floats(0, 200), st.none() | st.integers(0, 100))))
def test_what_is_told_was_said_within_a_minute(steps: list[tuple[float, int | None]]) -> None:
    trust, now, said = Trust(), 0.0, dict[int, float]()
    for pause, percent in steps:
        now += pause
        if percent is not None:
            said[percent] = now
        told = trust.take(now, None if percent is None else Reading(percent)).percent
        assert told is None or now - said[told] <= STALE
