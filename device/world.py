"""What surrounds the simulated handheld: its stand-in parts, a clock that can be set, and everything that
can go wrong with them, as words of a script or of the terminal.

Owns the language of faults; knows no page. Invariant: each fault has a word that takes it back, and none
outlives the process."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from exo.board.fake import FakeButtons, FakeGauge, FakePanel
from exo.board.led import Beacon
from exo.core.base.clock import SystemClock
from exo.device.power import Power

PRESS_MS = 50
BETWEEN = 0.1  # seconds between the two presses of a double
FAULTS = {
    "unplug": "unplug mic|speaker|panel",
    "plug": "plug mic|speaker|panel",
    "panel": "panel error",
    "card": "card busy|free",
    "battery": "battery PERCENT|unknown|charging|discharging",
    "clock": "clock jump [+-]NUMBER s|m|h|d",
    "exod": "exod kill",
    "models": "models kill",
}
FINGERS = {
    "hold": "hold NAME",
    "release": "release NAME",
    "press": "press NAME [ms]",
    "double": "double NAME",
    "chord": "chord NAME NAME...",
}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
UNPLUGGED = "it is unplugged"
BUSY = "Device or resource busy"


class Breakable(Protocol):
    """A part that does not work while `broken` says why."""

    broken: str


class SimClock(SystemClock):
    """The machine's clocks; the wall's can be set."""

    def __init__(self) -> None:
        self.shift = 0.0  # seconds

    def now_ms(self) -> int:
        return super().now_ms() + round(1000 * self.shift)

    def local(self, ms: int | None = None) -> datetime.datetime:
        return super().local(self.now_ms() if ms is None else ms)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back; no time passes."""
        self.shift += seconds


class Jumping(Protocol):
    """A clock whose wall time can be set."""

    def jump(self, seconds: float) -> None: ...


@dataclass
class World:
    """The parts of one simulated handheld. `kill` ends exod or models, `pause` lets seconds pass."""

    panel: FakePanel
    buttons: FakeButtons
    microphone: Breakable
    speaker: Breakable
    gauge: FakeGauge
    beacon: Beacon
    clock: Jumping
    kill: Callable[[str], None]
    pause: Callable[[float], None]
    power: Power | None = field(default=None)

    def act(self, words: Sequence[str]) -> None:
        """Carry out a line that `check` let pass. Raises ExoError when it cannot be done here."""
        action, *rest = words
        getattr(self, f"_{action}")(*rest)

    # fingers

    def _hold(self, name: str) -> None:
        self.buttons.hold(name)

    def _release(self, name: str) -> None:
        self.buttons.release(name)

    def _press(self, name: str, ms: str = str(PRESS_MS)) -> None:
        self.buttons.hold(name)
        self.pause(float(ms) / 1000)
        self.buttons.release(name)

    def _double(self, name: str) -> None:
        self._press(name)
        self.pause(BETWEEN)
        self._press(name)

    def _chord(self, *names: str) -> None:
        for name in names:
            self.buttons.hold(name)
        self.pause(PRESS_MS / 1000)
        for name in names:
            self.buttons.release(name)

    # faults

    def _unplug(self, part: str, why: str = UNPLUGGED) -> None:
        parts = {"mic": self.microphone, "speaker": self.speaker, "panel": self.panel}
        parts[part].broken = why

    def _plug(self, part: str) -> None:
        self._unplug(part, "")

    def _panel(self, _: str) -> None:
        self.panel.failures += 1

    def _card(self, state: str) -> None:
        for part in ("mic", "speaker"):
            self._unplug(part, BUSY if state == "busy" else "")

    def _battery(self, state: str) -> None:
        if state == "unknown":
            self.gauge.percent = None
        elif state in ("charging", "discharging"):
            self.gauge.charging = state == "charging"
        else:
            self.gauge.percent = int(state)
        if self.power:
            self.power.soon()

    def _clock(self, _: str, span: str) -> None:
        self.clock.jump(seconds(span))

    def _exod(self, _: str) -> None:
        self.kill("exod")

    def _models(self, _: str) -> None:
        self.kill("models")


def check(words: Sequence[str], buttons: Sequence[str]) -> None:
    """Raise ValueError unless `words` are a line of FINGERS or FAULTS that a board with these buttons
    can carry out."""
    action, *rest = words
    if action in FAULTS:
        _fault(action, rest)
        return
    usage = f"write `{FINGERS[action]}`"
    most = {"press": 2, "chord": 99}.get(action, 1)
    if not 1 <= len(rest) <= most or action == "chord" and len(rest) < 2:
        raise ValueError(usage)
    for name in rest if action == "chord" else rest[:1]:
        if name not in buttons:
            raise ValueError(f"no such button; there are {', '.join(buttons)}")
    if action == "press" and len(rest) == 2 and not 0 < number(rest[1]) <= 60_000:
        raise ValueError("milliseconds from 1 to 60000 are wanted")


def _fault(action: str, rest: Sequence[str]) -> None:
    usage = f"write `{FAULTS[action]}`"
    if action == "clock":
        if len(rest) != 2 or rest[0] != "jump":
            raise ValueError(usage)
        seconds(rest[1])
        return
    if len(rest) != 1:
        raise ValueError(usage)
    if action == "battery" and re.fullmatch(r"\d{1,3}", rest[0]) and int(rest[0]) <= 100:
        return
    if rest[0] not in FAULTS[action].removeprefix(f"{action} ").split("|") or rest[0] == "PERCENT":
        raise ValueError(usage)


def seconds(span: str) -> float:
    """`-3h`, `90s`, `+1.5d` in seconds. Raises ValueError."""
    match = re.fullmatch(r"([+-]?\d{1,6}(?:\.\d{1,3})?)([smhd])", span)
    if not match:
        raise ValueError(f"{span!r} is no time: write as -3h, 90s, +1.5d")
    value = float(match.group(1)) * SECONDS[match.group(2)]
    if abs(value) > 3650 * SECONDS["d"]:
        raise ValueError(f"{span} is more than ten years")
    return value


def number(word: str) -> float:
    """A number from 0 to a million. Raises ValueError."""
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{word!r} is no number") from None
    if not 0 <= value < 1e6:
        raise ValueError(f"{word} is out of range")
    return value
