"""How full the battery is: PiSugar by its server's Unix socket, fuel gauges on I2C; and what of that is
to be believed.

Owns reading and judging; knows no notice and no shutdown. Invariant: what is not known is None, never
0; a value is told only while somebody answered for it within STALE seconds."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from exo.board.bus import I2cRegisters, Registers
from exo.board.profile import Battery
from exo.core.base.errors import BoardError
from exo.core.base.unix import connect

STALE = 60.0  # seconds without an answer after which nothing is known
SLACK, PACE = 5.0, 1.0  # a charge changes by no more points than these: at once, and a second
AGREE = 3  # readings in a row that agree are believed whatever was before
SERVER = Path("/tmp/pisugar-server.sock")
ANSWER = 2.0  # seconds
I2C = 1  # the header's bus, /dev/i2c-1
# open-circuit volts of a lithium-ion cell and percent, straight lines between: the usual discharge curve
# at small loads; under load it reads a few points too low
CURVE = (
    (3.00, 0.0),
    (3.45, 5.0),
    (3.68, 10.0),
    (3.74, 20.0),
    (3.77, 30.0),
    (3.79, 40.0),
    (3.82, 50.0),
    (3.87, 60.0),
    (3.92, 70.0),
    (3.98, 80.0),
    (4.06, 90.0),
    (4.20, 100.0),
)
CELL = (2.5, 4.5)  # volts; outside there is no cell behind the gauge


@dataclass(frozen=True)
class Reading:
    """`percent` 0 to 100, None: not known. `charging`: power comes in from outside, None: not known."""

    percent: int | None = None
    charging: bool | None = None


class Gauge(Protocol):
    """What tells the charge. `read` may take some seconds; calls come from one thread."""

    def read(self) -> Reading:
        """Return what it says now. Raises BoardError when it does not answer or talks nonsense."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class PiSugar:
    """pisugar-server's line protocol: `get battery` is answered by `battery: 93.0`. Only by its Unix
    socket: its TCP port is open to the network and takes shell commands. Button events come between the
    answers as lines of their own."""

    def __init__(self, path: Path = SERVER) -> None:
        self._path = path

    def read(self) -> Reading:
        asked = ("battery", "battery_power_plugged", "battery_charging")
        answers = self._ask(asked)
        # a model that cannot tell one of them answers with an error, which is no value
        power = [answers.get(name) for name in asked[1:]]
        flags = [text == "true" for text in power if text in ("true", "false")]
        return Reading(
            _percent(_number(answers.get("battery", "")), "PiSugar"),
            any(flags) if flags else None,
        )

    def close(self) -> None:
        pass

    def _ask(self, names: tuple[str, ...]) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            with contextlib.closing(connect(self._path, ANSWER)) as link:
                # one after the other: older servers take what arrives at once for one command
                reader = link.makefile("rb")
                for name in names:
                    link.sendall(f"get {name}\n".encode())
                    found[name] = self._answer(reader, name)
        except OSError as error:
            why = error.strerror or str(error) or type(error).__name__
            do = "see `systemctl status pisugar-server`"
            raise BoardError(f"ask {self._path}", why, do) from error
        return found

    def _answer(self, reader: BinaryIO, name: str) -> str:
        for _ in range(20):  # events and the rest of an error stand between
            line = reader.readline(4096)
            if not line:
                raise ConnectionError("it hung up")
            key, mark, value = line.decode(errors="replace").partition(":")
            if mark and key.strip() == name:
                return value.strip()
            if key.strip().lower().startswith(("error", "invalid")):
                return ""
        raise BoardError(f"ask {self._path}", f"no answer to {name}")


