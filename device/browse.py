"""Pages that are browsed: lists, texts, and what is done only behind a hold. Owns the place on each.

Invariant: every page is left by the key back; where a board has none, a list ends with a row that does the
same and talk pressed twice does it everywhere."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exo.device.fingers import HOLD
from exo.device.pages import Row, View
from exo.device.text import Line, plain, seen

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

NEVER = datetime.datetime.min  # for pages without a clock, so that they do not change with it
STEPS = 20  # of the bar that grows while a key is held


class Page:
    """One page. `state` is its state of the machine; `holds`: a held ok means something here, else it
    reads the page aloud; `arrows`: there is something to go up and down in."""

    state = ""
    holds = False

    def __init__(self, device: Handheld, title: str = "", parent: Page | None = None) -> None:
        self.device, self.title, self.parent = device, title, parent

    def view(self) -> View:
        raise NotImplementedError

    def key(self, name: str) -> None:
        """up, down, left, right, ok or back was pressed."""
        if name in ("back", "left"):
            self.back()

    def back(self) -> None:
        """To where it was opened from."""
        device, parent = self.device, self.parent
        if parent and parent.state == device.machine.state:
            device.page = parent
            return
        trigger = parent.state if parent and device.machine.can(parent.state) else "back"
        if device.machine.fire(trigger):
            device.page = parent if parent and parent.state == device.machine.state else None
            if device.page:
                device.page.shown()

    @property
    def patience(self) -> float | None:
        """Seconds that it has after a press; None: as its state says."""
        return None

    def shown(self) -> None:
        """It came back into sight."""

    def hidden(self) -> None:
        """It went out of sight; `device.page` is what came instead."""

    def hold(self) -> None:
        """ok was held; only where `holds`."""

    def said(self, text: str) -> None:
        """Words that were spoken or typed here; only for pages that take them."""

    def aloud(self) -> str:
        """What is read aloud."""
        return self.title

    @property
    def growing(self) -> float:
        """How far the hold of ok is, 0 to 1, in steps that can be seen."""
        fingers = self.device.fingers
        return min(1.0, int(STEPS * fingers.held(fingers.ok) / HOLD) / STEPS) if self.holds else 0.0


@dataclass(frozen=True)
class Item:
    """A row of a list and what choosing it does (None: nothing)."""

    label: str
    act: Callable[[], None] | None = None
    value: str = ""
    icon: str = ""
    marked: bool = False


class ListPage(Page):
    """Rows made anew by `items` each time it is drawn, so that they never tell of yesterday."""

    def __init__(
        self,
        device: Handheld,
        state: str,
        title: str,
        items: Callable[[], list[Item]],
        parent: Page | None = None,
        chosen: int = 0,
    ) -> None:
        super().__init__(device, title, parent)
        self.state, self._items, self.chosen = state, items, chosen

    @property
    def items(self) -> list[Item]:
        found = self._items()
        if "back" not in self.device.fingers.names:
            found.append(Item(self.device.texts("back"), self.back, icon="back"))
        return found

    def view(self) -> View:
        items = self.items
        self.chosen = min(self.chosen, max(0, len(items) - 1))
        rows = tuple(
            Row(each.label if seen(each.label) else "…", each.value, each.icon, each.marked)
            for each in items
        )
        return View("list", NEVER, self.title, rows=rows, chosen=self.chosen)

    def key(self, name: str) -> None:
        items = self.items
        if name in ("up", "down") and items:
            self.chosen = (self.chosen + (1 if name == "down" else -1)) % len(items)
        elif name in ("ok", "right") and self.chosen < len(items):
            act = items[self.chosen].act
            if act:
                act()
        else:
            super().key(name)

    def aloud(self) -> str:
        items = self.items
        if self.chosen >= len(items):
            return self.title
        item = items[self.chosen]
        place = f"{self.chosen + 1}/{len(items)}"
        return f"{self.title}. {item.label} {item.value}".strip() + f". {place}."


class Scrolled:
    """Lines of a text and the first in sight. `kind` is the view that shows them."""

    def __init__(self, device: Handheld, text: str, kind: str = "reply") -> None:
        self._device, self._text, self._kind = device, text, kind
        self._laid: object = None
        self._lines: tuple[Line, ...] = ()
        self.first = 0

    @property
    def lines(self) -> tuple[Line, ...]:
        pages = self._device.pages
        if self._laid is not pages:  # another size of letters was chosen
            self._laid, self._lines = pages, pages.lay_out(self._text)
        return self._lines

    @property
    def pixels(self) -> int:
        return sum(line.height for line in self.lines[: self.first])

    def move(self, lines: int) -> bool:
        """Scroll; False when there is nothing further."""
        last = self._device.pages.last(self.lines, self._kind)
        before, self.first = self.first, min(max(0, self.first + lines), last)
        return self.first != before


class TextPage(Page):
    """A text to read. `act` is what ok does (None: back)."""

    def __init__(
        self,
        device: Handheld,
        state: str,
        title: str,
        text: str,
        parent: Page | None = None,
        act: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(device, title, parent)
        self.state, self.text, self._act = state, plain(text), act
        self._scrolled = Scrolled(device, self.text)

    def view(self) -> View:
        scrolled = self._scrolled
        return View("reply", NEVER, self.title, lines=scrolled.lines, scroll=scrolled.pixels)

    def key(self, name: str) -> None:
        if name in ("up", "down"):
            moved = self._scrolled.move(1 if name == "down" else -1)
            if not moved and self.device.fingers.lone:  # its one key goes round
                self._scrolled.first = 0
        elif name in ("ok", "right"):
            (self._act or self.back)()
        else:
            super().key(name)

    def aloud(self) -> str:
        return f"{self.title}. {self.text}"


class Confirm(Page):
    """Something that is done only when ok is held; a tap of back is no."""

    state = "confirm"
    holds = True

    def __init__(
        self,
        device: Handheld,
        title: str,
        text: str,
        act: Callable[[], None],
        parent: Page | None = None,
        state: str = "confirm",
    ) -> None:
        super().__init__(device, title, parent)
        self.state, self._act = state, act
        self._scrolled = Scrolled(device, text, "card")
        self.text = text
        self._no = False  # the choice that is lit

    def view(self) -> View:
        texts, fingers = self.device.texts, self.device.fingers
        yes = texts("confirm.yes", ok=self.device.label(fingers.ok))
        return View(
            "card",
            NEVER,
            self.title,
            self.text,
            "risk",
            lines=self._scrolled.lines,
            scroll=self._scrolled.pixels,
            choices=(yes, texts("confirm.no")),
            chosen=int(self._no),
            progress=0.0 if self._no else self.growing,
        )

    def key(self, name: str) -> None:
        if name == "down":
            self._no = not self._scrolled.move(1) and (not self._no or not self.device.fingers.lone)
        elif name == "up":
            if not self._no:
                self._scrolled.move(-1)
            self._no = False
        elif name == "ok" and self._no:
            self.back()
        else:
            super().key(name)

    def hold(self) -> None:
        if self._no:
            self.back()
        else:
            self._act()

    def aloud(self) -> str:
        return f"{self.title}. {self.text}"
