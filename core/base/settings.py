"""Every setting there is, as one table. A setting has a default that works with no file.

A value comes from, in this order: the environment (`EXO_` and the name in capitals, dots as
underscores), `state/settings.toml`, the default; `Settings.origin` says which."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.errors import SettingError, storage_error
from exo.core.base.files import write_atomic

Value = bool | int | float | str


@dataclass(frozen=True)
class Setting:
    """One row: name, default (its type is the setting's type), unit, meaning, range or choices."""

    name: str
    default: Value
    unit: str
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()


MODES = ("auto", "hold", "tap")  # talk is held, tapped, or whichever the person does
RISKS = ("high", "medium", "never")
TABLE = (
    # exod
    Setting("deltas.join_ms", 100, "ms", "deltas are joined this long before a save", 0, 5000),
    Setting("events.keep", 50_000, "events", "how many events stay for replay", 100, 10_000_000),
    Setting("turn.rounds", 24, "rounds", "tool rounds in one turn at most", 1, 1000),
    Setting("turn.retries", 3, "tries", "further tries of a model before output", 0, 10),
    Setting("turn.silence", 120.0, "s", "a model that says nothing this long is given up", 1, 3600),
    Setting("tool.timeout", 60.0, "s", "a tool that runs this long is given up", 1, 3600),
    Setting(
        "tools.ask", "high", "", "medium: any change asks; else by the policies", choices=RISKS
    ),
    Setting("tools.http", False, "", "whether http_request may reach the network"),
    Setting("tools.sets", "", "", "toolsets that sessions see, with commas (empty: all)"),
    Setting("approval.timeout", 120.0, "s", "a question unanswered this long is denied", 1, 86400),
    Setting("hook.timeout", 5.0, "s", "a plugin's hook that takes so long is passed over", 0.1, 60),
    Setting("plugins.off", "", "", "plugins that are not loaded, with commas"),
    Setting(
        "decide.providers", "local", "", "asked for decisions, in this order: local, hosted, main"
    ),
    Setting("decide.url", "", "", "server of /v1/systemone that `hosted` asks"),
    Setting("decide.key", "", "", "environment variable that holds its key"),
    Setting("decide.model", "", "", "name of its model"),
    Setting("reply.lines", 3, "lines", "of what is known, shown in one answer at most", 1, 50),
    Setting("reply.tokens", 200, "tokens", "length of a reply at most", 8, 8192),
    Setting("context.tail", 12, "messages", "messages sent word for word", 2, 1000),
    Setting("context.window", 0, "tokens", "window of a request (0: the model's)", 0, 10_000_000),
    Setting("context.view", 6000, "tokens", "summaries in a request, at most", 64, 1_000_000),
    Setting("context.step", 0, "leaves", "folded at once (0: 1, local models when full)", 0, 1000),
    Setting("context.settle", 60.0, "s", "wait for summaries that another model makes", 0, 600),
    Setting("context.live", 8, "jobs", "summaries of live talk made at once", 1, 64),
    Setting("context.imports", 2, "jobs", "summaries of imported history made at once", 1, 64),
    Setting("context.summaries", "model", "", "who makes summaries", choices=("model", "rules")),
    Setting("titles.idle", 20.0, "s", "rest before a session gets its title (0: never)", 0, 86400),
    Setting("tcp.listen", "", "", "host:port where exod serves with a token (empty: nowhere)"),
    Setting("tcp.lan", False, "", "let tcp.listen be reached from the network, unencrypted"),
    # exo-models
    Setting("models.ram_mb", 700, "MB", "memory that all loaded models may use", 64, 65536),
    Setting("models.idle", 600.0, "s", "a model unused this long is unloaded (0: never)", 0, 1e6),
    Setting("models.window", 4096, "tokens", "context window of the language model", 512, 131072),
    Setting("models.threads", 0, "threads", "threads a model computes with (0: all cores)", 0, 64),
    Setting("models.queue", 8, "requests", "requests that may wait for one model", 1, 100),
    Setting("models.prefix_mb", 128, "MB", "saved prompt prefixes may take so much disk", 0, 65536),
    # exo-device
    Setting("board", "sim", "", "board profile"),
    Setting("voice.backend", "piper", "", "what speaks", choices=("piper", "espeak", "off")),
    Setting("voice.language", "en", "", "language that is spoken to the device"),
    Setting("voice.volume", 80, "%", "loudness of speech and sounds", 0, 100),
    Setting("voice.mute", False, "", "speak nothing; timers still ring"),
    Setting("sounds", "on", "", "short tones: listening, heard, a timer", choices=("on", "off")),
    Setting("listen.mode", "auto", "", "how talk ends: auto is both", choices=MODES),
    Setting("listen.pause", 0.9, "s", "silence that ends what was begun by a tap", 0.3, 5),
    Setting("listen.longest", 60.0, "s", "a recording ends by itself after this", 1, 600),
    Setting("audio.microphone", "", "", "part of the microphone's name (empty: the system's)"),
    Setting("audio.speaker", "", "", "part of the speaker's name (empty: the system's)"),
    Setting("screen.language", "en", "", "language of the screens", choices=("en", "de")),
    Setting("power.warn", 15, "%", "a battery at or below this is told (0: never)", 0, 100),
    Setting("power.critical", 5, "%", "it is told once more at this (0: never)", 0, 100),
    Setting("power.floor", 3, "%", "the device switches off at this (0: never)", 0, 50),
    Setting("power.off", "systemctl poweroff", "", "command that switches a board off"),
    Setting("power.restart", "systemctl reboot", "", "command that starts a board anew"),
    Setting("led.brightness", 0.3, "", "of the light, 0 (dark) to 1", 0, 1),
    Setting("screen.brightness", 100, "%", "brightness of the screen", 5, 100),
    Setting(
        "screen.sleep", 120.0, "s", "the screen goes dark after this rest (0: never)", 0, 86400
    ),
    Setting("screen.text", "normal", "", "size of letters", choices=("normal", "large")),
    Setting("screen.contrast", "normal", "", "contrast of pages", choices=("normal", "high")),
    Setting("lock.sleep", True, "", "a PIN that is set is asked for after the screen was dark"),
    Setting("screen.linger", 10.0, "s", "a finished reply stays on the screen this long", 1, 600),
)
BY_NAME = {row.name: row for row in TABLE}


@dataclass
class Settings:
    """The settings of one home. `get` never fails for a name in TABLE."""

    path: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    saved: dict[str, Value] = field(default_factory=dict)

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
        if name in self.saved:
            return self.saved[name], str(self.path)
        return row.default, "default"

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


def read_toml(path: Path) -> dict[str, Any]:
    """What a person wrote into a file; an absent one is empty. Raises SettingError, StorageError."""
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise storage_error(f"read {path}", error) from error
    except ValueError as error:  # no TOML, or no UTF-8
        raise SettingError(f"read {path}", str(error), "mend or remove the file") from error


def parse(name: str, value: object, source: str) -> Value:
    """Return `value` in the setting's type. Raises SettingError naming `source`."""
    row = _row(name)
    try:
        result = _convert(type(row.default), value)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        kind = type(row.default).__name__
        raise SettingError(f"setting {name}", f"{value!r} from {source} is no {kind}") from error
    where = f"{value!r} from {source}"
    if row.choices and result not in row.choices:
        raise SettingError(f"setting {name}", where, f"use one of {row.choices}")
    if not isinstance(result, str) and not row.low <= result <= row.high:
        span = f"use {row.low:g} to {row.high:g} {row.unit}"
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


def _flat(table: dict[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """TOML reads `voice.backend = ...` as a table in a table; a setting's name is the whole path."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _toml(value: Value) -> str:
    # not ASCII: JSON would write an emoji as two surrogates, which TOML refuses; nor DEL as it is
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _row(name: str) -> Setting:
    if name not in BY_NAME:
        raise SettingError(f"setting {name}", "there is none of that name", "see `exo doctor`")
    return BY_NAME[name]
