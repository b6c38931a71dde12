"""Heads over sentences: what they see, fitting them, and saying how honest their probabilities are. Owns
the numerics of decisions, in numpy; knows no file, no model and no mechanism.

A head sees the sentence's vector, which knows what it is about, and its hashed words and beginnings, which
know how it is said: "never", "no, I meant", a question word. 10 to 20 points more than the vector alone. A wide
head also sees its hashed pieces of words, which carry the languages that the vector does not read.

Invariant: the same rows, seed and numpy give the same weights."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WORDS = 1024  # places of hashed words
LETTERS = 4096  # places of hashed pieces of words
PIECES = range(2, 6)  # letters of a piece, the blanks around a word included
_WORD = re.compile(r"[\w']+|[?!,]")
_LETTERS = re.compile(r"[\w']+")
_DIGITS = re.compile(r"\d+")
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
    """float32 (len(texts), WORDS), unit rows: words, pairs, the first one or two, the last one or two, hashed."""
    import numpy as np

    out = np.zeros((len(texts), WORDS), np.float32)
    for row, text in zip(out, texts, strict=True):
        found = _WORD.findall(text.lower())
        found = found[: LONGEST // 2] + found[LONGEST // 2 :][-LONGEST // 2 :]
        pairs = [f"{a} {b}" for a, b in zip(found, found[1:], strict=False)]
        ends = ["^" + " ".join(found[:count]) for count in (1, 2)]
        ends += ["$" + " ".join(found[-count:]) for count in (1, 2)]
        for each in (*found, *pairs, *ends):
            hashed = zlib.crc32(each.encode("utf-8", "replace"))
            row[hashed % WORDS] += 1 if hashed >> 31 else -1
        row /= max(1.0, float(np.linalg.norm(row)))
    return out


def letters(texts: Sequence[str]) -> Any:
    """float32 (len(texts), LETTERS), unit rows: which pieces of words there are, hashed; without accents, every
    number alike."""
    import numpy as np

    out = np.zeros((len(texts), LETTERS), np.float32)
    for row, text in zip(out, texts, strict=True):
        plain = "".join(unicodedata.normalize("NFD", each)[0] for each in text.lower())
        found = _LETTERS.findall(_DIGITS.sub("0", plain.replace("’", "'")))[: 2 * LONGEST]
        framed = [f" {word} " for word in found]
        pieces = {
            word[at : at + size]
            for word in framed
            for size in PIECES
            for at in range(len(word) - size + 1)
        }
        for each in pieces:
            hashed = zlib.crc32(each.encode("utf-8", "replace"))
            row[hashed % LETTERS] += 1 if hashed >> 31 else -1
        row /= max(1.0, float(np.linalg.norm(row)))
    return out


def features(texts: Sequence[str], vectors: Any, wide: bool = False) -> Any:
    """float32 (n, 384 + WORDS), or with LETTERS more for a wide head: what a mechanism's head sees."""
    import numpy as np

    seen = [vectors, words(texts), *([letters(texts)] if wide else [])]
    return np.hstack(seen).astype(np.float32)


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
) -> Head:
    """Multinomial logistic regression by Adam. A label of -1 is "none of these": its target is every class
    alike. `l2` pulls towards `anchor` (0 without one), so that few rows change little."""
    import numpy as np

    x, y = np.asarray(vectors, np.float32), np.asarray(labels, np.int64)
    rows, width = x.shape
    targets = np.full((rows, classes), 1 / classes, np.float32)
    known = y >= 0
    targets[known] = np.eye(classes, dtype=np.float32)[y[known]]
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
            error = (softmax(x[part] @ adam.value) - targets[part]) / len(part)
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
