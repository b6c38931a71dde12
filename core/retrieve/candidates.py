"""Two ranked lists, one by words and one by meaning, made into one, and what the best of it lead to: what
replaced a belief, what speaks against it, what stands beside it. Owns which terms are looked for, the
evidence that a document answers, the score made of it and of links; README.md says how its numbers were found.

Invariants: a score is made of the evidence alone, so that scores of different questions compare; of two
beliefs of which one replaces the other, the newer one stands first, whatever they scored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import accumulate

from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index, cut, load, texts_of
from exo.core.retrieve.vectors import cosine, unit
from exo.core.retrieve.words import DATA, expression, near, plain, sought, terms, tongue

DEPTH = 32  # parts of each list
POSTINGS = 12_000  # entries of the keyword index read for one question, those of the rarest terms
SOUGHT, MENDED = 32, 3  # terms of a question: those looked for, the rarest; unknown ones mended
SLIP = 0.8  # what a near term counts of the one that was meant
# evidence = cosine + COVER * cover^3 * (1 + RANKED * its share of the best BM25)
COVER = 1.2
RANKED = 0.8
UNSEEN = 0.5  # cosine of a text without a vector, for each unit of cover
FOREIGN = 0.15  # what a cosine counts between two languages of which the model knows one
MIDDLE, STEEP = 0.5, 5.0  # score = logistic(STEEP * (evidence - MIDDLE))
# part, its place in the document, number of its vector, codes, document, data
_PARTS = """SELECT p.n, p.n - (SELECT min(n) FROM parts WHERE document = d.n), v.n, v.codes, d.n, d.data
    FROM parts AS p JOIN documents AS d ON d.n = p.document LEFT JOIN vectors AS v ON v.hash = p.hash
    WHERE p.n IN (SELECT value FROM json_each(?1) UNION SELECT o.n FROM vectors AS w
    JOIN parts AS o ON o.hash = w.hash WHERE w.n IN (SELECT value FROM json_each(?2)))"""
PRIOR = 1.5  # of the odds: a node's over an item's
BEST = 8  # nodes from which links are walked
SHARE = {"contradicts": 0.9, "explains": 0.5, "evidence-for": 0.5, "applies-to": 0.5}
SHARE |= {"part-of": 0.4, "instance-of": 0.4, "derived-from": 0.4, "see-also": 0.3}
_LINKS = """SELECT l.source, l.type, t.n FROM links AS l JOIN documents AS t ON t.id = l.target
    WHERE l.type <> 'supersedes' AND l.source IN (SELECT value FROM json_each(?1))
    UNION SELECT l.source, l.type, t.n FROM documents AS t JOIN links AS l ON l.target = t.id
    WHERE l.type = 'contradicts' AND t.n IN (SELECT value FROM json_each(?1))"""
# what replaced the documents, what replaced that, and so on, nearest first
_NEWER = """WITH RECURSIVE pair (newer, older) AS (
    SELECT l.source, d.n FROM documents AS d JOIN links AS l ON l.target = d.id
    WHERE l.type = 'supersedes' AND l.source <> d.n AND d.n IN (SELECT value FROM json_each(?))
    UNION SELECT l.source, d.n FROM pair JOIN documents AS d ON d.n = pair.newer
    JOIN links AS l ON l.target = d.id WHERE l.type = 'supersedes' AND l.source <> d.n)
    SELECT newer, older FROM pair"""


@dataclass
class Candidate:
    """A document and how far it answers: `score` is 0 to 1, `piece` the part of its body that answers best,
    `cover` the share of the question's words in that."""

    number: int
    document: Document
    piece: str = ""
    cover: float = 0.0
    score: float = 0.0
    pinned: bool = False
    found_by: set[str] = field(default_factory=set)


Found = dict[int, Candidate]  # by number
Test = Callable[[Candidate], bool]


class Question:
    """The terms of a question, weighed by how rare they are in the index, and near ones of those that are
    unknown there."""

    def __init__(self, index: Index, query: str) -> None:
        self.tongue = tongue(plain(query))
        wanted = sought(query)
        (total,) = index.database.rows("SELECT count(*) FROM parts")[0]
        query = "SELECT term, parts FROM terms WHERE term IN (SELECT value FROM json_each(?))"
        known: dict[str, int] = dict(index.database.rows(query, json.dumps(wanted)))
        weigh = {term: math.log(1 + (total + 0.5) / (known.get(term, 0) + 0.5)) for term in wanted}
        self.weights = dict(sorted(weigh.items(), key=lambda each: -each[1])[:SOUGHT])
        self._known = known
        unknown = [term for term in self.weights if term not in known and len(term) > 3]
        self._instead = {term: _near(index, term) for term in unknown[:MENDED]}
        self._whole = sum(self.weights.values()) or 1.0

    def expression(self) -> str:
        """For FTS5; "" when nothing is looked for."""
        read = accumulate(self._known.get(term, 0) for term in self.weights)
        rare = [term for term, sum_ in zip(self.weights, read, strict=True) if sum_ <= POSTINGS]
        wanted = rare or list(self.weights)[:1]
        return expression(each for term in wanted for each in (term, *self._instead.get(term, ())))

    def cover(self, words: Iterable[str]) -> float:
        """The share of the terms, by weight, that a text of these words has: 0 to 1."""
        having = set(terms(words))
        got = 0.0
        for term, weight in self.weights.items():
            if term in having:
                got += weight
            elif not having.isdisjoint(self._instead.get(term, ())):
                got += weight * SLIP
        return got / self._whole


