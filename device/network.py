"""The Wi-Fi page of the settings: draws the steps of wifi_page.py and hands it keys and what was typed. Owns
its place among the pages; a page that goes out of sight takes the hotspot along.

Invariant: a password is neither spoken nor read aloud."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from exo.device.browse import NEVER, Page, Scrolled
from exo.device.entry import Entry
from exo.device.events import Sync
from exo.device.pages import Row, View
from exo.device.wifi_page import WifiFlow

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

Opens = Callable[[Callable[[], None]], WifiFlow]  # makes the steps, given what to call on a change
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIGNS = "-_.!?@#$%&*+=/:;,()[]{}<>~^|'\"`\\"


class Secret(Entry):
    """A password by letters: all that a keyboard has."""

    @property
    def wheel(self) -> list[str]:
        space = [" "] if self.text else []
        signs = [*LETTERS, *"0123456789", *LETTERS.upper(), *SIGNS, *space]
        return [*signs, "back", "delete", "send"]

    def said(self, text: str) -> None:
        """A password is not spoken."""

    def aloud(self) -> str:
        return self.title


class WifiPage(Page):
    """One page for all steps but those where something is typed."""

    state = "wifi"

    def __init__(self, device: Handheld, opens: Opens, parent: Page | None = None) -> None:
        super().__init__(device, device.texts("wifi"), parent)
        self.flow = opens(lambda: device.post(Sync(threading.Event())))
        self._card = Scrolled(device, "", "card")
        self._text = ""

    def view(self) -> View:
        found = self.flow.view()
        kind = found.pop("page")
        if kind == "entry":  # its own page stands in front
            found, kind = {"text": found["hint"], "progress": -1.0}, "progress"
        if kind == "list":
            found["rows"] = tuple(Row(*row) for row in found["rows"])
        elif kind == "card":
            if found["text"] != self._text:
                self._text = found["text"]
                self._card = Scrolled(self.device, self._text, "card")
            found |= {"lines": self._card.lines, "scroll": self._card.pixels}
        return View(kind, NEVER, **{"title": self.title, **found})

    def key(self, name: str) -> None:
        card = self.flow.view()["page"] == "card"
        if not (card and name in ("up", "down") and self._card.move(1 if name == "down" else -1)):
            self.flow.key(name)
        self.follow()

    def follow(self) -> None:
        """Go where the steps have gone: to letters, or away."""
        step = self.flow.view()
        if self.flow.left:
            self.back()
        elif step["page"] == "entry":
            kind = Secret if self.flow.step.name == "password" else Entry
            self.device.go(kind(self.device, step["title"], self._typed, self))

    def _typed(self, text: str) -> None:
        self.flow.entered(text)
        self.device.go(self)
        self.follow()

    def shown(self) -> None:
        """Back from the letters, with nothing entered."""
        self.flow.key("back")

    def hidden(self) -> None:
        """Out of sight: what is up comes down, unless letters stand in front."""
        page = self.device.page
        if not (isinstance(page, Entry) and page.parent is self):
            self.flow.close()

    def aloud(self) -> str:
        found = self.flow.view()
        if found["page"] == "list":
            return f"{found['title']}. {found['rows'][found['chosen']][0]}"
        return f"{found['title']}. {found.get('text', '')}"
