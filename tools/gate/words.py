"""A call in one line that a person can judge on a small screen: what, on what, who sees it, can it be
undone. Owns the cutting and the marks of characters that deceive."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from exo.tools.gate.axes import Axes

WIDTH = 80
_SEEN = {"shared": "others see it", "public": "the world sees it"}
_UNDO = {"reversible": "can be undone", "recoverable": "partly undone", "irreversible": "no undo"}


def summary(what: str, axes: Axes, doubts: Sequence[str], more: int, secrets: Sequence[str]) -> str:
    """At most 80 characters."""
    tail = [_SEEN[axes.exposure]] if axes.exposure in _SEEN else []
    tail += ["costs money"] if axes.cost == "money" else []
    tail += ["secret"] if secrets else []
    tail += ["not understood"] if doubts else []
    tail += [_UNDO[axes.reversibility]]
    end = ", ".join(tail)
    extra = f" +{more}" if more > 0 else ""
    return f"{middle(visible(what), WIDTH - len(end) - len(extra) - 2)}{extra}: {end}"


def middle(text: str, width: int) -> str:
    """`text` in `width` characters: its begin and its end, where what matters stands."""
    if len(text) <= width:
        return text
    head = (width - 1) * 3 // 5
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def visible(text: str) -> str:
    """One line, with a mark for every character that is not seen, turns the order or joins to others."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_mark(char) for char in " ".join(text[:100_000].split()))


def _mark(char: str) -> str:
    kind = unicodedata.category(char)
    if char == " " or kind[0] in "LMNPS":
        return char
    return f"<{ord(char):x}>"
