"""Nearness of meaning without a vector library: sign bits in memory pick, int8 codes on disk decide.

Owns the coding of a vector and the scan. Invariant: every code uses the one scale of its width, so that
scores of different vectors compare; a vector gone from the file is never given back."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from operator import mul

from exo.core.base.sqlite import Database

PICK, STALE = 120, 50  # vectors that the sign bits pick; that may be gone before all are read again


def unit(vector: Sequence[float]) -> list[float]:
    """`vector` at length 1; zeros when it has no length or is not finite."""
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length if 0 < length < math.inf else 0.0 for x in vector]


def scale(width: int) -> float:
    """Codes a unit. A number of a unit vector is about 1/sqrt(width): six times that is the largest code."""
    return 127 * max(1.0, math.sqrt(width) / 6)


def bits(vector: Sequence[float]) -> int:
    return int("".join("1" if x > 0 else "0" for x in vector) or "0", 2)


def encode(vector: Sequence[float]) -> tuple[bytes, bytes]:
    """(sign bits, int8 codes with 128 added) of a vector of any length. Bytes without a sign: Python keeps
    the integers 0 to 255 ready, and that is a third of the time of a scan."""
    one = unit(vector)
    by = scale(len(vector))
    codes = bytes(128 + max(-127, min(127, round(x * by))) for x in one)
    return bits(one).to_bytes((len(one) + 7) // 8, "big"), codes


def cosine(query: Sequence[float], codes: bytes) -> float:
    """Of a unit vector and a coded one."""
    product: float = sum(map(mul, query, codes)) - 128 * sum(query)
    return product / scale(len(codes))


class Vectors:
    """The sign bits of every vector in the file, read when first needed and kept up with it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = array("q")
        self._bits = list[int]()
        self._state: tuple[object, int, int] = (None, 0, 0)  # connection, others' changes, ours

    def nearest(self, query: Sequence[float], count: int) -> dict[int, float]:
        """Numbers of the nearest vectors with their cosine; `query` is a unit vector of the width."""
        self._refresh()
        if not self._bits:
            return {}
        asked = bits(query)
        all_ = self._bits
        # a sample says within which distance the nearest lie; they alone are sorted
        sample = sorted((each ^ asked).bit_count() for each in all_[:: len(all_) // 2000 + 1])
        rough = sample[min(len(sample) - 1, 8 + 2 * PICK * len(sample) // len(all_))]
        close = [i for i, each in enumerate(all_) if (each ^ asked).bit_count() <= rough]
        picked = nsmallest(PICK, close, key=lambda i: (all_[i] ^ asked).bit_count())
        rows = self._database.rows(
            "SELECT n, codes FROM vectors WHERE n IN (SELECT value FROM json_each(?))",
            json.dumps([self._numbers[i] for i in picked]),
        )
        found = ((cosine(query, codes), n) for n, codes in rows if len(codes) == len(query))
        return {n: nearness for nearness, n in nlargest(count, found)}

    def _refresh(self) -> None:
        (version,) = self._database.rows("PRAGMA data_version")[0]
        link = self._database.link
        state = (link, int(version), link.total_changes)
        if state == self._state:
            return
        if link is not self._state[0]:  # the file was replaced, or nothing is read yet
            self._numbers = array("q")
            self._bits = []
        self._state = state
        last = self._numbers[-1] if self._numbers else 0
        query = "SELECT n, bits FROM vectors WHERE n > ? AND bits IS NOT NULL ORDER BY n"
        for n, blob in link.execute(query, (last,)):
            self._numbers.append(n)
            self._bits.append(int.from_bytes(blob, "big"))
        # numbers are never used twice: one that is gone is not on disk either, and takes a place of PICK
        query = "SELECT (SELECT count(*) FROM vectors) - count(*) FROM vectors WHERE bits IS NULL"
        (there,) = self._database.rows(query)[0]
        if len(self._bits) > there + STALE:
            self._state = (None, 0, 0)
            self._refresh()
