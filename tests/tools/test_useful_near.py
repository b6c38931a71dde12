"""The authored people of `useful near`: well-formed, and judged by what is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exo.tools.benches.useful import near


@pytest.mark.parametrize("name", near.PEOPLE)
def test_every_label_is_of_a_note_and_no_note_is_two_things(name: str) -> None:
    notes, questions = near.rows(name, "notes"), near.rows(name, "questions")
    ids = [note["id"] for note in notes]
    times = [note["ts"] for note in notes]
    assert len(ids) >= 100 and len(set(ids)) == len(ids) and times == sorted(times)
    assert len({note["text"] for note in notes}) == len(notes)
    assert len({question["text"].lower() for question in questions}) == len(questions) >= 150
    for question in questions:
        groups = [set(question[key]) for key in ("answers", "superseded", "near")]
        assert set().union(*groups) <= set(ids), question
        assert sum(map(len, groups)) == len(set().union(*groups)), question
        assert question["near"], question
    unknown = sum(not question["answers"] for question in questions)
    assert 0.2 < unknown / len(questions) < 0.4


def test_what_is_told_is_judged_by_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    notes = [
        "My sister Ada has choir on Mondays at seven.",
        "My sister Ada has choir on Tuesdays at eight now.",
        "Lent my good spade to Kit from plot nine.",
    ]
    asked = [
        ("when does my sister Ada have choir now?", ["n2"], ["n1"]),
        ("when does my sister Ada have choir now?", ["n1"], []),
        ("when does my sister Ada have choir now?", ["n3"], ["n2"]),
        ("who borrowed the spade?", ["n3"], []),
        ("what is the capital of Peru?", ["n3"], []),
        ("when does my sister Ada have choir now?", [], []),
    ]
    kept = [
        {"id": f"n{at}", "ts": f"2025-03-0{at}T10:00", "text": text}
        for at, text in enumerate(notes, 1)
    ]
    questions = [{"text": text, "answers": right, "superseded": old} for text, right, old in asked]
    for what, lines in (("notes", kept), ("questions", questions)):
        (tmp_path / f"x.{what}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setattr(near, "FOLDER", tmp_path)
    found = near.judged("x")
    kinds = [each.answered or ("near" if each.told else "abstained") for each in found]
    assert kinds == ["right", "wrong", "old", "near", "abstained", "wrong"]
    figures = near.figures(found)
    assert figures["right"] == figures["near"] == 0.2 and figures["none: answered"] == 1.0
