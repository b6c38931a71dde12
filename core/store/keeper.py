"""Keeps the views as the ledger says: hand edits into it, new entries out of it, all of it again. Owns the
order of these steps and the lock that lets one process do them at a time.

Invariants: a hand edit is in the ledger before anything is written over it; what is cut off anywhere is done
again by the next call; a view that was rebuilt equals one that was kept."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import AlreadyRunning, HomeError, StorageError
from exo.core.base.files import make_folder
from exo.core.base.sqlite import Database
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.core.store.replay import File, State, bytes_of, step
from exo.core.store.views import SCHEMA, TABLES, Finding, Raced, Views, sha

BATCH = 500  # entries whose changes are held in memory
PATIENCE = 60.0  # seconds to wait for another process
MARK = re.compile(rb"\b[a-z]+-[0-9a-f]{12}\b")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild did: entries read, files and items there are, paths that were written, what does not
    parse (the command then exits 1)."""

    entries: int
    files: int
    items: int
    written: list[str] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)


class Keeper:
    """The views of one store. Usable by one thread."""

    def __init__(self, folder: Path, ledger: Ledger, clock: Clock) -> None:
        self.folder, self.ledger, self.clock = folder, ledger, clock
        self._views: Views | None = None
        self._held = 0
        self._at = "main"  # where to look for what stands behind a file

    @property
    def views(self) -> Views:
        if self._views is None:
            self._views = Views(self.folder, _database(self.folder / "private" / "items.sqlite"))
        return self._views

    def close(self) -> None:
        if self._views is not None:
            self._views.db.close()
            self._views = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store against other processes. Raises AlreadyRunning after PATIENCE."""
        if self._held:
            yield
            return
        path = make_folder(self.folder / "private") / "store.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = self.clock.monotonic() + PATIENCE
            while not _taken(handle):
                if self.clock.monotonic() > end:
                    do = "wait for it, or end it"
                    raise AlreadyRunning(f"write {self.folder}", "another process is at it", do)
                time.sleep(0.01)
            self._held = 1
            yield
        finally:
            self._held = 0
            os.close(handle)

    def sync(self) -> set[str]:
        """Record hand edits, apply what is new. Returns ids of entries that were forgotten elsewhere and
        still have to be erased: nothing was applied then. Raises StorageError, Raced when a file never rests."""
        for attempt in range(8):
            try:
                return self._once()
            except Raced:
                if attempt == 7:
                    raise
        return set()

    def _once(self) -> set[str]:
        done = self.views.meta("position")
        if done is None or done > self.ledger.position() or not self.views.stands():
            self.rebuild()
            return set()
        if not self.record() and done == self.ledger.position():
            return set()
        last, state, gone = self.views.meta("last") or [], State(self.views), set[str]()
        for entry in self.ledger.entries(done):
            key = [entry.lc, entry.author, entry.seq]
            if key < last:  # another device wrote before what is applied already
                self.rebuild()
                return set()
            done, last = done + 1, key
            step(state, entry)
            gone.update(entry.refs if entry.kind == "forget" else ())
            if len(state.items) >= BATCH:
                self.views.flush(state, {})
                state = State(self.views)
        if not gone:
            self.views.flush(state, {"position": done, "last": last})
        return gone

    def record(self, told: dict[str, set[str]] | None = None) -> dict[str, bytes | None]:
        """Append hand edits to the ledger: the exact bytes, and what entries that were not yet applied make
        of them, so that both survive. Returns them; `told` are hashes of files that need no record."""
        self.views.told = told or {}
        if hand := self.views.by_hand():
            self._append(hand, list(self.ledger.entries(self.views.meta("position") or 0)))
        return hand

    def _append(self, hand: dict[str, bytes | None], fresh: list[Entry]) -> None:
        told, state = self.views.told, State()
        for entry in fresh:
            if entry.kind == "edit" and entry.body is not None:
                told.setdefault(str(entry.body.get("path")), set()).add(sha(bytes_of(entry.body)))
        new = {path: data for path, data in hand.items() if sha(data) not in told.get(path, ())}
        for path, data in new.items():
            state.lay(path, None if data is None else File(data))
        for entry in fresh:
            if entry.kind != "edit":
                step(state, entry)
        drafts = [self.draft(path, data) for path, data in sorted(new.items())]
        for path, data in sorted(new.items()):
            merged = state.file(path)
            if data is not None and merged is not None and merged.data != data:
                drafts.append(self.draft(path, merged.data))
                told.setdefault(path, set()).add(sha(merged.data))
            told.setdefault(path, set()).add(sha(data))
        if drafts:
            self.ledger.append(*drafts)

    def draft(self, path: str, data: bytes | None) -> Draft:
        """An edit that refers to the entries whose text may stand in its bytes."""
        body: dict[str, Any] = {"path": path}
        refs: list[str] = []
        try:
            body |= {"deleted": True} if data is None else {"text": data.decode()}
        except UnicodeDecodeError:
            body["base64"] = base64.b64encode(data or b"").decode()
        if data is not None:
            refs += self._behind("path", path)
            for mark in sorted(set(MARK.findall(data))):
                refs += self._behind("id", mark.decode())
        return Draft("edit", body, tuple(dict.fromkeys(refs)))

    def _behind(self, column: str, value: str) -> list[str]:
        query = f"SELECT entries FROM {self._at}.files WHERE {column} = ?"
        return [each for row in self.views.db.rows(query, value) for each in row[0].split()]

    # ---- all of it again -------------------------------------------------------------------------------

    def rebuild(
        self,
        progress: Progress | None = None,
        kept: dict[str, bytes] | None = None,
        told: dict[str, set[str]] | None = None,
    ) -> Rebuilt:
        """Make every view from the ledger: hand edits are recorded first (`told` are hashes of those that
        need no record), all is built aside and swapped in file by file. `kept` are bytes that pages shall
        have although the edits behind them are gone."""
        if self.views.db.rows("PRAGMA quick_check(1)") != [("ok",)]:
            self.close()
            _drop(self.folder / "private" / "items.sqlite")
        aside = self.folder / "private" / "aside.sqlite"
        _drop(aside)
        link = self.views.db.link
        link.execute("ATTACH ? AS aside", (str(aside),))
        try:
            for statement in TABLES.format(at="aside").split(";\n"):
                link.execute(statement)
            return self._rebuilt(progress, kept or {}, told)
        finally:
            self._at = "main"
            with contextlib.suppress(sqlite3.Error):
                link.execute("DETACH aside")
            _drop(aside)

    def _rebuilt(
        self, progress: Progress | None, kept: dict[str, bytes], told: dict[str, set[str]] | None
    ) -> Rebuilt:
        views, aside = self.views, Views(self.folder, self.views.db, "aside")
        known = views.meta("position") is not None
        if known:
            self.record(told)
        versions: dict[
            str, set[str]
        ] = {}  # without a table: what replay ever wrote is not a hand's
        dead: set[str] = set()
        count, last = self._replayed(aside, 0, None if known else versions, dead, progress)
        self._at = "aside"
        if not known:
            views.told = versions
            found = views.by_hand()
            hand = {
                path: data
                for path, data in found.items()
                if sha(data) not in versions.get(path, ())
            }
            born = {path: path.rpartition("-")[2].removesuffix(".md") for path in hand}
            for path in [path for path, id_ in born.items() if id_ in dead]:
                versions.setdefault(path, set()).add(sha(hand.pop(path)))
            self._append(hand, [])
            stale = found.keys() - hand.keys()
        else:
            stale = {row[0] for row in views.db.rows("SELECT path FROM main.files WHERE sha <> ''")}
        for path, data in kept.items():
            file = aside.file(path)
            if file is None or file.data != data:
                self.ledger.append(self.draft(path, data))
                views.told.setdefault(path, set()).add(sha(data))
        more, newest = self._replayed(aside, count)
        return self._swapped(aside, stale, {"position": count + more, "last": newest or last})

    def _replayed(
        self,
        aside: Views,
        after: int,
        versions: dict[str, set[str]] | None = None,
        dead: set[str] | None = None,
        progress: Progress | None = None,
    ) -> tuple[int, list[Any]]:
        """Take entries into the database aside; returns their number and the place of the last."""
        state, count, last, total = State(aside), 0, list[Any](), self.ledger.position()
        for entry in self.ledger.entries(after):
            count, last = count + 1, [entry.lc, entry.author, entry.seq]
            step(state, entry)
            if dead is not None and entry.body is None:
                dead.add(entry.id[:12])
            if versions is not None:
                for path, file in state.files.items():
                    versions.setdefault(path, set()).add(sha(file.data if file else None))
            if len(state.items) >= BATCH or len(state.files) >= (BATCH if versions is None else 1):
                aside.flush(state, {})
                state = State(aside)
            if progress is not None and count % BATCH == 0:
                progress(count, total)
        aside.flush(state, {})
        if progress is not None:
            progress(count, total)
        return count, last

    def _swapped(self, aside: Views, stale: set[str], meta: dict[str, Any]) -> Rebuilt:
        views, written = self.views, []
        for folder in ("nodes", "policies", "skills"):
            if not os.path.lexists(self.folder / folder):
                make_folder(self.folder / folder)
        new = dict(views.db.rows("SELECT path, sha FROM aside.files"))
        hashes = {**dict.fromkeys(stale - new.keys() - {"STORE.toml"}, "-"), **new}
        with views.db.transaction() as link:
            views.promise(link, hashes.items())
        for path in hashes:
            file = aside.file(path)
            if views.write(path, file.data if file else None):
                written.append(path)
        with views.db.transaction() as link:
            for table, what in (("items", "id"), ("files", "coalesce(nullif(id, ''), path)")):
                rows = "*" if table == "items" else "path, id, sha, trust, entries"
                for a, b in (("main", "aside"), ("aside", "main")):
                    differing = (
                        f"SELECT {rows} FROM {a}.{table} EXCEPT SELECT {rows} FROM {b}.{table}"
                    )
                    ids = f"SELECT DISTINCT {what} FROM ({differing})"
                    link.execute(f"INSERT OR REPLACE INTO changes (id) {ids}")
            link.execute("DELETE FROM main.items WHERE id NOT IN (SELECT id FROM aside.items)")
            fresh = "SELECT * FROM aside.items EXCEPT SELECT * FROM main.items"
            link.execute(f"INSERT OR REPLACE INTO main.items {fresh}")
            link.execute("DELETE FROM main.files")
            link.execute("UPDATE aside.files SET data = NULL")
            link.execute("INSERT INTO main.files SELECT * FROM aside.files")
            views.retime(link, new)
            views.remember(link, meta)
        views.by_hand()  # names what cannot be kept
        items = int(views.db.rows("SELECT count(*) FROM main.items")[0][0])
        return Rebuilt(meta["position"], len(new), items, written, views.faults())


def _database(path: Path) -> Database:
    """items.sqlite, made anew where it is no database: it is a view."""
    try:
        return Database(path, SCHEMA, 1)
    except StorageError:
        raise
    except HomeError as error:
        if error.why.startswith("it has format"):
            raise
        _drop(path)
        return Database(path, SCHEMA, 1)


def _drop(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
