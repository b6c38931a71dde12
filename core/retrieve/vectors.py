"""Nearness of meaning without a vector library: sign bits in memory pick, int8 codes on disk decide.

Owns the coding of a vector and the scan. Invariant: every code uses the one scale of its width, so that
scores of different vectors compare; a vector gone from the file is never given back."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from operator import mul

from exo.core.base.sqlite import Database

PICK = 200  # vectors that the sign bits pick


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
    """(sign bits, int8 codes) of a vector of any length."""
    one, by = unit(vector), scale(len(vector))
    codes = array("b", [max(-127, min(127, round(x * by))) for x in one])
    return bits(one).to_bytes((len(one) + 7) // 8, "big"), codes.tobytes()


def cosine(query: Sequence[float], codes: bytes) -> float:
    """Of a unit vector and a coded one."""
    return math.fsum(map(mul, query, memoryview(codes).cast("b"))) / scale(len(codes))


class Vectors:
    """The sign bits of every vector in the file, read when first needed and kept up with it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = array("q")
        self._bits: list[int] = []
        self._state: tuple[int, int] = (-1, -1)

    def nearest(self, query: Sequence[float]) -> dict[int, float]:
        """Numbers of the nearest vectors with their cosine; `query` is a unit vector of the width."""
        self._refresh()
        if not self._bits:
            return {}
        apart = list(map(int.bit_count, map(bits(query).__xor__, self._bits)))
        limit, seen = 0, 0
        for distance, count in sorted(Counter(apart).items()):
            limit, seen = distance, seen + count
            if seen >= PICK:
                break
        picked = [n for n, distance in zip(self._numbers, apart, strict=True) if distance <= limit]
        return self.measure(query, picked[: 2 * PICK])

    def measure(self, query: Sequence[float], numbers: Sequence[int]) -> dict[int, float]:
        """The cosine of these vectors."""
        rows = self._database.rows(
            "SELECT n, codes FROM vectors WHERE n IN (SELECT value FROM json_each(?))",
            json.dumps(list(numbers)),
        )
        return {n: cosine(query, codes) for n, codes in rows if len(codes) == len(query)}

    def drop(self) -> None:
        """Forget what is in memory."""
        self._numbers, self._bits, self._state = array("q"), [], (-1, -1)

    def _refresh(self) -> None:
        link = self._database.link
        state = (int(self._database.rows("PRAGMA data_version")[0][0]), link.total_changes)
        if state == self._state:
            return
        self._state = state
        last = self._numbers[-1] if self._numbers else 0
        for n, blob in link.execute("SELECT n, bits FROM vectors WHERE n > ? ORDER BY n", (last,)):
            self._numbers.append(n)
            self._bits.append(int.from_bytes(blob, "big"))
        # numbers are never used twice: one that is gone is found by nobody, and costs room alone
        (there,) = self._database.rows("SELECT count(*) FROM vectors")[0]
        if len(self._bits) > there + there // 8 + 1000 or (self._bits and not there):
            self.drop()
            self._refresh()
