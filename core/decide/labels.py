"""What became of decisions: the labels that later entries of the record gave them. Owns which entry labels
which decision. Invariant: a label is the person's doing, never a model's answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exo.core.decide.question import MILLION
from exo.core.ledger.ledger import Ledger

KINDS = ("utterance", "action", "approval", "decision", "verdict")
RISK = "action.riskier"


@dataclass(frozen=True)
class Label:
    """A decision and what would have been right; `text` is its state, "" where the record has it no more."""

    mechanism: str
    provider: str
    raw: dict[str, float]
    label: str
    text: str


def action_state(tool: str, args: str) -> str:
    """How an action is put before a decision model; `args` is JSON."""
    return f"{tool}: {args}"


def labels(ledger: Ledger) -> list[Label]:
    """The labelled decisions, in the order of their labels. A verdict on a decision says what was right
    (accept, should_have_been) or that the answer was not (reject); whether an action was riskier is also
    said by the person's answer when asked about it, and by an undo of its turn."""
    texts: dict[tuple[str, str], str] = {}  # (turn, tool), the tool "" for what was said
    made: dict[tuple[str, str], dict[str, Any]] = {}  # (turn, mechanism and tool)
    found: dict[tuple[str, str], Label] = {}
    for entry in ledger.entries(kinds=KINDS):
        body = entry.body or {}
        turn, tool = str(body.get("turn", "")), str(body.get("tool", ""))
        if entry.kind == "utterance":
            texts[turn, ""] = str(body.get("text", ""))
        elif entry.kind == "action":
            texts[turn, tool] = action_state(tool, str(body.get("args", "")))
        elif entry.kind == "decision" and turn:
            made[turn, f"{body['mechanism']} {tool}"] = body
        else:
            for key, right in _judged(body, turn, tool, made):
                raw = {option: count / MILLION for option, count in made[key]["raw"].items()}
                told = str(made[key]["mechanism"]), str(made[key]["provider"]), raw
                text = texts.get((turn, key[1].partition(" ")[2]), "")
                found.pop(key, None)
                found[key] = Label(*told, right, text)
    return list(found.values())


def _judged(
    body: dict[str, Any], turn: str, tool: str, made: dict[tuple[str, str], dict[str, Any]]
) -> Iterator[tuple[tuple[str, str], str]]:
    """(decision, what was right) of an approval or a verdict."""
    named = body.get("mechanism", RISK)
    for key, decision in made.items():
        if key[0] != turn or not turn or decision["mechanism"] != named:
            continue
        options, answer = list(decision["probabilities"]), decision.get("answer", "")
        others = [option for option in options if option != answer]
        said = body.get("verdict") or body.get("choice")
        if body.get("via") == "undo" or (said == "deny" and body.get("by") != "timeout"):
            right = "yes"
        elif said in ("allow", "allow_always"):
            right = "no"
        else:
            right = {"accept": answer, "reject": others[0] if len(others) == 1 else ""}.get(
                str(said), str(body.get("answer", ""))
            )
        if right in options and (not tool or key[1].endswith(f" {tool}")):
            yield key, right
