"""The summary tree's arithmetic. Pure: addresses in, addresses out.

A leaf is LEAF messages; the node (level, index) covers 2^level leaves; its children are
(level - 1, 2 index) and (level - 1, 2 index + 1). Invariant: every view made here tiles the leaves from
the first on, oldest first, without gap or overlap."""

from __future__ import annotations

from collections.abc import Collection, Sequence

LEAF = 8  # messages
Address = tuple[int, int]  # (level, index)


def span(address: Address) -> tuple[int, int]:
    """(first message, message after the last) that a node covers, counted from 0."""
    level, index = address
    size = LEAF << level
    return index * size, (index + 1) * size


def children(address: Address) -> tuple[Address, Address]:
    """The two nodes one level below. Not for leaves."""
    level, index = address
    return (level - 1, 2 * index), (level - 1, 2 * index + 1)


def tile(finished: Collection[Address], leaves: int) -> list[Address]:
    """The coarsest finished nodes that tile leaves 0, 1, ... as far as there is no gap, at most `leaves`."""
    view: list[Address] = []
    place, top = 0, max(leaves, 1).bit_length()
    while place < leaves:
        fits = (
            (level, place >> level)
            for level in range(top, -1, -1)
            if place % (1 << level) == 0 and place + (1 << level) <= leaves
        )
        found = next((each for each in fits if each in finished), None)
        if found is None:
            break
        view.append(found)
        place += 1 << found[0]
    return view


def pair(view: Sequence[Address]) -> Address | None:
    """The parent of the oldest two neighbours of one level that have the same parent."""
    for left, right in zip(view, view[1:], strict=False):
        if left[0] == right[0] and left[1] % 2 == 0 and right[1] == left[1] + 1:
            return left[0] + 1, left[1] // 2
    return None


def merge(view: Sequence[Address], parent: Address) -> list[Address]:
    """The view with `parent` in the place of its two children."""
    left, right = children(parent)
    return [parent if each == left else each for each in view if each != right]


def covered(view: Sequence[Address]) -> int:
    """Messages that a view covers."""
    return span(view[-1])[1] if view else 0
