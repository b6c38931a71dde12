"""A sound card by its name through ALSA itself: what a board's microphone and speaker are.

Owns finding a card (numbers change with every hot plug, so they are looked up for each use), opening it
without waiting for who holds it, and telling faults apart: no such card, busy and by whom, unplugged.
Invariant: every fault is a BoardError that says what to do; the next `record` or `play` tries anew.

By libasound's C interface (LGPL-2.1, the system's own, linked at run time): PortAudio lists cards once,
opens them by number and refuses what a card does not do itself."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from exo.board.pcm import Resampler
from exo.board.ports import MICROPHONE_RATE
from exo.core.base.errors import BoardError

PROC = Path("/proc/asound")
PLAYBACK, CAPTURE = 0, 1  # snd_pcm_stream_t
NONBLOCK = 1
S16_LE, INTERLEAVED = 2, 3  # snd_pcm_format_t, snd_pcm_access_t
BLOCK = 512  # samples read at once: 32 ms at MICROPHONE_RATE
LATENCY = 0.3  # seconds that lie in the card's buffer
BUSY = 1.0  # seconds that a card which is held is asked again
DEAD = 2.0  # seconds without a sign of life after which a card is given up
RATES = (MICROPHONE_RATE, 48_000, 44_100, 32_000)  # what is asked of a card, ours first
LAST = ("vc4", "hdmi")  # cards that are chosen last when none is named: a screen's speaker
OWN = "pcm:"  # a name that begins so is one of asound.conf, not a card's


@dataclass(frozen=True)
class Card:
    """A row of /proc/asound/cards: number, id (at most 15 letters) and all that it is called."""

    number: int
    id: str
    names: str


def cards(root: Path = PROC) -> list[Card]:
    """Every card there is now."""
    try:
        lines = (root / "cards").read_text(errors="replace").splitlines()
    except OSError:
        return []
    found: list[Card] = []
    for line in lines:
        number, bracket, rest = line.partition("[")
        if bracket and number.strip().isdigit():
            name, _, names = rest.partition("]")
            found.append(Card(int(number), name.strip(), names.lstrip(": ").strip()))
        elif found:  # the second line of a row: the long name
            last = found.pop()
            found.append(Card(last.number, last.id, f"{last.names} {line.strip()}".strip()))
    return found


def find(name: str, stream: int, root: Path = PROC) -> tuple[Card, int]:
    """Return the card whose id or name holds `name` (any case, the id first), and its first device that
    plays or records. Empty: a USB card before others, a screen's last. Raises BoardError."""
    every = cards(root)
    able = [(card, device) for card in every for device in _devices(root, card, stream)[:1]]
    wanted = name.lower()

    def rank(row: tuple[Card, int]) -> tuple[bool, ...]:
        card = row[0]
        called = f"{card.id} {card.names}".lower()
        if wanted:
            return (card.id.lower() != wanted, wanted not in card.id.lower())
        return (any(each in called for each in LAST), "usb" not in called)

    fits = [row for row in able if wanted in f"{row[0].id} {row[0].names}".lower()]
    if fits:
        return min(fits, key=rank)
    part, verb = _words(stream)
    if any(wanted in f"{card.id} {card.names}".lower() for card in every) and every:
        called = f"the card {name} does not {verb}" if name else f"no card here does {verb}"
    elif every:
        called = f"no card is called {name}, there is {', '.join(card.id for card in every)}"
    else:
        called = "there is no sound card"
    raise BoardError(f"open the {part}", called, f"plug it in, or set audio.{part}")


