"""Append-only signed ledger. Owns the order of entries, their signatures and store/private/ledger.sqlite;
knows nothing of what entries mean to others. Several processes may append; one object serves one thread.

Invariant: chain = sha256(chain before + id), signed by its author; what `append` returned durable survives
power loss, and only such entries leave the device."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, HomeError
from exo.core.base.home import Home
from exo.core.base.sqlite import Database
from exo.core.ledger.canonical import LIMIT, START, body_hash, canonical, chained, entry_id
from exo.core.ledger.entry import COLUMNS, JOINED, RAW, Draft, Entry, Row
from exo.core.ledger.keys import DeviceKey, Key, device_body, load_root, make_root
from exo.core.ledger.verify import LASTING, Checker, Progress, Report, need, row_of

FORMAT = 1
_SCOPE = re.compile(r"principal|(agent|group):[^\s:/]+")
_ID = re.compile(r"[0-9a-f]{64}")
_DROP = (
    "DELETE FROM bodies WHERE id IN (SELECT value FROM events, json_each (refs) WHERE kind = 'forget')"
    " AND id NOT IN (SELECT id FROM events WHERE kind IN ('device', 'forget', 'checkpoint'))"
)
_ORDER = "ORDER BY lc, author, seq"  # of replay

_PAGE = 500  # entries read at once


class Ledger:
    """The ledger of a home. `notice` says what a person should know of how it was opened ("": nothing)."""

    notice = ""

    def __init__(self, home: Home, clock: Clock, name: str = "", *, enrol: bool = True) -> None:
        """Open it. With `enrol` this device gets a key where it has none that fits, under `name`; without,
        nothing is made and nothing can be appended. Raises HomeError, StorageError."""
        private = home.store / "private"
        # small pages: an entry touches seven, and a card wears by what is written
        schema = "PRAGMA page_size = 1024;\n" + Path(__file__).with_name("schema.sql").read_text()
        self._db = Database(private / "ledger.sqlite", schema, FORMAT)
        self._clock = clock
        self._key_file = home.state / "device.key"
        self._root_file = private / "keys" / "root.key"
        self._device = DeviceKey.load(self._key_file)
        if enrol and not self._reached():
            with self._db.transaction(durable=True) as link:
                self._device = DeviceKey.load(self._key_file)
                if not self._reached():  # else another process was first
                    self._enrol(link, name or "device")

    @property
    def author(self) -> str:
        """The public key that this device writes under, "" when it has none."""
        return self._device.key.public if self._device else ""

    def blind(self, text: str) -> str:
        """A hash of `text` that only this device can make, "" when it has no key."""
        return self._device.key.blind(text) if self._device else ""

    # ---- writing -------------------------------------------------------------------------------------

    def append(self, *drafts: Draft | Callable[[], Draft], durable: bool = True) -> list[Entry]:
        """Sign, chain and commit the drafts in one transaction; durable ones survive power loss once this
        returns. What is called for its draft sees all that stands before it. Raises NotCanonical, ExoError
        for a draft that does not fit, StorageError, and what is raised by what is called."""
        with self._db.transaction(durable) as link:
            made = [each() if callable(each) else each for each in drafts]
            for draft in made:
                if draft.kind.encode() in LASTING:
                    raise ExoError("append an entry", f"a {draft.kind} entry is not made by append")
            return self._write(link, made)

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
            left = []
            do = "see `exo ledger tail`"
            for id_ in dict.fromkeys(ids):
                entry = self.get(id_)
                if entry is None:
                    why = "there is no such entry"
                    raise ExoError(f"forget {id_}", why, do, code="unknown_entry")
                if entry.kind.encode() in LASTING:
                    raise ExoError(f"forget {id_}", "the others stand on it", do, code="lasting")
                if entry.body is not None and entry.id not in left:
                    left.append(entry.id)
            if not left:
                raise ExoError("forget", f"{', '.join(ids)} is forgotten already", code="forgotten")
            entry = self._write(link, [Draft("forget", {"reason": reason}, tuple(left))])[0]
            link.executemany("DELETE FROM bodies WHERE id = ?", [(id_,) for id_ in left])
            self._db.promise_scrub()
        self._db.scrub()
        return entry

    def merge(self, lines: Iterable[dict[str, Any]]) -> int:
        """Add what others wrote (export lines, those of an author in their order); returns how many were
        new. All or nothing. Raises Broken with the first line that does not verify."""
        with self._db.transaction(durable=True) as link:
            checker = Checker(link, self._trusted(link))
            start = self.position()
            for author, (seq, chain, lc) in self._heads().items():
                checker.heads[author.encode()] = seq, chain.encode(), lc
            new = 0
            for line in lines:
                new += self._take(link, checker, row_of(line))
            gone = link.execute(_DROP).rowcount if new else 0
            for row in link.execute(f"SELECT {RAW} {JOINED} WHERE e.rowid > ?", (start,)):
                checker.check_place(row)
            if gone:
                self._db.promise_scrub()
        if gone:
            self._db.scrub()
        return new

    # ---- reading -------------------------------------------------------------------------------------

    def get(self, id_: str) -> Entry | None:
        """The entry with that id, or the one that begins so (8 letters or more). Raises ExoError when
        several do."""
        if not re.fullmatch("[0-9a-f]{8,64}", id_):
            return None
        found = self._select("WHERE e.id BETWEEN ? AND ? LIMIT 2", id_, id_ + "g")
        if len(found) > 1:
            do = "give more letters of it"
            raise ExoError(f"find entry {id_}", "several ids begin so", do, code="ambiguous")
        return found[0] if found else None

    def entries(self, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Entry]:
        """Entries in the order of replay (lc, author, seq): those that came since `position()` was `after`,
        of `kinds` (all when empty). What is appended meanwhile may be left out."""
        return map(_entry, self._pages(after, self.position(), kinds))

    def newest(self, count: int, kinds: Sequence[str] = ()) -> list[Entry]:
        """The last entries of the replay, of `kinds` (all when empty), the newest last."""
        these = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        last = f"{these} ORDER BY lc DESC, author DESC, seq DESC LIMIT ?"
        return self._select(last, *kinds, count)[::-1]

    def referring(self, ids: Collection[str]) -> list[Entry]:
        """Entries whose refs name one of `ids`, in the order of replay."""
        named = "SELECT 1 FROM json_each (refs) WHERE value IN (SELECT value FROM json_each (?))"
        these = f"WHERE refs <> '[]' AND EXISTS ({named}) {_ORDER}"
        return self._select(these, json.dumps(list(ids)))

    def position(self) -> int:
        """How many entries there are: changes whenever a process has appended, merged or forgotten."""
        # rows are never deleted, so that the greatest rowid is their number, also in a rewritten file
        return int(self._db.rows("SELECT ifnull(max(rowid), 0) FROM events")[0][0])

    def heads(self) -> dict[str, tuple[int, str]]:
        """Author -> number and chain of its last entry."""
        return {author: (seq, chain) for author, (seq, chain, _) in self._heads().items()}

    def verify(self, full: bool = True, progress: Progress | None = None) -> Report:
        """Re-derive everything, or with `full` off what came since this device's last checkpoint;
        `progress` is called with how many entries are done and how many there are."""
        left = 0, ""
        if self._device:
            left = self._device.seq, self._device.chain
        with self._db.transaction(write=False) as link:
            checker = Checker(link, self._trusted(link))
            return checker.walk(self.author.encode(), left, full, progress)

    def export(self) -> Iterator[dict[str, Any]]:
        """Lines {event, id, chain, sig, salt, body} in the order of replay, once all of them are safe from
        power loss; the own head that leaves so is kept in device.key."""
        with self._db.transaction(durable=True) as link:
            # a write, so that this commit syncs the log with all that stands in it
            link.execute(f"PRAGMA user_version = {FORMAT}")
            until = self.position()
            device = self._device
            if device and self._reached():
                device.seq, device.chain, _ = self._head(device.key.public)
                device.save(self._key_file)
        return map(_line, self._pages(0, until))

    def close(self) -> None:
        self._db.close()

    # ---- inside --------------------------------------------------------------------------------------

    def _write(self, link: sqlite3.Connection, drafts: Iterable[Draft]) -> list[Entry]:
        """Add entries of this device; inside a transaction."""
        if self._device is None:
            raise HomeError("append an entry", "this device is not enrolled", "open it for writing")
        key = self._device.key
        author = key.public.encode()
        now = self._clock.now_ms()
        seq, chain, _ = self._head(key.public)
        if seq < self._device.seq:
            why = "an older store was put back meanwhile"
            raise HomeError("append an entry", why, "start again: the device enrols anew")
        lc = self._last_lc()
        before = chain.encode()
        found: list[Entry] = []
        unsure = {"clock": "unsure"} if getattr(self._clock, "unsure", False) else {}
        for draft in drafts:
            names = tuple(found[ref].id if type(ref) is int else str(ref) for ref in draft.refs)
            named = _SCOPE.fullmatch(draft.scope) and all(map(_ID.fullmatch, names))
            timed = type(draft.ts) is int and abs(draft.ts) < LIMIT
            if not named or not timed:
                raise ExoError(f"append {draft.kind}", "its scope, time or refs are malformed")
            seq += 1
            lc += 1
            ts = draft.ts or now
            kind = draft.kind.encode()
            scope = draft.scope.encode()
            refs = canonical(list(names))
            body = draft.body | unsure
            text = canonical(body)
            salt = secrets.token_bytes(16)
            hashed = body_hash(salt, text)
            id_ = entry_id(author, seq, lc, ts, scope, kind, refs, hashed)
            before = chained(before, id_)
            sig = key.sign(before).encode()
            row = id_, author, seq, lc, ts, scope, kind, refs, hashed, before, sig
            stored = _insert(link, (*row, salt, text))
            stored[7] = names
            stored += salt, body
            found.append(Entry(*stored))
        return found

    def _take(self, link: sqlite3.Connection, checker: Checker, row: Row) -> bool:
        """Add one entry of somebody else; False when it is here already."""
        author, seq = row[1:3]
        if seq <= checker.heads.get(author, (0,))[0]:
            query = "SELECT CAST (id AS BLOB) FROM events WHERE author = ? AND seq = ?"
            here = link.execute(query, (author.decode(), seq)).fetchone()
            need(here == row[:1], row, "another entry has this number here")
            return False
        checker.check(row)
        checker.learn(row)
        bare = row[0] in checker.forgotten and row[6] not in LASTING
        if bare:
            row = *row[:12], None
        _insert(link, row)
        return True

    def _select(self, which: str, *values: object) -> list[Entry]:
        query = f"SELECT {COLUMNS} {JOINED} {which}"
        return [_entry(row) for row in self._db.rows(query, *values)]

    def _heads(self) -> dict[str, tuple[int, str, int]]:
        authors = self._db.rows("SELECT DISTINCT author FROM events ORDER BY author")
        return {author: self._head(author) for (author,) in authors}

    def _head(self, author: str) -> tuple[int, str, int]:
        """Number, chain and lc of an author's last entry."""
        query = "SELECT seq, chain, lc FROM events WHERE author = ? ORDER BY seq DESC LIMIT 1"
        found: list[tuple[int, str, int]] = self._db.rows(query, author)
        if found:
            return found[0]
        return 0, START.decode(), 0

    def _last_lc(self) -> int:
        return int(self._db.rows("SELECT ifnull(max(lc), 0) FROM events")[0][0])

    def _reached(self) -> bool:
        """Whether this device has written here, and nothing of what left it is missing."""
        device = self._device
        if device is None:
            return False
        author = device.key.public
        query = "SELECT 1 FROM events WHERE author = ? AND seq = ? AND chain = ?"
        if device.seq:
            return bool(self._db.rows(query, author, device.seq, device.chain))
        return self._head(author)[0] > 0

    def _enrol(self, link: sqlite3.Connection, name: str) -> None:
        old = self._device
        root = load_root(self._root_file)
        empty = not self.position()
        if root is None and empty:
            root = make_root(self._root_file)
        devices = Checker(link, root.public if root else "").devices
        if root is None or not (empty or devices):
            why = f"{self._root_file} is {'not the key of its devices' if root else 'missing'}"
            raise HomeError("enrol this device", why, "put the file back from a backup")
        if old is None or old.seq:
            self._device = DeviceKey(Key())
            self._device.save(self._key_file)
        if old and old.seq:
            why = f"entry {old.seq} of this device is not in it"
            self.notice = f"an older store was put back ({why}): the device goes on under a new key"
        body = device_body(root, "enrol", self.author, self._last_lc() + 1, name)
        self._write(link, [Draft("device", body)])

    def _trusted(self, link: sqlite3.Connection) -> str:
        """The root key that counts: the one of this store, else that of the first enrolment."""
        if root := load_root(self._root_file):
            return root.public
        query = f"SELECT body {JOINED} WHERE kind = 'device' AND json_valid (body) {_ORDER} LIMIT 1"
        query = f"SELECT CAST (json_extract (body, '$.root') AS BLOB) FROM ({query})"
        row = link.execute(query).fetchone()
        return str(row[0], errors="replace") if row and row[0] is not None else ""

    def _pages(self, after: int, until: int, kinds: Sequence[str] = ()) -> Iterator[Row]:
        """Rows in the order of replay, read a page at a time."""
        few = until - after <= _PAGE  # then to sort them is cheaper than to walk the whole order
        query = (
            f"SELECT {COLUMNS} FROM events e {'NOT INDEXED' if few else 'INDEXED BY events_order'}"
            " LEFT JOIN bodies b ON b.id = e.id"
            " WHERE (lc, author, seq) > (?, ?, ?) AND e.rowid > ? AND e.rowid <= ?"
            f" AND (? OR kind IN (SELECT value FROM json_each (?))) {_ORDER} LIMIT {_PAGE}"
        )
        more = after, until, not kinds, json.dumps(list(kinds))
        last: tuple[object, ...] = (0, "", 0)
        while rows := self._db.rows(query, *last, *more):
            yield from rows
            author, seq, lc = rows[-1][1:4]
            last = lc, author, seq


