"""What exo-decide learns from: CLINC150, read from where the person has it, and the sentences authored for
this project. Owns the formats and the splits; the answers of other models are never labels."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from exo.core.base.errors import ExoError
from exo.models.training import cuts
from exo.models.training.mechanisms import MECHANISMS, TOOL

SEED = Path(__file__).with_name("seed")
OWN = SEED / "own"  # the trainer's, beside the author's who saw neither code nor results
HELD = (
    SEED / "held"
)  # held out alone, larger than the fifth of the seed: written before any head met them
FILES = {
    "request.kind": "request-kind",
    "recall.depth": "recall-depth",
    "said.correction": "correction",
    "action.riskier": "riskier",
    "turn.end": "end-of-turn",
}
NONE = "oos"  # CLINC150's word for what is no intent of it
CUT = 1200  # sentences of CLINC150 that are also cut off, for the end of a turn
# what the sentences of one mechanism say of another, where the definitions agree: mechanism, lender, label, answer
LENT: dict[str, dict[str, dict[str, str]]] = {
    "request.kind": {
        "said.correction": {"correction": "correction", "rule": "rule"},
        "recall.depth": {"shallow": "question", "deep": "question"},
    },
    "said.correction": {
        "request.kind": {"correction": "correction", "rule": "rule"}
        | dict.fromkeys(
            ("question", "command", "note", "small_talk", "out_of_scope", "chat"), "none"
        ),
    },
    "recall.depth": {
        "request.kind": dict.fromkeys(
            ("command", "note", "rule", "small_talk", "out_of_scope", "chat"), "none"
        ),
    },
}


@dataclass
class Rows:
    """Texts with their labels. Rows of one `group` come from one sentence and stay in one fold."""

    texts: list[str]
    labels: list[str]
    groups: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)

    def add(self, text: str, label: str, group: str = "", language: str = "") -> None:
        self.texts.append(text)
        self.labels.append(label)
        self.groups.append(group or text)
        self.languages.append(language)

    def thinned(self, most: int) -> Rows:
        """Every n-th row, `most` at the most."""
        step = -(-len(self.texts) // most) or 1
        every = (self.texts, self.labels, self.groups, self.languages)
        return Rows(*(part[::step] for part in every))

    def __add__(self, other: Rows) -> Rows:
        return Rows(
            self.texts + other.texts,
            self.labels + other.labels,
            self.groups + other.groups,
            self.languages + other.languages,
        )


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
    if mechanism == TOOL:
        from exo.models.training.tools import authored

        return authored()
    train, held = Rows([], []), Rows([], [])
    path = SEED / f"{FILES[mechanism]}.jsonl"
    for row in _rows(path):
        into = held if row["part"] == "held-out" else train
        into.add(row["text"], row["label"], language=row["lang"])
    for label, text in _lines(mechanism):
        train.add(text, label)
    _checked(path, mechanism, train, held)
    return _without(train, held, held_out(mechanism)), held


def held_out(mechanism: str) -> Rows:
    """The second, larger held-out set; empty where none was written."""
    path, rows = HELD / f"{mechanism}.jsonl", Rows([], [])
    for row in _rows(path) if path.exists() else ():
        rows.add(row["text"], row["label"], language=row["lang"])
    _checked(path, mechanism, rows)
    return rows


def lent(mechanism: str) -> Rows:
    """What a mechanism learns from beside its own sentences: those of others whose labels say the same; for
    the end of a turn, authored cuts as a recogniser may write them and others as Whisper did."""
    rows = Rows([], [])
    for lender, answers in LENT.get(mechanism, {}).items():
        train = seed(lender)[0]
        for text, label, language in zip(train.texts, train.labels, train.languages, strict=True):
            if label in answers:
                rows.add(text, answers[label], language=language)
    if mechanism == "turn.end":
        rows += _cut_off()
    return _without(rows, seed(mechanism)[1], held_out(mechanism))


def _without(rows: Rows, *held: Rows) -> Rows:
    """The rows whose words are not held out, however they are written."""
    kept, out = Rows([], []), {plain(text) for each in held for text in each.texts}
    for row in zip(rows.texts, rows.labels, rows.groups, rows.languages, strict=True):
        if plain(row[0]) not in out:
            kept.add(*row)
    return kept


def plain(text: str) -> str:
    """The words alone, without case and marks."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _cut_off() -> Rows:
    rows = Rows([], [])
    authored = cuts.authored(OWN / "turn.end.cuts.txt")
    for turn, (group, language, label, text) in enumerate(authored):
        for written in cuts.as_written(text, label, turn):
            rows.add(written, label, f"cut {group}", language)
    for row in _rows(OWN / "turn.end.heard.jsonl"):
        rows.add(row["heard"], row["label"], row["said"], "en")
    return rows


def ruled(mechanism: str, clinc: Clinc) -> Rows:
    """For the end of a turn, CLINC150's train whole and cut, labelled by a rule: good to learn words from, and
    too easy to say how sure a head may be."""
    rows = Rows([], [])
    if mechanism != "turn.end":
        return rows
    train, random = clinc.parts["train"], np.random.default_rng(0)
    for at in random.permutation(len(train.texts))[:CUT]:
        sentence = train.texts[at]
        places = range(1, len(sentence.split()))
        found = [cut for place in places if (cut := cuts.of_clinc(sentence, place))]
        labelled = [(sentence, "finished")]
        if found:
            labelled.append((found[random.integers(len(found))], "unfinished"))
        for text, label in labelled:
            *_, written = cuts.as_written(text, label, int(at))
            rows.add(written, label, sentence, "en")
    return _without(rows, seed(mechanism)[1], held_out(mechanism))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _checked(path: Path, mechanism: str, *parts: Rows) -> None:
    for rows in parts:
        if wrong := set(rows.labels) - set(MECHANISMS[mechanism]):
            raise ExoError(f"read {path}", f"{sorted(wrong)[0]!r} is no answer of {mechanism}")


def _lines(mechanism: str) -> Iterator[tuple[str, str]]:
    """Our own lines `label TAB text`."""
    lines = (OWN / f"{mechanism}.txt").read_text(encoding="utf-8").splitlines()
    for line in filter(str.strip, lines):
        label, _, text = line.partition("\t")
        yield label, text
