"""Cuts a growing text into sentences as soon as each is finished, so that speech starts with the first.

Invariant: the pieces, joined, hold every visible character that was fed, in order."""

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
        """Where the first finished sentence ends."""
        for match in _END.finditer(self._rest):
            if match.end() > LONGEST:
                break
            if self._ends(match):
                return match.end()
        if len(self._rest) > LONGEST:
            places = [match.end() for match in _SOFT.finditer(self._rest, LONGEST // 2, LONGEST)]
            return places[-1] if places else LONGEST
        return None

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


def speakable(text: str) -> str:
    """Return a sentence without what nobody says: emphasis, links, emoji, bullets."""
    from exo.device.text import plain

    text = re.sub(r"https?://\S+", " ", plain(text))
    kept = "".join(char for char in text if not _silent(char))
    return re.sub(r"\s+", " ", kept).strip()


def _silent(char: str) -> bool:
    code = ord(char)
    return (
        char in "•#*_`~|<>{}"
        or 0x2190 <= code <= 0x2BFF
        or 0xFE00 <= code <= 0xFE0F
        or code >= 0x1F000
    )
