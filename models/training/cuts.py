"""Where a sentence may be cut, for the end of a turn. Owns the rule that labels a cut; knows no model.

A cut of an authored sentence is labelled by its author (`turn.end.cuts.txt`). One of CLINC150 is unfinished
where its last word needs another (GOES_ON); after any other word nobody can say, and it is no example.
Invariant: rows of one sentence share a group, so that no fold tests on what it has half seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from exo.models.closed import kinds

# words of CLINC150's language after which a sentence that goes on is not complete
GOES_ON = """the a an my your his our their its of to for from with at by into about than per and or but because
if whether when while is are was were am be been will would can could should shall must may might do does did has
i we they he she what which how who where why as until unless between every each"""
HESITATIONS = {
    "en": ("um", "uh", "and um", "so", "and", "but", "like", "you know"),
    "de": ("ähm", "äh", "und", "und äh", "aber", "also ähm", "weil"),
    "es": ("este", "eh", "y", "y eh", "pero", "o sea", "pues"),
}
# what Whisper (tiny.en) writes at the end of what breaks off and of what is complete, about as often
BROKEN = (".", ".", ".", "...", ".", ",", "")
WHOLE = (".", ".", ".", "")
ASKS = {"what", "can", "do", "is", "have"}  # kinds of word that begin a question
_MARKED = re.compile(r"([^\s|/]+)([\s|/]?)")


def authored(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """(group, language, label, text) of every labelled cut, as a recogniser may write it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for group, line in enumerate(each for each in lines if each.strip() and each[0] != "#"):
        language, _, marked = line.partition("\t")
        for label, text in labelled(marked):
            yield group, language, label, text
        whole = " ".join(word for word, _ in _MARKED.findall(marked)).rstrip("?")
        hesitation = HESITATIONS[language][group % len(HESITATIONS[language])]
        yield group, language, "unfinished", f"{whole}, {hesitation}"


def labelled(marked: str) -> Iterator[tuple[str, str]]:
    """(label, text) of the cuts of one marked sentence, the shortest first."""
    words: list[str] = []
    found = _MARKED.findall(marked)
    for at, (word, mark) in enumerate(found):
        words.append(word)
        last = at == len(found) - 1
        if mark == "|" or mark == "/" or last:
            yield "unfinished" if mark == "|" else "finished", " ".join(words)


def as_written(text: str, label: str, turn: int) -> Iterator[str]:
    """The text bare, and with the capital and the end mark of a recogniser; `turn` picks among the marks."""
    bare = text.rstrip("?.")
    yield bare.lower()
    asks = text.startswith("¿") or not ASKS.isdisjoint(kinds(bare.split()[0].lower()))
    mark = BROKEN[turn % len(BROKEN)] if label == "unfinished" else WHOLE[turn % len(WHOLE)]
    if asks and mark == ".":
        mark = "?"
    yield bare[:1].upper() + bare[1:] + ("" if bare.endswith(",") else mark)


def of_clinc(sentence: str, at: int) -> str | None:
    """The sentence cut after its word number `at`; None where it may be complete there."""
    words = sentence.split()
    return " ".join(words[:at]) if at < len(words) and words[at - 1] in GOES_ON.split() else None