class Pcm:
    """One open stream of a card, mono s16le. `rate` is what the card agreed to."""

    def __init__(self, name: str, stream: int, rates: tuple[int, ...], root: Path = PROC) -> None:
        """Raises BoardError; a card that is busy is asked again for BUSY seconds."""
        self._library, self._stream = library(), stream
        self.part, _ = _words(stream)
        self._handle = ctypes.c_void_p()
        end = time.monotonic() + BUSY
        while True:
            device, status = self._device(name, root)
            code = self._library.snd_pcm_open(
                ctypes.byref(self._handle), device.encode(), stream, NONBLOCK
            )
            if code != -errno.EBUSY or time.monotonic() > end:
                break
            time.sleep(0.1)
        if code < 0:
            raise self._fault(f"open the {self.part}", code, status)
        self.rate = self._set(rates)

    def read(self, most: int) -> bytes:
        """Samples that are there, waiting at most 0.1 s for some. Raises BoardError."""
        buffer = ctypes.create_string_buffer(2 * most)
        got = self._library.snd_pcm_readi(self._handle, buffer, most)
        if got == -errno.EAGAIN:
            self._wait()
            return b""
        if got < 0:
            self._recover(got)
            return b""
        return buffer.raw[: 2 * got]

    def write(self, pcm: bytes) -> int:
        """Hand samples over; returns the bytes that were taken, 0 while the buffer is full."""
        took = self._library.snd_pcm_writei(self._handle, pcm, len(pcm) // 2)
        if took == -errno.EAGAIN:
            return 0
        if took < 0:
            self._recover(took)
            return 0
        return int(took) * 2

    def waiting(self) -> float:
        """Seconds of samples that were not heard yet."""
        frames = ctypes.c_long()
        code = self._library.snd_pcm_delay(self._handle, ctypes.byref(frames))
        if code < 0 and code not in (
            -errno.EPIPE,
            -errno.EBADFD,
        ):  # played to its end, or not begun
            raise self._fault("play", code)
        return max(0, frames.value) / self.rate if code >= 0 else 0.0

    def start(self) -> None:
        """Let it run, also when the buffer is not full yet; harmless when it does."""
        self._library.snd_pcm_start(self._handle)

    def close(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            self._library.snd_pcm_close(handle)

    def _device(self, name: str, root: Path) -> tuple[str, Path | None]:
        """ALSA's name of it, and the file that says who holds it."""
        if name.startswith(OWN):
            return name.removeprefix(OWN), None
        card, device = find(name, self._stream, root)
        kind = "c" if self._stream == CAPTURE else "p"
        status = root / f"card{card.number}" / f"pcm{device}{kind}" / "sub0" / "status"
        return f"plughw:CARD={card.id},DEV={device}", status

    def _set(self, rates: tuple[int, ...]) -> int:
        """The first rate that the card itself does; else the first by ALSA's own conversion."""
        code = 0
        for rate, soft in [*((rate, 0) for rate in rates), (rates[0], 1)]:
            code = self._library.snd_pcm_set_params(
                self._handle, S16_LE, INTERLEAVED, 1, rate, soft, int(LATENCY * 1e6)
            )
            if code >= 0:
                return rate
        self.close()
        raise self._fault(f"open the {self.part}", code)

    def _wait(self) -> None:
        code = self._library.snd_pcm_wait(self._handle, 100)
        if code < 0:
            self._recover(code)

    def _recover(self, code: int) -> None:
        """An overrun or a suspend is mended, anything else is a fault. Raises BoardError."""
        if code not in (-errno.EPIPE, -errno.ESTRPIPE, -errno.EINTR):
            raise self._fault("record" if self._stream == CAPTURE else "play", code)
        if self._library.snd_pcm_recover(self._handle, code, 1) < 0:
            raise self._fault("record" if self._stream == CAPTURE else "play", code)
        if self._stream == CAPTURE:
            self.start()

    def _fault(self, what: str, code: int, status: Path | None = None) -> BoardError:
        part = self.part
        if code == -errno.EBUSY:
            return BoardError(
                what, f"another program holds it{_holder(status)}", "end that program"
            )
        if code == -errno.ENOENT:
            return BoardError(what, "it is not there", f"plug it in, or set audio.{part}")
        if code in (-errno.ENODEV, -errno.EBADFD, -errno.EIO):
            return BoardError(what, f"the {part} was unplugged", "plug it in again")
        if code == -errno.EACCES:
            return BoardError(what, "it is not allowed", "add your user to the group audio")
        why = os.strerror(-code)
        return BoardError(what, why, f"plug the {part} in again, or set audio.{part}")


class AlsaMicrophone:
    """The microphone of the card whose id or name holds `name`."""

    def __init__(self, name: str = "", root: Path = PROC) -> None:
        self._name, self._root = name, root

    def record(self, stop: threading.Event) -> Iterator[bytes]:
        pcm = Pcm(self._name, CAPTURE, RATES, self._root)
        try:
            resampler, block = (
                Resampler(pcm.rate, MICROPHONE_RATE),
                BLOCK * pcm.rate // MICROPHONE_RATE,
            )
            pcm.start()
            last = time.monotonic()
            while not stop.is_set():
                if got := pcm.read(block):
                    last = time.monotonic()
                    yield resampler.feed(got)
                elif time.monotonic() - last > DEAD:
                    raise BoardError("record", "the microphone fell silent", "plug it in again")
            # what was said before the button came up lies in the card still
            for _ in range(int(LATENCY * pcm.rate / block) + 1):
                if not (got := pcm.read(block)):
                    break
                yield resampler.feed(got)
        finally:
            pcm.close()


class AlsaSpeaker:
    """The speaker of the card whose id or name holds `name`."""

    def __init__(self, name: str = "", root: Path = PROC) -> None:
        self._name, self._root = name, root
        self._lock = threading.Lock()
        self._pcm: Pcm | None = None
        self._rate = 0
        self._stops = 0

    @property
    def stops(self) -> int:
        return self._stops

    def play(self, pcm: bytes, rate: int, since: int | None = None) -> None:
        since = self._stops if since is None else since
        if self._pcm is None or rate != self._rate:
            self.drain()
            self._open(rate)
        left, last = pcm, time.monotonic()
        while left:
            with self._lock:
                if self._stops != since or self._pcm is None:
                    return
                took = self._guarded(left)
            if took:
                left, last = left[took:], time.monotonic()
            elif time.monotonic() - last > DEAD:
                self._close()
                raise BoardError("play", "the speaker stopped playing", "plug it in again")
            else:
                time.sleep(0.01)

    def drain(self) -> None:
        end = time.monotonic() + LATENCY + DEAD
        since = self._stops
        try:
            while self._pcm is not None and self._stops == since and time.monotonic() < end:
                with self._lock:
                    if self._pcm is None or self._pcm.waiting() <= 0:
                        break
                time.sleep(0.01)
        finally:
            self._close()

    def stop(self) -> None:
        with self._lock:
            self._stops += 1
            if self._pcm is not None:
                self._pcm.close()  # silence at once; a card that is gone by the next `play` is found anew
                self._pcm = None

    def _open(self, rate: int) -> None:
        # another rate is ALSA's to make: here it would cost a third of a core of a PC
        opened = Pcm(self._name, PLAYBACK, (rate,), self._root)
        with self._lock:
            self._pcm, self._rate = opened, rate

    def _guarded(self, pcm: bytes) -> int:
        """Write; a card that fails is closed, so that the next `play` opens it anew."""
        assert self._pcm is not None  # looked by the caller
        try:
            took = self._pcm.write(pcm)
            if took:
                self._pcm.start()
            return took
        except BoardError:
            self._pcm.close()
            self._pcm = None
            raise

    def _close(self) -> None:
        with self._lock:
            pcm, self._pcm = self._pcm, None
            if pcm is not None:
                pcm.close()


@lru_cache(maxsize=1)
def library() -> Any:
    """libasound. Raises BoardError when it is not installed."""
    try:
        found = ctypes.CDLL("libasound.so.2")
    except OSError as error:
        raise BoardError("use sound", str(error), "run `apt-get install libasound2`") from error
    # every call takes the handle as a pointer: ctypes would cut it to 32 bits
    long, handle = ctypes.c_long, ctypes.c_void_p
    for name in ("readi", "writei"):
        call = getattr(found, f"snd_pcm_{name}")
        call.restype, call.argtypes = long, [handle, ctypes.c_char_p, ctypes.c_ulong]
    for name in ("start", "close"):
        getattr(found, f"snd_pcm_{name}").argtypes = [handle]
    found.snd_pcm_wait.argtypes = [handle, ctypes.c_int]
    found.snd_pcm_recover.argtypes = [handle, ctypes.c_int, ctypes.c_int]
    found.snd_pcm_delay.argtypes = [handle, ctypes.POINTER(long)]
    found.snd_pcm_set_params.argtypes = [handle, *[ctypes.c_int] * 2, *[ctypes.c_uint] * 2]
    found.snd_pcm_set_params.argtypes += [ctypes.c_int, ctypes.c_uint]
    # its own messages would be written over the simulated screen
    found.snd_lib_error_set_handler(_silent)
    return found


@ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
)
def _silent(*_: object) -> None:
    """Says nothing."""


def _devices(root: Path, card: Card, stream: int) -> list[int]:
    """Numbers of the card's devices that record or play, as its folders say."""
    kind = "c" if stream == CAPTURE else "p"
    with contextlib.suppress(OSError):
        names = [each.name for each in (root / f"card{card.number}").iterdir()]
        found = [name[3:-1] for name in names if name.startswith("pcm") and name.endswith(kind)]
        return sorted(int(each) for each in found if each.isdigit())
    return []


def _holder(status: Path | None) -> str:
    """` (name, process 123)` of who has a device open."""
    with contextlib.suppress(OSError, ValueError):
        for line in status.read_text().splitlines() if status else ():
            key, _, value = line.partition(":")
            if key.strip() == "owner_pid":
                pid = int(value)
                comm = Path(f"/proc/{pid}/comm")
                name = comm.read_text().strip() + ", " if comm.exists() else ""
                return f" ({name}process {pid})"
    return ""


def _words(stream: int) -> tuple[str, str]:
    return ("microphone", "record") if stream == CAPTURE else ("speaker", "play")
