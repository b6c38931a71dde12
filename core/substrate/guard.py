"""The start guard: after three starts in a row that did not hold, exod starts with what it had when it last did. Owns
state/starts.json alone; what "had" means is the engine's.

Invariant: a start counts as failed until `held` says otherwise, so that a crash needs to tell nobody."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from exo.core.base.clock import Clock
from exo.core.base.errors import StorageError
from exo.core.base.files import write_atomic

MOST = 3  # failed starts in a row
LARGEST = 100_000  # bytes of the file
HOLDS = 20.0  # seconds of life after which a start holds


@dataclass(frozen=True)
class Good:
    """A start that held: when (ms UTC), and the plugins that were loaded then."""

    ts: int
    plugins: list[str]


class Guard:
    """One for a start."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock, self._at = path, clock, 0
        self._before: tuple[int, Good | None] = 0, None

    def begin(self) -> Good | None:
        """Count this start; what to go back to when those before failed."""
        failed, good = 0, None
        with contextlib.suppress(Exception):  # whatever stands there is no reason not to start
            ours = self._path.is_file() and self._path.stat().st_size < LARGEST
            data = json.loads(self._path.read_text() if ours else "")
            failed, kept = int(data["failed"]), Good(**data["good"])
            self._clock.local(kept.ts)  # raises for what is no time
            good = Good(kept.ts, [str(name) for name in kept.plugins])
        with contextlib.suppress(StorageError):  # nor is a full disk
            self._write(failed + 1, good)
        self._before = failed, good
        self._at = good.ts if good and failed >= MOST else 0
        return good if self._at else None

    def held(self, plugins: list[str] | None) -> None:
        """This start is a good one; what it went back to is still what was good. Without `plugins` it ended in
        order before they were loaded, and says nothing. Raises StorageError."""
        now = Good(self._at or self._clock.now_ms(), plugins or [])
        self._write(*(self._before if plugins is None else (0, now)))

    def _write(self, failed: int, good: Good | None) -> None:
        write_atomic(self._path, json.dumps({"failed": failed, "good": good and asdict(good)}))
