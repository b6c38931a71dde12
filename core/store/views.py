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
from sqlite3 import Connection
from typing import Any

from exo.core.base.errors import HomeError
from exo.core.base.files import make_folder, sync_folder, write_atomic
from exo.core.base.sqlite import Database
from exo.core.store.nodes import LIMIT, BadNode, parse, safe_path, text_of, toml_table
from exo.core.store.replay import FORMAT, File, Item, State, manifest_format
from exo.core.store.words import norm

FRAME = ("STORE.toml", "PACK.md", "INDEX.md", "nodes")  # gone: the store was deleted, not a belief
GONE = "-"  # the hash of no file
_ITEM = tuple(Item.__dataclass_fields__)
_FILE = ("path", "stem", "id", "sha", "trust", "ts", "entries", "norm", "fault", "line", "data")
_TWICE = "id <> '' AND id IN (SELECT id FROM files GROUP BY id HAVING count(*) > 1)"
_RACY = 50_000_000  # nanoseconds within which a second write may keep a file's time


class Raced(HomeError):
    """A file is not what was written: a hand was at it just now."""


@dataclass(frozen=True)
class Finding:
    """Something a person should look at; `line` 0: the whole file."""

    path: str
    line: int
    what: str


def sha(data: bytes | None) -> str:
    """The hash of a file's bytes."""
    return GONE if data is None else hashlib.sha256(data).hexdigest()


def open_database(path: Path) -> Database:
    """items.sqlite; made anew where it is no database, since it is a view. Raises HomeError, StorageError."""
    schema = Path(__file__).with_name("items.sql").read_text()
    with suppress(FileNotFoundError), path.open("rb") as file:
        if file.read(15) not in (b"", b"SQLite format 3"):
            drop_database(path)
    return Database(path, schema, 1)


