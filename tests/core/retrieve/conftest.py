"""An index in a temporary folder, and an embedder whose nearness is written down: words of one meaning
share a direction."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index
from exo.core.retrieve.recall import Recall
from exo.core.retrieve.words import STOP, plain
from exo.tools.clock import FakeClock

NOW = 1_796_040_000_000  # 2026-11-30 12:00 UTC
SAME = {"automobile": "car", "vehicle": "car", "physician": "doctor", "dwelling": "home"}


class Meanings:
    """Unit directions by meaning; `asked` counts the texts, `refuses` says which raise what."""

    def __init__(self, name: str = "meanings-1", width: int = 96) -> None:
        self.name, self.width = name, width
        self.asked: list[str] = []
        self.refuses: Callable[[list[str]], Exception | None] = lambda texts: None

    def embed(self, texts: list[str]) -> list[list[float]]:
        if error := self.refuses(texts):
            raise error
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        words = [SAME.get(word, word) for word in plain(text) if word not in STOP["en"]]
        parts = [random.Random(f"{self.name} {word}") for word in words or ["nothing"]]
        rows = [[each.gauss(0, 1) for _ in range(self.width)] for each in parts]
        return [sum(column) for column in zip(*rows, strict=True)]


def document(id_: str, body: str = "", **fields: object) -> Document:
    kind = "node" if id_.startswith(("fact", "rule", "preference")) else "item"
    given: dict[str, object] = {"title": "", "ts": NOW - 1000, "kind": kind, **fields}
    return Document(id=id_, body=body, **given)  # type: ignore[arg-type]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    made = Index(tmp_path / "private" / "index.sqlite")
    yield made
    made.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def recall(index: Index, clock: FakeClock) -> Recall:
    return Recall(index, clock)


@pytest.fixture
def meanings() -> Meanings:
    return Meanings()


@pytest.fixture
def make() -> Callable[..., Document]:
    return document


@pytest.fixture
def other_meanings() -> Meanings:
    return Meanings("meanings-2", 64)
