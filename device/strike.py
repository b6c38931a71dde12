"""Smooth letters at one size, drawn beforehand, for panels that are finer than the letters of `font.py`.
Owns the format of a strike and what stands in for a letter that it lacks; knows nothing of lines or pages.

File: `EXOFONT2`, then u8 height of a line, u8 ascent, u16 glyphs, little-endian; then the index, sorted:
u32 code point, u8 step to the next letter, i8 left and i8 top of the ink in the line, u8 width and u8 height
of it, u32 offset; then the ink, four bits a pixel, rows of whole bytes.

Invariant: every cluster has a glyph, and every glyph of a face fits its line."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from exo.core.base.errors import BoardError
from exo.device.font import FOLDER, Fonts
from PIL import Image, ImageChops

MAGIC = b"EXOFONT2"
_HEAD = struct.Struct("<8sBBH")
_ENTRY = struct.Struct("<IBbbBBI")


@dataclass(frozen=True)
class Ink:
    """A drawn cluster: a mask (mode "L", "1" in a sharp face), where it stands from the pen and from the
    top of the line, and the step to the next."""

    mask: Image.Image
    left: int
    top: int
    step: int


class Strike:
    """One file, mapped."""

    def __init__(self, path: Path) -> None:
        """Map `path`. Raises BoardError for a file that is missing or none of ours."""
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            magic, self.height, self.ascent, self.glyphs = _HEAD.unpack_from(self._map)
        except (OSError, ValueError, struct.error) as error:
            raise BoardError(
                f"open font {path}", str(error), "install the project again"
            ) from error
        if magic != MAGIC:
            raise BoardError(f"open font {path}", "it is no strike of ours", "install it again")
        self._ink = _HEAD.size + self.glyphs * _ENTRY.size

    def ink(self, code: int) -> Ink | None:
        """Return the glyph of a code point, None when the strike lacks it."""
        low, high = 0, self.glyphs
        while low < high:
            middle = (low + high) // 2
            found, step, left, top, width, height, offset = _ENTRY.unpack_from(
                self._map, _HEAD.size + middle * _ENTRY.size
            )
            if code < found:
                high = middle
            elif code > found:
                low = middle + 1
            else:
                stride = (width + 1) // 2
                start = self._ink + offset
                raw = self._map[start : start + stride * height]
                if not raw:
                    return Ink(Image.new("L", (1, 1)), 0, 0, step)
                mask = Image.frombytes("L", (width, height), raw, "raw", "L;4", stride)
                return Ink(mask, left, top, step)
        return None


class Face:
    """The letters of a page: a strike, and for what it lacks the bitmaps of `fonts`, made as large."""

    def __init__(
        self,
        name: str,
        fonts: Fonts,
        sharp: bool = False,
        line: int = 0,
        folder: Path = FOLDER,
    ) -> None:
        """`sharp` gives masks of mode "1", for panels without grey; `line` is the height of a line (0: the
        strike's own)."""
        self.strike = Strike(folder / f"{name}.font")
        self.fonts, self.sharp = fonts, sharp
        self.height = line or self.strike.height
        self._shift = (self.height - self.strike.height) // 2
        self.ink = lru_cache(maxsize=512)(self._ink)

    def measure(self, cluster: str) -> tuple[int, int]:
        """Step and height of one cluster: all lines of a face are as high."""
        return self.ink(cluster).step, self.height

    def _ink(self, cluster: str) -> Ink:
        ink = self._smooth(cluster) or self._coarse(cluster)
        if self.sharp:
            mask = ink.mask.point(lambda value: 255 if value > 110 else 0).convert("1")
            return Ink(mask, ink.left, ink.top + self._shift, ink.step)
        return Ink(ink.mask, ink.left, ink.top + self._shift, ink.step)

    def _smooth(self, cluster: str) -> Ink | None:
        """The letter with its marks laid over it, None when the strike lacks one of them."""
        base = self.strike.ink(ord(cluster[0]))
        marks = [self.strike.ink(ord(mark)) for mark in cluster[1:]]
        if base is None or None in marks:
            return None
        for mark in marks:
            assert mark is not None
            base = _over(base, mark)
        return base

    def _coarse(self, cluster: str) -> Ink:
        """A glyph of Unifont in the size of the face, its steps smoothed."""
        glyph = self.fonts.glyph(cluster)
        image = glyph.image.convert("L")
        strike = self.strike
        size = strike.ascent + (strike.height - strike.ascent) // 2  # of an ideograph
        scale = max(16, size * 15 // 16) / 16 if glyph.height >= 16 else size / 12
        if scale > 1.2:
            image = _doubled(image)
            image = image.resize(
                (round(scale * glyph.width), round(scale * glyph.height)),
                Image.Resampling.BOX if scale == 2 else Image.Resampling.BICUBIC,
            )
        return Ink(image, 0, max(0, (strike.height - image.height) // 2), image.width)


def _over(base: Ink, mark: Ink) -> Ink:
    """`mark` over the middle of `base`; above its capitals it would leave the line: it is moved down."""
    left = base.left + (base.mask.width - mark.mask.width) // 2
    box = (min(base.left, left), min(base.top, mark.top))
    size = (
        max(base.left + base.mask.width, left + mark.mask.width) - box[0],
        max(base.top + base.mask.height, mark.top + mark.mask.height) - box[1],
    )
    mask = Image.new("L", size)
    mask.paste(base.mask, (base.left - box[0], base.top - box[1]))
    over = Image.new("L", size)
    over.paste(mark.mask, (left - box[0], mark.top - box[1]))
    return Ink(ImageChops.lighter(mask, over), *box, base.step)


def _doubled(image: Image.Image) -> Image.Image:
    """Twice as large, the corners of slanted strokes filled: a pixel's quarter takes the colour of its two
    neighbours there when these agree and the opposite ones differ (the rule known as Scale2x)."""
    width, height = image.size
    wide = Image.new("L", (width + 2, height + 2))
    wide.paste(image, (1, 1))

    def moved(x: int, y: int) -> Image.Image:
        return wide.crop((1 + x, 1 + y, 1 + x + width, 1 + y + height))

    up, down, left, right = moved(0, -1), moved(0, 1), moved(-1, 0), moved(1, 0)
    result = Image.new("L", (2 * width, 2 * height))
    for x, y, a, b, c, d in (
        (0, 0, up, left, down, right),
        (1, 0, up, right, down, left),
        (0, 1, down, left, up, right),
        (1, 1, down, right, up, left),
    ):
        same = ImageChops.invert(ImageChops.difference(a, b))
        differ = ImageChops.darker(ImageChops.difference(a, d), ImageChops.difference(b, c))
        quarter = Image.composite(a, image, ImageChops.darker(same, differ))
        spread = quarter.resize((2 * width, 2 * height), Image.Resampling.NEAREST)
        result.paste(spread, (0, 0), _mask(x, y, width, height))
    return result


@lru_cache(maxsize=32)
def _mask(x: int, y: int, width: int, height: int) -> Image.Image:
    """Every second pixel of every second row, from (x, y) on."""
    mask = Image.new("L", (2 * width, 2 * height))
    for row in range(y, 2 * height, 2):
        for column in range(x, 2 * width, 2):
            mask.putpixel((column, row), 255)
    return mask
