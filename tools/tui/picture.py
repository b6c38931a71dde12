"""The device's screen in letters: eight dots a character (Unicode, Braille patterns). Owns how a picture is made
small enough; knows no terminal."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

MOST = 2_000_000  # bytes of a picture
# the bit of a dot by its row and column (Unicode 16, 2800-28FF)
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def draw(data: dict[str, Any], columns: int) -> list[str]:
    """Lines of at most `columns` characters for the `data` of a `ui.panel` of kind screen; what is no picture
    is none."""
    try:
        width, height = int(data["width"]), int(data["height"])
        packed = base64.b64decode(data["bits"], validate=True)
        bits = zlib.decompressobj().decompress(packed, MOST)
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error):
        return []
    stride = (width + 7) // 8
    if not (0 < width <= 2000 and 0 < height <= 2000) or len(bits) < stride * height or columns < 1:
        return []
    factor = -(-width // (2 * columns))
    wide, high = width // factor, height // factor

    def dot(x: int, y: int) -> bool:
        if x >= wide or y >= high:
            return False
        lit = sum(
            bits[row * stride + (column >> 3)] >> (7 - (column & 7)) & 1
            for row in range(y * factor, (y + 1) * factor)
            for column in range(x * factor, (x + 1) * factor)
        )
        return 2 * lit >= factor * factor

    lines = []
    for top in range(0, high, 4):
        line = ""
        for left in range(0, wide, 2):
            mask = 0
            for y, row in enumerate(_BITS):
                for x, bit in enumerate(row):
                    mask |= bit if dot(left + x, top + y) else 0
            line += chr(0x2800 + mask)
        lines.append(line)
    return lines
