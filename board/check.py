"""Do the parts of a board, or of two boards on one header, fit together? And is what they need turned on?

Pure: takes profiles and the texts of config.txt and /proc/asound/cards, returns problems. Invariant:
every problem names the part, the pin where there is one, and what mends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from exo.board.config_txt import I2S, Config, parse
from exo.board.profile import GAUGES, Profile

HEADER = range(28)  # GPIOs that the 40 pin header has
EEPROM = (0, 1)  # the firmware reads the HAT's EEPROM there before it starts
I2C = (2, 3)
UART = (14, 15)
SPI = (10, 11)  # MOSI and SCLK of SPI0; its MISO (9) is free, no panel here is read
SELECTS = (8, 7)  # chip selects of SPI0, by number
# pins that a free one is never taken from
KEPT = {*EEPROM, *I2C, *UART, *SPI, *SELECTS, *I2S, 9}


@dataclass(frozen=True)
class Problem:
    """`pin` is a BCM number, None when it is about no pin."""

    part: str
    pin: int | None
    what: str
    mend: str


@dataclass(frozen=True)
class Use:
    """A part takes a pin. Parts that name the same `bus` may share it; `fixed` is wired on a board."""

    part: str
    pin: int
    bus: str = ""
    kind: str = ""


def uses(profile: Profile) -> list[Use]:
    """Every pin that a board takes, part by part."""
    found: list[Use] = []

    def take(part: str, pins: Sequence[int], bus: str = "", kind: str = "") -> None:
        found.extend(Use(f"{profile.name} {part}", pin, bus, kind) for pin in pins)

    panel = profile.panel
    if panel.bus == "i2c":
        take("panel", I2C, "I2C1")
    if panel.bus == "spi" and panel.device[0] == 0:
        take("panel", SPI, "SPI0", "spi")
        if "CS" not in panel.pins:
            take("panel CS", SELECTS[panel.device[1] : panel.device[1] + 1], kind="select")
    for name, pin in panel.pins.items():
        take(f"panel {name}", [pin], kind="panel")
    for button in profile.buttons:
        if button.pin is not None:
            take(f"button {button.name}", [button.pin], kind="button")
    if profile.led:
        if profile.led.kind == "apa102":
            take("led", SPI, "SPI0", "spi")
        for name, pin in profile.led.pins.items():
            take(f"led {name}", [pin], kind="led")
    if profile.battery.kind in GAUGES:
        take("battery", I2C, "I2C1")
    for name, pins in profile.reserved.items():
        take(name, pins, "I2C1" if name == "I2C" else "", kind=name)
    return found


def check(
    profiles: Sequence[Profile], config: str | None = None, cards: str | None = None
) -> list[Problem]:
    """Return what is wrong with the boards, alone and together; `config` and `cards` are the texts of
    config.txt and /proc/asound/cards, None where there is none to look at."""
    taken = list(dict.fromkeys(use for profile in profiles for use in uses(profile)))
    problems = [*_impossible(taken), *_conflicts(taken), *_buses(profiles)]
    if config is not None:
        parsed = parse(config)
        for profile in profiles:
            problems += _overlays(profile, parsed, cards or "")
        lines = [Use(f"config.txt {line}", pin, kind="line") for line, pin in parsed.taken()]
        problems += [problem for line in lines for problem in _against(line, taken)]
    if cards is not None:
        for profile in profiles:
            problems += _cards(profile, cards)
    return problems


def _impossible(taken: list[Use]) -> Iterator[Problem]:
    """Pins that nobody has, and pins that are spoken for on every Pi."""
    for use in taken:
        if use.pin not in HEADER:
            yield Problem(
                use.part, use.pin, f"the header has no GPIO {use.pin}", "use one of 2 to 27"
            )
        elif use.pin in EEPROM and use.kind != "EEPROM":
            what = f"GPIO {use.pin} belongs to the EEPROM by which a HAT is known"
            yield Problem(use.part, use.pin, what, _free(taken))
        elif use.pin in I2C and use.kind == "button":
            what = f"GPIO {use.pin} is I2C, with a resistor of 1.8 kOhm on the Pi"
            yield Problem(use.part, use.pin, what, _free(taken))


def _conflicts(taken: list[Use]) -> Iterator[Problem]:
    for one, other in combinations(taken, 2):
        if one.pin == other.pin and not (one.bus and one.bus == other.bus):
            yield Problem(
                other.part,
                one.pin,
                f"GPIO {one.pin} is also {one.part}",
                _mend(one, other, taken),
            )


def _mend(one: Use, other: Use, taken: list[Use]) -> str:
    kinds = {one.kind, other.kind}
    boards = [use.part.split(" ")[0] for use in (one, other)]
    if kinds == {"I2S"}:
        return "two sound cards cannot share the I2S pins: take one of them off"
    if "I2S" in kinds:
        quiet = boards[0] if one.kind != "I2S" else boards[1]
        if boards[0] != boards[1]:
            return f"no audio HAT goes with {quiet}: use USB sound with it"
        return f"18 to 21 carry the sound; {_free(taken)}"
    if kinds == {"select"}:
        return "put one of the two on the other chip select (panel.device)"
    if boards[0] != boards[1]:
        return f"{boards[0]} and {boards[1]} do not stack as they are; wire one by hand: {_free(taken)}"
    return _free(taken)


def _free(taken: list[Use]) -> str:
    free = sorted(set(HEADER) - KEPT - {use.pin for use in taken})
    return f"change its pin to a free one: {', '.join(map(str, free))}" if free else "free a pin"


def _against(line: Use, taken: list[Use]) -> Iterator[Problem]:
    """A line of config.txt that takes a pin of ours; an audio board wants those of I2S, a panel its CE."""
    for use in taken:
        if use.pin == line.pin and use.kind not in ("I2S", "select"):
            what = f"GPIO {use.pin} is taken by {line.part.removeprefix('config.txt ')}"
            mend = f"take that line out of config.txt, and restart; or {_free(taken)}"
            yield Problem(use.part, use.pin, what, mend)


def _buses(profiles: Sequence[Profile]) -> Iterator[Problem]:
    """Two chips under one I2C address, and lights that listen to a panel's bytes."""
    addresses: dict[int, str] = {}
    for profile in profiles:
        for part, address in (
            ("panel", profile.panel.address),
            ("battery", profile.battery.address),
        ):
            name = f"{profile.name} {part}"
            other = addresses.setdefault(address, name) if address else name
            if other not in (name, profile.name):
                what = f"I2C address {address:#04x} is also {other}"
                yield Problem(name, None, what, "change one by its solder jumper, or take it off")
    panels = [profile for profile in profiles if profile.panel.bus == "spi"]
    for profile in profiles:
        if profile.led and profile.led.kind == "apa102":
            for other_board in panels:
                yield Problem(
                    f"{profile.name} led",
                    SPI[0],
                    f"its lights have no chip select and flicker with {other_board.name}'s panel",
                    "use a panel on I2C with it, or a sound card without such lights",
                )
    if len([profile for profile in profiles if profile.panel.driver not in ("none", "sim")]) > 1:
        names = " and ".join(profile.name for profile in profiles)
        yield Problem(names, None, "each has a panel, one is used", "take one of them off")


