"""The views on the disk: items.sqlite with the items and what replay makes of each curated file, and the
files themselves. Owns noticing that a hand was at a file, and never writing over it; knows no ledger.

Invariants: a row says what a file shall hold (`sha`, `data`) and what was last known to lie there (`disk`), so
that bytes which are neither came from a hand; this is looked at once more just before a file is replaced."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from exo.core.base.errors import HomeError, StorageError
from exo.core.base.files import make_folder, sync_folder, write_atomic
from exo.core.base.sqlite import Database
from exo.core.store.nodes import LIMIT, ROOTS, BadNode, checked, safe_path, text_of, toml_table
from exo.core.store.replay import MANIFEST, File, Item, State
from exo.core.store.words import norm

FRAME = (MANIFEST, "PACK.md", "INDEX.md", "nodes")  # gone: the store was deleted, not a belief
GONE = "-"  # the hash of no file
_ITEM = tuple(Item.__dataclass_fields__)
_TWICE = "id <> '' AND id IN (SELECT id FROM files GROUP BY id HAVING count(*) > 1)"
_RACY = 50_000_000  # nanoseconds within which a second write may keep a file's time


class Raced(HomeError):
    """A file is not what was written: a hand was at it just now."""


@dataclass(frozen=True, order=True)
class Finding:
    """Something a person should look at; `line` 0: the whole file."""

    path: str
    line: int
    what: str


def sha(data: bytes | None) -> str:
    """The hash of a file's bytes."""
    return GONE if data is None else hashlib.sha256(data).hexdigest()


def manifest_format(data: bytes) -> int:
    """The format that a STORE.toml names; 1 where it names none."""
    with suppress(BadNode):
        found = toml_table(MANIFEST, text_of(MANIFEST, data)).get("format", 1)
        return found if isinstance(found, int) else 1
    return 1


