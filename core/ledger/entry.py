"""An entry of the ledger: what is handed in, its columns, what is read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COLUMNS = "e.id, author, seq, lc, ts, scope, kind, refs, body_hash, chain, sig, salt, body"
# the same with text as bytes: a damaged file may hold what is no UTF-8
RAW = ", ".join(
    name if name in ("seq", "lc", "ts", "salt") else f"CAST ({name} AS BLOB)"
    for name in COLUMNS.split(", ")
)
JOINED = "FROM events e LEFT JOIN bodies b ON b.id = e.id"
Row = tuple[Any, ...]  # of COLUMNS or RAW


@dataclass(frozen=True)
class Draft:
    """What is to be appended; `refs` are ids of entries, `ts` milliseconds UTC (0: now)."""

    kind: str
    body: dict[str, Any]
    refs: tuple[str, ...] = ()
    scope: str = "principal"
    ts: int = 0


@dataclass(frozen=True)
class Entry:
    """An entry as it stands in the file. `salt` and `body` are None once it was forgotten."""

    id: str
    author: str
    seq: int
    lc: int
    ts: int
    scope: str
    kind: str
    refs: tuple[str, ...]
    body_hash: str
    chain: str
    sig: str
    salt: bytes | None
    body: dict[str, Any] | None
