"""Sound as numbers: WAV in and out, resampling, 16-bit PCM. Owns no device and no model.

Everything inside the room is float32 mono in -1..1 at RATE; whatever comes in is brought to that."""

from __future__ import annotations

import io
import math
import struct
import wave
from typing import TYPE_CHECKING

from exo.core.base.errors import ExoError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

RATE = 16000  # samples a second that the speech models listen at
_FLOAT, _EXTENSIBLE = 3, 0xFFFE


class BadAudio(ExoError, ValueError):
    """Bytes that are no sound that can be read here."""

    code = "bad_audio"


def from_pcm(raw: bytes) -> Samples:
    """Raw signed 16-bit little-endian mono as samples; an odd last byte is left out."""
    import numpy as np

    whole = np.frombuffer(raw[: len(raw) // 2 * 2], "<i2")
    return whole.astype(np.float32) / 32768.0


def to_pcm(samples: Samples) -> bytes:
    """Samples as signed 16-bit little-endian, clipped."""
    import numpy as np

    return (np.clip(samples, -1.0, 1.0) * 32767.0).round().astype("<i2").tobytes()


def wav_bytes(pcm: bytes, rate: int) -> bytes:
    """16-bit mono PCM as a WAV file."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm)
    return out.getvalue()


def from_wav(data: bytes, longest: float = math.inf) -> Samples:
    """Any PCM or float WAV of at most `longest` seconds as samples at RATE, channels averaged. Raises
    BadAudio saying what is wrong.

    The chunks are walked by hand: the standard `wave` reads neither float nor a file whose sizes were
    never filled in, which is what a recorder that was cut off leaves."""
    import numpy as np

    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise BadAudio("read the WAV", f"{len(data)} bytes that do not begin as a RIFF WAVE file")
    layout: tuple[int, int, int, int] | None = None  # format, channels, rate, bits
    body: bytes | None = None
    place = 12
    while place + 8 <= len(data) and body is None:
        name, size = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        content = data[place + 8 : place + 8 + size]
        if name == b"fmt ":
            layout = _layout(content)
        elif name == b"data":
            body = content
        place += 8 + size + size % 2
    if layout is None or body is None:
        raise BadAudio("read the WAV", "it has no format or no data")
    kind, channels, rate, bits = layout
    width = channels * bits // 8
    if len(body) // width > longest * rate:  # before it unfolds: at 1 kHz into 64 times its bytes
        raise BadAudio("read the WAV", f"the recording is longer than {longest:g} s")
    samples = _decode(body[: len(body) // width * width], kind, bits)
    mono = samples.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    return resample(np.nan_to_num(mono), rate)


def _layout(content: bytes) -> tuple[int, int, int, int]:
    if len(content) < 16:
        raise BadAudio("read the WAV", "its format is cut off")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", content)
    if kind == _EXTENSIBLE and len(content) >= 26:
        kind = struct.unpack_from("<H", content, 24)[0]
    if (kind, bits) not in ((1, 8), (1, 16), (1, 24), (1, 32), (_FLOAT, 32), (_FLOAT, 64)):
        raise BadAudio("read the WAV", f"format {kind} with {bits} bits is not PCM or float")
    if not 1 <= channels <= 16 or not 1000 <= rate <= 384_000:
        raise BadAudio("read the WAV", f"{channels} channels at {rate} samples a second")
    return kind, channels, rate, bits


def _decode(body: bytes, kind: int, bits: int) -> Samples:
    import numpy as np

    if kind == _FLOAT:
        return np.frombuffer(body, f"<f{bits // 8}").astype(np.float32)
    if bits == 8:
        return (np.frombuffer(body, np.uint8).astype(np.float32) - 128.0) / 128.0
    if bits == 24:
        parts = np.frombuffer(body, np.uint8).reshape(-1, 3).astype(np.int32)
        # shifted to the top of 32 bits so that the sign comes along
        whole = (parts[:, 0] << 8) | (parts[:, 1] << 16) | (parts[:, 2] << 24)
        return (whole / 2147483648.0).astype(np.float32)
    return (np.frombuffer(body, f"<i{bits // 8}") / float(1 << (bits - 1))).astype(np.float32)


def resample(samples: Samples, rate: int, to: int = RATE) -> Samples:
    """Band-limited change of rate: a windowed sinc, so that what is above the new half rate is removed
    and not folded down onto speech."""
    import numpy as np

    if rate == to or not len(samples):
        return samples.astype(np.float32)
    cut = min(1.0, to / rate)
    half = int(np.ceil(16 / cut))
    count = int(round(len(samples) * to / rate))
    out = np.empty(count, np.float32)
    padded = np.pad(samples, (half, half + 1))
    taps = np.arange(-half + 1, half + 1)
    for start in range(0, count, 8192):  # in blocks: the whole matrix of a minute would be 200 MB
        where = np.arange(start, min(start + 8192, count)) * (rate / to)
        base = np.floor(where).astype(np.int64)
        offset = (where - base)[:, None] - taps[None, :]
        window = 0.5 + 0.5 * np.cos(np.pi * np.clip(offset / half, -1, 1))
        kernel = cut * np.sinc(offset * cut) * window
        index = base[:, None] + taps[None, :] + half
        out[start : start + len(where)] = (padded[index] * kernel).sum(axis=1)
    return out
