"""Bitmap fonts in a file of our own, read through mmap so that a board pays for the glyphs that it
shows alone. Owns the format and the choice of font for a cluster; knows nothing of lines or pages.

File: `EXOFONT1`, then u8 height, u8 ascent, u16 runs, u32 glyphs, little-endian; then the runs, sorted:
u32 first code point, u16 count, u16 width in pixels, u32 offset of their bitmaps; then the bitmaps,
each `height` rows of whole bytes, most significant bit left.

Invariant: every cluster has a glyph; what no font knows is a box as wide as a letter or an ideograph.
"""

from __future__ import annotations

import mmap
import struct
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from exo.core.base.errors import BoardError
from PIL import Image, ImageChops

MAGIC = b"EXOFONT1"
_HEAD = struct.Struct("<8sBBHI")
_RUN = struct.Struct("<IHHI")
FOLDER = Path(__file__).parent / "fonts"


class FontFile:
    """One font file. `bitmap` is a binary search in the map and a slice of it."""

    def __init__(self, path: Path) -> None:
        """Map `path`. Raises BoardError for a file that is missing or none of ours."""
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            magic, self.height, self.ascent, self._runs, self.glyphs = _HEAD.unpack_from(self._map)
        except (OSError, ValueError, struct.error) as error:
            raise BoardError(
                f"open font {path}", str(error), "install the project again"
            ) from error
        if magic != MAGIC:
            raise BoardError(f"open font {path}", "it is no font of ours", "install it again")
        self._bitmaps = _HEAD.size + self._runs * _RUN.size

    def bitmap(self, code: int) -> tuple[int, bytes] | None:
        """Return (width, rows) of a code point, None when the font lacks it."""
        low, high = 0, self._runs
        while low < high:
            middle = (low + high) // 2
            first, count, width, offset = _RUN.unpack_from(
                self._map, _HEAD.size + middle * _RUN.size
            )
            if code < first:
                high = middle
            elif code >= first + count:
                low = middle + 1
            else:
                size = self.height * ((width + 7) // 8)
                start = self._bitmaps + offset + (code - first) * size
                return width, self._map[start : start + size]
        return None


@dataclass(frozen=True)
class Glyph:
    """A drawn cluster: a mono image whose row `ascent` stands on the line."""

    image: Image.Image
    ascent: int

    @property
    def width(self) -> int:
        return self.image.width

    @property
    def height(self) -> int:
        return self.image.height


class Fonts:
    """The small font where it has the letter, else the wide one, else a box. `large` letters are those of
    the wide one, 8 x 16."""

    def __init__(self, folder: Path = FOLDER, large: bool = False) -> None:
        self.small = FontFile(folder / "small.font")
        self.wide = FontFile(folder / "wide.font")
        self._order = (self.wide, self.small) if large else (self.small, self.wide)
        self.missing: set[str] = set()  # clusters that were shown as a box
        self.glyph = lru_cache(maxsize=1024)(self._glyph)

    def _glyph(self, cluster: str) -> Glyph:
        base, marks = cluster[0], cluster[1:]
        for font in self._order:
            glyph = _compose(font, base, marks)
            if glyph:
                return glyph
        first, second = self._order
        bare = _compose(first, base, "") or _compose(second, base, "")
        if bare:
            return bare  # a mark that no font has is left out: the letter still reads
        self.missing.add(cluster)
        return _box(unicodedata.east_asian_width(base) in "WF")


def _compose(font: FontFile, base: str, marks: str) -> Glyph | None:
    """The base with its marks laid over it, None when the font lacks one of them."""
    found = font.bitmap(ord(base))
    if found is None:
        return None
    image = _image(font, *found)
    for mark in marks:
        over = font.bitmap(ord(mark))
        if over is None:
            return None
        layer = Image.new("1", image.size)
        layer.paste(_image(font, *over), ((image.width - over[0]) // 2, 0))
        image = ImageChops.logical_or(image, layer)
    return Glyph(image, font.ascent)


def _image(font: FontFile, width: int, rows: bytes) -> Image.Image:
    return Image.frombytes("1", (width, font.height), rows)


def _box(wide: bool) -> Glyph:
    """The visible replacement: an empty box."""
    width, height = (12, 12) if wide else (6, 10)
    image = Image.new("1", (width, height))
    for x in range(width - 1):
        for y in range(1, height - 2):
            if x in (0, width - 2) or y in (1, height - 3):
                image.putpixel((x, y), 1)
    return Glyph(image, height - 2)
