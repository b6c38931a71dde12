"""What belongs into the signed record and is not there yet: what the person said and approved, what was done
and how it ended.

A row is written in the commit of what it tells of (a FULL one for the person's own words and choices) and
deleted once it was handed on. It holds the text itself, because an undo may delete the message. Growth
is bounded by what happens between two drains; nothing is dropped to bound it further."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.sqlite import Database
from exo.core.protocol.codec import sendable

BATCH = 256  # rows handed on at once


@dataclass(frozen=True)
class Row:
    """`kind` and `body` are the entry's to be; `key` never comes twice; `ts` is ms UTC."""

    key: str
    kind: str
    session: str
    turn: str
    ts: int
    body: dict[str, Any]


class Outbox:
    """Owns the table `outbox`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self.clock = database, clock

    def put(self, kind: str, key: str, session: str, turn: str, /, **body: Any) -> None:
        """Add a row, once; inside the transaction of what it tells of."""
        facts = {"session": session, "turn": turn} | body
        text = sendable(json.dumps(facts, ensure_ascii=False))
        columns = "key, kind, session, turn, ts, body"
        query = f"INSERT OR IGNORE INTO outbox ({columns}) VALUES (?, ?, ?, ?, ?, ?)"
        row = key, kind, session, turn, self.clock.now_ms(), text
        self._database.link.execute(query, row)

    def rows(self) -> list[Row]:
        """The oldest rows, in the order they were put."""
        query = "SELECT key, kind, session, turn, ts, body FROM outbox ORDER BY n LIMIT ?"
        found = self._database.rows(query, BATCH)
        return [Row(*head, body=json.loads(text)) for *head, text in found]  # type: ignore[misc]

    def done(self, rows: Sequence[Row]) -> None:
        """Delete rows that are in the record. Until then they come again: who takes them knows them by
        what they tell of."""
        with self._database.transaction() as link:
            link.executemany("DELETE FROM outbox WHERE key = ?", [(row.key,) for row in rows])
