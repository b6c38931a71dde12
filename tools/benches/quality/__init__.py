"""How well recall finds: the authored set (quality/README.md) asked of plain FTS5, of each of our two lists, of
reciprocal rank fusion, of our fusion and of the whole search, with the real embedding model.

`python -m exo.tools.benches.quality` puts the figures into core/retrieve/QUALITY.md, between its marks."""

from __future__ import annotations

import datetime
import json
import math
import random
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import exo.core.retrieve
from exo.core.base.home import models_folder
from exo.core.retrieve.candidates import Question as Terms
from exo.core.retrieve.candidates import gather
from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index
from exo.core.retrieve.recall import Recall
from exo.core.retrieve.vectors import unit
from exo.core.retrieve.words import STOP
from exo.models.catalog import Catalog
from exo.models.embed import Embedder
from exo.tools.bench import Figure, Say, machine
from exo.tools.benches.distractors import distractors
from exo.tools.clock import FakeClock

FOLDER = Path(__file__).parent
REPORT = Path(exo.core.retrieve.__file__).parent / "QUALITY.md"
TODAY = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
DEPTH = 10  # what a method hands over for a question
HALVES = ("dev", "held-out")
# method -> what it is
METHODS = {
    "FTS5": "plain FTS5, unicode61, the words of the question without English stop words joined by OR",
    "words": "our list by words alone: BM25 with column weights, stems, near words for slips",
    "vectors": "our list by meaning alone: sign bits, int8, best piece of a document",
    "RRF": "the two above, reciprocal rank fusion with equal weights (k = 60)",
    "fused": "the two above, our fusion; no filter, no time, no link",
    "full": "the whole search: time, validity, links, one copy of a fact",
}
RESAMPLES = 10_000
SEED = 20_261_130


@dataclass(frozen=True)
class Question:
    """A row of questions.jsonl."""

    id: str
    stratum: str
    question: str
    labels: tuple[str, ...]
    half: str
    at: str = ""


@dataclass
class Results:
    """For each method and question the rank of the first right document (0: not among DEPTH)."""

    questions: list[Question]
    ranks: dict[str, dict[str, int]] = field(default_factory=dict)
    silent: set[str] = field(
        default_factory=set
    )  # ids of questions at which the full search abstained
    texts: int = 0
    model: str = ""

    def of(self, half: str = "", stratum: str = "") -> list[Question]:
        """The questions that have an answer, of a half and a stratum ("": all)."""
        return [
            q
            for q in self.questions
            if q.labels and half in ("", q.half) and stratum in ("", q.stratum)
        ]

    def score(self, method: str, questions: Iterable[Question], measure: Measure) -> list[float]:
        return [measure(self.ranks[method][q.id]) for q in questions]

    def heard(self, questions: Iterable[Question], measure: Measure) -> list[float]:
        """The full search as a person meets it: where it abstains, nothing is found."""
        return [
            0.0 if q.id in self.silent else measure(self.ranks["full"][q.id]) for q in questions
        ]


Measure = Callable[[int], float]
MEASURES: dict[str, Measure] = {
    "hit@1": lambda rank: float(rank == 1),
    "hit@5": lambda rank: float(0 < rank <= 5),
    "MRR@10": lambda rank: 1 / rank if rank else 0.0,
    "nDCG@10": lambda rank: 1 / math.log2(1 + rank) if rank else 0.0,
}


class MiniLM:
    """The default embedding model, in this process."""

    def __init__(self) -> None:
        """Raises ModelMissing: the command that fetches it."""
        catalog = Catalog(models_folder())
        row = next(each for each in catalog.rows if "embedding" in each.roles and each.default)
        self.name, self.width = row.name, 0
        self._model = Embedder(catalog.require(row), row.file(".onnx"), row.window, 2)

    def embed(self, texts: list[str]) -> list[list[float]]:
        vectors = self._model.embed(texts).vectors
        self.width = len(vectors[0])
        return vectors


