"""`exo decide` with scripted models, and learning from what became of decisions."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.decide.calibration import FILE
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.tools.cli import main
from exo.tools.clock import FakeClock
from exo.tools.decisions import Label, labels, learn, temperatures
from exo.tools.supervisor import Supervisor


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("EXO_MODELS_FAKE", "1")
    return Home(tmp_path / "home").make()


def test_the_shape_that_is_printed(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["decide", "tool", "the timer please", "--options", "timer=a countdown,music"]
    assert main([*words, "--home", str(home.root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"answer", "probabilities", "abstained", "provider", "ms"}
    assert (found["answer"], found["abstained"], found["provider"]) == ("timer", False, "local")
    assert found["probabilities"] == {"timer": 0.9, "music": 0.1} and found["ms"] >= 0
    assert main([*words, "--home", str(home.root)]) == 0
    assert capsys.readouterr().out.startswith("timer\n  0.900  timer\n")


def test_lines_in_and_out_of_one_process(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[Any] = [
        {"id": "a", "mechanism": "recall.depth", "state": "go deep"},
        {"id": 2, "mechanism": "m", "state": "x and nothing", "options": ["b", "c"]},
        {"id": 3, "mechanism": "m", "state": "it is b", "options": {"b": None, "q": "what"}},
        {"id": 4, "mechanism": "m", "state": "b", "options": ["b", "b"]},
        {"id": 5, "mechanism": "m"},
        [],
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows) + "{\n\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert main(["decide", "--stdin", "--home", str(home.root)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in found] == ["a", 2, 3, 4, 5, None, None]
    assert found[0]["answer"] == "deep" and found[2]["answer"] == "b"
    assert found[1]["abstained"] and found[1]["answer"] is None
    assert all("error" in each for each in found[3:])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "a mechanism and a state"),
        (["m", "x"], "give options"),
        (["m", "x", "--options", "a"], "2 to 256 options"),
        (["m", "x", "--options", "a,a"], "comes twice"),
        (["m", " ", "--options", "a,b"], "no state"),
    ],
)
def test_bad_input_says_what_to_do(
    home: Home, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert main(["decide", *words, "--home", str(home.root)]) == (1 if words else 2)
    assert why in capsys.readouterr().err


def test_labels_are_what_the_person_did(tmp_path: Path) -> None:
    ledger = Ledger(Home(tmp_path).make(), FakeClock())

    def add(kind: str, **body: Any) -> None:
        ledger.append(Draft(kind, body))

    def decided(turn: str, mechanism: str, answer: str, options: list[str], **more: Any) -> None:
        sure = dict.fromkeys(options, 100_000) | {answer: 900_000}
        told = {"answer": answer, "probabilities": sure, "raw": sure, "provider": "local"}
        add("decision", turn=turn, mechanism=mechanism, **told, **more)

    kinds, two = ["question", "note", "rule"], ["no", "yes"]
    add("utterance", turn="1", text="the tap drips")
    decided("1", "request.kind", "note", kinds)
    add("verdict", turn="1", mechanism="request.kind", verdict="should_have_been", answer="rule")
    decided("2", "request.kind", "note", kinds)  # a rejection alone does not say what was right
    add("verdict", turn="2", mechanism="request.kind", verdict="reject")
    decided("3", "request.kind", "question", kinds)
    add("verdict", turn="3", mechanism="request.kind", verdict="accept")
    add("action", turn="4", tool="bash", args='{"command": "rm notes"}')
    decided("4", "action.riskier", "no", two, tool="bash")
    add("verdict", turn="4", verdict="reject", via="undo")
    decided("5", "action.riskier", "yes", two, tool="bash")
    add("approval", turn="5", tool="bash", choice="allow", by="client")
    decided("6", "action.riskier", "yes", two, tool="bash")
    add("approval", turn="6", tool="bash", choice="deny", by="timeout")  # nobody said so
    found = labels(ledger)
    ledger.close()
    assert [(each.mechanism, each.label, each.text) for each in found] == [
        ("request.kind", "rule", "the tap drips"),
        ("request.kind", "", ""),
        ("request.kind", "question", ""),
        ("action.riskier", "yes", "bash rm notes"),
        ("action.riskier", "no", ""),
    ]
    assert found[0].raw == {"question": 0.1, "note": 0.9, "rule": 0.1}
    assert [each.weight for each in found] == [0.8, 0.4, 0.3, 0.4, 0.3]
    assert [each.right for each in found] == [False, False, True, False, False]


def test_temperatures_stay_near_the_generic_one_while_labels_are_few() -> None:
    def row(mechanism: str, right: bool) -> Label:
        return Label(mechanism, "p", {"a": 0.95, "b": 0.05}, "a" if right else "b", "")

    many = [row("often", n % 2 == 0) for n in range(400)]  # sure and half wrong
    few = [row("rare", True)]
    found = temperatures([*many, *few])
    assert found["p often"] > 3.5 and found["p"] > 3.5
    assert abs(found["p rare"] - found["p"]) < 0.5, "one label says little against 400"
    assert temperatures([]) == {}


def test_learning_writes_what_can_be_made_again(home: Home, capsys: Any) -> None:
    ledger = Ledger(home, FakeClock())
    sure = {"question": 900_000, "note": 100_000}
    told = {"answer": "question", "probabilities": sure, "raw": sure, "provider": "local"}
    ledger.append(
        Draft("utterance", {"turn": "1", "text": "hm"}),
        Draft("decision", {"turn": "1", "mechanism": "request.kind", **told}),
        Draft("verdict", {"turn": "1", "mechanism": "request.kind", "verdict": "accept"}),
    )
    ledger.close()
    assert main(["decide", "--learn", "--home", str(home.root), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["labels"] == 1 and first["heads"]["request.kind"]["kept"] == "shipped"
    path = home.cache / "decide" / FILE
    written = path.read_bytes()
    path.unlink()
    assert main(["decide", "--learn", "--home", str(home.root)]) == 0
    assert path.read_bytes() == written and learn is not None


def test_through_an_exod_that_runs_alone(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["decide", "recall.depth", "go deep", "--home", str(home.root), "--json"]
    with Supervisor(home, ("exod",)) as running:
        running.wait_ready()
        assert main(words) == 0  # models are started for it
        found = json.loads(capsys.readouterr().out)
        assert (found["answer"], found["provider"]) == ("deep", "local")
        assert main(["decide", "m", "x", "--options", "a", "--home", str(home.root)]) == 1
        assert "2 to 256 options" in capsys.readouterr().err
