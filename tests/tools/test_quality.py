"""The runner of the retrieval set: how it counts, on a small corpus with made-up vectors."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

import pytest
from exo.tools.benches import quality
from exo.tools.benches.quality import MEASURES, METHODS, Question, Results, interval, rank


class Words:
    """An embedder that knows words and no meaning: each word is a direction."""

    name, width = "words", 64

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [1e-3] * self.width
        for word in re.findall(r"\w+", text.lower()):
            draw = random.Random(hashlib.sha256(word.encode()).digest())
            vector = [x + draw.gauss(0, 1) for x in vector]
        return vector


def test_the_rank_is_that_of_the_first_right_one() -> None:
    assert rank(["a", "b", "c"], ["c", "b"]) == 2
    assert rank(["a"], ["b"]) == 0
    assert rank([*"abcdefghij", "k"], ["k"]) == 0


@pytest.mark.parametrize(
    ("measure", "values"),
    [
        ("hit@1", (0, 1, 0, 0)),
        ("hit@5", (0, 1, 1, 0)),
        ("MRR@10", (0, 1, 1 / 3, 1 / 6)),
        ("nDCG@10", (0, 1, 0.5, 1 / 2.807354922)),
    ],
)
def test_a_measure_of_a_rank(measure: str, values: tuple[float, ...]) -> None:
    assert [MEASURES[measure](place) for place in (0, 1, 3, 6)] == pytest.approx(values)


def test_an_interval_holds_its_difference_and_is_the_same_each_time() -> None:
    one, other = [1.0] * 30 + [0.0] * 10, [1.0] * 20 + [0.0] * 20
    apart, low, high = interval(one, other)
    assert apart == 25 and 0 < low < apart < high < 50
    assert interval(one, other) == (apart, low, high)
    assert interval(one, one) == (0, 0, 0)


def test_where_the_search_abstains_nothing_is_heard() -> None:
    asked = [Question(str(n), "exact", "q", ("a",), "dev") for n in range(2)]
    results = Results(asked, {"full": {"0": 1, "1": 1}}, {"1"})
    assert results.heard(asked, MEASURES["hit@1"]) == [1.0, 0.0]


def test_every_method_finds_what_is_said_word_for_word(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [q for q in quality.questions() if q.stratum in ("exact", "no-answer")]
    corpus = [d for d in quality.documents() if d.id.startswith("n0") or d.id < "d0100"]
    monkeypatch.setattr(quality, "questions", lambda: asked)
    monkeypatch.setattr(quality, "documents", lambda: corpus)
    monkeypatch.setattr(quality, "RESAMPLES", 100)
    results = quality.measure(lambda _: None, Words())
    for method in METHODS:
        found = results.score(method, results.of(stratum="exact"), MEASURES["hit@5"])
        assert sum(found) > len(found) * 0.6, method
    page = quality.report(results)
    assert page.count("| exact (11) |") == 6 and "no-answer" not in page


def test_the_report_is_of_this_set(root: Path) -> None:
    page = (root / "core/retrieve/QUALITY.md").read_text()
    for stratum in {q.stratum for q in quality.questions() if q.labels}:
        assert f"| {stratum} (" in page
    assert "<!-- quality -->" in page and "<!-- /quality -->" in page
