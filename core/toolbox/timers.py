"""Timers and reminders that survive a restart: rows in sessions.sqlite and one sleeping task. What a due
one does is the caller's `ring`. One that came due while nothing ran rings once, at the next start.

A countdown runs by the monotonic clock: when the wall clock is set, its row moves along. A reminder is a
time on the wall and stays where it is."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import secrets
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.sqlite import Database
from exo.core.toolbox.schedule import following

LOOK = 60.0  # seconds: look again each minute, for the wall clock may have been set
SET = 1000  # ms that the clocks may differ before the wall clock counts as set
_COLUMNS = "id, session, due, label, first, repeat"
Ring = Callable[["Timer"], None]  # saves what it tells, in the transaction that ends the timer


@dataclass(frozen=True)
class Timer:
    """`due` is milliseconds UTC. A reminder has `first`, its first wall time (ISO), and may `repeat`."""

    id: str
    session: str
    due: int
    label: str
    first: str = ""
    repeat: str = ""

    @property
    def kind(self) -> str:
        return "reminder" if self.first else "timer"


class Timers:
    """Owns the table `timers`."""

    def __init__(self, database: Database, clock: Clock, ring: Ring) -> None:
        self._database, self._clock, self._ring = database, clock, ring
        self._changed = asyncio.Event()
        self._skew = self._offset()  # what the rows of countdowns count from

    def add(self, session: str, seconds: float, label: str) -> Timer:
        """Save a timer and let it run. Raises StorageError."""
        self._follow_clock()
        due = self._clock.now_ms() + round(seconds * 1000)
        return self._save(Timer(secrets.token_hex(4), session, due, label))

    def remind(self, session: str, at: datetime.datetime, text: str, repeat: str = "") -> Timer:
        """Save a reminder for `at`, which may be wall time. Raises StorageError, ExoError."""
        if self._unsure:
            do = "connect to a network, or set a timer instead"
            raise ExoError("set a reminder", "the clock of this board is not set yet", do)
        due = self._clock.stamp(at)
        first = self._clock.local(due).replace(tzinfo=None).isoformat()
        return self._save(Timer(secrets.token_hex(4), session, due, text, first, repeat))

    def rung(self, timer: Timer) -> None:
        """Remove it, or move it on to its next time; inside the caller's transaction."""
        link, now = self._database.link, self._clock.local().replace(tzinfo=None)
        if not timer.repeat:
            link.execute("DELETE FROM timers WHERE id = ?", (timer.id,))
            return
        at = following(datetime.datetime.fromisoformat(timer.first), timer.repeat, now)
        # at least a second on: where summer time skips an hour the wall time is no later instant
        due = max(self._clock.stamp(at), self._clock.now_ms() + 1000)
        link.execute("UPDATE timers SET due = ? WHERE id = ?", (due, timer.id))

    def pending(self) -> list[Timer]:
        """Soonest first."""
        rows: list[Any] = self._database.rows(f"SELECT {_COLUMNS} FROM timers ORDER BY due, id")
        return [Timer(*row) for row in rows]

    def newest(self, session: str) -> list[Timer]:
        """The one that was set last in this session, if it is still to ring."""
        query = f"SELECT {_COLUMNS} FROM timers WHERE session = ? ORDER BY rowid DESC LIMIT 1"
        rows: list[Any] = self._database.rows(query, session)
        return [Timer(*row) for row in rows]

    def cancel(self, ids: list[str]) -> bool:
        """Let these not ring; False where all of them have rung. Raises StorageError."""
        with self._database.transaction(durable=True) as link:
            query = "DELETE FROM timers WHERE id = ?"
            gone = sum(link.execute(query, (id_,)).rowcount for id_ in ids)
        self._changed.set()
        return gone > 0

    def _save(self, timer: Timer) -> Timer:
        with self._database.transaction(durable=True) as link:
            query = f"INSERT INTO timers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
            link.execute(query, astuple(timer))
        self._changed.set()
        return timer

    async def run(self) -> None:
        """Ring, for ever."""
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

    def _offset(self) -> int:
        """Milliseconds from the monotonic to the wall clock; constant but when the latter is set."""
        return self._clock.now_ms() - round(self._clock.monotonic() * 1000)

    def _follow_clock(self) -> None:
        """Move the countdowns along with a wall clock that was set."""
        moved = self._offset() - self._skew
        if abs(moved) > SET:
            with self._database.transaction(durable=True) as link:
                link.execute("UPDATE timers SET due = due + ? WHERE first = ''", (moved,))
            self._skew += moved

    @property
    def _unsure(self) -> bool:
        return bool(getattr(self._clock, "unsure", False))

    def _ring_due(self) -> float:
        """Ring what is due; returns how long to wait, in seconds. Raises what the disk raises."""
        self._follow_clock()
        now, unsure = self._clock.now_ms(), self._unsure
        for timer in self.pending():
            if timer.due > now:
                return min(LOOK, (timer.due - now) / 1000)
            if not (timer.first and unsure):
                self._ring(timer)
        return LOOK
