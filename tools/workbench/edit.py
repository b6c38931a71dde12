"""Replace a passage of a text that a model quotes from memory: exactly, else whatever white space stands
between its words. Pure.

Invariant: a passage is replaced only where it is the one that fits; everything else stays byte for byte."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from exo.core.base.errors import ExoError

NEAR_LINES = 20_000  # lines of a file that are compared to find what was meant


@dataclass(frozen=True)
class Edited:
    """`line` is where the passage begins, from 1; `how` tells how it was found."""

    text: str
    line: int
    how: str


def edit(text: str, old: str, new: str, name: str) -> Edited:
    """Return `text` with the one passage like `old` replaced by `new`. Raises ExoError when none or
    several fit; it shows the lines that come nearest."""
    if not old.strip():
        raise ExoError(f"edit {name}", "old is empty", "quote the passage, or use write_file")
    if old == new:
        raise ExoError(f"edit {name}", "old and new are the same")
    old, new = like(text, old), like(text, new)
    words = r"\s+".join(map(re.escape, old.split()))
    ways = {
        "exact": f"(?=({re.escape(old)}))",  # overlapping ones count too
        "white space": rf"((?:^[ \t]*)?{words})",
    }
    for how, pattern in ways.items():
        spans = [match.span(1) for match in re.finditer(pattern, text, re.M)]
        if len(spans) > 1:
            where = ", ".join(str(_line_of(text, start)) for start, _ in spans[:10])
            why = f"old fits {len(spans)} times ({how}), at lines {where}"
            raise ExoError(f"edit {name}", why, "quote more of the lines around the one you mean")
        if spans:
            start, end = spans[0]
            put = new if how == "exact" else _fit(text[start:end], old, new)
            return Edited(text[:start] + put + text[end:], _line_of(text, start), how)
    raise ExoError(f"edit {name}", "old is not in the file", _nearest(text, old))


def like(text: str, part: str) -> str:
    """`part` with the line ends of `text` where that has CR LF and the model wrote plain ones."""
    if "\r" in part or text.count("\r\n") * 2 <= text.count("\n"):
        return part
    return part.replace("\n", "\r\n")


def _fit(found: str, old: str, new: str) -> str:
    """`new` with the indentation that the file has where `old` had another, and without the blank
    lines around it that stand for none in `found`."""
    if old.endswith("\n"):
        new = new.removesuffix("\n").removesuffix("\r")
    if old.startswith("\n"):
        new = new.removeprefix("\n")
    theirs, ours = _indent(old.lstrip("\r\n")), _indent(found)
    lines = []
    for line in new.split("\n"):
        inside = line.strip() and line.startswith(theirs)
        lines.append(ours + line[len(theirs) :] if inside else line)
    return "\n".join(lines)


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _nearest(text: str, old: str) -> str:
    """The lines of the file that look most like the first telling line of `old`."""
    lines = text.split("\n")[:NEAR_LINES]
    short = [line.strip()[:200] for line in lines]
    wanted = max((line.strip()[:200] for line in old.split("\n")), key=len)
    close = difflib.get_close_matches(wanted, set(short) - {""}, 1, 0.5)
    if not close:
        return f"nothing like it among its {len(lines)} lines; read the file again"
    at = short.index(close[0])
    return f"the nearest lines are:\n{show(lines, max(0, at - 2), 5)}"


def show(lines: list[str], first: int, count: int) -> str:
    """Some lines of a file with their numbers, for an error that a model reads."""
    part = list(enumerate(lines, 1))[first : first + count]
    return "\n".join(f"{number}: {line.rstrip()[:300]}" for number, line in part)
