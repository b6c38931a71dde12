"""QR codes as pictures for a small screen: dark squares on a lit ground, as large as fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exo.core.base.errors import BoardError

if TYPE_CHECKING:
    from PIL.Image import Image

QUIET = 2  # light squares around it: the standard asks for four, cameras take two


def picture(text: str, size: tuple[int, int]) -> Image:
    """A picture of `size` in mode "1" with the code in its middle. Raises BoardError when it does not fit."""
    import segno
    from PIL import Image

    rows = [
        bytes(row) for row in segno.make(text, error="l", boost_error=False, micro=False).matrix
    ]
    modules = len(rows)
    scale = min(size) // (modules + 2 * QUIET)
    if scale == 0 or scale == 1 and min(size) // modules > 1:
        scale = (min(size) - 2 * QUIET) // modules  # a narrower border, larger squares
    if scale < 1:
        raise BoardError("draw a QR code", f"{modules} squares do not fit {size}", "show the text")
    image = Image.new("1", size, 1)
    left, top = ((each - modules * scale) // 2 for each in size)
    for y, row in enumerate(rows):
        for x, dark in enumerate(row):
            if dark:
                place = (left + x * scale, top + y * scale)
                image.paste(0, (*place, place[0] + scale, place[1] + scale))
    return image


def as_text(text: str) -> str:
    """The same for a terminal: two rows a line, light on dark."""
    import segno

    rows = [bytes(row) for row in segno.make(text, error="l", micro=False).matrix_iter(border=2)]
    rows += [bytes([0]) * len(rows[0])] * (len(rows) % 2)
    signs = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return "\n".join("".join(signs[both] for both in zip(*pair, strict=True)) for pair in pairs)
