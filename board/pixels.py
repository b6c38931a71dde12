"""Pixels as controllers want them: pages of vertical bytes, 16-bit colours, turned boxes. Pure functions
of Pillow images, without numpy."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exo.board.screen import Box
    from PIL.Image import Image

PAGE = 8  # rows of a page


def whole_pages(box: Box) -> Box:
    """Extend `box` to whole pages."""
    left, upper, right, lower = box
    return left, upper // PAGE * PAGE, right, -(-lower // PAGE) * PAGE


def page(image: Image, number: int, left: int, right: int) -> bytes:
    """Return a byte for each column from `left` to `right` of page `number`; bit 0 is the top row."""
    from PIL.Image import Transpose

    part = image.crop((left, PAGE * number, right, PAGE * (number + 1)))
    return part.transpose(Transpose.ROTATE_270).tobytes()


def rgb565(image: Image) -> bytes:
    """Return an RGB image as 5 bits of red, 6 of green, 5 of blue, two bytes a pixel, high byte first."""
    from PIL import Image as images
    from PIL import ImageChops

    red, green, blue = image.split()
    high = ImageChops.add(red.point(_table("red")), green.point(_table("green high")))
    low = ImageChops.add(green.point(_table("green low")), blue.point(_table("blue")))
    return images.merge("LA", (high, low)).tobytes()


@lru_cache
def _table(part: str) -> list[int]:
    bits = {
        "red": lambda value: value & 0xF8,
        "green high": lambda value: value >> 5,
        "green low": lambda value: (value & 0x1C) << 3,
        "blue": lambda value: value >> 3,
    }[part]
    return [bits(value) for value in range(256)]
