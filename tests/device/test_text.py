from __future__ import annotations

import pytest
from exo.device.font import Fonts
from exo.device.text import clusters, elide, plain, wrap
from hypothesis import given
from hypothesis import strategies as st

FONTS = Fonts()


def measure(cluster: str) -> tuple[int, int]:
    glyph = FONTS.glyph(cluster)
    return glyph.width, glyph.height


def lines(text: str, width: int = 126) -> list[str]:
    return [str(line) for line in wrap(text, width, measure)]


def test_words_stay_whole_where_they_can() -> None:
    assert lines("The capital of France is Paris, of course.") == [
        "The capital of France",
        "is Paris, of course.",
    ]


def test_a_word_longer_than_a_line_is_cut() -> None:
    assert lines("so Donaudampfschifffahrtsgesellschaft ja") == [
        "so",
        "Donaudampfschifffahrt",
        "sgesellschaft ja",
    ]


def test_hyphens_and_dashes_may_end_a_line() -> None:
    assert lines("a particularly well-known one") == ["a particularly well-", "known one"]
    assert lines("It is minus -5 degrees cold") == ["It is minus -5", "degrees cold"]


def test_ideographs_break_between_each_other_but_not_before_a_stop() -> None:
    assert lines("今日は天気がいい。ね") == ["今日は天気がい", "い。ね"]
    assert lines("天気天気天気天。") == ["天気天気天気", "天。"]
    assert lines("「天気天気天気「天") == ["「天気天気天気", "「天"]


def test_paragraphs_have_a_gap_and_no_more_than_one() -> None:
    laid = wrap("one\n\n\n\ntwo\n", 126, measure)
    assert [str(line) for line in laid] == ["one", "", "two"]
    assert laid[1].height < laid[0].height


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e\u0301", ["é"]),  # composed
        ("x\u0323\u0301", ["x\u0323\u0301"]),  # no such letter: marks stay with it
        ("❤\ufe0f", ["❤"]),  # a variation selector
        ("👍🏽", ["👍"]),  # a skin tone
        ("👩\u200d💻!", ["👩", "!"]),  # joined emoji
        ("a\u200b\u00adb\ufeff\u202e", ["a", "b"]),  # zero width, soft hyphen, direction
        ("a\tb\x00\x1b\x07", ["a", " ", "b"]),
        ("\u0301a", ["a"]),  # a mark without a letter
        ("\ud800a", ["a"]),
        ("שלום", list("שלום")),
        ("z" + "\u0301" * 50, ["ź" + "\u0301" * 4]),
    ],
)
def test_clusters(text: str, expected: list[str]) -> None:
    assert clusters(text) == expected


@given(st.text(max_size=300), st.integers(16, 126))
def test_no_text_breaks_the_layout(text: str, width: int) -> None:
    laid = wrap(text, width, measure)
    assert all(line.width <= width for line in laid)
    kept = [cluster for line in laid for cluster in line.clusters if cluster != " "]
    assert kept == [cluster for cluster in clusters(text) if cluster not in ("\n", " ")]


@given(st.text(max_size=60), st.integers(12, 126))
def test_a_title_fits(text: str, width: int) -> None:
    shown = elide(text, width, measure)
    assert sum(measure(cluster)[0] for cluster in clusters(shown)) <= width


def test_an_elided_title_ends_in_dots() -> None:
    assert elide("What is the capital of France?", 66, measure) == "What is th…"
    assert elide("short", 66, measure) == "short"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Bold** and *it* and `code`", "Bold and it and code"),
        ("# Title\ntext", "Title\ntext"),
        ("- one\n* two\n+ three", "• one\n• two\n• three"),
        ("2 * 3 * 4 and a*b*c", "2 * 3 * 4 and a*b*c"),
        ("see [the page](https://x.y/z)", "see the page"),
        ("a\n---\nb", "a\n\nb"),
        ("```python\nx = 1\n```", "x = 1"),
        ("snake_case __init__", "snake_case init"),
        ("**not closed", "**not closed"),
    ],
)
def test_markdown_becomes_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_a_very_long_text_is_laid_out_in_part() -> None:
    assert len(plain("word " * 300_000)) <= 20_000
