"""A call in one line that a person can judge on a small screen: what, on what, who sees it, can it be
undone. Owns the cutting and the marks of characters that deceive."""

from __future__ import annotations

import unicodedata
from typing import Any

from exo.core.gate.axes import Act, Axes, Judgement

WIDTH = 80
_SEEN = {"private": "", "shared": "others see it", "public": "the world sees it"}
_UNDO = {"reversible": "can be undone", "recoverable": "partly undone", "irreversible": "no undo"}


def summary(act: Act, judgement: Judgement, axes: Axes) -> str:
    """At most 80 characters: the weightiest part of the call, how many more there are, the axes."""
    ranked = sorted(judgement.parts, key=lambda part: -part.axes.weight)
    what = ranked[0].what if ranked else act.line
    more = sum(part.axes.weight > 0 for part in ranked[1:])
    if judgement.doubts and not (ranked and ranked[0].axes.weight):
        what = str(act.args.get("command") or what)
    tail: list[Any] = [_SEEN[axes.exposure], axes.cost == "money" and "costs money"]
    tail += [judgement.secrets and "a secret", judgement.doubts and "not understood"]
    looks = judgement.secrets and axes.exposure == "private"  # nothing is done that could be undone
    end = ", ".join(filter(None, [*tail, "" if looks else _UNDO[axes.reversibility]]))
    extra = f" and {more} more" if more else ""
    room = max(1, WIDTH - len(end) - len(extra) - 2)
    return f"{middle(visible(what), room)}{extra}: {end}"[-WIDTH:]


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
    shown = char == " " or unicodedata.category(char)[0] in "LMNPS"
    return char if shown else f"<{ord(char):x}>"
