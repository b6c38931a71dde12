from __future__ import annotations

import pytest
from exo.device.sentences import LONGEST, Splitter
from hypothesis import given
from hypothesis import strategies as st


def split(text: str, step: int = 3) -> list[str]:
    splitter = Splitter()
    done = []
    for start in range(0, len(text), step):
        done += splitter.feed(text[start : start + step])
    return done + splitter.flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith paid $3.50 at 3 p.m. today. Then he left.", ["Dr. Smith paid $3.50 at 3 p.m. today.", "Then he left."]),
        ("Pi is 3.14159. It goes on.", ["Pi is 3.14159.", "It goes on."]),
        ("J. R. R. Tolkien wrote it. Yes.", ["J. R. R. Tolkien wrote it.", "Yes."]),
        ("“Really?” she asked. “Yes.” He nodded.", ["“Really?” she asked.", "“Yes.”", "He nodded."]),
        ("Well... maybe. I think so.", ["Well... maybe.", "I think so."]),
        ("今日は天気です。散歩しよう！「はい。」行く？", ["今日は天気です。", "散歩しよう！", "「はい。」", "行く？"]),
        ("Am 3. Mai kam er, z. B. zu Fuß. Schön.", ["Am 3. Mai kam er, z. B. zu Fuß.", "Schön."]),
        ("It was 1999. Then came 2000.", ["It was 1999.", "Then came 2000."]),
        ("List:\n1. First\n2. Second", ["List:", "1. First", "2. Second"]),
        ("First\n\nSecond", ["First", "Second"]),
        ("See example.com/a.b for more. Ok.", ["See example.com/a.b for more.", "Ok."]),
        ("Wait?! Really!! Yes.", ["Wait?!", "Really!!", "Yes."]),
        ("", []),
        (" \n ", []),
    ],
)  # fmt: skip
def test_sentences(text: str, expected: list[str]) -> None:
    for step in (1, 2, 7, 1000):
        assert split(text, step) == expected


def test_the_first_sentence_comes_before_the_second_is_there() -> None:
    splitter = Splitter()
    assert splitter.feed("It is Paris. ") == []
    assert splitter.feed("T") == ["It is Paris."]


@given(st.text(alphabet="ab .!?\n“”。3,", max_size=200), st.integers(1, 50))
def test_nothing_is_lost_and_pieces_do_not_matter(text: str, step: int) -> None:
    whole = split(text, 1000)
    assert split(text, step) == whole
    assert "".join("".join(whole).split()) == "".join(text.split())


def test_what_has_no_stop_is_cut_where_a_breath_fits() -> None:
    pieces = split("word, " * 200)
    assert all(len(piece) <= LONGEST for piece in pieces)
    assert all(piece.endswith(",") for piece in pieces)
    assert max(map(len, split("x" * 1000))) <= LONGEST


CODE = "Look:\n```python\nx = 1. \n\ny = 2\n```\nThat is all. Yes."


@pytest.mark.parametrize("step", [1, 2, 5, 1000])
def test_a_block_of_code_is_one_piece(step: int) -> None:
    pieces = split(CODE, step)
    assert pieces == ["Look:", "```python\nx = 1. \n\ny = 2\n```", "That is all.", "Yes."]


def test_code_within_a_line_ends_no_sentence_late() -> None:
    splitter = Splitter()
    assert splitter.feed("Type ```ls``` there. Now. A") == ["Type ```ls``` there.", "Now."]


def test_a_block_that_is_never_closed_comes_at_the_end() -> None:
    assert split("One. \n```\na\n\nb. c") == ["One.", "```\na\n\nb. c"]
