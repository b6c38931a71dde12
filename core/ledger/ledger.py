"""Append-only signed ledger. Owns the order of entries, their signatures and store/private/ledger.sqlite;
knows nothing of what entries mean to others. Several processes may append; one object serves one thread.

Invariant: chain = sha256(chain before + id), signed by its author; what `append` returned durable survives
power loss, and only such entries leave the device."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, HomeError
from exo.core.base.home import Home
from exo.core.base.sqlite import Database
from exo.core.ledger.canonical import START, body_hash, canonical, chained, entry_id, parse
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.keys import DeviceKey, Key, RootKey, device_body
from exo.core.ledger.verify import (
    JOINED,
    LASTING,
    RAW,
    Checker,
    Fault,
    Progress,
    Report,
    Row,
    authors,
    verify,
)

FORMAT = 1
KINDS = frozenset(
    [
        "utterance",
        "rule",
        "action",
        "approval",
        "verdict",
        "outcome",
        "question",
        "answer",
        "proposal",
        "promotion",
        "revert",
        "belief",
        "edit",
        "item",
        "import",
        "retrieval",
        "decision",
        "exam",
        "climb",
        "artifact",
        "snapshot",
        "plan",
        "inbox",
        "state",
        "lease",
        "device",
        "forget",
        "checkpoint",
        "note",
    ]
)
_SCOPE = re.compile(r"principal|(agent|group):[^\s:/]+")
_ID = re.compile(r"[0-9a-f]{64}")
_COLUMNS = "e.id, author, seq, lc, ts, scope, kind, refs, body_hash, chain, sig, salt, body"
_ENVELOPE = {"v": int, "author": str, "seq": int, "lc": int, "ts": int, "scope": str, "kind": str}
_ENVELOPE |= {"refs": list, "body_hash": str}
_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_BODY = "INSERT INTO bodies VALUES (?, ?, ?)"
_DROP = (
    "DELETE FROM bodies WHERE id IN (SELECT value FROM events, json_each (refs) WHERE kind = 'forget')"
    " AND id NOT IN (SELECT id FROM events WHERE kind IN ('device', 'forget', 'checkpoint'))"
)
_PAGE = 500  # entries read at once


class Ledger:
    """The ledger of a home. `notice` says what a person should know of how it was opened ("": nothing)."""

    notice = ""

    def __init__(
        self, home: Home, clock: Clock, name: str = "", *, enrol: bool = True, passphrase: str = ""
    ) -> None:
        """Open it. With `enrol` this device gets a key where it has none that fits, under `name`; without,
        nothing is made and nothing can be appended. `passphrase` opens a sealed root key. Raises HomeError,
        StorageError."""
        private = home.store / "private"
        schema = Path(__file__).with_name("schema.sql").read_text()
        self._db = Database(private / "ledger.sqlite", schema, FORMAT)
        self._clock, self._key_file = clock, home.state / "device.key"
        self._root = RootKey(private / "keys")
        self._device = DeviceKey.load(self._key_file)
        if enrol and not self._reached():
            with self._db.transaction(durable=True) as link:
                self._device = DeviceKey.load(self._key_file)
                if not self._reached():  # else another process was first
                    self._enrol(link, name or "device", passphrase)

    @property
    def author(self) -> str:
        """The public key that this device writes under, "" when it has none."""
        return self._device.key.public if self._device else ""

    # ---- writing -------------------------------------------------------------------------------------

    def append(self, *drafts: Draft, durable: bool = True) -> list[Entry]:
        """Sign, chain and commit the drafts in one transaction; durable ones survive power loss once this
        returns. Raises NotCanonical, ExoError for a draft that does not fit, StorageError."""
        for draft in drafts:
            if draft.kind.encode() in LASTING or draft.kind not in KINDS:
                raise ExoError("append an entry", f"{draft.kind!r} is no kind to be appended so")
        with self._db.transaction(durable) as link:
            return self._write(link, drafts)

    def checkpoint(self) -> Entry:
        """Append a signed statement of all heads, from which a quick verification starts."""
        with self._db.transaction(durable=True) as link:
            heads = {author: list(head) for author, head in self.heads().items()}
            return self._write(link, [Draft("checkpoint", {"heads": heads})])[0]

    def forget(self, ids: Sequence[str], reason: str) -> Entry:
        """Delete the bodies of entries (whole ids or prefixes) for good; returns the entry that says so.
        Raises ExoError (unknown_entry, forgotten, or a kind that stays), StorageError when the disk has no
        room to rewrite the file: then the bodies are gone and the next opening scrubs it."""
        with self._db.transaction(durable=True) as link:
            found = {entry.id: entry for entry in map(self._must_get, ids)}
            for entry in found.values():
                if entry.kind.encode() in LASTING:
                    why = f"it is a {entry.kind} entry, which the others stand on"
                    raise ExoError(f"forget {entry.id[:12]}", why, code="lasting")
            left = [entry.id for entry in found.values() if entry.body is not None]
            if not left:
                raise ExoError(
                    f"forget {', '.join(ids)}", "it is forgotten already", code="forgotten"
                )
            entry = self._write(link, [Draft("forget", {"reason": reason}, tuple(left))])[0]
            link.executemany("DELETE FROM bodies WHERE id = ?", [(id_,) for id_ in left])
            self._db.promise_scrub()
        self._db.scrub()
        return entry

    def merge(self, lines: Iterable[dict[str, Any]]) -> int:
        """Add what others wrote (export lines, an author's own in their order); returns how many were new.
        All or nothing. Raises ExoError naming the first line that does not verify."""
        with self._db.transaction(durable=True) as link:
            checker = Checker(self._trusted(link))
            checker.load(link)
            for author in authors(link):
                seq, chain, lc = self._head(author.decode())
                checker.heads[author] = seq, chain.encode(), lc
            start = self.position()
            new = sum(self._take(link, checker, _row(line)) for line in lines)
            gone = link.execute(_DROP).rowcount if new else 0
            for row in link.execute(f"SELECT {RAW} {JOINED} WHERE e.rowid > ?", (start,)):
                if what := checker.presence(row) or checker.key_fault(row[1], row[3]):
                    raise _refused(row, what)
            if gone:
                self._db.promise_scrub()
        if gone:
            self._db.scrub()
        return new

    # ---- reading -------------------------------------------------------------------------------------

    def get(self, id_: str) -> Entry | None:
        """The entry with that id, or the one that begins so (8 letters or more). Raises ExoError when
        several do."""
        if not re.fullmatch(r"[0-9a-f]{8,64}", id_):
            return None
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {JOINED} WHERE e.id BETWEEN ? AND ? LIMIT 2", id_, id_ + "g"
        )
        if len(rows) > 1:
            do = "give more letters of it"
            raise ExoError(f"find entry {id_}", "several ids begin so", do, code="ambiguous")
        return _entry(rows[0]) if rows else None

    def entries(
        self, after: int = 0, kinds: Sequence[str] = (), until_ts: int | None = None
    ) -> Iterator[Entry]:
        """Entries in the order of replay (lc, author, seq): those that came since `position()` was `after`,
        of `kinds` (all when empty), not later than `until_ts`. What is appended meanwhile may be left out."""
        return map(_entry, self._pages(after, self.position(), kinds, until_ts))

    def newest(self, count: int) -> list[Entry]:
        """The last entries of the replay, the newest last."""
        query = f"SELECT {_COLUMNS} {JOINED} ORDER BY lc DESC, author DESC, seq DESC LIMIT ?"
        return [_entry(row) for row in self._db.rows(query, count)][::-1]

    def referring(self, ids: Collection[str]) -> list[Entry]:
        """Entries whose refs name one of `ids`, in the order of replay."""
        query = (
            f"SELECT {_COLUMNS} {JOINED} WHERE refs <> '[]' AND EXISTS (SELECT 1 FROM json_each (refs)"
            " WHERE value IN (SELECT value FROM json_each (?))) ORDER BY lc, author, seq"
        )
        return [_entry(row) for row in self._db.rows(query, json.dumps(list(ids)))]

    def position(self) -> int:
        """How many entries there are: changes whenever a process has appended, merged or forgotten."""
        # rows are never deleted, so that the greatest rowid is their number, also in a rewritten file
        return int(self._db.rows("SELECT ifnull(max(rowid), 0) FROM events")[0][0])

    def heads(self) -> dict[str, tuple[int, str]]:
        """Author -> number and chain of its last entry."""
        return {
            author.decode(errors="replace"): self._head(author.decode(errors="replace"))[:2]
            for author in authors(self._db.link)
        }

    def verify(self, full: bool = True, progress: Progress | None = None) -> Report:
        """Re-derive everything, or (`full` off) what came since this device's last checkpoint; `progress`
        is called with entries done and their number."""
        left = (self._device.seq, self._device.chain) if self._device else (0, "")
        try:
            with self._db.snapshot() as link:
                return verify(link, self._trusted(link), self.author, left, full, progress)
        except HomeError as error:
            return Report(False, {}, Fault("", 0, "", str(error)))

    def export(self) -> Iterator[dict[str, Any]]:
        """Lines {event, id, chain, sig, salt, body} in the order of replay, once all of them are safe from
        power loss; the own head that leaves so is kept in device.key."""
        with self._db.transaction(durable=True) as link:
            link.execute(
                f"PRAGMA user_version = {FORMAT}"
            )  # a write: the whole WAL is synced with it
            until = self.position()
            device = DeviceKey.load(self._key_file)
            if device and self._reached():
                device.seq, device.chain, _ = self._head(device.key.public)
                device.save(self._key_file)
                self._device = device
        return map(_line, self._pages(0, until))

    def close(self) -> None:
        self._db.close()

    # ---- inside --------------------------------------------------------------------------------------

    def _write(self, link: sqlite3.Connection, drafts: Iterable[Draft]) -> list[Entry]:
        """Add entries of this device; inside a transaction."""
        if self._device is None:
            raise HomeError(
                "append an entry", "this device is not enrolled", "open the ledger for writing"
            )
        key, author = self._device.key, self._device.key.public.encode()
        seq, chain, _ = self._head(key.public)
        if seq < self._device.seq:
            do = "start again: the device then enrols anew"
            raise HomeError("append an entry", "an older store was put back meanwhile", do)
        lc = int(link.execute("SELECT ifnull(max(lc), 0) FROM events").fetchone()[0])
        now, before = self._clock.now_ms(), chain.encode()
        unsure = getattr(self._clock, "unsure", False)
        found = []
        for draft in drafts:
            if not _SCOPE.fullmatch(draft.scope) or not all(map(_ID.fullmatch, draft.refs)):
                raise ExoError("append an entry", "its scope or one of its refs is malformed")
            body = {**draft.body, "clock": "unsure"} if unsure else draft.body
            text, salt, refs = canonical(body), secrets.token_bytes(16), canonical(draft.refs)
            seq, lc, ts = seq + 1, lc + 1, draft.ts or now
            hash_ = body_hash(salt, text)
            id_ = entry_id(
                author, seq, lc, ts, draft.scope.encode(), draft.kind.encode(), refs, hash_
            )
            before = chained(before, id_)
            signature = key.sign(before)
            entry = Entry(
                id_.decode(),
                key.public,
                seq,
                lc,
                ts,
                draft.scope,
                draft.kind,
                tuple(draft.refs),
                hash_.decode(),
                before.decode(),
                signature,
                salt,
                body,
            )
            found.append(entry)
            link.execute(
                _EVENT,
                (
                    entry.id,
                    key.public,
                    seq,
                    lc,
                    ts,
                    draft.scope,
                    draft.kind,
                    refs.decode(),
                    entry.body_hash,
                    entry.chain,
                    signature,
                ),
            )
            link.execute(_BODY, (entry.id, salt, text.decode()))
        return found

    def _take(self, link: sqlite3.Connection, checker: Checker, row: Row) -> bool:
        """Add one entry of somebody else; False when it is here already."""
        if row[2] <= checker.heads.get(row[1], (0, b"", 0))[0]:
            query = "SELECT id FROM events WHERE author = ? AND seq = ?"
            if link.execute(query, (row[1].decode(), row[2])).fetchone()[0] != row[0].decode():
                raise _refused(row, "another entry has this number here")
            return False
        if what := checker.check(row):
            raise _refused(row, what)
        checker.learn(row)
        texts = [each.decode() if isinstance(each, bytes) else each for each in row[:11]]
        link.execute(_EVENT, texts)
        if row[12] is not None and (texts[0] not in checker.forgotten or row[6] in LASTING):
            link.execute(_BODY, (texts[0], row[11], row[12].decode()))
        return True

    def _head(self, author: str) -> tuple[int, str, int]:
        """Number, chain and lc of an author's last entry."""
        query = "SELECT seq, chain, lc FROM events WHERE author = ? ORDER BY seq DESC LIMIT 1"
        rows = self._db.rows(query, author)
        return rows[0] if rows else (0, START.decode(), 0)

    def _reached(self) -> bool:
        """Whether this device has written here, and nothing of what left it is missing."""
        device = self._device
        if device is None or not self._head(device.key.public)[0]:
            return False
        query = "SELECT 1 FROM events WHERE author = ? AND seq = ? AND chain = ?"
        known = device.key.public, device.seq, device.chain
        return not device.seq or bool(self._db.rows(query, *known))

    def _enrol(self, link: sqlite3.Connection, name: str, passphrase: str) -> None:
        empty = not self.position()
        root = (
            self._root.make() if empty and not self._root.public() else self._root.load(passphrase)
        )
        if not empty and root.public != self._first_root(link):
            why = f"{self._root.path} is not the key that this ledger's devices were enrolled with"
            raise HomeError("enrol this device", why, "put the right one back from a backup")
        if self._device is None or self._device.seq:
            if self._device:
                self.notice = (
                    f"an older store was put back: entry {self._device.seq} of this device is not in it."
                    " The device goes on under a new key"
                )
            self._device = DeviceKey(Key.new())
            self._device.save(self._key_file)
        lc = int(link.execute("SELECT ifnull(max(lc), 0) FROM events").fetchone()[0]) + 1
        self._write(link, [Draft("device", device_body(root, "enrol", self.author, lc, name))])

    def _trusted(self, link: sqlite3.Connection) -> str:
        """The root key that counts: the one of this store, else that of the first enrolment."""
        return self._root.public() or self._first_root(link)

    def _first_root(self, link: sqlite3.Connection) -> str:
        query = f"SELECT body {JOINED} WHERE kind = 'device' ORDER BY lc, author, seq LIMIT 1"
        row = link.execute(query).fetchone()
        try:
            return str(json.loads(row[0])["root"]) if row else ""
        except (KeyError, TypeError, ValueError):
            return ""

    def _must_get(self, id_: str) -> Entry:
        entry = self.get(id_)
        if entry is None:
            raise ExoError(f"forget {id_}", "there is no such entry", code="unknown_entry")
        return entry

    def _pages(
        self, after: int, until: int, kinds: Sequence[str] = (), until_ts: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Rows in the order of replay, read a page at a time."""
        few = until - after <= _PAGE  # then to sort them is cheaper than to walk the whole order
        query = (
            f"SELECT {_COLUMNS} FROM events e {'NOT INDEXED' if few else 'INDEXED BY events_order'}"
            " LEFT JOIN bodies b ON b.id = e.id"
            " WHERE (lc, author, seq) > (?, ?, ?) AND e.rowid > ? AND e.rowid <= ?"
        )
        more: list[object] = []
        if kinds:
            query += f" AND kind IN ({', '.join('?' * len(kinds))})"
            more += kinds
        if until_ts is not None:
            query += " AND ts <= ?"
            more.append(until_ts)
        query += f" ORDER BY lc, author, seq LIMIT {_PAGE}"
        last: tuple[object, ...] = (0, "", 0)
        while rows := self._db.rows(query, *last, after, until, *more):
            yield from rows
            if len(rows) < _PAGE:
                return
            last = rows[-1][3], rows[-1][1], rows[-1][2]


def _refused(row: Row, what: str) -> ExoError:
    return ExoError(
        f"merge entry {row[2]} of {row[1].decode()} ({row[0].decode()})", what, code="fault"
    )


def _entry(row: tuple[Any, ...]) -> Entry:
    id_, author, seq, lc, ts, scope, kind, refs, hash_, chain, sig, salt, body = row
    try:
        named = () if refs == "[]" else tuple(json.loads(refs))
        value = None if body is None else json.loads(body)
    except ValueError as error:
        do = "run `exo ledger verify`, restore a backup"
        raise HomeError(f"read entry {id_}", "it was changed", do) from error
    return Entry(id_, author, seq, lc, ts, scope, kind, named, hash_, chain, sig, salt, value)


def _line(row: tuple[Any, ...]) -> dict[str, Any]:
    id_, author, seq, lc, ts, scope, kind, refs, hash_, chain, sig, salt, body = row
    event = {"v": 1, "author": author, "seq": seq, "lc": lc, "ts": ts, "scope": scope, "kind": kind}
    event |= {"refs": json.loads(refs), "body_hash": hash_}
    hidden = None if salt is None else salt.hex()
    return {"event": event, "id": id_, "chain": chain, "sig": sig, "salt": hidden, "body": body}


def _row(line: dict[str, Any]) -> Row:
    """An export line as the columns it would have. Raises NotCanonical, ExoError."""
    try:
        event, salt, body = line["event"], line["salt"], line["body"]
        if {key: type(value) for key, value in event.items()} != _ENVELOPE or event["v"] != 1:
            raise ValueError("its envelope has other fields")
        raw = None
        if body is not None:
            raw = body.encode()
            if canonical(parse(body)) != raw:
                raise ValueError("its body is not canonical")
        if (salt is None) != (body is None):
            raise ValueError("salt and body go together")
        canonical(event)
        texts = [event[key].encode() for key in ("author", "scope", "kind", "body_hash")]
        author, scope, kind, hash_ = texts
        id_, chain, sig = (line[key].encode() for key in ("id", "chain", "sig"))
        secret = None if salt is None else bytes.fromhex(salt)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ExoError("merge a line", f"it is malformed: {error}", code="bad_line") from error
    seq, lc, ts, refs = event["seq"], event["lc"], event["ts"], canonical(event["refs"])
    return id_, author, seq, lc, ts, scope, kind, refs, hash_, chain, sig, secret, raw
