"""Probabilities that mean what they say: one temperature for each provider and mechanism, fitted on the
person's own labels (Guo et al. 2017). Owns the fit and its file in the cache, which is made again from the
record. Invariant: with few labels the temperature stays near the provider's generic one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from exo.core.base.errors import SettingError
from exo.core.base.files import write_atomic

FEW = 30  # labels that weigh as much as the generic temperature
RANGE = (0.2, 5.0)
Labelled = tuple[str, str, Mapping[str, float], str]  # provider, mechanism, raw, label


class Calibration:
    """Temperatures by "provider mechanism"; a provider alone is its generic one."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self.temperatures = path, dict[str, float]()
        try:
            if path is not None:
                read = json.loads(path.read_text())
                self.temperatures = {str(key): float(each) for key, each in read.items()}
        except (OSError, ValueError, TypeError, AttributeError, SettingError):
            return  # lost or damaged: generic until it is made again

    def apply(self, provider: str, mechanism: str, raw: Mapping[str, float]) -> dict[str, float]:
        """The probabilities after the temperature."""
        generic = self.temperatures.get(provider, 1.0)
        heat = self.temperatures.get(f"{provider} {mechanism}", generic)
        return warmed(raw, min(max(heat, RANGE[0]), RANGE[1]))

    def fit(self, rows: Iterable[Labelled]) -> None:
        """Fit on labelled decisions and save. Raises StorageError."""
        groups: dict[str, list[tuple[Mapping[str, float], str]]] = {}
        for provider, mechanism, raw, label in rows:
            if label in raw:
                for key in (provider, f"{provider} {mechanism}"):
                    groups.setdefault(key, []).append((raw, label))
        self.temperatures = {}
        for key in sorted(groups, key=len):  # a provider before its mechanisms
            near = self.temperatures.get(key.split(" ")[0], 1.0)
            own, weight = temperature(groups[key]), len(groups[key]) / (len(groups[key]) + FEW)
            self.temperatures[key] = math.exp(
                weight * math.log(own) + (1 - weight) * math.log(near)
            )
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path, json.dumps(self.temperatures, indent=1, sort_keys=True))


def warmed(raw: Mapping[str, float], heat: float) -> dict[str, float]:
    """`raw` to the power 1/heat, summing to 1."""
    logs = {option: math.log(max(each, 1e-9)) / heat for option, each in raw.items()}
    top = max(logs.values())
    found = {option: math.exp(each - top) for option, each in logs.items()}
    total = sum(found.values())
    return {option: each / total for option, each in found.items()}


def temperature(rows: Sequence[tuple[Mapping[str, float], str]]) -> float:
    """The temperature in RANGE that makes the labels likeliest, by golden section."""

    def loss(log: float) -> float:
        heat = math.exp(log)
        return -sum(math.log(max(warmed(raw, heat)[label], 1e-12)) for raw, label in rows)

    low, high, ratio = math.log(RANGE[0]), math.log(RANGE[1]), (5**0.5 - 1) / 2
    while high - low > 0.01:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return math.exp((low + high) / 2)
