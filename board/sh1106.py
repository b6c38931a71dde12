"""SH1106: 128 x 64 mono OLEDs on SPI or I2C whose RAM is 132 columns wide.

Sino Wealth SH1106 v2.3, command table: page addressing alone (B0h-B7h, 00h-0Fh, 10h-1Fh), so each page is
addressed by itself; its DC-DC converter is ADh 8Bh with the pump voltage 30h-33h. 128 columns of glass
stand in the middle: column 2 is the first, from either side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exo.board.driver import Driver
from exo.board.pixels import PAGE, page, whole_pages

if TYPE_CHECKING:
    from exo.board.screen import Box
    from PIL.Image import Image

RAM = 132  # columns
OFF, ON = 0xAE, 0xAF
CONTRAST = 0x81


class Sh1106(Driver):
    """Sends, page by page, the columns that changed."""

    band = PAGE

    def set_up(self) -> None:
        width, height = self.size
        if width > RAM or height > 64 or height % PAGE or self.rotation not in (0, 180):
            raise self.refuse("it drives up to 132 x 64, upright or upside down")
        self._first = self.offset[0] or (RAM - width) // 2
        self.reset(low=0.00001, after=0.001)  # RES low for 10 us
        turned = (0xA1, 0xC8) if self.rotation == 0 else (0xA0, 0xC0)
        self.bus.command(OFF)
        self.bus.command(0xD5, 0x80)  # oscillator, divide ratio
        self.bus.command(0xA8, height - 1)  # multiplex ratio
        self.bus.command(0xD3, 0x00, 0x40)  # display offset, start line
        self.bus.command(0xAD, 0x8B)  # DC-DC converter on
        self.bus.command(0x32)  # pump voltage 8.0 V
        self.bus.command(*turned)
        self.bus.command(0xDA, 0x12)  # common pads: alternative
        self.bus.command(CONTRAST, 0xFF)
        self.bus.command(0xD9, 0x22, 0xDB, 0x35)  # pre-charge and VCOM as after reset
        self.bus.command(0xA4, 0xA7 if self.invert else 0xA6)  # follow RAM, normal
        for number in range(height // PAGE):  # RAM holds noise after power-on, in all its columns
            self._address(number, 0)
            self.bus.data(bytes(RAM))
        self.bus.command(ON)

    def send(self, image: Image, box: Box) -> None:
        left, upper, right, lower = whole_pages(box)
        for number in range(upper // PAGE, lower // PAGE):
            self._address(number, self._first + left)
            self.bus.data(page(image, number, left, right))

    def light(self, level: float, before: float) -> None:
        if level == 0:
            self.bus.command(OFF)  # RAM is kept
            return
        self.bus.command(CONTRAST, round(255 * level))
        if before == 0:
            self.bus.command(ON)

    def _address(self, number: int, column: int) -> None:
        self.bus.command(0xB0 | number, column & 0x0F, 0x10 | column >> 4)
