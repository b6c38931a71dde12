"""The four axes of a consequence, and what a call was judged to be. Owns their order; decides nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

REVERSIBILITY = ("reversible", "recoverable", "irreversible")
EXPOSURE = ("private", "shared", "public")
COST = ("none", "money")


@dataclass(frozen=True)
class Axes:
    """Can it be undone, who sees it, what does it cost, does it concern others."""

    reversibility: str = "reversible"
    exposure: str = "private"
    cost: str = "none"
    third_party: bool = False

    def worst(self, other: Axes) -> Axes:
        return Axes(
            max(self.reversibility, other.reversibility, key=REVERSIBILITY.index),
            max(self.exposure, other.exposure, key=EXPOSURE.index),
            max(self.cost, other.cost, key=COST.index),
            self.third_party or other.third_party,
        )

    @property
    def weight(self) -> int:
        """To tell which of several actions a person should read first."""
        undo, seen = REVERSIBILITY.index(self.reversibility), EXPOSURE.index(self.exposure)
        return undo * 4 + seen * 5 + (self.cost != "none") * 16 + self.third_party * 2

    @property
    def floor(self) -> bool:
        """Irreversible, public and about others: never without asking."""
        return (self.reversibility, self.exposure, self.third_party) == (
            "irreversible",
            "public",
            True,
        )


@dataclass(frozen=True)
class Effect(Axes):
    """What the table says that an action does; `changes`: more than looking."""

    name: str = ""
    changes: bool = True

    @classmethod
    def of(cls, name: str, row: dict[str, Any]) -> Effect:
        return replace(cls(**row), name=name)


@dataclass(frozen=True)
class Part:
    """One consequence of a call: `what` for a person's eyes, `shape` what an allow_always stands for,
    `names` ("program:git") what an override may name."""

    effect: Effect
    what: str
    shape: str
    names: frozenset[str] = frozenset()

    @property
    def axes(self) -> Axes:
        return self.effect

    @property
    def changes(self) -> bool:
        return self.effect.changes


@dataclass(frozen=True)
class Judgement:
    """`why` has one line for each action and each doubt; `understood` is False when anything was not;
    `secrets` are what is read or leaves; `shape` is what an allow_always stands for, "" for nothing;
    `names` are "program:git", "host:example.org" and actions like "git push"; `said` is the text that
    others would read."""

    axes: Axes
    summary: str
    parts: tuple[Part, ...] = ()
    why: tuple[str, ...] = ()
    understood: bool = True
    secrets: tuple[str, ...] = ()
    shape: str = ""
    names: frozenset[str] = frozenset()
    said: str = ""