def questions() -> list[Question]:
    """The questions in the order of the file."""
    made = []
    for line in (FOLDER / "questions.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        row["labels"] = tuple(row["labels"])
        made.append(Question(**{name: row.get(name, "") for name in Question.__dataclass_fields__}))
    return made


def documents() -> list[Document]:
    """Notes and distractors, by their ids."""
    rows = [json.loads(line) for line in (FOLDER / "notes.jsonl").read_text().splitlines()]
    made = [
        Document(**{**row, "links": tuple((kind, to) for kind, to in row.get("links", ()))})
        for row in rows + distractors()
    ]
    return sorted(made, key=lambda document: document.id)


def measure(say: Say, embedder: Any = None) -> Results:
    """Ask everything of every method."""
    model, asked, corpus = embedder or MiniLM(), questions(), documents()
    results = Results(asked, {method: {} for method in METHODS}, model=model.name)
    with tempfile.TemporaryDirectory() as folder:
        index = Index(Path(folder) / "index.sqlite")
        index.put(corpus)
        say(f"{len(corpus)} documents, {index.pending()} texts to embed")
        while done := index.embed_some(model, 64):
            results.texts += done
        say(f"{len(asked)} questions")
        recall = Recall(index, FakeClock(round(TODAY.timestamp() * 1000)))
        plain = _Plain(corpus)
        for question in asked:
            (vector,) = model.embed([question.question])
            lists = _lists(index, question.question, vector)
            lists["FTS5"] = plain.search(question.question)
            found = recall.search(
                question.question, k=DEPTH, embedder=model, vector=vector, at=question.at
            )
            lists["full"] = [hit.id for hit in found.hits]
            if found.abstain:
                results.silent.add(question.id)
            for method in METHODS:
                results.ranks[method][question.id] = rank(lists[method], question.labels)
        index.close()
    return results


def rank(found: Sequence[str], labels: Sequence[str]) -> int:
    """The place of the first right one, from 1; 0 when it is not among the first DEPTH."""
    return next((n for n, id_ in enumerate(found[:DEPTH], 1) if id_ in labels), 0)


def _lists(index: Index, query: str, vector: Sequence[float]) -> dict[str, list[str]]:
    """Ids by method, best first: the two lists as recall makes them, and two ways to make one of them."""
    owners = dict(
        index.database.rows("SELECT p.n, d.id FROM parts p JOIN documents d ON d.n = p.document")
    )
    match = Terms(index, query).expression()
    select = "SELECT rowid FROM search WHERE search MATCH ? ORDER BY rank LIMIT 200"
    words = _once(owners[n] for (n,) in (index.database.rows(select, match) if match else ()))
    near = index.vectors.nearest(unit(vector), 200)
    rows = index.database.rows("SELECT v.n, p.n FROM vectors v JOIN parts p ON p.hash = v.hash")
    parts: dict[int, list[int]] = {}
    for n, part in rows:
        parts.setdefault(n, []).append(part)
    best = sorted(near, key=lambda n: -near[n])
    vectors = _once(owners[part] for n in best for part in parts.get(n, ()))
    sums: dict[str, float] = {}
    for each in (words[:60], vectors[:60]):
        for place, id_ in enumerate(each, 1):
            sums[id_] = sums.get(id_, 0.0) + 1 / (60 + place)
    fused = sorted(gather(index, query, vector).values(), key=lambda each: -each.score)
    return {
        "words": words,
        "vectors": vectors,
        "RRF": sorted(sums, key=lambda id_: -sums[id_]),
        "fused": _once(each.document.id for each in fused),
    }


def _once(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))