def _insert(link: sqlite3.Connection, row: Row) -> list[Any]:
    """Add an entry, its columns as RAW gives them; returns those of `events` as they are stored."""
    stored = [each.decode() if type(each) is bytes else each for each in row[:11]]
    link.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", stored)
    if row[12] is not None:
        link.execute("INSERT INTO bodies VALUES (?, ?, ?)", (stored[0], row[11], row[12].decode()))
    return stored


def _entry(row: Row) -> Entry:
    id_, author, seq, lc, ts, scope, kind, refs, hash_, chain, sig, salt, body = row
    try:
        named = () if refs == "[]" else tuple(json.loads(refs))
        value = None if body is None else json.loads(body)
    except ValueError as error:
        do = "run `exo ledger verify`, restore a backup"
        raise HomeError(f"read entry {id_}", "it was changed", do) from error
    return Entry(id_, author, seq, lc, ts, scope, kind, named, hash_, chain, sig, salt, value)


def _line(row: Row) -> dict[str, Any]:
    id_, author, seq, lc, ts, scope, kind, refs, hash_, chain, sig, salt, body = row
    event = {"v": 1, "author": author, "seq": seq, "lc": lc, "ts": ts, "scope": scope, "kind": kind}
    event |= {"refs": json.loads(refs), "body_hash": hash_}
    hidden = None if salt is None else salt.hex()
    return {"event": event, "id": id_, "chain": chain, "sig": sig, "salt": hidden, "body": body}
