"""Hardware that is not there: the simulated handheld's parts, which ship with the product.

`press`, `say` act as the world does; `shows`, `heard` look at what we did. Invariant: they behave as
real parts do in time (sound takes as long as it lasts) and in their errors (a part can be unplugged)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from exo.board.battery import Reading
from exo.board.buttons import presses, tell
from exo.board.led import DARK, Colour
from exo.board.pcm import Resampler, read_wav
from exo.board.ports import MICROPHONE_RATE, ignore
from exo.board.presses import NEVER, Gesture, Timing
from exo.board.screen import Box, check, check_level
from exo.core.base.errors import BoardError

if TYPE_CHECKING:
    from PIL.Image import Image

BLOCK = 512  # samples: 32 ms
AHEAD = 0.3  # seconds that may wait in the speaker


class FakePanel:
    """Keeps the last image. `updates` counts what was really shown."""

    def __init__(
        self, size: tuple[int, int] = (128, 64), mode: str = "1", paper: bool = False
    ) -> None:
        from PIL import Image

        self.size, self.mode, self.paper = size, mode, paper
        self.image = Image.new(mode, size)
        self.level = 1.0
        self.updates = 0
        self.broken, self.failures = "", 0

    def show(self, image: Image, box: Box | None = None) -> None:
        """`broken` fails every time, `failures` that many times."""
        if self.broken or self.failures:
            self.failures = max(0, self.failures - 1)
            raise BoardError("show an image", self.broken or "the bus failed")
        check(self, image, box)
        part = box or (0, 0, *self.size)
        self.image.paste(image.crop(part), part[:2])
        self.updates += 1

    def power(self, level: float) -> None:
        check_level(level)
        self.level = level

    def shows(self, image: Image) -> bool:
        """Whether exactly `image` is seen now."""
        return self.level > 0 and self.image.tobytes() == image.tobytes()


class FakeButtons:
    """Buttons that a script or a test presses: clean levels, told at once. What time alone brings (hold,
    repeat) comes from a thread that waits for it, or by `tick` from whoever owns a clock of its own."""

    def __init__(
        self,
        names: tuple[str, ...] = ("talk", "up", "down", "ok", "back"),
        clock: Callable[[], float] = time.monotonic,
        waits: bool = True,
    ) -> None:
        """`clock` is in monotonic seconds; `waits`: with a thread."""
        self.names = names
        self._clock, self._waits = clock, waits
        self._presses = presses(names, timing=Timing(settle=0.0))
        self._callback: Callable[[str, bool], None] | None = None
        self._gesture: Callable[[Gesture], None] = ignore
        self._lock = threading.Condition(threading.RLock())

    def listen(
        self, callback: Callable[[str, bool], None], gesture: Callable[[Gesture], None] = ignore
    ) -> None:
        self._callback, self._gesture = callback, gesture
        if self._waits and gesture is not ignore:
            threading.Thread(target=self._wait, name="fingers", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._callback = None
            self._lock.notify_all()

    def hold(self, name: str) -> None:
        self._change(name, True)

    def release(self, name: str) -> None:
        self._change(name, False)

    def press(self, name: str, seconds: float = 0.05) -> None:
        """Hold for `seconds` of real time."""
        self.hold(name)
        time.sleep(seconds)
        self.release(name)

    @property
    def due(self) -> float:
        """When `tick` has something to tell; infinity when nothing is under way."""
        return self._presses.due

    def tick(self) -> None:
        """Tell what time has brought."""
        with self._lock:
            self._tell(self._presses.tick(self._clock()))

    def _change(self, name: str, down: bool) -> None:
        if name not in self.names:
            raise BoardError(
                f"press {name}", "the board has no such button", f"use one of {self.names}"
            )
        with self._lock:
            self._tell(self._presses.edge(self._clock(), name, down))
            self._lock.notify_all()

    def _tell(self, found: list[Gesture]) -> None:
        if self._callback:
            tell(found, self._callback, self._gesture)

    def _wait(self) -> None:
        with self._lock:
            while self._callback:
                due = self._presses.due
                self._lock.wait(None if due == NEVER else max(0.0, due - self._clock()))
                self._tell(self._presses.tick(self._clock()))


class FakeLight:
    """Shines into `shown`: the last colours in turn."""

    def __init__(self, single: bool = False) -> None:
        self.single, self.broken = single, ""
        self.shown: deque[Colour] = deque(maxlen=1000)
        self.changed = threading.Condition()

    def shine(self, colour: Colour) -> None:
        if self.broken:
            raise BoardError("set the LED", self.broken)
        with self.changed:
            self.shown.append(colour)
            self.changed.notify_all()

    def close(self) -> None:
        self.shine(DARK)


class FakeGauge:
    """A battery that a script or a test fills. `percent` None: it answers that it does not know."""

    def __init__(self, percent: int | None = None, charging: bool | None = False) -> None:
        self.percent, self.charging, self.broken = percent, charging, ""

    def read(self) -> Reading:
        if self.broken:
            raise BoardError("read the battery", self.broken)
        return Reading(self.percent, self.charging)

    def close(self) -> None:
        pass


class FakeMicrophone:
    """Hears what `say` lets sound in the room, in real time; else silence."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sounds: list[tuple[float, bytes]] = []  # monotonic start, samples
        self.broken = ""

    def say(self, path: Path) -> float:
        """Let the WAV file sound from now on; returns its length in seconds. Raises BoardError."""
        return self.sound(read_wav(path, MICROPHONE_RATE))

    def sound(self, pcm: bytes) -> float:
        """Let samples at MICROPHONE_RATE sound from now on; returns seconds."""
        now = time.monotonic()
        seconds = len(pcm) / 2 / MICROPHONE_RATE
        with self._lock:
            self._sounds = [old for old in self._sounds if old[0] + 600 > now]
            self._sounds.append((now, pcm))
        return seconds

    def record(self, stop: threading.Event) -> Iterator[bytes]:
        start, blocks = time.monotonic(), 0
        while not stop.is_set():
            if self.broken:
                raise BoardError("record", self.broken, "plug the microphone in again")
            since = start + blocks * BLOCK / MICROPHONE_RATE
            wait = since + BLOCK / MICROPHONE_RATE - time.monotonic()
            # a block that ends after the release is heard to its end: a last word is not cut
            if wait > 0:
                time.sleep(wait)
            yield self._heard(since)
            blocks += 1

    def _heard(self, since: float) -> bytes:
        block = bytearray(2 * BLOCK)
        with self._lock:
            for start, pcm in self._sounds:
                offset = 2 * round((since - start) * MICROPHONE_RATE)
                low, high = max(offset, 0), min(offset + 2 * BLOCK, len(pcm))
                if low < high:
                    block[low - offset : high - offset] = pcm[low:high]
        return bytes(block)


