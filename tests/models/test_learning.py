"""A person's verdicts from the record to the next answer: real exo-decide, real record, the commands as they are run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import post
from exo.core.decide.question import MECHANISMS, per_million
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.models.catalog import Catalog
from exo.tools.cli import main
from exo.tools.supervisor import Supervisor

KIND = MECHANISMS["request.kind"]
GOODS = ("milk", "eggs", "flour", "coffee", "soap", "bulbs", "stamps", "paint", "rice", "tea")
ENDS = ("low", "nearly gone", "finished")
# this person means an order by it; a stranger would take it for something told
TOLD = [f"{one} and {two} {ENDS[len(two) % 3]}" for one in GOODS for two in GOODS if one < two]


def sure(home: Home, text: str) -> dict[str, float]:
    question = {**KIND.wire(), "mechanism": KIND.name}
    body = {"model": "local", "state": text, "questions": {KIND.name: question}}
    status, raw = post(home.models_socket, "/v1/decide", body, timeout=60)
    assert status == 200
    return KIND.read(json.loads(raw)["answers"][KIND.name])


def judge(ledger: Ledger, home: Home, number: int, text: str, right: str) -> None:
    """What exod writes of a message, its decision and the person's word on it."""
    found = sure(home, text)
    best, about = max(found, key=found.__getitem__), {"session": "s", "turn": f"t{number}"}
    unsure = found[best] <= Settings.load(home.settings_file).number("threshold.request.kind")
    made = {"mechanism": KIND.name, "provider": "local", "abstained": unsure}
    made |= {"answer": "" if unsure else best, "raw": per_million(found)}
    word: dict[str, Any] = {"verdict": "accept", "strength": 300_000}
    if unsure or best != right:
        word = {"verdict": "should_have_been", "answer": right, "strength": 800_000}
    ledger.append(
        Draft("utterance", {**about, "text": text, "channel": "typed"}),
        Draft("decision", {**about, **made, "probabilities": per_million(found)}, (0,)),
        Draft("verdict", {**about, **word, "mechanism": KIND.name}, (1, 0)),
    )


def test_verdicts_change_what_is_decided_of_sentences_not_met_before(
    home: Home, files: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    words, unseen = ["--home", str(home.root)], TOLD[32:]
    with Supervisor(home, ("models",)) as running:
        running.wait_ready()

        def right() -> int:
            found = [sure(home, text) for text in unseen]
            return sum(max(each, key=each.__getitem__) == "command" for each in found)

        before = right()
        ledger = Ledger(home, SystemClock())
        for number, text in enumerate(TOLD[:32]):
            judge(ledger, home, number, text, "command")
        ledger.close()
        assert main(["decide", "--learn", *words]) == 0
        assert "request.kind: new" in capsys.readouterr().out
        assert right() > before and right() >= 0.8 * len(unseen)
        heats = json.loads((home.cache / "decide" / "calibration.json").read_text())
        assert heats == {}, "how doubtful the head before should have been says nothing of this one"
        assert main(["decide", KIND.name, unseen[0], "--json", *words]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["answer"], answer["provider"]) == ("command", "local")
        assert main(["decide", "--status", *words]) == 0
        text = capsys.readouterr().out
        assert "a new head of your own" in text and "accuracy" in text and "-> 1.00" in text
        assert main(["decide", "--learn", "--least", "1", *words]) == 0
        assert "nothing to learn from" in capsys.readouterr().out
