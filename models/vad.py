"""Where somebody speaks. Owns Silero's state and the rules that turn its probabilities into spans.

Invariant: spans never overlap, are at least SHORTEST long and at least SILENCE apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exo.models.audio import RATE
from exo.models.onnx import session

if TYPE_CHECKING:
    from exo.models.audio import Samples

FRAME = 512  # samples the model judges at a time (32 ms)
CONTEXT = 64  # samples of the frame before that it wants to see again
START, STOP = 0.5, 0.35  # probability at which speech begins, and below which it may end
SILENCE = 0.3  # seconds below STOP that end a span
SHORTEST = 0.12  # seconds; what is shorter is a click


class Vad:
    """The model. One session serves many recordings at once; each has its own Activity."""

    def __init__(self, folder: Path, name: str) -> None:
        # one thread: a frame takes 0.2 ms, less than waking a second thread
        self._session = session(folder / name, 1)
        self.begin().feed(_silence(FRAME))

    def begin(self) -> Activity:
        return Activity(self._session)


class Activity:
    """The voice activity of one recording, fed as it arrives."""

    def __init__(self, runtime: object) -> None:
        import numpy as np

        self._runtime = runtime
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros(CONTEXT, np.float32)
        self._rest = np.zeros(0, np.float32)
        self._done: list[tuple[int, int]] = []
        self._begun: int | None = None  # sample at which the span under way began
        self._last = 0  # sample after the last voiced frame
        self.seen = 0  # samples judged

    def feed(self, samples: Samples) -> None:
        """Judge more sound, float32 at 16 kHz."""
        import numpy as np

        waiting = np.concatenate((self._rest, samples))
        whole = len(waiting) // FRAME * FRAME
        for place in range(0, whole, FRAME):
            self._judge(waiting[place : place + FRAME])
        self._rest = waiting[whole:]

    def finish(self) -> None:
        """The recording is over: judge what is left of the last frame."""
        import numpy as np

        if len(self._rest):
            self._judge(np.pad(self._rest, (0, FRAME - len(self._rest))))
            self._rest = self._rest[:0]

    @property
    def silence(self) -> float:
        """Seconds since the last voiced frame; 0 while somebody speaks or before anybody did."""
        spoken = self._begun is not None or bool(self._done)
        return (self.seen - self._last) / RATE if spoken else 0.0

    def voiced_until(self) -> int:
        """The sample after the last voiced frame of a span that counts; 0 when there is none."""
        spans = self.spans()
        return round(spans[-1][1] * RATE) if spans else 0

    def spans(self) -> list[tuple[float, float]]:
        """(start, end) in seconds, the one under way included."""
        spans = list(self._done)
        if self._begun is not None and self._last - self._begun >= SHORTEST * RATE:
            spans.append((self._begun, self._last))
        return [(start / RATE, end / RATE) for start, end in spans]

    def _judge(self, frame: Samples) -> None:
        import numpy as np

        sound = np.concatenate((self._context, frame))[None, :].astype(np.float32)
        feeds = {"input": sound, "state": self._state, "sr": np.array(RATE, np.int64)}
        chance, self._state = self._runtime.run(None, feeds)  # type: ignore[attr-defined]
        self._context = frame[-CONTEXT:]
        start, self.seen = self.seen, self.seen + len(frame)
        voice = float(chance[0, 0])
        if voice >= START or (self._begun is not None and voice >= STOP):
            if self._begun is None:
                self._begun = start
            self._last = self.seen
        elif self._begun is not None and self.seen - self._last >= SILENCE * RATE:
            if self._last - self._begun >= SHORTEST * RATE:
                self._done.append((self._begun, self._last))
            self._begun = None


def _silence(count: int) -> Samples:
    import numpy as np

    return np.zeros(count, np.float32)
