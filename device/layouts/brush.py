"""Draws text, icons and boxes in colour or in black on white. Owns pixels; knows no page.

Invariant: `said` holds every text that was drawn, in order, so that a script can read the screen."""

from __future__ import annotations

from functools import lru_cache

from exo.device.layouts.icons import icon
from exo.device.strike import Face
from exo.device.text import Line, clusters, elide
from PIL import Image, ImageDraw

Colour = tuple[int, int, int] | int  # an int in mode "1": 0 black, 255 white
Rect = tuple[int, int, int, int]  # left, upper, right, lower; right and lower edge excluded
_FINE = 4


class Brush:
    """A fresh image of `size` in mode "RGB" or "1". Coordinates are pixels from the upper left corner."""

    def __init__(self, size: tuple[int, int], mode: str, ground: Colour) -> None:
        self.image = Image.new(mode, size, ground)
        self.draw = ImageDraw.Draw(self.image)
        self.sharp = mode == "1"
        self.said: list[str] = []

    def line(self, x: int, y: int, line: Line, face: Face, colour: Colour) -> None:
        """Draw a laid-out line; `y` is the top of its row."""
        for cluster in line.clusters:
            ink = face.ink(cluster)
            self.image.paste(colour, (x + ink.left, y + ink.top), ink.mask)
            x += ink.step
        if line.clusters:
            self.said.append(str(line))

    def text(
        self,
        x: int,
        y: int,
        text: str,
        face: Face,
        colour: Colour,
        room: int,
        align: str = "l",
    ) -> int:
        """Draw one line cut to `room` pixels; `align` l, c or r within them. Returns its width."""
        marks = tuple(clusters(elide(text, max(room, 1), face.measure)))
        width = sum(face.measure(cluster)[0] for cluster in marks)
        shift = {"l": 0, "c": (room - width) // 2, "r": room - width}[align]
        self.line(x + max(shift, 0), y, Line(marks, width, face.height), face, colour)
        return width

    def icon(self, x: int, y: int, name: str, size: int, colour: Colour) -> None:
        self.image.paste(colour, (x, y), icon(name, size, self.sharp))

    def box(self, rect: Rect, colour: Colour, radius: int = 0) -> None:
        """A filled box with round corners."""
        width, height = rect[2] - rect[0], rect[3] - rect[1]
        if width > 0 and height > 0:
            self.image.paste(colour, rect[:2], _rounded(width, height, radius, 0, self.sharp))

    def frame(self, rect: Rect, colour: Colour, radius: int = 0, width: int = 2) -> None:
        """The outline of a box, drawn inside it."""
        size = (rect[2] - rect[0], rect[3] - rect[1])
        self.image.paste(colour, rect[:2], _rounded(*size, radius, width, self.sharp))

    def uncover(self, rect: Rect, image: Image.Image, radius: int, part: float) -> None:
        """Show the left `part` (0 to 1) of a box with round corners of `image`, of the same size as this."""
        width = round((rect[2] - rect[0]) * min(max(part, 0.0), 1.0))
        if width > 0:
            mask = _rounded(rect[2] - rect[0], rect[3] - rect[1], radius, 0, self.sharp)
            front = image.crop((rect[0], rect[1], rect[0] + width, rect[3]))
            self.image.paste(front, rect[:2], mask.crop((0, 0, *front.size)))


@lru_cache(maxsize=64)
def _rounded(width: int, height: int, radius: int, line: int, sharp: bool) -> Image.Image:
    """The mask of a box: only its corners are drawn finer than pixels and reduced. `line`: of its outline."""
    radius = min(radius, width // 2, height // 2)
    image = Image.new("L", (width, height), 0 if line else 255)
    if line:
        draw = ImageDraw.Draw(image)
        for inset in range(line):
            draw.rectangle((inset, inset, width - 1 - inset, height - 1 - inset), outline=255)
    if radius:
        fine, thick = radius * _FINE, line * _FINE
        corner = Image.new("L", (2 * fine, 2 * fine))
        draw = ImageDraw.Draw(corner)
        edge = (0, 0, 2 * fine - 1, 2 * fine - 1)
        if line:
            draw.ellipse(edge, outline=255, width=thick)
        else:
            draw.ellipse(edge, fill=255)
        corner = corner.reduce(_FINE)
        for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
            part = corner.crop((x * radius, y * radius, (x + 1) * radius, (y + 1) * radius))
            image.paste(part, (x * (width - radius), y * (height - radius)))
    return image.point(lambda value: 255 if value > 110 else 0).convert("1") if sharp else image