def _overlays(profile: Profile, config: Config, cards: str) -> Iterator[Problem]:
    """Lines that are missing; a card that is there came by another overlay, or by the EEPROM."""
    for overlay in profile.overlays:
        if not config.has(overlay.name, overlay.param, overlay.value):
            yield _missing(profile.name, overlay.line)
    card = any(_is_card(profile.audio.card, row) for row in _rows(cards))
    if profile.audio.overlay and not card and not config.has(profile.audio.overlay, False, ""):
        yield _missing(f"{profile.name} audio", f"dtoverlay={profile.audio.overlay}")


def _missing(part: str, line: str) -> Problem:
    mend = f"add `{line}` under [all] in /boot/firmware/config.txt, and restart"
    return Problem(part, None, f"config.txt lacks {line}", mend)


def _rows(cards: str) -> list[tuple[str, str]]:
    """(id, name) of each card: /proc/asound/cards has ` 1 [id             ]: driver - name`."""
    return re.findall(r"^\s*\d+ \[(\S+)\s*\]: (.*)$", cards, re.MULTILINE)


def _is_card(part: str, row: tuple[str, str]) -> bool:
    return part.lower() in " ".join(row).lower()


def _cards(profile: Profile, cards: str) -> Iterator[Problem]:
    audio, rows = profile.audio, _rows(cards)
    have = ", ".join(id_ for id_, _ in rows) or "none at all"
    if audio.card:
        if not any(_is_card(audio.card, row) for row in rows):
            mend = f"check `dtoverlay={audio.overlay}`" if audio.overlay else "install its driver"
            yield Problem(
                f"{profile.name} audio",
                None,
                f"there is no sound card {audio.card}, there is {have}",
                f"{mend}, see that the board sits on all pins, and restart",
            )
    elif "pc" in (audio.microphone, audio.speaker) and not rows:
        mend = "plug in a USB sound card"
        yield Problem(f"{profile.name} audio", None, "there is no sound card at all", mend)
