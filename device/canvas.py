"""A mono canvas: text by our fonts, icons, boxes. Owns pixels; knows no page.

Invariant: `said` holds every text that was drawn, in order, so that a test can read the screen."""

from __future__ import annotations

from exo.device.font import Fonts
from exo.device.text import Line, clusters, elide
from PIL import Image, ImageDraw

# 7 x 7, read as a picture
ICONS = {
    "link": """.......
               ..###..
               .#...#.
               #..#..#
               ..#.#..
               .......
               ...#...""",
    "unlink": """#.....#
                 .#...#.
                 ..#.#..
                 ...#...
                 ..#.#..
                 .#...#.
                 #.....#""",
    "speaker": """...#..#
                  ..##.#.
                  ####.#.
                  ####.#.
                  ####.#.
                  ..##.#.
                  ...#..#""",
    "mute": """...#...
               ..##...
               ####.#.
               ####...
               ####.#.
               ..##...
               ...#...""",
    "microphone": """..###..
                     ..###..
                     #.###.#
                     #.###.#
                     .#...#.
                     ..###..
                     ...#...""",
    "bell": """...#...
               ..###..
               .#####.
               .#####.
               .#####.
               #######
               ...#...""",
    "lock": """..###..
               .#...#.
               .#...#.
               #######
               ###.###
               ###.###
               #######""",
    "clock": """..###..
                .#.#.#.
                #..#..#
                #..##.#
                #.....#
                .#...#.
                ..###..""",
    "add": """...#...
              ...#...
              ...#...
              #######
              ...#...
              ...#...
              ...#...""",
    "back": """...#...
               ..##...
               .#####.
               ..##..#
               ...#..#
               ......#
               ..####.""",
    "question": """.####..
                   #....#.
                   ....##.
                   ...##..
                   ...#...
                   .......
                   ...#...""",
    "marked": """......#
                 .....##
                 #...##.
                 ##.##..
                 .###...
                 ..#....
                 .......""",
    "charge": """....##.
                 ...##..
                 ..#####
                 .#####.
                 ..##...
                 .##....
                 ##.....""",
    "info": """..###..
               .#...#.
               #..#..#
               #.....#
               #..#..#
               .#.#.#.
               ..###..""",
    "warning": """...#...
                  ..#.#..
                  ..#.#..
                  .#.#.#.
                  .#...#.
                  #..#..#
                  #######""",
    "error": """..###..
                .#...#.
                #.#.#.#
                #..#..#
                #.#.#.#
                .#...#.
                ..###..""",
    "prompt": """##.....
                 .##....
                 ..##...
                 ...##..
                 ..##...
                 .##....
                 ##.....""",
    "think": """.......
                .......
                .......
                ##.##.#
                ##.##.#
                .......
                .......""",
}
_SEGMENTS = {  # seven segments: top, upper left, upper right, middle, lower left, lower right, bottom
    "0": "1110111",
    "1": "0010010",
    "2": "1011101",
    "3": "1011011",
    "4": "0111010",
    "5": "1101011",
    "6": "1101111",
    "7": "1010010",
    "8": "1111111",
    "9": "1111011",
}
DIGIT = (14, 25)  # pixels of a large digit


class Canvas:
    """A fresh black image of `size`. Coordinates are pixels from the upper left corner."""

    def __init__(self, size: tuple[int, int], fonts: Fonts) -> None:
        self.image = Image.new("1", size)
        self.fonts = fonts
        self.draw = ImageDraw.Draw(self.image)
        self.said: list[str] = []

    @property
    def width(self) -> int:
        return self.image.width

    @property
    def height(self) -> int:
        return self.image.height

    def measure(self, cluster: str) -> tuple[int, int]:
        """Width and height of one cluster."""
        glyph = self.fonts.glyph(cluster)
        return glyph.width, glyph.height

    def length(self, text: str) -> int:
        return sum(self.measure(cluster)[0] for cluster in clusters(text))

    def line(self, x: int, y: int, line: Line, *, say: bool = True) -> None:
        """Draw a laid-out line; all its letters stand on one base line."""
        ascent = max((self.fonts.glyph(c).ascent for c in line.clusters), default=0)
        for cluster in line.clusters:
            glyph = self.fonts.glyph(cluster)
            # a mask adds ink alone: neighbours that reach over are not wiped out
            self.image.paste(1, (x, y + ascent - glyph.ascent), glyph.image)
            x += glyph.width
        if say and line.clusters:
            self.said.append(str(line))

    def text(self, x: int, y: int, text: str, *, room: int | None = None, align: str = "l") -> int:
        """Draw one line cut to `room` pixels; `align` l, c or r within the room. Returns its width.
        Glyphs higher than a status line are moved up so that they stay on the base line."""
        room = self.width - x if room is None else room
        shown = elide(text, room, self.measure)
        marks = tuple(clusters(shown))
        width = sum(self.measure(cluster)[0] for cluster in marks)
        shift = {"l": 0, "c": (room - width) // 2, "r": room - width}[align]
        ascent = max((self.fonts.glyph(c).ascent for c in marks), default=8)
        self.line(x + max(shift, 0), y + 8 - ascent, Line(marks, width, 10))
        return width

    def icon(self, x: int, y: int, name: str) -> None:
        for row, bits in enumerate(ICONS[name].split()):
            for column, bit in enumerate(bits):
                if bit == "#":
                    self.image.putpixel((x + column, y + row), 1)

    def invert(self, box: tuple[int, int, int, int]) -> None:
        """Swap black and white in `box` (right and lower edge excluded)."""
        part = self.image.crop(box).point(lambda value: 0 if value else 255)
        self.image.paste(part, box[:2])

    def digits(self, y: int, text: str) -> None:
        """Draw large digits and colons, centred."""
        steps = [DIGIT[0] if char.isdigit() else 4 for char in text]
        x = (self.width - sum(steps) - 4 * (len(steps) - 1)) // 2
        for char, step in zip(text, steps, strict=True):
            if char.isdigit():
                self._digit(x, y, char)
            else:
                for dot in (7, 16):
                    self.draw.rectangle((x, y + dot, x + 2, y + dot + 2), fill=1)
            x += step + 4
        self.said.append(text)

    def _digit(self, x: int, y: int, char: str) -> None:
        w, h = DIGIT
        middle = h // 2
        shapes = (
            ((2, 0), (w - 3, 0), (w - 4, 1), (3, 1), (4, 2), (w - 5, 2)),
            ((0, 2), (0, middle - 1), (1, middle - 2), (1, 3), (2, 4), (2, middle - 3)),
            ((w - 1, 2), (w - 1, middle - 1), (w - 2, middle - 2), (w - 2, 3), (w - 3, 4), (w - 3, middle - 3)),
            ((3, middle - 1), (w - 4, middle - 1), (w - 3, middle), (2, middle), (3, middle + 1), (w - 4, middle + 1)),
            ((0, middle + 1), (0, h - 3), (1, h - 4), (1, middle + 2), (2, middle + 3), (2, h - 5)),
            ((w - 1, middle + 1), (w - 1, h - 3), (w - 2, h - 4), (w - 2, middle + 2), (w - 3, middle + 3), (w - 3, h - 5)),
            ((2, h - 1), (w - 3, h - 1), (w - 4, h - 2), (3, h - 2), (4, h - 3), (w - 5, h - 3)),
        )  # fmt: skip
        for on, shape in zip(_SEGMENTS[char], shapes, strict=True):
            if on == "1":
                for start, end in zip(shape[::2], shape[1::2], strict=True):
                    self.draw.line((x + start[0], y + start[1], x + end[0], y + end[1]), fill=1)
