"""What of the hits goes into a prompt, and in how many tokens. Owns the form of a block and the budget.

Invariant: the text is never longer than the budget, a block is one line, and every block carries its id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exo.core.retrieve.words import plain

NODES = 0.7  # of the budget
_NOT = {"not", "no", "never", "nicht", "kein", "keine", "nie", "don", "isn", "doesn", "t"}


@dataclass(frozen=True)
class Hit:
    """`score` 0 to 1; `found_by` of pin, bm25, vector, time, link; `text` what the document says, of a long
    one the piece that fits best."""

    id: str
    kind: str
    title: str
    score: float
    found_by: list[str]
    trust: str
    text: str
    summary: str = ""
    url: str = ""


def tokens(text: str) -> int:
    """Rather too many than too few: a third of the UTF-8 bytes."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def pack(hits: Iterable[Hit], budget: int) -> tuple[str, int]:
    """(the text for a prompt, its tokens): pinned hits first and in full, then nodes and items by their
    shares; what does not fit is shortened to its summary, its title, its address."""
    rest, left = list(hits), budget
    pins = [hit for hit in rest if "pin" in hit.found_by]
    lines, used = _fill(pins, left)
    left -= used
    others = [hit for hit in rest if hit not in pins]
    nodes = [hit for hit in others if hit.kind == "node"]
    items = [hit for hit in others if hit.kind != "node"]
    share = int(left * NODES) if items else left
    more, used = _fill(nodes, share)
    lines, left = lines + more, left - used
    more, used = _fill(items, left if used or not nodes else left - share)
    text = "\n".join(lines + more)
    return text, tokens(text) if text else 0


def _fill(hits: Sequence[Hit], room: int) -> tuple[list[str], int]:
    lines, used = [], 0
    for hit in hits:
        for line in _forms(hit):
            if used + tokens(line) + 1 <= room:
                lines.append(line)
                used += tokens(line) + 1
                break
    return lines, used


def _forms(hit: Hit) -> list[str]:
    """The block of a hit, the fullest form first."""
    mark = f"[{hit.id}]" if hit.trust in ("self", "verified") else f"[{hit.id}, {hit.trust}]"
    full = hit.text if hit.text.startswith(hit.title) else f"{hit.title}: {hit.text}"
    shorter = [hit.summary or hit.title] if hit.kind == "node" else [hit.title, hit.url]
    return [f"{mark} {' '.join(form.split())}" for form in (full, *shorter) if form.strip()]


def same(one: str, other: str) -> bool:
    """Whether two texts say one thing: the same words, or one has a few more that change nothing."""
    a, b = set(plain(one)), set(plain(other))
    if len(a) > len(b):
        a, b = b, a
    more = b - a
    if not a <= b or more & _NOT or any(word.isdigit() for word in more):
        return False
    return len(more) <= len(b) // 6
