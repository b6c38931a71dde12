"""What a panel costs: bytes over the wires and time for a whole frame, a small change and no change, for
each kind, on a recorded bus. Time is drawing apart: comparing, packing and sending into the recording;
on the wire the bytes take what the bus's clock says, which is its own row."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from exo.board.bus import Bus, I2cBus, RecordedWires, SpiBus
from exo.board.panels import open_panel
from exo.tools.bench import Figure, Say


@dataclass(frozen=True)
class Panel:
    """A profile's panel, as far as it is read."""

    driver: str
    size: tuple[int, int]
    mode: str
    bus: str
    speed_hz: int  # of the bus; I2C sends 9 bits a byte and the address before each transfer
    rotation: int = 0
    offset: tuple[int, int] = (0, 0)
    invert: bool = False
    address: int = 0x3C
    device: tuple[int, int] = (0, 0)
    pins: dict[str, int] = field(default_factory=dict)
    active_low: tuple[str, ...] = ()


PANELS = (
    Panel("ssd1306", (128, 64), "1", "i2c", 400_000),
    Panel("sh1106", (128, 64), "1", "spi", 4_000_000),
    Panel("st7789", (240, 240), "RGB", "spi", 40_000_000),
    Panel("st7789", (320, 240), "RGB", "spi", 60_000_000, rotation=270),
    Panel("epd2in13v4", (250, 122), "1", "spi", 4_000_000, rotation=270),
)


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` frames of each sort (default 50)."""
    for panel in PANELS:
        yield from _measure(panel, rounds or 50)


def _measure(panel: Panel, rounds: int) -> Iterator[Figure]:
    from PIL import Image, ImageDraw

    wires = RecordedWires()
    bus: Bus = I2cBus(wires) if panel.bus == "i2c" else SpiBus(wires)
    seconds = 0.0  # of a clock that an e-paper's pace and updates are counted by

    def now() -> float:
        return seconds

    screen: Any = open_panel(panel, now=now, bus=lambda panel: bus, pause=lambda wait: None)
    width, height = panel.size
    name = f"{panel.driver} {width}x{height}"
    black, white = (Image.new(panel.mode, panel.size, colour) for colour in ("black", "white"))
    digit = []  # a clock's last digit, and a dot that walks at the bottom
    for step in range(2):
        image = black.copy()
        draw = ImageDraw.Draw(image)
        draw.rectangle((width // 2, 17, width // 2 + 13, 17 + 12 * (step + 1)), fill="white")
        draw.rectangle((50 + 12 * step, height - 6, 52 + 12 * step, height - 4), fill="white")
        digit.append(image)
    screen.show(black)
    for what, images in (
        ("whole", [white, black]),
        ("small change", digit),
        ("no change", [black, black]),
    ):
        times, costs, lasting = [], [], []
        seconds += 10
        screen.show(images[1])
        for number in range(rounds):
            seconds += 10
            wires.log.clear()
            begun = time.perf_counter()
            screen.show(images[number % 2])
            times.append(time.perf_counter() - begun)
            sizes = [len(entry[1]) for entry in wires.log if entry[0] == "write"]
            costs.append(sum(sizes))
            bits = 9 * (sum(sizes) + len(sizes)) if panel.bus == "i2c" else 8 * sum(sizes)
            lasting.append(bits / panel.speed_hz)
        yield Figure(f"{name}, {what}: sent", statistics.median(costs), "bytes")
        yield Figure(f"{name}, {what}: time", 1000 * statistics.median(times), "ms")
        yield Figure(f"{name}, {what}: on the wire", 1000 * statistics.median(lasting), "ms")
