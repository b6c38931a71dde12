"""What exo-decide learns from: CLINC150, read from where the person has it, and the sentences authored for
this project. Owns the formats and the splits; the answers of other models are never labels."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from exo.core.base.errors import ExoError
from exo.models.training.mechanisms import MECHANISMS, WIDE

SEED = Path(__file__).with_name("seed")
OWN = SEED / "own"  # the trainer's, beside the author's who saw neither code nor results
FILES = {
    "request.kind": "request-kind",
    "recall.depth": "recall-depth",
    "said.correction": "correction",
    "action.riskier": "riskier",
    "turn.end": "end-of-turn",
}
NONE = "oos"  # CLINC150's word for what is no intent of it
CUT = 1200  # sentences of CLINC150 that are also cut off, for the end of a turn


@dataclass(frozen=True)
class Rows:
    """Texts with their labels."""

    texts: list[str]
    labels: list[str]

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.texts + other.texts, self.labels + other.labels)


class Clinc:
    """data_full.json of CLINC150 (Larson et al. 2019, CC BY 3.0)."""

    PARTS = ("train", "val", "test", "oos_train", "oos_val", "oos_test")

    def __init__(self, path: Path) -> None:
        """Raises ExoError for a file that is not this data set."""
        if path.is_dir():
            path = path / "data_full.json"
        try:
            data = json.loads(path.read_text())
            self.parts = {
                name: Rows([row[0] for row in data[name]], [row[1] for row in data[name]])
                for name in self.PARTS
            }
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            do = "give the path of its data_full.json"
            raise ExoError(
                f"read CLINC150 from {path}", f"{type(error).__name__}: {error}", do
            ) from error
        self.intents = sorted(set(self.parts["train"].labels))

    def numbers(self, part: str) -> np.ndarray:
        """The labels as numbers, -1 for none."""
        at = {name: number for number, name in enumerate(self.intents)}
        return np.array([at.get(label, -1) for label in self.parts[part].labels])


def intents() -> dict[str, str]:
    """What each intent means, in a sentence of this project."""
    return {
        str(key): str(text)
        for key, text in tomllib.loads((OWN / "intents.toml").read_text()).items()
    }


def seed(mechanism: str) -> tuple[Rows, Rows]:
    """(train, held out) of the authored sentences. Raises ExoError for a label that is none."""
    if mechanism == WIDE:
        from exo.models.training.tools import authored

        return authored()
    train, held = Rows([], []), Rows([], [])
    path = SEED / f"{FILES[mechanism]}.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        into = held if row["part"] == "held-out" else train
        into.texts.append(row["text"])
        into.labels.append(row["label"])
    for label, text in _lines(mechanism):
        train.texts.append(text)
        train.labels.append(label)
    if wrong := {*train.labels, *held.labels} - set(MECHANISMS[mechanism]):
        raise ExoError(f"read {path}", f"{sorted(wrong)[0]!r} is no answer of {mechanism}")
    return train, held


def cut_off(clinc: Clinc) -> Rows:
    """Sentences of CLINC150's training part, whole and cut off at some word, for the end of a turn."""
    train, random = clinc.parts["train"], np.random.default_rng(0)
    rows = Rows([], [])
    for at in random.permutation(len(train.texts))[:CUT]:
        words = train.texts[at].split()
        rows.texts.append(" ".join(words))
        rows.labels.append("finished")
        if len(words) > 3:
            rows.texts.append(" ".join(words[: random.integers(1, len(words))]))
            rows.labels.append("unfinished")
    return rows


def _lines(mechanism: str) -> Iterator[tuple[str, str]]:
    """Our own lines `label TAB text`. Corrections and rules stand among the kinds of request."""
    for name in (mechanism, "request.kind"):
        lines = (OWN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        for line in filter(str.strip, lines):
            label, _, text = line.partition("\t")
            if name == mechanism or label in ("correction", "rule"):
                yield label, text
        if mechanism != "said.correction":
            return
