"""How many threads llama.cpp computes with just now. Its threads meet after every operation and spin while
they wait, so that one thread too many costs far more than one too few: on two cores with one more busy
process, two threads wrote 4 tokens a second where one wrote 29 (2026-11-30).

Invariant: between 1 and `most`; one less when the threads did not get the processor, one more when a
core was idle for a while."""

from __future__ import annotations

import os
import time
from pathlib import Path

STARVED = 0.8  # share of the time that the threads must have run, else there are too many
LOOK = 0.5  # seconds between looks at the machine's idle time
SPARE = 0.9  # idle cores that are worth one more thread
SHORT = 0.003  # seconds; a shorter call says nothing


class Pace:
    """Fed with the times of every call of `decode`; says how many threads the next one takes."""

    def __init__(self, most: int, fixed: bool) -> None:
        self.threads, self._most, self._fixed = most, most, fixed
        self._idle, self._looked = idle_seconds(), time.monotonic()
        self._strikes = 0

    def note(self, wall: float, own: float, process: float) -> bool:
        """A call took `wall` seconds, of which its thread ran `own` and the process `process`. Returns
        whether `threads` changed."""
        if self._fixed or wall < SHORT:
            return False
        before = self.threads
        ran = min(own / wall, process / (wall * self.threads))
        self._strikes = self._strikes + 1 if ran < STARVED else 0
        if self._strikes >= 2 and self.threads > 1:
            self.threads -= 1
            self._strikes = 0
            self._idle, self._looked = idle_seconds(), time.monotonic()
        elif self.threads < self._most:
            self._look()
        return self.threads != before

    def _look(self) -> None:
        now = time.monotonic()
        if (gone := now - self._looked) < LOOK:
            return
        idle = idle_seconds()
        if (idle - self._idle) / gone >= SPARE:
            self.threads += 1
        self._idle, self._looked = idle, now


def idle_seconds() -> float:
    """Seconds that all cores together were idle since the start of the machine; 0 where nobody says."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
