"""Puts pages on the panel. Owns how a coarse mono page fits a panel that is finer or coloured: by whole numbers,
in the middle, so that every dot stays a square; other layouts draw the panel's own pixels. What is sent, and
a panel that fails, are `Steady`'s matter."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from exo.board.screen import Screen
from exo.board.steady import Steady
from exo.device.layouts import Layout
from exo.device.pages import Drawn, Pages, View
from PIL import Image

LEAST = (120, 60)  # dots that a page needs


def scale(size: tuple[int, int]) -> int:
    """How many pixels of a panel of `size`, across and down, are one dot of a page: 1 or more."""
    return max(1, min(size[0] // LEAST[0], size[1] // LEAST[1]))


def dots(size: tuple[int, int], paper: bool = False) -> tuple[int, int]:
    """The size in dots of the pages for a panel of `size` pixels. Paper is read nearby: as fine as it is."""
    factor = 1 if paper else scale(size)
    return size[0] // factor, size[1] // factor


def fit(page: Image.Image, size: tuple[int, int], mode: str, paper: bool = False) -> Image.Image:
    """Return `page`, mode "1", as large as it goes on a panel; dark on white when it is paper."""
    factor = max(1, min(size[0] // page.width, size[1] // page.height))
    if paper:
        # not ImageChops.invert: a dot that was put as 1 would stay white
        page = page.point(lambda value: 0 if value else 255)
    if factor > 1:
        page = page.resize((factor * page.width, factor * page.height), Image.Resampling.NEAREST)
    page = page.convert(mode)
    if page.size == size:
        return page
    whole = Image.new(mode, size, "white" if paper else "black")
    whole.paste(page, ((size[0] - page.width) // 2, (size[1] - page.height) // 2))
    return whole


def unfit(image: Image.Image, paper: bool = False) -> Image.Image:
    """Return what `fit` was given: the dots of a panel's picture, mode "1"; for a terminal and for tests."""
    width, height = dots(image.size, paper)
    factor = max(1, min(image.width // width, image.height // height))
    x, y = (image.width - factor * width) // 2, (image.height - factor * height) // 2
    page = image.crop((x, y, x + factor * width, y + factor * height)).convert("L")
    page = page.resize((width, height), Image.Resampling.NEAREST)
    return page.point(lambda value: 255 * ((value > 127) != paper)).convert("1")


class Display:
    """The panel and the page that it shows."""

    def __init__(
        self, screen: Screen, pages: Layout, now: Callable[[], float] = time.monotonic
    ) -> None:
        steady = screen if isinstance(screen, Steady) else Steady.around(screen, tell, now)
        self.screen = steady
        self._pages = pages
        self._view: View | None = None
        self.shown: Drawn | None = None
        self.mirror: Callable[[Image.Image], None] = lambda image: None  # who else looks

    @property
    def fault(self) -> str:
        """Why the panel fails, empty while it works."""
        return self.screen.fault

    def show(self, view: View) -> None:
        """Show a page unless it is on the panel already."""
        if view == self._view:
            self.screen.settle()
            return
        self._view = view
        self.shown = self._pages.draw(view)
        image, screen = self.shown.image, self.screen
        if isinstance(self._pages, Pages):
            image = fit(image, screen.size, screen.mode, screen.paper)
        screen.show(image)
        self.mirror(image)


def tell(fault: str) -> None:
    """Say on stderr that the panel fails, once a fault."""
    if fault:
        print(f"exo-device: {fault}", file=sys.stderr)
