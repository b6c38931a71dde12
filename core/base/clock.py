"""Time as a thing that is passed in. Nothing here reads a zone or sleeps behind your back."""

from __future__ import annotations

import contextlib
import datetime
import time
from pathlib import Path
from typing import Protocol

PROOF = "EXO_CLOCK_PROOF"  # environment: a file that is there once the board's clock has been set
RTC = Path("/sys/class/rtc/rtc0/since_epoch")
AGREE = 60.0  # seconds that a clock chip may differ; the clock is set when it jumps as far


class Clock(Protocol):
    """What the product needs of time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC; may jump when the clock is set."""

    def monotonic(self) -> float:
        """Seconds that never run backwards, from an arbitrary start."""

    def local(self, ms: int | None = None) -> datetime.datetime:
        """The wall clock with its zone, now or at `ms`."""

    def stamp(self, wall: datetime.datetime) -> int:
        """Milliseconds UTC of a time; one without a zone is wall time here."""


class SystemClock:
    """The machine's own clocks."""

    def __init__(self, proof: str | None = None, chip: Path = RTC) -> None:
        """A board without a clock chip starts with the time of its last end: with `proof`, a file, the
        clock is unsure until that is there, `chip` agrees, or somebody sets the clock."""
        self._proof, self._chip, self._start = proof, chip, self._offset()

    @property
    def unsure(self) -> bool:
        """Whether the wall clock may be far off."""
        if self._proof is not None:
            chip = 0
            with contextlib.suppress(OSError, ValueError):
                chip = int(self._chip.read_text())
            agrees, moved = abs(chip - time.time()), abs(self._offset() - self._start)
            if agrees < AGREE or moved > AGREE or Path(self._proof).exists():
                self._proof = None  # once set it stays set
        return self._proof is not None

    def _offset(self) -> float:
        return time.time() - self.monotonic()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while the machine sleeps

    def local(self, ms: int | None = None) -> datetime.datetime:
        at = time.time() if ms is None else ms / 1000
        return datetime.datetime.fromtimestamp(at).astimezone()

    def stamp(self, wall: datetime.datetime) -> int:
        return round(wall.timestamp() * 1000)
