"""What a terminal sends, as keys; and the line that is being typed. Owns bytes in, names out; reads no
file and draws nothing. Invariant: any bytes are taken; what is no known key is dropped whole."""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass, field

# xterm, VT220, the Linux console
_SEQUENCES = {
    "[A": "Up",
    "[B": "Down",
    "[C": "Right",
    "[D": "Left",
    "OA": "Up",
    "OB": "Down",
    "OC": "Right",
    "OD": "Left",
    "[H": "Home",
    "[F": "End",
    "OH": "Home",
    "OF": "End",
    "[1~": "Home",
    "[4~": "End",
    "[3~": "Delete",
    "[5~": "PageUp",
    "[6~": "PageDown",
    "OP": "F1",
    "[11~": "F1",
    "[[A": "F1",
    "OQ": "F2",
    "[12~": "F2",
    "[[B": "F2",
    "OR": "F3",
    "[13~": "F3",
    "[[C": "F3",
}
_CONTROLS = {
    "\r": "Enter",
    "\n": "Enter",
    "\t": "Tab",
    "\x7f": "Backspace",
    "\b": "Backspace",
    "\x01": "Home",
    "\x03": "Quit",
    "\x04": "Quit",
    "\x05": "End",
    "\x0c": "Redraw",
    "\x15": "Clear",
}
_SEQUENCE = re.compile(r"\x1b(\[\[[A-E]|\[[0-?]*[ -/]*[@-~]|O[ -~])")
_PARTIAL = re.compile(r"\x1b(\[\[?[0-?]*[ -/]*|O)?\Z")
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"


@dataclass(frozen=True)
class Key:
    """A named key, or text that was typed or pasted (then `name` is empty)."""

    name: str
    text: str = ""


class Keys:
    """Feed bytes, get keys. An escape that nothing follows is the Escape key once `idle` is told."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def waiting(self) -> bool:
        """Whether a sequence has begun that is not complete."""
        return bool(self._rest)

    def feed(self, raw: bytes) -> list[Key]:
        self._rest += self._decoder.decode(raw)
        return self._take(final=False)

    def idle(self) -> list[Key]:
        """Nothing followed for a moment: what waits is complete as it is."""
        return self._take(final=True)

    def _take(self, final: bool) -> list[Key]:
        keys: list[Key] = []
        while self._rest:
            text = self._rest
            if text.startswith(_PASTE):
                body, mark, after = text.removeprefix(_PASTE).partition(_PASTED)
                if not mark and not final:
                    break
                keys.append(Key("", _harmless(re.sub(r"[\r\n\t]+", " ", body))))
                self._rest = after
            elif text[0] == "\x1b":
                if match := _SEQUENCE.match(text):
                    self._rest = text[match.end() :]
                    if name := _SEQUENCES.get(match.group(1)):
                        keys.append(Key(name))
                elif _PARTIAL.match(text) and not final:
                    break
                else:
                    keys.append(Key("Escape"))
                    self._rest = text[1:]
            else:
                keys.append(self._plain())
        return [key for key in keys if key.name or key.text]

    def _plain(self) -> Key:
        char, self._rest = self._rest[0], self._rest[1:]
        if char in _CONTROLS:
            return Key(_CONTROLS[char])
        if char == " ":
            return Key("Space", " ")
        return Key("", _harmless(char))


def _harmless(text: str) -> str:
    """Without control characters: the line goes to the terminal, which would obey them."""
    return "".join(char for char in text if char.isprintable() or char == "\u200d")


def width(text: str) -> int:
    """Columns that `text` takes in a terminal."""
    total = 0
    for char in text:
        if unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        total += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return total


@dataclass
class LineEditor:
    """The line being typed; `cursor` counts characters before it."""

    text: str = ""
    cursor: int = 0
    limit: int = field(default=100_000)

    def insert(self, text: str) -> None:
        text = text[: self.limit - len(self.text)]
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def key(self, name: str) -> bool:
        """Apply an editing key; False when it is none."""
        match name:
            case "Left":
                self.cursor = self._before(self.cursor)
            case "Right":
                self.cursor = self._after(self.cursor)
            case "Home":
                self.cursor = 0
            case "End":
                self.cursor = len(self.text)
            case "Backspace":
                start = self._before(self.cursor)
                self.text = self.text[:start] + self.text[self.cursor :]
                self.cursor = start
            case "Delete":
                self.text = self.text[: self.cursor] + self.text[self._after(self.cursor) :]
            case "Clear":
                self.text, self.cursor = "", 0
            case _:
                return False
        return True

    def take(self) -> str:
        """Return the line and begin a new one."""
        text, self.text, self.cursor = self.text, "", 0
        return text

    def window(self, columns: int) -> tuple[str, int]:
        """Return what of the line fits `columns`, and the column of the cursor in it."""
        start, room = self.cursor, columns - 1  # the cursor itself takes a column
        while start > 0:
            before = self._before(start)
            room -= width(self.text[before:start])
            if room < 0:
                break
            start = before
        end, room = start, columns
        while end < len(self.text):
            after = self._after(end)
            room -= width(self.text[end:after])
            if room < 0:
                break
            end = after
        return self.text[start:end], width(self.text[start : self.cursor])

    def _before(self, place: int) -> int:
        place -= 1
        while place > 0 and self._inner(place):
            place -= 1
        return max(place, 0)

    def _after(self, place: int) -> int:
        place += 1
        while place < len(self.text) and self._inner(place):
            place += 1
        return min(place, len(self.text))

    def _inner(self, place: int) -> bool:
        """Whether the character belongs to the one before: a mark, a selector, a joined emoji."""
        return width(self.text[place]) == 0 or self.text[place - 1] == "\u200d"
