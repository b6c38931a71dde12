"""A person's own head, from their labels. Owns how it is fitted and whether it is kept; numpy, no file and no model.

It is learnt together with what everybody says, or it forgets that: 16 labels alone cost 24 points on common sentences.
Invariant: what is held out is never learnt from, by a head before neither; a head is kept only where it is surely better."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exo.models import heads
from exo.models.heads import Head, softmax

FEWEST = 12  # labels from which a head is tried
HELD = 4  # one sentence of so many is held out, by its hash: always the same ones
TESTED = 3  # held-out labels from which a head can be judged
COPIES = 2  # of a label that weighs 1, and of a common sentence; of a weak label, one
FORGETS = 0.08  # accuracy on common sentences that may be lost
L2 = 3e-4  # towards the shipped head


@dataclass(frozen=True)
class Rows:
    """What a head sees of sentences (n, width), and the numbers of the right answers (n,)."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Tried:
    """`kept` is shipped, before or new; `measures` of each on the held-out labels, `common` the new one's and the
    shipped one's accuracy on common sentences held out."""

    kept: str
    head: Head
    measures: dict[str, dict[str, float]]
    common: dict[str, float]


def held(states: Sequence[str]) -> Any:
    """Which states are held out, bool (n,)."""
    import numpy as np

    return np.array([not zlib.crc32(each.casefold().encode()) % HELD for each in states], bool)


def enough(out: Any) -> bool:
    """Whether there are labels enough, of all and of those held out."""
    return len(out) >= FEWEST and int(out.sum()) >= TESTED


def attempt(
    own: Rows,
    weights: Sequence[float],
    out: Any,
    taught: Rows,
    common: Rows,
    standing: Mapping[str, Head],
    threshold: float,
) -> Tried:
    """Fit a head on the labels that are not `out` and on `taught`, and compare it with the `standing` ones (shipped, and
    maybe before). Those are first made as doubtful as the labels are: who only learns to doubt is no better."""
    import numpy as np

    shipped = standing["shipped"]
    copies = np.where(out, 0, [max(1, round(COPIES * each)) for each in weights])
    rows = np.repeat(np.arange(len(out)), copies)
    x = np.vstack([own.x[rows], *[taught.x] * COPIES])
    y = np.concatenate([own.y[rows], *[taught.y] * COPIES])
    new = heads.fit(x, y, shipped.weights.shape[1], L2, anchor=shipped, epochs=1)
    new = replace(new, temperature=shipped.temperature)
    measures, losses = {}, {}
    for name, head in {**standing, "new": new}.items():
        scores, heat = head.scores(own.x), head.temperature
        measures[name] = measured(softmax(scores[out] / heat), own.y[out], threshold)
        if name != "new":
            heat = max(heat, heads.temperature(scores[~out], own.y[~out]))
        sure = softmax(scores[out] / heat)
        losses[name] = -np.log(sure[np.arange(len(sure)), own.y[out]] + 1e-12)
    best = min(standing, key=lambda name: measures[name]["loss"])
    gain = losses[best] - losses["new"]
    surely = gain.mean() > gain.std() / len(gain) ** 0.5
    better = measures["new"]["accuracy"] > measures[best]["accuracy"]
    known = {"shipped": _accuracy(shipped, common), "new": _accuracy(new, common)}
    kept = "new" if surely and better and known["new"] >= known["shipped"] - FORGETS else best
    return Tried(kept, {**standing, "new": new}[kept], measures, known)


def measured(sure: Any, y: Any, threshold: float) -> dict[str, float]:
    """Of probabilities (n, K): accuracy, ece and brier over all, loss, and which part is sure enough to be an answer
    (`coverage`) with its accuracy (`answered`)."""
    right = sure.argmax(1) == y
    told = sure.max(1) > threshold
    found = {"accuracy": right.mean(), "ece": heads.ece(sure.max(1), right)}
    found |= {"brier": heads.brier(sure, y), "loss": heads.loss(sure, y), "coverage": told.mean()}
    found |= {"answered": right[told].mean()} if told.any() else {}
    return {name: round(float(each), 4) for name, each in found.items()}


def _accuracy(head: Head, rows: Rows) -> float:
    return round(float((head.scores(rows.x).argmax(1) == rows.y).mean()), 4)
