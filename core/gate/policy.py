"""The person's policies: when to allow, log, ask or deny. Owns their schema and the reading of
store/policies/*.toml; what is missing there has the default that stands here.

Invariant: a file with an error is refused as a whole, with its line; a Policy that exists is valid."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from exo.core.base.errors import ExoError
from exo.core.gate.axes import COST, EXPOSURE, REVERSIBILITY, Axes

T = TypeVar("T")
LARGEST = 1_000_000  # bytes of a file
OUTCOMES = ("allow", "log", "ask", "deny")
ASK = {
    **{"looks": "allow", "changes": "log", "recoverable": "log", "irreversible": "ask"},
    **{"shared": "log", "public": "ask", "money": "ask", "third_party": "ask"},
    **{"unknown": "ask", "confidential": "ask"},
}
_FLAG = (True, False)
_KINDS = ("tools", "programs", "hosts")
# tables whose keys are Policy's fields
_PLAIN = ("actions", "spend", "posting", "private", "folders")


class PolicyError(ExoError, ValueError):
    """A file of policies that does not fit; the message names its line."""

    code = "bad_policy"


@dataclass(frozen=True)
class Policy:
    """`ask` gives each axis its outcome; `cells` are axes with an `outcome` that replaces it; `overrides` give
    an outcome to "tool:NAME", "program:NAME" or "host:NAME"; `inside` are folders that count as the working
    folder, `folders` private ones, those that are asked about whatever is done there; `principal` has no effect yet."""

    ask: dict[str, str] = field(default_factory=lambda: dict(ASK))
    cells: tuple[dict[str, Any], ...] = ()
    overrides: dict[str, str] = field(default_factory=dict)
    reserved: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    principal: bool = True
    month_cents: int = 0
    longest: int = 0
    never: tuple[str, ...] = ()

    def outcome(self, axes: Axes, changes: bool) -> tuple[str, str]:
        """(outcome, rule) by the matrix."""
        known = asdict(axes)
        for cell in self.cells:
            if all(known.get(name, value) == value for name, value in cell.items()):
                return cell["outcome"], "cell"
        names = ["changes" if changes else "looks", axes.reversibility, axes.exposure]
        names += ["money"] * (axes.cost == "money") + ["third_party"] * axes.third_party
        rule = max(names, key=lambda name: OUTCOMES.index(self.ask.get(name, "allow")))
        return self.ask[rule], rule


# of a home whose policies were broken from the start: whatever is more than looking asks
STRICT = Policy({name: "allow" if name == "looks" else "ask" for name in ASK})


def load(folder: Path) -> Policy:
    """The policies in `folder`; the defaults where it, or a file, is not there. Raises PolicyError."""
    rows: dict[str, Any] = {}  # the tables of all files; no two have the same name
    for name, rule in _FILES.items():
        rows |= read(folder / f"{name}.toml", lambda table, rule=rule: fit("", table, rule))  # type: ignore[misc]
    kinds = [(kind[:-1], rows.get(kind, {})) for kind in _KINDS]
    given = {key: value for name in _PLAIN for key, value in rows.get(name, {}).items()}
    given |= {"ask": ASK | rows.get("ask", {}), "cells": tuple(rows.get("cell", ()))}
    given["overrides"] = {
        f"{kind}:{name.lower() if kind == 'host' else name}": row["outcome"]
        for kind, table in kinds
        for name, row in table.items()
    }
    return Policy(**given)


def read(path: Path, take: Callable[[dict[str, Any]], T]) -> T:
    """What `take` makes of a file (empty where there is none); its ValueErrors begin with the key
    and a colon. Raises PolicyError, with the line."""
    text = ""
    try:
        if os.path.lexists(path):  # a link into nowhere is no wish to have none
            if not path.is_file() or path.stat().st_size > LARGEST:
                raise OSError(f"it is no regular file of at most {LARGEST} bytes")
            text = path.read_text("utf-8")
        return take(tomllib.loads(text))
    except OSError as error:
        raise PolicyError(f"read {path}", str(error)) from error
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        found = re.search(r"\(at line (\d+)", str(error))
        broken = text.count("\n") + 1 if isinstance(error, tomllib.TOMLDecodeError) else 0
        at = int(found[1]) if found else broken or _line(text, str(error))
        raise PolicyError(f"policies/{path.name}:{at}", str(error), "mend the line") from error


def _line(text: str, why: str) -> int:
    """The line of the key or value that `why` begins with."""
    key = why.partition(": ")[0].rpartition(".")[2]
    wanted = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if key and wanted.search(line.partition("#")[0])), 1)


def fit(name: str, value: Any, rule: Any) -> Any:
    """`value` as a rule of the schema wants it: a table of keys ("*": any; "!KEY": it must be there), a
    list of [rule], one of a tuple, or what a function makes of it. Raises ValueError, beginning with the
    key."""
    if isinstance(rule, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{name}: a table is wanted")
        known = [key.lstrip("!") for key in rule]
        unknown = [key for key in value if key not in known and "*" not in known]
        missing = [key[1:] for key in rule if key[0] == "!" and key[1:] not in value]
        for key in (*unknown, *missing):
            raise ValueError(f"{key if unknown else name}: there is to be {', '.join(known)}")
        rules = {key.lstrip("!"): each for key, each in rule.items()}
        return {key: fit(key, each, rules.get(key, rules.get("*"))) for key, each in value.items()}
    if isinstance(rule, list):
        return [fit(name, each, rule[0]) for each in value]
    if isinstance(rule, tuple):
        if value not in rule or isinstance(value, bool) != isinstance(rule[0], bool):
            raise ValueError(f"{name}: {value!r} is none of {', '.join(map(str, rule))}")
        return value
    return rule(name, value)


def texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{name}: a list of texts is wanted")
    return tuple(value)


def _folders(name: str, value: Any) -> tuple[str, ...]:
    """Full paths, links followed."""
    return tuple(os.path.realpath(Path(each).expanduser()) for each in texts(name, value))


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name}: a whole number from 0 on is wanted")
    return value


_CELL: dict[str, Any] = {"reversibility": REVERSIBILITY, "exposure": EXPOSURE, "cost": COST}
_CELL |= {"third_party": _FLAG, "!outcome": OUTCOMES}
_NAMED = {"*": {"!outcome": OUTCOMES}}
_ASKS = dict.fromkeys(ASK, OUTCOMES) | dict.fromkeys(("unknown", "confidential"), OUTCOMES[2:])
_FILES: dict[str, Any] = {
    "gate": {"ask": _ASKS, "cell": [_CELL], "actions": {"reserved": texts, "denied": texts}},
    "overrides": dict.fromkeys(_KINDS, _NAMED),
    "scopes": {
        "private": {"principal": _FLAG, "folders": _folders},
        "folders": {"inside": _folders},
    },
    "budget": {"spend": {"month_cents": _count}},
    "posting": {"posting": {"longest": _count, "never": texts}},
}
