"""Text as a small screen can show it: clusters, plain text from a model's markdown, lines that fit.
Owns what may stand where on a line; draws nothing.

Invariant: `wrap` loses no visible cluster, no line is wider than asked (a lone glyph that is wider
apart), and a word is cut only when it does not fit on a line of its own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

MARKS = 4  # marks laid over one letter at most: more only blacken it
LONGEST = 20_000  # characters that are laid out at most
BREAK_AFTER = frozenset("-\u2010\u2013\u2014/\u2026")
# East Asian rules (JIS X 4051): these begin no line, those end none
NOT_FIRST = frozenset(
    "、。，．：；！？）］｝〕〉》」』】〙〗〟’”ー・…‥々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.!?;:)]}%"
)
NOT_LAST = frozenset("（［｛〔〈《「『【〘〖〝‘“([{")

_ZWJ = "\u200d"
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Zl", "Zp")  # categories of Unicode


@dataclass(frozen=True)
class Line:
    """One line of clusters, its width and height in pixels; an empty one is a gap between paragraphs."""

    clusters: tuple[str, ...]
    width: int
    height: int

    def __str__(self) -> str:
        return "".join(self.clusters)


Measure = Callable[[str], tuple[int, int]]  # cluster -> width, height in pixels


def clusters(text: str) -> list[str]:
    """Split `text` into what is drawn in one place: a letter with its marks. Line feeds stay, tabs
    become spaces; what is invisible (controls, joiners, selectors, direction marks) is dropped, and
    of joined emoji the first stays."""
    result: list[str] = []
    joined = False  # the last character was a joiner after an emoji
    for char in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(char)
        if char == "\n":
            result.append(char)
        elif char == _ZWJ:
            joined = bool(result) and _emoji(result[-1])
            continue
        elif kind in ("Cc", "Zs", "Zl", "Zp") and char not in "\r\0":
            result.append(" " if kind != "Cc" or char in "\t\v\f" else "")
        elif kind in ("Cc", "Cf", "Cs") or _selector(char):
            pass
        elif kind in ("Mn", "Me"):
            if result and result[-1] not in ("\n", " ") and len(result[-1]) <= MARKS:
                result[-1] += char
        elif not (joined and _emoji(char)):
            result.append(char)
        joined = False
    return [cluster for cluster in result if cluster]


def _emoji(cluster: str) -> bool:
    return ord(cluster[0]) >= 0x1F000 or unicodedata.category(cluster[0]) == "So"


def _selector(char: str) -> bool:
    """Variation selectors and the skin tones that follow an emoji."""
    code = ord(char)
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x1F3FB <= code <= 0x1F3FF


def seen(text: str) -> bool:
    """Whether anything of `text` is to be seen."""
    return any(not char.isspace() and unicodedata.category(char) not in UNSEEN for char in text)


def plain(text: str) -> str:
    """Return a model's markdown as plain text: no emphasis, no rulers; list items get a bullet."""
    text = text[:LONGEST].replace("\r\n", "\n")
    text = re.sub(r"^\s*(```|~~~|---+|\*\*\*+)[^\n]*$", "", text, flags=re.M)
    text = re.sub(r"^#{1,6}\s+", "", text, flags=re.M)
    text = re.sub(r"^(\s*)[*+-]\s+", r"\1• ", text, flags=re.M)
    text = re.sub(r"\[([^\]\n]+)\]\((?:[^)\s]+)\)", r"\1", text)
    text = re.sub(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)\*(?=\S)([^*\n]+?)(?<=\S)\*(?!\w)", r"\1", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def wrap(text: str, width: int, measure: Measure, gap: int = 4) -> list[Line]:
    """Return the lines of `text` for `width` pixels. An empty line is `gap` pixels high."""
    lines: list[Line] = []
    for paragraph in _paragraphs(clusters(text)):
        if paragraph:
            lines += _fill(paragraph, width, measure)
        elif lines and lines[-1].clusters:
            lines.append(Line((), 0, gap))
    while lines and not lines[-1].clusters:
        lines.pop()
    return lines


def _paragraphs(marks: list[str]) -> list[list[str]]:
    result: list[list[str]] = [[]]
    for cluster in marks:
        if cluster == "\n":
            result.append([])
        else:
            result[-1].append(cluster)
    return [part if any(c != " " for c in part) else [] for part in result]


def _fill(paragraph: list[str], width: int, measure: Measure) -> list[Line]:
    """Greedy filling with whole pieces; a piece wider than a line is cut between its clusters."""
    lines: list[Line] = []
    line: list[str] = []
    used = 0

    def close() -> None:
        nonlocal line, used
        while line and line[-1] == " ":
            line.pop()
        if line:
            sizes = [measure(cluster) for cluster in line]
            height = max(h for _, h in sizes)
            # high glyphs fill their cell: a row of air keeps the lines apart
            lines.append(Line(tuple(line), sum(w for w, _ in sizes), height + (height > 12)))
        line, used = [], 0

    for piece in _pieces(paragraph):
        needs = sum(measure(cluster)[0] for cluster in piece)
        spaces = piece[0] == " "
        if used and used + needs > width:
            close()
        if spaces and not line and lines:
            continue  # a line that was filled before begins with no space
        if needs <= width:
            line += piece
            used += needs
            continue
        for cluster in piece:  # longer than a line
            step = measure(cluster)[0]
            if used and used + step > width:
                close()
            line.append(cluster)
            used += step
    close()
    return lines


def _pieces(paragraph: list[str]) -> list[list[str]]:
    """Cut into pieces between which a line may break: runs of spaces, words, ideographs."""
    pieces: list[list[str]] = []
    for index, cluster in enumerate(paragraph):
        before = paragraph[index - 1] if index else ""
        if pieces and not _may_break(before, cluster):
            pieces[-1].append(cluster)
        else:
            pieces.append([cluster])
    return pieces


def _may_break(before: str, after: str) -> bool:
    if (before == " ") != (after == " "):
        return True
    if before == " " or after in NOT_FIRST or before in NOT_LAST:
        return False
    if before in BREAK_AFTER:
        return after[0].isalpha()
    return _ideograph(before) or _ideograph(after)


def _ideograph(cluster: str) -> bool:
    return unicodedata.east_asian_width(cluster[0]) in "WF"


def elide(text: str, width: int, measure: Measure) -> str:
    """Return `text` on one line, its end replaced by `…` when it does not fit `width` pixels."""
    # a glyph takes a pixel at least, so that more characters never fit
    marks = [cluster if cluster != "\n" else " " for cluster in clusters(text[: width * MARKS])]
    if sum(measure(cluster)[0] for cluster in marks) <= width:
        return "".join(marks)
    room = width - measure("…")[0]
    kept: list[str] = []
    for cluster in marks:
        room -= measure(cluster)[0]
        if room < 0:
            break
        kept.append(cluster)
    return "".join(kept).rstrip() + "…"
