"""Timers that survive a restart: rows in sessions.sqlite and one sleeping task. What a due timer does
is the caller's `ring`. A timer that came due while nothing ran rings at the next start."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.sqlite import Database

LOOK = 60.0  # seconds: look again each minute, for the wall clock may have been set
Ring = Callable[["Timer"], None]  # saves what it tells, in the transaction that ends the timer


@dataclass(frozen=True)
class Timer:
    """`due` is milliseconds UTC."""

    id: str
    session: str
    due: int
    label: str


class Timers:
    """Owns the table `timers`."""

    def __init__(self, database: Database, clock: Clock, ring: Ring) -> None:
        self._database, self._clock, self._ring = database, clock, ring
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, session: str, seconds: float, label: str) -> Timer:
        """Save a timer and let it run. Raises StorageError."""
        due = self._clock.now_ms() + round(seconds * 1000)
        timer = Timer(secrets.token_hex(4), session, due, label)
        with self._database.transaction(durable=True) as link:
            row = (timer.id, session, due, label)
            link.execute("INSERT INTO timers (id, session, due, label) VALUES (?, ?, ?, ?)", row)
        self._changed.set()
        return timer

    def remove(self, timer: Timer) -> None:
        """Delete the row; inside the caller's transaction."""
        self._database.link.execute("DELETE FROM timers WHERE id = ?", (timer.id,))

    def pending(self) -> list[Timer]:
        """Soonest first."""
        rows = self._database.rows("SELECT id, session, due, label FROM timers ORDER BY due, id")
        return [Timer(str(r[0]), str(r[1] or ""), int(str(r[2])), str(r[3])) for r in rows]

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                wait = self._ring_due()
            except ExoError:
                wait = 5.0  # the disk refuses: the hub has said so; the timer stays and rings later
            # not wait_for: on Python 3.11 it swallows a cancel that comes together with the event
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def _ring_due(self) -> float:
        """Ring what is due; returns how long to wait, in seconds. Raises what the disk raises."""
        now = self._clock.now_ms()
        for timer in self.pending():
            if timer.due > now:
                return min(LOOK, (timer.due - now) / 1000)
            self._ring(timer)
        return LOOK
