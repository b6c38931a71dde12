"""Heads over sentences: what they see, fitting them, and saying how honest their probabilities are. Owns
the numerics of decisions, in numpy; knows no file, no model and no mechanism.

A head sees the sentence's vector, which knows what it is about, and hashed pieces of its text, which know how
it is said, in any language: words, pairs, beginnings and letters ("never", "no, I meant", a question word),
and apart from them its last words and its end mark, which know whether more is to come.

Invariant: the same rows, seed and numpy give the same weights."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from exo.models.closed import kinds

BODY, ENDS = 3072, 1024  # places of what is hashed: of the whole text, and of its end
WORDS = BODY + ENDS
_WORD = re.compile(r"[^\W\d]+(?:'\w+)?|\d+|[?!,]")
_MARK = re.compile(r"(\.\.\.|\u2026|[.?!,;:-])?\W*$")
LETTERS = (3, 4, 5)  # lengths of the pieces of a word
LONGEST = 40  # words of a sentence that are looked at

BATCH = 256
STEPS = 400  # at least, however few the rows are
BINS = 15  # of the expected calibration error (Guo et al. 2017)


@dataclass(frozen=True)
class Head:
    """One linear layer: float32 `weights` (width, K) and `bias` (K,); `temperature` divides its scores."""

    weights: Any
    bias: Any
    temperature: float = 1.0

    def scores(self, vectors: Any) -> Any:
        """(n, K), before the temperature."""
        return vectors @ self.weights + self.bias


def words(texts: Sequence[str]) -> Any:
    """float32 (len(texts), WORDS): BODY and ENDS places, the rows of each of length 1 or 0."""
    import numpy as np

    out = np.zeros((len(texts), WORDS), np.float32)
    for row, text in zip(out, texts, strict=True):
        found = ["0" if each[0].isdigit() else each for each in _WORD.findall(text.lower())]
        found = found[: LONGEST // 2] + found[LONGEST // 2 :][-LONGEST // 2 :]
        _hash(row[:BODY], _body(found))
        _hash(row[BODY:], _ends(found, text))
    return out


def _body(found: list[str]) -> Iterator[str]:
    yield from found
    yield from (f"{a} {b}" for a, b in pairwise(found))
    yield from ("^" + " ".join(found[:count]) for count in (1, 2))
    for word in found:
        framed = f"<{word}>"
        for size in LETTERS:
            yield from ("#" + framed[at : at + size] for at in range(len(framed) - size + 1))


def _ends(found: list[str], text: str) -> Iterator[str]:
    said = [each for each in found if each not in ("?", "!", ",")]
    mark = _MARK.search(text)
    yield "mark " + str(mark and mark[1])
    yield f"count {min(len(said), 6)}"
    if said:
        last = said[-1]
        yield from ("$" + " ".join(said[-count:]) for count in (1, 2, 3))
        yield from ("$#" + last[-size:] for size in (2, 3))
        yield f"{said[0]} .. {last}"
        yield f"{mark and mark[1]} {last}"
        few = min(len(said), 4)
        for kind in kinds(last):
            yield f"@{kind}"
            yield f"@{kind} {mark and mark[1]}"
            yield f"@{kind} {few}"
            yield from (f"@{first} .. {kind}" for first in kinds(said[0]))
            if len(said) > 1:
                yield from (f"@{before} {kind}" for before in kinds(said[-2]))
        since = next((at for at, word in enumerate(reversed(said)) if "because" in kinds(word)), 9)
        yield f"@because {min(since, 5)}"


def _hash(row: Any, pieces: Iterator[str]) -> None:
    """Count the pieces into the places of `row`, with signs, and make it a unit vector."""
    import numpy as np

    for each in pieces:
        hashed = zlib.crc32(each.encode("utf-8", "replace"))
        row[hashed % len(row)] += 1 if hashed >> 31 else -1
    row /= max(1.0, float(np.linalg.norm(row)))


def features(texts: Sequence[str], vectors: Any) -> Any:
    """float32 (n, 384 + WORDS): what a mechanism's head sees."""
    import numpy as np

    return np.hstack([vectors, words(texts)]).astype(np.float32)


