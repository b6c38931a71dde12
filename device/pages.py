"""What the screen shows, as a pure function of a View. Owns where things stand; asks nobody for anything.

Every page has a status line of ten pixels with a rule under it and text below; a screen of 128 x 64
holds five rows of 21 letters there. Invariant: the same View gives the same pixels."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import lru_cache

from exo.device.canvas import Canvas
from exo.device.font import Fonts
from exo.device.locale import Texts
from exo.device.text import Line, clusters, wrap
from PIL import Image

TOP = 12  # first row of pixels under the status line
CHOICE = 12  # pixels below the text of a card, for the choice
ROW = 10  # pixels of a row
BAR = 2  # pixels at the right for the position bar: one of space, one of bar


@dataclass(frozen=True)
class Row:
    """One line of a list: `value` stands at the right, `icon` before the label; `marked` is the one in
    force (the present session, the setting's value)."""

    label: str
    value: str = ""
    icon: str = ""
    marked: bool = False


@dataclass(frozen=True)
class View:
    """All that a page depends on. `page` is the kind: off, starting, idle, listening, thinking, reply,
    notice, list, card, entry, lock or progress. `frame` counts animation steps; `lines` are laid out
    already."""

    page: str
    now: datetime.datetime
    title: str = ""
    text: str = ""
    level: str = "info"  # of a notice: info, warning, error, timer; of a card: risk, question
    hint: str = ""
    elapsed: int = 0  # seconds; of a card and a lock: those that are left
    frame: int = 0
    levels: tuple[float, ...] = ()  # loudness 0 to 1, the newest last
    lines: tuple[Line, ...] = ()
    scroll: int = 0  # pixels
    streaming: bool = False
    speaking: bool = False
    pending: bool = False  # a notice waits
    known: bool = False  # something remembered stands behind the reply: OK says what
    core: bool = True
    voice: bool = True
    rows: tuple[Row, ...] = ()  # of a list; of an entry: the letters around the one chosen
    chosen: int = 0  # number of the row, letter or choice; -1: none yet
    choices: tuple[str, ...] = ()  # of a card
    progress: float = 0.0  # 0 to 1: how far a hold or an import is; -1: unknown
    filled: int = 0  # digits of a PIN that are entered
    battery: int | None = None  # percent; None: not known
    charging: bool = False
    locked: bool = False
    muted: bool = False
    next_due: str = ""  # what rings next, with its time


@dataclass(frozen=True)
class Drawn:
    """A finished page and the text on it, row by row."""

    image: Image.Image
    text: str


class Pages:
    """Draws views for one panel size in one language. `large` is for what is read: running text and rows."""

    fixed = ("screen.contrast",)  # settings that change nothing here: there is but one contrast

    def __init__(
        self, size: tuple[int, int], fonts: Fonts, texts: Texts, large: bool = False
    ) -> None:
        self.size, self.fonts, self.texts, self.large = size, fonts, texts, large
        self._body = Fonts(large=True) if large else fonts
        self.lay_out = lru_cache(maxsize=8)(self._lay_out)

    @property
    def room(self) -> tuple[int, int]:
        """Pixels that running text has: beside the position bar and under the status line."""
        return self.size[0] - BAR, self.size[1] - TOP

    def _lay_out(self, text: str) -> tuple[Line, ...]:
        """Return the lines of a reply or a notice."""
        return tuple(wrap(text, self.room[0], Canvas(self.size, self._body).measure))

    def last(self, lines: tuple[Line, ...], page: str = "reply") -> int:
        """Return the number of the first line of the last screenful of a page of that kind."""
        room, first = self.room[1] - (CHOICE if page == "card" else 0), len(lines)
        while first and (room := room - lines[first - 1].height) >= 0:
            first -= 1
        return first

    def draw(self, view: View) -> Drawn:
        canvas = Canvas(self.size, self.fonts)
        getattr(self, f"_{view.page}")(canvas, view)
        return Drawn(canvas.image, "\n".join(canvas.said))

    # pages

    def _off(self, canvas: Canvas, view: View) -> None:
        """A dark screen."""

    def _starting(self, canvas: Canvas, view: View) -> None:
        middle = canvas.height // 2
        _logo(canvas, middle - 22)
        canvas.text(0, middle + 8, view.text or self.texts("starting"), align="c")
        _bounce(canvas, middle + 23, view.frame)

    def _idle(self, canvas: Canvas, view: View) -> None:
        links = self._links(view)
        icon = "lock" if view.locked else ""
        self._status(canvas, self.texts.date(view.now), links, icon=icon)
        if view.battery is not None:
            shown = f"{view.battery}%"
            x = canvas.width - 9 * len(links) - canvas.length(shown) - 2
            canvas.text(x, 0, shown)
            if view.charging:
                canvas.icon(x - 8, 1, "charge")
        canvas.digits(TOP + (2 if view.next_due else 5), view.now.strftime("%H:%M"))
        if view.next_due:
            canvas.text(0, canvas.height - 2 * ROW - 1, view.next_due, align="c")
        width = min(canvas.length(view.hint) + 10, canvas.width)
        x = (canvas.width - width) // 2
        icon = "lock" if view.locked else "microphone" if view.voice and view.core else "prompt"
        canvas.icon(x, canvas.height - 9, icon)
        canvas.text(x + 10, canvas.height - 10, view.hint, room=canvas.width - x - 10)

    def _listening(self, canvas: Canvas, view: View) -> None:
        self._status(canvas, self.texts("listening"), _seconds(view.elapsed), icon="microphone")
        _wave(canvas, view.levels, TOP + 19, 17)
        canvas.text(0, canvas.height - 10, view.hint, align="c")

    def _thinking(self, canvas: Canvas, view: View) -> None:
        self._status(canvas, view.title, _seconds(view.elapsed), icon="think")
        bottom = canvas.height - 8
        canvas.fonts = self._body
        lines = wrap(view.text[:400], canvas.width, canvas.measure)
        shown, used = [], 0
        for line in lines:
            if used + line.height > bottom - TOP:
                break
            shown.append(line)
            used += line.height
        if len(shown) < len(lines) and shown:
            shown[-1] = _ellipsis(shown[-1], canvas)
        y = TOP
        for line in shown:
            canvas.line(0, y, line)
            y += line.height
        _bounce(canvas, bottom + 3, view.frame)

    def _reply(self, canvas: Canvas, view: View) -> None:
        total = sum(line.height for line in view.lines)
        room = self.room[1]
        icons = ("bell",) * view.pending + ("info",) * view.known + ("speaker",) * view.speaking
        icons += ("think",) * (view.streaming and view.frame % 4 < 2)
        self._status(canvas, view.title, icons, icon="prompt", keep=2 + view.pending + view.known)
        self._lines(canvas, view, room)
        if total > room:
            _bar(canvas, TOP, room, view.scroll, total)

    def _list(self, canvas: Canvas, view: View) -> None:
        count = len(view.rows)
        self._status(canvas, view.title, f"{view.chosen + 1}/{count}" if count else "", icon="")
        canvas.fonts = self._body
        heights = [self._height(canvas, row) for row in view.rows]
        first, end = _window(heights, view.chosen, self.room[1])
        inset = 10 if any(row.icon or row.marked for row in view.rows) else 1
        y = TOP
        for number in range(first, end):
            row, room = view.rows[number], self.room[0] - inset - 1
            base = y + heights[number] - ROW
            if row.value:
                wide = min(canvas.length(row.value), 2 * room // 3)
                canvas.text(self.room[0] - 1 - wide, base, row.value, room=wide)
                room -= wide + 4
            if row.icon or row.marked:
                canvas.icon(1, base + 1, row.icon or "marked")
            canvas.text(inset, base, row.label, room=room)
            if number == view.chosen:
                canvas.invert((0, y, self.room[0], y + heights[number]))
            y += heights[number]
        if end - first < count:
            _bar(canvas, TOP, self.room[1], sum(heights[:first]), sum(heights))

    def _height(self, canvas: Canvas, row: Row) -> int:
        """Pixels of a row: glyphs that are no letters need more."""
        return max([ROW, *(canvas.measure(each)[1] for each in clusters(row.label[:40]))])

    def _card(self, canvas: Canvas, view: View) -> None:
        icon = "warning" if view.level == "risk" else "question"
        time = _seconds(view.elapsed) if view.elapsed else ""
        self._status(canvas, view.hint or view.title, time, icon=icon)
        if view.level == "risk":
            canvas.invert((0, 0, canvas.width, TOP - 1))
        room = self.room[1] - CHOICE
        self._lines(canvas, view, room)
        total = sum(line.height for line in view.lines)
        if total > room:
            _bar(canvas, TOP, room, view.scroll, total)
        if 0 <= view.chosen < len(view.choices):
            self._choice(canvas, view, view.scroll + room < total)

    def _choice(self, canvas: Canvas, view: View, more: bool) -> None:
        """The choice that is lit, in a box that fills while it is held; arrows say what lies beside."""
        top, right = canvas.height - CHOICE + 1, canvas.width - 1
        canvas.draw.rectangle((0, top, right, canvas.height - 1), outline=1)
        inner = canvas.width - 16
        canvas.text(8, top + 1, view.choices[view.chosen], room=inner, align="c")
        if view.chosen or view.scroll:
            canvas.text(2, top + 1, "↑", room=6)
        if more or view.chosen + 1 < len(view.choices):
            canvas.text(right - 7, top + 1, "↓", room=6)
        _fill(canvas, top + 1, view.progress)

    def _entry(self, canvas: Canvas, view: View) -> None:
        self._status(canvas, view.title, "", icon="prompt")
        lines = wrap(view.text + "_", canvas.width, canvas.measure)
        y = TOP
        for line in lines[-2:]:
            canvas.line(0, y, line)
            y += line.height
        self._wheel(canvas, view, canvas.height - 2 * ROW - 7)
        canvas.text(0, canvas.height - ROW, view.hint, align="c")
        _fill(canvas, canvas.height - ROW, view.progress)

    def _wheel(self, canvas: Canvas, view: View, y: int) -> None:
        """The letter that is chosen in the middle, its neighbours to both sides as far as they fit."""
        chosen = view.rows[view.chosen].label
        half = canvas.length(chosen) // 2
        middle = canvas.width // 2
        left, right = middle - half - 3, middle + half + 3
        canvas.text(middle - half, y, chosen)
        canvas.invert((left, y - 2, right, y + ROW + 2))
        for row in view.rows[view.chosen + 1 :]:
            right += 8
            wide = canvas.length(row.label)
            if right + wide > canvas.width:
                break
            canvas.text(right, y, row.label)
            right += wide
        for row in reversed(view.rows[: view.chosen]):
            left -= 8 + canvas.length(row.label)
            if left < 0:
                break
            canvas.text(left, y, row.label)

    def _lock(self, canvas: Canvas, view: View) -> None:
        self._status(canvas, view.title, "", icon="lock")
        canvas.text(0, TOP, "●" * view.filled or "·", align="c")
        if view.text.isdigit():
            canvas.digits(TOP + 13, view.text)
            canvas.text(canvas.width // 2 - 24, TOP + 20, "↓")
            canvas.text(canvas.width // 2 + 19, TOP + 20, "↑")
        else:
            canvas.text(0, TOP + 20, view.text, align="c")
            wide = canvas.length(view.text) // 2 + 4
            middle = canvas.width // 2
            canvas.invert((middle - wide, TOP + 18, middle + wide, TOP + 32))
        hint = view.hint
        if view.elapsed:
            hint = self.texts("pin.wait", seconds=_seconds(view.elapsed))
        canvas.text(0, canvas.height - ROW, hint, align="c")
        _fill(canvas, canvas.height - ROW, view.progress)

    def _progress(self, canvas: Canvas, view: View) -> None:
        known = view.progress >= 0
        shown = f"{round(100 * view.progress)} %" if known else ""
        self._status(canvas, view.title, shown, icon="think")
        y = TOP
        canvas.fonts = self._body
        for line in self.lay_out(view.text):
            if y + line.height > canvas.height - 14:
                break
            canvas.line(0, y, line)
            y += line.height
        top, right = canvas.height - 12, canvas.width - 1
        canvas.draw.rectangle((0, top, right, canvas.height - 3), outline=1)
        if known:
            canvas.draw.rectangle(
                (2, top + 2, 2 + round((right - 4) * view.progress), top + 7), fill=1
            )

    def _lines(self, canvas: Canvas, view: View, room: int) -> None:
        """Draw the lines that are wholly in sight: half a line reads as dirt on a coarse panel."""
        y = TOP - view.scroll
        canvas.fonts = self._body
        for line in view.lines:
            if y >= TOP and y + line.height <= TOP + room:
                canvas.line(0, y, line)
            y += line.height
        canvas.fonts = self.fonts

    def _notice(self, canvas: Canvas, view: View) -> None:
        icon = {"timer": "bell", "warning": "warning", "error": "error"}.get(view.level, "info")
        self._status(canvas, view.title, view.hint, icon=icon)
        canvas.invert((0, 0, canvas.width, TOP - 1))
        lines, room = view.lines, self.room[1]
        total = sum(line.height for line in lines)
        if total > room:
            self._lines(canvas, view, room)
            _bar(canvas, TOP, room, view.scroll, total)
            return
        y = TOP + (room - total) // 2
        canvas.fonts = self._body
        for line in lines:
            canvas.line((canvas.width - line.width) // 2, y, line)
            y += line.height

    # parts

    def _status(
        self, canvas: Canvas, title: str, right: str | tuple[str, ...], icon: str, keep: int = 0
    ) -> None:
        """The status line: icon and title at the left, text or icons at the right, a rule below.
        Room for `keep` icons stays free also when they are not shown: the title does not jump."""
        if isinstance(right, str):
            space = canvas.length(right)
            canvas.text(canvas.width - space, 0, right)
        else:
            space = max(len(right), keep) * 9
            for number, name in enumerate(right):
                canvas.icon(canvas.width - 8 - 9 * number, 1, name)
        x = 0
        if icon:
            canvas.icon(0, 1, icon)
            x = 10
        # a status line has no room for ideographs and emoji: they are left out of a title
        low = "".join(c for c in clusters(title[:200]) if c != "\n" and canvas.measure(c)[1] <= 10)
        if not any(char.isalnum() for char in low):
            low = self.texts("reply") if title else ""
        canvas.text(x, 0, low.strip(), room=canvas.width - x - space - 3)
        canvas.draw.line((0, TOP - 2, canvas.width - 1, TOP - 2), fill=1)

    def _links(self, view: View) -> tuple[str, ...]:
        names = ("link" if view.core else "unlink", "speaker" if view.voice else "mute")
        return names + ("bell",) * view.pending


def _window(heights: list[int], chosen: int, room: int) -> tuple[int, int]:
    """The rows from first to end that fit into `room` pixels around the one chosen."""
    first = end = min(max(chosen, 0), max(0, len(heights) - 1))
    used = 0
    while True:
        before = heights[first - 1] if first > 0 else room
        after = heights[end] if end < len(heights) else room
        # in turn, so that the one chosen stays in the middle
        below = end - chosen <= chosen - first
        if used + (after if below else before) > room:
            below = not below
        if used + (after if below else before) > room:
            return first, end
        used += after if below else before
        first, end = (first, end + 1) if below else (first - 1, end)


def _fill(canvas: Canvas, top: int, share: float) -> None:
    """A bar that grows over a row of text, which stays readable."""
    if share > 0:
        canvas.invert((0, top, round(canvas.width * min(share, 1.0)), top + ROW))


def _seconds(value: int) -> str:
    return f"{value // 60}:{value % 60:02d}"


def _ellipsis(line: Line, canvas: Canvas) -> Line:
    marks = list(line.clusters)
    room = canvas.width - canvas.measure("…")[0]
    while marks and sum(canvas.measure(c)[0] for c in marks) > room:
        marks.pop()
    return Line((*marks, "…"), line.width, line.height)


def _logo(canvas: Canvas, y: int) -> None:
    """The name in letters of twice their size."""
    word = Canvas((3 * 6, 10), canvas.fonts)
    word.text(0, 0, "exo")
    large = word.image.resize((3 * 18, 30), Image.Resampling.NEAREST)
    canvas.image.paste(large, ((canvas.width - large.width + 3) // 2, y))
    canvas.said.append("exo")


def _bounce(canvas: Canvas, y: int, frame: int) -> None:
    """Five dots, one of them large; it walks there and back."""
    place = frame % 8
    place = place if place < 5 else 8 - place
    for dot in range(5):
        x = canvas.width // 2 - 26 + 12 * dot
        size = 3 if dot == place else 1
        canvas.draw.rectangle(
            (x + 2 - size // 2, y - size // 2, x + 2 + size // 2, y + size // 2), fill=1
        )


def _wave(canvas: Canvas, levels: tuple[float, ...], middle: int, reach: int) -> None:
    """Loudness over time as bars about a middle line, the newest at the right."""
    bars = canvas.width // 4
    shown = (0.0,) * max(0, bars - len(levels)) + levels[-bars:]
    for number, level in enumerate(shown):
        x = 4 * number + 1
        height = round(min(max(level, 0.0), 1.0) * reach)
        canvas.draw.rectangle((x, middle - height, x + 1, middle + height), fill=1)


def _bar(canvas: Canvas, top: int, room: int, scroll: int, total: int) -> None:
    """The position in a text that is longer than the screen: dots, and a bar over what is seen."""
    x = canvas.width - 1
    for y in range(top, top + room, 4):
        canvas.image.putpixel((x, y), 1)
    size = max(4, room * room // total)
    start = top + (room - size) * scroll // max(1, total - room)
    canvas.draw.line((x, start, x, start + size - 1), fill=1)