def _near(index: Index, term: str) -> list[str]:
    """Up to three terms of the index that `term` may be a slip of. The first two letters may be swapped."""
    most = 1 if len(term) < 6 else 2
    found: list[str] = []
    for first in dict.fromkeys(term[:2]):
        rows = index.database.rows(
            "SELECT term FROM terms WHERE term >= ?1 AND term < ?1 || char(1114111)"
            " AND length(term) BETWEEN ?2 AND ?3 AND parts <= ?4 LIMIT 20000",
            *(first, len(term) - most, len(term) + most, POSTINGS),
        )
        found += near(term, (other for (other,) in rows), most)
    return found[:3]


def gather(index: Index, query: str, vector: Sequence[float] | None) -> Found:
    """The best documents of both lists with their evidence. `vector` is the question's, None
    where there is none."""
    question = Question(index, query)
    by_words: dict[int, float] = {}
    if match := question.expression():
        found = "SELECT rowid, -rank FROM search WHERE search MATCH ? ORDER BY rank LIMIT ?"
        by_words = dict(index.database.rows(found, match, DEPTH))
    asked = unit(vector or ())
    by_meaning = index.vectors.nearest(asked, DEPTH) if vector else {}
    top = max(by_words.values(), default=0.0) or 1.0
    narrow = index.model()[0] in DATA["models"]["english"]
    best: Found = {}
    keys = json.dumps(list(by_words)), json.dumps(list(by_meaning))
    for part, place, text, codes, number, data in index.database.rows(_PARTS, *keys):
        candidate = best[number] = best.get(number) or Candidate(number, load(data))
        piece = cut(candidate.document.body)[place]
        words = plain("\n".join(texts_of(candidate.document, piece)))
        cover = question.cover(words)
        nearness = UNSEEN * cover
        if vector and codes and len(codes) == len(vector):
            nearness = by_meaning[text] if text in by_meaning else cosine(asked, codes)
            other = narrow and question.tongue and tongue(words) not in ("", question.tongue)
            nearness *= FOREIGN if other else 1.0
        lists = {"bm25": part in by_words, "vector": text in by_meaning}
        candidate.found_by |= {name for name, there in lists.items() if there}
        rank = 1 + RANKED * by_words.get(part, 0.0) / top
        evidence = nearness + COVER * cover**3 * rank
        odds = math.exp(STEEP * (evidence - MIDDLE))
        odds *= PRIOR if candidate.document.kind == "node" else 1.0
        if (score := odds / (1 + odds)) > candidate.score:
            candidate.score = score
            candidate.piece = piece
            candidate.cover = cover
    return best


def join(index: Index, found: Found, numbers: Sequence[int]) -> list[Candidate]:
    """The documents of these numbers; those that were not found are added, without evidence."""
    query = "SELECT n, data FROM documents WHERE n IN (SELECT value FROM json_each(?))"
    fresh = [n for n in numbers if n not in found]
    found |= {
        n: Candidate(n, load(data)) for n, data in index.database.rows(query, json.dumps(fresh))
    }
    return [found[n] for n in numbers]


def expand(index: Index, there: Found, fits: Test, known: Test, keep_old: bool) -> list[Candidate]:
    """What of `there` may be shown (`fits`), with what the best of them lead to. A belief makes room for
    the one that replaced it, if that is `known` by then; with `keep_old` it stays, behind it."""
    nodes = (each for each in there.values() if each.document.kind == "node" and fits(each))
    top = nlargest(BEST, nodes, key=lambda each: each.score)
    best = {each.number: each.score for each in top}
    links = index.database.rows(_LINKS, json.dumps(list(best)))
    join(index, there, [n for source, _, target in links for n in (source, target)])
    for source, type_, target in links:
        share = SHARE.get(type_, 0.3)
        _raise(there[target], best.get(source, 0.0) * share)
        if type_ == "contradicts":
            _raise(there[source], best.get(target, 0.0) * share)
    _correct(index, there, known, keep_old)
    return [each for each in there.values() if each.score > 0 and fits(each)]


def _correct(index: Index, there: Found, known: Test, keep_old: bool) -> None:
    pairs = index.database.rows(_NEWER, json.dumps(list(there)))
    join(index, there, [newer for newer, _ in pairs])
    steps = [(there[newer], there[older]) for newer, older in pairs]
    for newer, older in steps:
        if known(newer):
            _raise(newer, older.score)
            newer.pinned |= older.pinned
    for newer, older in reversed(steps):
        first, second = (newer, older) if known(newer) else (older, newer)
        second.score = min(second.score, first.score - 1e-4)
        if second is older and not keep_old:
            there.pop(older.number, None)


def _raise(candidate: Candidate, score: float) -> None:
    if score > candidate.score:
        candidate.score = score
        candidate.found_by.add("link")
