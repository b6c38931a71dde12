"""Text by buttons: a wheel of letters, and the digits of a PIN. Owns what is typed so far.

The wheel begins with the letters that are likely next, then the alphabet; what acts (send, delete, back)
lies just the other way. Invariant: no key but back on an empty line, and what sends, leaves the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from exo.device.browse import NEVER, Page
from exo.device.pages import Row, View
from exo.device.text import clusters

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

VOWELS = frozenset("aeiouyäöüáéíóú")
LIKELY = 6  # letters that stand before the alphabet
AROUND = 4  # letters shown on each side of the one chosen
LONGEST = 200
DIGITS = "0123456789"
PIN = (4, 8)  # digits


def likely(text: str, common: str) -> str:
    """The letters of `common` (the most frequent first) to begin with after `text`: a vowel after
    consonants, consonants after a vowel."""
    last = text[-1:].lower()
    vowels = [char for char in common if char in VOWELS]
    others = [char for char in common if char not in VOWELS]
    if not last.isalpha():
        mixed = list(common)
    elif last in VOWELS:
        mixed = others[: LIKELY - 1] + vowels
    else:
        mixed = vowels[: LIKELY - 2] + others
    return "".join(mixed[:LIKELY])


def _hint(device: Handheld, name: str) -> str:
    """What a hold does: on a board of one key it chooses."""
    fingers = device.fingers
    return device.texts("entry.single" if fingers.single else name, ok=device.label(fingers.ok))


class Entry(Page):
    """A line of text; `send` gets it. What is spoken is added to it."""

    state = "entry"
    holds = True

    def __init__(
        self, device: Handheld, title: str, send: Callable[[str], None], parent: Page | None = None
    ) -> None:
        super().__init__(device, title, parent)
        self._send, self.text = send, ""
        self._place = 0

    @property
    def wheel(self) -> list[str]:
        """Letters, and the names of what acts."""
        texts = self.device.texts
        first = likely(self.text, texts("letters.common"))
        space = [" "] if self.text and not self.text.endswith(" ") else []
        letters = [*first[:2], *space, *first[2:], *texts("letters"), *DIGITS, *texts("signs")]
        return [*letters, "back", "delete", "send"]

    def view(self) -> View:
        wheel = self.wheel
        around = range(self._place - AROUND, self._place + AROUND + 1)
        rows = tuple(Row(self._label(wheel[place % len(wheel)])) for place in around)
        return View(
            "entry",
            NEVER,
            self.title,
            self.text,
            hint=_hint(self.device, "entry.hint"),
            rows=rows,
            chosen=AROUND,
            progress=self.growing,
        )

    def _label(self, sign: str) -> str:
        if sign == " ":
            return self.device.texts("entry.space")
        return sign if len(sign) == 1 else self.device.texts(f"entry.{sign}")

    def key(self, name: str) -> None:
        wheel = self.wheel
        if name in ("up", "down"):
            self._place = (self._place + (1 if name == "down" else -1)) % len(wheel)
        elif name in ("ok", "right"):
            sign = wheel[self._place % len(wheel)]
            if len(sign) == 1:
                self._add(sign)
            else:
                {"send": self.send, "delete": self._delete, "back": self.back}[sign]()
        elif self.text:
            self._delete()
        else:
            self.back()

    def _add(self, sign: str) -> None:
        self.text = (self.text + sign)[:LONGEST]
        self._place = 0

    def _delete(self) -> None:
        self.text = "".join(clusters(self.text)[:-1])

    def hold(self) -> None:
        if self.device.fingers.single:  # its one key chooses by being held
            self.key("ok")
        else:
            self.send()

    def send(self) -> None:
        if self.text.strip():
            self._send(self.text.strip())

    def said(self, text: str) -> None:
        joined = f"{self.text.rstrip()} {text.strip()}".strip()
        self.text, self._place = joined[:LONGEST], -1  # sending is next

    def aloud(self) -> str:
        return f"{self.title}. {self.text}"


class Digits(Page):
    """A PIN, digit by digit; `done` gets it. Shows how many there are, never which."""

    holds = True

    def __init__(
        self,
        device: Handheld,
        state: str,
        title: str,
        done: Callable[[str], None],
        parent: Page | None = None,
        wait: Callable[[], int] = lambda: 0,
        lost: Callable[[], None] | None = None,
    ) -> None:
        """`wait` is the seconds until the next try counts; `lost` is what a person does who has
        forgotten it."""
        super().__init__(device, title, parent)
        self.state, self._done, self._wait, self._lost = state, done, wait, lost
        self.clear()

    def clear(self, hint: str = "") -> None:
        """Begin anew."""
        self._typed, self._place = "", 0
        self._hint = hint

    @property
    def wheel(self) -> list[str]:
        more = ["lost"] if self._lost else []
        return [*DIGITS, *more, "back", "delete", "send"]

    def view(self) -> View:
        texts, sign = self.device.texts, self.wheel[self._place % len(self.wheel)]
        hint = self._hint or _hint(self.device, "pin.hint")
        return View(
            "lock",
            NEVER,
            self.title,
            sign if len(sign) == 1 else texts(f"entry.{sign}"),
            hint=hint,
            filled=len(self._typed),
            elapsed=self._wait(),
            progress=self.growing,
        )

    def key(self, name: str) -> None:
        self._hint = ""
        if name in ("up", "down"):
            # up counts up, as on a lock
            self._place = (self._place + (1 if name == "up" else -1)) % len(self.wheel)
        elif name in ("ok", "right"):
            sign = self.wheel[self._place % len(self.wheel)]
            if len(sign) == 1:
                self._typed = (self._typed + sign)[: PIN[1]]
            elif sign == "lost" and self._lost:
                self._lost()
            else:
                {"send": self.send, "delete": self._delete, "back": self.back}[sign]()
        elif self._typed:
            self._delete()
        else:
            self.back()

    def _delete(self) -> None:
        self._typed = self._typed[:-1]

    def hold(self) -> None:
        if self.device.fingers.single:
            self.key("ok")
        else:
            self.send()

    def send(self) -> None:
        if self._wait():
            return
        if len(self._typed) < PIN[0]:
            self._hint = self.device.texts("pin.short", digits=str(PIN[0]))
            return
        self._done(self._typed)

    def aloud(self) -> str:
        return self.title  # a digit that is heard is no secret
