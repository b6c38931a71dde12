"""How well decisions do on CLINC150: a head with labels, and options never seen. Reports, decides nothing.

The head is `decide.intent_head`: fitted on train and oos_train, its temperature and its one threshold chosen on
val and oos_val, its figures from test and oos_test, looked at once. Its score for "none of these" is the
largest score of an intent (Vaze et al. 2022: better than the largest probability)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from exo.models import heads
from exo.models.heads import softmax
from exo.models.training.data import Clinc
from exo.models.training.decide import intent_head
from exo.models.training.vectors import Vectors

# how much of val is to be accepted and right: what is aimed at, and a standard error of val's 3,000 more
WANTED = (0.94, 0.9443)
OPTIONS = 77
SAMPLE = 300
Pick = Callable[[str, dict[str, str]], str]  # (state, options) -> the option chosen


def head_figures(path: Path) -> dict[str, float]:
    """Accuracy over test (what is refused is wrong), recall of oos_test, ECE and Brier over test. Raises
    ExoError."""
    clinc, vectors = Clinc(path), Vectors()
    head = intent_head(clinc, vectors)

    def scores(part: str) -> np.ndarray:
        return np.asarray(head.scores(vectors.of(clinc.parts[part].texts, f"clinc-{part}")))

    def kept(part: str, threshold: float) -> float:
        each = scores(part)
        right = each.argmax(1) == clinc.numbers(part)
        return float((right & (each.max(1) >= threshold)).mean())

    test, truth = scores("test"), clinc.numbers("test")
    sure = softmax(test / head.temperature)
    right = test.argmax(1) == truth
    found = {
        "accuracy, nothing refused": float(right.mean()),
        "ece": heads.ece(sure.max(1), right),
        "brier": heads.brier(sure, truth),
    }
    steps = np.sort(scores("val").max(1))
    for wanted in WANTED:
        # the highest threshold at which so much of val is still right
        threshold = max((each for each in steps if kept("val", each) >= wanted), default=steps[0])
        none = float((scores("oos_test").max(1) < threshold).mean())
        found[f"in-scope accuracy ({wanted} on val)"] = kept("test", threshold)
        found[f"out-of-scope recall ({wanted} on val)"] = none
    return found


def unseen(path: Path, pick: Pick) -> float:
    """Accuracy of `pick` on SAMPLE sentences of test, each among OPTIONS bare intent names."""
    clinc, random = Clinc(path), np.random.default_rng(0)
    rows, right = clinc.parts["test"], 0
    for at in random.permutation(len(rows.texts))[:SAMPLE]:
        others = [name for name in clinc.intents if name != rows.labels[at]]
        names = [rows.labels[at], *random.permutation(others)[: OPTIONS - 1].tolist()]
        options = dict.fromkeys(sorted(names), "")
        right += pick(rows.texts[at], options) == rows.labels[at]
    return right / SAMPLE
