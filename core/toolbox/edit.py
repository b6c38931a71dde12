"""Replace a passage of a text that a model quotes from memory: exactly, else with the white space around
its lines ignored, else with all white space alike. Pure.

Invariant: a passage is replaced only where it is the one that fits; everything else stays byte for byte."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

from exo.core.base.errors import ExoError

How = Literal["exact", "trimmed lines", "white space"]
Span = tuple[int, int]
NEAR_LINES = 20_000  # lines of a file that are compared to find what was meant


@dataclass(frozen=True)
class Edited:
    """`line` is where the passage begins, from 1; `how` tells how it was found."""

    text: str
    line: int
    how: How


def edit(text: str, old: str, new: str, name: str) -> Edited:
    """Return `text` with the one passage like `old` replaced by `new`. Raises ExoError when none or
    several fit; it shows the lines that come nearest."""
    if not old.strip():
        raise ExoError(f"edit {name}", "old is empty", "quote the passage, or use write_file")
    if old == new:
        raise ExoError(f"edit {name}", "old and new are the same")
    for how, spans in (
        ("exact", _exact(text, old)),
        ("exact", _exact(text, old.replace("\n", "\r\n")) if "\r\n" in text else []),
        ("trimmed lines", _trimmed(text, old)),
        ("white space", _loose(text, old)),
    ):
        if len(spans) > 1:
            where = ", ".join(str(_line_of(text, start)) for start, _ in spans[:10])
            why = f"old fits {len(spans)} times ({how}), at lines {where}"
            raise ExoError(f"edit {name}", why, "quote more of the lines around the one you mean")
        if spans:
            start, end = spans[0]
            put = new if how == "exact" else _fit(text[start:end], old, new)
            put = put.replace("\r\n", "\n").replace("\n", "\r\n") if _crlf(text, old) else put
            return Edited(text[:start] + put + text[end:], _line_of(text, start), _how(how))
    raise ExoError(f"edit {name}", "old is not in the file", _nearest(text, old))


def _how(how: str) -> How:
    return "exact" if how == "exact" else "trimmed lines" if how[0] == "t" else "white space"


def _crlf(text: str, old: str) -> bool:
    """Whether new lines are to end as the file's do though the model wrote plain ones."""
    return "\r\n" in text and "\r" not in old and text.count("\r\n") * 2 > text.count("\n")


def _exact(text: str, old: str) -> list[Span]:
    spans: list[Span] = []
    at = text.find(old)
    while at >= 0 and len(spans) < 100:
        spans.append((at, at + len(old)))
        at = text.find(old, at + 1)
    return spans


def _trimmed(text: str, old: str) -> list[Span]:
    """Whole lines that are equal once stripped; blank lines around `old` do not count."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    while wanted and not wanted[0]:
        wanted.pop(0)
    while wanted and not wanted[-1]:
        wanted.pop()
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    stripped = [line.strip() for line in lines]
    spans = []
    for n in range(len(lines) - len(wanted) + 1):
        if stripped[n] == wanted[0] and stripped[n : n + len(wanted)] == wanted:
            last = n + len(wanted) - 1
            end = starts[last] + len(lines[last].rstrip("\r"))
            spans.append((starts[n], end))
    return spans


def _loose(text: str, old: str) -> list[Span]:
    """Passages whose words are the same, whatever white space is between them."""
    pattern = r"\s+".join(re.escape(word) for word in old.split())
    return [match.span() for match in re.finditer(pattern, text)][:100]


def _fit(found: str, old: str, new: str) -> str:
    """`new` with the indentation that the file has where `old` had another, and without the blank
    lines around it that stand for none in `found`."""
    if old.endswith("\n") and not found.endswith("\n"):
        new = new.removesuffix("\n")
    if old.startswith("\n") and not found.startswith("\n"):
        new = new.removeprefix("\n")
    theirs, ours = _indent(old.lstrip("\n")), _indent(found)
    lines = [
        ours + line[len(theirs) :] if line.strip() and line.startswith(theirs) else line
        for line in new.split("\n")
    ]
    return "\n".join(lines)


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _nearest(text: str, old: str) -> str:
    """The lines of the file that look most like the first telling line of `old`."""
    lines = text.split("\n")[:NEAR_LINES]
    stripped = [line.strip() for line in lines]
    wanted = max((line.strip()[:200] for line in old.split("\n")), key=len)
    close = difflib.get_close_matches(wanted, {line[:200] for line in stripped if line}, 1, 0.5)
    if not close:
        return f"nothing like it among its {len(lines)} lines; read the file again"
    at = next(n for n, line in enumerate(stripped) if line[:200] == close[0])
    around = range(max(0, at - 2), min(len(lines), at + 3))
    shown = "\n".join(f"{n + 1}: {lines[n][:300]}" for n in around)
    return f"the nearest lines are:\n{shown}"