def softmax(scores: Any) -> Any:
    import numpy as np

    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def fit(
    vectors: Any,
    labels: Any,
    classes: int,
    l2: float = 7e-6,
    *,
    anchor: Head | None = None,
    epochs: int = 30,
    rate: float = 0.02,
    seed: int = 0,
    even: bool = False,
) -> Head:
    """Multinomial logistic regression by Adam. A label of -1 is "none of these": its target is every class
    alike. `l2` pulls towards `anchor` (0 without one), so that few rows change little. `even`: every class
    weighs the same, however many rows it has."""
    import numpy as np

    x, y = np.asarray(vectors, np.float32), np.asarray(labels, np.int64)
    rows, width = x.shape
    targets = np.full((rows, classes), 1 / classes, np.float32)
    known = y >= 0
    targets[known] = np.eye(classes, dtype=np.float32)[y[known]]
    share = np.bincount(y[known], minlength=classes).astype(np.float32)
    weight = np.ones((rows, 1), np.float32)
    if even:
        weight[known, 0] = known.sum() / classes / share[y[known]]
    base = anchor or Head(np.zeros((width, classes), np.float32), np.zeros(classes, np.float32))
    home = np.vstack([base.weights, base.bias[None]]).astype(np.float32)
    x = np.hstack([x, np.ones((rows, 1), np.float32)])
    # the bias is a row of its own: it is pulled only where there is something to be pulled to
    pull = np.full((width + 1, 1), l2, np.float32)
    pull[-1] = l2 if anchor else 0
    batches = -(-rows // BATCH)
    epochs = max(epochs, -(-STEPS // batches))
    adam = Adam(home.copy(), epochs * batches, rate)
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        order = random.permutation(rows)
        for at in range(0, rows, BATCH):
            part = order[at : at + BATCH]
            error = weight[part] * (softmax(x[part] @ adam.value) - targets[part]) / len(part)
            adam.step(x[part].T @ error + pull * (adam.value - home))
    return Head(adam.value[:-1], adam.value[-1])


class Adam:
    """Kingma and Ba 2015, with a rate that falls to 0 over `steps`."""

    def __init__(self, value: Any, steps: int, rate: float) -> None:
        self.value, self._steps, self._rate, self._at = value, steps, rate, 0
        self._mean, self._square = value * 0, value * 0

    def step(self, slope: Any) -> None:
        rate = self._rate * (1 - self._at / self._steps)
        self._at += 1
        self._mean = 0.9 * self._mean + 0.1 * slope
        self._square = 0.999 * self._square + 0.001 * slope * slope
        mean = self._mean / (1 - 0.9**self._at)
        self.value -= rate * mean / ((self._square / (1 - 0.999**self._at)) ** 0.5 + 1e-8)


def temperature(scores: Any, labels: Any, low: float = 0.05, high: float = 20.0) -> float:
    """The divisor of the scores that makes the labels likeliest, by golden section over its logarithm."""
    import numpy as np

    rows = np.arange(len(labels))

    def loss(log: float) -> float:
        return -float(np.log(softmax(scores / np.exp(log))[rows, labels] + 1e-12).mean())

    a, b, ratio = float(np.log(low)), float(np.log(high)), (5**0.5 - 1) / 2
    while b - a > 1e-3:
        left, right = b - ratio * (b - a), a + ratio * (b - a)
        a, b = (a, right) if loss(left) < loss(right) else (left, b)
    return float(np.exp((a + b) / 2))


def ece(confidence: Any, right: Any) -> float:
    """Expected calibration error of top answers: mean gap of confidence and accuracy over BINS bins."""
    import numpy as np

    bins = np.minimum((np.asarray(confidence) * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == each).mean() * abs(confidence[bins == each].mean() - right[bins == each].mean())
        for each in np.unique(bins)
    ]
    return float(sum(gaps))


def brier(probabilities: Any, labels: Any) -> float:
    """Mean squared distance of the probabilities from what was right, 0 to 2."""
    import numpy as np

    truth = np.eye(probabilities.shape[1])[labels]
    return float(((probabilities - truth) ** 2).sum(1).mean())


def loss(probabilities: Any, labels: Any) -> float:
    """Mean negative log-likelihood."""
    import numpy as np

    return -float(np.log(probabilities[np.arange(len(labels)), labels] + 1e-12).mean())
