"""What the head `request.tool` learns from: sentences authored for it (seed/tool, a file a language and author, whose
braces are filled from lists), the phrasings that the tables of tools/assistant are tested with, and those
sentences of CLINC150 whose intent is, or is surely not, one of its answers. Owns the formats and the labels.

Invariant: every fifth pattern of a label and file is held out with all that is made of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from exo.models import heads
from exo.models.heads import Head
from exo.models.training.data import SEED, Clinc, Rows, plain
from exo.models.training.mechanisms import MECHANISMS
from exo.models.training.vectors import Vectors

FOLDER = SEED / "tool"
LANGUAGES = ("en", "de", "es")
TIMES = 2  # sentences made of a pattern
NONE = 4000  # sentences of CLINC150 that are no order
L2 = 2e-6  # of 1e-6 to 5e-5 the best for authors that were left out
EPOCHS = 8
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
HELD = 5  # every fifth pattern is held out
_SLOT = re.compile(r"\{\w+\}")
_STOPS = re.compile(r"[,.:;!?]+(?!\d)")
_ALARMS = ("alarm", "wecker", "alarma")
_SAYINGS = {
    "volume +": "volume.up",
    "volume -": "volume.down",
    "brightness +": "brightness.up",
    "brightness -": "brightness.down",
    "mute 1": "mute",
    "mute 0": "unmute",
}
# of an intent of CLINC150, by what stands in the sentence: the first that fits; "": not learnt from
_BORROWED = {
    "timer": [
        (r"\b(?:cancel|stop(?! at)|off(?! in)|kill|end|delete|remove)\b", "cancel"),
        (r"\b(?:how|left|remain\w*|check|status)\b", "timers"),
        (r"\b(?:add|more|extend)\b", ""),
        ("", "timer"),
    ],
    "alarm": [(r"\b(?:cancel|turn off|delete|remove|disable)\b", "cancel"), ("", "alarm")],
    "reminder": [("", "timers")],
    "reminder_update": [("", "reminder")],
    "change_volume": [
        (r"\bmute\b", "mute"),
        (
            r"\d|\b(?:max\w*|full|half|one|two|three|four|five|six|seven|eight|nine|ten)\b",
            "volume.set",
        ),
        (r"\b(?:down|lower\w*|decrease|quiet\w*|soft\w*|reduce|less)\b", "volume.down"),
        (r"\b(?:up|raise|increase|loud\w*|higher|boost|more)\b", "volume.up"),
        ("", ""),
    ],
    "time": [(r" in |zone|\b(?:at|[a-z]st)\b", "none"), ("", "time")],
    "date": [(r"\b(?:tomorrow|from|in|after|will|next|yesterday|was)\b", "none"), ("", "time")],
    "repeat": [("", "repeat")],
    "shopping_list_update": [
        (r"\b(?:delete|remove|off|cross|away|erase|no longer|if)\b", ""),
        (r"\b(?:add|put)\b", "note"),
        ("", ""),
    ],
    "todo_list_update": [("", "")],
    "cancel": [("", "")],
    "whisper_mode": [("", "")],
}


def authored() -> tuple[Rows, Rows]:
    """(train, held out) of what was written for this head."""
    train, held = Rows([], []), Rows([], [])
    for label, text, nth, _ in _written():
        into = train if nth % HELD else held
        into.add(text, label)
    known = {plain(text) for text in train.texts + phrasings().texts}
    unseen = [at for at, text in enumerate(held.texts) if plain(text) not in known]
    return train, Rows([held.texts[at] for at in unseen], [held.labels[at] for at in unseen])


def _written() -> Iterator[tuple[str, str, int, str]]:
    """(label, text, which pattern of its label and file it is made of, the author: "" for who wrote the first)."""
    for path in (each for name in LANGUAGES for each in sorted(FOLDER.glob(f"{name}*.txt"))):
        lists: dict[str, list[str]] = {}
        seen: dict[str, int] = defaultdict(int)
        for label, patterns in _lines(path):
            if label.startswith("{"):
                lists[label] = patterns
                continue
            for pattern in patterns:
                seen[label] += 1
                place = sum(seen.values())
                for text in _filled(pattern, lists, place):
                    yield label, text, seen[label], path.stem[3:]


def fit(name: str, clinc: Clinc, vectors: Vectors) -> tuple[Head, dict[str, Any]]:
    """(the head, what is told of it). The temperature is of authors of whom the head that scores them has heard
    nothing."""
    answers, (own, held) = MECHANISMS[name], authored()
    count = len(own.texts)
    lent, places = borrowed(clinc)
    random = np.random.default_rng(0)
    none = np.array([label == "none" for label in lent.labels])
    kept = np.flatnonzero(~none).tolist() + random.permutation(np.flatnonzero(none))[:NONE].tolist()
    lent = Rows([lent.texts[at] for at in kept], [lent.labels[at] for at in kept])
    own += phrasings()
    sentences = own + own + lent  # ours weigh twice

    def seen(rows: Rows, key: str) -> Any:
        return heads.features(rows.texts, vectors.of(rows.texts, key))

    ours = seen(own, name)
    borrowed_vectors = vectors.of(clinc.parts["train"].texts, "clinc-train")[
        [places[at] for at in kept]
    ]
    theirs = heads.features(lent.texts, borrowed_vectors)
    x = np.vstack([ours, ours, theirs])
    y = np.array([answers.index(label) for label in sentences.labels])
    authors = np.array([author for *_, nth, author in _written() if nth % HELD])
    others = sorted({*authors.tolist()} - {""})
    author_of = np.full(len(y), "", authors.dtype)
    author_of[: len(authors)] = author_of[len(own.texts) : len(own.texts) + len(authors)] = authors
    scores = np.zeros((len(y), len(answers)), np.float32)
    for author in others:  # what makes it honest is how it does on people that it has not heard
        out = author_of == author
        head = heads.fit(x[~out], y[~out], len(answers), L2, epochs=EPOCHS)
        scores[out] = head.scores(x[out])
    unheard = np.flatnonzero(author_of[:count] != "")
    divisor = heads.temperature(scores[unheard], y[unheard])
    head = replace(heads.fit(x, y, len(answers), L2, epochs=EPOCHS), temperature=divisor)
    truth = np.array([answers.index(label) for label in held.labels])
    sure = heads.softmax(head.scores(seen(held, f"{name}-held")) / divisor)
    told: dict[str, Any] = {"answers": list(answers), "temperature": divisor}
    told |= {"words_alone": False, "languages": sorted(LANGUAGES)}
    told |= {"authored": len(own.texts), "borrowed": len(lent.texts)}
    told["held_out"] = {
        "sentences": len(truth),
        "accuracy": round(float((sure.argmax(1) == truth).mean()), 4),
        "ece": round(heads.ece(sure.max(1), sure.argmax(1) == truth), 4),
        "brier": round(heads.brier(sure, truth), 4),
    }
    found = heads.softmax(scores[unheard] / divisor)
    told["unseen"] = _curve(found, y[unheard])
    told["unseen_ece"] = round(heads.ece(found.max(1), found.argmax(1) == y[unheard]), 4)
    return head, told


def _curve(sure: Any, truth: Any) -> dict[str, list[float]]:
    """threshold -> [orders named rightly, orders named wrongly, sentences that are none named one]."""
    best, none = sure.argmax(1), truth == 0
    found = {}
    for threshold in THRESHOLDS:
        named = (best > 0) & (sure.max(1) > threshold)
        rates = named & (best == truth), named & (best != truth) & ~none, named & none
        found[str(threshold)] = [
            round(float(each.sum() / max(1, of.sum())), 4)
            for each, of in zip(rates, (~none, ~none, none), strict=True)
        ]
    return found


def phrasings() -> Rows:
    """The sentences that the tables are tested with, and the look-alikes of orders."""
    found = Rows([], [])
    for text, label in _phrased(FOLDER / "phrasings"):
        found.add(text, label)
    return found


def borrowed(clinc: Clinc, part: str = "train") -> tuple[Rows, list[int]]:
    """(sentences of a part of CLINC150 with their labels here, their places in it)."""
    found, places = Rows([], []), []
    for place, (text, intent) in enumerate(
        zip(clinc.parts[part].texts, clinc.parts[part].labels, strict=True)
    ):
        label = next(
            label for form, label in _BORROWED.get(intent, [("", "none")]) if re.search(form, text)
        )
        if label:
            found.texts.append(text)
            found.labels.append(label)
            places.append(place)
    return found, places


def _phrased(folder: Path) -> Iterator[tuple[str, str]]:
    for cells in _cells(folder / "reminders.txt"):
        yield cells[0], "alarm" if cells[2] in _ALARMS else "reminder"
    for cells in _cells(folder / "timers.txt"):
        yield cells[0], "timer"
    for cells in _cells(folder / "texts.txt"):
        yield cells[0], cells[1]
    for name in ("sayings.txt", "later.txt"):
        for what, said in _lines(folder / name):
            label = what.split()[0]
            if label in ("volume", "brightness", "mute"):
                label = _SAYINGS.get(what, f"{label}.set")
            for text in said if label != "device" else ():
                yield text, "none" if label == "verdict" else label
    for line in (folder / "none.txt").read_text(encoding="utf-8").splitlines():
        for text in line.split(" | "):
            yield text.strip(), "none"


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        label, mark, texts = line.partition(" = ")
        if mark and not line.startswith("#"):
            yield label, [each.strip() for each in texts.split(" | ")]


def _cells(path: Path) -> Iterator[list[str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield [cell.strip().lower() for cell in line.split("|")]


def _filled(pattern: str, lists: dict[str, list[str]], place: int) -> Iterator[str]:
    """The sentences of a pattern: other words of its lists each time, the next pattern other ones still; the second one
    as a recogniser writes it, in small letters without stops."""
    first = ""
    for at in range(place, place + 5 * TIMES, 5):
        text = pattern
        for slot in _SLOT.findall(pattern):
            text = text.replace(slot, lists[slot][at % len(lists[slot])])
        text = " ".join(_STOPS.sub(" ", text).lower().split()) if first else text
        if text != first:
            yield text
        first = text
