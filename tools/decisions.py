"""Learning from decisions: the labels that later entries of the record gave them, the temperatures and the
heads fitted on those. Owns which entry labels which decision; what is fitted lies in the cache and is made
again from the record.

Invariant: a label is the person's doing, never a model's answer; with few labels a temperature stays near
the provider's generic one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exo.core.base.clock import SystemClock
from exo.core.base.errors import ModelError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.home import Home
from exo.core.base.unix import post
from exo.core.decide.calibration import FILE, RANGE, warmed
from exo.core.decide.question import MILLION
from exo.core.ledger.ledger import Ledger

KINDS = ("utterance", "action", "approval", "decision", "verdict")
RISK = "action.riskier"
FEW = 30  # labels that weigh as much as the generic temperature
PATIENCE = 300.0  # seconds for a fit, the embedding of its texts included


@dataclass(frozen=True)
class Label:
    """A decision and what would have been right; `text` is its state, "" where the record has it no more."""

    mechanism: str
    provider: str
    raw: dict[str, float]
    label: str
    text: str


def action_state(tool: str, args: str) -> str:
    """An action as it was put before the decision model; `args` is JSON."""
    return " ".join([tool, *map(str, json.loads(args).values())])


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
            texts[turn, tool] = action_state(tool, str(body.get("args", "{}")))
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


def learn(home: Home) -> dict[str, Any]:
    """Fit temperatures and the person's own heads on all labels of the record; needs exo-models for the
    heads. Returns {labels, temperatures, heads: {mechanism: what was kept}}. Raises ExoError."""
    ledger = Ledger(home, SystemClock(), enrol=False)
    try:
        rows = labels(ledger)
    finally:
        ledger.close()
    heats = temperatures(rows)
    folder = home.cache / "decide"
    make_folder(folder)
    write_atomic(folder / FILE, json.dumps(heats, indent=1, sort_keys=True))
    kept = {}
    for mechanism in sorted({row.mechanism for row in rows}):
        told = [
            {"state": row.text, "label": row.label}
            for row in rows
            if row.mechanism == mechanism and row.text
        ]
        body = {"mechanism": mechanism, "rows": told}
        status, raw = post(home.models_socket, "/v1/decide/fit", body, timeout=PATIENCE)
        try:
            answer = json.loads(raw)
            kept[mechanism] = answer if status == 200 else {"kept": answer["error"]["message"]}
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(f"fit {mechanism}", f"status {status}, no answer") from error
    return {"labels": len(rows), "temperatures": heats, "heads": kept}


def temperatures(rows: Sequence[Label]) -> dict[str, float]:
    """One for each "provider mechanism", shrunk to that of the provider, which is shrunk to 1."""
    groups: dict[str, list[tuple[Mapping[str, float], str]]] = {}
    for row in rows:
        for key in (row.provider, f"{row.provider} {row.mechanism}"):
            groups.setdefault(key, []).append((row.raw, row.label))
    found: dict[str, float] = {}
    for key in sorted(groups, key=len):  # a provider before its mechanisms
        near = found.get(key.split(" ")[0], 1.0)
        weight = len(groups[key]) / (len(groups[key]) + FEW)
        own = math.log(temperature(groups[key]))
        found[key] = math.exp(weight * own + (1 - weight) * math.log(near))
    return found


def temperature(rows: Sequence[tuple[Mapping[str, float], str]]) -> float:
    """The temperature in RANGE that makes the labels likeliest, by golden section over its logarithm."""

    def loss(log: float) -> float:
        heat = math.exp(log)
        return -sum(math.log(max(warmed(raw, heat)[label], 1e-12)) for raw, label in rows)

    low, high, ratio = math.log(RANGE[0]), math.log(RANGE[1]), (5**0.5 - 1) / 2
    while high - low > 0.01:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return math.exp((low + high) / 2)