class Max1704x:
    """MAX17043 and MAX17048 (data sheets 19-4811 rev 3, 19-6173 rev 7): SOC in 1/256 percent. Only the
    latter has CRATE, the rate of charge in 0.208 percent an hour, signed."""

    SOC, CRATE = 0x04, 0x16

    def __init__(self, registers: Registers, rate: bool) -> None:
        """`rate`: it is a MAX17048 or 17049, which know whether they are charged."""
        self._registers, self._rate = registers, rate

    def read(self) -> Reading:
        percent = _percent(self._registers.word(self.SOC) / 256, "the fuel gauge")
        if not self._rate:
            return Reading(percent)
        return Reading(percent, _signed(self._registers.word(self.CRATE)) > 0)

    def close(self) -> None:
        self._registers.close()


class Ina219:
    """INA219 (SBOS448G) beside the cells, as on Waveshare's UPS boards: bus volts in steps of 4 mV above
    three flag bits, the shunt's in 10 uV, positive while the cells are charged. Percent is looked up in a
    curve, so that it is a guess of ten points."""

    SHUNT, BUS = 0x01, 0x02
    NOISE = 20  # steps of the shunt that are no current

    def __init__(self, registers: Registers, cells: int = 1) -> None:
        """`cells` in series."""
        self._registers, self._cells = registers, cells

    def read(self) -> Reading:
        volts = (self._registers.word(self.BUS) >> 3) * 0.004 / self._cells
        if not CELL[0] <= volts <= CELL[1]:
            raise BoardError(
                "read the battery", f"{volts:.2f} V is no lithium cell", "is one fitted?"
            )
        current = _signed(self._registers.word(self.SHUNT))
        return Reading(round(curve(volts)), current > self.NOISE)

    def close(self) -> None:
        self._registers.close()


def curve(volts: float) -> float:
    """Percent of a lithium-ion cell at `volts`."""
    before = CURVE[0]
    for point in CURVE:
        if volts <= point[0]:
            span = point[0] - before[0]
            share = (volts - before[0]) / span if span else 0.0
            return max(0.0, before[1] + share * (point[1] - before[1]))
        before = point
    return 100.0


def open_gauge(battery: Battery, path: Path = SERVER) -> Gauge | None:
    """The gauge of a profile; None when it has none. Raises BoardError when it cannot be opened."""
    if battery.kind == "none":
        return None
    if battery.kind == "pisugar":
        return PiSugar(path)
    registers = I2cRegisters(I2C, battery.address)
    if battery.kind == "ina219":
        return Ina219(registers, battery.cells)
    return Max1704x(registers, rate=battery.kind == "max17048")


class Trust:
    """What is believed. Feed it readings and silences with their times; pure.

    A change that is quicker than a battery is not believed until AGREE readings say the same: a gauge that
    starts anew, a wire that shakes. So is a first reading of 0, with which nothing here would run."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None  # when somebody answered, and what is believed
        self._charging: bool | None = None
        self._doubted: list[int] = []

    def take(self, now: float, reading: Reading | None) -> Reading:
        """`reading` came at `now`, or nobody answered (None); returns what is believed then."""
        if reading is not None:
            self._charging = reading.charging
            if reading.percent is not None:
                self._weigh(now, reading.percent)
        if self._last is None or now - self._last[0] > STALE:
            self._last = None
            return Reading()
        return Reading(self._last[1], self._charging)

    def _weigh(self, now: float, percent: int) -> None:
        if self._last is None:
            likely = percent > 0
        else:
            at, before = self._last
            likely = abs(percent - before) <= SLACK + PACE * max(0.0, now - at)
        near = [each for each in self._doubted if abs(each - percent) <= SLACK]
        if likely or len(near) + 1 >= AGREE:
            self._last, self._doubted = (now, percent), []
        else:
            self._doubted = [*near, percent]


def _percent(value: float, who: str) -> int:
    if math.isnan(value) or not -1 <= value <= 110:  # gauges overshoot a little at both ends
        raise BoardError("read the battery", f"{who} says {value:.0f} %")
    return round(min(100.0, max(0.0, value)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _signed(word: int) -> int:
    return word - 0x10000 if word & 0x8000 else word
