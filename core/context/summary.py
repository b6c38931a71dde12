"""Turns a part of a conversation into a short text: a model's gist, checked, beside what rules lifted out
letter for letter. Owns the prompt and the checks; knows nothing of trees and lanes.

Invariant: the text fits its room and holds no secret, whatever the model says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from exo.core.context import extract
from exo.core.context.builder import shorten
from exo.core.context.extract import Digest
from exo.core.context.redact import redact
from exo.core.protocol.schema import Message
from exo.core.router.model import Model, Request, words

By = Literal["model", "rules", "stopgap"]
NAMES = {"user": "Person", "assistant": "Exo", "tool": "Tool"}
OPENING, CLOSING = "<conversation>", "</conversation>"
SHARED = 0.5  # of a sentence's longer words must come from the source
REPEATED = 0.3  # of all runs of four words may be repetitions


def of_messages(messages: Sequence[Message], tokens: int) -> tuple[str, Digest]:
    """(what a model is given of messages, in about `tokens`; what rules lift out of them)."""
    share = max(32, tokens // max(1, len(messages)))
    lines = [f"{NAMES[each.role]}: {shorten(extract.plain(each), share)}" for each in messages]
    return "\n".join(lines), extract.digest(messages)


def of_pair(older: str, newer: str) -> tuple[str, Digest]:
    """The same of two neighbouring summaries."""
    facts = extract.join(extract.parse(older), extract.parse(newer))
    return f"First: {older}\nThen: {newer}", facts


class Summariser:
    """Asks the aux role."""

    def __init__(self, model: Model, measure: Callable[[str], int]) -> None:
        self._model = model
        self._measure = measure
        self._prompt = (Path(__file__).with_name("prompts") / "summary.md").read_text().strip()

    def rules(self, digest: Digest, room: int) -> str:
        """The digest's text in at most `room` tokens."""
        size = room * 5
        while True:
            text = redact(digest.text(size))
            if self._measure(text) <= room or size < 40:
                return shorten(text, room, self._measure)
            size = size * 7 // 8

    async def write(self, source: str, facts: Digest, room: int) -> tuple[str, By]:
        """(summary in at most `room` tokens, who wrote it). Raises ModelError."""
        source = redact(source).replace(CLOSING, "")
        reply = await self._ask(source, room)
        gist = check(reply, source)
        if not gist:
            return self.rules(facts, room), "rules"
        facts = replace(facts, prose=gist)
        return self.rules(facts, room), "model"

    async def _ask(self, source: str, room: int) -> str:
        text = f"{OPENING}\n{source}\n{CLOSING}\nWrite its memory now."
        request = Request(
            [{"role": "system", "content": self._prompt}, {"role": "user", "content": text}],
            max_tokens=room,
            cache_key="summaries",
            priority="aux",
            temperature=0.0,
        )
        return await words(self._model, "aux", request)


def check(gist: str, source: str) -> str:
    """The sentences of a model's summary that can be trusted: none when it is empty, loops or is longer
    than its source; without those that name values or speak of things which the source does not."""
    gist = redact(" ".join(gist.replace(OPENING, "").split()))
    if not gist or len(gist) >= len(source) or _loops(gist):
        return ""
    known = set(_long_words(source))
    kept = []
    for sentence in dict.fromkeys(re.split(r"(?<=[.!?。])\s+", gist)):
        longer = _long_words(sentence)
        told = sum(word in known for word in longer)
        if not longer or told < SHARED * len(longer):
            continue
        if all(each in source for each in extract.facts(sentence)):
            kept.append(sentence)
    return " ".join(kept)


def _loops(text: str) -> bool:
    row = text.lower().split()
    runs = Counter(tuple(row[n : n + 4]) for n in range(len(row) - 3))
    if not runs:
        return False
    return 1 - len(runs) / runs.total() > REPEATED


def _long_words(text: str) -> list[str]:
    found: list[str] = re.findall(r"[^\W\d_]{4,}", text.lower())
    return found or re.findall(r"[^\W\d_]", text)
