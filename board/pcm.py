"""Plain samples, mono s16le, without numpy: reading WAV files, changing the rate, loudness.

Invariant: whatever WAV goes in (8 to 32 bit, any rate, any channels), 16 kHz mono s16 comes out."""

from __future__ import annotations

import array
import math
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

from exo.core.base.errors import BoardError

_TAPS = 24  # length of the low-pass: 12 samples to each side
_FULL = 32768.0
_CLIP = 32_700  # converters that clip stop a little below full scale
CLIPPED = 3  # samples at full scale in one block: a lone one is a click
FLOOR = -60.0  # dB of full scale: the least that a level shows
RATES = range(1000, 384_001)  # samples a second that a file may have


class Resampler:
    """Changes the rate of a stream by a windowed sinc (Hann), one table row for each phase."""

    def __init__(self, source: int, target: int) -> None:
        """`source` and `target` are samples a second."""
        common = math.gcd(source, target)
        self._up, self._down = target // common, source // common
        self._window = [0] * (_TAPS // 2 - 1)  # samples still needed, the oldest first
        self._phase = 0
        self._table: dict[int, list[float]] = {}
        self._cutoff = min(1.0, target / source) * 0.95

    def feed(self, pcm: bytes) -> bytes:
        """Return the samples that `pcm` completes; the last 12 wait for the next call."""
        if self._up == self._down:
            return pcm
        self._window += samples(pcm)
        out = array.array("h")
        place = 0
        while place + _TAPS <= len(self._window):
            row = self._row(self._phase)
            value = sum(map(float.__mul__, row, map(float, self._window[place : place + _TAPS])))
            out.append(max(-32768, min(32767, round(value))))
            self._phase += self._down
            place += self._phase // self._up
            self._phase %= self._up
        del self._window[:place]
        return _bytes(out)

    def flush(self) -> bytes:
        """Return what is left."""
        return b"" if self._up == self._down else self.feed(bytes(_TAPS))

    def _row(self, phase: int) -> list[float]:
        row = self._table.get(phase)
        if row is None:
            shift = phase / self._up + _TAPS // 2 - 1
            row = [self._tap(index - shift) for index in range(_TAPS)]
            total = sum(row)
            row = self._table[phase] = [tap / total for tap in row]
        return row

    def _tap(self, x: float) -> float:
        sinc = (
            1.0 if x == 0 else math.sin(math.pi * x * self._cutoff) / (math.pi * x * self._cutoff)
        )
        return sinc * (0.5 + 0.5 * math.cos(2 * math.pi * x / _TAPS))


def samples(pcm: bytes) -> array.array[int]:
    """Return the samples of `pcm`; a last odd byte is dropped."""
    values = array.array("h")
    values.frombytes(pcm[: len(pcm) // 2 * 2])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _bytes(values: array.array[int]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def dbfs(pcm: bytes) -> float:
    """Return the mean level in dB of full scale, at least FLOOR. A full square wave is 0, a sine -3."""
    values = samples(pcm)
    power = sum(value * value for value in values) / len(values) if values else 0.0
    return max(FLOOR, 10 * math.log10(power / _FULL**2)) if power else FLOOR


def level(pcm: bytes) -> tuple[float, bool]:
    """Return (0 for FLOOR to 1 for full scale, even in dB; whether peaks stand at full scale: clipped)."""
    values = samples(pcm)
    clipped = sum(abs(value) >= _CLIP for value in values) >= CLIPPED
    return 1.0 - dbfs(pcm) / FLOOR, clipped


def scaled(pcm: bytes, factor: float) -> bytes:
    """Return the samples times `factor`, 0 to 1."""
    if factor >= 1.0:
        return pcm
    return _bytes(array.array("h", (int(value * factor) for value in samples(pcm))))


def read_wav(path: Path, rate: int) -> bytes:
    """Return the file as mono s16le at `rate`. Raises BoardError for what is no PCM WAV file."""
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, source = file.getsampwidth(), file.getnchannels(), file.getframerate()
            raw = file.readframes(file.getnframes())
    except (OSError, EOFError, ValueError, wave.Error) as error:  # a path with a zero byte, too
        raise BoardError(
            f"read {path}", str(error) or "it ends too early", "give a PCM WAV file"
        ) from error
    if not channels or source not in RATES:  # at 1 Hz a small file would unfold for ever
        what = f"it has {channels} channels at {source} samples a second"
        raise BoardError(f"read {path}", what, "give a PCM WAV file")
    mono = _bytes(array.array("h", _mono(raw, width, channels)))
    resampler = Resampler(source, rate)
    return resampler.feed(mono) + resampler.flush()


def _mono(raw: bytes, width: int, channels: int) -> Iterator[int]:
    """Yield the mean of the channels as 16 bit values."""
    step = width * channels
    for start in range(0, len(raw) // step * step, step):
        total = 0
        for place in range(start, start + step, width):
            if width == 1:  # 8 bit is unsigned, by the format
                total += (raw[place] - 128) << 8
            else:
                total += int.from_bytes(
                    raw[place + width - 2 : place + width], "little", signed=True
                )
        yield total // channels


def write_wav(path: Path, pcm: bytes, rate: int) -> None:
    """Write mono s16le samples. Raises BoardError."""
    try:
        with path.open("wb") as raw, wave.open(raw, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(pcm)
    except OSError as error:
        raise BoardError(f"write {path}", error.strerror or str(error)) from error
