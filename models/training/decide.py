"""Train exo-decide: `python -m exo.models.training.decide --clinc PATH --out DIR`. Writes exo-decide.onnx
(what is computed) and exo-decide.json (what it means, and how well it does on what it has not seen).

Invariant: nothing of a held-out or test part is used for fitting. The same data, model file and numpy give
weights that agree to 2 % of the largest one (`--check DIR` compares): sums may be taken in another order."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from exo.core.base.errors import ExoError
from exo.core.base.files import write_atomic
from exo.models import heads
from exo.models.heads import Adam, Head, softmax
from exo.models.training import graph, tools
from exo.models.training.data import Clinc, Rows, held_out, intents, lent, ruled, seed
from exo.models.training.mechanisms import MECHANISMS, TOOL
from exo.models.training.vectors import Vectors

SCALE = 20.0  # of a cosine, before the temperature
FOLDS = 3  # of the intents; each is once unseen
FOLDS_OF_ROWS = 4  # of a mechanism's sentences
EPOCHS = 3
RATE = 1e-3
PULL = 1e-3  # towards the plain cosine
AMONG = 40  # options that a sentence is told apart from, on average
OOS_WEIGHT = 5
TOLERANCE = 0.02


@dataclass(frozen=True)
class Recipe:
    """How a mechanism's head is fitted. `l2` is the best of four folds over its sentences. `words_alone`: it
    sees no vector, so that nothing is embedded to ask it and every language is as near. `wanted`: how often
    an answer that is called sure is to be right, in those folds; `answers` where one differs."""

    l2: float = 1e-3
    words_alone: bool = False
    wanted: float = 0.9
    answers: Mapping[str, float] = field(default_factory=dict)


# to wait for nothing costs a second and a half, to cut somebody off costs the sentence
RECIPES = {"turn.end": Recipe(1e-4, words_alone=True, wanted=0.95, answers={"unfinished": 0.9})}
FEWEST = 12  # answers above a threshold, below which it says nothing


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="exo.models.training.decide", description=__doc__)
    parser.add_argument("--clinc", required=True, type=Path, help="data_full.json of CLINC150")
    parser.add_argument("--out", required=True, type=Path, help="folder of the two files")
    parser.add_argument("--check", type=Path, help="compare with the files in this folder")
    options = parser.parse_args(arguments)
    try:
        train(Clinc(options.clinc), options.out)
        if options.check:
            apart = difference(options.out, options.check)
            print(f"largest difference: {apart:.4f} of the largest weight (allowed {TOLERANCE})")
            return int(apart > TOLERANCE)
    except ExoError as error:
        print(f"train exo-decide: {error}", file=sys.stderr)
        return 1
    return 0


def train(clinc: Clinc, out: Path) -> None:
    """Fit, measure, write. Raises ExoError."""
    vectors = Vectors()
    tilt, match = _match(clinc, vectors)
    made, told = {}, {}
    for mechanism in MECHANISMS:
        make = tools.fit if mechanism == TOOL else _mechanism
        made[mechanism], told[mechanism] = make(mechanism, clinc, vectors)
        print(f"{mechanism}: {json.dumps(told[mechanism])}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "exo-decide.onnx", tilt, made)
    meta = {
        "format": 2,
        "trunk": {"name": vectors.row.name, "sha256": vectors.sha256, "width": 384},
        "match": match,
        "heads": told,
        "order": list(MECHANISMS),  # of the answers in the output `heads`
        "trained_on": [
            "CLINC150, train and oos_train (Larson et al. 2019, CC BY 3.0)",
            "sentences authored for this project (models/training/seed)",
        ],
        "numpy": np.__version__,
    }
    write_atomic(out / "exo-decide.json", json.dumps(meta, indent=1, sort_keys=True) + "\n", 0o644)
    (out / "exo-decide.onnx").chmod(0o644)


def difference(one: Path, other: Path) -> float:
    """The largest difference of two trained graphs' answers, relative to the largest answer."""
    from exo.models.onnx import session

    random = np.random.default_rng(0)
    feeds = {
        "state": random.standard_normal((1, 384)).astype(np.float32),
        "words": random.standard_normal((1, heads.WORDS)).astype(np.float32),
        "options": random.standard_normal((9, 384)).astype(np.float32),
    }
    answers = [session(each / "exo-decide.onnx", 1).run(None, feeds) for each in (one, other)]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(*answers, strict=True))


