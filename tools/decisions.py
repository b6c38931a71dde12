"""Learning from decisions: the labels that later entries of the record gave them, the temperatures and the
heads fitted on those, and how good the decisions were by them. Owns which entry labels which decision; what is fitted
lies in the cache and is made again from the record.

Invariant: a label is the person's doing, never a model's answer; with few labels a temperature stays near
the provider's generic one."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exo.core.base.clock import SystemClock
from exo.core.base.errors import ModelError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import post
from exo.core.decide.calibration import FILE, RANGE, warmed
from exo.core.decide.question import MECHANISMS, MILLION
from exo.core.ledger.entry import Entry
from exo.core.ledger.ledger import Ledger

KINDS = ("utterance", "action", "approval", "decision", "verdict")
RISK = "action.riskier"
LOCAL = "local"  # the provider whose heads are the person's own
FEW = 30  # labels of full weight that weigh as much as the generic temperature
PATIENCE = 300.0  # seconds for a fit, the embedding of its texts included
MOST = 240  # labels of a mechanism that a fit is given, the newest
LEARNT = "learnt.json"  # in state/cache/decide: what the last learning came to
LAST = 253_402_214_400_000  # ms UTC of the last day that a calendar knows
BINS = 10  # of the expected calibration error
# how strong a signal is that does not say so itself, per million
STRENGTH = {"should_have_been": 800_000, "reject": 400_000, "accept": 300_000}
STRENGTH |= {"deny": 400_000, "allow": 300_000, "allow_always": 300_000, "undo": 400_000}


@dataclass(frozen=True)
class Label:
    """A decision and what would have been right: `label`, "" where the person only said that `answer` was not. `raw` are
    its probabilities before calibration, `sure` after; `answer` is "" where it was unsure; `text` is its state, "" where
    the record has it no more; `weight` is how strong the signal was, 0 to 1."""

    mechanism: str
    provider: str
    raw: dict[str, float]
    label: str
    text: str
    answer: str = ""
    sure: dict[str, float] = field(default_factory=dict)
    weight: float = 1.0
    ts: int = 0  # ms UTC of the decision

    @property
    def best(self) -> str:
        """The likeliest option."""
        sure = self.sure or self.raw
        return max(sure, key=sure.__getitem__)

    @property
    def right(self) -> bool:
        """Whether the likeliest option was right."""
        return self.label == self.best


@dataclass(frozen=True)
class _Made:
    """A decision of the record, with its state."""

    body: dict[str, Any]
    text: str
    ts: int


def action_state(tool: str, args: str) -> str:
    """An action as it was put before the decision model; `args` is JSON."""
    return " ".join([tool, *map(str, json.loads(args).values())])


def labels(ledger: Ledger) -> list[Label]:
    """The labelled decisions, in the order of their labels; of several labels of one decision the newest counts. A verdict
    on a decision says what was right (accept, should_have_been) or that the answer was not (reject); whether an action
    was riskier is also said by the person's answer when asked about it, and by an undo of its turn."""
    return read(ledger)[0]


def read(ledger: Ledger) -> tuple[list[Label], Counter[tuple[str, str]], int]:
    """The labels, how many decisions there are at all by (mechanism, provider), and how many verdicts say nothing of
    any decision."""
    idle = 0
    texts: dict[tuple[str, str], str] = {}  # (turn, tool), the tool "" for what was said
    made: dict[str, _Made] = {}
    found: dict[str, Label] = {}
    for entry in ledger.entries(kinds=KINDS):
        body = entry.body or {}
        turn, tool = str(body.get("turn", "")), str(body.get("tool", ""))
        if entry.kind == "utterance":
            texts[turn, ""] = str(body.get("text", ""))
        elif entry.kind == "action":
            texts[turn, tool] = action_state(tool, str(body.get("args", "{}")))
        elif entry.kind == "decision":
            if turn and body.get("mechanism") in MECHANISMS:
                made[entry.id] = _Made(body, texts.get((turn, tool), ""), entry.ts)
        else:
            said = [(id_, _label(body, made[id_])) for id_ in _judged(entry, body, made)]
            for id_, label in said:
                if label:
                    found.pop(id_, None)
                    found[id_] = label
            idle += entry.kind == "verdict" and not any(label for _, label in said)
    count = Counter((str(m.body["mechanism"]), str(m.body["provider"])) for m in made.values())
    return list(found.values()), count, idle


def _judged(entry: Entry, body: dict[str, Any], made: Mapping[str, _Made]) -> list[str]:
    """The decisions that an approval or a verdict is about: the one that it refers to, else those of its turn."""
    if entry.refs and entry.refs[0] in made:
        return [entry.refs[0]]
    of_turn = entry.kind == "approval" or body.get("via") == "undo"
    named, turn, tool = (
        body.get("mechanism", RISK if of_turn else ""),
        body.get("turn"),
        body.get("tool"),
    )
    last = {
        str(each.body.get("tool", "")): id_
        for id_, each in made.items()
        if turn and each.body["turn"] == turn and each.body["mechanism"] == named
    }
    return [id_ for name, id_ in last.items() if not tool or name == tool]


