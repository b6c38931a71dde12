"""Keeps the views as the ledger says: hand edits into it, new entries out of it, all of it again. Owns the
order of these steps, the lock that lets one process do them at a time, and forgetting in files and history.

Invariants: a hand edit is in the ledger before anything is written over it; what is cut off anywhere is done
again by the next call; a view that was rebuilt equals one that was kept."""

from __future__ import annotations

import base64
import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import AlreadyRunning, HomeError
from exo.core.base.files import ProcessLock
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.core.store.git import History
from exo.core.store.nodes import LIMIT
from exo.core.store.replay import FORMAT, MANIFEST, File, State, bytes_of, replay, step
from exo.core.store.views import FRAME, Finding, Raced, Views, manifest_format, sha
from exo.core.store.words import one_line

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
    """Keeps the views of one store. Usable by one thread; several processes may have the same store open."""

    def __init__(self, home: Home, ledger: Ledger, clock: Clock) -> None:
        """Make no store yet: what is written makes it where there is none."""
        self.folder, self._ledger, self._clock = home.store, ledger, clock
        self.views, self._history = Views(home.store), History(home.store)
        self._known = False  # its format was looked at
        self._held = False  # the lock

    def sync(self) -> set[str]:
        """Record hand edits, apply entries of any process. Returns ids of nodes and items, and paths of
        pages, that changed; cheap when nothing did. Raises StorageError, HomeError."""
        with self.locked():
            if not self._begun():
                return set()
            self._begin()
            before = self.revision()
            self._synced()
            return set(self._changed(before))

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make every view again from the ledger, after hand edits were recorded."""
        with self.locked():
            self._begin()
            done = self._rebuild(progress)
            self.commit("rebuild")
            return done

    def commit(self, what: str = "change") -> bool:
        """Commit the curated files to the store's own history; a message names ids and numbers alone."""
        with self.locked():
            now = self.revision()
            if self.views.meta("committed") == now and self._history.git.exists():
                return False
            message, at = f"{what}: revision {now}", self._clock.now_ms()
            done = self._history.commit(message, at, self.views.named)
            with self.views.db.transaction():
                self.views.remember(committed=now)
            return done

    def erase(self, entry_ids: Collection[str], words: Collection[str]) -> None:
        """After Ledger.forget: make the views without those entries, pages without lines that hold one of
        `words` (texts; a single word takes no line with it), and begin the history anew. Raises
        StorageError; it can be called again."""
        with self.locked():
            if not self._begun():
                return
            gone, views = set(entry_ids), self.views
            if views.meta("position") is None:
                self._rebuild()
            hand = self._record()
            while more := [
                e.id for e in self._ledger.referring(gone) if e.kind == "edit" and e.body
            ]:
                self._ledger.forget(more, "what was forgotten stood in it")
                gone.update(more)
            entries = [entry for id_ in gone if (entry := self._ledger.get(id_))]
            curated = any(entry.kind in FILE_KINDS for entry in entries)
            if curated:
                self._history.drop()
            derived = {e.id for e in entries if e.kind == "edit" and gone & set(e.refs)}
            marks = {f"-{id_[:12]}" for id_ in gone}
            marks |= {_folded(text) for text in words if len(text.split()) > 1}
            query = "SELECT path, entries FROM files WHERE data NOT NULL AND stem = ''"
            kept = {
                path: _without(views.read(path) or b"", marks)
                for path, behind in self._rows(query)
                if path in hand or derived & set(behind.split())
            }
            for draft in [self._draft(path, data) for path, data in kept.items()]:
                refs = tuple(ref for ref in draft.refs if ref not in gone)
                self._ledger.append(replace(draft, refs=refs))
            with views.db.transaction():
                if curated:
                    views.clear()
                    replay(self._ledger.entries(kinds=FILE_KINDS), views)
                for id_ in gone:
                    for item in list(views.select("WHERE instr(entries, ?)", id_)):
                        views.drop("WHERE id = ?", item.id)
                        replay(filter(None, map(self._ledger.get, item.entries.split())), views)
            self._apply(views.meta("position"))
            views.db.scrub()
            self._projected()
            self.commit("forget")

    def close(self) -> None:
        """Commit what changed and let go of the files."""
        if self._known:
            self.commit()
        self._known = False
        self.views.db.close()

    def revision(self) -> int:
        """A number that rises with every change of a node or item."""
        return int(self._rows("SELECT ifnull(max(rev), 0) FROM changes")[0][0])

    @property
    def first(self) -> int:
        """The revision that the tables began with."""
        return self.views.meta("first") or 0

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
        end, path = self._clock.monotonic() + PATIENCE, self.folder / "private" / "store.lock"
        while True:
            try:
                return ProcessLock(path, "writer of the store")
            except AlreadyRunning:
                if self._clock.monotonic() > end:
                    raise
            time.sleep(0.01)

    # ---- inside ----------------------------------------------------------------------------------------

    def _begun(self) -> bool:
        """Whether there is a store, of whatever format."""
        here = self._known or any((self.folder / name).exists() for name in FRAME)
        return here or next(self._ledger.entries(kinds=("state",)), None) is not None

    def _begin(self, answers: dict[str, str] | None = None) -> None:
        """Look at the format once; make the store where there is none, bring an older one to this format.
        Raises HomeError for a newer one."""
        if self._known:
            return
        old = self._page(MANIFEST).encode()
        if (found := manifest_format(old) if old else 0) > FORMAT:
            why = f"it has format {found}, this program knows {FORMAT}"
            raise HomeError(f"open the store {self.folder}", why, "use the newer Exo that wrote it")
        states = self._ledger.entries(kinds=("state",))
        begun = any(entry.body and entry.body.get("action") == "init" for entry in states)
        if not begun:  # the files of format 1, or of a ledger that is lost, are edits
            if self.views.meta("position") is not None:
                self.views.open(anew=True)
            older = sorted(self.views.by_hand().items())
            edits = [self._draft(path, data) for path, data in older]
            self._ledger.append(self._first(answers or {}), *edits)
            (self.folder / MANIFEST).unlink(missing_ok=True)
        self._known = True
        with contextlib.suppress(OSError):  # the folder of another user, or no history yet
            self.folder.chmod(0o700)
            self._history.git.chmod(0o700)
        if found == 1 or not begun:
            self._rebuild()

    def _first(self, answers: dict[str, str]) -> Draft:
        device = next(self._ledger.entries(kinds=("device",)), None)
        root = str((device.body or {}).get("root", "")) if device else ""
        store = {"kind": "principal", "id": sha(root.encode())[:12], "format": FORMAT, "root": root}
        store["created"] = self._clock.local().isoformat(timespec="seconds")
        return Draft("state", {"action": "init", "store": store, "answers": answers})

    def _synced(self, look: bool = True) -> None:
        """Record hand edits (unless `look` is off: they were just now), apply what is new. Raises
        StorageError, Raced when a file never rests."""
        for again in range(8):
            with contextlib.suppress(Raced):
                return self._once(look or again > 0)
        return self._once(look=True)

    def _once(self, look: bool) -> None:
        views, done = self.views, self.views.meta("position")
        if done is None or done > self._ledger.position() or not views.stands():
            self._rebuild()
            return
        if look:
            self._record()
        if done != self._ledger.position():
            first = next(self._ledger.entries(done))
            if [first.lc, first.author, first.seq] < views.meta("last"):
                self._rebuild()  # another device wrote before what is applied already
                return
            forgets = self._ledger.entries(done, kinds=("forget",))
            if gone := {ref for entry in forgets for ref in entry.refs}:
                self.erase(gone, ())  # who forgot them has not come to it
                return
            self._apply(done)
        views.project()

    def _record(self, ours: Collection[str] = ()) -> Collection[str]:
        """Append hand edits to the ledger: the exact bytes, and what entries that were not yet applied make
        of them, so that both survive. Returns their paths. Where the frame is gone, nothing was deleted.
        Hashes and ends of names in `ours` are no hand's but those of an older view."""
        views, stands = self.views, self.views.stands()
        found = views.by_hand()
        hand = {
            path: data
            for path, data in found.items()
            if (data is not None or stands)
            and {sha(data), PurePosixPath(path).stem[-12:]}.isdisjoint(ours)
        }
        if hand:
            self._append_edits(hand)
        if found:
            with views.db.transaction():
                for path, data in found.items():
                    views.mark(path, "" if data is None and not stands else sha(data))
        return hand.keys()

    def _append_edits(self, hand: dict[str, bytes | None]) -> None:
        since = self.views.meta("projected")
        since = self.views.meta("position") if since is None else since
        merged, fresh = State(), list(self._ledger.entries(since or 0))
        bodies = [entry.body for entry in fresh if entry.kind == "edit" and entry.body]
        told = {(str(body.get("path")), sha(bytes_of(body))) for body in bodies}
        hand = {path: data for path, data in hand.items() if (path, sha(data)) not in told}
        for path, data in hand.items():
            merged.lay(path, None if data is None else File(data))
        for entry in fresh:
            if entry.kind != "edit":
                step(merged, entry)
        edits, both = [], []
        for path, data in sorted(hand.items()):
            edits.append(self._draft(path, data))
            if data is not None and (file := merged.file(path)) and file.data != data:
                both.append(self._draft(path, file.data))
        self._ledger.append(*edits, *both)

    def _draft(self, path: str, data: bytes | None) -> Draft:
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
        total = self._ledger.position() - after
        last = dict[str, Any]()
        for count, entry in enumerate(self._ledger.entries(after), 1):
            last = {"position": after + count, "last": [entry.lc, entry.author, entry.seq]}
            step(self.views, entry)
            if entry.body is None:
                self.views.made.add(entry.id[:12])
            if progress is not None and (count % BATCH == 0 or count == total):
                progress(count, total)
        self.views.remember(**last)

    def _rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make every view from the ledger: hand edits are recorded first, the tables are made again in one
        commit, then the files are replaced one by one. Without a table of what was written (it is damaged, or
        of a ledger that had more), bytes that replay has never made are a hand's; others, and the node of a
        forgotten entry, are an older view."""
        views = self.views
        sound = views.db.rows("PRAGMA quick_check(1)") == [("ok",)]
        if not sound or (views.meta("position") or 0) > self._ledger.position():
            views.open(anew=True)
        known = views.meta("position") is not None
        if known:
            self._record()
        with views.db.transaction():
            views.clear()
            views.drop("WHERE true")
            self._replay(0, progress)
        if not known:
            self._record(views.made)
        self._apply(views.meta("position"))
        return self._projected()

    def _projected(self) -> Rebuilt:
        views = self.views
        for name in ("nodes", "policies", "skills"):
            with contextlib.suppress(FileExistsError):
                (views.folder / name).mkdir(mode=0o700)
        written = views.project()
        views.by_hand()  # names what cannot be kept
        count = "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM items)"
        files, items = views.db.rows(count)[0]
        return Rebuilt(self._ledger.position(), files, items, written, views.faults())

    def _changed(self, since: int) -> list[str]:
        query = "SELECT id FROM changes WHERE rev > ? ORDER BY rev"
        return [row[0] for row in self._rows(query, since)]

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self.views.db.rows(query, *values)

    def _page(self, name: str) -> str:
        return (self.views.read(name) or b"").decode(errors="replace").replace("\0", "")


def _folded(text: str) -> str:
    return one_line(text, LIMIT).casefold()


def _without(data: bytes, marks: Collection[str]) -> bytes:
    """`data` without the lines that hold one of the marks, which are folded."""
    rows = data.splitlines(keepends=True)
    folded = ((row, _folded(row.decode(errors="replace"))) for row in rows)
    return b"".join(row for row, line in folded if not any(mark in line for mark in marks))
