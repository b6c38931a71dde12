"""A clock for trials and tests: time as they want it."""

from __future__ import annotations

import datetime


class FakeClock:
    """A clock that stands still until `advance` is called; zone UTC."""

    unsure = False  # True: a board whose clock has not been set yet

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms, self._monotonic = now_ms, 1000.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def local(self, ms: int | None = None) -> datetime.datetime:
        at = self._now_ms if ms is None else ms
        return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC)

    def stamp(self, wall: datetime.datetime) -> int:
        zoned = wall if wall.tzinfo is not None else wall.replace(tzinfo=datetime.UTC)
        return round(zoned.timestamp() * 1000)

    def advance(self, seconds: float) -> None:
        """Let `seconds` (0 or more) pass."""
        self._now_ms += round(seconds * 1000)
        self._monotonic += seconds

    def set(self, seconds: float) -> None:
        """Set the wall clock forward (or back) by `seconds`; no time passes."""
        self._now_ms += round(seconds * 1000)
