"""The typed question: a pick from a list, a level, yes or no, over a short text. Owns what a mechanism is,
which there are, and how its answer is settled.

Invariant (tighten only): where a mechanism's answers differ in care, `settle` never returns one less careful
than what the rules said."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exo.core.base.errors import ExoError

MILLION = 1_000_000
MOST = 256  # options of a question
Kind = Literal["choice", "score", "noul"]


@dataclass(frozen=True)
class Mechanism:
    """`options` with what each means ("": its name says it), for a score the lowest level first; yes-or-no
    questions (`noul`) have no and yes. `safe` is what is done when nobody is sure ("": nothing is);
    `careful` are the answers that differ in care, the least careful first."""

    name: str
    options: Mapping[str, str]
    kind: Kind = "choice"
    asks: str = ""
    safe: str = ""
    careful: Sequence[str] = ()

    def wire(self) -> dict[str, Any]:
        """The question in the shape of /v1/systemone."""
        criteria: Any = {name: text or None for name, text in self.options.items()}
        if self.kind == "noul":
            criteria = None
        elif self.kind == "score":
            criteria = list(self.options)
        asks = self.asks or self.name.replace("_", " ").replace(".", " ")
        return {"type": self.kind, "instructions": asks, "criteria": criteria}

    def read(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Probabilities out of an answer of /v1/systemone, summing to 1. Raises ValueError, KeyError,
        TypeError for what is none."""
        if self.kind == "noul":
            found = {"no": 1 - float(answer["noul"]), "yes": float(answer["noul"])}
        else:
            given = answer["probabilities"]
            if isinstance(given, list):  # of a score, by level
                given = dict(zip(self.options, given, strict=True))
            found = {option: float(given[option]) for option in self.options}
        total = sum(found.values())
        if not (min(found.values()) >= 0 and 0.5 < total < 2):
            raise ValueError("these are no probabilities")
        return {option: each / total for option, each in found.items()}

    def settle(self, ruled: str, answer: str) -> str:
        """The answer that counts, of the rules' and a provider's: the more careful one."""
        if ruled in self.careful and answer in self.careful:
            return max(ruled, answer, key=self.careful.index)
        return ruled or answer


@dataclass(frozen=True)
class Decision:
    """`answer` is the safe one ("": none) where `abstained`; probabilities per million, `raw` those before
    calibration; `provider` is rules, none, or who answered; `ms` is how long that took."""

    answer: str
    probabilities: dict[str, int] = field(default_factory=dict)
    abstained: bool = False
    provider: str = "none"
    ms: int = 0
    raw: dict[str, int] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """The shape that `exo decide --json` prints."""
        sure = {option: each / MILLION for option, each in self.probabilities.items()}
        told = {"answer": self.answer or None, "probabilities": sure, "abstained": self.abstained}
        return told | {"provider": self.provider, "ms": self.ms}


def per_million(sure: Mapping[str, float]) -> dict[str, int]:
    """Integers that sum to a million; what rounding leaves goes to the likeliest."""
    found = {option: round(each * MILLION) for option, each in sure.items()}
    found[max(found, key=found.__getitem__)] += MILLION - sum(found.values())
    return found


def asked(name: str, options: object = None) -> Mechanism:
    """The question of that name, or one of the moment: yes and no as `options` make it a yes-or-no question
    that its name words. Raises ExoError for what is none."""
    what = f"decide {name[:40] or '(no name)'}"
    known = MECHANISMS.get(name)
    if options is None or (known and options == dict.fromkeys(known.options, "")):
        if known:
            return known
        names = ", ".join(MECHANISMS)
        raise ExoError(what, "nothing is known to choose from", f"give options, or ask {names}")
    if not isinstance(options, dict) or not all(isinstance(each, str) for each in options.values()):
        raise ExoError(what, "its options are no names with their meanings")
    if not name.strip() or not 2 <= len(options) <= MOST or not all(map(str.strip, options)):
        raise ExoError(what, f"a question has a name and 2 to {MOST} options", "name them all")
    if set(options) == {"yes", "no"}:
        return Mechanism(name, {"no": "", "yes": ""}, "noul")
    return Mechanism(name, options)


def _table() -> dict[str, Mechanism]:
    rows = tomllib.loads(Path(__file__).with_name("mechanisms.toml").read_text())
    return {name: Mechanism(name, **row) for name, row in rows.items()}


MECHANISMS = _table()
