"""What is done with text before and after a model: for the ear, for the stream, for the loop."""

from __future__ import annotations

import time

import pytest
from exo.models.ear import LONGEST, clauses, clean
from exo.models.sampling import Decoder, Guard


@pytest.mark.parametrize(
    ("seen", "heard"),
    [
        ("Hello **there**", "Hello there."),
        ("# Title\nText", "Title. Text."),
        ("see [the page](http://x.org/a?b)", "see the page."),
        ("https://example.org/path?q=1", "example dot org."),
        ("a\u200bb \U0001f600 c", "ab c."),
        ("```py\nx = 1\n```", ""),
        ("\u2026 !!!", ""),
        ("", ""),
        ("It\u2019s 3.5 km", "It's 3.5 km."),
        ("- one\n- two", "one. two."),
    ],
)
def test_only_what_can_be_said_is_left(seen: str, heard: str) -> None:
    assert clean(seen) == heard


def test_clauses_end_at_punctuation_and_not_inside_numbers() -> None:
    text = "Dr. Smith paid 3.50, at 12:30. Why? e.g. this"
    assert list(clauses(text)) == [
        ("Dr. Smith paid 3.50", ","),
        ("at 12:30", "."),
        ("Why", "?"),
        ("e.g. this", "."),
    ]


def test_no_clause_is_longer_than_a_voice_has_memory_for() -> None:
    pieces = list(clauses(clean("word " * 2000 + "x" * 3000)))
    assert all(len(words) <= LONGEST for words, _ in pieces)
    assert sum(words.count("word") for words, _ in pieces) == 2000


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "A. " * 70_000, "[a](" * 50_000, "![" * 100_000 + "](x)"]
)
def test_hostile_text_is_cleaned_in_one_pass(text: str) -> None:
    begun = time.process_time()
    list(clauses(clean(text)))
    assert time.process_time() - begun < 10  # a quadratic pass takes minutes


def _fed(decoder: Decoder, *pieces: bytes) -> str:
    out = "".join(decoder.feed(piece) for piece in pieces if not decoder.stopped)
    return out if decoder.stopped else out + decoder.feed(b"", last=True)


def test_a_letter_split_over_tokens_is_held_back_until_it_is_whole() -> None:
    raw = "né 😀!".encode()
    decoder = Decoder((), guard=False)
    shown = [decoder.feed(raw[i : i + 1]) for i in range(len(raw))]
    assert "".join(shown) == "né 😀!" and "\ufffd" not in "".join(shown)


def test_a_stop_string_across_tokens_is_never_shown() -> None:
    decoder = Decoder(("<end>",), guard=False)
    assert _fed(decoder, b"one <e", b"n", b"d> two") == "one "
    assert decoder.stopped == "<end>"


def test_text_that_only_looks_like_a_stop_string_is_shown() -> None:
    assert _fed(Decoder(("<end>",), guard=False), b"a <en", b"try") == "a <entry"


def test_a_repeated_sentence_is_cut_and_not_shown() -> None:
    decoder = Decoder((), guard=True)
    said = _fed(decoder, *(b"The sea is very wide. " for _ in range(4)))
    assert said == "The sea is very wide. " and decoder.stopped == "loop"


def test_a_sentence_that_only_begins_like_another_is_shown_whole() -> None:
    text = "The sea is very wide. The sea is very deep. It is 3.5 km."
    decoder = Decoder((), guard=True)
    assert _fed(decoder, *(text[i : i + 3].encode() for i in range(0, len(text), 3))) == text
    assert not decoder.stopped


def test_a_stutter_without_a_full_stop_is_cut() -> None:
    guard = Guard()
    shown = "".join(guard.feed("and the dog ", False) for _ in range(40))
    assert guard.looping and shown.count("dog") < 10
