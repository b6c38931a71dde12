"""How long a search takes, by the number of notes, beside what it is made of and what others do: FTS5 alone
without stop words, a flat int8 scan in numpy, sqlite-vec. The text is made up: words in the frequencies
of real ones (Zipf), notes of 8 to 60 words, every one with a vector. The question's own embedding is not in
the figures. Each size runs in a process of its own, so that its memory is its own."""

from __future__ import annotations

import importlib
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from exo.core.base.clock import SystemClock
from exo.core.retrieve.candidates import DEPTH, Question
from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index
from exo.core.retrieve.recall import Recall
from exo.core.retrieve.vectors import encode, unit
from exo.core.retrieve.words import STOP
from exo.tools.bench import Figure, Say

SIZES = (1_000, 10_000, 100_000)
WIDTH = 384
QUESTIONS = 100
VOCABULARY = 40_000


class Text:
    """Made-up words, the common ones real stop words, drawn as often as words of a language are."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        made: dict[str, None] = {}
        while len(made) < VOCABULARY:
            made[
                "".join(self._syllable() for _ in range(self._random.choice((1, 2, 2, 3, 3, 4))))
            ] = None
        words = list(made)
        for place, word in enumerate(
            sorted(STOP["en"])[:150]
        ):  # every other one of the most common
            words.insert(place * 2, word)
        self.words = words
        self._sums = list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))

    def draw(self, count: int) -> str:
        return " ".join(self._random.choices(self.words, cum_weights=self._sums, k=count))

    def vector(self) -> list[float]:
        return [self._random.gauss(0, 1) for _ in range(WIDTH)]

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def _syllable(self) -> str:
        return self._random.choice("bcdfghklmnprstvwz") + self._random.choice(
            ("a", "e", "i", "o", "u", "ar", "en", "ol", "is")
        )


class MadeUp:
    """An embedder whose vectors are drawn."""

    name, width = "made-up", WIDTH

    def __init__(self, text: Text) -> None:
        self._text = text

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [self._text.vector() for _ in texts]


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` scales the sizes down: 30 (0 too: the default) is all of them, 1 a thirtieth."""
    for size in SIZES:
        notes = max(100, size * min(rounds or 30, 30) // 30)
        say(f"{notes} notes")
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder), notes)
            for part in (_ours, _peers):
                program = (
                    f"from exo.tools.benches import recall; recall.{part.__name__}({folder!r})"
                )
                done = subprocess.run(
                    [sys.executable, "-c", program], capture_output=True, text=True, check=True
                )
                for line in done.stdout.splitlines():
                    name, value, unit_, aim = json.loads(line)
                    if unit_ == "skipped":
                        say(f"{name}: {aim}")
                    else:
                        yield Figure(
                            f"{notes:,}: {name}", value, unit_, aim if size == SIZES[-1] else ""
                        )


def build(folder: Path, notes: int) -> None:
    """An index of so many notes, all with vectors, and the questions."""
    text = Text(1)
    index = Index(folder / "index.sqlite")
    index.put(
        Document(
            id=f"item-{n:012x}",
            kind="node" if n % 20 == 0 else "item",
            title=text.draw(5),
            body=text.draw(text.number(8, 60)),
            ts=1_600_000_000_000 + n * 1000,
        )
        for n in range(notes)
    )
    while index.embed_some(MadeUp(text), 2_000):
        pass
    index.close()
    questions = [(text.draw(text.number(4, 12)), text.vector()) for _ in range(QUESTIONS)]
    (folder / "questions.json").write_text(json.dumps(questions))


def _ours(folder: str) -> None:
    index = Index(Path(folder) / "index.sqlite")
    recall = Recall(index, SystemClock())
    questions: list[tuple[str, list[float]]] = json.loads(
        (Path(folder) / "questions.json").read_text()
    )
    before = _rss_mb()
    start = time.perf_counter()
    recall.search(questions[0][0], vector=questions[0][1])
    _row("first search", (time.perf_counter() - start) * 1000, "ms")
    both, words, near = _timed(
        questions,
        lambda words, vector: recall.search(words, vector=vector),
        lambda words, _: _match(index, Question(index, words).expression()),
        lambda _, vector: index.vectors.nearest(unit(vector), DEPTH),
    )
    _row("p50", both[0], "ms", "20")
    _row("p99", both[1], "ms", "60")
    _row("its search by words, p50", words[0], "ms")
    _row("its search by meaning, p50", near[0], "ms")
    _row("whole / sum of the two", both[0] / (words[0] + near[0]), "", "1.5")
    _row("memory with the index read", _rss_mb(), "MB", "120")
    _row("of it for the index", _rss_mb() - before, "MB")


