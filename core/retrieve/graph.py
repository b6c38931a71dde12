"""One link further: what replaced a belief, what speaks against it, what stands beside it.

Invariant: of two beliefs of which one replaces the other, the newer one stands first, whatever they scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from exo.core.retrieve.candidates import Candidate, fetch
from exo.core.retrieve.index import Index

BEST = 8  # nodes from which links are walked
SHARE = {"contradicts": 0.9, "explains": 0.5, "evidence-for": 0.5, "applies-to": 0.5}
SHARE |= {"part-of": 0.4, "instance-of": 0.4, "derived-from": 0.4, "see-also": 0.3}
STEPS = 16  # corrections of corrections
Test = Callable[[Candidate], bool]


def expand(
    index: Index, found: list[Candidate], fits: Test, known: Test, keep_old: bool
) -> list[Candidate]:
    """What of `found` may be shown (`fits`), with what the best of them lead to. A belief makes room for
    the one that replaced it, if that is `known` by then; with `keep_old` it stays, behind it."""
    there = {each.number: each for each in found}
    nodes = sorted(
        (each for each in found if each.document.kind == "node" and fits(each)),
        key=lambda each: -each.score,
    )
    best = {each.number: each.score for each in nodes[:BEST]}
    links = _links(index, list(best))
    _join(index, there, [n for source, _, target in links for n in (source, target)])
    for source, type_, target in links:
        share = SHARE.get(type_, 0.3)
        _raise(there[target], best.get(source, 0.0) * share)
        if type_ == "contradicts":
            _raise(there[source], best.get(target, 0.0) * share)
    _correct(index, there, known, keep_old)
    return [each for each in there.values() if each.score > 0 and fits(each)]


def _correct(index: Index, there: dict[int, Candidate], known: Test, keep_old: bool) -> None:
    frontier, pairs = set(there), []
    for _ in range(STEPS):
        steps = [(newer, older) for newer, older in _successors(index, frontier) if newer != older]
        _join(index, there, [newer for newer, _ in steps])
        for newer, older in steps:
            if not known(there[newer]):  # not yet in force
                there[newer].score = min(there[newer].score, there[older].score - 1e-4)
        steps = [(newer, older) for newer, older in steps if known(there[newer])]
        for newer, older in steps:
            _raise(there[newer], there[older].score)
            there[newer].pinned |= there[older].pinned
        pairs += steps
        frontier = {newer for newer, _ in steps}
        if not frontier:
            break
    for newer, older in reversed(pairs):
        there[older].score = min(there[older].score, there[newer].score - 1e-4)
    for older in set() if keep_old else {older for _, older in pairs}:
        there.pop(older, None)


def _raise(candidate: Candidate, score: float) -> None:
    if score > candidate.score:
        candidate.score = score
        if "link" not in candidate.found_by:
            candidate.found_by.append("link")


def _join(index: Index, there: dict[int, Candidate], numbers: Iterable[int]) -> None:
    fresh = [n for n in dict.fromkeys(numbers) if n not in there]
    there.update((each.number, each) for each in fetch(index, fresh))


def _successors(index: Index, numbers: Iterable[int]) -> list[tuple[int, int]]:
    return index.database.rows(
        "SELECT l.source, d.n FROM documents AS d JOIN links AS l ON l.target = d.id"
        " WHERE l.type = 'supersedes' AND d.n IN (SELECT value FROM json_each(?))",
        json.dumps(list(numbers)),
    )


def _links(index: Index, numbers: list[int]) -> list[tuple[int, str, int]]:
    """Links from or to the documents, supersedes apart."""
    return index.database.rows(
        "SELECT l.source, l.type, t.n FROM links AS l JOIN documents AS t ON t.id = l.target"
        " WHERE l.type <> 'supersedes' AND l.source IN (SELECT value FROM json_each(?1))"
        " UNION SELECT l.source, l.type, t.n FROM documents AS t JOIN links AS l ON l.target = t.id"
        " WHERE l.type = 'contradicts' AND t.n IN (SELECT value FROM json_each(?1))",
        json.dumps(numbers),
    )