# ---- options that were never seen ---------------------------------------------------------------------


def _match(clinc: Clinc, vectors: Vectors) -> tuple[Any, dict[str, Any]]:
    """The tilt of the cosine between a state and an option, and how its scores become probabilities."""
    said = intents()
    texts = [
        form
        for name in clinc.intents
        for form in (_spaced(name), said[name], f"{_spaced(name)}: {said[name]}")
    ]
    forms = vectors.of(texts, "intents").reshape(len(clinc.intents), 3, 384)
    x, y = vectors.of(clinc.parts["train"].texts, "clinc-train"), clinc.numbers("train")
    xv, yv = vectors.of(clinc.parts["val"].texts, "clinc-val"), clinc.numbers("val")
    # what unseen intents of the validation part score, to fit a temperature and to say how well it does
    order = np.random.default_rng(0).permutation(len(clinc.intents))
    plain, tilted, picks, pairs, truths = [], [], [], [], []
    for fold in range(FOLDS):
        unseen = np.sort(order[fold::FOLDS])
        tilt = _tilt(x, y, forms, np.sort(np.setdiff1d(order, unseen)))
        rows = np.isin(yv, unseen)
        state, right = xv[rows], np.searchsorted(unseen, yv[rows])
        for form in (0, 2):
            scores = SCALE * (state + state @ tilt) @ forms[unseen, form].T
            plain.append(_accuracy(state @ forms[unseen, form].T, right))
            tilted.append(_accuracy(scores, right))
            picks += _drawn(scores, right, fold)
            pairs.append(scores.ravel())
            truths.append((np.arange(len(unseen))[None] == right[:, None]).ravel())
    temperature = _shared_temperature(picks)
    slope, offset = _logistic(np.concatenate(pairs), np.concatenate(truths))
    told = {
        "scale": SCALE,
        "temperature": temperature,
        "yes": [slope, offset],
        "unseen_of_50": {"names": _mean(tilted[0::2]), "described": _mean(tilted[1::2])},
        "plain_cosine_of_50": {"names": _mean(plain[0::2]), "described": _mean(plain[1::2])},
    }
    print(f"match: {told}", file=sys.stderr)
    return _tilt(x, y, forms, np.arange(len(clinc.intents))), told