def _match(index: Index, expression: str) -> object:
    query = "SELECT rowid FROM search WHERE search MATCH ? ORDER BY rank LIMIT ?"
    return index.database.rows(query, expression, DEPTH) if expression else None


def _peers(folder: str) -> None:
    questions: list[tuple[str, list[float]]] = json.loads(
        (Path(folder) / "questions.json").read_text()
    )
    index = Index(Path(folder) / "index.sqlite")
    link = sqlite3.connect(":memory:")
    link.execute("CREATE VIRTUAL TABLE plain USING fts5 (title, body)")
    rows = [json.loads(data) for (data,) in index.database.rows("SELECT data FROM documents")]
    link.executemany("INSERT INTO plain VALUES (?, ?)", [(r["title"], r["body"]) for r in rows])

    def by_words(words: str, _: object) -> None:
        match = " OR ".join(f'"{word}"' for word in words.split() if word not in STOP["en"])
        query = "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 32"
        link.execute(query, (match or '"a"',)).fetchall()

    (figure,) = _timed(questions, by_words)
    _row("FTS5 alone without stop words, p50", figure[0], "ms")
    _row("FTS5 alone without stop words, p99", figure[1], "ms")
    codes = [blob for (blob,) in index.database.rows("SELECT codes FROM vectors ORDER BY n")]
    try:
        np: Any = importlib.import_module("numpy")
        matrix = np.frombuffer(b"".join(codes), np.int8).reshape(len(codes), WIDTH)

        def flat(_: object, vector: Sequence[float]) -> None:
            asked = np.array(vector, np.float32)
            scores = np.concatenate(
                [
                    matrix[i : i + 8192].astype(np.float32) @ asked
                    for i in range(0, len(matrix), 8192)
                ]
            )
            np.argpartition(-scores, min(80, len(scores) - 1))[:80]

        _row("numpy, flat int8, p50", _timed(questions, flat)[0][0], "ms")
    except ImportError as error:
        _row("numpy", 0, "skipped", str(error))
    try:
        _row("sqlite-vec, int8, p50", _timed(questions[:30], _sqlite_vec(codes))[0][0], "ms")
    except (ImportError, AttributeError) as error:
        _row("sqlite-vec", 0, "skipped", f"{error}; pip install sqlite-vec apsw")


def _sqlite_vec(codes: list[bytes]) -> Callable[[str, list[float]], object]:
    """apsw, because Python's own sqlite3 may be built without extensions."""
    apsw: Any = importlib.import_module("apsw")
    sqlite_vec: Any = importlib.import_module("sqlite_vec")
    link: Any = apsw.Connection(":memory:")
    link.enable_load_extension(True)
    link.load_extension(sqlite_vec.loadable_path())
    link.execute(f"CREATE VIRTUAL TABLE near USING vec0 (vector int8[{WIDTH}])")
    with link:
        link.executemany(
            "INSERT INTO near (rowid, vector) VALUES (?, vec_int8(?))", list(enumerate(codes, 1))
        )
    query = "SELECT rowid FROM near WHERE vector MATCH vec_int8(?) AND k = 80 ORDER BY distance"
    return lambda _, vector: link.execute(query, (encode(vector)[1],)).fetchall()


def _timed(
    questions: Sequence[tuple[str, list[float]]], *searches: Callable[[str, list[float]], object]
) -> list[tuple[float, float]]:
    """(p50, p99) in ms of each search, question by question in turn, the best of three: others may use
    the machine too."""
    took: list[list[float]] = [[] for _ in searches]
    for words, vector in questions:
        for search, times in zip(searches, took, strict=True):
            best = 1e9
            for _ in range(3):
                start = time.perf_counter()
                search(words, vector)
                best = min(best, (time.perf_counter() - start) * 1000)
            times.append(best)
    return [(statistics.median(each), statistics.quantiles(each, n=100)[98]) for each in took]


def _rss_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _row(name: str, value: float, unit_: str, aim: str = "") -> None:
    print(json.dumps([name, value, unit_, aim]), flush=True)
