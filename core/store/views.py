"""The views on the disk: curated files, and items.sqlite with the items and what was last written of each
file. Owns noticing that a hand was at a file, and never writing over it; knows no ledger.

Invariants: a row says what a file holds (`sha`), or is about to hold (`pending`, committed before the file
is touched), so that bytes which are neither were written by a hand; the comparison is made once more just
before the rename."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from exo.core.base.errors import HomeError
from exo.core.base.files import make_folder, sync_folder, write_atomic
from exo.core.base.sqlite import Database
from exo.core.store.nodes import LIMIT, BadNode, parse, safe_path, text_of, toml_table
from exo.core.store.replay import FORMAT, File, Item, State, manifest_format
from exo.core.store.words import norm

FRAME = ("STORE.toml", "PACK.md", "INDEX.md", "nodes")  # gone: the store was deleted, not a belief
_COLUMNS = tuple(Item.__dataclass_fields__)
TABLES = f"""
CREATE TABLE {{at}}.items (
  {", ".join(f"{name} {'INTEGER' if name == 'ts' else 'TEXT'} NOT NULL" for name in _COLUMNS)},
  PRIMARY KEY (id)) STRICT;
CREATE TABLE {{at}}.files (
  path TEXT PRIMARY KEY, stem TEXT NOT NULL, id TEXT NOT NULL, sha TEXT NOT NULL, pending TEXT NOT NULL,
  mtime INTEGER NOT NULL, size INTEGER NOT NULL, trust TEXT NOT NULL, ts INTEGER NOT NULL,
  entries TEXT NOT NULL, norm TEXT NOT NULL, fault TEXT NOT NULL, line INTEGER NOT NULL, data BLOB) STRICT;
CREATE INDEX {{at}}.items_hash ON items (hash);
CREATE INDEX {{at}}.files_stem ON files (stem);
CREATE INDEX {{at}}.files_id ON files (id);
"""
SCHEMA = (
    f"PRAGMA secure_delete = ON;\n{TABLES.format(at='main')}"
    "CREATE TABLE changes (rev INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE) STRICT;\n"
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;\n"
)
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
    """The hash of a file's bytes, "-" for no file."""
    return "-" if data is None else hashlib.sha256(data).hexdigest()


