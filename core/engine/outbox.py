"""What the person said, kept until the signed record has it.

A row is written in the FULL commit that accepts the message and deleted once it was handed on. It holds
the text itself, because an undo may delete the message. Growth is bounded by what one person says
between two drains; nothing is dropped to bound it further, since it would be missing from the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exo.core.base.clock import Clock
from exo.core.base.sqlite import Database


@dataclass(frozen=True)
class Accepted:
    """One accepted message; `key` is its id and never comes twice for two messages; `ts` ms UTC."""

    key: str
    session: str
    turn: str
    ts: int
    text: str


class Outbox:
    """Owns the table `outbox`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def put(self, key: str, session: str, turn: str, text: str) -> None:
        """Add a row; inside the transaction that accepts the message."""
        self._database.link.execute(
            "INSERT INTO outbox (key, session, turn, ts, text) VALUES (?, ?, ?, ?, ?)",
            (key, session, turn, self._clock.now_ms(), text),
        )

    def drain(self, callback: Callable[[Accepted], None]) -> int:
        """Hand every row on, oldest first, and delete it in the transaction that `callback` runs in;
        returns how many. What `callback` writes into this database is written exactly once. One
        that writes elsewhere gets a row again after a crash in between and knows it by `key`. If it
        raises, that row and those behind it stay."""
        count = 0
        query = "SELECT n, key, session, turn, ts, text FROM outbox ORDER BY n LIMIT 1"
        while True:
            with self._database.transaction(durable=True) as link:
                row = link.execute(query).fetchone()
                if row is None:
                    return count
                callback(Accepted(*row[1:]))
                link.execute("DELETE FROM outbox WHERE n = ?", row[:1])
            count += 1
