"""The authored retrieval set: well-formed, and what its strata promise is so."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from exo.core.retrieve.document import TRUST, Document
from exo.tools.benches.distractors import COUNT, distractors

FOLDER = Path(__file__).parents[2] / "tools" / "benches" / "quality"
STRATA = {
    "exact",
    "paraphrase",
    "temporal",
    "cross-language",
    "late",
    "near-duplicate",
    "alias",
    "typo",
    "link-following",
    "no-answer",
}
LATE = 800  # words of a note that stand before its answer
# words that carry no subject: what keyword search leaves out, and the small words of a question
STOP = set(
    re.findall(
        r"\w+",
        "a an the and or but if of in on at by to for from with without into onto over under up down out off as is are was "
        "were be been being am do does did doing done have has had having i me my mine we us our ours you your he him his "
        "she her hers it its they them their this that these those what which who whom whose when where why how not no nor "
        "so than then there here can could should would may might must will shall about after before again once only own "
        "same too very just more most other some such any all each few both until while during because between through "
        "myself ever still first way much many make get go way also even else",
    )
)


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


NOTES = rows("notes.jsonl")
QUESTIONS = rows("questions.jsonl")
BY_ID = {note["id"]: note for note in NOTES}


def of(stratum: str) -> list[dict[str, Any]]:
    return [question for question in QUESTIONS if question["stratum"] == stratum]


def text(note: dict[str, Any]) -> str:
    """Every field of a note that a search may look at."""
    return " ".join(
        note.get(name, "") for name in ("title", "summary", "load_when", "tags", "body")
    )


def stem(word: str) -> str:
    """The word without its endings, cut more boldly than Porter does: better two words too many alike."""
    for ending in (
        "ingly",
        "ation",
        "ness",
        "ments",
        "ment",
        "ings",
        "ing",
        "edly",
        "ies",
        "ied",
        "ers",
        "ed",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _bare(word[: -len(ending)])
    for ending in ("er", "es", "ly", "al", "y", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _bare(word[: -len(ending)])
    return _bare(word)


def _bare(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "eiy" else word


def content(of_text: str) -> set[str]:
    """Stems of the words with a subject."""
    words = re.findall(r"\w+", of_text.lower())
    return {stem(word) for word in words if word not in STOP and len(word) > 1}


def test_there_are_enough_of_each() -> None:
    assert len(NOTES) >= 200 and len(QUESTIONS) >= 200 and COUNT >= 1000
    assert {question["stratum"] for question in QUESTIONS} == STRATA
    assert {stratum: len(of(stratum)) for stratum in STRATA if len(of(stratum)) < 20} == {}


def test_ids_are_unique() -> None:
    notes = [note["id"] for note in NOTES + distractors()]
    assert len(set(notes)) == len(notes)
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question["question"] for question in QUESTIONS if not question.get("at")}) >= 200


def test_every_row_is_a_document() -> None:
    for row in NOTES + distractors():
        links = tuple((kind, target) for kind, target in row.get("links", ()))
        document = Document(**{**row, "links": links})
        assert document.kind in ("node", "item", "note") and document.trust in TRUST
        assert document.title and document.body and document.ts > 0
        for day in (document.valid_from, document.valid_until):
            assert not day or datetime.date.fromisoformat(day)


def test_links_lead_to_notes() -> None:
    targets = {target for note in NOTES for _, target in note.get("links", ())}
    assert targets <= set(BY_ID)


def test_labels_are_authored_notes() -> None:
    for question in QUESTIONS:
        assert set(question["labels"]) <= set(BY_ID), question
        assert bool(question["labels"]) == (question["stratum"] != "no-answer"), question


def test_halves_follow_their_rule() -> None:
    for stratum in STRATA:
        asked = sorted(of(stratum), key=lambda q: hashlib.sha256(q["id"].encode()).hexdigest())
        halves = [question["half"] for question in asked]
        cut = len(asked) // 2
        assert halves == ["dev"] * cut + ["held-out"] * (len(asked) - cut)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("drills", "drill"),
        ("planned", "planning"),
        ("berries", "berry"),
        ("late", "lately"),
        ("baked", "baking"),
    ],
)
def test_words_of_one_stem_are_alike(one: str, other: str) -> None:
    assert content(one) == content(other)


def test_a_paraphrase_shares_no_content_word() -> None:
    shared = {}
    for question in of("paraphrase"):
        note = BY_ID[question["labels"][0]]
        both = content(question["question"]) & content(text(note))
        if both:
            shared[question["id"]] = both
    assert not shared


def test_late_answers_are_late() -> None:
    for question in of("late"):
        body = BY_ID[question["labels"][0]]["body"]
        assert body.count(question["needle"]) == 1, question
        assert len(body[: body.index(question["needle"])].split()) >= LATE, question


def test_the_linked_note_does_not_match_by_itself() -> None:
    for question in of("link-following"):
        label, via = question["labels"][0], BY_ID[question["via"]]
        assert [kind for kind, target in via["links"] if target == label], question
        asked = content(question["question"])
        assert len(asked & content(text(via))) > len(asked & content(text(BY_ID[label]))), question


def test_an_alias_stands_in_a_note_of_its_own() -> None:
    for question in of("alias"):
        label = question["labels"][0]
        linking = [note for note in NOTES if any(to == label for _, to in note.get("links", ()))]
        asked = content(question["question"])
        assert any(asked & content(text(note)) for note in linking), question


def test_what_was_true_then_was_valid_then() -> None:
    for question in of("temporal"):
        note = BY_ID[question["labels"][0]]
        day = question.get("at", "2026-11-30")
        assert note.get("valid_from", "") <= day < (note.get("valid_until") or "9999"), question


def test_distractors_are_the_same_everywhere() -> None:
    packed = json.dumps(distractors(), sort_keys=True, ensure_ascii=False).encode()
    assert (
        hashlib.sha256(packed).hexdigest()
        == "c0051c5b3be3b2eabd6b379f595e2671888d2a1773e9bca78059f5b2c473fafd"
    )


def test_distractors_hold_no_answer() -> None:
    bodies = [text(row).lower() for row in distractors()]
    labels = {label for question in QUESTIONS for label in question["labels"]}
    assert not labels & {row["id"] for row in distractors()}
    # the names and rare words that answers turn on occur in no distractor
    common = STOP | {word for body in bodies for word in re.findall(r"\w+", body)}
    for question in QUESTIONS:
        for label in question["labels"]:
            rare = set(re.findall(r"\w+", text(BY_ID[label]).lower())) - common
            assert rare, f"{question['id']}: every word of {label} stands in distractors too"


def test_distractors_differ() -> None:
    bodies = [row["body"] for row in distractors()]
    assert len(set(bodies)) == len(bodies)
    assert sum(len(body.split()) > LATE for body in bodies) >= 5
