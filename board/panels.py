"""Which driver drives which panel, and how a profile's panel is opened.

Owns the table of drivers and the choice of bus; imports a driver when it is used. Nothing is opened before
the first picture, and an absent panel is a fault of `Steady`, not of the caller."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from exo.board.bus import Bus, I2cBus, I2cWires, SpiBus, SpiWires
from exo.board.screen import NoPanel, Screen
from exo.board.steady import Steady
from exo.core.base.errors import BoardError

# driver -> module and class, SPI clock in Hz when the profile says none
DRIVERS: dict[str, tuple[str, int]] = {
    "ssd1306": ("exo.board.ssd1306:Ssd1306", 8_000_000),
    "sh1106": ("exo.board.sh1106:Sh1106", 4_000_000),
    "st7789": ("exo.board.st7789:St7789", 40_000_000),
    "epd2in13v4": ("exo.board.epd2in13v4:Epd2in13V4", 4_000_000),
}
CABLE = "rp2040"  # a panel at the end of a cable: no controller of ours, see rp2040.py
I2C = 1  # the header's bus, /dev/i2c-1


class PanelProfile(Protocol):
    """What is read of a profile's panel."""

    @property
    def driver(self) -> str: ...
    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def mode(self) -> str: ...
    @property
    def rotation(self) -> int: ...
    @property
    def offset(self) -> tuple[int, int]: ...
    @property
    def bus(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def pins(self) -> Mapping[str, int]: ...
    @property
    def active_low(self) -> tuple[str, ...]: ...
    @property
    def speed_hz(self) -> int: ...
    @property
    def invert(self) -> bool: ...


def open_panel(
    panel: PanelProfile,
    told: Callable[[str], None] = lambda fault: None,
    now: Callable[[], float] = time.monotonic,
    bus: Callable[[PanelProfile], Bus] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Steady:
    """Return the panel of a profile; it is opened with the first picture and again after each fault, of
    which `told` hears. Raises BoardError for a driver that is not in the table or takes another mode."""
    if panel.driver == "none":
        return Steady.around(NoPanel(panel.size, panel.mode), told, now)
    if panel.driver == CABLE:
        from exo.board.rp2040 import Cable, find_port

        port = getattr(panel, "port", "")
        return Cable(lambda: find_port(port)).steady(panel.size, told, now)
    if panel.driver not in DRIVERS:
        known = ", ".join(sorted(DRIVERS))
        raise BoardError(
            f"open panel {panel.driver!r}", f"there is no such driver: {known}, {CABLE}, none"
        )
    driver = _driver(panel.driver)
    if panel.mode != driver.mode:
        what = f"open panel {panel.driver!r}"
        raise BoardError(
            what, f"its mode is {driver.mode}, not {panel.mode}", "correct the profile"
        )
    connect = bus or connected

    def make() -> Screen:
        return open_driver(panel, connect(panel), now, pause)

    return Steady(make, panel.size, panel.mode, told, now, driver.paper)


def open_driver(
    panel: PanelProfile,
    link: Bus,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Screen:
    """The driver alone, without the care of `Steady`. Raises BoardError, with the bus closed."""
    try:
        made: Screen = _driver(panel.driver)(
            link, panel.size, panel.rotation, panel.offset, panel.invert, pause, now
        )
    except BaseException:
        link.wires.close()
        raise
    return made


def is_paper(driver: str) -> bool:
    """Whether a panel of that driver is to be drawn dark on white."""
    return driver in DRIVERS and bool(_driver(driver).paper)


def connected(panel: PanelProfile, factory: Any = None) -> Bus:
    """Open the bus and the pins of a profile's panel; `factory` is gpiozero's (None: the header).
    Raises BoardError."""
    low = frozenset(panel.active_low)
    if panel.bus == "i2c":
        return I2cBus(I2cWires(I2C, panel.address, panel.pins, low, factory))
    if panel.bus == "spi":
        speed = panel.speed_hz or DRIVERS[panel.driver][1]
        return SpiBus(SpiWires(*panel.device, speed, panel.pins, low, factory))
    raise BoardError(f"open panel {panel.driver!r}", f"its bus is {panel.bus!r}, not i2c or spi")


def _driver(name: str) -> Any:
    module, _, kind = DRIVERS[name][0].partition(":")
    return getattr(importlib.import_module(module), kind)
