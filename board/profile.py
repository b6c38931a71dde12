"""Board profiles: what a board has, as data. Owns reading and checking `profiles/*.toml`; opens no
hardware. Invariant: a Profile that was returned is whole; what is wrong is named with file and key.

Pins are BCM numbers under the names of the schematic. Whether two parts fit together is check.py's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.errors import BoardError

FOLDER = Path(__file__).parent / "profiles"
# driver -> the bus it needs
DRIVERS = {
    "sim": "",
    "none": "",  # no panel: see screen.NoPanel
    "rp2040": "",  # a panel at the end of a cable, with buttons of its own: see rp2040.py
    "ssd1306": "i2c",
    "sh1106": "spi",
    "st7789": "spi",
    "epd2in13v4": "spi",
}
PINLESS = ("sim", "rp2040")  # their buttons are on no pin of ours
MODES = ("1", "L", "RGB")
ROTATIONS = (0, 90, 180, 270)
PANEL_PINS = ("DC", "RST", "BUSY", "BL", "CS", "PWR", "TE")
PULLS = ("up", "down", "none")
AUDIO = ("pc", "alsa", "none")  # the system's device, the card that is named, nothing
# what lights -> its pins
LEDS = {"rgb": ("R", "G", "B"), "single": ("LED",), "apa102": ()}
GAUGES = ("max17043", "max17048", "ina219")  # on I2C
BATTERIES = ("none", "pisugar", *GAUGES)
NEEDED = ("talk",)  # a board without it cannot be used


@dataclass(frozen=True)
class Detect:
    """How the board is known: a part of the device tree's model and of the HAT EEPROM's product (empty:
    any), and I2C addresses: one of `i2c` answers, none of `absent` does."""

    model: str = ""
    hat: str = ""
    i2c: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()


@dataclass(frozen=True)
class Panel:
    """`size` in pixels as it is looked at, `mode` as Pillow names it, `rotation` in degrees clockwise of
    the picture on the glass, `offset` column and row of the controller's memory where the glass begins.
    `device` is SPI bus and chip select; names in `active_low` are pins that are on when low; `port` is a
    serial port (empty: found by USB ids)."""

    driver: str
    size: tuple[int, int]
    mode: str
    rotation: int = 0
    offset: tuple[int, int] = (0, 0)
    bus: str = ""
    address: int = 0
    device: tuple[int, int] = (0, 0)
    pins: Mapping[str, int] = field(default_factory=dict)
    active_low: tuple[str, ...] = ()
    speed_hz: int = 0
    invert: bool = False
    port: str = ""


@dataclass(frozen=True)
class Button:
    """A button; `keys` are the terminal's keys that stand for it, `pin` is None when it has no GPIO."""

    name: str
    label: str
    keys: tuple[str, ...] = ()
    pin: int | None = None
    pull: str = "up"
    active_low: bool = True


@dataclass(frozen=True)
class Audio:
    """`card` is a part of the ALSA card's name, `overlay` what brings its driver, `mixer` the control
    that sets the loudness."""

    microphone: str
    speaker: str
    card: str = ""
    overlay: str = ""
    mixer: str = ""


@dataclass(frozen=True)
class Led:
    """`rgb`: pins R, G, B; `single`: pin LED; `apa102`: on SPI, without a chip select."""

    kind: str
    pins: Mapping[str, int] = field(default_factory=dict)
    active_low: bool = False


@dataclass(frozen=True)
class Battery:
    """What tells the charge; `address` on I2C (0: none), `cells` in series."""

    kind: str = "none"
    address: int = 0
    cells: int = 1


@dataclass(frozen=True)
class Overlay:
    """A line that /boot/firmware/config.txt needs: `dtoverlay=name[,value]`, or `dtparam=name=value`."""

    name: str
    param: bool = False
    value: str = ""

    @property
    def line(self) -> str:
        """As it stands in the file."""
        if self.param:
            return f"dtparam={self.name}={self.value or 'on'}"
        return f"dtoverlay={self.name}" + (f",{self.value}" if self.value else "")


@dataclass(frozen=True)
class Profile:
    """One board. `reserved` are pins that its other parts hold, by the part's name."""

    name: str
    title: str
    panel: Panel
    buttons: tuple[Button, ...]
    audio: Audio
    revision: str = ""
    detect: Detect = Detect()
    led: Led | None = None
    battery: Battery = Battery()
    overlays: tuple[Overlay, ...] = ()
    reserved: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def cabled(self) -> bool:
        """Whether it is at the end of a cable, whatever machine this is."""
        return self.panel.driver == "rp2040"

    @property
    def simulated(self) -> bool:
        """Whether it is drawn in a terminal, wherever it runs."""
        return self.panel.driver == "sim"


