"""Icons of the finer panels, as shapes on a grid of 24 by 24. Owns the table and how a shape becomes a mask.

Invariant: every name that a page may give has an icon: an unknown one is a dot."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw

GRID, FINE = 24, 4  # units an icon, pixels of the drawing for each of the mask
Shape = tuple[Any, ...]
# disc x y r | ring x y r w | box x0 y0 x1 y1 r | line w x y x y ... | poly x y x y ... | arc x y r from to w;
# a name with - before it takes away. Angles in degrees, clockwise from the right.
SHAPES: dict[str, tuple[Shape, ...]] = {
    "microphone": (
        ("box", 8, 1, 16, 15, 4),
        ("arc", 12, 11, 8, 0, 180, 2.4),
        ("line", 2.4, 12, 19, 12, 22),
        ("line", 2.4, 8, 22.2, 16, 22.2),
    ),
    "speaker": (
        ("poly", 2, 9, 6, 9, 12, 3, 12, 21, 6, 15, 2, 15),
        ("arc", 12, 12, 5, -55, 55, 2.2),
        ("arc", 12, 12, 9.5, -55, 55, 2.2),
    ),
    "mute": (
        ("poly", 2, 9, 6, 9, 12, 3, 12, 21, 6, 15, 2, 15),
        ("line", 2.4, 15, 8.5, 22, 15.5),
        ("line", 2.4, 22, 8.5, 15, 15.5),
    ),
    "link": (
        ("arc", 12, 19, 15, -137, -43, 2.6),
        ("arc", 12, 19, 9, -137, -43, 2.6),
        ("disc", 12, 18.5, 2.6),
    ),
    "unlink": (
        ("arc", 12, 19, 15, -137, -43, 2.6),
        ("arc", 12, 19, 9, -137, -43, 2.6),
        ("disc", 12, 18.5, 2.6),
        ("-line", 6, 3, 21, 21, 3),
        ("line", 2.6, 4, 21, 20, 4),
    ),
    "bell": (
        ("disc", 12, 3, 2),
        ("poly", 6, 10, 8, 5, 12, 3, 16, 5, 18, 10, 18, 15, 21, 18.5, 3, 18.5, 6, 15),
        ("disc", 12, 20.4, 2.4),
    ),
    "info": (
        ("ring", 12, 12, 11, 2.4),
        ("disc", 12, 7.2, 1.7),
        ("line", 3, 12, 11.5, 12, 17),
    ),
    "question": (
        ("ring", 12, 12, 11, 2.4),
        ("arc", 12, 9.4, 4, -180, 70, 2.6),
        ("line", 2.6, 12.4, 12.8, 12, 14.4),
        ("disc", 12, 18, 1.6),
    ),
    "warning": (
        ("poly", 12, 1.5, 23.5, 22, 0.5, 22),
        ("-line", 2.8, 12, 9, 12, 14.8),
        ("-disc", 12, 18.6, 1.7),
    ),
    "error": (
        ("poly", 7.4, 1, 16.6, 1, 23, 7.4, 23, 16.6, 16.6, 23, 7.4, 23, 1, 16.6, 1, 7.4),
        ("-line", 2.8, 8, 8, 16, 16),
        ("-line", 2.8, 16, 8, 8, 16),
    ),
    "prompt": (("line", 3.4, 8, 4, 16, 12, 8, 20),),
    "back": (("line", 3.4, 16, 4, 8, 12, 16, 20),),
    "up": (("line", 3.4, 4, 16, 12, 8, 20, 16),),
    "down": (("line", 3.4, 4, 8, 12, 16, 20, 8),),
    "think": (("disc", 4, 12, 3), ("disc", 12, 12, 3), ("disc", 20, 12, 3)),
    "check": (("line", 3.4, 3.5, 13, 9.5, 19, 20.5, 6),),
    "add": (("line", 3.4, 12, 4, 12, 20), ("line", 3.4, 4, 12, 20, 12)),
    "cross": (("line", 3.4, 5, 5, 19, 19), ("line", 3.4, 19, 5, 5, 19)),
    "clock": (("ring", 12, 12, 11, 2.4), ("line", 2.4, 12, 5.5, 12, 12, 16.5, 15)),
    "lock": (("arc", 12, 9, 6, 180, 360, 2.6), ("box", 3.5, 10, 20.5, 22.5, 3), ("-disc", 12, 16, 2.4)),
    "bolt": (("poly", 14, 1, 4, 14, 11, 14, 9, 23, 20, 9, 13, 9),),
    "chat": (("box", 1, 3, 23, 17, 4), ("poly", 5, 15, 5, 22.5, 13, 16)),
    "search": (("ring", 10, 10, 8.5, 2.6), ("line", 3.2, 16.4, 16.4, 21.8, 21.8)),
    "book": (
        ("box", 1, 4, 11, 20, 2),
        ("box", 13, 4, 23, 20, 2),
        ("-line", 1.8, 4, 9, 8, 9),
        ("-line", 1.8, 4, 13, 8, 13),
        ("-line", 1.8, 16, 9, 20, 9),
        ("-line", 1.8, 16, 13, 20, 13),
    ),
    "gear": (
        ("line", 4.6, 12, 2.6, 12, 21.4),
        ("line", 4.6, 3.9, 7.3, 20.1, 16.7),
        ("line", 4.6, 3.9, 16.7, 20.1, 7.3),
        ("disc", 12, 12, 7.6),
        ("-disc", 12, 12, 3.4),
    ),
    "power": (("arc", 12, 13, 9, -55, 235, 2.8), ("line", 2.8, 12, 2, 12, 11)),
    "trash": (
        ("line", 2.4, 3, 6, 21, 6),
        ("line", 2.4, 9, 2.6, 15, 2.6),
        ("poly", 5, 9, 19, 9, 17.6, 22.5, 6.4, 22.5),
        ("-line", 1.8, 10, 12, 10, 19),
        ("-line", 1.8, 14, 12, 14, 19),
    ),
    "sun": (
        ("disc", 12, 12, 5),
        *(
            ("line", 2.2, *(12 + r * f(a * math.pi / 4) for r in (8.6, 10.6) for f in (math.cos, math.sin)))
            for a in range(8)
        ),
    ),
    "text": (("line", 3, 4, 20, 10, 4, 16, 20), ("line", 3, 6.5, 14, 13.5, 14), ("line", 2, 19, 20, 22, 20)),
    "globe": (
        ("ring", 12, 12, 11, 2.2),
        ("line", 2, 1, 12, 23, 12),
        ("arc", 20, 12, 13, 125, 235, 2),
        ("arc", 4, 12, 13, -55, 55, 2),
    ),
    "disk": (("box", 2, 3, 22, 21, 3), ("-box", 6, 3, 17, 9, 1), ("-box", 6, 13, 18, 21, 1)),
    "import": (("line", 3, 12, 2, 12, 14, 6.5, 9), ("line", 3, 12, 14, 17.5, 9), ("line", 3, 3, 16, 3, 21.5, 21, 21.5, 21, 16)),
    "dot": (("disc", 12, 12, 4),),
    "star": (
        (
            "poly",
            *(
                12 + r * f(math.radians(36 * k - 90))
                for k, r in enumerate((11.5, 4.8) * 5)
                for f in (math.cos, math.sin)
            ),
        ),
    ),
}  # fmt: skip
ALIASES = {
    "timer": "bell",
    "reminder": "bell",
    "settings": "gear",
    "sessions": "chat",
    "ok": "check",
}


@lru_cache(maxsize=128)
def icon(name: str, size: int, sharp: bool = False) -> Image.Image:
    """Return the mask of an icon, `size` pixels square: mode "L", or "1" when it is to be sharp."""
    unit = size * FINE / GRID
    image = Image.new("L", (size * FINE, size * FINE))
    draw = ImageDraw.Draw(image)
    for shape in SHAPES.get(ALIASES.get(name, name), SHAPES["dot"]):
        _draw(draw, shape, unit)
    image = image.reduce(FINE)
    return image.point(lambda value: 255 if value > 110 else 0).convert("1") if sharp else image


def _draw(draw: ImageDraw.ImageDraw, shape: Shape, unit: float) -> None:
    name, numbers = shape[0], [unit * number for number in shape[1:]]
    fill = 0 if name.startswith("-") else 255
    match name.lstrip("-"):
        case "disc":
            _disc(draw, numbers[0], numbers[1], numbers[2], fill)
        case "ring":
            x, y, r, w = numbers
            draw.ellipse((x - r, y - r, x + r, y + r), outline=fill, width=round(w))
        case "box":
            draw.rounded_rectangle(tuple(numbers[:4]), numbers[4], fill)
        case "poly":
            draw.polygon(numbers, fill)
        case "line":
            width, points = numbers[0], list(zip(numbers[1::2], numbers[2::2], strict=True))
            draw.line(points, fill, round(width))
            for x, y in points:
                _disc(draw, x, y, width / 2, fill)
        case "arc":
            x, y, r = numbers[:3]
            draw.arc((x - r, y - r, x + r, y + r), shape[4], shape[5], fill, round(numbers[5]))


def _disc(draw: ImageDraw.ImageDraw, x: float, y: float, r: float, fill: int) -> None:
    draw.ellipse((x - r, y - r, x + r, y + r), fill)
