"""ST7789: colour panels up to 240 x 320 on SPI, 16 bits a pixel.

Sitronix ST7789V v1.3, section 9.1 (system function command table 1): set-up is SWRESET 01h, SLPOUT 11h, COLMOD
3Ah with 55h, MADCTL 36h, INVON 21h or INVOFF 20h, NORON 13h, DISPON 29h; a box is CASET 2Ah, RASET 2Bh, RAMWR 2Ch.
Section 8.8: 65K colours on 4 lines are RGB 5-6-5. The waits are those of SWRESET, SLPIN and SLPOUT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exo.board.driver import Driver
from exo.board.pixels import rgb565

if TYPE_CHECKING:
    from exo.board.screen import Box
    from PIL.Image import Image

RAM = (240, 320)  # columns, rows
SWRESET, SLPIN, SLPOUT, NORON, INVOFF, INVON = 0x01, 0x10, 0x11, 0x13, 0x20, 0x21
DISPOFF, DISPON, CASET, RASET, RAMWR, MADCTL, COLMOD = 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x36, 0x3A
MY, MX, MV = 0x80, 0x40, 0x20  # rows mirrored, columns mirrored, exchanged
TURNS = (0, MX | MV, MX | MY, MY | MV)  # by quarters clockwise
SETTLE = 0.005  # seconds after SWRESET, SLPIN, SLPOUT until any command
SLEEP = 0.12  # and until SLPIN or SLPOUT


class St7789(Driver):
    """`rotation` is of the picture on the upright glass, `offset` where that glass begins in RAM."""

    mode = "RGB"
    band = 16

    def set_up(self) -> None:
        width, height = self.size
        quarters = self.rotation // 90 % 4
        across, down = (height, width) if quarters % 2 else (width, height)
        spare = (RAM[0] - across - self.offset[0], RAM[1] - down - self.offset[1])
        if self.rotation % 90 or min(*spare, *self.offset) < 0:
            why = f"with offset {self.offset} it is not within the controller's {RAM[0]} x {RAM[1]}"
            raise self.refuse(why)
        turn = TURNS[quarters]
        first = spare[0] if turn & MX else self.offset[0]
        second = spare[1] if turn & MY else self.offset[1]
        self._origin = (second, first) if turn & MV else (first, second)

        self.bus.wires.set("BL", 0)
        self.reset(low=0.00002, after=SETTLE)
        self._slept = self._now()
        self._sleep(SWRESET)  # many boards have no RST
        self._sleep(SLPOUT)
        self._command(COLMOD, 0x55)
        self._command(MADCTL, turn)
        self._command(INVON if self.invert else INVOFF)
        self._command(NORON)
        self._address((0, 0, *self.size))
        self.bus.data(bytes(2 * width * height))  # RAM holds noise after power-on
        self._command(DISPON)
        self.bus.wires.set("BL", self.level)

    def send(self, image: Image, box: Box) -> None:
        self._address(box)
        self.bus.data(rgb565(image.crop(box)))

    def light(self, level: float, before: float) -> None:
        if level == 0:
            self.bus.wires.set("BL", 0)
            self._command(DISPOFF)
            self._sleep(SLPIN)  # RAM is kept
            return
        if before == 0:
            self._sleep(SLPOUT)
            self._command(DISPON)
        self.bus.wires.set("BL", level)

    def _sleep(self, code: int) -> None:
        """Send SLPIN, SLPOUT or SWRESET, not sooner than SLEEP after the one before."""
        self._pause(max(0.0, self._slept + SLEEP - self._now()))
        self._command(code)
        self._slept = self._now()
        self._pause(SETTLE)

    def _command(self, code: int, *values: int) -> None:
        self.bus.command(code)
        if values:
            self.bus.data(bytes(values))

    def _address(self, box: Box) -> None:
        x, y = self._origin
        left, upper, right, lower = box
        self._command(CASET, *divmod(x + left, 256), *divmod(x + right - 1, 256))
        self._command(RASET, *divmod(y + upper, 256), *divmod(y + lower - 1, 256))
        self._command(RAMWR)
