"""A call, its consequences on four axes, and what a judge says of it. Owns their order; decides nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal, Protocol

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
            bool(self.third_party or other.third_party),
        )

    @property
    def weight(self) -> int:
        """To tell which of several consequences a person should read first; 0 is harmless."""
        undo = REVERSIBILITY.index(self.reversibility)
        seen = EXPOSURE.index(self.exposure)
        return undo * 4 + seen * 5 + (self.cost != "none") * 16 + self.third_party * 2

    @property
    def floor(self) -> bool:
        """Irreversible, public and about others: never without asking."""
        firm = self.reversibility == "irreversible" and self.exposure == "public"
        return firm and self.third_party


@dataclass(frozen=True)
class Act:
    """A call as it would run; `risk` and `needs` are what its tool says of itself, `code` is the hash of a tool's
    code where that may change."""

    tool: str
    args: dict[str, Any]
    cwd: str
    risk: Literal["low", "medium", "high", ""] = ""
    needs: str = ""
    code: str = ""

    @property
    def digest(self) -> str:
        """sha256 of exactly what is shown and run: an approval holds for this and nothing else."""
        whole = [self.tool, self.args, self.cwd, *filter(None, [self.code])]
        text = json.dumps(whole, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def line(self) -> str:
        """The call in words: its tool, and a text alone where that is its one argument."""
        only = [*self.args.values()] if len(self.args) == 1 else []
        text = only[0] if only and isinstance(only[0], str) else None
        return f"{self.tool} {text or json.dumps(self.args, ensure_ascii=False, default=str)}"


@dataclass(frozen=True)
class Part:
    """One consequence of a call. `what` is for a person's eyes, `shape` what an allow_always would stand
    for ("=": the very same call alone), `names` ("program:git") what an override may name; `changes`:
    more than looking."""

    axes: Axes
    what: str
    shape: str = ""
    names: frozenset[str] = frozenset()
    changes: bool = True


@dataclass(frozen=True)
class Judgement:
    """`doubts` say what was not understood, `secrets` what of them is read or leaves, `said` what others
    would read; `names` are "tool:x", "program:git" and actions ("git push"), `touched` full paths; `cents`
    is what it costs, None when that is not known."""

    parts: tuple[Part, ...] = ()
    doubts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()
    said: str = ""
    cents: int | None = None

    @property
    def axes(self) -> Axes:
        """The worst of all parts; what is not understood and shows nothing bad cannot be undone."""
        axes = reduce(Axes.worst, (part.axes for part in self.parts), Axes())
        return Axes("irreversible") if self.doubts and not axes.weight else axes


class Judge(Protocol):
    """The seat `judge`: what is known of tools and programs. Called from several threads."""

    def read(self, policies: Path) -> None:
        """Take in the person's own files for it. Raises PolicyError, and keeps what it had."""

    def judge(self, act: Act, inside: tuple[str, ...]) -> Judgement:
        """`inside` are folders that count as the working folder. What it raises is a doubt."""