def names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all boards, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = FOLDER) -> Profile:
    """Return the profile `name`. Raises BoardError."""
    path = folder / f"{name}.toml"
    if not name.replace("-", "").replace("_", "").isalnum() or not path.is_file():
        raise BoardError(
            f"use board {name!r}",
            "there is no such profile",
            f"use one of {', '.join(names(folder))}",
        )
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BoardError(f"read {path}", str(error)) from error
    return _Reader(path).profile(name, data)


def every(folder: Path = FOLDER) -> list[Profile]:
    """Return all boards, sorted by name. Raises BoardError."""
    return [load(name, folder) for name in names(folder)]


class _Reader:
    """Turns parsed TOML into a Profile; every complaint names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def profile(self, name: str, data: dict[str, Any]) -> Profile:
        known = "name title revision detect panel buttons audio led battery overlays pins"
        self.known(data, "", *known.split())
        if self.get(data, "name", str) != name:
            raise self.bad("name", f"it differs from the file's name {name!r}")
        panel = self.panel(self.get(data, "panel", dict))
        return Profile(
            name=name,
            title=self.get(data, "title", str),
            panel=panel,
            buttons=self.buttons(self.get(data, "buttons", list), panel.driver not in PINLESS),
            audio=self.audio(self.get(data, "audio", dict)),
            revision=self.get(data, "revision", str, default=""),
            detect=self.detect(self.get(data, "detect", dict, default={})),
            led=self.led(self.get(data, "led", dict)) if "led" in data else None,
            battery=self.battery(self.get(data, "battery", dict, default={"kind": "none"})),
            overlays=tuple(map(self.overlay, self.get(data, "overlays", list, default=[]))),
            reserved={
                key: self.numbers(data["pins"], key, "pins.")
                for key in self.get(data, "pins", dict, default={})
            },
        )

    def detect(self, data: dict[str, Any]) -> Detect:
        self.known(data, "detect.", "model", "hat", "i2c", "absent")
        return Detect(
            self.get(data, "model", str, "detect.", ""),
            self.get(data, "hat", str, "detect.", ""),
            self.numbers(data, "i2c", "detect."),
            self.numbers(data, "absent", "detect."),
        )

    def panel(self, data: dict[str, Any]) -> Panel:
        keys = "driver size mode rotation offset bus address device pins active_low speed_hz invert port"
        self.known(data, "panel.", *keys.split())
        size = self.get(data, "size", list, "panel.")
        if len(size) != 2 or not all(type(side) is int and 8 <= side <= 2048 for side in size):
            raise self.bad("panel.size", f"{size} is not two whole numbers of 8 to 2048 pixels")
        driver = self.choice(data, "driver", tuple(DRIVERS), "panel.")
        bus = self.get(data, "bus", str, "panel.", "")
        if bus != DRIVERS[driver]:
            raise self.bad(
                "panel.bus", f"{driver} is on {DRIVERS[driver] or 'no bus'}, not {bus!r}"
            )
        # an address belongs to I2C, a device to SPI, and neither is guessed
        for key, wanted in (("address", bus == "i2c"), ("device", bus == "spi")):
            if (key in data) != wanted:
                raise self.bad(f"panel.{key}", "it is missing" if wanted else "its bus has none")
        rotation = self.get(data, "rotation", int, "panel.", 0)
        if rotation not in ROTATIONS:
            raise self.bad("panel.rotation", f"{rotation} is none of {ROTATIONS}")
        pins = self.pins(data, "panel.", PANEL_PINS)
        low = self.get(data, "active_low", list, "panel.", [])
        for name in low:
            if name not in pins:
                raise self.bad("panel.active_low", f"{name!r} is not in panel.pins")
        return Panel(
            driver=driver,
            size=(size[0], size[1]),
            mode=self.choice(data, "mode", MODES, "panel."),
            rotation=rotation,
            offset=self.pair(data, "offset", "panel."),
            bus=bus,
            address=self.address(data, "panel.") if bus == "i2c" else 0,
            device=self.pair(data, "device", "panel."),
            pins=pins,
            active_low=tuple(low),
            speed_hz=self.get(data, "speed_hz", int, "panel.", 0),
            invert=self.get(data, "invert", bool, "panel.", False),
            port=self.get(data, "port", str, "panel.", ""),
        )

    def buttons(self, rows: list[Any], real: bool) -> tuple[Button, ...]:
        result: list[Button] = []
        keys: dict[str, str] = {}
        for row in rows:
            button = self.button(row, real)
            if button.name in (other.name for other in result):
                raise self.bad("buttons.name", f"{button.name!r} is there twice")
            for key in button.keys:
                if not isinstance(key, str):
                    raise self.bad("buttons.keys", f"{key!r} is no name of a key")
                if key in keys:
                    raise self.bad("buttons.keys", f"{key} is both {keys[key]} and {button.name}")
                keys[key] = button.name
            result.append(button)
        for name in NEEDED:
            if name not in (button.name for button in result):
                raise self.bad("buttons", f"there is no button {name!r}")
        return tuple(result)

    def button(self, row: Any, real: bool) -> Button:
        where = "buttons."
        if not isinstance(row, dict):
            raise self.bad("buttons", "each must be a table")
        self.known(row, where, "name", "label", "keys", "pin", "pull", "active_low")
        name, label = self.get(row, "name", str, where), self.get(row, "label", str, where)
        keys = tuple(self.get(row, "keys", list, where, []))
        if not real:
            if "pin" in row:
                raise self.bad("buttons.pin", "a simulated board has none, nor one on a cable")
            return Button(name, label, keys)
        pull = self.choice(row, "pull", PULLS, where)
        low = self.get(row, "active_low", bool, where, pull != "down")
        if (pull, low) in (("up", False), ("down", True)):
            # the resistor would hold the pin at the level that says "pressed"
            raise self.bad("buttons.pull", f"{pull} holds {name!r} pressed")
        return Button(name, label, keys, self.get(row, "pin", int, where), pull, low)

    def audio(self, data: dict[str, Any]) -> Audio:
        where = "audio."
        self.known(data, where, "microphone", "speaker", "card", "overlay", "mixer")
        microphone = self.choice(data, "microphone", AUDIO, where)
        speaker = self.choice(data, "speaker", AUDIO, where)
        card = self.get(data, "card", str, where, "")
        if ("alsa" in (microphone, speaker)) != bool(card):
            raise self.bad("audio.card", "alsa needs its name, and nothing else does")
        return Audio(
            microphone,
            speaker,
            card,
            self.get(data, "overlay", str, where, ""),
            self.get(data, "mixer", str, where, ""),
        )

    def led(self, data: dict[str, Any]) -> Led:
        self.known(data, "led.", "kind", "pins", "active_low")
        kind = self.choice(data, "kind", tuple(LEDS), "led.")
        pins = self.pins(data, "led.", LEDS[kind])
        if set(pins) != set(LEDS[kind]):
            raise self.bad("led.pins", f"{kind} has {', '.join(LEDS[kind]) or 'none'}")
        return Led(kind, pins, self.get(data, "active_low", bool, "led.", False))

    def battery(self, data: dict[str, Any]) -> Battery:
        self.known(data, "battery.", "kind", "address", "cells")
        kind = self.choice(data, "kind", BATTERIES, "battery.")
        if kind in GAUGES and "address" not in data:
            raise self.bad("battery.address", "it is missing")
        cells = self.get(data, "cells", int, "battery.", 1)
        if not 1 <= cells <= 4:
            raise self.bad("battery.cells", f"{cells} is not within 1 to 4")
        address = self.address(data, "battery.") if "address" in data else 0
        return Battery(kind, address, cells)

    def overlay(self, row: Any) -> Overlay:
        if not isinstance(row, dict):
            raise self.bad("overlays", "each must be a table")
        self.known(row, "overlays.", "name", "param", "value")
        return Overlay(
            self.get(row, "name", str, "overlays."),
            self.get(row, "param", bool, "overlays.", False),
            self.get(row, "value", str, "overlays.", ""),
        )

    # values

    def pins(self, data: dict[str, Any], where: str, known: tuple[str, ...]) -> dict[str, int]:
        pins: dict[str, Any] = self.get(data, "pins", dict, where, {})
        self.known(pins, f"{where}pins.", *known)
        return {name: self.get(pins, name, int, f"{where}pins.") for name in pins}

    def numbers(self, data: dict[str, Any], key: str, where: str) -> tuple[int, ...]:
        values = self.get(data, key, list, where, [])
        if not all(type(value) is int for value in values):
            raise self.bad(where + key, f"{values} are not whole numbers")
        return tuple(values)

    def pair(self, data: dict[str, Any], key: str, where: str) -> tuple[int, int]:
        values = self.numbers(data, key, where) or (0, 0)
        if len(values) != 2 or min(values) < 0:
            raise self.bad(where + key, f"{list(values)} is not two whole numbers from 0")
        return values[0], values[1]

    def address(self, data: dict[str, Any], where: str) -> int:
        value: int = self.get(data, "address", int, where)
        if not 0x08 <= value <= 0x77:  # the rest of the seven bits is reserved (UM10204, 3.1.12)
            raise self.bad(where + "address", f"{value:#04x} is not within 0x08 to 0x77")
        return value

    def get(
        self, data: dict[str, Any], key: str, kind: type, where: str = "", default: Any = None
    ) -> Any:
        if key not in data:
            if default is None:
                raise self.bad(where + key, "it is missing")
            return default
        value = data[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.bad(where + key, f"{value!r} is no {kind.__name__}")
        return value

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
