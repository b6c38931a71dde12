"""Pages for colour panels from 200 x 200 pixels on: dark, in smooth letters, each colour with one meaning and
an icon or a word beside it.

Invariant: the same View gives the same pixels; a step of an animation changes its own small part alone."""

from __future__ import annotations

from dataclasses import replace

from exo.device.font import Fonts
from exo.device.layouts.brush import Brush, Colour, Rect
from exo.device.layouts.sheet import (
    LEVELS,
    Faces,
    Measures,
    Palette,
    Sheet,
    clock,
    fitting,
    tail,
    title,
    wide,
)
from exo.device.locale import Texts
from exo.device.pages import Row, View
from exo.device.strike import Face
from exo.device.text import Line

LEAST = 200  # pixels, each way
# panels whose glass has round corners: pixels that stay free at left and right, above and below
ROUND = {(240, 280): (12, 9), (280, 240): (12, 9)}
DARK = Palette(
    ground=(0, 0, 0),
    surface=(36, 40, 48),
    edge=(74, 82, 94),
    ink=(244, 246, 248),
    dim=(176, 184, 194),
    on=(8, 10, 12),
    accent=(98, 200, 255),
    listening=(84, 226, 150),
    thinking=(182, 160, 255),
    info=(98, 200, 255),
    warning=(255, 190, 66),
    error=(255, 122, 110),
)
# white and one bright colour on black; levels keep their icons and words
CONTRAST = replace(
    DARK,
    surface=(0, 0, 0),
    edge=(255, 255, 255),
    ink=(255, 255, 255),
    dim=(255, 255, 255),
    on=(0, 0, 0),
    accent=(255, 240, 0),
    listening=(0, 255, 120),
    thinking=(255, 255, 255),
    info=(255, 255, 255),
    warning=(255, 240, 0),
    error=(255, 150, 140),
)