def drop_database(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


class Views:
    """The views of the store in `folder`. What writes rows takes the transaction it belongs to."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder, self.db = folder, database
        self.named: dict[str, str] = {}  # files that cannot be kept, and why

    # ---- what replay reads -----------------------------------------------------------------------

    def file(self, path: str) -> File | None:
        query = "SELECT data, trust, ts, entries FROM files WHERE path = ? AND data IS NOT NULL"
        rows = self.db.rows(query, path)
        return next((File(*row[:3], tuple(row[3].split())) for row in rows), None)  # type: ignore[call-arg]

    def paths(self, id_: str) -> list[str]:
        return [row[0] for row in self.db.rows("SELECT path FROM files WHERE stem = ?", id_)]

    def item(self, id_: str) -> Item | None:
        return next(self.items("WHERE id = ?", id_), None)

    def items(self, where: str = "ORDER BY id", *values: object) -> Iterator[Item]:
        """Items as they are stored, read a few at a time."""
        query = f"SELECT {', '.join(_ITEM)} FROM items {where}"
        return (Item(*row) for row in self.db.link.execute(query, values))

    def meta(self, key: str) -> Any:
        rows = self.db.rows("SELECT value FROM meta WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def faults(self) -> list[Finding]:
        """What does not parse, two nodes of one id, and what cannot be kept."""
        twice = f"SELECT path, 0, 'another node has its id ' || id FROM files WHERE {_TWICE}"
        left = "SELECT path, 0, 'something else lies in its place' FROM files WHERE sha <> disk"
        faults = "SELECT path, line, fault FROM files WHERE fault <> ''"
        rows = self.db.rows(f"{faults} UNION {twice} UNION {left} AND path <> 'STORE.toml'")
        found = [Finding(*row) for row in rows]
        return found + [Finding(path, 0, why) for path, why in sorted(self.named.items())]

    # ---- rows ------------------------------------------------------------------------------------

    def put(self, link: Connection, state: State) -> None:
        """Store the changes of `state`; each id that changed gets the next revision."""
        update = ", ".join(f"{name} = excluded.{name}" for name in _FILE[1:])
        marks = ", ".join("?" * len(_FILE))
        insert = f"INSERT INTO files ({', '.join(_FILE)}) VALUES ({marks})"
        for path, file in state.files.items():
            old = link.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone() or ("",)
            row = _row(path, file)
            link.execute(f"{insert} ON CONFLICT (path) DO UPDATE SET {update}", row)
            self.touch(link, {old[0], row[2]} - {""} or {path})
        link.executemany("DELETE FROM items WHERE id = ?", ((id_,) for id_ in state.items))
        rows = map(attrgetter(*_ITEM), filter(None, state.items.values()))
        link.executemany(f"INSERT INTO items VALUES ({', '.join('?' * len(_ITEM))})", rows)
        self.touch(link, state.items)

    def touch(self, link: Connection, ids: Iterable[str]) -> None:
        link.executemany("INSERT OR REPLACE INTO changes (id) VALUES (?)", ((id_,) for id_ in ids))

    def remember(self, link: Connection, **values: Any) -> None:
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        link.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def mark(self, link: Connection, path: str, hash_: str, info: os.stat_result | None) -> None:
        """Note what lies on the disk. A file as young as this may be written again in the same tick: it
        gets no time and is read once more."""
        young = info is None or time.time_ns() - info.st_mtime_ns < _RACY
        row = (
            path,
            hash_,
            0 if young or not info else info.st_mtime_ns,
            info.st_size if info else 0,
        )
        rule = "SET disk = excluded.disk, mtime = excluded.mtime, size = excluded.size"
        insert = "INSERT INTO files (path, disk, mtime, size) VALUES (?, ?, ?, ?)"
        link.execute(f"{insert} ON CONFLICT (path) DO UPDATE {rule}", row)

    # ---- the disk --------------------------------------------------------------------------------

    def stands(self) -> bool:
        """Whether the frame is there: only then a missing file was deleted by a hand."""
        return all((self.folder / name).exists() for name in FRAME)

    def by_hand(self) -> dict[str, tuple[bytes | None, os.stat_result | None]]:
        """Files whose bytes are not ours (None: a hand deleted it), with what the disk said of them before.
        Reads only what has another time or size than when it was written."""
        columns = self.db.rows("SELECT path, sha, disk, mtime, size FROM files")
        rows = {path: row for path, *row in columns}
        found: dict[str, tuple[bytes | None, os.stat_result | None]] = {}
        same = []
        for path, info in self.walk(rows):
            want, disk, *times = rows.pop(path, ("", "", 0, 0))
            if times == [info.st_mtime_ns, info.st_size]:
                continue
            data = self.read(path)
            if data is not None and sha(data) in (want, disk):
                same.append((path, sha(data), info))
            elif data is not None:
                found[path] = data, info
        blocked = tuple(f"{path}/" for path in self.named)
        for path, (want, disk, *_) in rows.items():
            ours = safe_path(path) or path == "STORE.toml" and not (self.folder / path).exists()
            if GONE not in (want, disk) and disk and ours and not f"{path}/".startswith(blocked):
                found[path] = None, None
        if same:
            with self.db.transaction() as link:
                for each in same:
                    self.mark(link, *each)
        return found

    def walk(self, known: Iterable[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
        """Every curated file that can be kept (the name of a `known` one is fine); what cannot goes into
        `named`."""
        self.named.clear()
        queue, root = ["PACK.md", "INDEX.md", "nodes", "policies", "skills"], str(self.folder)
        while queue:
            path = queue.pop()
            try:
                info = os.lstat(f"{root}/{path}")
                if stat.S_ISDIR(info.st_mode):
                    names = os.listdir(f"{root}/{path}")  # noqa: PTH208 - a third of iterdir's time
                    queue += [f"{path}/{name}" for name in names if _seen(name)]
                elif why := _refused(info) or (
                    "" if path in known or safe_path(path) else _BAD_NAME
                ):
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
        written, marks = [], []
        query = "SELECT path, sha, disk FROM files WHERE sha <> disk ORDER BY path"
        for path, want, disk in self.db.rows(query):
            if self._blocked(path) or path == "STORE.toml" and self._manifest_stands():
                continue
            if sha(self.read(path)) != want:
                file = self.file(path)
                self._write(path, file.data if file else None, {want, disk, GONE})
                written.append(path)
            with suppress(FileNotFoundError):
                info = None if want == GONE else os.lstat(self.folder / path)
                marks.append((path, want, info))
        if marks:
            with self.db.transaction() as link:
                for each in marks:
                    self.mark(link, *each)
                link.execute("DELETE FROM files WHERE sha = ? AND disk = ?", (GONE, GONE))
                self.remember(link, projected=self.meta("position"))
        return written

    def _write(self, path: str, data: bytes | None, ours: set[str]) -> None:
        full = self.folder / path

        def check() -> None:
            if path != "STORE.toml" and sha(self.read(path)) not in ours:
                raise Raced(f"write {full}", "it was changed just now", "try again")

        if data is not None:
            make_folder(full.parent)
            write_atomic(full, data, check=check)
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

    def _manifest_stands(self) -> bool:
        data = self.read("STORE.toml")
        return data is not None and manifest_format(data) >= FORMAT

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


def _row(path: str, file: File | None) -> tuple[Any, ...]:
    """The columns _FILE of a file; what does not parse has its fault, and no id."""
    if file is None:
        return (path, "", "", GONE, "self", 0, "", "", "", 0, None)
    stem, id_, text, fault, line = "", "", "", "", 0
    try:
        if path.startswith("nodes/"):
            stem = PurePosixPath(path).stem
            node = parse(path, file.data)
            id_, text = node.id, "" if node.valid_until else norm(node.text)
        elif path.endswith(".toml"):
            toml_table(path, text_of(path, file.data))
        else:
            text_of(path, file.data)
    except BadNode as error:
        fault, line = error.why, error.line
    known = (path, stem, id_, sha(file.data), file.trust, file.ts, " ".join(file.entries))
    return (*known, text, fault, line, file.data)


def _seen(name: str) -> bool:
    return not name.startswith((".", "#")) and not name.endswith("~")


_BAD_NAME = "its name cannot be kept: letters, digits, . _ - are"


def _refused(info: os.stat_result) -> str:
    if not stat.S_ISREG(info.st_mode):
        return "it is a link or no plain file"
    large = f"it is too large: {info.st_size} bytes, at most {LIMIT} are read"
    return large if info.st_size > LIMIT else ""
