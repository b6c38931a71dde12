"""The 2.13 inch e-paper panel V4: 250 x 122, black and white, SSD1680 on SPI.

Solomon Systech SSD1680 rev 0.14. Set-up is the general operation flow (section 9) with the panel's values
as its maker has them: gates 01h, data entry 11h, border 3Ch, update control 21h, sensor 18h (table 7-1). RAM 24h holds the new
picture, 26h the one before; 22h F7h, 20h drives every pixel (display mode 1), 22h FFh, 20h only what
differs (mode 2). 10h 01h is deep sleep, from which only RST wakes. Invariant: outside the box that is sent
both RAMs hold what is seen, so that nothing there is driven again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exo.board.driver import Driver
from exo.core.base.errors import BoardError

if TYPE_CHECKING:
    from exo.board.screen import Box
    from PIL.Image import Image

GLASS = (122, 250)  # sources, gates
PARTIALS = 30  # updates between two that drive every pixel, against ghosts
MINUTES = 30.0  # and no longer than this
PACE = 1.0  # seconds between two updates: an animation must not flicker on paper
DEADLINE = 6.0  # seconds for BUSY; a full update takes 2, in the cold 4
START = 0.3  # seconds for BUSY after a reset, which takes 0.01
POLL = 0.01  # seconds
FULL, PARTIAL = 0xF7, 0xFF
NEW, OLD = 0x24, 0x26


class Epd2in13V4(Driver):
    """`show` starts an update and does not wait for its end; the next one does. `rotation` is of the
    picture on the upright glass, whose flat cable is below: the maker's sideways pictures are at 270."""

    paper = True

    def set_up(self) -> None:
        quarters = self.rotation // 90 % 4
        if self.rotation % 90 or self.size != (GLASS if quarters % 2 == 0 else GLASS[::-1]):
            raise self.refuse(
                "upright the glass has 122 x 250, turned by 90 or 270 it has 250 x 122"
            )
        self._quarters = quarters  # clockwise, from the picture to the glass
        self._partials, self._full_at = 0, 0.0
        self._started: float | None = None  # monotonic time of the last update
        self._shown: Image | None = None  # on the glass, as it lies there; None: nobody knows
        self._behind: Box | None = None  # where OLD is not what is seen
        self._asleep = False
        self._begin()

    def ready(self) -> bool:
        if self._started is None:
            return True
        since = self._now() - self._started
        if self.bus.wires.get("BUSY"):
            _patience(since, DEADLINE)
            return False
        return since >= PACE

    def send(self, image: Image, box: Box) -> None:
        if self._asleep:
            self._begin()
        self._idle()
        turned = self._turn(image)
        old = self._minutes() >= MINUTES or self._partials >= PARTIALS
        if self._shown is None or old:
            whole = (0, 0, *GLASS)
            self._command(0x3C, 0x05)  # border follows the waveform
            self._write(NEW, turned, whole)
            self._write(OLD, turned, whole)
            self._behind, self._partials, self._full_at = None, 0, self._now()
            self._update(FULL)
        else:
            self._command(0x3C, 0x80)  # border stays
            if self._behind:
                self._write(OLD, self._shown, self._behind)
            part = self._part(box)
            self._write(NEW, turned, part)
            self._behind, self._partials = part, self._partials + 1
            self._update(PARTIAL)
        self._shown = turned

    def light(self, level: float, before: float) -> None:
        if level == 0 and not self._asleep:
            self._idle()
            self._command(0x10, 0x01)
            self._asleep = True

    # parts

    def _begin(self) -> None:
        """Wake the controller; after it every pixel has to be driven."""
        self.bus.wires.set("PWR", 1)
        self._shown, self._started = None, None
        self.reset(low=0.002, after=0.02)
        self._idle(START)
        self._command(0x12)  # software reset
        self._pause(POLL)
        self._idle(START)
        self._command(0x01, *divmod(GLASS[1] - 1, 256)[::-1], 0x00)  # gates
        self._command(0x11, 0x03)  # x and y count up, x first
        self._command(0x3C, 0x05)
        self._command(0x21, 0x00, 0x80)  # both RAMs as they are; sources S8 to S167
        self._command(0x18, 0x80)  # the built-in sensor chooses the waveform
        self._idle(START)
        self._asleep = False

    def _update(self, sequence: int) -> None:
        self._command(0x22, sequence)
        self._command(0x20)
        self._started = self._now()

    def _write(self, ram: int, glass: Image, part: Box) -> None:
        left, upper, right, lower = part
        first, last = left // 8, (right - 1) // 8
        self._command(0x44, first, last)
        self._command(0x45, *divmod(upper, 256)[::-1], *divmod(lower - 1, 256)[::-1])
        self._command(0x4E, first)
        self._command(0x4F, *divmod(upper, 256)[::-1])
        self.bus.command(ram)
        # 8 pixels a byte from the left, 1 is white
        self.bus.data(glass.crop((8 * first, upper, 8 * last + 8, lower)).tobytes())

    def _turn(self, image: Image) -> Image:
        from PIL.Image import Transpose

        turns = (None, Transpose.ROTATE_270, Transpose.ROTATE_180, Transpose.ROTATE_90)
        turn = turns[self._quarters]
        return image.copy() if turn is None else image.transpose(turn)

    def _part(self, box: Box) -> Box:
        """`box` of the picture, where it lies on the glass, in whole bytes."""
        left, upper, right, lower = box
        width, height = self.size
        for _ in range(self._quarters):
            left, upper, right, lower = height - lower, left, height - upper, right
            width, height = height, width
        return left // 8 * 8, upper, min(-(-right // 8) * 8, width), lower

    def _idle(self, deadline: float = DEADLINE) -> None:
        begun = self._now()
        while self.bus.wires.get("BUSY"):
            _patience(self._now() - begun, deadline)
            self._pause(POLL)

    def _minutes(self) -> float:
        return (self._now() - self._full_at) / 60

    def _command(self, code: int, *values: int) -> None:
        self.bus.command(code)
        if values:
            self.bus.data(bytes(values))


def _patience(since: float, deadline: float) -> None:
    if since > deadline:
        why = f"BUSY did not fall for {deadline:g} s"
        raise BoardError("drive the e-paper", why, "check the cable, and that the panel is a V4")
