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
    place = 0
    top = max(leaves, 1).bit_length()
    while place < leaves:
        for level in range(top, -1, -1):
            size = 1 << level
            fits = place % size == 0 and place + size <= leaves
            if fits and (level, place >> level) in finished:
                break
        else:
            break
        view.append((level, place >> level))
        place += size
    return view


def pair(view: Sequence[Address]) -> Address | None:
    """The parent of the oldest two neighbours of one level that have the same parent."""
    for left, right in zip(view, view[1:], strict=False):
        level, index = left
        if index % 2 == 0 and right == (level, index + 1):
            return level + 1, index // 2
    return None


def merge(view: Sequence[Address], parent: Address) -> list[Address]:
    """The view with `parent` in the place of its two children."""
    left, right = children(parent)
    return [parent if each == left else each for each in view if each != right]


def covered(view: Sequence[Address]) -> int:
    """Messages that a view covers."""
    return span(view[-1])[1] if view else 0
