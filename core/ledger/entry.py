"""An entry of the ledger: what is handed in and what is read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
