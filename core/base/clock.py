"""Time as a thing that is passed in. Nothing here reads a zone or sleeps behind your back."""

from __future__ import annotations

import datetime
import time
from typing import Protocol


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

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while the machine sleeps

    def local(self, ms: int | None = None) -> datetime.datetime:
        at = time.time() if ms is None else ms / 1000
        return datetime.datetime.fromtimestamp(at).astimezone()

    def stamp(self, wall: datetime.datetime) -> int:
        return round(wall.timestamp() * 1000)
