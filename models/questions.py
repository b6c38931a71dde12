"""What may be asked of a decision model, checked: the shape of `POST /v1/systemone` (a state and named
questions), and labels to learn from. Knows no model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from exo.models.replies import BadRequest

QUESTIONS = 64  # in one request, at most
OPTIONS = 256  # of one question
LEVELS = (2, 10)  # of a score
LETTERS = 20_000  # of a state; what is longer loses its middle
LABELS = 4096  # in one fit

KINDS = ("choice", "score", "noul")


@dataclass(frozen=True)
class Asked:
    """One question. `options` are the keys of the answer, `texts` what each means, in the same order; for
    noul the options are no and yes and the one text is the statement. `mechanism` names a head."""

    kind: str
    options: tuple[str, ...]
    texts: tuple[str, ...]
    mechanism: str = ""


@dataclass(frozen=True)
class DecideRequest:
    """`model` main or aux: a language model weighs the options; anything else is exo-decide."""

    state: str
    questions: dict[str, Asked]
    model: str = ""


@dataclass(frozen=True)
class FitRequest:
    """Labelled states of one mechanism, oldest first; `weights` 0 to 1, how strongly each was said; `threshold` of the
    probability of an answer, up to which it is none."""

    mechanism: str
    states: tuple[str, ...]
    labels: tuple[str, ...]
    weights: tuple[float, ...] = ()
    threshold: float = 0.5


def decide_request(body: object) -> DecideRequest:
    """Raises BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest("read the body", "it is no object")
    questions = body.get("questions")
    if not isinstance(questions, dict) or not 0 < len(questions) <= QUESTIONS:
        raise BadRequest("read questions", f"it is no object of 1 to {QUESTIONS} named questions")
    asked = {name: _asked(name, each) for name, each in questions.items()}
    return DecideRequest(_state(body.get("state")), asked, str(body.get("model") or ""))


def fit_request(body: object) -> FitRequest:
    """Raises BadRequest."""
    rows = body.get("rows") if isinstance(body, dict) else None
    if not isinstance(rows, list) or len(rows) > LABELS:
        raise BadRequest("read rows", f"it is no list of at most {LABELS} {{state, label}}")
    if not all(isinstance(each, dict) and isinstance(each.get("label"), str) for each in rows):
        raise BadRequest("read rows", "one of them has no label")
    assert isinstance(body, dict)
    numbers = [body.get("threshold", 0.5), *(each.get("weight", 1.0) for each in rows)]
    if not all(type(each) in (int, float) and 0 <= each <= 1 for each in numbers):
        raise BadRequest("read rows", "a weight or the threshold is no number of 0 to 1")
    return FitRequest(
        str(body.get("mechanism") or ""),
        tuple(_state(each.get("state")) for each in rows),
        tuple(each["label"] for each in rows),
        tuple(numbers[1:]),
        numbers[0],
    )


def _state(value: object) -> str:
    """A text as it is; an object or a list as lines."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict):
        text = "\n".join(f"{key}: {_plain(each)}" for key, each in value.items())
    elif isinstance(value, list):
        text = "\n".join(_plain(each) for each in value)
    else:
        raise BadRequest("read state", "it is no text, object or list")
    if len(text) > LETTERS:
        text = text[: LETTERS // 2] + " " + text[-LETTERS // 2 :]
    return text


def _asked(name: str, value: object) -> Asked:
    what = f"read question {name[:40]!r}"
    if not isinstance(value, dict) or value.get("type") not in KINDS:
        raise BadRequest(what, f"its type is none of {', '.join(KINDS)}")
    kind, criteria, instructions = value["type"], value.get("criteria"), value.get("instructions")
    told = "" if instructions is None else _plain(instructions)
    mechanism = str(value.get("mechanism") or "")
    if kind == "noul":
        yes = criteria.get("true") if isinstance(criteria, dict) else None
        return Asked(kind, ("no", "yes"), (_plain(yes) if yes else told or name,), mechanism)
    if isinstance(criteria, list) and kind == "score":
        if not LEVELS[0] <= len(criteria) <= LEVELS[1]:
            raise BadRequest(what, f"a score has {LEVELS[0]} to {LEVELS[1]} levels")
        levels = tuple(_plain(each) for each in criteria)
        if len(set(levels)) < len(levels):
            raise BadRequest(what, "two of its levels are the same")
        return Asked(kind, levels, tuple(f"{told} {level}".strip() for level in levels), mechanism)
    if isinstance(criteria, dict) and kind == "choice":
        if not 2 <= len(criteria) <= OPTIONS:
            raise BadRequest(what, f"it has {len(criteria)} options; send 2 to {OPTIONS}")
        options = {str(key): "" if each is None else _plain(each) for key, each in criteria.items()}
        return Asked(
            kind, tuple(options), tuple(map(_meaning, options, options.values())), mechanism
        )
    raise BadRequest(what, f"criteria of a {kind} are a {'list' if kind == 'score' else 'map'}")


def _meaning(option: str, said: str) -> str:
    name = option.replace("_", " ")
    return f"{name}: {said}" if said else name


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
