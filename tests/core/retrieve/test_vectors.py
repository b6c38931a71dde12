from __future__ import annotations

import math
import random

import pytest
from exo.core.retrieve.index import Index
from exo.core.retrieve.vectors import PICK, cosine, encode, unit


def test_codes_of_vectors_of_different_shape_compare() -> None:
    """Each vector scaled by its own largest number would put the spiky one before the even one."""
    width = 384
    query = [1.0] * width
    even = [1.0] * width  # cosine 1
    spiky = [1.0] * (width - 1) + [30.0]  # cosine about 0.6
    raw = [bytes(encode(each)[1]) for each in (even, spiky)]
    near_even, near_spiky = (cosine(unit(query), codes) for codes in raw)
    assert near_even == pytest.approx(1.0, abs=0.02)
    assert near_even > near_spiky + 0.2
    own = [[round(127 * x / max(each)) for x in each] for each in (even, spiky)]
    assert sum(own[0]) > sum(own[1])  # ... and so it does not for these two
    flat = [x * 0.05 for x in even]
    assert encode(flat) == encode(even)  # length does not count


@pytest.mark.parametrize("width", [8, 96, 384, 768, 1024])
def test_a_coded_cosine_is_the_cosine(width: int) -> None:
    drawn = random.Random(width)
    for _ in range(20):
        one, other = ([drawn.gauss(0, 1) for _ in range(width)] for _ in range(2))
        exact = sum(x * y for x, y in zip(unit(one), unit(other), strict=True))
        assert cosine(unit(one), encode(other)[1]) == pytest.approx(exact, abs=0.02)


def test_no_direction_is_near_nothing() -> None:
    for vector in ([0.0] * 8, [math.inf] * 8, [math.nan] * 8):
        assert unit(vector) == [0.0] * 8
        assert cosine(unit([1.0] * 8), encode(vector)[1]) == 0


def put(index: Index, vectors: list[list[float]]) -> None:
    with index.database.transaction() as link:
        for vector in vectors:
            link.execute(
                "INSERT INTO vectors (hash, bits, codes) VALUES (randomblob(16), ?, ?)",
                encode(vector),
            )


def test_bits_pick_what_an_exact_scan_finds(index: Index) -> None:
    drawn = random.Random(5)
    query = unit([drawn.gauss(0, 1) for _ in range(384)])
    close = [[x + drawn.gauss(0, 0.06) for x in query] for _ in range(10)]
    far = [[drawn.gauss(0, 1) for _ in range(384)] for _ in range(2000)]
    put(index, far[:1000] + close + far[1000:])
    assert set(index.vectors.nearest(query, 10)) == set(range(1001, 1011))
    assert len(index.vectors.nearest(query, 1000)) == PICK


def test_what_is_gone_is_not_found_and_what_came_is(index: Index) -> None:
    drawn = random.Random(6)
    query = unit([drawn.gauss(0, 1) for _ in range(64)])
    put(index, [[drawn.gauss(0, 1) for _ in range(64)] for _ in range(300)])
    assert len(index.vectors.nearest(query, 400)) == PICK
    with index.database.transaction() as link:
        link.execute("DELETE FROM vectors WHERE n <= 299")
    assert set(index.vectors.nearest(query, 400)) == {300}
    put(index, [list(query)])
    assert next(iter(index.vectors.nearest(query, 400))) == 301
    with index.database.transaction() as link:
        link.execute("DELETE FROM vectors")
    assert index.vectors.nearest(query, 400) == {}
    put(index, [list(query)])
    assert set(index.vectors.nearest(query, 400)) == {302}
