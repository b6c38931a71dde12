"""The artifacts that are more than texts: `settings/context` (TOML, the settings of the context that it changes) and
`threshold/MECHANISM` (a number). Owns how they are read, and what is refused.

Invariant: what can be refused is refused before it is kept, and what was kept elsewhere and does not fit is read as
if it were not there; no threshold makes an answer less careful (see Mechanism.least)."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress

from exo.core.base.errors import ExoError, SettingError
from exo.core.base.settings import BY_NAME, Value, flat, parse
from exo.core.decide.question import MECHANISMS, Mechanism

CONTEXT, THRESHOLD = "settings/context", "threshold/"
LONGEST = 4000  # characters
KNOWN = [name for name in BY_NAME if name.startswith("context.")]


def check(name: str, text: str) -> None:
    """Raises ExoError for an artifact of these that does not fit."""
    if name.startswith(THRESHOLD):
        _number(name.removeprefix(THRESHOLD), text)
    elif name == CONTEXT:
        _read(text)
    elif name.startswith("settings/"):
        raise ExoError(f"keep {name[:80]}", "nothing reads it", f"there is {CONTEXT}")


def settings(held: Mapping[str, str]) -> Mapping[str, Value]:
    """What the artifacts that hold make of the settings, by name."""
    with suppress(ExoError):
        return _read(held.get(CONTEXT, ""))
    return {}


def threshold(held: Mapping[str, str], mechanism: Mechanism) -> float:
    """The threshold that they make, else the one that is built in."""
    with suppress(ExoError, KeyError):
        return _number(mechanism.name, held[THRESHOLD + mechanism.name])
    return mechanism.threshold


@functools.lru_cache(16)
def _read(text: str) -> Mapping[str, Value]:
    try:
        if len(text) > LONGEST:
            raise ValueError(f"more than {LONGEST} characters")
        rows = dict(flat(tomllib.loads(text)))
    except (ValueError, RecursionError) as error:
        raise SettingError(f"read {CONTEXT}", str(error), "it is TOML: context.tail = 8") from error
    found = {}
    for name, value in rows.items():
        key = re.escape(name.rpartition(".")[2])
        lines = enumerate(text.split("\n"), 1)
        at = [n for n, line in lines if re.search(rf"^[^#]*(?<![\w-]){key}[\"']?\s*=", line)]
        where = f"line {at[-1] if at else 1}"
        if name not in KNOWN:
            why = f"{where}: it is no setting of the context"
            raise SettingError(f"setting {name[:80]}", why, f"there are {', '.join(KNOWN)}")
        found[name] = parse(name, value, where)
    return found


def _number(name: str, text: str) -> float:
    what, mechanism = f"keep {THRESHOLD}{name[:80]}", MECHANISMS.get(name)
    if mechanism is None:
        raise ExoError(what, "there is no such mechanism", f"there are {', '.join(MECHANISMS)}")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise ExoError(what, f"{text.strip()[:40]!r} is no number between 0 and 1")
    if mechanism.careful[:1] == [mechanism.safe] and value > mechanism.threshold:
        why = f"above {mechanism.threshold} the person would be asked less often"
        raise ExoError(what, why, "choose a lower one")
    return value
