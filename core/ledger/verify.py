"""Whether what was read back is what was written. Owns the checks of one entry and the walk over all of
them; writes nothing. Invariant: nothing in the tables can be changed, added or taken away without a fault
being named, but for the last entries that neither left the device nor stand in a checkpoint."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exo.core.ledger.canonical import START, body_hash, chained, entry_id
from exo.core.ledger.keys import device_fault, signed

LASTING = (b"device", b"forget", b"checkpoint")  # kinds whose body cannot be forgotten
# text as bytes: a damaged file may hold what is no UTF-8
RAW = ", ".join(
    name if name in ("seq", "lc", "ts", "salt") else f"CAST ({name} AS BLOB)"
    for name in [
        "e.id",
        "author",
        "seq",
        "lc",
        "ts",
        "scope",
        "kind",
        "refs",
        "body_hash",
        "chain",
        "sig",
        "salt",
        "body",
    ]
)
JOINED = "FROM events e LEFT JOIN bodies b ON b.id = e.id"
Row = tuple[
    bytes,
    bytes,
    int,
    int,
    int,
    bytes,
    bytes,
    bytes,
    bytes,
    bytes,
    bytes,
    bytes | None,
    bytes | None,
]
Progress = Callable[[int, int], None]  # entries done, of how many
_STEP = 1000  # entries from one report of progress to the next


@dataclass(frozen=True)
class Fault:
    """The first thing that is wrong: whose entry, its number and id ("" and 0 when not known)."""

    author: str
    seq: int
    id: str
    what: str


@dataclass(frozen=True)
class Report:
    """`authors`: how many entries of each were found good."""

    ok: bool
    authors: dict[str, int]
    fault: Fault | None


@dataclass
class Checker:
    """Checks entries one after the other, those of an author by their numbers. `heads`: author -> seq,
    chain, lc of its last good entry; `devices`: author -> lc from which and up to which it may sign."""

    root: str
    heads: dict[bytes, tuple[int, bytes, int]] = field(default_factory=dict)
    devices: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)

    def load(self, link: sqlite3.Connection) -> None:
        """Learn the devices and what was forgotten."""
        query = f"SELECT {RAW} {JOINED} WHERE kind IN ('device', 'forget')"
        for row in link.execute(query):
            self.learn(row)

    def learn(self, row: Row) -> None:
        """Take note of an enrolment, a revocation or a forgetting; ignores what is not well-formed."""
        kind, refs, body = row[6], row[7], row[12]
        value = _value(refs if kind == b"forget" else body)
        if kind == b"forget" and isinstance(value, list):
            self.forgotten.update(each for each in value if isinstance(each, str))
        elif kind == b"device" and not self._device_fault(value):
            device = value["device"].encode()
            first, last = self.devices.get(device, (2**63, 2**63))
            if value["action"] == "enrol":
                self.devices[device] = min(first, value["lc"]), last
            else:
                self.devices[device] = first, min(last, value["lc"])

    def check(self, row: Row) -> str:
        """What is wrong with the next entry of an author, "" when nothing is."""
        id_, author, seq, lc, ts, scope, kind, refs, hash_, chain, sig, salt, body = row
        last, before, known = self.heads.get(author, (0, START, 0))
        if seq != last + 1:
            return "two entries have this number" if seq == last else f"entry {last + 1} is missing"
        if entry_id(author, seq, lc, ts, scope, kind, refs, hash_) != id_:
            return "its id is not the hash of what it says"
        if chained(before, id_) != chain:
            return "its chain does not follow from the entry before"
        if not signed(author, chain, sig):
            return "its signature is not by its author"
        if lc <= known:
            return "its clock does not go on from the entry before"
        self.heads[author] = seq, chain, lc
        if body is not None and salt is not None and body_hash(salt, body) != hash_:
            return "its body is not the one that was signed"
        if kind == b"device" and (what := self._device_fault(_value(body))):
            return what
        return ""

    def presence(self, row: Row) -> str:
        """Whether the body is there, and only where nobody had it forgotten: "" or what is wrong."""
        gone = row[0].decode(errors="replace") in self.forgotten and row[6] not in LASTING
        if gone and row[12] is not None:
            return "it was forgotten, but its body is here"
        return (
            ""
            if gone or row[12] is not None
            else "its body is missing, and nobody had it forgotten"
        )

    def key_fault(self, author: bytes, lc: int) -> str:
        """Whether `author` may sign at `lc`: "" or what is wrong."""
        first, last = self.devices.get(author, (2**63, 2**63))
        if first > lc:
            return "its author's key is not enrolled"
        return "its author's key was revoked" if lc > last else ""

    def _device_fault(self, body: Any) -> str:
        return device_fault(body) or (
            "" if body["root"] == self.root else "another root key signed it"
        )


def verify(
    link: sqlite3.Connection,
    root: str,
    own: str,
    left: tuple[int, str],
    full: bool,
    progress: Progress | None = None,
) -> Report:
    """Check every entry, or with `full` off those since the last checkpoint of author `own`; `left` is the
    head of `own` that others may know (0: none). Memory does not grow with the entries."""
    walk = _Walk(link, Checker(root), progress)
    fault = walk.run(own.encode(), full)
    if fault is None and left[0]:
        fault = walk.known(own.encode(), left[0], left[1], "it left this device")
    if fault is None and full:
        fault = walk.file()
    heads = walk.checker.heads
    return Report(
        fault is None, {_text(author): heads[author][0] for author in sorted(heads)}, fault
    )


@dataclass
class _Walk:
    link: sqlite3.Connection
    checker: Checker
    progress: Progress | None
    done: int = 0

    def run(self, own: bytes, full: bool) -> Fault | None:
        self.checker.load(self.link)
        if not full and (fault := self._start(own)):
            return fault
        total = self.link.execute("SELECT count(*) FROM events").fetchone()[0]
        query = f"SELECT {RAW} {JOINED} WHERE author = CAST (? AS TEXT) AND seq > ? ORDER BY seq"
        check, key_fault = self.checker.check, self.checker.key_fault
        for author in authors(self.link):
            start = self.checker.heads.get(author, (0, b"", 0))[0]
            for row in self.link.execute(query, (author, start)):
                what = check(row) or self.checker.presence(row) or key_fault(author, row[3])
                if what:
                    return Fault(_text(author), row[2], _text(row[0]), what)
                if row[6] == b"checkpoint" and (fault := self._checkpoint(row)):
                    return fault
                self.done += 1
                if self.progress and self.done % _STEP == 0:
                    self.progress(self.done, total)
        return None

    def known(self, author: bytes, seq: int, chain: str, why: str) -> Fault | None:
        """A fault unless the entry is there."""
        query = (
            "SELECT CAST (chain AS BLOB) FROM events WHERE author = CAST (? AS TEXT) AND seq = ?"
        )
        row = self.link.execute(query, (author, seq)).fetchone()
        if row == (chain.encode(),):
            return None
        return Fault(
            _text(author), seq, "", f"{why}, but {'is missing' if row is None else 'differs'}"
        )

    def file(self) -> Fault | None:
        """Bodies of no entry; indexes that do not fit their tables."""
        query = "SELECT id FROM bodies WHERE id NOT IN (SELECT id FROM events) LIMIT 1"
        for (id_,) in self.link.execute(query):
            return Fault("", 0, id_, "a body that belongs to no entry")
        found = self.link.execute("PRAGMA integrity_check (1)").fetchone()[0]
        return None if found == "ok" else Fault("", 0, "", f"the file is damaged: {found}")

    def _start(self, own: bytes) -> Fault | None:
        """Set the heads of the last own checkpoint; the walk verifies that one as well."""
        query = (
            f"SELECT {RAW} {JOINED} WHERE author = CAST (? AS TEXT) AND kind = 'checkpoint'"
            " ORDER BY seq DESC LIMIT 1"
        )
        row = self.link.execute(query, (own,)).fetchone()
        if row is None:
            return None
        if fault := self._checkpoint(row):
            return fault
        query = "SELECT lc, (SELECT count(*) FROM events WHERE author = ?1 AND seq <= ?2) FROM events WHERE author = ?1 AND seq = ?2"
        for author, (seq, chain) in _value(row[12])["heads"].items():
            lc, count = self.link.execute(query, (author, seq)).fetchone()
            if count != seq:
                return Fault(author, seq, "", f"{seq - count} entries before it are missing")
            self.checker.heads[author.encode()] = seq, chain.encode(), lc
        return None

    def _checkpoint(self, row: Row) -> Fault | None:
        try:
            heads = [
                (a.encode(), int(n), str(chain))
                for a, (n, chain) in _value(row[12])["heads"].items()
            ]
        except (AttributeError, KeyError, TypeError, ValueError):
            return Fault(_text(row[1]), row[2], _text(row[0]), "it is no checkpoint")
        for head in heads:
            if fault := self.known(*head, "a checkpoint names it"):
                return fault
        return None


def authors(link: sqlite3.Connection) -> list[bytes]:
    """Everybody who wrote, by their keys."""
    found: list[bytes] = []
    query = "SELECT CAST (author AS BLOB) FROM events WHERE author > CAST (? AS TEXT) ORDER BY author LIMIT 1"
    while row := link.execute(query, (found[-1] if found else b"",)).fetchone():
        found.append(row[0])
    return found


def _value(text: bytes | None) -> Any:
    try:
        return json.loads(text or b"null")
    except ValueError:
        return None


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
