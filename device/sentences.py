"""Cuts a growing text into sentences as soon as each is finished, so that speech starts with the first.

A block of code is one piece: how it is said depends on all of it. Invariant: the pieces, joined, hold every visible character that was fed, in order."""

from __future__ import annotations

import re

SHORTEST = 2  # letters in a sentence: "1." alone is a number in a list, not a sentence
LONGEST = 240  # characters that wait at most: what has no stop is cut at a comma or a space

# words whose stop ends no sentence (English, German, French, Spanish, Italian)
_ABBREVIATIONS = """mr mrs ms dr prof sr jr st vs etc e.g i.e eg ie approx no nos vol fig al inc ltd co corp dept est
    gen gov hon rev sgt capt lt col maj cf ca a.m p.m am pm u.s u.k jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue wed thu fri sat sun z.b d.h u.a usw bzw ggf evtl nr str bspw inkl vgl ca hr fr
    hrsg abs mio mrd tel m mme mlle p.ex sra srta ud uds ej pág dott sig"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
_END = re.compile(
    r"[.!?…]+[\"'”’»)\]*_]*(?=\s+\S)|[。！？｡]++[」』”’）]*+(?=[\s\S])|\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)"
)
# a line of three marks that do not end on it opens a block of code, the next one closes it
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)(?![^\n]*(?:```|~~~))", re.M)
_CLOSED = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n", re.M)
_SOFT = re.compile(r"[,;:，、；：–—]\s*|\s")


class Splitter:
    """Feed text as it streams in; get the sentences that are complete."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """Return the sentences that `text` completes. A stop counts once something follows it: "3."
        may go on as "3.14"."""
        self._rest += text
        done = []
        while (cut := self._cut()) is not None:
            piece, self._rest = self._rest[:cut].strip(), self._rest[cut:]
            if piece:
                done.append(piece)
        return done

    def flush(self) -> list[str]:
        """Return what is left, at the end of the text."""
        rest, self._rest = self._rest.strip(), ""
        return [rest] if rest else []

    def _cut(self) -> int | None:
        """Where the first finished sentence ends. A block of code is one, whatever stands in it."""
        fence = _FENCE.search(self._rest)
        if fence and not self._rest[: fence.start()].strip():
            end = _CLOSED.search(self._rest, fence.end())
            return end.end() if end else None
        limit = fence.start() if fence else len(self._rest)
        for match in _END.finditer(self._rest, 0, limit):
            if match.end() > LONGEST:
                break
            if self._ends(match):
                return match.end()
        if limit > LONGEST:
            places = [match.end() for match in _SOFT.finditer(self._rest, LONGEST // 2, LONGEST)]
            return places[-1] if places else LONGEST
        return limit if fence else None

    def _ends(self, match: re.Match[str]) -> bool:
        stop, before = match.group(), self._rest[: match.start()]
        if sum(char.isalnum() for char in before) < SHORTEST and "\n" not in stop:
            return False
        after = self._rest[match.end() :].lstrip()
        if "\n" in stop or stop[0] in "。！？｡":
            return True
        if after[0].islower():
            return False  # the sentence goes on behind a quotation or an ellipsis
        if not stop.startswith(".") or stop.startswith(".."):
            return True
        word = re.split(r"[\s(\[\"“„'‘«]", before)[-1]
        if word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
            return False  # an initial, an abbreviation
        if "." in word and all(len(part) == 1 for part in word.split(".")):
            return False  # a chain of initials
        # "am 3. Mai", "1. first of a list": waiting for the next stop costs less than a wrong cut
        return not (word.isdigit() and len(word) <= 2)
