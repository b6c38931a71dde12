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
from pathlib import PurePosixPath
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import AlreadyRunning
from exo.core.base.files import ProcessLock
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.core.store.replay import File, State, bytes_of, step
from exo.core.store.views import Finding, Raced, Views, sha

BATCH = 500  # entries between two words on how far it is; items of one commit
PATIENCE = 60.0  # seconds to wait for another process
FILE_KINDS = ("belief", "rule", "edit", "state")
_MARK = re.compile(rb"\b[a-z]+-[0-9a-f]{12}\b")
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
    """Keeps the views of one store. Usable by one thread."""

    def __init__(self, views: Views, ledger: Ledger, clock: Clock) -> None:
        self.views, self.ledger, self.clock = views, ledger, clock
        self._held = False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store against other processes. Raises AlreadyRunning after PATIENCE."""
        if self._held:
            yield
            return
        lock = self._lock()
        try:
            self._held = True
            yield
        finally:
            self._held = False
            lock.release()

    def _lock(self) -> ProcessLock:
        end, path = self.clock.monotonic() + PATIENCE, self.views.folder / "private" / "store.lock"
        while True:
            try:
                return ProcessLock(path, "writer of the store")
            except AlreadyRunning:
                if self.clock.monotonic() > end:
                    raise
            time.sleep(0.01)

    def sync(self, look: bool = True) -> set[str]:
        """Record hand edits (unless `look` is off: they were just now), apply what is new. Returns ids of
        entries that were forgotten elsewhere and are still to be erased here: nothing was applied then.
        Raises StorageError, Raced when a file never rests."""
        for again in range(8):
            with contextlib.suppress(Raced):
                return self._once(look or again > 0)
        return self._once(look=True)

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
            self._apply(done)
        views.project()
        return set()

    def record(self, ours: Collection[str] = ()) -> Collection[str]:
        """Append hand edits to the ledger: the exact bytes, and what entries that were not yet applied make
        of them, so that both survive. Returns their paths. Where the frame is gone, nothing was deleted.
        Hashes and ends of names in `ours` are no hand's but those of an older view."""
        views, stands, hand = self.views, self.views.stands(), dict[str, bytes | None]()
        found = views.by_hand()
        for path, data in found.items():
            older = {sha(data), PurePosixPath(path).stem[-12:]}
            if (data is not None or stands) and older.isdisjoint(ours):
                hand[path] = data
        if hand:
            self._append(hand)
        if found:
            with views.db.transaction():
                for path, data in found.items():
                    views.mark(path, "" if data is None and not stands else sha(data))
        return hand.keys()

    def _append(self, hand: dict[str, bytes | None]) -> None:
        since = self.views.meta("projected")
        since = self.views.meta("position") if since is None else since
        merged, fresh = State(), list(self.ledger.entries(since or 0))
        edits = [entry.body for entry in fresh if entry.kind == "edit" and entry.body]
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
        file, marks = self.views.file(path), sorted(set(_MARK.findall(data)))
        refs = list(file.entries) if file else []
        for mark in marks:
            refs += self.views.entries(mark.decode())
        body = {"path": path}
        try:
            body["text"] = data.decode()
        except UnicodeDecodeError:
            body["base64"] = base64.b64encode(data).decode()
        return Draft("edit", body, tuple(dict.fromkeys(refs)))

    def _apply(self, after: int) -> None:
        with self.views.db.transaction():
            self._replay(after)

    def _replay(self, after: int, progress: Progress | None = None) -> None:
        """Take the entries since `after` into the tables, in the transaction that was begun."""
        total, last = self.ledger.position() - after, dict[str, Any]()
        for count, entry in enumerate(self.ledger.entries(after), 1):
            last = {"position": after + count, "last": [entry.lc, entry.author, entry.seq]}
            step(self.views, entry)
            if entry.body is None:
                self.views.made.add(entry.id[:12])
            if progress is not None and (count % BATCH == 0 or count == total):
                progress(count, total)
        self.views.remember(**last)

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make every view from the ledger: hand edits are recorded first, the tables are made again in one
        commit, then the files are replaced one by one. Without a table of what was written, bytes that
        replay has never made are a hand's; others, and the node of a forgotten entry, are an older view."""
        views = self.views
        if views.db.rows("PRAGMA quick_check(1)") != [("ok",)]:
            views.db.close()
            views.open(anew=True)
        known = views.meta("position") is not None
        if known:
            self.record()
        with views.db.transaction():
            views.clear()
            views.drop("WHERE true")
            self._replay(0, progress)
        if not known:
            self.record(views.made)
        self._apply(views.meta("position"))
        return self._projected()

    def erase(self, entries: Collection[Entry], kept: dict[str, bytes]) -> None:
        """Make what those forgotten entries made again without them; `kept` are bytes that pages shall have
        although the edits behind them are gone."""
        views = self.views
        with views.db.transaction():
            if any(entry.kind in FILE_KINDS for entry in entries):
                views.clear()
                for entry in self.ledger.entries(kinds=FILE_KINDS):
                    step(views, entry)
            for gone in entries:
                for item in list(views.select("WHERE instr(entries, ?)", gone.id)):
                    views.drop("WHERE id = ?", item.id)
                    for each in filter(None, map(self.ledger.get, item.entries.split())):
                        step(views, each)
        files = {path: file.data if (file := views.file(path)) else b"" for path in kept}
        drafts = [self.draft(path, data) for path, data in kept.items() if data != files[path]]
        self.ledger.append(*drafts)
        self._apply(views.meta("position"))
        views.db.scrub()
        self._projected()

    def _projected(self) -> Rebuilt:
        views = self.views
        for name in ("nodes", "policies", "skills"):
            with contextlib.suppress(FileExistsError):
                (views.folder / name).mkdir(mode=0o700)
        written = views.project()
        views.by_hand()  # names what cannot be kept
        count = "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM items)"
        files, items = views.db.rows(count)[0]
        return Rebuilt(self.ledger.position(), files, items, written, views.faults())
