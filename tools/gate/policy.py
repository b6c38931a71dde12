"""The person's policies: when to allow, log, ask or deny. Owns their schema and the reading of
store/policies/*.toml; what is missing there has the default that stands here.

Invariant: a file with an error is refused as a whole, with its line; a Policy that exists is valid."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError
from exo.tools.gate.axes import COST, EXPOSURE, REVERSIBILITY, Axes
from exo.tools.gate.table import Table, builtin

OUTCOMES = ("allow", "log", "ask", "deny")
AT_LEAST_ASK = ("ask", "deny")
_ASK = {
    **{"looks": "allow", "changes": "log", "recoverable": "log", "irreversible": "ask"},
    **{"shared": "log", "public": "ask", "money": "ask", "third_party": "ask"},
    **{"unknown": "ask", "confidential": "ask"},
}
_CELL = {
    "reversibility": REVERSIBILITY,
    "exposure": EXPOSURE,
    "cost": COST,
    "third_party": (True, False),
}


class PolicyError(ExoError, ValueError):
    """A file of policies that does not fit; the message names its line."""

    code = "bad_policy"


@dataclass(frozen=True)
class Policy:
    """`ask` gives each axis its outcome; `cells` are (axes, outcome) that replace it; `overrides` give an
    outcome to "tool:NAME", "program:NAME" or "host:NAME"."""

    ask: dict[str, str] = field(default_factory=lambda: dict(_ASK))
    cells: tuple[tuple[dict[str, Any], str], ...] = ()
    overrides: dict[str, str] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()
    month_cents: int = 0
    longest: int = 0
    never: tuple[str, ...] = ()
    table: Table = field(default_factory=builtin)

    def outcome(self, axes: Axes, changes: bool) -> tuple[str, str]:
        """(outcome, rule) by the matrix."""
        for cell, outcome in self.cells:
            if all(getattr(axes, name) == value for name, value in cell.items()):
                return outcome, f"cell {' '.join(map(str, cell.values()))}"
        names = ["changes" if changes else "looks", axes.reversibility, axes.exposure]
        names += ["money"] * (axes.cost == "money") + ["third_party"] * axes.third_party
        rule = max(
            (n for n in names if n in self.ask), key=lambda name: OUTCOMES.index(self.ask[name])
        )
        return self.ask[rule], rule


def load(folder: Path) -> Policy:
    """The policies in `folder`; the defaults where it, or a file, is not there. Raises PolicyError."""
    given: dict[str, Any] = {}
    for name, read in _FILES.items():
        path = folder / f"{name}.toml"
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise PolicyError(f"read {path}", str(error)) from error
        try:
            given |= read(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"line (\d+)", str(error))
            at = line[1] if line else str(text.count("\n") + 1)
            raise PolicyError(f"policies/{path.name}:{at}", str(error), "mend the line") from error
        except (ValueError, TypeError, AttributeError) as error:
            at = str(_line(text, str(error)))
            raise PolicyError(f"policies/{path.name}:{at}", str(error), "mend the line") from error
    return Policy(**given)


def _line(text: str, why: str) -> int:
    """The line of the key or value that `why` begins with."""
    table, _, key = why.partition(": ")[0].rpartition(".")
    lines, at = text.splitlines(), 0
    for word in filter(None, (table, key)):
        wanted = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        hits = (n for n in range(at, len(lines)) if wanted.search(lines[n].partition("#")[0]))
        at = next(hits, at)
    return at + 1


def _gate(rows: dict[str, Any]) -> dict[str, Any]:
    _only(rows, "ask", "cell", "actions")
    ask = _ASK | rows.get("ask", {})
    for name, value in ask.items():
        if name not in _ASK:
            raise ValueError(f"{name}: there are {', '.join(_ASK)}")
        _one(name, value, AT_LEAST_ASK if name in ("unknown", "confidential") else OUTCOMES)
    cells = []
    for cell in rows.get("cell", []):
        _only(cell, "outcome", *_CELL)
        _one("outcome", cell.get("outcome"), OUTCOMES)
        axes = {name: value for name, value in cell.items() if name != "outcome"}
        for name, value in axes.items():
            _one(name, value, _CELL[name])
        cells.append((axes, cell["outcome"]))
    actions = rows.get("actions", {})
    _only(actions, "reserved", "denied")
    lists = {
        name: frozenset(_texts(name, actions.get(name, []))) for name in ("reserved", "denied")
    }
    return {"ask": ask, "cells": tuple(cells), **lists}


def _overrides(rows: dict[str, Any]) -> dict[str, Any]:
    _only(rows, "tools", "programs", "hosts")
    made = {}
    for kind, table in rows.items():
        for name, row in table.items():
            _only(row, "outcome")
            label = f"{kind[:-1]}:{name.lower() if kind == 'hosts' else name}"
            made[label] = _one(f"{name}.outcome", row.get("outcome"), OUTCOMES)
    return {"overrides": made}


def _scopes(rows: dict[str, Any]) -> dict[str, Any]:
    _only(rows, "private", "folders")
    for name, value in rows.get("private", {}).items():
        _one(name, value, (True, False))
    _only(rows.get("folders", {}), "inside")
    return {"folders": tuple(_texts("inside", rows.get("folders", {}).get("inside", [])))}


def _budget(rows: dict[str, Any]) -> dict[str, Any]:
    _only(rows, "spend")
    _only(rows.get("spend", {}), "month_cents")
    return {"month_cents": _count("month_cents", rows.get("spend", {}).get("month_cents", 0))}


def _posting(rows: dict[str, Any]) -> dict[str, Any]:
    _only(rows, "posting")
    row = rows.get("posting", {})
    _only(row, "longest", "never")
    never = tuple(_texts("never", row.get("never", [])))
    return {"longest": _count("longest", row.get("longest", 0)), "never": never}


_FILES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    **{"gate": _gate, "overrides": _overrides, "scopes": _scopes, "budget": _budget},
    **{"posting": _posting, "programs": lambda rows: {"table": builtin().also(rows)}},
}


def _only(row: Any, *names: str) -> None:
    if not isinstance(row, dict):
        raise ValueError(f"{names[0]}: a table is wanted")
    if unknown := [name for name in row if name not in names]:
        raise ValueError(f"{unknown[0]}: there are {', '.join(names)}")


def _one(name: str, value: Any, of: tuple[Any, ...]) -> str:
    if value not in of or isinstance(value, bool) != isinstance(of[0], bool):
        raise ValueError(f"{name}: {value!r} is none of {', '.join(map(str, of))}")
    return str(value)


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{name}: a list of texts is wanted")
    return value


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name}: a whole number from 0 on is wanted")
    return value