def _tilt(x: Any, y: Any, forms: Any, classes: Any) -> Any:
    """(384, 384), added to the identity between state and option: trained on `classes` alone."""
    random = np.random.default_rng(0)
    rows = np.flatnonzero(np.isin(y, classes))
    adam = Adam(np.zeros((384, 384), np.float32), EPOCHS * -(-len(rows) // heads.BATCH), RATE)
    for _ in range(EPOCHS):
        order = random.permutation(rows)
        for at in range(0, len(order), heads.BATCH):
            part = order[at : at + heads.BATCH]
            right = np.searchsorted(classes, y[part])
            option = forms[classes, random.integers(0, forms.shape[1], len(classes))]
            scores = SCALE * (x[part] + x[part] @ adam.value) @ option.T
            kept = random.random(scores.shape) < AMONG / len(classes)
            kept[np.arange(len(part)), right] = True
            error = softmax(np.where(kept, scores, -1e9))
            error[np.arange(len(part)), right] -= 1
            slope = SCALE * x[part].T @ (error @ option) / len(part)
            adam.step(slope + PULL * adam.value)
    return adam.value


def _drawn(scores: Any, right: Any, seed_: int) -> list[Any]:
    """Questions of 2 to 40 options out of the unseen ones: score lists, the right one first."""
    random = np.random.default_rng(seed_)
    found = []
    for row, truth in zip(scores, right, strict=True):
        others = random.permutation(np.delete(row, truth))[: random.integers(1, 40)]
        found.append(np.concatenate([[row[truth]], others]))
    return found


def _shared_temperature(rows: list[Any]) -> float:
    widest = max(map(len, rows))
    padded = np.full((len(rows), widest), -1e9)
    for at, row in enumerate(rows):
        padded[at, : len(row)] = row
    return heads.temperature(padded, np.zeros(len(rows), int))


def _logistic(scores: Any, truth: Any) -> tuple[float, float]:
    """Platt's slope and offset, pairs that fit and pairs that do not weighing the same."""
    weight = np.where(truth, 1 / truth.sum(), 1 / (~truth).sum())
    value, centre, spread = np.zeros(2), scores.mean(), scores.std()
    x = np.stack([(scores - centre) / spread, np.ones_like(scores)], 1)
    adam = Adam(value, 300, 0.2)
    for _ in range(300):
        adam.step(x.T @ (weight * (1 / (1 + np.exp(-x @ adam.value)) - truth)))
    slope = float(adam.value[0] / spread)
    return slope, float(adam.value[1] - slope * centre)


# ---- the questions of the product ----------------------------------------------------------------------


def _mechanism(name: str, clinc: Clinc, vectors: Vectors) -> tuple[Head, dict[str, Any]]:
    answers, recipe = MECHANISMS[name], RECIPES.get(name, Recipe())
    own, held = seed(name)
    borrowed, easy = lent(name), ruled(name, clinc)
    rows = own + borrowed + easy
    x, y = _seen(rows, name, recipe, vectors), _numbers(rows, answers)
    scores, count = np.zeros((len(y), len(answers)), np.float32), len(own.texts)
    fold_of = _folds(rows.groups)
    for fold in range(FOLDS_OF_ROWS):
        out = fold_of == fold
        scores[out] = _fitted(x[~out], y[~out], len(answers), recipe).scores(x[out])
    # what makes it honest is fitted on its own sentences, each unseen by the head that scores it; the end of
    # a turn has nearly all of its sentences as cuts
    part = slice(count + len(borrowed.texts) if recipe.words_alone else count)
    divisor = heads.temperature(scores[part], y[part])
    head = replace(_fitted(x, y, len(answers), recipe), temperature=divisor)
    sure = softmax(scores[part] / divisor)
    told: dict[str, Any] = {
        "answers": list(answers),
        "temperature": divisor,
        "words_alone": recipe.words_alone,
        "languages": sorted({*own.languages, *borrowed.languages} - {""}),
        "authored": count,
        "borrowed": len(y) - count,
        "folds": _accuracy(sure, y[part]),
    }
    told |= _thresholds(sure, y[part], answers, recipe)
    for part_, kept in (("held_out", held), ("held_out_2", held_out(name))):
        if kept.texts:
            told[part_] = _measured(head, kept, f"{name}-{part_}", recipe, answers, vectors, told)
    return head, told


def _fitted(x: Any, y: Any, classes: int, recipe: Recipe) -> Head:
    return heads.fit(x, y, classes, recipe.l2, epochs=1, even=True)


def _folds(groups: Sequence[str]) -> Any:
    """The fold of each row; rows of one group are in one."""
    names = sorted(set(groups))
    drawn = np.random.default_rng(0).permutation(len(names)) % FOLDS_OF_ROWS
    fold_of = dict(zip(names, drawn.tolist(), strict=True))
    return np.array([fold_of[each] for each in groups])


def _threshold(sure: Any, truth: Any, weight: Any, wanted: float) -> float:
    """The lowest probability from which on so much of what is answered is right; 1 when there is none."""
    top, right = sure.max(1), sure.argmax(1) == truth
    for step in np.arange(0.5, 1.0, 0.01):
        kept = top >= step
        if kept.sum() >= FEWEST and weight[kept & right].sum() >= wanted * weight[kept].sum():
            return round(float(step), 2)
    return 1.0


def _thresholds(sure: Any, truth: Any, answers: Sequence[str], recipe: Recipe) -> dict[str, Any]:
    """One for all answers, and one for each by itself, every answer being as often right as the others."""
    weight = 1 / np.bincount(truth, minlength=len(answers))[truth]
    best, each = sure.argmax(1), {}
    for at, answer in enumerate(answers):
        part, wanted = best == at, recipe.answers.get(answer, recipe.wanted)
        each[answer] = _threshold(sure[part], truth[part], weight[part], wanted)
    return {"threshold": _threshold(sure, truth, weight, recipe.wanted), "sure": each}


def _measured(
    head: Head,
    rows: Rows,
    name: str,
    recipe: Recipe,
    answers: Sequence[str],
    vectors: Vectors,
    told: dict[str, Any],
) -> dict[str, Any]:
    """How a head does on what it has not seen, over all and by language."""
    truth = _numbers(rows, answers)
    sure = softmax(head.scores(_seen(rows, name, recipe, vectors)) / head.temperature)
    bars = np.array([told["sure"][answer] for answer in answers])
    said = {"": np.ones(len(truth), bool)}
    said |= {each: np.array(rows.languages) == each for each in sorted(set(rows.languages))}
    found = {}
    for language, part in said.items():
        one, right = sure[part], sure[part].argmax(1) == truth[part]
        above = one.max(1) >= told["threshold"]
        each = one.max(1) >= bars[one.argmax(1)]
        found[language or "all"] = {
            "sentences": len(right),
            "accuracy": _accuracy(one, truth[part]),
            "ece": round(heads.ece(one.max(1), right), 4),
            "brier": round(heads.brier(one, truth[part]), 4),
            "above": _mean([float(above.mean())]),
            "right_above": _mean([float(right[above].mean() if above.any() else 1)]),
            "sure": _mean([float(each.mean())]),
            "right_sure": _mean([float(right[each].mean() if each.any() else 1)]),
        }
    return found


def _seen(rows: Rows, name: str, recipe: Recipe, vectors: Vectors) -> Any:
    none = np.zeros((len(rows.texts), 384), np.float32)
    return heads.features(rows.texts, none if recipe.words_alone else vectors.of(rows.texts, name))


def intent_head(clinc: Clinc, vectors: Vectors) -> Head:
    """A head of CLINC150's 150 intents: logistic regression on train, and on oos_train (weight 5) with
    every intent as likely as the others. Its temperature is of val. Not shipped: the bench makes it."""
    x = vectors.of(clinc.parts["train"].texts, "clinc-train")
    none = vectors.of(clinc.parts["oos_train"].texts, "clinc-oos_train")
    y = np.concatenate([clinc.numbers("train"), *[clinc.numbers("oos_train")] * OOS_WEIGHT])
    head = heads.fit(np.vstack([x, *[none] * OOS_WEIGHT]), y, len(clinc.intents))
    scores = head.scores(vectors.of(clinc.parts["val"].texts, "clinc-val"))
    return replace(head, temperature=heads.temperature(scores, clinc.numbers("val")))


def _write(path: Path, tilt: Any, made: dict[str, Head]) -> None:
    weights = np.hstack([each.weights for each in made.values()]).astype(np.float16)
    bias = np.concatenate([each.bias for each in made.values()]).astype(np.float32)
    nodes = [
        graph.node("Cast", ["tilt16"], "tilt", to=graph.FLOAT),
        graph.node("MatMul", ["state", "tilt"], "turned"),
        graph.node("Add", ["state", "turned"], "tilted"),
        graph.node("Gemm", ["options", "tilted"], "cosine", transB=1),
        graph.node("Mul", ["cosine", "scale"], "match"),
        graph.node("Cast", ["weights16"], "weights", to=graph.FLOAT),
        graph.node("Concat", ["state", "words"], "seen", axis=1),
        graph.node("Gemm", ["seen", "weights", "bias"], "heads"),
    ]
    tensors = [
        graph.tensor("tilt16", tilt.astype(np.float16)),
        graph.tensor("scale", np.array(SCALE, np.float32)),
        graph.tensor("weights16", weights),
        graph.tensor("bias", bias),
    ]
    inputs: dict[str, graph.Shape] = {"state": (1, 384), "words": (1, heads.WORDS)}
    inputs["options"] = ("n", 384)
    outputs: dict[str, graph.Shape] = {"match": ("n", 1), "heads": (1, len(bias))}
    graph.write(path, nodes, tensors, inputs, outputs)


def _numbers(rows: Rows, answers: Sequence[str]) -> Any:
    return np.array([answers.index(label) for label in rows.labels])


def _accuracy(scores: Any, right: Any) -> float:
    return round(float((scores.argmax(1) == right).mean()), 4)


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 4)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


if __name__ == "__main__":
    sys.exit(main())
