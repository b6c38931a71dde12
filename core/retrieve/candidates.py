"""Two ranked lists, one by words and one by meaning, made into one. Owns which terms are looked for, the
evidence that a document answers and the score made of it.

Invariant: a score is made of the evidence alone, so that scores of different questions compare."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index, load
from exo.core.retrieve.vectors import unit
from exo.core.retrieve.words import expression, near, sought, terms

DEPTH = 80  # parts of each list
LOOKED_AT = 60  # documents of which the evidence is weighed
COMMON = (
    0.2  # of all parts: a term that stands in more is looked for only when no rarer one is there
)
RANKS = 60  # the constant of reciprocal rank fusion
PRIOR = 1.5  # of a node's rank over an item's
WORDS = 48  # terms of a question that are looked for: the rarest
TYPOS = 3  # unknown words for which near ones are sought


@dataclass
class Candidate:
    """A document with the evidence for it: `cover` is the share of the question's terms that it has, by
    weight, and `cosine` the nearness of its best part; `part` is that part's place in the document."""

    number: int
    document: Document
    part: int = 0
    cover: float = 0.0
    cosine: float = 0.0
    score: float = 0.0
    found_by: list[str] = field(default_factory=list)


@dataclass
class Question:
    """What is looked for: the weight of every term, and for an unknown term the near ones instead."""

    weights: dict[str, float]
    instead: dict[str, list[str]]
    common: set[str]

    def expression(self) -> str:
        chosen = sorted(self.weights.keys() - self.common, key=lambda term: -self.weights[term])
        wanted = chosen[:WORDS] or sorted(self.common)
        return expression([each for term in wanted for each in self.instead.get(term, [term])])

    def cover(self, having: set[str]) -> float:
        whole = sum(self.weights.values())
        got = sum(
            weight * (1.0 if term in having else 0.8)
            for term, weight in self.weights.items()
            if term in having or any(each in having for each in self.instead.get(term, ()))
        )
        return got / whole if whole else 0.0


def ask(index: Index, query: str) -> Question:
    """Weigh the terms of `query` by how rare they are here."""
    words = sought(query)
    (total,) = index.database.rows("SELECT count(*) FROM parts")[0]
    rows = index.database.rows(
        "SELECT term, parts FROM terms WHERE term IN (SELECT value FROM json_each(?))",
        json.dumps(list(words)),
    )
    known = dict(rows)
    weights = {term: math.log(1 + (total + 0.5) / (known.get(term, 0) + 0.5)) for term in words}
    common = {term for term, count in known.items() if total > 50 and count > COMMON * total}
    instead = {}
    for term in [term for term in words if term not in known and len(term) > 3][:TYPOS]:
        if found := _near(index, term):
            instead[term] = found
    return Question(weights, instead, common)


def _near(index: Index, term: str) -> list[str]:
    """Up to three terms of the index that `term` may be a slip of."""
    most = 1 if len(term) < 7 else 2
    beginnings = {term[0], term[1]}  # the first two letters may be swapped
    found: list[str] = []
    for first in beginnings:
        rows = index.database.rows(
            "SELECT term FROM terms WHERE term >= ?1 AND term < ?1 || char(1114111)"
            " AND length(term) BETWEEN ?2 AND ?3 LIMIT 20000",
            *(first, len(term) - most, len(term) + most),
        )
        found += near(term, (each for (each,) in rows), most)
    return found[:3]


def gather(index: Index, question: Question, vector: Sequence[float] | None) -> list[Candidate]:
    """The best documents of both lists, with their evidence, in no order."""
    by_words: dict[int, int] = {}  # part -> rank
    if match := question.expression():
        query = "SELECT rowid FROM search WHERE search MATCH ? ORDER BY rank LIMIT ?"
        by_words = {
            part: rank for rank, (part,) in enumerate(index.database.rows(query, match, DEPTH))
        }
    cosines: dict[int, float] = {}  # part -> cosine
    if vector is not None:
        query_vector = unit(vector)
        cosines = _by_meaning(index, query_vector)
        missing = _vectors_of(index, [part for part in by_words if part not in cosines])
        measured = index.vectors.measure(query_vector, list(missing.values()))
        more = {part: measured[n] for part, n in missing.items() if n in measured}
    order = sorted(cosines, key=lambda part: -cosines[part])
    by_meaning = {part: rank for rank, part in enumerate(order)}
    if vector is not None:
        cosines |= more
    return _weigh(index, question, by_words, by_meaning, cosines)


def _by_meaning(index: Index, vector: list[float]) -> dict[int, float]:
    near_ones = index.vectors.nearest(vector)
    best = sorted(near_ones, key=lambda n: -near_ones[n])[:DEPTH]
    rows = index.database.rows(
        "SELECT p.n, v.n FROM vectors AS v JOIN parts AS p ON p.hash = v.hash"
        " WHERE v.n IN (SELECT value FROM json_each(?))",
        json.dumps(best),
    )
    return {part: near_ones[n] for part, n in rows}


def _vectors_of(index: Index, parts: list[int]) -> dict[int, int]:
    rows = index.database.rows(
        "SELECT p.n, v.n FROM parts AS p JOIN vectors AS v ON v.hash = p.hash"
        " WHERE p.n IN (SELECT value FROM json_each(?))",
        json.dumps(parts),
    )
    return dict(rows)


def _weigh(
    index: Index,
    question: Question,
    by_words: dict[int, int],
    by_meaning: dict[int, int],
    cosines: dict[int, float],
) -> list[Candidate]:
    owners: dict[int, list[int]] = {}  # document -> its parts, the best first
    fused = {
        part: sum(1 / (RANKS + ranks[part]) for ranks in (by_words, by_meaning) if part in ranks)
        for part in by_words.keys() | by_meaning.keys()
    }
    rows = index.database.rows(
        "SELECT n, document FROM parts WHERE n IN (SELECT value FROM json_each(?))",
        json.dumps(list(fused)),
    )
    for part, number in sorted(rows, key=lambda row: -fused[row[0]]):
        owners.setdefault(number, []).append(part)
    out = []
    for candidate in fetch(index, list(owners)[:LOOKED_AT]):
        parts = owners[candidate.number]
        candidate.cosine = max(cosines.get(part, 0.0) for part in parts)
        candidate.cover = question.cover(_terms(candidate.document))
        candidate.part = parts[0]
        candidate.found_by = [
            name
            for name, ranks in (("bm25", by_words), ("vector", by_meaning))
            if any(part in ranks for part in parts)
        ]
        candidate.score = score(candidate)
        out.append(candidate)
    return out


def fetch(index: Index, numbers: Sequence[int]) -> list[Candidate]:
    """Documents by number, without evidence."""
    rows = index.database.rows(
        "SELECT n, data FROM documents WHERE n IN (SELECT value FROM json_each(?))",
        json.dumps(list(numbers)),
    )
    return [Candidate(n, load(data)) for n, data in rows]


def score(candidate: Candidate) -> float:
    """0 to 1: how sure it is that the document has to do with the question."""
    meaning = min(1.0, max(0.0, (candidate.cosine - 0.15) / 0.6))
    return 1 - (1 - 0.9 * math.pow(candidate.cover, 1.5)) * (1 - 0.95 * meaning)


def _terms(document: Document) -> set[str]:
    return set(
        terms(
            "\n".join(
                (document.title, document.summary, document.load_when, document.tags, document.body)
            )
        )
    )
