"""A store in a fresh home, opened and opened again, and what its views hold."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.store.store import Store
from exo.tools.clock import FakeClock
from exo.tools.store_lint import lint


class Bench:
    """One home with its ledger and store; `again` opens both anew, as another process would."""

    def __init__(self, root: Path) -> None:
        self.home, self.clock = Home(root).make(), FakeClock()
        self.folder = self.home.store
        self.again()

    def again(self) -> Store:
        self.ledger = Ledger(self.home, self.clock)
        self.store = Store(self.home, self.ledger, self.clock)
        return self.store

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def write(self, path: str, data: bytes | str) -> None:
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data.encode() if isinstance(data, str) else data)

    def files(self) -> dict[str, bytes]:
        """Every curated file that is a plain one."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not {".git", "private"} & set(path.relative_to(self.folder).parts)
        }

    def rows(self) -> list[tuple[Any, ...]]:
        """The items, row for row."""
        link = sqlite3.connect(self.folder / "private" / "items.sqlite")
        try:
            return link.execute("SELECT * FROM items ORDER BY id").fetchall()
        finally:
            link.close()

    def delete_views(self) -> None:
        """Everything that a rebuild has to make again."""
        self.store.close()
        for name in ("nodes", "policies", "skills"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("STORE.toml", "PACK.md", "INDEX.md"):
            (self.folder / name).unlink(missing_ok=True)
        for path in (self.folder / "private").glob("items.sqlite*"):
            path.unlink()
        self.again()

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.ledger.entries()]

    def edits(self) -> list[dict[str, Any]]:
        return [entry.body or {} for entry in self.ledger.entries(kinds=("edit",))]

    def lint(self) -> Any:
        return lint(self.store)

    def second(self) -> Store:
        """The same store in another process."""
        return Store(self.home, Ledger(self.home, self.clock), self.clock)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "home")
    yield made
    made.store.close()
    made.ledger.close()
