"""A panel that never fails its caller: sends what changed and no more, comes back after every fault.

Owns what is seen now, the boxes that changed and the time of the next attempt; knows no controller.
Invariant: a panel that failed once is closed, made anew and gets the whole picture; nothing is built upon
what a broken transfer left behind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from exo.board.screen import Box, Screen, check, check_level
from exo.core.base.errors import BoardError

if TYPE_CHECKING:
    from PIL.Image import Image

# seconds until the second attempt, doubled for each further one up to the latter
RETRY = (0.5, 30.0)
UNKNOWN = -1.0  # brightness of a panel that does not say
BUSY = 0.1  # seconds between two looks at a panel that is busy
JOIN = 16  # columns of a band that may be sent too much to save a box of its own


class Steady:
    """Wraps the panel that `make` opens. `told` hears of a fault once, and "" when it is over."""

    def __init__(
        self,
        make: Callable[[], Screen],
        size: tuple[int, int],
        mode: str,
        told: Callable[[str], None] = lambda fault: None,
        now: Callable[[], float] = time.monotonic,
        paper: bool = False,
        longest: float = RETRY[1],
    ) -> None:
        """`longest` are the seconds between two attempts at a panel that stays away."""
        self.size, self.mode, self.paper = size, mode, paper
        self.fault = ""  # why nothing is seen, empty while all is well
        self._make, self._told, self._now, self._longest = make, told, now, longest
        self._panel: Screen | None = None
        self._wanted: Image | None = None  # what is to be seen
        self._shown: Image | None = None  # what is seen; None: nobody knows
        self._level, self._lit = 1.0, 1.0  # brightness that is to be, and that is
        self._wait, self._next = 0.0, 0.0  # until and when the next attempt

    @classmethod
    def around(
        cls,
        panel: Screen,
        told: Callable[[str], None] = lambda fault: None,
        now: Callable[[], float] = time.monotonic,
    ) -> Steady:
        """Wrap a panel that is there already."""
        paper = bool(getattr(panel, "paper", False))
        return cls(lambda: panel, panel.size, panel.mode, told, now, paper)

    def show(self, image: Image, box: Box | None = None) -> None:
        """Let `image` be seen as soon as the panel can; `box` is found out here."""
        check(self, image, box)
        if box is None or self._wanted is None:
            self._wanted = image.copy()
        else:
            self._wanted.paste(image.crop(box), box[:2])
        self.settle()

    def power(self, level: float) -> None:
        """Change the brightness as soon as the panel can; at 0 it sleeps and is sent nothing."""
        check_level(level)
        self._level = level
        self.settle()

    def settle(self) -> None:
        """Bring what waits onto the panel: after a fault, while it was busy, while it slept. Costs little
        when nothing waits; to be called now and then."""
        if self.fault and self._now() < self._next:
            return
        try:
            self._send()
        except BoardError as error:
            self._failed(str(error))
            return
        if self.fault:
            self.fault, self._wait = "", 0.0
            self._told("")

    @property
    def due(self) -> float:
        """When `settle` has something to do, by the clock that was given; infinity when nothing waits."""
        if self.fault:
            return self._next
        return self._now() + BUSY if self._panel and self._waits() else math.inf

    def finish(self, patience: float = 4.0, pause: Callable[[float], None] = time.sleep) -> None:
        """Bring the last picture onto the panel, let it sleep and let go of it; waits up to `patience`
        seconds for one that is busy. Paper keeps that picture without power."""
        end = self._now() + patience
        for level in (self._level, 0.0):
            self._level = level
            while self._panel and not self.fault and self._now() < end:
                self.settle()
                if not self._waits():
                    break
                pause(0.02)
        try:
            self.close()
        except BoardError as error:
            self._told(str(error))

    def close(self) -> None:
        """Let go of the panel."""
        panel, self._panel, self._shown = self._panel, None, None
        close = getattr(panel, "close", None)
        if close:
            close()

    def _send(self) -> None:
        if self._panel is None:
            self._panel = self._make()
            self._lit = getattr(self._panel, "level", UNKNOWN)
        panel, wanted = self._panel, self._wanted
        boxes = self._boxes(panel, wanted) if wanted is not None and self._level > 0 else []
        if not boxes and self._level == self._lit or not getattr(panel, "ready", _always)():
            return
        if wanted is not None and boxes:
            for box in boxes:
                panel.show(wanted, box)
            self._shown = wanted.copy()
        if self._level != self._lit:  # after the picture: an old one is not seen again
            panel.power(self._level)
            self._lit = self._level

    def _waits(self) -> bool:
        """Whether something is not on the panel yet."""
        if self._level != self._lit:
            return True
        wanted = self._wanted if self._level > 0 else None
        return wanted is not None and bool(self._boxes(self._panel, wanted))

    def _boxes(self, panel: Screen | None, wanted: Image) -> list[Box | None]:
        """The parts that changed: one, or one for each band of rows that the controller wants."""
        from PIL import ImageChops

        if self._shown is None:
            return [None]
        if self.mode == "1":
            changed = ImageChops.logical_xor(self._shown, wanted)
        else:
            changed = ImageChops.difference(self._shown, wanted)
        whole = changed.getbbox()
        band = getattr(panel, "band", 0)
        if whole is None or not band:
            return [whole] if whole else []
        boxes: list[Box | None] = []
        last: Box | None = None
        for upper in range(whole[1] // band * band, whole[3], band):
            lower = min(upper + band, self.size[1])
            part = changed.crop((0, upper, self.size[0], lower)).getbbox()
            if part is None:
                continue
            box = (part[0], upper + part[1], part[2], upper + part[3])
            if last and (joined := _joined(last, box, band)):
                boxes[-1] = last = joined
            else:
                boxes.append(box)
                last = box
        return boxes

    def _failed(self, why: str) -> None:
        self._wait = min(2 * self._wait, self._longest) if self._wait else RETRY[0]
        self._next = self._now() + self._wait
        first, self.fault = not self.fault, why
        try:
            self.close()
        except BoardError:  # it is gone: nothing to be said that `why` does not say
            self._panel = None
        if first:
            self._told(why)


def _always() -> bool:
    return True


def _joined(one: Box, other: Box, band: int) -> Box | None:
    """One box around both, unless that sends much more than the two: a box costs its own address."""
    if other[1] // band > (one[3] - 1) // band + 1:
        return None
    box = (min(one[0], other[0]), one[1], max(one[2], other[2]), other[3])
    more = _area(box) - _area(one) - _area(other)
    return box if more <= JOIN * band else None


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])