class Views(State):
    """The views of the store in `folder`: a State that lies in tables, and the files made of it. Who changes
    it has begun a transaction of `db`."""

    db: Database

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.named: dict[str, str] = {}  # files that cannot be kept, and why
        self.made: set[str] = set()  # hashes of all that was laid
        self.open()

    def open(self, anew: bool = False) -> None:
        """Open items.sqlite, `anew` where it is no database: it is a view. Raises HomeError, StorageError."""
        path = self.folder / "private" / "items.sqlite"
        if hasattr(self, "db"):
            self.db.close()
        for ending in ("", "-wal", "-shm") if anew else ():
            path.with_name(path.name + ending).unlink(missing_ok=True)
        try:
            self.db = Database(path, Path(__file__).with_name("items.sql").read_text(), 1)
        except HomeError as error:
            if anew or isinstance(error, StorageError):
                raise
            self.open(anew=True)

    # ---- rows ------------------------------------------------------------------------------------

    def file(self, path: str) -> File | None:
        query = "SELECT data, trust, ts, entries FROM files WHERE path = ? AND data IS NOT NULL"
        for data, trust, ts, entries in self.db.rows(query, path):
            return File(data, trust, ts, tuple(entries.split()))
        return None

    def paths(self, id_: str) -> list[str]:
        query = "SELECT path FROM files WHERE stem = ? AND data IS NOT NULL ORDER BY path"
        return [row[0] for row in self.db.rows(query, id_)]

    def item(self, id_: str) -> Item | None:
        return next(self.select("WHERE id = ?", id_), None)

    def select(self, where: str, *values: object) -> Iterator[Item]:
        """Items as they are stored, read a few at a time."""
        query = f"SELECT {', '.join(_ITEM)} FROM items {where}"
        with self.db.readable("read"):
            yield from (Item(*row) for row in self.db.link.execute(query, values))

    def entries(self, id_: str) -> list[str]:
        """Ids of the entries behind a node or item."""
        items = "SELECT entries FROM items WHERE id = ?"
        rows = self.db.rows(f"SELECT entries FROM files WHERE id = ? UNION ALL {items}", id_, id_)
        return [each for row in rows for each in row[0].split()]

    def meta(self, key: str) -> Any:
        rows = self.db.rows("SELECT value FROM meta WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def lay(self, path: str, file: File | None) -> None:
        """Set what a file shall hold; each id that changes gets the next revision. What does not parse has
        no id."""
        node, kept, data = None, file or File(b""), file.data if file else None
        with suppress(BadNode):
            node = checked(path, kept.data)
        row = {
            "path": path,
            "stem": PurePosixPath(path).stem if path.startswith("nodes/") else "",
            "id": node.id if node else "",
            "norm": norm(node.text) if node and not node.valid_until else "",
            "sha": sha(data),
            "trust": kept.trust,
            "ts": kept.ts,
            "entries": " ".join(kept.entries),
            "data": data,
        }
        old = self.db.rows("SELECT id FROM files WHERE path = ?", path)
        update = ", ".join(f"{name} = excluded.{name}" for name in row)
        insert = f"INSERT INTO files ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        self._do(f"{insert} ON CONFLICT (path) DO UPDATE SET {update}", *row.values())
        self.touch({str(row["id"]), *(id_ for (id_,) in old)} - {""} or {path})
        self.made.add(sha(data))

    def keep(self, item: Item) -> None:
        values = attrgetter(*_ITEM)(item)
        self._do(f"INSERT OR REPLACE INTO items VALUES ({', '.join('?' * len(_ITEM))})", *values)
        self.touch((item.id,))

    def clear(self) -> None:
        """Before files are replayed: none shall be there, what lies on the disk is still known."""
        self._do("INSERT OR REPLACE INTO changes (id) SELECT id FROM files WHERE id <> ''")
        self._do("UPDATE files SET sha = ?, stem = '', id = '', norm = '', data = NULL", GONE)

    def drop(self, where: str, *values: object) -> None:
        """Take items out."""
        self._do(f"INSERT OR REPLACE INTO changes (id) SELECT id FROM items {where}", *values)
        self._do(f"DELETE FROM items {where}", *values)

    def touch(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            self._do("INSERT OR REPLACE INTO changes (id) VALUES (?)", id_)

    def remember(self, **values: Any) -> None:
        for key, value in values.items():
            self._do("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, json.dumps(value))

    def mark(self, path: str, hash_: str, info: os.stat_result | None = None) -> None:
        """Note what lies on the disk. A file as young as this may be written again in the same tick: it
        gets no time and is read once more."""
        young = info is None or time.time_ns() - info.st_mtime_ns < _RACY
        times = (0, 0) if info is None or young else (info.st_mtime_ns, info.st_size)
        rule = "SET disk = excluded.disk, mtime = excluded.mtime, size = excluded.size"
        insert = "INSERT INTO files (path, disk, mtime, size) VALUES (?, ?, ?, ?)"
        self._do(f"{insert} ON CONFLICT (path) DO UPDATE {rule}", path, hash_, *times)

    def _do(self, statement: str, *values: object) -> None:
        self.db.link.execute(statement, values)

    def faults(self) -> list[Finding]:
        """What does not parse, two nodes of one id, and what cannot be kept."""
        found = [Finding(path, 0, why) for path, why in self.named.items()]
        for path, data in self.db.link.execute("SELECT path, data FROM files WHERE data NOT NULL"):
            try:
                checked(path, data)
            except BadNode as error:
                found.append(Finding(path, error.line, error.why))
        twice = f"SELECT path, 0, 'another node has its id ' || id FROM files WHERE {_TWICE}"
        left = "SELECT path, 0, 'something else lies in its place' FROM files WHERE sha <> disk"
        return sorted(found + [Finding(*row) for row in self.db.rows(f"{twice} UNION {left}")])

    # ---- the disk --------------------------------------------------------------------------------

    def stands(self) -> bool:
        """Whether the frame is there: only then a missing file was deleted by a hand."""
        return all((self.folder / name).exists() for name in FRAME)

    def by_hand(self) -> dict[str, bytes | None]:
        """Files whose bytes are not ours; None: a hand deleted it. Reads only what has another time or size
        than when it was last seen."""
        columns = self.db.rows("SELECT path, sha, disk, mtime, size FROM files")
        rows = {path: row for path, *row in columns}
        found: dict[str, bytes | None] = {}
        same = []
        for path, info in self.walk(rows):
            want, disk, *times = rows.pop(path, ("", "", 0, 0))
            if times == [info.st_mtime_ns, info.st_size] or (data := self.read(path)) is None:
                continue
            if sha(data) in (want, disk):
                same.append((path, sha(data), info))
            else:
                found[path] = data
        blocked = tuple(f"{path}/" for path in self.named)
        for path, (want, disk, *_) in rows.items():
            here = _named(path) and not f"{path}/".startswith(blocked)
            if here and disk and GONE not in (want, disk):
                found[path] = None
        if same:
            with self.db.transaction():
                for each in same:
                    self.mark(*each)
        return found

    def walk(self, known: Iterable[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
        """Every curated file that can be kept (the name of a `known` one is fine); what cannot goes into
        `named`."""
        self.named.clear()
        queue, root = [MANIFEST, *(name.strip("/") for name in ROOTS)], str(self.folder)
        while queue:
            path = queue.pop()
            try:
                info = os.lstat(f"{root}/{path}")
                if stat.S_ISDIR(info.st_mode):
                    names = os.listdir(f"{root}/{path}")  # noqa: PTH208 - a third of iterdir's time
                    queue += [f"{path}/{name}" for name in names if _seen(name)]
                elif why := _refused(info) or ("" if path in known or _named(path) else _BAD_NAME):
                    self.named[path.encode("utf-8", "replace").decode()] = why
                else:
                    yield path, info
            except FileNotFoundError:
                continue
            except OSError as error:
                self.named[path] = f"it cannot be read: {error.strerror}"

    def project(self) -> list[str]:
        """Write every file that is not yet as it shall be; returns their paths. Raises Raced when a hand
        was there first, StorageError."""
        written, done = [], []
        query = "SELECT path, sha, disk FROM files WHERE sha <> disk ORDER BY path"
        for path, want, disk in self.db.rows(query):
            if self._blocked(path):
                continue
            if sha(self.read(path)) != want:
                self._write(path, {want, disk, GONE})
                written.append(path)
            done.append((path, want))
        if done:
            with self.db.transaction():
                for each in done:
                    self.mark(*each)
                self._do("DELETE FROM files WHERE sha = disk AND sha = ?", GONE)
                self.remember(projected=self.meta("position"))
        return written

    def _write(self, path: str, ours: set[str]) -> None:
        full, file = self.folder / path, self.file(path)

        def check() -> None:
            if sha(self.read(path)) not in ours:
                raise Raced(f"write {full}", "it was changed just now", "try again")

        if file is not None:
            make_folder(full.parent)
            write_atomic(full, file.data, check=check)
        else:
            check()
            full.unlink(missing_ok=True)
            if full.parent.is_dir():
                sync_folder(full.parent)

    def _blocked(self, path: str) -> bool:
        """Whether something lies there that is not ours to replace, or its folder leads elsewhere."""
        full = self.folder / path
        above = [each for each in full.parents if each.is_relative_to(self.folder)][:-1]
        real = all(not each.is_symlink() and (each.is_dir() or not each.exists()) for each in above)
        return not real or os.path.lexists(full) and bool(_refused(os.lstat(full)))

    def read(self, path: str) -> bytes | None:
        """The bytes of a plain file of bounded size, None for anything else."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            with open(
                f"{self.folder}/{path}", "rb", opener=lambda name, _: os.open(name, flags)
            ) as file:
                data = None if _refused(os.fstat(file.fileno())) else file.read(LIMIT + 1)
        except OSError:
            return None
        return data if data is not None and len(data) <= LIMIT else None


def _named(path: str) -> bool:
    return safe_path(path) or path == MANIFEST


def _seen(name: str) -> bool:
    return not name.startswith((".", "#")) and not name.endswith("~")


_BAD_NAME = "its name cannot be kept: letters, digits, . _ - are"


def _refused(info: os.stat_result) -> str:
    if not stat.S_ISREG(info.st_mode):
        return "it is a link or no plain file"
    large = f"it is too large: {info.st_size} bytes, at most {LIMIT} are read"
    return large if info.st_size > LIMIT else ""
