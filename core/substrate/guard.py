"""The start guard: after three starts in a row that did not hold, exod starts with what it had when it last did. Owns
state/starts.json alone; what "had" means is the engine's.

Invariant: a start counts as failed until `held` says otherwise, so that a crash needs to tell nobody."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from exo.core.base.clock import Clock
from exo.core.base.files import write_atomic

MOST = 3  # failed starts in a row
HOLDS = 20.0  # seconds of life after which a start holds


@dataclass(frozen=True)
class Good:
    """A start that held: when (ms UTC), and the plugins that were loaded then."""

    ts: int
    plugins: list[str]


class Guard:
    """One for a start."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock

    def begin(self) -> Good | None:
        """Count this start; what to go back to when those before failed. Raises StorageError."""
        failed, good = 0, None
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            data = json.loads(self._path.read_text())
            failed = int(data["failed"])
            good = Good(**data["good"]) if data["good"] else None
        self._write(failed + 1, good)
        return good if failed >= MOST else None

    def held(self, plugins: list[str]) -> None:
        """This start is a good one. Raises StorageError."""
        self._write(0, Good(self._clock.now_ms(), plugins))

    def _write(self, failed: int, good: Good | None) -> None:
        kept = {"failed": failed, "good": asdict(good) if good else None}
        write_atomic(self._path, json.dumps(kept))