def _label(body: dict[str, Any], made: _Made) -> Label | None:
    """What this approval or verdict says of the decision; None where it says nothing of it."""
    sure, raw = (
        {option: count / MILLION for option, count in made.body.get(name, {}).items()}
        for name in ("probabilities", "raw")
    )
    answer = "" if made.body.get("abstained") else str(made.body.get("answer", ""))
    others = [option for option in sure if option != answer]
    said = "undo" if body.get("via") == "undo" else str(body.get("verdict") or body.get("choice"))
    if said == "deny" and body.get("by") in ("timeout", "interrupt", "restart"):
        return None  # nobody said so
    right = str(body.get("answer", ""))
    if said in ("undo", "deny"):
        right = "yes"
    elif said in ("allow", "allow_always"):
        right = "no"
    elif said == "accept":
        right = answer
    elif said == "reject":
        right = others[0] if len(others) == 1 else ""
    if right not in sure and not (said == "reject" and answer in sure and not right):
        return None
    weight = int(body.get("strength") or STRENGTH.get(said, MILLION)) / MILLION
    told = str(made.body["mechanism"]), str(made.body["provider"])
    more = min(1.0, max(0.0, weight)), made.ts
    return Label(*told, raw or sure, right, made.text, answer, sure, *more)


def learn(home: Home, least: int = 0) -> dict[str, Any]:
    """Fit temperatures and the person's own heads on all labels of the record; needs exo-models for the
    heads. With `least`, only where so many labels have come since the last time. Returns {at, labels, temperatures,
    heads: {mechanism: what was kept, whether an own head was gone back from, and the measures of each head tried}}, which
    `status` shows. Raises ExoError."""
    ledger = Ledger(home, clock := SystemClock(), enrol=False)
    try:
        rows = labels(ledger)
    finally:
        ledger.close()
    before = learnt(home)
    if 0 <= len(rows) - int(before.get("labels", 0)) < least:  # fewer: some were forgotten
        return {**before, "skipped": True}
    now, heads = clock.now_ms(), dict[str, Any]()
    for mechanism in sorted({row.mechanism for row in rows}):
        old = before.get("heads", {}).get(mechanism, {})
        new = _fit(home, mechanism, rows)
        changed = new["kept"] == "new" or new.get("version", 0) != old.get("version", 0)
        back = (
            old.get("version", 0) > 0 == new.get("version", 0)
        )  # the shipped head does better again
        since = now if changed else old.get("since", 0)
        heads[mechanism] = new | {"since": since, "back": back}
    # what the head before was too sure of says nothing of the one that stands
    heats = temperatures(
        [r for r in rows if r.provider != LOCAL or r.ts >= heads[r.mechanism]["since"]]
    )
    told = {"at": now, "labels": len(rows), "temperatures": heats, "heads": heads}
    folder = home.cache / "decide"
    make_folder(folder)
    write_atomic(folder / FILE, json.dumps(heats, indent=1, sort_keys=True))
    write_atomic(folder / LEARNT, json.dumps(told, indent=1, sort_keys=True))
    return told


def _fit(home: Home, mechanism: str, rows: Sequence[Label]) -> dict[str, Any]:
    """What became of a head of the person's own. Raises ModelError."""
    body: dict[str, Any] = {"mechanism": mechanism, "rows": _rows(rows, mechanism)}
    body["threshold"] = Settings.load(home.settings_file).number(f"threshold.{mechanism}")
    code, raw = post(home.models_socket, "/v1/decide/fit", body, timeout=PATIENCE)
    try:
        answer: dict[str, Any] = json.loads(raw)
        return answer if code == 200 else {"kept": str(answer["error"]["message"])}
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"fit {mechanism}", f"status {code}, no answer") from error


def _rows(rows: Sequence[Label], mechanism: str) -> list[dict[str, Any]]:
    """What a head can learn from, oldest first; of labels of the same words the newest counts."""
    told: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.mechanism == mechanism and row.text and row.label:
            told.pop(row.text, None)
            told[row.text] = {"state": row.text, "label": row.label, "weight": row.weight}
    return list(told.values())[-MOST:]


def learnt(home: Home) -> dict[str, Any]:
    """What the last learning came to; {} before the first, and where the cache was lost. A damaged file is told of once
    and removed: the next learning makes it anew."""
    path = home.cache / "decide" / LEARNT
    try:
        told = json.loads(path.read_text())
        if _whole(told):
            return dict(told)
        why = "it is not as it was written"
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        why = str(error)[:200]
    print(f"read {path}: {why}; it is made anew by the next `exo decide --learn`", file=sys.stderr)
    with contextlib.suppress(OSError):
        path.unlink()
    return {}


