"""What a key means where: from keys that go down and up to what a page is told.

Talk records. On a page of a board that lacks keys it stands in for them: tapped it is ok, without arrows
next, and then held it is ok; twice it is back. Elsewhere talk twice is the menu. Invariant: the press that lights the screen, and
one that a card surprises, mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exo.device.cards import Card
from exo.device.fingers import ARROWS, DOUBLE, HOLD
from exo.device.menu import menu
from exo.device.settings import unlock
from exo.device.states import LOCKED, RESTS
from exo.device.talk import SHORT
from exo.device.views import VIEWS

if TYPE_CHECKING:
    from exo.device.handheld import Handheld


class Hands:
    """Keys to meanings, for one handheld."""

    def __init__(self, device: Handheld) -> None:
        self._device = device
        self._tap: tuple[str, float] | None = None  # what a tap of talk means, and from when on
        self._again = False  # the press of talk that is under way follows a tap closely

    def button(self, name: str, down: bool) -> None:
        """A key went down or up."""
        device = self._device
        fingers = device.fingers
        if not down:
            self._released(name, fingers.release(name))
            return
        if name not in fingers.names or not fingers.press(name):
            return
        if device.dark or isinstance(device.page, Card) and device.page.sudden:
            fingers.spend(name)
            device.wake()
            return
        device.wake()
        if device.page is not None or device.machine.state in RESTS:
            device.notices.hush()
        if name == "talk":
            self._talk()
        elif name == "menu":
            self._menu()
        elif name == "mute":
            device.talk.hush(not device.voice.muted)
        elif name in ARROWS or name == "back":
            self._key(name)

    def gesture(self, kind: str, name: str) -> None:
        """A second word on what the keys say themselves: they are read here, since a page has to see a
        hold while it grows, and talk has to record before it is known to be pressed twice."""
        if kind == "double" and name == "talk" and not self._records:
            self._twice()
        elif kind == "stuck":
            self.button(name, False)

    def tick(self) -> None:
        """Time went on: arrows repeat, a tap that nothing followed counts, and what a hold means happens
        while the key is down."""
        device = self._device
        fingers, page = device.fingers, device.page
        for name in fingers.repeats():
            self._key(name)
        if self._tap and device.clock.monotonic() >= self._tap[1]:
            name, self._tap = self._tap[0], None
            self._key(name)
        if not self._records and not fingers.single and fingers.held("talk") >= 2 * SHORT:
            holds = page is not None and page.holds and fingers.ok == "talk"
            if not holds and fingers.spend("talk"):
                device.talk.press()
        name = fingers.ok
        free = name == "ok" or not self._records
        if free and fingers.held(name) >= HOLD and fingers.spend(name):
            self._held()

    @property
    def waiting(self) -> bool:
        """Whether a tap waits to become two."""
        return self._tap is not None

    @property
    def _records(self) -> bool:
        """Whether talk records as soon as it goes down: not where it stands in for another key."""
        names, state = self._device.fingers.names, self._device.machine.state
        return state in VIEWS or {"ok", "back", "up", "down"} <= names

    def _talk(self) -> None:
        device = self._device
        state, self._again = device.machine.state, device.fingers.doubled("talk")
        if state == "listening" and self._again:  # what the first tap began is not meant
            device.talk.back()
            device.talk.press()
        elif state in LOCKED and state in VIEWS:
            self._key("ok")
        elif self._records:
            device.talk.press()
        elif self._again:
            self._twice()
        else:
            self._tap = None

    def _released(self, name: str, seconds: float | None) -> None:
        device = self._device
        if name == "talk" and device.machine.state == "listening":
            if self._again and device.machine.elapsed < SHORT and not device.talk.aside:
                self._menu()
            else:
                device.talk.release()
        elif seconds is None or seconds >= HOLD:
            return
        elif name == "ok":
            self._key("ok")
        elif name == "talk" and not self._records and device.page is not None:
            means = "down" if device.fingers.lone else device.fingers.ok
            if means != "ok" or "ok" not in device.fingers.names:
                self._tap = ("ok" if means == "talk" else means, device.clock.monotonic() + DOUBLE)

    def _twice(self) -> None:
        """Talk twice where it stands in for another key: back."""
        self._tap = None
        if self._device.page is not None and self._device.fingers.spend("talk"):
            self._key("back")

    def _menu(self) -> None:
        device = self._device
        if device.machine.can("menu"):
            device.talk.aside = ""
            device.talk.stop()
            device.go(menu(device))

    def _key(self, name: str) -> None:
        """up, down, left, right, ok or back, wherever we are."""
        device = self._device
        state, page = device.machine.state, device.page
        step = -1 if name in ("up", "left") else 1
        if page is not None:
            device.machine.touch(page.patience)
            page.key(name)
        elif state == "locked":
            device.go(unlock(device))
        elif name == "back" or state in ("notice", "ring") and name == "ok":
            device.talk.back()
        elif state in ("notice", "ring"):
            device.notices.scroll(step)
        elif state == "reply" and name == "ok":
            device.talk.ok()
        elif state == "reply":
            device.talk.scroll(step)
        elif state == "idle" and name == "ok":
            device.talk.again()
        elif state == "idle":
            self._menu()

    def _held(self) -> None:
        """ok was held."""
        device, page = self._device, self._device.page
        if page is None:
            device.notices.say(self._aloud())
            return
        device.machine.touch(page.patience)
        if page.holds:
            page.hold()
        elif device.fingers.single:
            page.key("ok")
        else:
            device.notices.say(page.aloud())

    def _aloud(self) -> str:
        """What is read where no page is browsed; nothing behind a PIN."""
        device = self._device
        state = device.machine.state
        if state == "reply":
            return device.talk.reply.text
        if state == "notice":
            return device.notices.now.text
        shown = device.display.shown
        return shown.text if state == "idle" and shown else ""
