"""Text as it should be heard: what is only for the eye is taken out, what is left is cut into clauses at
its punctuation. Owns no voice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

TAIL = 16  # characters that are looked at for an abbreviation
LONGEST = 240  # characters in one clause: a voice needs memory in proportion

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]{0,1000})\]\([^()\n]{0,2000}\)")
_URL = re.compile(r"\b(?:https?://|www\.)([^\s/?#]+)\S*", re.IGNORECASE)
_LEAD = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+\u2022]|\|)[ \t]+", re.MULTILINE)
_MARKS = re.compile(r"[*_~`|#<>\\^{}\[\]]+")
_RULE = re.compile(r"^[ \t]*([-=*_])(?:[ \t]*\1){2,}[ \t]*$", re.MULTILINE)
# a mark ends a clause when space or the end follows, so that 3.5 and 12:30 stay whole
_END = re.compile(r"[.!?,;:\u2026\u3002\uff01\uff1f]+[\"')\]]*(?=\s|\Z)|[\u3002\uff01\uff1f]")
_SHORT = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Prof|vs|etc|e\.g|i\.e|No|[A-Z])\.\s*\Z")


def clean(text: str) -> str:
    """The text without markup, pictures and addresses; "" when nothing is left to say."""
    text = _FENCE.sub(" ", text.replace("\r", "\n"))
    text = _RULE.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    text = _URL.sub(lambda found: found.group(1).replace(".", " dot "), text)
    text = _LEAD.sub("", text)
    text = _MARKS.sub(" ", text)
    text = "".join(_heard(letter) for letter in text)
    # a line of its own is a sentence of its own, for the pause
    lines = [" ".join(line.split()) for line in text.split("\n")]
    ended = [line if line[-1] in ".!?,;:" else f"{line}." for line in lines if line]
    text = " ".join(ended)
    return text if any(letter.isalnum() for letter in text) else ""


def clauses(text: str) -> Iterator[tuple[str, str]]:
    """Cut cleaned text into (words, mark): the mark is the punctuation that ends it, for the melody."""
    start = 0
    for found in _END.finditer(text):
        end = found.end()
        if not _SHORT.search(text, max(start, end - TAIL), end):
            yield from _bounded(text[start:end])
            start = end
    yield from _bounded(text[start:])


def _bounded(piece: str) -> Iterator[tuple[str, str]]:
    body = piece.strip()
    words = body.rstrip(".!?,;:\u2026\u3002\uff01\uff1f\"')]")
    mark = _mark(body[len(words) :])
    while len(words) > LONGEST:
        cut = words.rfind(" ", 0, LONGEST)
        cut = cut if cut > 0 else LONGEST
        yield words[:cut], ","
        words = words[cut:].strip()
    if any(letter.isalnum() for letter in words):
        yield words, mark


def _mark(tail: str) -> str:
    for mark, like in (
        ("?", "?\uff1f"),
        ("!", "!\uff01"),
        (".", ".\u2026\u3002"),
        (";", ";"),
        (":", ":"),
    ):
        if any(letter in like for letter in tail):
            return mark
    return "," if tail else "."


def _heard(letter: str) -> str:
    kind = unicodedata.category(letter)
    if letter == "\n" or kind[0] in "LNM":
        return letter if not "\ufe00" <= letter <= "\ufe0f" else ""
    if kind in ("Cf", "Cs", "Co", "Cn"):
        return ""  # zero-width marks, joiners, halves of pairs
    if kind[0] in "CZ":
        return " "
    if letter in "\u2018\u2019\u02bc":
        return "'"
    if letter in "\u2013\u2014\u2015":
        return ", "
    if kind == "So":
        return " " if letter not in "\u00b0\u00a9\u00ae" else letter  # emoji, dingbats, boxes
    return letter
