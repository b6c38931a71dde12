"""/boot/firmware/config.txt as far as pins and drivers go: which overlays and parameters are on.

Owns the reading of its text; opens no file. Invariant: what the firmware would pass over is passed over.
Sections: `[all]` and those of Pi models count, since the card may stand in any; `[cm4]`, `[none]` and the like do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ON = ("on", "yes", "true", "1", "")
ALIASES = {"i2c": "i2c_arm", "i2c1": "i2c_arm", "i2c_baudrate": "i2c_arm_baudrate"}
I2S = (18, 19, 20, 21)
# overlays that take pins, and the parameter that moves a single pin (empty: fixed)
PINS: dict[str, tuple[tuple[int, ...], str]] = {
    "w1-gpio": ((4,), "gpiopin"),
    "gpio-ir": ((18,), "gpio_pin"),
    "gpio-ir-tx": ((18,), "gpio_pin"),
    "gpio-shutdown": ((3,), "gpio_pin"),
    "gpio-poweroff": ((26,), "gpiopin"),
    "gpio-fan": ((12,), "gpiopin"),
    "pwm": ((18,), "pin"),
    "dht11": ((4,), "gpiopin"),
    "googlevoicehat-soundcard": (I2S, ""),
    "hifiberry-dac": (I2S, ""),
    "i2s-mmap": (I2S, ""),
    "respeaker-2mic-v2_0": (I2S, ""),
    "seeed-2mic-voicecard": (I2S, ""),
    "wm8960-soundcard": (I2S, ""),
    "whisplay-soundcard": (I2S, ""),
}


@dataclass(frozen=True)
class Config:
    """What is on: parameters of the base device tree, and overlays with their own parameters."""

    params: dict[str, str] = field(default_factory=dict)
    overlays: dict[str, dict[str, str]] = field(default_factory=dict)
    uart: bool = False

    def has(self, name: str, param: bool, value: str) -> bool:
        """Whether a line that a profile needs is there; an empty `value` is on, or no parameter."""
        if param:
            found = self.params.get(ALIASES.get(name, name))
            if name == "spi" and found is None:  # either overlay turns the bus on as well
                return bool({"spi0-1cs", "spi0-2cs"} & self.overlays.keys())
            return found is not None and (found == value or (not value and found in ON))
        own = self.overlays.get(name)
        return own is not None and (not value or value.partition("=")[0] in own)

    def taken(self) -> Iterator[tuple[str, int]]:
        """The pins that the lines take from everybody else: (line, BCM number)."""
        if self.uart:
            yield from (("enable_uart=1", pin) for pin in (14, 15))
        if self.params.get("spi", "off") in ON and "spi0-1cs" not in self.overlays:
            yield from (("dtparam=spi=on", pin) for pin in (7, 8))
        elif "spi0-1cs" in self.overlays:
            yield "dtoverlay=spi0-1cs", 8
        if self.params.get("i2s", "off") in ON:
            yield from (("dtparam=i2s=on", pin) for pin in I2S)
        for name, (pins, moved) in PINS.items():
            own = self.overlays.get(name)
            if own is not None:
                pin = own.get(moved, "") if moved else ""
                for each in (int(pin),) if pin.isdecimal() else pins:
                    yield f"dtoverlay={name}", each


def parse(text: str) -> Config:
    """Return what `text` turns on; lines that say nothing of it are passed over."""
    params: dict[str, str] = {}
    overlays: dict[str, dict[str, str]] = {}
    uart, counts = False, True
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            section = line.strip("[] ").lower()
            counts = section == "all" or section.startswith("pi")
            continue
        key, sign, rest = (part.strip() for part in line.partition("="))
        if not counts or not sign:
            continue
        words = [word.strip() for word in rest.split(",")]
        if key in ("dtparam", "device_tree_param"):
            params |= {ALIASES.get(name, name): value for name, value in map(_pair, words)}
        elif key in ("dtoverlay", "device_tree_overlay") and words[0]:
            name = words[0].removesuffix(".dtbo").removesuffix("-overlay")
            overlays[name] = dict(map(_pair, words[1:]))
        elif key == "enable_uart":
            uart = rest == "1"
    return Config(params, overlays, uart)


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.strip(), value.strip()