class Views:
    """The views below `folder`; at another schema than main: an attached database that holds the bytes too."""

    def __init__(self, folder: Path, database: Database, at: str = "main") -> None:
        self.folder, self.db, self.at = folder, database, at
        self.named: dict[str, str] = {}  # files that cannot be kept, and why
        self.told: dict[
            str, set[str]
        ] = {}  # hashes of hand edits that are recorded and not yet applied

    # ---- what replay reads ---------------------------------------------------------------------------

    def file(self, path: str) -> File | None:
        columns = "sha, pending, trust, ts, entries, data"
        rows = self.db.rows(f"SELECT {columns} FROM {self.at}.files WHERE path = ?", path)
        if not rows or not rows[0][0]:
            return None
        known, pending, trust, ts, entries, data = rows[0]
        if self.at == "main":
            data = self._read(path)
            if data is None and "-" in self.told.get(path, ()):
                return None
            if sha(data) not in {known, pending, *self.told.get(path, ())} or data is None:
                raise Raced(f"read {path}", "it was changed just now", "try again")
        return File(data, trust, ts, tuple(entries.split()))

    def paths(self, id_: str) -> list[str]:
        query = f"SELECT path FROM {self.at}.files WHERE stem = ? AND sha <> ''"
        return [row[0] for row in self.db.rows(query, id_)]

    def item(self, id_: str) -> Item | None:
        return next(self.items("WHERE id = ?", id_), None)

    def items(self, where: str = "ORDER BY id", *values: object) -> Iterator[Item]:
        """Items as they are stored, read a few at a time."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM {self.at}.items {where}"
        return (Item(*row) for row in self.db.link.execute(query, values))

    # ---- what is known of the whole --------------------------------------------------------------------

    def meta(self, key: str) -> Any:
        rows = self.db.rows("SELECT value FROM meta WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def revision(self) -> int:
        return int(self.db.rows("SELECT ifnull(max(rev), 0) FROM changes")[0][0])

    def faults(self) -> list[Finding]:
        """What does not parse, two nodes of one id, and what cannot be kept."""
        query = "SELECT path, line, fault FROM main.files WHERE fault <> ''"
        twice = (
            "SELECT path, 0, 'its id ' || id || ' is that of another node' FROM main.files WHERE id IN"
            " (SELECT id FROM main.files WHERE id <> '' GROUP BY id HAVING count(*) > 1)"
        )
        found = {Finding(*row) for row in self.db.rows(f"{query} UNION {twice}")}
        found |= {Finding(path, 0, what) for path, what in self.named.items()}
        return sorted(found, key=lambda each: (each.path, each.line))

    def stands(self) -> bool:
        """Whether the frame is there: only then a missing file was deleted by a hand."""
        return all((self.folder / name).exists() for name in FRAME)

    def by_hand(self) -> dict[str, bytes | None]:
        """Files whose bytes are not ours, None where a hand deleted one. Reads only what has another time
        or size than when it was written."""
        columns = "path, sha, pending, mtime, size FROM main.files"
        rows = {row[0]: row[1:] for row in self.db.rows(f"SELECT {columns}")}
        found: dict[str, bytes | None] = {}
        same: list[tuple[int, int, str]] = []
        self.named.clear()
        for path, info in self.walk():
            known, pending, mtime, size = rows.pop(path, ("", "", 0, 0))
            if (mtime, size) == (info.st_mtime_ns, info.st_size):
                continue
            data = self._read(path)
            if data is not None and sha(data) in (known, pending):
                same.append((*_times(info), path))
            elif data is not None:
                found[path] = data
        if same:
            with self.db.transaction() as link:
                link.executemany("UPDATE main.files SET mtime = ?, size = ? WHERE path = ?", same)
        blocked = tuple(f"{path}/" for path in self.named)
        for path, (known, _, mtime, _) in rows.items():
            here = known and mtime >= 0 and safe_path(path) and not f"{path}/".startswith(blocked)
            if here and self.stands():
                found[path] = None
        return found

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every curated file that can be kept; what cannot is put into `named`."""
        queue = ["PACK.md", "INDEX.md", "nodes", "policies", "skills"]
        while queue:
            path = queue.pop()
            try:
                info = os.lstat(self.folder / path)
                if stat.S_ISDIR(info.st_mode):
                    with os.scandir(self.folder / path) as entries:
                        queue += [f"{path}/{each.name}" for each in entries if _seen(each.name)]
                elif why := _refused(path, info):
                    self.named[path.encode("utf-8", "replace").decode()] = why
                else:
                    yield path, info
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.named[path] = f"it cannot be read: {error.strerror}"

    # ---- writing -----------------------------------------------------------------------------------------

    def flush(self, state: State, meta: dict[str, Any]) -> None:
        """Make the changes of `state` ours. Interrupted anywhere, it is done again by the next call.
        Raises Raced, StorageError."""
        files = sorted(state.files.items())
        if self.at == "main" and files:
            with self.db.transaction() as link:
                self.promise(
                    link, ((path, sha(file.data if file else None)) for path, file in files)
                )
            for path, file in files:
                self.write(path, file.data if file else None)
        with self.db.transaction() as link:
            for path, file in files:
                old = link.execute(
                    f"SELECT id FROM {self.at}.files WHERE path = ?", (path,)
                ).fetchone()
                row = self.row(path, file)
                link.execute(f"DELETE FROM {self.at}.files WHERE path = ?", (path,))
                if row:
                    link.execute(f"INSERT INTO {self.at}.files VALUES ({', '.join('?' * 14)})", row)
                if self.at == "main":
                    self.touch(link, {*(old or ()), row[2] if row else ""} - {""} or {path})
            self.put(link, state.items)
            if self.at == "main":
                self.touch(link, state.items)
                self.remember(link, meta)

    def promise(self, link: Any, hashes: Iterable[tuple[str, str]]) -> None:
        """Say what files are about to hold."""
        new = "VALUES (?, '', '', '', ?, 0, 0, '', 0, '', '', '', 0, NULL)"
        rule = "ON CONFLICT (path) DO UPDATE SET pending = excluded.pending"
        link.executemany(f"INSERT INTO main.files {new} {rule}", hashes)

    def put(self, link: Any, items: dict[str, Item | None]) -> None:
        """Store items under their ids; None: gone."""
        marks = ", ".join("?" * len(_COLUMNS))
        link.executemany(f"DELETE FROM {self.at}.items WHERE id = ?", ((id_,) for id_ in items))
        rows = (astuple(item) for item in items.values() if item is not None)
        link.executemany(f"INSERT INTO {self.at}.items VALUES ({marks})", rows)

    def touch(self, link: Any, ids: Iterable[str]) -> None:
        """Note that these ids changed: each gets the next revision."""
        link.executemany(
            "INSERT OR REPLACE INTO changes (id) VALUES (?)", ((each,) for each in ids)
        )

    def remember(self, link: Any, meta: dict[str, Any]) -> None:
        rows = [(key, json.dumps(value)) for key, value in meta.items()]
        link.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def row(self, path: str, file: File | None) -> tuple[Any, ...] | None:
        """The row of a file as it lies on the disk now; None when there is none."""
        if file is None:
            return None
        id_, text, fault, line = "", "", "", 0
        try:
            if path.startswith("nodes/"):
                node = parse(path, file.data)
                id_, text = node.id, "" if node.valid_until else norm(node.text)
            elif path.endswith(".toml"):
                toml_table(path, text_of(path, file.data))
            else:
                text_of(path, file.data)
        except BadNode as error:
            fault, line = error.why, error.line
        times = (-1, -1)  # it could not be written: no hand deleted it
        if self.at == "main":
            with suppress(FileNotFoundError, NotADirectoryError):
                times = _times(os.lstat(self.folder / path))
        data = file.data if self.at != "main" else None
        stem = PurePosixPath(path).stem if path.startswith("nodes/") else ""
        known = (path, stem, id_, sha(file.data), "", *times, file.trust, file.ts)
        return (*known, " ".join(file.entries), text, fault, line, data)

    def write(self, path: str, data: bytes | None) -> bool:
        """Bring one file to `data`, unless it is so, cannot be ours, or a hand was at it (Raced). Returns
        whether it was written."""
        full = self.folder / path
        if os.path.lexists(full) and _refused(path, os.lstat(full)) or not self._inside(full):
            self.named[path] = "it is no plain file of this store"
            return False
        known = self.db.rows("SELECT sha, pending FROM main.files WHERE path = ?", path)
        ours = {"-", sha(data), *(known[0] if known else ()), *self.told.get(path, ())}

        def check() -> None:
            now = self._read(path)
            if path == "STORE.toml" and now is not None and manifest_format(now) < FORMAT:
                return
            if sha(now) not in ours:
                raise Raced(f"write {full}", "it was changed just now", "try again")

        now = self._read(path)
        if sha(now) == sha(data) or path == "STORE.toml" and now and manifest_format(now) >= FORMAT:
            return False
        make_folder(full.parent)
        if data is not None:
            write_atomic(full, data, check=check)
        else:
            check()
            full.unlink(missing_ok=True)
            sync_folder(full.parent)
        return True

    def retime(self, link: Any, paths: Iterable[str]) -> None:
        """Note the times of files as they lie there now; what could not be written has none."""
        for path in paths:
            data = self._read(path)
            times = _times(os.lstat(self.folder / path)) if data is not None else (-1, -1)
            set_ = "UPDATE main.files SET mtime = ?, size = ? WHERE path = ? AND sha = ?"
            link.execute(set_, (*times, path, sha(data)))

    def _inside(self, full: Path) -> bool:
        folders = (full.parent, full.parent.parent)
        plain = all(each.is_dir() or not os.path.lexists(each) for each in folders)
        return plain and full.parent.resolve().is_relative_to(self.folder.resolve())

    def _read(self, path: str) -> bytes | None:
        """The bytes of a plain file of bounded size, None for anything else."""
        try:
            handle = os.open(self.folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            plain = stat.S_ISREG(os.fstat(handle).st_mode)
            data = file.read(LIMIT + 1) if plain else None
        return data if data is not None and len(data) <= LIMIT else None


def _times(info: os.stat_result) -> tuple[int, int]:
    """Time and size to know a file by; a file as young as this may be written again in the same tick."""
    age = time.time_ns() - info.st_mtime_ns
    return (info.st_mtime_ns if age > _RACY else 0), info.st_size


def _seen(name: str) -> bool:
    return not name.startswith((".", "#")) and not name.endswith("~")


def _refused(path: str, info: os.stat_result) -> str:
    if stat.S_ISLNK(info.st_mode):
        return "it is a link; only plain files are read"
    if not stat.S_ISREG(info.st_mode):
        return "it is no plain file"
    if info.st_size > LIMIT:
        return f"it is too large: {info.st_size} bytes, at most {LIMIT} are read"
    return (
        ""
        if safe_path(path) or path == "STORE.toml"
        else "its name cannot be kept: letters, digits, . _ -"
    )
