"""What the person's next words say of a decision: that it was right, wrong, or what it should have been. Owns which words
and which order of turns are such a signal; pure, over entries of the record.

Invariant: a signal follows from what the person themselves said, by a channel of their own; never from the words of a tool,
a task or a model. Read twice, the same record gives the same signals."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from exo.core.ledger.entry import Entry
from exo.core.retrieve.words import sought
from exo.core.store.words import trust_of
from exo.tools.assistant import rules
from exo.tools.assistant.tongue import NAMES, fold, language

KINDS = ("utterance", "decision", "action", "outcome", "verdict")
TOOL = "verdict"  # of the rules for words that judge the turn before
KIND, CORRECTION = "request.kind", "said.correction"
# how much a signal weighs, per million
STATED, CORRECTED, REJECTED, CAME_OUT, ACCEPTED = 800_000, 600_000, 400_000, 400_000, 300_000
SOON_MS = 120_000  # within which other words for the same are a second try
LATER_MS = 600_000  # within which thanks are for the answer before
ALIKE = 2  # words that a second try shares with the first, and half of the fewer


@dataclass
class Told:
    """A turn as the record has it; `decisions` by mechanism, `end` is the body of its end."""

    said: Entry
    decisions: dict[str, Entry] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    acted: bool = False
    failed: bool = False
    undone: bool = False

    @property
    def text(self) -> str:
        return str((self.said.body or {}).get("text", ""))

    @property
    def own(self) -> bool:
        """Whether the person said it."""
        return trust_of(str((self.said.body or {}).get("channel", ""))) == "self"

    @property
    def known(self) -> bool:
        """Whether it was answered by what is known, without a model and without a tool."""
        return (
            self.end.get("kind") == "question"
            and self.end.get("model") is False
            and not self.acted
            and bool(self.end.get("text"))
        )


@dataclass(frozen=True)
class Signal:
    """A verdict to be: on the decision `on`, or on the whole turn of that utterance where `mechanism` is ""; `because` is
    the entry of the words that say so."""

    on: Entry
    because: Entry
    verdict: str  # accept, reject, should_have_been
    mechanism: str
    answer: str
    via: str
    strength: int

    def body(self) -> dict[str, Any]:
        """The body of its entry; ids and names, no text."""
        about = self.on.body or {}
        told = {"session": about.get("session", ""), "turn": about.get("turn", "")}
        told |= {"verdict": self.verdict, "via": self.via, "strength": self.strength}
        told |= {"mechanism": self.mechanism} if self.mechanism else {}
        return told | ({"answer": self.answer} if self.answer else {})


def turns(entries: Sequence[Entry], session: str) -> list[Told]:
    """The turns of a session, in the order in which they were said."""
    found: dict[str, Told] = {}
    for entry in entries:
        body = entry.body or {}
        if body.get("session") != session or not body.get("turn"):
            continue
        turn = str(body["turn"])
        if entry.kind == "utterance":
            found.setdefault(turn, Told(entry))  # what was slipped in later is of the same turn
        elif told := found.get(turn):
            if entry.kind == "decision":
                told.decisions[str(body.get("mechanism"))] = entry
            elif entry.kind == "action":
                told.acted = True
            elif entry.kind == "verdict":
                told.undone |= body.get("via") == "undo"
            elif "stop_reason" in body:
                told.end = body
            else:
                told.failed |= body.get("ok") is False
    return list(found.values())


def signals(told: Sequence[Told]) -> Iterator[Signal]:
    """What each of these turns says of the one before it."""
    before: Told | None = None
    for now in told:
        if now.undone:
            continue
        said = judged(now.text) if now.acted else None
        if said is None and not now.end:
            continue  # it has only just been said: what it is shows in what comes of it
        if before is not None and now.own and before.own:
            yield from _stated(before, now, said) if said is not None else _implied(before, now)
        if said is None:  # what judged it is not judged itself
            before = now


def judged(text: str) -> str | None:
    """What the turn before should have been by these words ("": something else), None where they do not judge it."""
    line = " ".join(text.split())
    if len(line) <= rules.LONGEST:
        for name in NAMES:
            found = rules.command(line, language(name), datetime.datetime.now(datetime.UTC))
            if found is not None:
                named = [args for tool, args in found.calls if tool == TOOL]
                return str(named[0].get("answer", "")) if named else None
    return None


def says(form: str, text: str) -> bool:
    """Whether `text` is one of the forms `corrects` or `thanks` of a language."""
    line = fold(" ".join(text.split()))
    return any(re.match(language(name).data["signals"][form], line) for name in NAMES)


def _stated(before: Told, now: Told, answer: str) -> Iterator[Signal]:
    """The person says what it was, or that it was wrong."""
    decision = before.decisions.get(KIND)
    if answer and decision:
        yield _should(decision, now, KIND, answer, "words", STATED)
    elif decision and before.known and _said(decision) == "question":
        yield Signal(decision, now.said, "reject", KIND, "", "words", REJECTED)
    else:  # rules took it, or a model worded the answer: it is the turn that was wrong
        verdict = "should_have_been" if answer else "reject"
        strength = STATED if answer else REJECTED
        yield Signal(before.said, now.said, verdict, "", answer, "words", strength)


def _implied(before: Told, now: Told) -> Iterator[Signal]:
    decision, passed = before.decisions.get(KIND), now.said.ts - before.said.ts
    if before.end.get("text") and says("corrects", now.text):
        if decision and before.known and _said(decision) == "question":
            yield Signal(decision, now.said, "reject", KIND, "", "correction", CORRECTED)
        if own := now.decisions.get(CORRECTION):
            yield _should(own, now, CORRECTION, "correction", "correction", CORRECTED)
    elif decision is None:
        return
    elif before.known and passed <= LATER_MS and says("thanks", now.text):
        yield _should(decision, now, KIND, "question", "thanks", ACCEPTED)
    elif _tried_again(before, now) and passed <= SOON_MS:
        yield _should(decision, now, KIND, "command", "rephrased", CAME_OUT)


def _should(
    decision: Entry, now: Told, mechanism: str, answer: str, via: str, strength: int
) -> Signal:
    """`answer` is right: an accept where the decision said so too."""
    if _said(decision) == answer:
        return Signal(decision, now.said, "accept", mechanism, "", via, strength)
    return Signal(decision, now.said, "should_have_been", mechanism, answer, via, strength)


def _said(decision: Entry) -> str:
    return str((decision.body or {}).get("answer", ""))


def _tried_again(before: Told, now: Told) -> bool:
    """Whether what no rule took was said again in words that one took as a command."""
    if before.acted or before.end.get("kind") != "chat" or now.end.get("kind") != "command":
        return False
    first, second = set(sought(before.text)), set(sought(now.text))
    shared = len(first & second)
    done = now.acted and not now.failed
    return done and shared >= max(ALIKE, min(len(first), len(second)) / 2)
