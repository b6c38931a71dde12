"""SSD1306: 128 x 64 or 128 x 32 mono OLEDs on I2C or SPI.

Solomon Systech SSD1306 rev 1.5. Set-up follows the software initialisation flow chart (application note,
figure 2) in its order, with the charge pump (section 8.10) and horizontal addressing (20h) of
table 9-1; a box is addressed with 21h and 22h (table 9-1, 3: addressing setting), the pages and bytes
are those of section 8.7, figures 8-13 and 8-14."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exo.board.driver import Driver
from exo.board.pixels import PAGE, page, whole_pages

if TYPE_CHECKING:
    from exo.board.screen import Box
    from PIL.Image import Image

OFF, ON = 0xAE, 0xAF
CONTRAST = 0x81
PUMP, PUMP_ON, PUMP_OFF = 0x8D, 0x14, 0x10
COLUMNS, PAGES = 0x21, 0x22


class Ssd1306(Driver):
    """Sends whole pages of the columns that changed."""

    band = PAGE

    def set_up(self) -> None:
        width, height = self.size
        if width > 128 or height not in (32, 64) or self.rotation not in (0, 180):
            raise self.refuse("it drives up to 128 x 32 or 64, upright or upside down")
        self.reset(low=0.00001, after=0.001)  # RES# low for 3 us
        # columns and rows of all known modules run against the controller's: A1h, C8h is upright
        turned = (0xA1, 0xC8) if self.rotation == 0 else (0xA0, 0xC0)
        self.bus.command(OFF)
        self.bus.command(0xA8, height - 1)  # multiplex ratio
        self.bus.command(0xD3, 0x00, 0x40)  # display offset, start line
        self.bus.command(*turned)
        self.bus.command(0xDA, 0x12 if height == 64 else 0x02)  # COM pins: alternative, sequential
        self.bus.command(CONTRAST, 0xFF)
        self.bus.command(0xA4, 0xA7 if self.invert else 0xA6)  # follow RAM, normal
        self.bus.command(0xD5, 0x80)  # oscillator as after reset
        self.bus.command(0xD9, 0xF1)  # pre-charge for a supply by the pump
        self.bus.command(0x20, 0x00)  # horizontal addressing
        self.bus.command(PUMP, PUMP_ON)
        self._address((0, 0, *self.size))
        self.bus.data(bytes(width * height // PAGE))  # RAM holds noise after power-on
        self.bus.command(ON)

    def send(self, image: Image, box: Box) -> None:
        left, upper, right, lower = whole_pages(box)
        self._address((left, upper, right, lower))
        pages = range(upper // PAGE, lower // PAGE)
        self.bus.data(b"".join(page(image, number, left, right) for number in pages))

    def light(self, level: float, before: float) -> None:
        if level == 0:
            self.bus.command(OFF, PUMP, PUMP_OFF)  # RAM is kept
            return
        self.bus.command(CONTRAST, round(255 * level))
        if before == 0:
            self.bus.command(PUMP, PUMP_ON, ON)

    def _address(self, box: Box) -> None:
        left, upper, right, lower = box
        first = self.offset[0]
        self.bus.command(COLUMNS, first + left, first + right - 1)
        self.bus.command(PAGES, upper // PAGE, lower // PAGE - 1)
