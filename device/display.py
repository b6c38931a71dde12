"""Puts pages on the panel. Owns what is seen now; a frame that did not change is not sent again, and of
one that did only the changed part is named. A panel that fails is tried again at the next change or
second; everything else goes on without it."""

from __future__ import annotations

import sys

from exo.board.screen import Screen
from exo.core.base.errors import BoardError
from exo.device.pages import Drawn, Pages, View
from PIL import ImageChops


class Display:
    """The panel and the page that it shows."""

    def __init__(self, screen: Screen, pages: Pages) -> None:
        self.screen, self._pages = screen, pages
        self._view: View | None = None
        self.shown: Drawn | None = None
        self.fault = ""  # why the panel fails, empty while it works

    def show(self, view: View) -> None:
        """Show a page unless it is on the panel already."""
        if view == self._view and not self.fault:
            return
        self._view = view
        drawn = self._pages.draw(view)
        before, self.shown = self.shown, drawn
        box = None
        if before is not None:
            box = ImageChops.logical_xor(before.image, drawn.image).getbbox()
            if box is None and not self.fault:
                return
        try:
            image = drawn.image
            if image.mode != self.screen.mode:
                image = image.convert(self.screen.mode)
            self.screen.show(image, None if self.fault else box)
            self.fault = ""
        except BoardError as error:
            if not self.fault:
                print(f"exo-device: {error}", file=sys.stderr)
            self.fault = str(error)
