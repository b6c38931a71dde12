"""What the drivers of real panels have in common: checks, the reset pulse, brightness within its range.

Knows no controller's commands. Invariant: a driver that was made has a controller that was set up; one
that failed is closed and made anew, never mended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from exo.board.bus import Bus
from exo.board.screen import Box, check, check_level
from exo.core.base.errors import BoardError

if TYPE_CHECKING:
    from PIL.Image import Image

Pause = Callable[[float], None]


class Driver:
    """A panel behind `bus`. `size` is what the person sees; `rotation` is that of the picture on the glass,
    clockwise, 0, 90, 180 or 270; `offset` is where the glass begins in the controller's RAM."""

    mode = "1"
    band = 0  # rows that the controller takes at a time; 0: one box is best, however far it reaches
    paper = False  # whether it reflects light and keeps its picture: dark letters on white

    def __init__(
        self,
        bus: Bus,
        size: tuple[int, int],
        rotation: int = 0,
        offset: tuple[int, int] = (0, 0),
        invert: bool = False,
        pause: Pause = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.bus, self.size, self.rotation = bus, size, rotation
        self.offset, self.invert = offset, invert
        self.level = 1.0
        self._pause, self._now = pause, now
        self.set_up()

    def show(self, image: Image, box: Box | None = None) -> None:
        check(self, image, box)
        self.send(image, box or (0, 0, *self.size))

    def power(self, level: float) -> None:
        check_level(level)
        before, self.level = self.level, level
        self.light(level, before)

    def ready(self) -> bool:
        """Whether `show` would not have to wait."""
        return True

    def close(self) -> None:
        self.bus.wires.close()

    # what a controller does

    def set_up(self) -> None:
        """Bring the controller from any state to a black picture at full brightness."""
        raise NotImplementedError

    def send(self, image: Image, box: Box) -> None:
        """Bring `box` of `image` onto the panel; more of it when the controller wants that."""
        raise NotImplementedError

    def light(self, level: float, before: float) -> None:
        """Change the brightness from `before` to `level`; 0 puts the controller to sleep."""
        raise NotImplementedError

    # parts

    def reset(self, low: float, after: float) -> None:
        """Pull RST down for `low` seconds, and wait `after` seconds."""
        self.bus.wires.set("RST", 1)
        self.bus.wires.set("RST", 0)
        self._pause(low)
        self.bus.wires.set("RST", 1)
        self._pause(after)

    def refuse(self, why: str) -> BoardError:
        what = f"{type(self).__name__} {self.size[0]}x{self.size[1]}, rotation {self.rotation}"
        return BoardError(f"open the panel {what}", why, "correct the board's profile")
