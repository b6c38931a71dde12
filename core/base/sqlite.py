"""SQLite as we use it: WAL, explicit transactions, durability chosen per commit, readable errors, and
`scrub`, after which no deleted byte is left in the file.

Invariants: inside `transaction(durable=True)` what is written survives power loss once the block ends
(synchronous=FULL syncs the WAL on commit, https://sqlite.org/pragma.html#pragma_synchronous);
without it a crash of the process loses nothing and a power cut only the last moments. A write never goes
into a file that another process has replaced."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from exo.core.base.errors import HomeError, StorageError, storage_error
from exo.core.base.files import make_folder, sync_folder

# the mark of a file in WAL mode and its offset, sqlite.org/fileformat.html
_HAS_WAL = b"\2\2", 18


class Database:
    """One connection, for one thread. Raises StorageError when the disk refuses, HomeError when the
    file is no database of ours."""

    link: sqlite3.Connection  # changes when the file was replaced: do not keep it
    _inode: tuple[int, int]  # device and number of the file that `link` has open

    def __init__(self, path: Path, schema: str, version: int) -> None:
        """Open `path`, making it with `schema` when it is new; refuses a newer `user_version`. The
        schema's PRAGMA statements are set at every opening."""
        make_folder(path.parent)
        self.path = path
        statements = [text.strip() for text in schema.split(";\n") if text.strip()]
        self._pragmas = [text for text in statements if "PRAGMA" in text]  # page_size: before WAL
        self._pragmas += ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL"]
        self._functions: dict[str, tuple[int, Callable[..., Any]]] = {}
        self._ready = self._beside("-swap")
        self._open()
        if (found := self._version()) > version:
            why = f"it has format {found}, this program knows {version}"
            self.close()
            raise HomeError(f"open {path}", why, "use the newer Exo that wrote it")
        if found == 0:
            with self.transaction(durable=True):
                if self._version() == 0:  # else another process was first
                    for statement in statements:
                        self.link.execute(statement)
                    self.link.execute(f"PRAGMA user_version = {version}")
        with contextlib.suppress(StorageError):  # no room for the copy now: at the next opening
            if self._beside("-scrub").exists():
                self.scrub()

    def function(self, name: str, arguments: int, call: Callable[..., Any]) -> None:
        """Let SQL call a deterministic function, also after the file was replaced."""
        self._functions[name] = (arguments, call)
        self.link.create_function(name, arguments, call, deterministic=True)

    @contextlib.contextmanager
    def transaction(
        self, durable: bool = False, write: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """One commit, or nothing of it. BEGIN IMMEDIATE: several processes may write. With `write` off:
        many reads of one moment."""
        with self.readable("write" if write else "read"):
            try:
                self._begin("IMMEDIATE" if write else "DEFERRED", durable)
                yield self.link
                self.link.execute("COMMIT")
            except BaseException:
                if self.link.in_transaction:
                    self.link.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    self.link.execute("PRAGMA synchronous = NORMAL")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read everything that `query` gives."""
        with self.readable("read"):
            if not self.link.in_transaction and self._at_path() != self._inode:
                self._open()
            return self.link.execute(query, values).fetchall()

    def scrub(self) -> None:
        """Copy what is left into a new file and put that in the place of this one: whatever was deleted
        is in neither file nor WAL, whoever reads. Needs room for the copy. Raises StorageError."""
        copy = self._beside("-copy")
        with self.readable("scrub"), self.transaction():
            self.promise_scrub()
            copy.unlink(missing_ok=True)
            copy.touch(0o600)
            with contextlib.closing(sqlite3.connect(self.path)) as reader:
                reader.execute("VACUUM INTO ?", (str(copy),))
            with copy.open("r+b") as file:
                os.pwrite(file.fileno(), *_HAS_WAL)
                os.fsync(file.fileno())
            with self._folder(fcntl.LOCK_EX):
                copy.replace(self._ready)
                sync_folder(self.path.parent)
                self._finish_swap()
                self._beside("-scrub").unlink()
        self._open()

    def promise_scrub(self) -> None:
        """Inside a transaction that deletes: should `scrub` not follow it, the next opening does it."""
        self._beside("-scrub").touch(0o600)
        sync_folder(self.path.parent)

    def close(self) -> None:
        self.link.close()

    def _version(self) -> int:
        with self.readable("open"):
            return int(self.link.execute("PRAGMA user_version").fetchone()[0])

    # ---- a file that may be replaced: by a scrub of this process or another ----------------------
    # The writer's lock is held throughout, the folder's lock from the moment the copy is complete
    # (-swap) until it is in place. Who opens holds the folder's lock, so it never sees a file without
    # its WAL. Who has the old file open learns of it after BEGIN IMMEDIATE: another inode, or a -swap
    # whose maker must be dead, since its lock is free.

    def _finish_swap(self) -> None:
        for ending in ("-wal", "-shm"):
            self._beside(ending).unlink(missing_ok=True)
        sync_folder(self.path.parent)  # an old WAL beside a new file would be played into it
        self._ready.replace(self.path)
        sync_folder(self.path.parent)

    def _begin(self, how: str, durable: bool = False) -> None:
        """BEGIN in the file that lies at the path."""
        while True:
            if durable:
                self.link.execute("PRAGMA synchronous = FULL")
            self.link.execute(f"BEGIN {how}")
            if self._at_path() == self._inode and not os.access(self._ready, os.F_OK):
                return
            self.link.execute("ROLLBACK")
            self._open()

    def _at_path(self) -> tuple[int, int]:
        found = os.stat(self.path)  # noqa: PTH116 - on every read: half the time of Path.stat
        return found.st_dev, found.st_ino

    def _open(self) -> None:
        """Connect to the file at the path; first end a swap that a death left half done."""
        with self.readable("open"):
            if self._ready.exists():
                with self._folder(fcntl.LOCK_EX):
                    if self._beside("-wal").exists():  # it died before the old was no more
                        self._ready.unlink(missing_ok=True)
                    elif self._ready.exists():
                        self._finish_swap()
            with self._folder(fcntl.LOCK_SH):
                old = getattr(self, "link", None)
                self.link = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
                if old:
                    old.close()
                self.path.chmod(0o600)
                for pragma in self._pragmas:
                    self.link.execute(pragma)
                self._version()  # opens the WAL while nobody changes it
                self._inode = self._at_path()
        for name, (arguments, call) in self._functions.items():
            self.function(name, arguments, call)

    @contextlib.contextmanager
    def _folder(self, how: int) -> Iterator[None]:
        handle = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    @contextlib.contextmanager
    def readable(self, verb: str) -> Iterator[None]:
        """What SQLite raises inside, as an error that a person can read."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            what, why = f"{verb} {self.path}", str(error)
            if type(error) is sqlite3.DatabaseError or "malformed" in why:  # no subclass: damage
                do = f"move it aside (it stays readable for repair): mv {self.path} {self.path}.broken"
                raise HomeError(what, why, do) from error
            if isinstance(error, sqlite3.OperationalError):
                raise StorageError(what, why, "free space or make it writable") from error
            raise
        except OSError as error:
            if verb == "write" or isinstance(error, StorageError):
                raise
            raise storage_error(f"{verb} {self.path}", error) from error
