"""Views tile exactly, and merge only what belongs together."""

from __future__ import annotations

from exo.core.context.tree import LEAF, children, covered, merge, pair, span, tile
from hypothesis import given
from hypothesis import strategies as st

leaves = st.integers(0, 300)
finished = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 80)), max_size=200)


def closed(nodes: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    """All leaves below `count`, and those nodes whose children are there."""
    out = {(0, n) for n in range(count)}
    for level, index in sorted(nodes):
        if level and all(each in out for each in children((level, index))):
            out.add((level, index))
    return out


@given(finished, leaves)
def test_a_tile_has_no_gap_and_no_overlap(nodes: set[tuple[int, int]], count: int) -> None:
    view = tile(nodes, count)
    place = 0
    for address in view:
        first, end = span(address)
        assert first == place and end > first and address in nodes
        place = end
    assert place == covered(view) <= count * LEAF


@given(finished, leaves)
def test_with_all_leaves_done_a_tile_covers_them_all_by_the_coarsest(
    nodes: set[tuple[int, int]], count: int
) -> None:
    done = closed(nodes, count)
    view = tile(done, count)
    assert covered(view) == count * LEAF
    for level, index in view:
        parent = (level + 1, index // 2)
        assert parent not in done or span(parent)[1] > count * LEAF


@given(finished, leaves)
def test_merging_takes_the_oldest_neighbours_with_one_parent_until_few_are_left(
    nodes: set[tuple[int, int]], count: int
) -> None:
    view = tile(closed(nodes, count), count)
    while parent := pair(view):
        left, right = children(parent)
        at = view.index(left)
        assert view[at + 1] == right
        assert pair(view[: at + 1]) is None  # none older
        end = covered(view)
        view = merge(view, parent)
        assert covered(view) == end
    assert len(view) <= 2 * max(1, count).bit_length()


def test_addresses() -> None:
    assert span((0, 0)) == (0, 8) and span((2, 1)) == (32, 64)
    assert children((2, 1)) == ((1, 2), (1, 3))
    assert pair([(1, 0), (0, 2), (0, 3), (0, 4)]) == (1, 1)
    assert pair([(0, 1), (0, 2)]) is None
    assert tile({(0, 0), (0, 2)}, 3) == [(0, 0)]
