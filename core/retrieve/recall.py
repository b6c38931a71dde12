"""Finding what is known for a question: pins, candidates, evidence, links, filters, one copy of a fact,
packing. Owns the order of these steps; the index and the scores are elsewhere.

Invariant: what is over, private to another scope or less trusted than asked for is in no answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from exo.core.base.clock import Clock
from exo.core.base.errors import ModelError, ServiceError
from exo.core.engine.reader import Reader
from exo.core.retrieve import when
from exo.core.retrieve.candidates import Candidate, Found, expand, gather, join
from exo.core.retrieve.document import TRUST, Embedder
from exo.core.retrieve.index import Index
from exo.core.retrieve.pack import Hit, pack, said
from exo.core.retrieve.words import READ, plain, sought

LEAST = 0.37  # score below which a hit has nothing to do with the question
STRONG, MOST = 0.9, 0.7  # score and cover of a belief that may answer by itself
WHOLE = 0.85  # cover of one that leads on to others: it may only name what the question is about
TIMELY = 0.2  # what a document of the time that the question speaks of gains
ONLY_TIME = 0.5  # and what it has when the question names nothing but the time
IN_TIME = 40  # documents of that time that are looked at
SLACK = 86_400_000  # ms: a day is written in one zone and read in another
Numbers = Sequence[float] | None  # a vector, if there is one
Triggers = Sequence[tuple[str, str]]  # (text, node id)
LONGEST = 1200  # characters of a hit's text


@dataclass(frozen=True)
class Recalled:
    """`abstain`: nothing here has to do with the question; `strong`: the first hit is a belief of the
    person that covers it; `answer` is what answers it by itself; `ours`: it is about somebody or something
    that is known; `block` is for a prompt, `tokens` long, and empty when `abstain`."""

    hits: list[Hit] = field(default_factory=list)
    abstain: bool = True
    tokens: int = 0
    block: str = ""
    strong: bool = False
    answer: Hit | None = None
    ours: bool = False


class Recall:
    """Searches one index. For one thread."""

    def __init__(self, index: Index, clock: Clock) -> None:
        self._index = index
        self._clock = clock

    def search(
        self,
        query: str,
        *,
        k: int = 8,
        embedder: Embedder | None = None,
        vector: Numbers = None,
        at: str = "",
        min_trust: str = "",
        triggers: Triggers = (),
        scope: str = "principal",
        budget: int = 600,
        reader: Reader | None = None,
    ) -> Recalled:
        """The `k` best hits for any text. `at` answers as of then (a date: its end; a time), `triggers` are
        (text, node id), `budget` is the tokens of the block. A model that is away or slow costs the
        nearness of meaning, nothing else; a damaged index is begun again and finds nothing. Raises
        ExoError for a time that is none."""
        clock = self._clock
        index = self._index
        now = when.moment(at, clock) if at else clock.now_ms()
        span = when.window(query, clock, now)
        past = not at and (when.about_past(query) or bool(span and span[1] <= now))
        trusted = TRUST[TRUST.index(min_trust) :] if min_trust in TRUST else TRUST

        def known(each: Candidate) -> bool:
            return when.begun(each.document, clock) <= (now if at else now + SLACK)

        def fits(each: Candidate) -> bool:
            document = each.document
            shown = document.trust in trusted and (scope == "principal" or not document.private)
            return shown and (known(each) or not at) and (past or when.holds(document, now, clock))

        with index.mending():
            found = gather(index, query, self._vector(query, embedder, vector))
            if span:
                _timely(index, found, span, clock)
            _pin(index, found, query, triggers)
            shown = expand(index, found, fits, known, keep_old=past)
            shown.sort(key=lambda each: (not each.pinned, -each.score))
            recalled = _answer(_hits(shown, k), shown[0] if shown else None, budget)
            chosen = reader.choose(query, shown) if reader else None
            first = _hits([chosen], 1)[0] if chosen else None
            return replace(
                recalled, answer=first, ours=bool(reader and reader.concerns(query, shown))
            )
        return Recalled()

    def _vector(self, query: str, embedder: Embedder | None, vector: Numbers) -> Numbers:
        name, width = self._index.model()
        try:
            if vector is None and embedder and width and query.strip() and embedder.name == name:
                (vector,) = embedder.embed([query[:READ]])
        except (ModelError, ServiceError):
            return None
        return vector if vector is not None and len(vector) == width else None


def _hits(shown: Sequence[Candidate], k: int) -> list[Hit]:
    """The first `k` that do not say what another has said."""
    hits: dict[tuple[str, ...], Hit] = {}
    for each in shown:
        document = each.document
        text = document.body.strip() or document.summary
        hit = Hit(
            id=document.id,
            kind=document.kind,
            title=document.title,
            score=round(min(1.0, each.score), 4),
            found_by=["pin"] * each.pinned + sorted(each.found_by),
            trust=document.trust,
            text=text if each.pinned or len(text) <= LONGEST else (each.piece or text)[:LONGEST],
            summary=document.summary,
            url=document.url,
            ts=document.ts,
        )
        # of a belief and a note that say one thing, the belief: it is what has evidence
        if (kept := hits.get(said(hit))) and (kept.kind == "node" or hit.kind != "node"):
            continue
        if kept or len(hits) < k:
            hits[said(hit)] = hit
    return list(hits.values())


def _answer(hits: list[Hit], best: Candidate | None, budget: int) -> Recalled:
    if best is None or all(hit.score < LEAST for hit in hits):
        return Recalled(hits)
    block, tokens = pack([hit for hit in hits if hit.score >= LEAST / 2], budget)
    document = best.document
    belief = document.kind == "node" and document.trust in TRUST[2:] and not best.pinned
    leads_on = any(type_ != "supersedes" for type_, _ in document.links)
    sure = best.score >= STRONG and best.cover >= (WHOLE if leads_on else MOST)
    return Recalled(hits, False, tokens, block, belief and sure)


def _pin(index: Index, found: Found, query: str, triggers: Triggers) -> None:
    """Add the nodes whose trigger stands in the query, whole words in a row."""
    said = f" {' '.join(plain(query[:READ]))} "
    spoken = [(f" {' '.join(plain(text))} ", node) for text, node in triggers]
    wanted = [node for words, node in spoken if words.strip() and words in said]
    rows = index.database.rows(
        "SELECT n FROM documents WHERE id IN (SELECT value FROM json_each(?))", json.dumps(wanted)
    )
    for each in join(index, found, [n for (n,) in rows]):
        each.score = 1.0
        each.pinned = True


def _timely(index: Index, found: Found, span: when.Span, clock: Clock) -> None:
    """Raise the documents of the time that the question speaks of; add some that share no word with it."""
    start, end, rest = span
    least = TIMELY if sought(rest) else ONLY_TIME
    query = "SELECT n FROM documents WHERE ts >= ? AND ts < ? ORDER BY ts DESC LIMIT ?"
    join(index, found, [n for (n,) in index.database.rows(query, start, end, IN_TIME)])
    for each in found.values():
        document = each.document
        if any(start <= ts < end for ts in (document.ts, when.begun(document, clock))):
            each.score = max(least, each.score + TIMELY)
            each.found_by.add("time")
