"""The PC's microphone and speaker through PortAudio (sounddevice's raw streams, no numpy).

Owns opening, finding a device by a part of its name, and coming back after one was unplugged. Invariant:
every fault of a device is a BoardError that says which; the next `record` or `play` tries anew."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

from exo.board.alsa import cards
from exo.board.pcm import Resampler
from exo.board.ports import MICROPHONE_RATE
from exo.core.base.errors import BoardError

BLOCK = 512  # samples: 32 ms at MICROPHONE_RATE
AHEAD = 0.3  # seconds that may wait in the speaker
DEAD = 2.0  # seconds without a sign of life after which a device is given up
_streams = threading.Lock()  # guards the next, and that nobody opens while PortAudio starts anew
_open: set[int] = set()  # streams that are open


def _library() -> Any:
    """sounddevice. Raises BoardError when it or PortAudio is not installed."""
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise BoardError(
            "use sound", str(error), "install PortAudio: `apt-get install libportaudio2`"
        ) from error
    return sounddevice


def find(name: str, kind: str) -> int | None:
    """Return the number of the first device with `name` in its name or in its ALSA card's id or name
    (any case), None for the system's own when `name` is empty. `kind` is input or output. Raises
    BoardError when there is none.

    PortAudio lists devices once, when it starts; what was plugged in later is found by a new start. That
    would end a stream that is open, so it waits until none is."""
    sound = _library()
    for again in (False, True):
        if again:
            with _streams, contextlib.suppress(sound.PortAudioError):
                if _open:
                    continue
                sound._terminate()
                sound._initialize()
        try:
            rows = list(sound.query_devices())
        except sound.PortAudioError:
            rows = []
        able = [row for row in rows if row[f"max_{kind}_channels"] > 0]
        for row in able:
            if name.lower() in _called(row["name"]):
                return int(row["index"]) if name else None
    part = "microphone" if kind == "input" else "speaker"
    have = ", ".join(row["name"] for row in able) or "none at all"
    wanted = f"none is called {name!r}, there is {have}" if name and able else "there is none"
    raise BoardError(f"open the {part}", wanted, f"plug one in, or set audio.{part}")


def _called(name: str) -> str:
    """A device's name with all that its card is called: PortAudio gives a number, "USB (hw:1,0)"."""
    number = re.search(r"\(hw:(\d+),", name)
    names = [
        f"{card.id} {card.names}" for card in cards() if number and card.number == int(number[1])
    ]
    return " ".join([name, *names]).lower()


class PcMicrophone:
    """The microphone whose name holds `name`; empty for the system's."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def record(self, stop: threading.Event) -> Iterator[bytes]:
        device = find(self._name, "input")
        blocks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        stream, resampler = self._open(device, blocks)
        with _streams:
            _open.add(id(stream))
        try:
            stream.start()
            while not stop.is_set():
                try:
                    yield resampler.feed(blocks.get(timeout=DEAD))
                except queue.Empty:
                    raise BoardError(
                        "record", "the microphone fell silent", "plug it in again"
                    ) from None
            while not blocks.empty():  # what was said before the button came up
                yield resampler.feed(blocks.get_nowait())
        except _library().PortAudioError as error:
            raise BoardError("record", str(error), "plug the microphone in again") from error
        finally:
            _abandon(stream)

    def _open(self, device: int | None, blocks: queue.SimpleQueue[bytes]) -> tuple[Any, Resampler]:
        """A stream at our rate, else at the device's own."""
        sound = _library()

        def heard(data: Any, frames: int, when: Any, status: Any) -> None:
            blocks.put(bytes(data))

        last: Exception | None = None
        for rate in (MICROPHONE_RATE, self._own_rate(device)):
            try:
                stream = sound.RawInputStream(
                    samplerate=rate,
                    blocksize=BLOCK * rate // MICROPHONE_RATE,
                    device=device,
                    channels=1,
                    dtype="int16",
                    callback=heard,
                )
            except (sound.PortAudioError, ValueError) as error:
                last = error
            else:
                return stream, Resampler(rate, MICROPHONE_RATE)
        raise BoardError(
            "open the microphone", str(last), "plug it in again, or set audio.microphone"
        )

    def _own_rate(self, device: int | None) -> int:
        sound = _library()
        with contextlib.suppress(sound.PortAudioError, ValueError):
            return int(sound.query_devices(device, "input")["default_samplerate"])
        return 48_000


class PcSpeaker:
    """The speaker whose name holds `name`. PortAudio asks for samples in a thread of its own; what
    waits for it lies here, so that `stop` takes effect within one block."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._changed = threading.Condition()
        self._waiting = bytearray()
        self._stops = 0
        self._stream: Any = None
        self._rate = 0
        self._asked = 0.0  # monotonic time at which PortAudio last took samples

    @property
    def stops(self) -> int:
        return self._stops

    def play(self, pcm: bytes, rate: int, since: int | None = None) -> None:
        stops = self._stops if since is None else since
        if self._stream is None or rate != self._rate:
            self.drain()
            self._open(rate)
        with self._changed:
            if stops != self._stops:
                return
            self._waiting += pcm
            while len(self._waiting) > 2 * rate * AHEAD and self._stops == stops:
                self._changed.wait(0.5)
                self._alive()

    def drain(self) -> None:
        with self._changed:
            stops, stream = self._stops, self._stream
            if stream is None:
                return
            while self._waiting and self._stops == stops:
                self._changed.wait(0.5)
                self._alive()
            latency = float(stream.latency)
        if self._stops == stops:
            time.sleep(min(latency, 0.5))  # what PortAudio has taken still sounds
        self._close()

    def stop(self) -> None:
        with self._changed:
            self._stops += 1
            self._waiting.clear()
            self._changed.notify_all()

    def _open(self, rate: int) -> None:
        self._close()
        device = find(self._name, "output")
        sound = _library()

        def asked(out: Any, frames: int, when: Any, status: Any) -> None:
            with self._changed:
                piece = bytes(self._waiting[: 2 * frames])
                del self._waiting[: 2 * frames]
                self._asked = time.monotonic()
                self._changed.notify_all()
            out[:] = piece.ljust(2 * frames, b"\0")

        try:
            self._stream = sound.RawOutputStream(
                samplerate=rate, device=device, channels=1, dtype="int16", callback=asked
            )
            self._asked = time.monotonic()
            with _streams:
                _open.add(id(self._stream))
            self._stream.start()
        except (sound.PortAudioError, ValueError) as error:
            self._close()
            raise BoardError(
                "open the speaker", str(error), "plug it in, or set audio.speaker"
            ) from error
        self._rate = rate

    def _alive(self) -> None:
        """Raise BoardError when PortAudio stopped asking."""
        if time.monotonic() - self._asked > DEAD:
            self._waiting.clear()
            stream, self._stream = self._stream, None
            threading.Thread(target=_abandon, args=(stream,), daemon=True).start()
            raise BoardError("play", "the speaker stopped playing", "plug it in again")

    def _close(self) -> None:
        stream, self._stream = self._stream, None
        _abandon(stream)


def _abandon(stream: Any) -> None:
    if stream is not None:
        with contextlib.suppress(Exception):
            stream.abort()
            stream.close()
        with _streams:
            _open.discard(id(stream))
