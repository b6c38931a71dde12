"""SQLite as we use it: WAL, explicit transactions, durability chosen per commit, readable errors.

Invariant: inside `transaction(durable=True)` what is written survives power loss once the block ends
(synchronous=FULL syncs the WAL on commit, https://sqlite.org/pragma.html#pragma_synchronous);
without it a crash of the process loses nothing and a power cut only the last moments."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exo.core.base.errors import HomeError, StorageError, storage_error
from exo.core.base.files import make_folder


class Database:
    """One connection, for one thread. Raises StorageError when the disk refuses, HomeError when the
    file is no database of ours."""

    def __init__(self, path: Path, schema: str, version: int) -> None:
        """Open `path`, making it with `schema` when it is new; refuses a newer `user_version`."""
        make_folder(path.parent)
        self.path = path
        with self._readable("open"):
            self.link = sqlite3.connect(path, timeout=10.0, isolation_level=None)
            try:
                path.chmod(0o600)
            except OSError as error:
                raise storage_error(f"open {path}", error) from error
            self.link.execute("PRAGMA journal_mode = WAL")
            self.link.execute("PRAGMA synchronous = NORMAL")
            found = int(self.link.execute("PRAGMA user_version").fetchone()[0])
        if found > version:
            why = f"it has format {found}, this program knows {version}"
            raise HomeError(f"open {path}", why, "use the newer Exo that wrote it")
        if found == 0:
            with self.transaction(durable=True):
                for statement in filter(str.strip, schema.split(";\n")):
                    self.link.execute(statement)
                self.link.execute(f"PRAGMA user_version = {version}")

    @contextlib.contextmanager
    def transaction(self, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One commit, or nothing of it. BEGIN IMMEDIATE: several processes may write."""
        with self._readable("write"):
            if durable:
                self.link.execute("PRAGMA synchronous = FULL")
            try:
                self.link.execute("BEGIN IMMEDIATE")
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
        with self._readable("read"):
            return self.link.execute(query, values).fetchall()

    def close(self) -> None:
        self.link.close()

    @contextlib.contextmanager
    def _readable(self, verb: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            why = str(error)
            if "not a database" in why or "malformed" in why:
                do = f"move it aside (it stays readable for repair): mv {self.path} {self.path}.broken"
                raise HomeError(f"{verb} {self.path}", why, do) from error
            if isinstance(error, sqlite3.OperationalError):
                raise StorageError(
                    f"{verb} {self.path}", why, "free space or make it writable"
                ) from error
            raise
