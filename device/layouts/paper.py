"""Pages for e-paper: black on white, and still. What moves several times a second elsewhere (dots, a wave,
seconds) is a word or a picture here, because each change is a refresh that is seen.

Invariant: views that differ only in what moves give the same picture."""

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
    fitting,
    tail,
    title,
    wide,
)
from exo.device.locale import Texts
from exo.device.pages import Drawn, Row, View
from exo.device.strike import Face

BLACK, WHITE = 0, 255
PAPER = Palette(
    ground=WHITE,
    surface=WHITE,
    edge=BLACK,
    ink=BLACK,
    dim=BLACK,
    on=WHITE,
    accent=BLACK,
    listening=BLACK,
    thinking=BLACK,
    info=BLACK,
    warning=BLACK,
    error=BLACK,
)
ICON = 18


class PaperPages(Sheet):
    """The pages of one sheet of e-paper, looked at sideways. `large` letters are half as large again."""

    fixed = ("screen.contrast",)  # black on white is all there is

    def __init__(
        self, size: tuple[int, int], fonts: Fonts, texts: Texts, large: bool = False
    ) -> None:
        body = Face("medium-26", fonts, True, 29) if large else Face("medium-18", fonts, True, 20)
        note = Face("medium-18", fonts, True, 20)
        strong = Face("bold-18", fonts, True, 20)
        faces = Faces(body, strong, strong, strong, note, note, Face("clock-84", fonts, True))
        inner = (4, 0, size[0] - 4, size[1])
        super().__init__(size, "1", Measures(inner, 21, 4, 7, 4, 2, 0), PAPER, faces, texts)
        self._last: tuple[View, Drawn] | None = None

    def draw(self, view: View) -> Drawn:
        calm = still(view)
        if self._last is None or self._last[0] != calm:
            self._last = (calm, super().draw(calm))
        return self._last[1]

    # pages

    def _starting(self, brush: Brush, view: View) -> None:
        face = self.f.clock
        y = self.size[1] // 2 - face.height + 26
        brush.text(self.left, y, "exo", face, self.c.ink, self.width, "c")
        text = view.text or self.texts("starting")
        y = self.lower - self.f.body.height - 6
        brush.text(self.left, y, text, self.f.body, self.c.ink, self.width, "c")

    def _idle(self, brush: Brush, view: View) -> None:
        self._status(brush, self.texts.date(view.now), "", self._signs(brush, view))
        face, note = self.f.clock, self.f.note
        low = self.lower - note.height - 1
        y = (self.top + low - face.height) // 2
        brush.text(0, y, view.now.strftime("%H:%M"), face, self.c.ink, self.size[0], "c")
        right = self.right
        if view.next_due:
            right -= min(wide(view.next_due, note), self.width * 2 // 5)
            brush.text(right, low, view.next_due, note, self.c.ink, self.right - right)
            right -= ICON + 3
            brush.icon(right, low + 1, "bell", ICON, self.c.ink)
            right -= 6
        ready = view.core and view.voice
        icon = "microphone" if ready else "prompt" if view.core else "unlink"
        icon = "lock" if view.locked else icon
        room = right - self.left - ICON - 4
        x = self.left
        if not view.next_due:
            x += (room - min(room, wide(view.hint, note))) // 2
        brush.icon(x, low + 1, icon, ICON, self.c.ink)
        brush.text(x + ICON + 4, low, view.hint, note, self.c.ink, room)

    def _listening(self, brush: Brush, view: View) -> None:
        self._band(brush, self.texts("listening"), "microphone", "")
        size, lower = 64, self.hint(brush, view.hint)
        x, y = (self.size[0] - size) // 2, (self.top + lower - size) // 2
        brush.icon(x, y, "microphone", size, self.c.ink)

    def _thinking(self, brush: Brush, view: View) -> None:
        self._band(brush, view.title, "think", "")
        most = (self.lower - self.top - 2) // self.f.body.height
        y = self.top + 2
        for line in self.wrapped(view.text, self.width, most=most):
            brush.line(self.left, y, line, self.f.body, self.c.ink)
            y += line.height

    def _reply(self, brush: Brush, view: View) -> None:
        right = self.right
        for name in ("info",) * view.known + ("bell",) * view.pending:
            right -= ICON + 4
            brush.icon(right + 4, self.m.inner[1] + 1, name, ICON, self.c.ink)
        self._status(brush, title(view.title, self.texts("reply")), "prompt", right)
        rect = (self.left, self.top, self.right, self.lower)
        self.running(brush, view.lines, view.scroll, rect)

    def _notice(self, brush: Brush, view: View) -> None:
        self._band(brush, view.title, LEVELS.get(view.level, "info"), view.hint)
        rect = (self.left, self.top, self.right, self.lower)
        self.running(brush, view.lines, view.scroll, rect, centred=True)

    def _list(self, brush: Brush, view: View) -> None:
        note, lower = self.f.note, self.lower
        place = f"{view.chosen + 1}/{len(view.rows)}" if view.rows else ""
        right = self.right - wide(place, note)
        brush.text(right, self.m.inner[1], place, note, self.c.ink, self.right - right)
        self._status(brush, view.title, "", right)
        height = self.f.body.height + 4
        if view.hint and len(view.rows) * height + note.height <= lower - self.top:
            lower = self.hint(brush, view.hint)
        # page by page: while the choice walks within one, two rows change and no more
        count = max(1, (lower - self.top) // height)
        first = min(max(view.chosen, 0) // count * count, max(0, len(view.rows) - count))
        shown = view.rows[first : first + count]
        right = self.right - (self.m.bar if len(view.rows) > count else 0)
        icons, y = self._indented(view), self.top + 1
        for number, row in enumerate(shown, first):
            rect = (self.left, y, right, y + height)
            self._row(brush, rect, row, number == view.chosen, icons)
            y += height
        if len(view.rows) > count:
            area = (self.left, self.top + 1, self.right, lower)
            rest = len(view.rows) - count
            self.position(brush, area, first / rest, count / len(view.rows))

    def _card(self, brush: Brush, view: View) -> None:
        left = f"{view.elapsed // 60} min" if view.elapsed else ""
        self._band(brush, view.title, LEVELS.get(view.level, "question"), left, "clock")
        self.asked(brush, view, self.c.ink)

    def _entry(self, brush: Brush, view: View) -> None:
        self._status(brush, view.title, "", self.right)
        body = self.f.body
        field = (self.left, self.top + 2, self.right, self.top + body.height + 8)
        brush.frame(field, self.c.ink, 4, 1)
        room = field[2] - field[0] - 14
        shown = tail(view.text, room, body)
        x = field[0] + 5 + brush.text(field[0] + 5, field[1] + 3, shown, body, self.c.ink, room)
        brush.box((x + 2, field[1] + 4, x + 4, field[3] - 4), self.c.ink)
        lower = self.hint(brush, view.hint)
        if view.progress > 0:
            brush.box((field[0], field[3] - 3, field[2], field[3]), self.c.ink, 1)
        self.around(brush, view, (self.left, field[3] + 2, self.right, lower), 14, 15)

    def _lock(self, brush: Brush, view: View) -> None:
        self._status(brush, view.title, "lock", self.right)
        lower = self.hint(brush, view.hint)
        middle, body = (self.top + lower) // 2, self.f.body
        if view.elapsed:
            text, face = f"{view.elapsed // 60} min", self.f.strong
            x = (self.width - wide(text, face) - 44) // 2
            brush.icon(x, middle - 18, "clock", 36, self.c.ink)
            y = middle - face.height // 2
            brush.text(x + 44, y, text, face, self.c.ink, self.right - x - 44)
            return
        count, step = max(4, view.filled), 20
        x, y = (self.size[0] - count * step) // 2, self.top + 14
        for place in range(count):
            circle = (x + 3, y - 7, x + 17, y + 7)
            (brush.box if place < view.filled else brush.frame)(circle, self.c.ink, 7)
            x += step
        centre, reach = self.size[0] // 2, max(24, wide(view.text, body) // 2 + 8)
        middle = (y + 7 + lower) // 2
        half = min(body.height // 2 + 4, (lower - y - 8) // 2)
        box = (centre - reach, middle - half, centre + reach, middle + half)
        brush.frame(box, self.c.ink, 4, 2)
        for way, name in ((-1, "up"), (1, "down")):
            x = centre + way * (reach + 16) - 8
            brush.icon(x, middle - 8, name, 16, self.c.ink)
        y = middle - body.height // 2
        brush.text(box[0], y, view.text, body, self.c.ink, box[2] - box[0], "c")

    def _progress(self, brush: Brush, view: View) -> None:
        known = view.progress >= 0
        share = f"{round(100 * view.progress)} %" if known else ""
        right = self.right - wide(share, self.f.note)
        brush.text(right, self.m.inner[1], share, self.f.note, self.c.ink, self.right - right)
        self._status(brush, view.title, "import", right)
        bar = (self.left, self.lower - 18, self.right, self.lower - 2)
        lower = bar[1] - 4 if known else self.lower
        y = self.top + 2
        for line in self.wrapped(
            view.text, self.width, most=max(1, (lower - y) // self.f.body.height)
        ):
            brush.line(self.left, y, line, self.f.body, self.c.ink)
            y += line.height
        if known:
            brush.frame(bar, self.c.ink, 5, 1)
            inside = (bar[0] + 3, bar[1] + 3, bar[2] - 3, bar[3] - 3)
            part = round((inside[2] - inside[0]) * min(view.progress, 1.0))
            brush.box((inside[0], inside[1], inside[0] + part, inside[3]), self.c.ink, 3)

    # parts

    def _status(self, brush: Brush, text: str, icon: str, right: int) -> None:
        """Icon and title, a rule below. `right`: where others begin."""
        x, y = self.left, self.m.inner[1]
        if icon:
            brush.icon(x, y + 1, icon, ICON, self.c.ink)
            x += ICON + 4
        brush.text(x, y - 1, text, self.f.title, self.c.ink, right - x - 4)
        brush.box((self.left, y + 19, self.right, y + 20), self.c.ink)

    def _band(self, brush: Brush, text: str, icon: str, right: str, sign: str = "") -> None:
        """The status line of a page that means something: white on black, icon and word."""
        y, inside = self.m.inner[1], self.right - 5
        brush.box((self.left, y, self.right, y + 20), self.c.ink, 4)
        if right:
            space = min(self.width // 2, wide(right, self.f.note))
            inside -= space
            brush.text(inside, y, right, self.f.note, self.c.on, space)
            if sign:
                inside -= 17
                brush.icon(inside, y + 3, sign, 14, self.c.on)
            inside -= 4
        brush.icon(self.left + 5, y + 2, icon, 16, self.c.on)
        x = self.left + 26
        brush.text(x, y, text, self.f.title, self.c.on, inside - x)

    def _signs(self, brush: Brush, view: View) -> int:
        """The signs of the idle page, from the right. Returns where they begin."""
        x, y = self.right, self.m.inner[1]
        if view.battery is not None:
            brush.frame((x - 26, y + 4, x - 3, y + 16), self.c.ink, 2, 1)
            brush.box((x - 3, y + 7, x - 1, y + 13), self.c.ink)
            brush.box((x - 24, y + 6, x - 24 + round(19 * view.battery / 100), y + 14), self.c.ink)
            x -= 28
            if view.charging:
                x -= 14
                brush.icon(x, y + 3, "bolt", 14, self.c.ink)
            text = f"{view.battery}%"
            space = wide(text, self.f.note)
            x -= space + 2
            brush.text(x, y - 1, text, self.f.note, self.c.ink, space)
            x -= 6
        silent = view.muted or not view.voice
        for name in (
            ("link" if view.core else "unlink",)
            + ("mute",) * silent
            + ("lock",) * view.locked
            + ("bell",) * view.pending
        ):
            x -= ICON
            brush.icon(x, y, name, ICON, self.c.ink)
            x -= 5
        return x

    def _row(self, brush: Brush, rect: Rect, row: Row, chosen: bool, icons: bool) -> None:
        body, note = self.f.body, self.f.note
        ink: Colour = self.c.on if chosen else self.c.ink
        if chosen:
            brush.box(rect, self.c.ink, 4)
        x, right, y = rect[0] + 5, rect[2] - 5, rect[1] + 2
        middle = y + (body.height - ICON) // 2
        if row.icon:
            brush.icon(x, middle, row.icon, ICON, ink)
        if row.icon or icons:
            x += ICON + 6
        if row.marked:
            right -= ICON
            brush.icon(right, middle, "check", ICON, ink)
            right -= 4
        space = right - x
        face = fitting(row.label, space, body, note)
        value = wide(row.value, note)
        if not chosen and wide(row.label, body) + 8 + value > space:
            value = 0  # told when it is chosen
        elif value and wide(row.label, face) + 8 + value > space:
            face = note
        if value:
            # a long label leaves its value two fifths of the row
            room = min(value, max(space - wide(row.label, face) - 8, 2 * space // 5))
            low = y + (body.height - note.height) // 2
            brush.text(right - room, low, row.value, note, ink, room, "r")
            right -= room + 8
        brush.text(x, y + (body.height - face.height) // 2, row.label, face, ink, right - x)

    def choice(self, brush: Brush, rect: Rect, view: View, number: int, colour: Colour) -> None:
        """The chosen one has a thick line; while it is held it is black."""
        chosen = number == view.chosen
        held = chosen and view.progress > 0
        if held:
            brush.box(rect, self.c.ink, self.m.radius)
        else:
            brush.frame(rect, self.c.ink, self.m.radius, 2 if chosen else 1)
        face, ink = self.f.strong if chosen else self.f.note, self.c.on if held else self.c.ink
        y = (rect[1] + rect[3] - face.height) // 2
        brush.text(rect[0] + 3, y, view.choices[number], face, ink, rect[2] - rect[0] - 6, "c")


def still(view: View) -> View:
    """The view without what moves: steps of an animation, loudness, seconds (those that are left are
    rounded up to minutes), how far a hold is (but that there is one), each hundredth of a progress, and the
    line that is being written: a refresh a line, not a word."""
    left = -(-view.elapsed // 60) * 60 if view.page in ("card", "lock") else 0
    progress = view.progress
    if view.page in ("card", "entry", "lock"):
        progress = 1.0 if progress > 0 else 0.0
    elif progress > 0:
        progress = min(1.0, int(20 * progress) / 20)
    return replace(
        view,
        # of a wait the minutes are shown, whatever the hint counts
        hint="" if view.page == "lock" and left else view.hint,
        frame=0,
        levels=(),
        elapsed=left,
        progress=progress,
        speaking=False,
        lines=view.lines[:-1] if view.page == "reply" and view.streaming else view.lines,
        streaming=False,
        now=view.now.replace(second=0, microsecond=0) if view.page == "idle" else view.now,
    )
