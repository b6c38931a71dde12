"""Every setting there is, as one table, settings.toml. A setting has a default that works with no file.

A value comes from, in this order: the environment (`EXO_` and the name in capitals, dots as
underscores), an artifact, `state/settings.toml`, the default; `Settings.origin` says which.

Artifacts change `context.*` (`settings/context`, TOML) and `threshold.*` (`threshold/MECHANISM`, a number) alone.
Invariant: one that does not fit is refused before it is kept, and read as if it were not there."""

from __future__ import annotations

import functools
import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exo.core.base.errors import SettingError, storage_error
from exo.core.base.files import write_atomic

Value = bool | int | float | str
LONGEST = 64_000  # bytes of a TOML text: a second of a board
Made = dict[str, tuple[Value, str]]  # by artifacts: setting -> value, whose it is


@dataclass(frozen=True)
class Setting:
    """One row: name, default (its type is the setting's type), unit, meaning, range or choices."""

    name: str
    default: Value
    meaning: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()


def _rows() -> Iterator[Setting]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    for name, row in tomllib.loads(text).items():
        yield Setting(name, **{**row, "choices": tuple(row.get("choices", ()))})


TABLE = tuple(_rows())
BY_NAME = {row.name: row for row in TABLE}


@dataclass
class Settings:
    """The settings of one home, and what an artifact makes of them. `origin` never fails for a name in TABLE."""

    path: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    saved: dict[str, Value] = field(default_factory=dict)
    made: Made = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read `path`; absent is fine. Raises SettingError for a file that does not parse."""
        saved = {name: parse(name, each, str(path)) for name, each in _flat(read_toml(path))}
        return cls(path, environ, saved)

    def origin(self, name: str) -> tuple[Value, str]:
        """Return the value and where it came from."""
        row = _row(name)
        variable = "EXO_" + name.upper().replace(".", "_")
        if variable in self.environ:
            return parse(name, self.environ[variable], variable), variable
        if name in self.made:
            return self.made[name]
        if name in self.saved:
            return self.saved[name], str(self.path)
        return row.default, "default"

    def under(self, held: Mapping[str, str]) -> Settings:
        """These, with what the artifacts in `held` make of them."""
        made: Made = {}
        for name, text in held.items():
            with suppress(SettingError):
                made |= changes(name, text)
        return replace(self, made=made)

    def text(self, name: str) -> str:
        return str(self.origin(name)[0])

    def number(self, name: str) -> float:
        return float(self.origin(name)[0])

    def words(self, name: str) -> list[str]:
        """A text's parts between commas and spaces."""
        return self.text(name).replace(",", " ").split()

    def count(self, name: str) -> int:
        return int(self.origin(name)[0])

    def set(self, name: str, value: Value) -> None:
        """Save one value; the file keeps every other line's value. Raises SettingError."""
        saved = {**self.saved, name: parse(name, value, "set")}
        lines = [f'"{key}" = {_toml(item)}\n' for key, item in saved.items()]
        write_atomic(self.path, "".join(lines))
        self.saved = saved


@functools.lru_cache(64)
def changes(name: str, text: str) -> Made:
    """What an artifact makes of the settings; nothing where it is but a text. Raises SettingError for what does
    not fit."""
    rows: dict[str, object] = {}
    if name.startswith("threshold/"):
        rows = {name.replace("/", ".", 1): text.strip()}
    elif name == "settings/context":
        rows = dict(_flat(_toml_of(text, name, "give TOML: context.tail = 8")))
        for key in rows:
            if not key.startswith("context."):
                raise SettingError(f"setting {key[:80]}", f"{name} changes context.NAME alone")
    return {key: (parse(key, value, name), f"artifact {name}") for key, value in rows.items()}


def read_toml(path: Path) -> dict[str, Any]:
    """What a person wrote into a file; an absent one is empty. Raises SettingError, StorageError."""
    try:
        text = path.read_text(errors="surrogateescape") if path.exists() else ""
    except OSError as error:
        raise storage_error(f"read {path}", error) from error
    return _toml_of(text, str(path), "mend or remove the file")


def _toml_of(text: str, source: str, do: str) -> dict[str, Any]:
    """What `text` says. Raises SettingError naming `source`, also for more than LONGEST bytes."""
    try:
        if len(text.encode()) > LONGEST:
            raise ValueError(f"it has more than {LONGEST} bytes")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no TOML, or no UTF-8
        raise SettingError(f"read {source}", str(error)[:200], do) from error


def parse(name: str, value: object, source: str) -> Value:
    """Return `value` in the setting's type. Raises SettingError naming `source`."""
    row, where = _row(name), f"what stands in {source}"
    try:
        where = f"{value!r:.80} from {source}"  # a number of thousands of digits has no words
        result = _convert(type(row.default), value)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        kind = type(row.default).__name__
        raise SettingError(f"setting {name}", f"{where} is no {kind}") from error
    if row.choices and result not in row.choices:
        raise SettingError(f"setting {name}", where, f"use one of {row.choices}")
    if not isinstance(result, str) and not row.low <= result <= row.high:
        span = f"use {row.low:.12g} to {row.high:.12g} {row.unit}".rstrip()
        raise SettingError(f"setting {name}", f"{where} is out of range", span)
    return result


def _convert(kind: type[Value], value: object) -> Value:
    if kind is bool and isinstance(value, str):
        return {"1": True, "true": True, "0": False, "false": False}[value.lower()]
    if isinstance(value, bool) is not (kind is bool) or not isinstance(value, str | int | float):
        raise TypeError(value)
    if kind is int and isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return kind(value)


def _flat(table: dict[str, object]) -> Iterator[tuple[str, object]]:
    """TOML reads `voice.backend = ...` as a table in a table; a setting's name is the whole path."""
    rows = list(table.items())
    for name, value in rows:  # tables may be deeper than calls may
        if isinstance(value, dict):
            rows += [(f"{name}.{key}", each) for key, each in value.items()]
        else:
            yield name, value


def _toml(value: Value) -> str:
    # not ASCII: JSON would write an emoji as two surrogates, which TOML refuses; nor DEL as it is
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _row(name: str) -> Setting:
    if name not in BY_NAME:
        raise SettingError(f"setting {name[:80]}", "there is none of that name", "see `exo doctor`")
    return BY_NAME[name]
