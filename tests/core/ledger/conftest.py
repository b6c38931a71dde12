"""A ledger on a bench: homes, appended words, children that write beside it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.tools.clock import FakeClock

PRELUDE = """
import os, sys
from pathlib import Path
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.tools.clock import FakeClock
"""


class Place:
    """A home with its ledger: `say` appends utterances, `copy` makes another home of the store."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root).make()
        self.clock = FakeClock()
        self.file = self.home.store / "private" / "ledger.sqlite"
        self.ledger = Ledger(self.home, self.clock)

    def say(self, *texts: str) -> list[Entry]:
        return self.ledger.append(*(Draft("utterance", {"text": text}) for text in texts))

    def reopen(self, **words: Any) -> Ledger:
        self.ledger.close()
        self.ledger = Ledger(self.home, self.clock, **words)
        return self.ledger

    def raw(self, *statements: str | tuple[Any, ...]) -> None:
        """Change the file behind the ledger's back, its triggers dropped."""
        link = sqlite3.connect(self.file, isolation_level=None)
        link.execute("PRAGMA synchronous = OFF")
        for (name,) in link.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            link.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            link.execute(*(statement if isinstance(statement, tuple) else (statement,)))
        link.close()

    def copy(self, root: Path, *, state: bool = False) -> Home:
        home = Home(root).make()
        shutil.copytree(self.home.store, home.store, dirs_exist_ok=True)
        if state:
            shutil.copy(self.home.state / "device.key", home.state / "device.key")
        return home

    def files(self) -> list[Path]:
        return [path for path in self.file.parent.iterdir() if path.is_file()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "one")
    yield made
    made.ledger.close()


@pytest.fixture(scope="session")
def _told_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Place(tmp_path_factory.mktemp("told") / "home")
    entries = made.say(*(f"text {n}" for n in range(7)))
    made.ledger.forget([entries[1].id], "asked")
    made.ledger.append(Draft("rule", {"text": "x"}, (entries[0].id,), "agent:coder"))
    assert made.ledger.verify().ok
    made.ledger.close()
    return made.home.root


@pytest.fixture
def told(_told_once: Path, tmp_path: Path) -> Iterator[Place]:
    """Ten entries: the third is forgotten by the ninth, the last names another; a fresh copy."""
    shutil.copytree(_told_once, tmp_path / "told")
    made = Place(tmp_path / "told")
    yield made
    made.ledger.close()


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """child(program, *arguments): run Python beside this process; killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: object) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", PRELUDE + program, *map(str, arguments)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
