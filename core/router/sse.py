"""Server-Sent Events out of bytes (WHATWG HTML 9.2). Owns lines, comments and their limit; knows no JSON.

Invariant: however the bytes are cut into pieces, the same events come out. Lines end only at CR, LF or
CRLF: text libraries also split at U+2028 and U+0085, which JSON may hold unescaped."""

from __future__ import annotations

LIMIT = 16 * 1024 * 1024  # bytes of one event at most


class EventReader:
    """Feed it the body; it gives the data of each event that is complete."""

    def __init__(self) -> None:
        self._tail: list[bytes] = []  # pieces of a line whose end has not come
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._first = True
        self.seen = False  # whether anything was an event at all

    def feed(self, piece: bytes) -> list[str]:
        """Raises ValueError for an event over LIMIT."""
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        if not piece:
            return []
        self._after_cr = piece.endswith(b"\r")
        first, *rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._grow(first)
        events = []
        for part in rest:
            events += self._line(b"".join(self._tail))
            self._tail = []
            self._grow(part)
        return events

    def end(self) -> list[str]:
        """What a body without its last blank line still holds."""
        line = b"".join(self._tail)
        self._tail = []
        return self._line(line) + self._line(b"")

    def _grow(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LIMIT:
            raise ValueError(f"an event is over {LIMIT >> 20} MB")
        if part:
            self._tail.append(part)

    def _line(self, line: bytes) -> list[str]:
        if self._first and line:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self.seen = True
            else:
                self._size -= len(line)  # a comment or another field: nothing of it is kept
            return []
        data, self._data, self._size = self._data, [], 0
        return [b"\n".join(data).decode("utf-8", "replace")] if data else []
