"""What the layouts of finer panels share: faces, measures and colours, where text runs, and the parts that
pages are put together from. Owns no page.

Invariant: nothing is drawn outside `Measures.inner`, so that round corners of a glass hide nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from exo.device.layouts.brush import Brush, Colour, Rect
from exo.device.locale import Texts
from exo.device.pages import Drawn, View
from exo.device.strike import Face
from exo.device.text import Line, clusters, wrap


class Layout(Protocol):
    """Draws views for one panel. `room` is what running text has, in pixels; `lay_out` gives its lines;
    `last` the number of the first line of the last screenful on a page of that kind; `fixed` names the
    settings of the screen that change nothing here."""

    texts: Texts

    @property
    def fixed(self) -> tuple[str, ...]: ...

    @property
    def room(self) -> tuple[int, int]: ...
    def lay_out(self, text: str) -> tuple[Line, ...]: ...
    def last(self, lines: tuple[Line, ...], page: str = "reply") -> int: ...
    def draw(self, view: View) -> Drawn: ...


@dataclass(frozen=True)
class Measures:
    """Pixels: `inner` is what pages may use; `status` the height of the status line; `gap` between parts;
    `bar` the width that the position bar takes at the right, air included; `radius` of boxes; `pad` the air of a choice above and below, `sign` what it needs beside its word."""

    inner: Rect
    status: int
    gap: int
    bar: int
    radius: int
    pad: int
    sign: int


@dataclass(frozen=True)
class Palette:
    """Colours by what they mean. `on` is what is drawn upon any of the bright ones."""

    ground: Colour
    surface: Colour  # of boxes that hold something
    edge: Colour  # rules and outlines
    ink: Colour
    dim: Colour  # what is read second
    on: Colour
    accent: Colour  # what is chosen
    listening: Colour
    thinking: Colour
    info: Colour
    warning: Colour
    error: Colour

    def level(self, level: str) -> Colour:
        return {
            "warning": self.warning,
            "risk": self.warning,
            "error": self.error,
            "timer": self.accent,
        }.get(level, self.info)


# the icon that stands beside the colour of each level
LEVELS = {
    "info": "info",
    "warning": "warning",
    "error": "error",
    "timer": "bell",
    "risk": "warning",
    "question": "question",
}


@dataclass(frozen=True)
class Faces:
    """`body` is read; `title`, `strong` and `note` are a title, a choice, and what is read second; `big` is for
    two choices that stand below each other, `small` for what would else be cut; `clock` has digits alone."""

    body: Face
    strong: Face
    big: Face
    title: Face
    note: Face
    small: Face
    clock: Face


class Sheet:
    """A layout: `draw` calls the method of the page's kind. Subclasses own the pages."""

    fixed: tuple[str, ...] = ()

    def __init__(
        self,
        size: tuple[int, int],
        mode: str,
        measures: Measures,
        palette: Palette,
        faces: Faces,
        texts: Texts,
    ) -> None:
        self.size, self.mode = size, mode
        self.m, self.c, self.f, self.texts = measures, palette, faces, texts
        self.lay_out = lru_cache(maxsize=8)(self._lay_out)
        # what the text of the card drawn last had, for `last`: its choices take the rest
        self._card_room = 2 * faces.body.height

    @property
    def left(self) -> int:
        return self.m.inner[0]

    @property
    def right(self) -> int:
        return self.m.inner[2]

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def top(self) -> int:
        """The first row under the status line."""
        return self.m.inner[1] + self.m.status

    @property
    def lower(self) -> int:
        return self.m.inner[3]

    @property
    def room(self) -> tuple[int, int]:
        return self.width - self.m.bar, self.lower - self.top

    def _lay_out(self, text: str) -> tuple[Line, ...]:
        return self.wrapped(text, self.room[0])

    def wrapped(
        self, text: str, width: int, face: Face | None = None, most: int = 0
    ) -> tuple[Line, ...]:
        """The lines of `text`; of more than `most` (0: any number) the last ends with an ellipsis."""
        face = face or self.f.body
        lines = wrap(text[:4000] if most else text, width, face.measure, face.height // 2)
        # the rule of air for coarse letters is not needed here: a line of ours has its own
        lines = [
            Line(line.clusters, line.width, face.height) if line.clusters else line
            for line in lines
        ]
        if most and len(lines) > most:
            lines = lines[:most]
            marks = list(lines[-1].clusters)
            step = face.measure("…")[0]
            while marks and sum(face.measure(mark)[0] for mark in marks) + step > width:
                marks.pop()
            while marks and marks[-1] == " ":
                marks.pop()
            marks.append("…")
            lines[-1] = Line(tuple(marks), sum(face.measure(m)[0] for m in marks), face.height)
        return tuple(lines)

    def last(self, lines: tuple[Line, ...], page: str = "reply") -> int:
        return last(lines, self._card_room if page == "card" else self.room[1])

    def draw(self, view: View) -> Drawn:
        brush = Brush(self.size, self.mode, self.c.ground)
        getattr(self, f"_{view.page}")(brush, view)
        return Drawn(brush.image, "\n".join(brush.said))

    def _off(self, brush: Brush, view: View) -> None:
        """Nothing: a dark panel, or bare paper."""

    # parts

    def running(
        self, brush: Brush, lines: tuple[Line, ...], scroll: int, rect: Rect, centred: bool = False
    ) -> None:
        """Running text in `rect`: the lines that are wholly in sight, and a position bar at the right when
        there are more. `centred` counts only where all of them fit."""
        total, room = sum(line.height for line in lines), rect[3] - rect[1]
        if total > room:
            y = rect[1] - scroll
            for line in lines:
                if y >= rect[1] and y + line.height <= rect[3]:
                    brush.line(rect[0], y, line, self.f.body, self.c.ink)
                y += line.height
            self.position(brush, rect, scroll / max(1, total - room), room / total)
            return
        y = rect[1] + ((room - total) // 2 if centred else 0)
        for line in lines:
            x = rect[0] + ((rect[2] - rect[0] - line.width) // 2 if centred else 0)
            brush.line(x, y, line, self.f.body, self.c.ink)
            y += line.height

    def position(self, brush: Brush, rect: Rect, place: float, part: float) -> None:
        """A bar at the right edge of `rect`: `part` of the whole is in sight, at `place` (0 to 1)."""
        width = max(2, self.m.bar // 2)
        x, height = rect[2] - width, rect[3] - rect[1]
        size = max(2 * self.m.bar, round(height * part))
        start = rect[1] + round((height - size) * min(max(place, 0.0), 1.0))
        brush.box((x + width // 2 - 1, rect[1], x + width // 2, rect[3]), self.c.edge)
        brush.box((x, start, x + width, start + size), self.c.dim, width // 2)

    def choices(self, brush: Brush, view: View, colour: Colour) -> int:
        """The choices of a card at the bottom: side by side when they fit, else below each other. Returns
        the row where they begin."""
        if not view.choices:
            return self.lower
        boxes = self.places(view)
        if len(boxes) < len(view.choices):  # some are out of sight: which, the bar tells
            shown = range(len(view.choices))[self._window(view, len(boxes))]
            area = (self.left, boxes[0][1], self.right, self.lower)
            rest = max(1, len(view.choices) - len(boxes))
            self.position(brush, area, shown[0] / rest, len(boxes) / len(view.choices))
        else:
            shown = range(len(boxes))
        for number, rect in zip(shown, boxes, strict=True):
            self.choice(brush, rect, view, number, colour)
        return boxes[0][1] - self.m.gap

    def lettering(self, view: View) -> Face:
        """The face of the choices: as large as stands side by side, else of two below each other the big."""
        for face in (self.f.big, self.f.strong):
            if len(view.choices) > 1 and self._spare(view, face) >= 0:
                return face
        return self.f.big if len(view.choices) <= 2 else self.f.strong

    def _spare(self, view: View, face: Face) -> int:
        """Pixels that are left when all choices stand side by side."""
        each = 2 * self.m.gap + self.m.sign
        widths = sum(wide(text, face) + each for text in view.choices)
        return self.width - widths - self.m.gap * (len(view.choices) - 1)

    def places(self, view: View) -> list[Rect]:
        """Where the choices stand that are in sight."""
        face, gap = self.lettering(view), self.m.gap
        count, height = len(view.choices), face.height + self.m.pad
        widths = [wide(text, face) + 2 * gap + self.m.sign for text in view.choices]
        spare = self._spare(view, face)
        if spare >= 0 and count > 1:
            boxes, x = [], self.left
            for number, width in enumerate(widths):
                width += spare * (number + 1) // count - spare * number // count
                boxes.append((x, self.lower - height, x + width, self.lower))
                x += width + gap
            return boxes
        # the question keeps two lines, beside two choices one at least
        least = (2 if count > 2 else 1) * self.f.body.height
        most = (self.lower - self.top - least) // (height + gap)
        count = min(count, max(1, most))
        right = self.right - (self.m.bar if count < len(view.choices) else 0)
        first = self.lower - count * (height + gap) + gap
        return [
            (self.left, y, right, y + height)
            for y in range(first, self.lower - height + 1, height + gap)
        ]

    def choice(self, brush: Brush, rect: Rect, view: View, number: int, colour: Colour) -> None:
        """One choice; the chosen one is filled as far as it is held."""
        raise NotImplementedError

    def _window(self, view: View, count: int) -> slice:
        first = min(max(0, view.chosen - count // 2), len(view.choices) - count)
        return slice(first, first + count)

    def _indented(self, view: View) -> bool:
        """Whether also a row without an icon keeps its place: where most rows have one."""
        return 2 * sum(bool(row.icon) for row in view.rows) >= len(view.rows)

    def hint(self, brush: Brush, text: str) -> int:
        """A hint of up to two lines at the bottom. Returns where it begins."""
        note, lower = self.f.note, self.lower
        lines = self.wrapped(text, self.width, note, most=2) if text else ()
        lower = y = lower - len(lines) * note.height
        for line in lines:
            brush.line(self.left + (self.width - line.width) // 2, y, line, note, self.c.dim)
            y += line.height
        return lower

    def asked(self, brush: Brush, view: View, colour: Colour) -> None:
        """What a card asks, its hint, and its choices."""
        lower = self.choices(brush, view, colour)
        self._card_room = lower - self.top
        if view.hint:
            note = self.f.note
            lower -= note.height
            brush.text(self.left, lower - 2, view.hint, note, colour, self.width, "c")
        rect = (self.left, self.top, self.right, lower)
        self.running(brush, view.lines, view.scroll, rect)

    def around(self, brush: Brush, view: View, rect: Rect, air: int, reach: int) -> None:
        """The letters around the chosen one, which stands in a filled box in the middle of `rect`, as many
        as have room; `air` between two, `reach` the least half width of the box."""
        body, middle = self.f.body, (rect[1] + rect[3]) // 2
        if not 0 <= view.chosen < len(view.rows):
            return
        half = min(body.height // 2 + 7, (rect[3] - rect[1]) // 2)
        centre, y = (rect[0] + rect[2]) // 2, middle - body.height // 2
        label = view.rows[view.chosen].label
        reach = min(max(reach, wide(label, body) // 2 + 6), (rect[2] - rect[0]) // 3)
        brush.box((centre - reach, middle - half, centre + reach, middle + half), self.c.accent, 8)
        brush.text(centre - reach, y, label, body, self.c.on, 2 * reach, "c")
        for way in (1, -1):
            x, number = centre + way * (reach + air), view.chosen + way
            while 0 <= number < len(view.rows):
                label = view.rows[number].label
                space = max(wide(label, body), body.height // 3)
                free = rect[2] - x if way > 0 else x - rect[0]
                if free < min(space, body.height):
                    break
                space = min(space, free)
                left = x if way > 0 else x - space
                brush.text(left, y, label, body, self.c.dim, space, "c")
                x += way * (space + air)
                number += way


def last(lines: tuple[Line, ...], room: int) -> int:
    """Return the number of the first line of the last screenful of `room` pixels."""
    first = len(lines)
    while first and (room := room - lines[first - 1].height) >= 0:
        first -= 1
    return first


def tail(text: str, width: int, face: Face) -> str:
    """The end of `text` that fits `width` pixels, an ellipsis before it when something is left out."""
    marks = [mark if mark != "\n" else " " for mark in clusters(text)]
    if sum(face.measure(mark)[0] for mark in marks) <= width:
        return "".join(marks)
    room, kept = width - face.measure("…")[0], 0
    for mark in reversed(marks):
        room -= face.measure(mark)[0]
        if room < 0:
            break
        kept += 1
    return "…" + "".join(marks[len(marks) - kept :])


def clock(seconds: int) -> str:
    """`1:05`"""
    return f"{seconds // 60}:{seconds % 60:02d}"


def title(text: str, other: str) -> str:
    """A title on one line, `other` when it has no letter."""
    flat = " ".join(text[:200].split())
    return flat if any(char.isalnum() for char in flat) else (other if text else "")


def fitting(text: str, room: int, *faces: Face) -> Face:
    """The first of `faces` in which `text` fits `room` pixels, else the last."""
    return next((face for face in faces if wide(text, face) <= room), faces[-1])


def wide(text: str, face: Face) -> int:
    """Pixels of a text on one line; of a long one, of its beginning."""
    return sum(face.measure(cluster)[0] for cluster in clusters(text[:200]))
