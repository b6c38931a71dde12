"""Whether what was read back is what was written. Owns the checks of one entry and the walk over all of
them; writes nothing. Invariant: nothing in the tables can be changed, added or taken away without a fault
being named, but for last entries that neither left the device nor stand in a checkpoint."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exo.core.base.errors import HomeError
from exo.core.ledger.canonical import START, body_hash, canonical, chained, entry_id, parse
from exo.core.ledger.entry import COLUMNS, JOINED, RAW, Row
from exo.core.ledger.keys import device_signed, signed

LASTING = (b"device", b"forget", b"checkpoint")  # kinds whose body cannot be forgotten
MINE = "author = CAST (? AS TEXT)"
Progress = Callable[[int, int], None]  # entries done, of how many
_STEP = 1000  # entries from one report of progress to the next
_NEVER = 2**63, 2**63
_FIELDS = {"v": int, "author": str, "seq": int, "lc": int, "ts": int, "scope": str, "kind": str}
_FIELDS |= {"refs": list, "body_hash": str}


@dataclass(frozen=True)
class Fault:
    """The first thing that is wrong: whose entry, its number and id ("" and 0 when not known)."""

    author: str
    seq: int
    id: str
    what: str


@dataclass(frozen=True)
class Report:
    """`authors`: how many entries of each are good."""

    ok: bool
    authors: dict[str, int]
    fault: Fault | None


class Broken(HomeError):
    """An entry does not verify."""

    code = "fault"

    def __init__(self, author: bytes, seq: int, id_: bytes, what: str) -> None:
        whose = author.decode(errors="replace")
        entry = id_.decode(errors="replace")
        self.fault = Fault(whose, seq, entry, what)
        super().__init__(f"verify entry {seq} of {whose} {entry}".rstrip(), what)


def need(good: object, row: Row, what: str) -> None:
    """Raise Broken unless `good`."""
    if not good:
        raise Broken(row[1], row[2], row[0], what)


@dataclass
class Checker:
    """Checks the entries of a file, those of one author in their order; memory does not grow with them.
    `heads`: author -> seq, chain and lc of the last good one; `devices`: key -> lc from which and up to
    which it may sign. The devices and what was forgotten are read from the file first."""

    link: sqlite3.Connection
    root: str
    heads: dict[bytes, tuple[int, bytes, int]] = field(default_factory=dict)
    devices: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    forgotten: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        query = f"SELECT {RAW} {JOINED} WHERE kind IN ('device', 'forget')"
        for row in self.link.execute(query):
            self.learn(row)

    def learn(self, row: Row) -> None:
        """Take in an enrolment, a revocation or a forgetting; what is not well-formed counts for nothing."""
        kind = row[6]
        refs = row[7]
        body = row[12]
        if kind == b"forget":
            ids = _value(refs)
            if type(ids) is list:
                self.forgotten.update(str(each).encode(errors="replace") for each in ids)
        elif kind == b"device":
            value = _value(body)
            if not device_signed(value, self.root):
                return
            device = value["device"].encode()
            first, last = self.devices.get(device, _NEVER)
            if value["action"] == "enrol":
                first = min(first, value["lc"])
            else:
                last = min(last, value["lc"])
            self.devices[device] = first, last

    def check(self, row: Row) -> None:
        """Raise Broken unless the next entry of its author follows and is signed by it."""
        id_, author, seq, lc, ts, scope, kind, refs, hashed, chain, sig, salt, body = row
        last, before, known = self.heads.get(author, (0, START, 0))
        need(seq != last, row, "two entries have this number")
        need(seq == last + 1, row, f"the entry before it, {last + 1}, is missing")
        derived = entry_id(author, seq, lc, ts, scope, kind, refs, hashed)
        need(derived == id_, row, "its id is not the hash of what it says")
        need(chained(before, id_) == chain, row, "its chain does not follow from the entry before")
        need(signed(author, chain, sig), row, "its signature is not by its author")
        need(lc > known, row, "its clock does not go on from the entry before")
        if body is not None:
            good = body_hash(salt or b"", body) == hashed
            need(good, row, "its body is not the one that was signed")
        if kind == b"device":
            need(device_signed(_value(body), self.root), row, "the root key did not sign it")
        self.heads[author] = seq, chain, lc

    def check_place(self, row: Row) -> None:
        """Raise Broken unless its author may sign, and its body is there or was forgotten."""
        lc = row[3]
        body = row[12]
        first, last = self.devices.get(row[1], _NEVER)
        need(first <= lc, row, "its author's key is not enrolled")
        need(lc <= last, row, "its author's key was revoked")
        if row[0] in self.forgotten and row[6] not in LASTING:
            need(body is None, row, "it was forgotten, but its body is here")
        else:
            need(body is not None, row, "its body is missing, and was not forgotten")

    def walk(
        self, own: bytes, left: tuple[int, str], full: bool, progress: Progress | None = None
    ) -> Report:
        """Check everything, or with `full` off what came since the last checkpoint of `own`. `left`: seq and
        chain of its last entry that others may know (seq 0: none)."""
        fault = None
        try:
            self._walk(own, full, progress or (lambda done, total: None), left)
        except Broken as error:
            fault = error.fault
        except (sqlite3.DatabaseError, OverflowError, ValueError) as error:
            fault = Fault("", 0, "", f"the file is damaged: {error}")
        good = {}
        for author, (seq, _, _) in self.heads.items():
            good[author.decode(errors="replace")] = seq
        return Report(fault is None, good, fault)

    def _walk(self, own: bytes, full: bool, progress: Progress, left: tuple[int, str]) -> None:
        query = f"SELECT {RAW} {JOINED} WHERE {MINE} AND"
        if not full:
            last = f"{query} kind = 'checkpoint' ORDER BY seq DESC LIMIT 1"
            for row in self.link.execute(last, (own,)).fetchall():
                self._known(row, start=True)  # the walk verifies that entry itself
        done = 0
        (total,) = self.link.execute("SELECT count(*) FROM events").fetchone()
        authors = "SELECT DISTINCT CAST (author AS BLOB) FROM events ORDER BY author"
        later: Broken | None = None
        for (author,) in self.link.execute(authors).fetchall():
            start = self.heads.get(author, (0,))[0]
            for row in self.link.execute(f"{query} seq > ? ORDER BY seq", (author, start)):
                self.check(row)
                try:
                    self.check_place(row)
                except Broken as error:  # its cause may be a forget or device entry that is broken
                    later = later or error
                if row[6] == b"checkpoint":
                    self._known(row)
                done += 1
                if done % _STEP == 0:
                    progress(done, total)
        if left[0]:
            self._at(own, *left, "it has left this device")
        if later:
            raise later
        if full:
            self._file()

    def _known(self, row: Row, start: bool = False) -> None:
        """Raise Broken unless the entries that a checkpoint names are there; with `start` go on from them."""
        try:
            told = _value(row[12])["heads"].items()
            heads = [(author.encode(), int(n), str(chain)) for author, (n, chain) in told]
        except (AttributeError, KeyError, TypeError, ValueError):
            heads = []
        need(heads, row, "it is no checkpoint")
        for author, seq, chain in heads:
            self._at(author, seq, chain, "a checkpoint names it")
            if start:
                query = f"SELECT max(lc), count(*) FROM events WHERE {MINE} AND seq <= ?"
                lc, count = self.link.execute(query, (author, seq)).fetchone()
                need(count == seq, (b"", author, seq), "not all entries before it are there")
                self.heads[author] = seq, chain.encode(), lc

    def _at(self, author: bytes, seq: int, chain: str, why: str) -> None:
        query = f"SELECT CAST (chain AS BLOB) FROM events WHERE {MINE} AND seq = ?"
        row = self.link.execute(query, (author, seq)).fetchone()
        need(row, (b"", author, seq), f"{why}, but it is missing")
        need(row == (chain.encode(),), (b"", author, seq), f"{why}, but it differs")

    def _file(self) -> None:
        """Raise Broken for a body of no entry, or an index that does not fit its table."""
        query = "SELECT CAST (id AS BLOB) FROM bodies WHERE id NOT IN (SELECT id FROM events)"
        for (id_,) in self.link.execute(query):
            raise Broken(b"", 0, id_, "a body that belongs to no entry")
        (found,) = self.link.execute("PRAGMA integrity_check (1)").fetchone()
        need(found == "ok", (b"", b"", 0), f"the file is damaged: {found}")


def row_of(line: dict[str, Any]) -> Row:
    """An export line as the columns of RAW. Raises Broken when it is malformed."""
    try:
        event = line["event"]
        salt = line["salt"]
        body = line["body"]
        fields = {key: type(value) for key, value in event.items()}
        if fields != _FIELDS or event["v"] != 1:
            raise ValueError("its fields are not those of an envelope")
        if body is None:
            salt = None
        else:
            parse(body)
            salt = bytes.fromhex(salt)
        canonical(event)
        said = event | {"salt": salt, "body": body}
        for key in ("id", "chain", "sig"):
            said[key] = str(line[key])
        said["refs"] = canonical(event["refs"]).decode()
        row = (said[name] for name in COLUMNS.replace("e.", "").split(", "))
        return tuple(each.encode() if type(each) is str else each for each in row)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Broken(b"", 0, b"", f"a line that is no entry: {error}") from error


def _value(text: bytes | None) -> Any:
    try:
        return json.loads(text or b"null")
    except ValueError:
        return None