class _Plain:
    """What somebody would write in an afternoon."""

    def __init__(self, corpus: Iterable[Document]) -> None:
        self._link = sqlite3.connect(":memory:")
        self._link.execute("CREATE VIRTUAL TABLE plain USING fts5 (id UNINDEXED, title, body)")
        self._link.executemany(
            "INSERT INTO plain VALUES (?, ?, ?)",
            [(d.id, f"{d.title} {d.summary} {d.load_when} {d.tags}", d.body) for d in corpus],
        )

    def search(self, query: str) -> list[str]:
        words = [word for word in re.findall(r"\w+", query.lower()) if word not in STOP["en"]]
        match = " OR ".join(f'"{word}"' for word in words) or '""'
        select = "SELECT id FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10"
        return [id_ for (id_,) in self._link.execute(select, (match,))]


# ---- figures -------------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    return 100 * sum(values) / len(values) if values else 0.0


def interval(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """(difference of the means in points, and its 95 % interval) of paired values: the same questions are
    drawn for both, RESAMPLES times; the same seed each time."""
    draw = random.Random(SEED)
    apart = [100 * (a - b) for a, b in zip(one, other, strict=True)]
    count = len(apart)
    means = sorted(sum(draw.choices(apart, k=count)) / count for _ in range(RESAMPLES))
    return sum(apart) / count, means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """The held-out half by method; `rounds` changes nothing."""
    results = measure(say)
    held = results.of("held-out")
    for method in METHODS:
        for name in ("hit@1", "hit@5", "MRR@10"):
            yield Figure(
                f"{method}: {name}", mean(results.score(method, held, MEASURES[name])), "%"
            )
    for stratum in _strata(results):
        better, apart = _bar(results, results.of("", stratum))
        for method, points in apart.items():
            yield Figure(
                f"{stratum}, both halves: {method} over {better}, MRR@10", points, "points", "-1"
            )
    wrong, right = _silence(results, "held-out")
    yield Figure("no answer: abstained", right, "%")
    yield Figure("answered elsewhere: abstained", wrong, "%")


def _bar(results: Results, asked: list[Question]) -> tuple[str, dict[str, float]]:
    """(the better single list, by how much fused and full are over it) in points of MRR@10."""
    scores = {m: mean(results.score(m, asked, MEASURES["MRR@10"])) for m in METHODS}
    better = max(("words", "vectors"), key=lambda method: scores[method])
    return better, {method: scores[method] - scores[better] for method in ("fused", "full")}


def _strata(results: Results) -> list[str]:
    return _once(q.stratum for q in results.questions if q.labels)


def _silence(results: Results, half: str) -> tuple[float, float]:
    """(share of the questions with an answer at which the search abstained, share of those without)."""
    shares = []
    for answered in (True, False):
        asked = [
            q for q in results.questions if bool(q.labels) == answered and half in ("", q.half)
        ]
        shares.append(mean([float(q.id in results.silent) for q in asked]))
    return shares[0], shares[1]


def report(results: Results) -> str:
    """The figures as Markdown."""
    lines = [
        _short(results),
        "",
        f"Measured {datetime.date.today()} on {machine()}; model {results.model}; "
        f"{results.texts:,} texts embedded; questions asked as of {TODAY:%Y-%m-%d}.",
        "",
        *(f"- **{method}**: {what}." for method, what in METHODS.items()),
        "- **heard**: full, where a question at which the search abstains counts as not found.",
    ]
    for half in ("held-out", "dev"):
        lines += ["", f"### All strata, {half}", ""]
        lines += _table(results, {name: (half, "", name) for name in MEASURES})
    for half in ("held-out", "dev"):
        for name in ("hit@1", "hit@5", "MRR@10"):
            lines += ["", f"### {name} by stratum, {half}", ""]
            strata = {stratum: (half, stratum, name) for stratum in _strata(results)}
            lines += _table(results, strata, count=True)
    lines += ["", "### Abstention of the full search", ""]
    lines += [
        "| half | no answer: abstained | with an answer: abstained all the same |",
        "|---|---:|---:|",
    ]
    for half in ("held-out", "dev"):
        wrong, right = _silence(results, half)
        lines.append(f"| {half} | {right:.0f} % | {wrong:.1f} % |")
    lines += ["", "### Differences of MRR@10 in points, 95 % paired bootstrap intervals", ""]
    lines += ["| pair | held-out | both halves |", "|---|---:|---:|"]
    for one, other in (("words", "FTS5"), ("fused", "words"), ("fused", "vectors"), ("fused", "RRF"), ("full", "fused"), ("full", "FTS5")):  # fmt: skip
        cells = (_difference(results, one, other, results.of(half)) for half in ("held-out", ""))
        lines.append(f"| {one} over {other} | {' | '.join(cells)} |")
    lines += ["", "### Against the better single list of each stratum, MRR@10, both halves", ""]
    lines += [
        "| stratum | better list | fused over it | full over it | within a point |",
        "|---|---|---:|---:|---|",
    ]
    for stratum in _strata(results):
        asked = results.of("", stratum)
        better, apart = _bar(results, asked)
        over = [_difference(results, method, better, asked) for method in apart]
        within = ", ".join("yes" if each >= -1 else "**no**" for each in apart.values())
        lines.append(f"| {stratum} | {better} | {' | '.join(over)} | {within} |")
    return "\n".join(lines)


def _short(results: Results) -> str:
    """What a reader in a hurry takes home."""
    held, by = results.of("held-out"), MEASURES["MRR@10"]
    scores = {m: f"{mean(results.score(m, held, by)):.1f}" for m in METHODS}
    first, five = (mean(results.score("full", held, MEASURES[m])) for m in ("hit@1", "hit@5"))
    short: dict[str, list[str]] = {"fused": [], "full": []}
    for stratum in _strata(results):
        for method, points in _bar(results, results.of("", stratum))[1].items():
            short[method] += [f"{stratum} ({points:+.1f})"] if points < -1 else []
    below = {method: ", ".join(names) or "no stratum" for method, names in short.items()}
    wrong, right = _silence(results, "held-out")
    return (
        f"**In short** (held-out, {len(held)} questions with an answer): MRR@10 {scores['full']} for the "
        f"whole search, {scores['fused']} for fusion alone, {scores['vectors']} by meaning alone, "
        f"{scores['words']} by words alone, {scores['FTS5']} for plain FTS5. The right note is first at "
        f"{first:.0f} % of the questions, among the first five at {five:.0f} %. More than a point below the "
        f"better single list (both halves): the whole search in {below['full']}; fusion alone in {below['fused']}. The search "
        f"abstains at {right:.0f} % of the questions without an answer, and at {wrong:.0f} % of those with one."
    )


def _table(
    results: Results, rows: dict[str, tuple[str, str, str]], count: bool = False
) -> list[str]:
    """One row for each (half, stratum, measure), a column for each method."""
    names = [*METHODS, "heard"]
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for name, (half, stratum, measure_) in rows.items():
        asked = results.of(half, stratum)
        cells = [mean(results.score(m, asked, MEASURES[measure_])) for m in METHODS]
        cells.append(mean(results.heard(asked, MEASURES[measure_])))
        label = f"{name} ({len(asked)})" if count else name
        lines.append(f"| {label} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    return lines


def _difference(results: Results, one: str, other: str, asked: list[Question]) -> str:
    by = MEASURES["MRR@10"]
    apart, low, high = interval(results.score(one, asked, by), results.score(other, asked, by))
    return f"{apart:+.1f} ({low:+.1f} to {high:+.1f})"


def main() -> int:
    """Measure, and put the figures into the report."""
    results = measure(lambda text: print(f"  ... {text}", file=sys.stderr, flush=True))
    begin, end = "<!-- quality -->", "<!-- /quality -->"
    head, mark, rest = REPORT.read_text().partition(begin)
    _, closing, tail = rest.partition(end)
    if not mark or not closing:
        print(f"{REPORT}: no {begin} ... {end}", file=sys.stderr)
        return 1
    REPORT.write_text(f"{head}{begin}\n{report(results)}\n{end}{tail}")
    print(f"written: {REPORT}")
    return 0
