"""One link further: what replaced a belief, what speaks against it, what stands beside it.

Invariant: of two beliefs of which one replaces the other, the newer one stands first, whatever they scored."""

from __future__ import annotations

import json
from collections.abc import Callable
from heapq import nlargest

from exo.core.retrieve.candidates import Candidate, Found, join
from exo.core.retrieve.index import Index

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
Test = Callable[[Candidate], bool]


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
