"""Words of a text as the index knows them, and what of a question is looked for. Owns folding, cutting
scripts without spaces, stems, stop words and near words.

Invariant: a term is letters, digits and their marks alone, so that any text is a safe query."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

READ = 20_000  # characters of a question that are looked at
# scripts that write no spaces, and Hangul, whose particles stick to the word
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\U00020000-\U0003ffff"
)
_MARKED = (*range(0x0900, 0x1AFF), *range(0x3099, 0x309B), *range(0xA800, 0xABFF))
_MARKS = "".join(mark for mark in map(chr, _MARKED) if unicodedata.category(mark)[0] == "M")
# accents, points of Hebrew and Arabic, the Arabic stretcher
_LOOSE = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\ufe0e\ufe0f]"
)
_SHORT = re.compile("['’](?:s|t|re|ve|ll|d|m)\\b")
_WORD = re.compile(
    f"[{_DENSE}](?:[{_DENSE}{_MARKS}])*|[^\\W_{_DENSE}](?:[^\\W_{_DENSE}]|[{_MARKS}])*"
)
_CLUSTER = re.compile(f".[{_MARKS}]*")
_IS_DENSE = re.compile(f"[{_DENSE}]")
DATA = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
STOP = {name: frozenset(text.split()) for name, text in DATA["stop"].items()}
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("en", ""))
_VERB = re.compile("(.{3,})(?:ing|ed)")
_SYLLABLE = re.compile("[^aeiou][aeiou][^aeiouwxy]")


def plain(text: str) -> list[str]:
    """The words of `text`, without case, accents and forms of width."""
    text = text.casefold()
    if not text.isascii():
        loose = _LOOSE.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", loose).casefold()
    return _WORD.findall(_SHORT.sub("", text))


@lru_cache(10_000)
def stem(word: str) -> str:
    """`word` without a common ending: plural, -ing, -ed, a last e."""
    if len(word) < 4 or not word.isalpha():
        return word
    if found := _VERB.fullmatch(word):
        word = found[1]
        if _SYLLABLE.fullmatch(word):
            return word + "e"
        return word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
    ending, instead = next((pair for pair in _ENDINGS if word.endswith(pair[0])), ("", ""))
    if ending and len(word) - len(ending) >= 3:
        return word[: -len(ending)] + instead
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word[-1] == "e" else word


def tongue(words: Iterable[str]) -> str:
    """The language of folded words by its stop words; "" where they do not say."""
    counts = sorted((len(stop.intersection(words)), name) for name, stop in STOP.items())
    return counts[-1][1] if counts[-1][0] > counts[-2][0] else ""


def terms(words: Iterable[str], query: bool = False) -> list[str]:
    """What of plain words goes into the index, in order. A run of a script without spaces becomes pairs of
    characters; its last character stands alone too, so that one is found as the beginning of a term."""
    out: list[str] = []
    for word in words:
        if word.isascii() or not _IS_DENSE.match(word):
            out.append(stem(word))
            continue
        marks = _CLUSTER.findall(word)
        out += [a + b for a, b in zip(marks, marks[1:], strict=False)]
        if not query or len(marks) == 1:
            out.append(marks[-1])
    return out


def sought(query: str) -> list[str]:
    """The terms of a question that count, each once; stop words and single letters are left out."""
    words = plain(query[:READ])
    stop = STOP["en"] | STOP.get(tongue(words), frozenset())
    telling = [word for word in words if word not in stop and (len(word) > 1 or not word.isalpha())]
    dense = [word for word in words if len(word) == 1 and _IS_DENSE.match(word)]
    return list(dict.fromkeys(terms(telling + dense, query=True)))


def expression(chosen: Iterable[str]) -> str:
    """An FTS5 query for any of the terms."""
    return " OR ".join(
        f'"{term}"*' if len(term) == 1 and _IS_DENSE.match(term) else f'"{term}"' for term in chosen
    )


def near(word: str, candidates: Iterable[str], most: int) -> list[str]:
    """Those of `candidates` that differ from `word` by at most `most` letters, the nearest first."""
    letters = set(word)
    close = (other for other in candidates if len(letters ^ set(other)) <= 2 * most)
    found = sorted((_distance(word, other, most), other) for other in close)
    return [other for distance, other in found if distance <= most]


def _distance(a: str, b: str, most: int) -> int:
    """Letters to change, add, leave out or swap with their neighbour; above `most` any larger number."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                best = min(best, last[j - 2] + 1)
            row.append(best)
        if min(row) > most:
            break
    return max(row[-1], min(row))
