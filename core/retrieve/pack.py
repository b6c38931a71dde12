"""What of the hits goes into a prompt, and in how many tokens. Owns the form of a block and the budget.

Invariant: the text is never longer than the budget, a block is one line, and every block carries its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exo.core.retrieve.words import DATA, STOP, plain

NODES = 0.7  # of the budget
_IDLE = STOP["en"].difference(DATA["negations"].split())


@dataclass(frozen=True)
class Hit:
    """`score` 0 to 1; `found_by` of pin, bm25, vector, time, link; `text` what the document says, of a long
    one the piece that fits best; `ts` is when it was said, ms UTC."""

    id: str
    kind: str
    title: str
    score: float
    found_by: list[str]
    trust: str
    text: str
    summary: str = ""
    url: str = ""
    ts: int = 0


def quoted(text: str) -> Hit:
    """What the person said in the same conversation, as if it had been found."""
    return Hit("", "said", "", 1.0, ["said"], "self", text)


def tokens(text: str) -> int:
    """Rather too many than too few: a third of the UTF-8 bytes."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def pack(hits: Sequence[Hit], budget: int) -> tuple[str, int]:
    """(the text for a prompt, its tokens): pinned hits first and in full, then nodes and items by their
    shares; what does not fit is shortened to its summary, its title, its address."""
    pins = [hit for hit in hits if "pin" in hit.found_by]
    nodes = [hit for hit in hits if hit.kind == "node" and hit not in pins]
    items = [hit for hit in hits if hit.kind != "node" and hit not in pins]
    lines, used = _fill(pins, budget)
    for group, share in ((nodes, NODES if items else 1.0), (items, 1.0)):
        more, took = _fill(group, int((budget - used) * share))
        lines = lines + more
        used = used + took
    text = "\n".join(lines)
    return text, tokens(text) if text else 0


def _fill(hits: Sequence[Hit], room: int) -> tuple[list[str], int]:
    lines = []
    used = 0
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


def said(hit: Hit) -> tuple[str, ...]:
    """What two hits are compared by: the words that tell, in their order; the title's where the text is
    short."""
    words = plain(hit.text)
    words = words if len(words) > 5 else plain(f"{hit.title} {hit.text}")
    return tuple(word for word in words if word not in _IDLE)
