"""What both ends of the console's cable agree on: kinds of frames, long messages in parts, the proof of the
PIN, a bounded queue of bytes. Owns the link's own words; knows no port and nothing of what is said over it.

Invariant: a message that lost one of its parts is dropped whole; what came later is not touched."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from exo.core.base.frames import frame

JSON, LINK, LOG, PART = 1, 2, 5, 6
VERSION = 1
SIZE = 1024  # bytes of a payload: about a second at 9,600 baud, so that a ping is never far behind
PING = 5.0  # seconds between two pings of the client
SILENCE = 15.0  # seconds without a frame: the other side is gone
GIVE_UP = 1.0  # seconds until a frame that began and does not go on is noise
BOUND = 16384  # bytes that wait for the reader before the next event is taken
LONGEST = 8 * 1024 * 1024  # bytes of a message
OPEN = 4  # messages of which a part has come
_HEAD = 6


def pack(raw: bytes, number: int) -> list[bytes]:
    """The frames of one message: one of kind JSON, or several of kind PART: `number` of the message, place
    and count of the part (each two bytes, little-endian), then its bytes."""
    if len(raw) <= SIZE:
        return [frame(JSON, raw)]
    step = SIZE - _HEAD
    if len(raw) > LONGEST:
        raise ValueError(f"a message of {len(raw)} bytes")
    pieces = [raw[at : at + step] for at in range(0, len(raw), step)]
    ends = (number & 0xFFFF).to_bytes(2, "little"), len(pieces).to_bytes(2, "little")
    return [
        frame(PART, ends[0] + n.to_bytes(2, "little") + ends[1] + piece)
        for n, piece in enumerate(pieces)
    ]


class Joiner:
    """Puts the parts of long messages together; those of several may come in turns."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, list[bytes]] = OrderedDict()

    def take(self, payload: bytes) -> bytes | None:
        """The message that this part completes."""
        number, at, count = (
            int.from_bytes(payload[n : n + 2], "little") for n in range(0, _HEAD, 2)
        )
        if at == 0:
            self._open[number] = []
        pieces = self._open.get(number)
        if pieces is None or at != len(pieces):
            self._open.pop(number, None)  # a part is missing
            return None
        pieces.append(payload[_HEAD:])
        if len(pieces) >= count:
            return b"".join(self._open.pop(number))
        if len(self._open) > OPEN:
            self._open.popitem(last=False)
        return None


def key(digits: str, challenge: dict[str, Any]) -> bytes:
    """What the device keeps of a PIN: scrypt (RFC 7914) with the challenge's salt and cost. Raises
    ValueError, KeyError, TypeError for a challenge that is none."""
    salt, n, r, p = bytes.fromhex(challenge["salt"]), *(int(challenge[k]) for k in "nrp")
    if not (1 < n <= 2**17 and 0 < r <= 16 and 0 < p <= 4):
        raise ValueError("a challenge that costs too much")
    return hashlib.scrypt(digits.encode(), salt=salt, dklen=32, n=n, r=r, p=p, maxmem=2**28)


def proof(secret: bytes, who: str, device: str, client: str) -> str:
    """HMAC-SHA-256 (RFC 2104) of both sides' nonces: `who` (device or client) knows the secret."""
    return hmac.new(secret, f"exo {who} {device} {client}".encode(), hashlib.sha256).hexdigest()


class Outgoing:
    """Bytes that wait for a slow reader. Safe to use from several threads."""

    def __init__(self, wake: Callable[[], object], begun: bytes = b"") -> None:
        """`wake` is called when there is something to write; `begun` is the rest of a frame of the queue
        before this one."""
        self._wake, self._lock, self._open = wake, threading.Lock(), True
        self._queue: deque[tuple[bytes, int]] = deque([(begun, 0)] if begun else [])
        self._begun = bool(begun)
        self.size = len(begun)
        self.written = 0  # the number of the last event that went out whole

    def put(self, data: bytes, seq: int = 0, first: bool = False) -> None:
        """Append: what is no event before the events; `first`: before all but what has begun. `seq` is the event that `data` ends, -1 for a part
        of one, 0 for all else."""
        with self._lock:
            if not self._open or not data:
                return
            if first:
                self._queue.insert(1 if self._begun else 0, (data, seq))
            elif seq or not self._queue or not self._queue[-1][1]:
                self._queue.append((data, seq))
            else:
                events = (n for n, each in enumerate(self._queue) if each[1])
                at = max(next(events), 1 if self._begun else 0)
                self._queue.insert(at, (data, seq))
            self.size += len(data)
        self._wake()

    def peek(self) -> bytes:
        """What is to be written next."""
        with self._lock:
            return self._queue[0][0] if self._queue else b""

    def wrote(self, count: int) -> None:
        """The first `count` bytes of `peek` are gone."""
        with self._lock:
            data, seq = self._queue.popleft()
            self.size -= count
            self._begun = count < len(data)
            if self._begun:
                self._queue.appendleft((data[count:], seq))
            else:
                self.written = seq if seq > 0 else self.written

    def forget_events(self) -> None:
        """Drop events that have not begun: they are asked for anew."""
        with self._lock:
            kept = [e for n, e in enumerate(self._queue) if not e[1] or (n == 0 and self._begun)]
            self._queue = deque(kept)
            self.size = sum(len(data) for data, _ in kept)

    def close(self) -> bytes:
        """Take nothing more; returns the rest of what has begun."""
        with self._lock:
            self._open = False
            rest = self._queue[0][0] if self._begun and self._queue else b""
            self._queue.clear()
            self.size, self._begun = 0, False
            return rest
