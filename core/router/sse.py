"""Server-Sent Events out of bytes (WHATWG HTML 9.2). Owns lines, comments and their limit; knows no JSON.

Invariant: however the bytes are cut into pieces, the same events come out. Lines end only at CR, LF or
CRLF: text libraries also split at U+2028 and U+0085, which JSON may hold unescaped."""

from __future__ import annotations

import codecs
import io

LIMIT = 16 * 1024 * 1024  # characters of one event at most


class EventReader:
    """Feed it the body; it gives the data of each event that is complete."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._tail: list[str] = []  # pieces of a line whose end has not come
        self._data: list[str] = []
        self._size = 0
        self.seen = False  # whether anything was an event at all

    def feed(self, piece: bytes, final: bool = False) -> list[str]:
        """Raises ValueError for an event over LIMIT."""
        first, *rest = self._decoder.decode(piece, final).split("\n")
        self._grow(first)
        events = []
        for part in rest:
            events += self._line("".join(self._tail))
            self._tail = []
            self._grow(part)
        return events

    def end(self) -> list[str]:
        """What a body without its last blank line still holds."""
        return self.feed(b"\n\n", final=True)

    def _grow(self, part: str) -> None:
        self._size += len(part)
        if self._size > LIMIT:
            raise ValueError(f"an event is over {LIMIT >> 20} MB")
        self._tail.append(part)

    def _line(self, line: str) -> list[str]:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
                self.seen = True
            else:
                self._size -= len(line)  # a comment or another field: nothing of it is kept
            return []
        data, self._data, self._size = self._data, [], 0
        return ["\n".join(data)] if data else []
