"""Notices: what the person should see although nobody asked. Owns the one that is shown and those that
wait for their turn.

Invariant: a notice is shown when nobody listens, thinks, speaks or types; behind a PIN only what rings
is, and without its words."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from exo.device.events import Alert
from exo.device.states import BROWSED, LOCKED, RESTS
from exo.device.wire import Notice

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

READ = 15.0  # letters a second that a notice stays, beside SHOWN seconds
SHOWN = 4.0
SPOKEN = 30.0  # seconds that one stays at most while it is read aloud


class Notices:
    """The handheld's notices."""

    def __init__(self, device: Handheld) -> None:
        self._device = device
        self.now = Notice("info", "")
        self.first = 0  # line of it that is the first in sight
        self.waiting: deque[Notice] = deque(maxlen=20)
        self.voice = 0  # speech's ticket, 0: silent

    def add(self, notice: Notice) -> None:
        """Show it when its turn comes."""
        self.waiting.append(notice)

    def alert(self, event: Alert) -> None:
        """Something of this device: at once, whatever goes on, when it is urgent."""
        notice = Notice(event.level, self._device.texts(event.key, why=event.why))
        if event.urgent:
            self._device.talk.aside = ""
            self._device.talk.stop()
            # locked, it is shown as what rings is: it holds no word of the person
            locked = self._device.machine.state in LOCKED
            self.show("notice" if locked else "failed", notice)
        else:
            self.add(notice)

    def show(self, trigger: str, notice: Notice) -> None:
        """Show it at once, if the state lets `trigger` happen."""
        if self._device.machine.fire(trigger):
            self.fill(notice)

    def fill(self, notice: Notice) -> None:
        """Fill in the notice of a state that was entered already."""
        self.now, self.first = notice, 0
        self._device.machine.touch(self.seconds)
        self._device.wake()
        if notice.aloud:
            self.say(notice.text)

    def say(self, text: str) -> None:
        """Read `text` aloud, if there is a voice."""
        voice = self._device.voice
        if text and voice.on and self._device.models_up:
            self.voice = voice.begin()
            voice.say(self.voice, text)
            voice.end(self.voice)

    def hush(self) -> None:
        """Stop reading aloud."""
        if self.voice:
            self.voice = 0
            self._device.voice.cancel()

    @property
    def seconds(self) -> float:
        """How long the present one stays."""
        return SHOWN + len(self.now.text) / READ

    def scroll(self, lines: int) -> None:
        pages = self._device.pages
        last = pages.last(pages.lay_out(self.now.text), "notice")
        self.first = min(max(0, self.first + lines), last)
        self._device.machine.touch(self.seconds)

    def tick(self) -> None:
        """Show the next one if its turn has come."""
        device = self._device
        state = device.machine.state
        if state in ("notice", "ring") and self.voice and device.machine.elapsed < SPOKEN:
            device.machine.touch(2.0)
        for notice in tuple(self.waiting):
            if self._turn(state, notice.level):
                self.waiting.remove(notice)
                if state in LOCKED:
                    title = device.texts(f"notice.{notice.level}")
                    notice = Notice(notice.level, device.texts("locked.rings"), title)
                self.show("notice", notice)
                return

    def _turn(self, state: str, level: str) -> bool:
        if state == "reply":
            return self._device.talk.rested
        if state in LOCKED:
            return level == "timer" and state in ("locked", "unlock")
        if state in BROWSED:  # what is looked at is not swept away, but by what rings
            return level == "timer"
        return state in RESTS
