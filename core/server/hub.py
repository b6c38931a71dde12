"""The one place where events get their number. Owns order and durability of the stream; knows nothing
of what events mean.

Invariant: an event is saved before any subscriber sees it, and every subscriber sees the same bytes.
A subscriber is only a position in the record, so a slow one holds no memory and delays nobody."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, HomeError, ProtocolError
from exo.core.base.sqlite import Database
from exo.core.protocol.codec import encode, to_json
from exo.core.protocol.schema import EVENTS, Event

_NAMES = {cls: name for name, cls in EVENTS.items()}
_RECENT = 512  # events kept in memory for those who follow live
_BATCH = 256  # events read at once by one who catches up
Row = tuple[int, str | None, bytes]


class Truncated(ExoError):
    """Events that a follower asked for are gone; the record starts at `first`."""

    code = "truncated"


class Hub:
    """Numbers, saves, then wakes those who listen."""

    def __init__(self, database: Database, clock: Clock, keep: int = 50_000) -> None:
        self._database, self._clock, self._keep = database, clock, keep
        row = database.rows("SELECT coalesce(max(seq), 0), coalesce(min(seq), 1) FROM events")[0]
        self.seq: int = row[0]
        self.first: int = row[1]
        self._recent: deque[Row] = deque(maxlen=_RECENT)
        self._changed = asyncio.Event()
        self._fault: HomeError | None = None
        self._closed = False
        self.listeners = 0  # how many follow the stream now

    def publish(self, session: str | None, *bodies: Any) -> None:
        """Save events (instances of the schema's body classes) in one commit, then show them.
        Raises StorageError: then none of them was shown."""
        with self.commit() as add:
            add(session, *bodies)

    @contextlib.contextmanager
    def commit(self, durable: bool = False) -> Iterator[Callable[..., None]]:
        """A transaction that other rows may share: the block writes its rows and calls the yielded
        `add(session, *bodies)`; events are shown once the commit stands."""
        rows: list[Row] = []

        def add(session: str | None, *bodies: Any) -> None:
            for body in bodies:
                seq = self.seq + len(rows) + 1
                name = _NAMES[type(body)]
                event = Event(f"e{seq}", seq, session, name, self._clock.now_ms(), to_json(body))
                rows.append((seq, session, encode(event)))

        try:
            with self._database.transaction(durable) as link:
                yield add
                saved = [(seq, session, data.decode()) for seq, session, data in rows]
                link.executemany("INSERT INTO events VALUES (?, ?, ?)", saved)
                first = self._prune(link, len(rows))
        except HomeError as error:  # the disk refuses, or the file is broken
            self._fault = error
            self._wake()
            raise
        self._fault, self.first = None, first
        if rows:
            self.seq = rows[-1][0]
            self._recent.extend(rows)
            self._wake()

    def check_since(self, since: int) -> None:
        """Raises ProtocolError for a position that the stream does not have."""
        if not 0 <= since <= self.seq:
            why = f"the stream ends at {self.seq}"
            raise ProtocolError(f"follow events since {since}", why, code="bad_since")

    async def follow(
        self, since: int, session: str | None = None, keep_alive: float = 15.0
    ) -> AsyncGenerator[Row | ExoError | None, None]:
        """Yield rows after `since`, then live ones; None after `keep_alive` seconds without one; a
        HomeError when events could not be saved (so that nobody waits in vain); Truncated before
        a gap that pruning made, at the start or where a slow follower was overtaken."""
        told: HomeError | None = None
        self.listeners += 1
        try:
            while not self._closed:
                changed = self._changed
                if since < self.first - 1:
                    since = self.first - 1
                    yield Truncated("follow events", f"the record starts at {self.first}")
                rows = self._read(since)
                for row in rows:
                    since = row[0]
                    if session is None or row[1] == session:
                        yield row
                fault, told = self._fault if self._fault is not told else None, self._fault
                if fault is not None:
                    yield fault
                if rows:
                    await asyncio.sleep(0)  # one who catches up lets the others go on
                    continue
                try:
                    async with asyncio.timeout(keep_alive):  # wait_for may swallow a cancel (3.11)
                        await changed.wait()
                except TimeoutError:
                    yield None
        finally:
            self.listeners -= 1

    def drop_caches(self) -> None:
        """Read everything again: rows were changed behind our back."""
        self._recent.clear()

    def close(self) -> None:
        """End every `follow`."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        # a fresh event each time: a waiter holds the one it looked at, and no wake is lost
        self._changed.set()
        self._changed = asyncio.Event()

    def _read(self, since: int) -> list[Row]:
        if since >= self.seq:
            return []
        if self._recent and self._recent[0][0] <= since + 1:
            start = since + 1 - self._recent[0][0]
            return list(self._recent)[start:]
        query = "SELECT seq, session, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        found = self._database.rows(query, since, _BATCH)
        return [(seq, who, data.encode()) for seq, who, data in found]

    def _prune(self, link: sqlite3.Connection, added: int) -> int:
        """Drop the oldest events beyond `keep`, a tenth at a time; the start moves, gaps never come."""
        last = self.seq + added
        if last - self.first + 1 <= self._keep * 1.1:
            return self.first
        first = last - self._keep + 1
        link.execute("DELETE FROM events WHERE seq < ?", (first,))
        return first
