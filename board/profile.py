"""Board profiles: what a board has, as data. Owns reading and checking `profiles/*.toml`; opens no
hardware. Invariant: a Profile that was returned is whole; what is wrong is named with file and key."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.core.base.errors import BoardError

FOLDER = Path(__file__).parent / "profiles"
DRIVERS = ("sim",)
MODES = ("1", "L", "RGB")
AUDIO = ("pc",)
NEEDED = ("talk",)  # a board without it cannot be used


@dataclass(frozen=True)
class Panel:
    """`size` in pixels, `mode` as Pillow names it."""

    driver: str
    size: tuple[int, int]
    mode: str


@dataclass(frozen=True)
class Button:
    """A button; `keys` are the terminal's keys that stand for it."""

    name: str
    label: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """One board."""

    name: str
    title: str
    panel: Panel
    buttons: tuple[Button, ...]
    microphone: str
    speaker: str


def names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all boards, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = FOLDER) -> Profile:
    """Return the profile `name`. Raises BoardError."""
    path = folder / f"{name}.toml"
    if not name.replace("-", "").replace("_", "").isalnum() or not path.is_file():
        raise BoardError(
            f"use board {name!r}", "there is no such profile", f"use one of {names(folder)}"
        )
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BoardError(f"read {path}", str(error)) from error
    return _Reader(path).profile(name, data)


class _Reader:
    """Turns parsed TOML into a Profile; every complaint names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def profile(self, name: str, data: dict[str, Any]) -> Profile:
        self.known(data, "", "name", "title", "panel", "buttons", "audio")
        if self.get(data, "name", str) != name:
            raise self.bad("name", f"it differs from the file's name {name!r}")
        audio = self.get(data, "audio", dict)
        self.known(audio, "audio.", "microphone", "speaker")
        return Profile(
            name=name,
            title=self.get(data, "title", str),
            panel=self.panel(self.get(data, "panel", dict)),
            buttons=self.buttons(self.get(data, "buttons", list)),
            microphone=self.choice(audio, "microphone", AUDIO, "audio."),
            speaker=self.choice(audio, "speaker", AUDIO, "audio."),
        )

    def panel(self, data: dict[str, Any]) -> Panel:
        self.known(data, "panel.", "driver", "size", "mode")
        size = self.get(data, "size", list, "panel.")
        if len(size) != 2 or not all(type(side) is int and 8 <= side <= 2048 for side in size):
            raise self.bad("panel.size", f"{size} is not two whole numbers of 8 to 2048 pixels")
        driver = self.choice(data, "driver", DRIVERS, "panel.")
        return Panel(driver, (size[0], size[1]), self.choice(data, "mode", MODES, "panel."))

    def buttons(self, rows: list[Any]) -> tuple[Button, ...]:
        result: list[Button] = []
        keys: dict[str, str] = {}
        for row in rows:
            if not isinstance(row, dict):
                raise self.bad("buttons", "each must be a table")
            self.known(row, "buttons.", "name", "label", "keys")
            name = self.get(row, "name", str, "buttons.")
            if name in (button.name for button in result):
                raise self.bad("buttons.name", f"{name!r} is there twice")
            for key in row.get("keys", []):
                if not isinstance(key, str):
                    raise self.bad("buttons.keys", f"{key!r} is no name of a key")
                if key in keys:
                    raise self.bad("buttons.keys", f"{key} is both {keys[key]} and {name}")
                keys[key] = name
            label = self.get(row, "label", str, "buttons.")
            result.append(Button(name, label, tuple(row.get("keys", []))))
        for name in NEEDED:
            if name not in (button.name for button in result):
                raise self.bad("buttons", f"there is no button {name!r}")
        return tuple(result)

    def get(self, data: dict[str, Any], key: str, kind: type, where: str = "") -> Any:
        if key not in data:
            raise self.bad(where + key, "it is missing")
        if not isinstance(data[key], kind):
            raise self.bad(where + key, f"{data[key]!r} is no {kind.__name__}")
        return data[key]

    def choice(self, data: dict[str, Any], key: str, choices: tuple[str, ...], where: str) -> str:
        value = self.get(data, key, str, where)
        if value not in choices:
            raise self.bad(where + key, f"{value!r} is none of {', '.join(choices)}")
        return str(value)

    def known(self, data: dict[str, Any], where: str, *keys: str) -> None:
        for key in data:
            if key not in keys:
                raise self.bad(where + key, f"nobody reads it; known are {', '.join(keys)}")

    def bad(self, key: str, why: str) -> BoardError:
        return BoardError(f"board profile {self.path.name}, {key}", why)