def _whole(told: Any) -> bool:
    """Whether it has the shape that `learn` writes."""
    if not isinstance(told, dict) or not all(_number(told.get(key)) for key in ("at", "labels")):
        return False
    rows, heats = told.get("heads"), told.get("temperatures")
    if not isinstance(rows, dict) or not isinstance(heats, dict):
        return False
    return all(map(_number, heats.values())) and all(map(_head, rows.values()))


def _head(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("kept"), str):
        return False
    counts = (row.get(key, 0) for key in ("since", "version", "rows", "held"))
    tables = [row.get("common", {}), row.get("measures", {})]
    if not all(isinstance(each, dict) for each in tables):
        return False
    tables += tables.pop().values()
    flat = all(isinstance(each, dict) and all(map(_number, each.values())) for each in tables)
    return flat and all(map(_number, counts)) and isinstance(row.get("back", False), bool)


def _number(value: Any) -> bool:
    """A count, a measure or a time (ms UTC) that a calendar knows."""
    return type(value) in (int, float) and 0 <= value < LAST


def status(home: Home) -> dict[str, Any]:
    """How good the decisions were by the person's own labels: {decisions, labels, idle: verdicts that say nothing of any
    decision, rows: [{mechanism, provider, decisions,
    labels, accuracy, coverage, answered, ece, brier, ece_raw, curve}], learnt}. Accuracy is that of the likeliest option over
    all labelled ones; coverage is the part that was sure enough to count, `answered` the accuracy of that; `curve` the
    accuracy of the surest tenth, two tenths, ... Labels come where somebody said something, more often after a fault:
    accuracy is a lower bound. Raises ExoError."""
    ledger = Ledger(home, SystemClock(), enrol=False)
    try:
        rows, made, idle = read(ledger)
    finally:
        ledger.close()
    told = []
    for mechanism, provider in sorted(made):
        some = [row for row in rows if (row.mechanism, row.provider) == (mechanism, provider)]
        head = {"mechanism": mechanism, "provider": provider}
        told.append({**head, "decisions": made[mechanism, provider], **_measured(some)})
    every = {"decisions": made.total(), "labels": len(rows), "idle": idle}
    return every | {"rows": told, "learnt": learnt(home)}


def _measured(rows: Sequence[Label]) -> dict[str, Any]:
    """Each label counts once, however strong: these say how often it was right."""
    if not rows:
        return {"labels": 0}
    ranked = sorted(rows, key=lambda row: -row.sure[row.best])
    curve = [
        _mean([row.right for row in ranked[: max(1, -(-len(rows) * n // 10))]])
        for n in range(1, 11)
    ]
    sure = [row for row in rows if row.answer]
    return {
        "labels": len(rows),
        "accuracy": _mean([row.right for row in rows]),
        "coverage": round(len(sure) / len(rows), 4),
        "answered": _mean([row.right for row in sure]) if sure else None,
        "ece": _ece([(row.sure[row.best], row.right) for row in rows]),
        "ece_raw": _ece([(max(row.raw.values()), row.right) for row in rows]),
        "brier": _mean([(row.sure[row.best] - row.right) ** 2 for row in rows]),
        "curve": curve,
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def _ece(rows: Sequence[tuple[float, bool]]) -> float:
    """Mean gap between how sure it was and how often right, over BINS bins (Guo et al. 2017)."""
    bins: dict[int, list[float]] = {}
    for sure, right in rows:
        bins.setdefault(min(int(sure * BINS), BINS - 1), []).append(sure - right)
    return round(sum(abs(sum(gaps)) for gaps in bins.values()) / len(rows), 4)


def temperatures(rows: Sequence[Label]) -> dict[str, float]:
    """One for each "provider mechanism", shrunk to that of the provider, which is shrunk to 1."""
    groups: dict[str, list[Label]] = {}
    for row in rows:
        for key in (row.provider, f"{row.provider} {row.mechanism}"):
            groups.setdefault(key, []).append(row)
    found: dict[str, float] = {}
    for key in sorted(groups, key=len):  # a provider before its mechanisms
        near = found.get(key.split(" ")[0], 1.0)
        count = sum(row.weight for row in groups[key])
        weight = count / (count + FEW)
        own = math.log(temperature(groups[key]))
        found[key] = math.exp(weight * own + (1 - weight) * math.log(near))
    return found


def temperature(rows: Sequence[Label]) -> float:
    """The temperature in RANGE that makes what the person said likeliest, by golden section over its logarithm."""

    def loss(log: float) -> float:
        return sum(row.weight * each for row in rows for each in _losses(row, math.exp(log)))

    low, high, ratio = math.log(RANGE[0]), math.log(RANGE[1]), (5**0.5 - 1) / 2
    while high - low > 0.01:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return math.exp((low + high) / 2)


def _losses(row: Label, heat: float) -> Iterator[float]:
    """The negative logarithm of the probability of the label; of a rejection, that of any other option."""
    sure = warmed(row.raw, heat)
    yield -math.log(max(sure[row.label] if row.label else 1 - sure[row.answer], 1e-12))
