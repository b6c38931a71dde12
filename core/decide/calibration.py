"""Probabilities that mean what they say: a temperature for each provider and mechanism (Guo et al. 2017). Owns
how they are applied and their file; the person's labels fit them, outside (`exo decide --learn`).

Invariant: without the file, or with a damaged one, probabilities are as the provider said them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

FILE = "calibration.json"  # in state/cache/decide: {"provider mechanism": temperature}
RANGE = (0.2, 5.0)


class Calibration:
    """Reads its file again when it is another one."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder and folder / FILE
        self._seen = 0
        self._temperatures: dict[str, float] = {}

    def apply(self, provider: str, mechanism: str, raw: Mapping[str, float]) -> dict[str, float]:
        """The probabilities after the temperature of this mechanism, else the provider's generic one."""
        self._read()
        generic = self._temperatures.get(provider, 1.0)
        return warmed(raw, self._temperatures.get(f"{provider} {mechanism}", generic))

    def _read(self) -> None:
        try:
            seen = self._path.stat().st_mtime_ns if self._path else 0
            if self._path and seen != self._seen:
                read = json.loads(self._path.read_text())
                self._temperatures = {
                    key: min(max(float(each), RANGE[0]), RANGE[1])
                    for key, each in read.items()
                    if float(each) == float(each)  # NaN is not
                }
            self._seen = seen
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            self._temperatures = {}


def warmed(raw: Mapping[str, float], heat: float) -> dict[str, float]:
    """`raw` to the power 1/heat, summing to 1."""
    logs = {option: math.log(max(each, 1e-9)) / heat for option, each in raw.items()}
    top = max(logs.values())
    found = {option: math.exp(each - top) for option, each in logs.items()}
    total = sum(found.values())
    return {option: each / total for option, each in found.items()}
