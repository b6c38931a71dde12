"""Frames on a serial line: a kind, a payload, a check. Owns the bytes; knows no port, no clock and no protocol.
Runs under CPython and MicroPython alike, so it keeps to what both have.

A frame is 0xFE, kind (1 to 255), length of the payload (2 bytes, little-endian), the XOR of those four bytes,
the payload, and the CRC-32 (IEEE 802.3, as zlib's) of kind, length and payload (4 bytes, little-endian). 0xFE
stands in no UTF-8 text, so a line that people type on may carry frames too.

Invariant: a Reader that is fed any bytes, in pieces of any size, returns every whole frame that does not begin
inside another whole one, in order, and never a frame whose check fails."""

from binascii import crc32

START = 0xFE
TEXT = 0  # the kind under which a Reader returns bytes that belong to no frame
LONGEST = 0xFFFF  # bytes of a payload
_HEAD, _TAIL = 5, 4


class FrameError(ValueError):
    """A frame that cannot be made: its kind is not 1 to 255, or its payload too long."""


def frame(kind: int, payload: bytes) -> bytes:
    """The bytes of one frame. Raises FrameError."""
    if not 0 < kind < 256 or len(payload) > LONGEST:
        raise FrameError(f"frame of kind {kind}: {len(payload)} bytes")
    head = bytes((kind, len(payload) & 0xFF, len(payload) >> 8))
    check = crc32(payload, crc32(head)) & 0xFFFFFFFF
    guard = START ^ head[0] ^ head[1] ^ head[2]
    return bytes((START,)) + head + bytes((guard,)) + payload + check.to_bytes(4, "little")


class Reader:
    """Finds frames in what arrives. `limit`: a header that announces a longer payload is noise; `lost` counts
    bytes of damaged frames."""

    def __init__(self, limit: int = LONGEST) -> None:
        self.limit, self.lost = limit, 0
        self._held = b""

    @property
    def waits(self) -> bool:
        """Whether a frame has begun and is not whole."""
        return bool(self._held)

    def feed(self, data: bytes) -> "list[tuple[int, bytes]]":
        """What became whole by `data`: (kind, payload), and (TEXT, bytes) for what lies between frames."""
        held, found, at = self._held + data, [], 0
        while at < len(held):
            begin = held.find(bytes((START,)), at)
            if begin != at:
                begin = len(held) if begin < 0 else begin
                found.append((TEXT, held[at:begin]))
                at = begin
                continue
            size = self._size(held, at)
            if size < 0:
                self.lost += 1
                at = self._next(held, at)
            elif len(held) - at < size:
                break
            else:
                end = at + size
                found.append((held[at + 1], held[at + _HEAD : end - _TAIL]))
                at = end
        self._held = held[at:]
        return found

    def give_up(self) -> "list[tuple[int, bytes]]":
        """Take the frame that has begun for noise, as its rest does not come; what was whole behind its
        beginning is returned."""
        held, self._held = self._held, b""
        if not held:
            return []
        self.lost += 1
        return self.feed(held[self._next(held, 0) :])

    def _size(self, held: bytes, at: int) -> int:
        """Bytes of the frame at `at`, as far as can be told; -1 for none."""
        if len(held) - at < _HEAD:
            return _HEAD
        kind, low, high, guard = held[at + 1 : at + _HEAD]
        length = low | high << 8
        if not kind or guard != START ^ kind ^ low ^ high or length > self.limit:
            return -1
        size = _HEAD + length + _TAIL
        if len(held) - at < size:
            return size
        end = at + size - _TAIL
        check = crc32(held[at + _HEAD : end], crc32(held[at + 1 : at + 4])) & 0xFFFFFFFF
        return size if check.to_bytes(4, "little") == held[end : end + _TAIL] else -1

    def _next(self, held: bytes, at: int) -> int:
        """Where the next frame may begin, behind damage at `at`."""
        begin = held.find(bytes((START,)), at + 1)
        begin = len(held) if begin < 0 else begin
        self.lost += begin - at - 1
        return begin