class ColourPages(Sheet):
    """The pages of one colour panel. `large` letters are a third larger; `high` is high contrast."""

    def __init__(
        self,
        size: tuple[int, int],
        fonts: Fonts,
        texts: Texts,
        large: bool = False,
        high: bool = False,
    ) -> None:
        across, down = ROUND.get(size, (8, 4))
        body, note = (34, 26) if large else (26, 21)
        weight = "bold" if high else "medium"
        strong = Face(f"bold-{note}", fonts)
        faces = Faces(
            Face(f"{weight}-{body}", fonts),
            strong,
            strong if large else Face(f"bold-{body}", fonts),
            strong,
            Face(f"{weight}-{note}", fonts),
            Face(f"{weight}-{21 if large else 18}", fonts),
            Face("clock-112" if size[0] >= 300 else "clock-84", fonts),
        )
        inner = (across, down, size[0] - across, size[1] - down - 2)
        measures = Measures(inner, strong.height + 9, 8, 9, 8, 8, 14)
        super().__init__(size, "RGB", measures, CONTRAST if high else DARK, faces, texts)
        self.high, self.tiny = high, Face(f"{weight}-18", fonts)

    # pages

    def _starting(self, brush: Brush, view: View) -> None:
        large, text = self.f.clock, view.text or self.texts("starting")
        lines = self.wrapped(text, self.width, most=2)
        y = (self.size[1] - large.height - len(lines) * self.f.body.height - 30) // 2
        brush.text(self.left, y, "exo", large, self.c.accent, self.width, "c")
        y += large.height
        for line in lines:
            x = self.left + (self.width - line.width) // 2
            brush.line(x, y, line, self.f.body, self.c.ink)
            y += line.height
        self._dots(brush, y + 22, view.frame, self.c.accent)

    def _idle(self, brush: Brush, view: View) -> None:
        signs, date = self._signs(brush, view), self.texts.date(view.now)
        fits = wide(date, self.f.title) <= signs - self.left - 4
        self._status(brush, date if fits else "", "", self.c.dim, signs)
        hint = self._pill(brush, view)
        digits, note = self.f.clock, self.f.note
        under = note.height + 6 if view.next_due or not fits else 0
        y = (self.top + hint - under - digits.height) // 2
        brush.text(0, y, view.now.strftime("%H:%M"), digits, self.c.ink, self.size[0], "c")
        if view.next_due:
            self._beside(brush, hint - under - 4, "bell", view.next_due, self.c.accent)
        elif not fits:
            brush.text(self.left, hint - under - 4, date, note, self.c.dim, self.width, "c")

    def _listening(self, brush: Brush, view: View) -> None:
        colour = self.c.listening
        self._chip(brush, self.texts("listening"), "microphone", colour, clock(view.elapsed), " ")
        lower = self.lower - self.f.note.height
        brush.text(self.left, lower, view.hint, self.f.note, self.c.dim, self.width, "c")
        self._wave(brush, view.levels, (self.left, self.top + 8, self.right, lower - 8), colour)

    def _thinking(self, brush: Brush, view: View) -> None:
        self._chip(brush, view.title, "think", self.c.thinking, clock(view.elapsed), " ")
        lower = self.lower - 26
        most = (lower - self.top - 8) // self.f.body.height
        lines = self.wrapped(view.text, self.width - 14, most=most)
        y = self.top + 8
        if lines:
            height = len(lines) * self.f.body.height
            brush.box((self.left, y + 2, self.left + 4, y + height - 2), self.c.thinking, 2)
        for line in lines:
            brush.line(self.left + 14, y, line, self.f.body, self.c.ink)
            y += line.height
        self._dots(brush, self.lower - 12, view.frame, self.c.thinking)

    def _reply(self, brush: Brush, view: View) -> None:
        signs = [("speaker", self.c.listening)] * view.speaking
        signs += [("info", self.c.accent)] * view.known
        signs += [("bell", self.c.warning)] * view.pending
        if view.streaming and not view.speaking:
            signs += [("think", self.c.thinking if view.frame % 4 < 2 else self.c.edge)]
        right = self.right
        for name, colour in signs:
            right -= 20
            brush.icon(right, self._middle(20), name, 20, colour)
            right -= 6
        # two signs have their place also when they are away: the title does not jump
        right = min(right, self.right - 2 * 26)
        text = title(view.title, self.texts("reply"))
        self._status(brush, text, "prompt", self.c.dim, right)
        rect = (self.left, self.top, self.right, self.lower)
        self.running(brush, view.lines, view.scroll, rect)

    def _notice(self, brush: Brush, view: View) -> None:
        icon, colour = LEVELS.get(view.level, "info"), self.c.level(view.level)
        self._chip(brush, view.title, icon, colour, view.hint)
        rect = (self.left, self.top, self.right, self.lower)
        self.running(brush, view.lines, view.scroll, rect, centred=True)

    def _list(self, brush: Brush, view: View) -> None:
        place = f"{view.chosen + 1}/{len(view.rows)}" if view.rows else ""
        space = wide(place, self.f.note)
        y = self._middle(self.f.note.height)
        brush.text(self.right - space, y, place, self.f.note, self.c.dim, space)
        self._status(brush, view.title, "", self.c.ink, self.right - space - 4)
        lower = self.lower
        if view.hint:
            lower -= self.f.note.height + 2
            y = lower + 2
            brush.text(self.left, y, view.hint, self.f.note, self.c.dim, self.width, "c")
        if not view.rows:
            return
        rows = self._rows(view, lower - self.top)
        more = len(rows) < len(view.rows)
        right = self.right - (self.m.bar if more else 0)
        icons = self._indented(view)
        y = self.top
        for number, height in rows:
            row = view.rows[number]
            self._row(
                brush,
                (self.left, y, right, y + height),
                row,
                number == view.chosen,
                icons,
                self._inside(view, row),
            )
            y += height
        if more:
            first, rest = rows[0][0], len(view.rows) - len(rows)
            area = (self.left, self.top, self.right, lower)
            self.position(brush, area, first / rest, len(rows) / len(view.rows))

    def _card(self, brush: Brush, view: View) -> None:
        icon, colour = LEVELS.get(view.level, "question"), self.c.level(view.level)
        left = clock(view.elapsed) if view.elapsed else ""
        self._chip(brush, view.title, icon, colour, left, "clock")
        self.asked(brush, view, colour)

    def _entry(self, brush: Brush, view: View) -> None:
        self._status(brush, view.title, "", self.c.ink, self.right)
        body, gap = self.f.body, self.m.gap
        field = (self.left, self.top + 2, self.right, self.top + 2 + body.height + 2 * gap)
        brush.box(field, self.c.surface, self.m.radius)
        brush.frame(field, self.c.edge, self.m.radius)
        room = field[2] - field[0] - 2 * gap - 8
        shown = tail(view.text, room, body)
        x = field[0] + gap
        x += brush.text(x, field[1] + gap, shown, body, self.c.ink, room)
        brush.box((x + 2, field[1] + gap, x + 5, field[3] - gap), self.c.accent)
        lower = self.hint(brush, view.hint)
        if view.progress > 0:
            bar = (field[0] + 6, field[3] - 6, field[2] - 6, field[3] - 2)
            right = bar[0] + round((bar[2] - bar[0]) * min(view.progress, 1.0))
            brush.box((bar[0], bar[1], right, bar[3]), self.c.listening, 2)
        self.around(brush, view, (self.left, field[3] + gap, self.right, lower - gap), 18, 20)

    def _lock(self, brush: Brush, view: View) -> None:
        self._status(brush, view.title, "lock", self.c.accent, self.right)
        lower = self.hint(brush, view.hint)
        if view.elapsed:
            face = self.f.clock
            y = (self.top + lower - face.height) // 2
            brush.text(0, y, clock(view.elapsed), face, self.c.warning, self.size[0], "c")
            return
        count, step = max(4, view.filled), 26
        x, y = (self.size[0] - count * step) // 2, self.top + 22
        for place in range(count):
            circle = (x + 5, y - 8, x + 21, y + 8)
            if place < view.filled:
                brush.box(circle, self.c.ink, 8)
            else:
                brush.frame(circle, self.c.edge, 8, 2)
            x += step
        self._digit(brush, view, (y + 16, lower - 4))

    def _progress(self, brush: Brush, view: View) -> None:
        self._status(brush, view.title, "import", self.c.accent, self.right)
        bar = (self.left, self.lower - 30, self.right, self.lower - 8)
        share = f"{round(100 * view.progress)} %" if view.progress >= 0 else ""
        note = bar[1] - self.f.note.height - 6
        brush.text(self.left, note, share, self.f.strong, self.c.ink, self.width, "r")
        most = max(1, (note - self.top) // self.f.body.height)
        y = self.top + 4
        for line in self.wrapped(view.text, self.width, most=most):
            brush.line(self.left, y, line, self.f.body, self.c.ink)
            y += line.height
        brush.box(bar, self.c.surface, 11)
        if view.progress >= 0:
            front = Brush(self.size, self.mode, self.c.accent)
            brush.uncover(bar, front.image, 11, view.progress)
        else:  # how far is not known: a piece that goes to and fro
            piece, ways = self.width // 4, 12
            place = view.frame % (2 * ways)
            place = place if place <= ways else 2 * ways - place
            x = self.left + (self.width - piece) * place // ways
            brush.box((x, bar[1], x + piece, bar[3]), self.c.accent, 11)
        if self.high:
            brush.frame(bar, self.c.edge, 11)

    # parts

    def _middle(self, height: int) -> int:
        """The top of something of `height` in the middle of the status line."""
        return self.m.inner[1] + (self.m.status - 4 - height) // 2

    def _status(self, brush: Brush, text: str, icon: str, colour: Colour, right: int) -> None:
        """The status line of a quiet page: icon and title, a thin rule below. `right`: where others begin."""
        x = self.left
        if icon:
            brush.icon(x, self._middle(18), icon, 18, colour)
            x += 24
        face = self.f.title
        ink = self.c.ink if colour != self.c.dim else self.c.dim
        brush.text(x, self._middle(face.height), text, face, ink, right - x - 4)
        y = self.m.inner[1] + self.m.status - 4
        brush.box((self.left, y, self.right, y + 1), self.c.edge)

    def _chip(
        self, brush: Brush, text: str, icon: str, colour: Colour, right: str, sign: str = ""
    ) -> None:
        """The status line of a page that means something: its colour all along it, icon and word upon it."""
        box = (self.left, self.m.inner[1], self.right, self.m.inner[1] + self.m.status - 3)
        brush.box(box, colour, self.m.radius)
        face, note, inside = self.f.title, self.f.note, self.right - 8
        free = self.width - 50 - wide(text, face)
        if right and not sign:  # a hint may be small, or left out; a time not
            note = fitting(right, free, note, self.f.small)
            right = right if wide(right, note) <= free else ""
        if right:
            space = wide(right, note)
            inside -= space
            brush.text(inside, self._middle(note.height) + 1, right, note, self.c.on, space)
            # the sign of a time goes before a title is cut
            if sign.strip() and wide(text, self.f.small) <= inside - self.left - 61:
                inside -= 20
                brush.icon(inside, self._middle(16) + 1, sign, 16, self.c.on)
            inside -= 6
        x = self.left + 8
        brush.icon(x, self._middle(20) + 1, icon, 20, self.c.on)
        room = inside - x - 27
        face = fitting(text, room, face, self.f.small, self.tiny)
        brush.text(x + 27, self._middle(face.height) + 1, text, face, self.c.on, room)

    def _signs(self, brush: Brush, view: View) -> int:
        """The signs of the idle page, from the right. Returns where they begin."""
        x = self.right
        if view.battery is not None:
            x = self._battery(brush, x, view.battery, view.charging)
        silent = view.muted or not view.voice
        signs = [("unlink", self.c.error)] if not view.core else []
        signs += [("mute", self.c.warning)] if silent else []
        signs += [("lock", self.c.dim)] if view.locked else []
        signs += [("bell", self.c.accent)] if view.pending else []
        signs = signs or [("link", self.c.dim)]
        for name, colour in signs:
            x -= 20
            brush.icon(x, self._middle(20), name, 20, colour)
            x -= 6
        return x

    def _battery(self, brush: Brush, right: int, percent: int, charging: bool) -> int:
        """A cell as full as the battery, and the number. Returns where it begins."""
        low = percent <= 15 and not charging
        colour = self.c.error if low else self.c.listening if charging else self.c.ink
        y = self._middle(14)
        x = right - 30
        brush.frame((x, y, x + 27, y + 14), colour, 3, 2)
        brush.box((x + 28, y + 4, x + 30, y + 10), colour)
        brush.box((x + 4, y + 4, x + 4 + round(19 * percent / 100), y + 10), colour)
        if charging:
            brush.icon(x - 16, self._middle(16), "bolt", 16, colour)
            x -= 16
        text, note = f"{percent}%", self.f.note
        space = wide(text, note)
        x -= space + 4
        brush.text(x, self._middle(note.height), text, note, colour, space)
        return x - 6

    def _pill(self, brush: Brush, view: View) -> int:
        """The hint of the idle page in a box at the bottom. Returns its top."""
        face = self.f.body
        ready = view.core and view.voice
        top = self.lower - face.height - 10
        face = fitting(view.hint, self.width - 46, face, self.f.note, self.f.small)
        brush.box((self.left, top, self.right, self.lower), self.c.surface, 14)
        if self.high:
            brush.frame((self.left, top, self.right, self.lower), self.c.edge, 14)
        colour = self.c.listening if ready else self.c.warning
        icon = "microphone" if ready else "prompt" if view.core else "unlink"
        icon = "lock" if view.locked else icon
        self._beside(brush, (top + self.lower - face.height) // 2, icon, view.hint, colour, face)
        return top

    def _beside(
        self,
        brush: Brush,
        y: int,
        icon: str,
        text: str,
        colour: Colour,
        face: Face | None = None,
    ) -> None:
        """An icon and a text, together in the middle."""
        face = face or self.f.note
        size = 22 if face is self.f.body else 18
        room = self.width - size - 24
        x = self.left + (self.width - min(room, wide(text, face)) - size - 8) // 2
        brush.icon(x, y + (face.height - size) // 2, icon, size, colour)
        brush.text(x + size + 8, y, text, face, self.c.ink, room)

    def _dots(self, brush: Brush, y: int, frame: int, colour: Colour) -> None:
        """Five dots, one of them large; it walks there and back."""
        place = frame % 8
        place = place if place < 5 else 8 - place
        for dot in range(5):
            x, radius = self.size[0] // 2 + 24 * (dot - 2), 7 if dot == place else 3
            fill = colour if dot == place else self.c.edge
            brush.box((x - radius, y - radius, x + radius, y + radius), fill, radius)

    def _wave(self, brush: Brush, levels: tuple[float, ...], rect: Rect, colour: Colour) -> None:
        """Loudness over time as bars about a middle line, the newest at the right."""
        step, bar = 10, 6
        bars = (rect[2] - rect[0]) // step
        shown = (0.0,) * max(0, bars - len(levels)) + levels[-bars:]
        middle, reach = (rect[1] + rect[3]) // 2, (rect[3] - rect[1]) // 2
        x = rect[0] + (rect[2] - rect[0] - bars * step + step - bar) // 2
        for level in shown:
            height = max(3, round(min(max(level, 0.0), 1.0) * reach))
            brush.box((x, middle - height, x + bar, middle + height), colour, 3)
            x += step

    def _rows(self, view: View, room: int) -> list[tuple[int, int]]:
        """The rows in sight: number and height. The chosen one takes as many lines as it needs, and stands
        in the middle where the list goes on at both ends."""
        fits = max(1, room // (self.f.body.height + 6))
        usual, total = (
            room // fits if fits <= len(view.rows) else self.f.body.height + 10,
            len(view.rows),
        )
        tall = usual
        if 0 <= view.chosen < total:
            face, lines, below = self._spread(
                view.rows[view.chosen], self._inside(view, view.rows[view.chosen])
            )
            if len(lines) > 1 or below:
                low = self.f.note.height if below else 0
                tall = max(usual, len(lines) * face.height + low + 8)
        count = min(total, 1 + max(0, room - tall) // usual)
        first = min(max(0, view.chosen - count // 2), total - count)
        return [
            (number, tall if number == view.chosen else usual)
            for number in range(first, first + count)
        ]

    def _inside(self, view: View, row: Row) -> int:
        """Pixels that label and value of a row have together, its mark aside."""
        return self.width - self.m.bar - 16 - (30 if row.icon or self._indented(view) else 0)

    def _spread(self, row: Row, room: int) -> tuple[Face, tuple[Line, ...], bool]:
        """The chosen row's label, in small letters before it takes a second line, and whether its value
        stands below it."""
        room -= 26 * row.marked
        value = wide(row.value, self.f.note) + 10 if row.value else 0
        for space in (room - value, room):
            face = fitting(row.label, space, self.f.body, self.f.note)
            if wide(row.label, face) <= space:
                return (
                    face,
                    self.wrapped(row.label, room, face, most=1),
                    space == room and value > 0,
                )
        return self.f.body, self.wrapped(row.label, room, most=2), value > 0

    def _row(
        self, brush: Brush, rect: Rect, row: Row, chosen: bool, icons: bool, room: int
    ) -> None:
        """One row; of one that is not chosen the value is left out where it has no room, and a label that
        is too long even in small letters ends with an ellipsis."""
        body, note, value = self.f.body, self.f.note, wide(row.value, self.f.note)
        ink, dim = (self.c.on, self.c.on) if chosen else (self.c.ink, self.c.dim)
        if chosen:
            brush.box((rect[0], rect[1] + 1, rect[2], rect[3] - 1), self.c.accent, self.m.radius)
            face, lines, below = self._spread(row, room)
        else:
            face, below = fitting(row.label, room - 26 * row.marked, body, note), False
            value = value if wide(row.label, body) + 10 + value <= room - 26 * row.marked else 0
            lines = ()
        height = max(1, len(lines)) * face.height + (note.height if below else 0)
        x, right, y = rect[0] + 8, rect[2] - 8, (rect[1] + rect[3] - height) // 2
        if row.icon:
            colour = ink if chosen else self.c.accent
            brush.icon(x, y + (face.height - 22) // 2, row.icon, 22, colour)
        if row.icon or icons:
            x += 30
        if row.marked:
            right -= 20
            colour = ink if chosen else self.c.listening
            brush.icon(right, y + (face.height - 20) // 2, "check", 20, colour)
            right -= 6
        if value:
            low = rect[3] - note.height - 4 if below else y + (face.height - note.height) // 2
            space = min(value, right - x)
            brush.text(right - space, low, row.value, note, dim, space)
            right -= 0 if below else value + 10
        for line in lines:
            brush.line(x, y, line, face, ink)
            y += line.height
        if not lines:
            brush.text(x, y, row.label, face, ink, right - x)

    def choice(self, brush: Brush, rect: Rect, view: View, number: int, colour: Colour) -> None:
        chosen = number == view.chosen
        brush.box(rect, self.c.surface, self.m.radius)
        self._label(brush, rect, view, number, self.c.ink)
        if chosen:  # a sign beside the colour of its frame
            brush.icon(rect[0] + 6, (rect[1] + rect[3] - 14) // 2, "prompt", 14, colour)
        if chosen and view.progress > 0:  # the letters are dark where the bar has come under them
            front = Brush(self.size, self.mode, colour)
            self._label(front, rect, view, number, self.c.on)
            brush.uncover(rect, front.image, self.m.radius, view.progress)
        brush.frame(rect, colour if chosen else self.c.edge, self.m.radius, 3 if chosen else 2)

    def _label(self, brush: Brush, rect: Rect, view: View, number: int, colour: Colour) -> None:
        text, gap = view.choices[number], self.m.gap
        room = rect[2] - rect[0] - 2 * gap
        face = fitting(text, room - 12, self.lettering(view), self.f.strong, self.f.small)
        y = (rect[1] + rect[3] - face.height) // 2
        if wide(text, face) + 24 <= room:
            brush.text(rect[0] + gap, y, text, face, colour, room, "c")
        else:  # beside the sign of the chosen one
            brush.text(rect[0] + gap + 12, y, text, face, colour, room - 12, "c")

    def _digit(self, brush: Brush, view: View, rows: tuple[int, int]) -> None:
        """The digit that is being chosen, or a word, in a box with arrows."""
        body, centre = self.f.body, self.size[0] // 2
        half = min(46, (rows[1] - rows[0]) // 2)
        middle = (rows[0] + rows[1]) // 2
        reach = min(max(34, wide(view.text, body) // 2 + 12), self.width // 2)
        rect = (centre - reach, middle - half, centre + reach, middle + half)
        brush.box(rect, self.c.surface, self.m.radius)
        if view.progress > 0:
            part = round(2 * (reach - 6) * min(view.progress, 1.0))
            bar = (rect[0] + 6, rect[3] - 7, rect[0] + 6 + part, rect[3] - 3)
            brush.box(bar, self.c.listening, 2)
        brush.frame(rect, self.c.accent, self.m.radius)
        if half >= body.height // 2 + 18:
            brush.icon(centre - 9, rect[1] + 4, "up", 18, self.c.accent)
            brush.icon(centre - 9, rect[3] - 24, "down", 18, self.c.accent)
        y = middle - body.height // 2
        brush.text(rect[0] + 6, y, view.text, body, self.c.ink, 2 * reach - 12, "c")
