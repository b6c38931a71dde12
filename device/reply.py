"""The reply that is being read: its words as they stream in, their lines, the sentences to speak, and
which part is in sight. Owns no time but what it is told, and no state of the machine.

Invariant: `text` is what exod said, whole messages over the pieces that announced them; the sentences
handed out, joined, are that text."""

from __future__ import annotations

import datetime

from exo.device.layouts import Layout
from exo.device.pages import View
from exo.device.sentences import Splitter
from exo.device.text import Line, plain


class Reply:
    """One turn's answer. Tickets and turn ids belong to the handheld."""

    def __init__(self, pages: Layout) -> None:
        self._pages = pages
        self.begin(0, "", 0)
        self.streaming = False

    def use(self, pages: Layout) -> None:
        """Lay it out anew: the letters have another size now."""
        self._pages, self._laid = pages, ""

    def begin(self, ticket: int, question: str, voice: int) -> None:
        """Forget the last reply; `voice` is the speech's ticket, 0 for a silent one."""
        self.ticket, self.question, self.voice = ticket, question, voice
        self.turn = ""
        self.recalled: list[str] = []  # ids of what was remembered for it, the best first
        self.streaming = True
        self.speaking = False
        self._stopped = False
        self._messages: dict[str, str] = {}
        self._splitter = Splitter()
        self._given = 0  # visible letters of the sentences that were handed out
        self._place = -1  # visible letters before the sentence that sounds now; -1: none yet
        self._lines: tuple[Line, ...] = ()
        self._laid = ""
        self._by_hand: int | None = None  # the first line in sight, chosen by a button

    @property
    def text(self) -> str:
        return "\n\n".join(text for text in self._messages.values() if text.strip())

    @property
    def active(self) -> bool:
        """Whether words or sounds are still to come."""
        return self.streaming or self.speaking

    def delta(self, message: str, text: str) -> list[tuple[int, str]]:
        """Append a piece; returns the sentences it completes with their places."""
        if message not in self._messages:
            done = self._mark(self._splitter.flush())
            self._messages[message] = text
            return done + self._mark(self._splitter.feed(text))
        self._messages[message] += text
        return self._mark(self._splitter.feed(text))

    def whole(self, message: str, text: str) -> list[tuple[int, str]]:
        """A message is complete: its text counts, and what was not spoken of it is now."""
        known = self._messages.get(message, "")
        missing = text[len(known) :] if text.startswith(known) else ""
        done = self.delta(message, missing) if missing or not known else []
        self._messages[message] = text
        return done + self._mark(self._splitter.flush())

    def end(self, reason: str) -> list[tuple[int, str]]:
        """The turn is over."""
        self.streaming, self._stopped = False, reason == "interrupted"
        rest = self._mark(self._splitter.flush())
        self.speaking = bool(self.voice) and self._given > 0
        return rest

    def stop(self) -> None:
        """Nothing more is wanted of it."""
        self._stopped = self._stopped or self.streaming
        self.streaming = self.speaking = False
        self.voice = 0

    def uttered(self, ticket: int, place: int) -> None:
        """The sentence at `place` begins to sound."""
        if ticket == self.voice and ticket:
            self._place, self.speaking = place, True

    def spoken(self, ticket: int) -> bool:
        """All of it was heard; False when another text was meant."""
        if ticket != self.voice or not ticket:
            return False
        self.speaking = False
        return True

    def mute(self, ticket: int) -> bool:
        """It cannot be spoken; False when another text was meant."""
        if ticket != self.voice or not ticket:
            return False
        self.voice, self.speaking = 0, False
        return True

    def scroll(self, lines: int) -> None:
        """Move by hand; at the end it follows again."""
        last = self._pages.last(self._lines)
        first = min(max(self._first() + lines, 0), last)
        self._by_hand = None if first == last and lines > 0 else first

    def view(self, now: datetime.datetime, frame: int, pending: bool) -> View:
        """The page of this reply."""
        self._lay_out()
        return View(
            "reply",
            now,
            self.question,
            frame=frame if self.streaming else 0,
            lines=self._lines,
            scroll=sum(line.height for line in self._lines[: self._first()]),
            streaming=self.streaming,
            speaking=self.speaking,
            pending=pending,
            known=bool(self.recalled) and not self.streaming,
        )

    def _lay_out(self) -> None:
        texts = self._pages.texts
        text = plain(self.text)
        if not self.streaming and not text:
            text = texts("reply.stopped" if self._stopped else "reply.empty")
        elif self._stopped:
            text += " " + texts("reply.stopped")
        if text != self._laid:
            self._laid, self._lines = text, self._pages.lay_out(text)

    def _mark(self, sentences: list[str]) -> list[tuple[int, str]]:
        """Give each sentence its place: how many visible letters stand before it."""
        marked = []
        for sentence in sentences:
            marked.append((self._given, sentence))
            self._given += _letters(plain(sentence))
        return marked

    def _first(self) -> int:
        """The first line in sight: by hand, else where the voice is, else the end."""
        last = self._pages.last(self._lines)
        if self._by_hand is not None:
            return min(self._by_hand, last)
        if not self.voice:
            return last
        before = 0
        for number, line in enumerate(self._lines):
            before += _letters(str(line))
            if before > max(self._place, 0):
                # the line before stays in sight: the eye finds its way
                return min(max(0, number - 1), last)
        return last


def _letters(text: str) -> int:
    return sum(char.isalnum() for char in text)
