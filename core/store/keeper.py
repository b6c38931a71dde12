"""Keeps the views as the ledger says: hand edits into it, new entries out of it, all of it again. Owns the
order of these steps and the lock that lets one process do them at a time.

Invariants: a hand edit is in the ledger before anything is written over it; what is cut off anywhere is done
again by the next call; a view that was rebuilt equals one that was kept."""

from __future__ import annotations

import base64
import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection

from exo.core.base.clock import Clock
from exo.core.base.errors import AlreadyRunning
from exo.core.base.files import ProcessLock, make_folder
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.core.store.replay import File, State, bytes_of, step
from exo.core.store.views import Finding, Raced, Views, drop_database, open_database, sha

BATCH = 500  # changes that are held in memory
PATIENCE = 60.0  # seconds to wait for another process
FILE_KINDS, ITEM_KINDS = ("belief", "rule", "edit", "state"), ("item", "note")
MARK = re.compile(rb"\b[a-z]+-[0-9a-f]{12}\b")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild did: entries there are, files and items, paths that were written, what does not parse
    (the command then exits 1)."""

    entries: int
    files: int
    items: int
    written: list[str] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)


class Keeper:
    """The views of one store. Usable by one thread."""

    def __init__(self, folder: Path, ledger: Ledger, clock: Clock) -> None:
        self.folder, self.ledger, self.clock = folder, ledger, clock
        self._database = folder / "private" / "items.sqlite"
        self._views: Views | None = None
        self._held = False

    @property
    def views(self) -> Views:
        if self._views is None:
            self._views = Views(self.folder, open_database(self._database))
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
        end, path = self.clock.monotonic() + PATIENCE, self.folder / "private" / "store.lock"
        lock = None
        while lock is None:
            try:
                lock = ProcessLock(path, "writer of the store")
            except AlreadyRunning:
                if self.clock.monotonic() > end:
                    raise
                time.sleep(0.01)
        try:
            self._held = True
            yield
        finally:
            self._held = False
            lock.release()

    def sync(self, look: bool = True) -> set[str]:
        """Record hand edits (unless `look` is off: they were just now), apply what is new. Returns ids of entries that were forgotten elsewhere and
        are still to be erased here: nothing was applied then. Raises StorageError, Raced when a file never
        rests."""
        for left in range(8, -1, -1):
            try:
                return self._once(look or left < 8)
            except Raced:
                if not left:
                    raise
        return set()

    def _once(self, look: bool) -> set[str]:
        views, done = self.views, self.views.meta("position")
        if done is None or done > self.ledger.position() or not views.stands():
            self.rebuild()
            return set()
        if look:
            self.record()
        if done != self.ledger.position():
            first = next(self.ledger.entries(done))
            if [first.lc, first.author, first.seq] < views.meta("last"):
                self.rebuild()  # another device wrote before what is applied already
                return set()
            forgets = self.ledger.entries(done, kinds=("forget",))
            if gone := {ref for entry in forgets for ref in entry.refs}:
                return gone
            with views.db.transaction() as link:
                self._apply(link, done)
        views.project()
        return set()

    def record(self) -> Collection[str]:
        """Append hand edits to the ledger: the exact bytes, and what entries that were not yet applied make
        of them, so that both survive. Returns their paths. Where the frame is gone, nothing was deleted."""
        views, stands = self.views, self.views.stands()
        found = views.by_hand()
        hand = {path: data for path, (data, _) in found.items() if data is not None or stands}
        if hand:
            since = views.meta("projected")
            self._append(hand, views.meta("position") or 0 if since is None else since)
        if found:
            with views.db.transaction() as link:
                for path, (data, info) in found.items():
                    views.mark(link, path, sha(data) if path in hand else "", info)
        return hand.keys()

    def _append(self, hand: dict[str, bytes | None], since: int) -> None:
        merged, fresh = State(), list(self.ledger.entries(since))
        edits = [e.body for e in fresh if e.kind == "edit" and e.body]
        told = {(str(body.get("path")), sha(bytes_of(body))) for body in edits}
        hand = {path: data for path, data in hand.items() if (path, sha(data)) not in told}
        for path, data in hand.items():
            merged.lay(path, None if data is None else File(data))
        for entry in fresh:
            if entry.kind != "edit":
                step(merged, entry)
        drafts = [self.draft(path, data) for path, data in sorted(hand.items())]
        for path, data in sorted(hand.items()):
            file = merged.file(path)
            if data is not None and file is not None and file.data != data:
                drafts.append(self.draft(path, file.data))
        self.ledger.append(*drafts)

    def draft(self, path: str, data: bytes | None) -> Draft:
        """An edit that refers to the entries whose text may stand in its bytes."""
        if data is None:
            return Draft("edit", {"path": path, "deleted": True})
        marks = [mark.decode() for mark in sorted(set(MARK.findall(data)))]
        query = "SELECT entries FROM files WHERE path = ? OR id = ?"
        rows = [
            row for mark in ("", *marks) for row in self.views.db.rows(query, path, mark or path)
        ]
        refs = tuple(dict.fromkeys(each for row in rows for each in row[0].split()))
        try:
            return Draft("edit", {"path": path, "text": data.decode()}, refs)
        except UnicodeDecodeError:
            return Draft("edit", {"path": path, "base64": base64.b64encode(data).decode()}, refs)

    def _apply(
        self,
        link: Connection,
        after: int,
        kinds: tuple[str, ...] = (),
        versions: dict[str, set[str]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take the entries since `after` into the tables. `versions` collects every hash a file ever had."""
        state, count, total, last = State(self.views), 0, self.ledger.position() - after, None
        for entry in self.ledger.entries(after, kinds):
            count, last = count + 1, [entry.lc, entry.author, entry.seq]
            step(state, entry)
            if versions is not None:
                for path, file in state.files.items():
                    versions.setdefault(path, set()).add(sha(file.data if file else None))
            if len(state.files) + len(state.items) >= (BATCH if versions is None else 1):
                self.views.put(link, state)
                state = State(self.views)
            if progress is not None and (count % BATCH == 0 or count == total):
                progress(count, total)
        self.views.put(link, state)
        if last is not None and not kinds:
            self.views.remember(link, position=after + count, last=last)

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make every view from the ledger: hand edits are recorded first, the tables are made again in one
        commit, then the files are replaced one by one."""
        make_folder(self.folder / "private")
        if self.views.db.rows("PRAGMA quick_check(1)") != [("ok",)]:
            self.close()
            drop_database(self._database)
        views, known = self.views, self.views.meta("position") is not None
        versions: dict[str, set[str]] = {}
        if known:
            self.record()
        with views.db.transaction() as link:
            self._clear(link)
            link.execute("INSERT OR REPLACE INTO changes (id) SELECT id FROM items")
            link.execute("DELETE FROM items")
            self._apply(link, 0, (), None if known else versions, progress)
        if not known:
            self._adopt(versions)
        with views.db.transaction() as link:
            self._apply(link, views.meta("position") or 0)
        return self._projected()

    def erase(self, entries: Collection[Entry], kept: dict[str, bytes]) -> None:
        """Make what those forgotten entries made again without them; `kept` are bytes that pages shall have
        although the edits behind them are gone."""
        views, curated = self.views, any(entry.kind in FILE_KINDS for entry in entries)
        with views.db.transaction() as link:
            if curated:
                self._clear(link)
                self._apply(link, 0, FILE_KINDS)
            state = State(views)
            for gone in (entry.id for entry in entries if entry.kind in ITEM_KINDS):
                for item in views.items("WHERE instr(entries, ?)", gone):
                    state.items[item.id] = None
                    for each in filter(None, map(self.ledger.get, item.entries.split())):
                        step(state, each)
            views.put(link, state)
        files = {path: file.data if (file := views.file(path)) else b"" for path in kept}
        if drafts := [self.draft(path, data) for path, data in kept.items() if data != files[path]]:
            self.ledger.append(*drafts)
        with views.db.transaction() as link:
            self._apply(link, views.meta("position"))
        if curated or state.items:
            views.db.scrub()
        self._projected()

    def _clear(self, link: Connection) -> None:
        """Before files are replayed: none shall be there, what lies on the disk is still known."""
        link.execute("INSERT OR REPLACE INTO changes (id) SELECT id FROM files WHERE id <> ''")
        rows = "stem = '', id = '', entries = '', norm = '', fault = '', line = 0, data = NULL"
        link.execute(f"UPDATE files SET sha = '-', trust = 'self', ts = 0, {rows}")

    def _adopt(self, versions: dict[str, set[str]]) -> None:
        """Without a table of what was written: bytes that replay has never made are a hand's, others are
        an older view; so is the node of an entry that was forgotten."""
        found = {path: data for path, (data, _) in self.views.by_hand().items()}
        forgotten = {e.id[:12] for e in self.ledger.entries(kinds=FILE_KINDS) if e.body is None}
        hand = {
            path: data
            for path, data in found.items()
            if sha(data) not in versions.get(path, ())
            and path.rpartition("-")[2].removesuffix(".md") not in forgotten
        }
        if hand:
            self._append(hand, self.views.meta("position"))
        with self.views.db.transaction() as link:
            for path, data in found.items():
                self.views.mark(link, path, sha(data), None)

    def _projected(self) -> Rebuilt:
        for name in ("nodes", "policies", "skills"):
            with contextlib.suppress(FileExistsError):
                (self.folder / name).mkdir(mode=0o700)
        views = self.views
        written = views.project()
        views.by_hand()  # names what cannot be kept
        count = "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM items)"
        files, items = views.db.rows(count)[0]
        return Rebuilt(self.ledger.position(), files, items, written, views.faults())