class FakeSpeaker:
    """Plays into a recording, as slowly as a real one. `heard` is what a person would have heard."""

    RATE = 22_050  # of the recording; other rates are changed to it

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._begun: float | None = None  # monotonic time of the recording's start
        self._recording = bytearray()  # with silence where nothing played
        self._resampler: tuple[int, Resampler] | None = None
        self._stops = 0
        self.broken = ""

    @property
    def stops(self) -> int:
        return self._stops

    def play(self, pcm: bytes, rate: int, since: int | None = None) -> None:
        if self.broken:
            raise BoardError("play", self.broken, "plug the speaker in again")
        with self._lock:
            stops = self._stops if since is None else since
            if stops != self._stops:
                return
            if self._resampler is None or self._resampler[0] != rate:
                self._resampler = (rate, Resampler(rate, self.RATE))
            now = self._now()
            if len(self._recording) < now:  # it was silent until now
                self._recording += bytes(now - len(self._recording))
            self._recording += self._resampler[1].feed(pcm)
            while (wait := self._waiting() - AHEAD) > 0 and self._stops == stops:
                self._lock.wait(wait)

    def drain(self) -> None:
        with self._lock:
            stops = self._stops
            while (wait := self._waiting()) > 0 and self._stops == stops:
                self._lock.wait(wait)

    def stop(self) -> None:
        with self._lock:
            self._stops += 1
            del self._recording[self._now() :]
            self._resampler = None
            self._lock.notify_all()

    def heard(self) -> bytes:
        """All that sounded so far, s16le at RATE, pauses between as silence."""
        with self._lock:
            return bytes(self._recording[: self._now()])

    def _now(self) -> int:
        """The recording's length, in bytes, that time has reached."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = now
        return 2 * int((now - self._begun) * self.RATE)

    def _waiting(self) -> float:
        """Seconds of samples that were not heard yet."""
        return (len(self._recording) - self._now()) / 2 / self.RATE
