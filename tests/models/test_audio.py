"""Sound in: any WAV, and what is none."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
from exo.models.audio import RATE, BadAudio, from_pcm, from_wav, resample, to_pcm, wav_bytes


def tone(rate: int, seconds: float = 0.5, hertz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype(
        np.float32
    )


def wav(samples: np.ndarray, rate: int, width: int, channels: int) -> bytes:
    scaled = np.repeat(samples, channels)
    if width == 1:
        raw = ((scaled * 127) + 128).astype(np.uint8).tobytes()
    elif width == 3:
        whole = (scaled * 8388607).astype("<i4")
        raw = whole.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    else:
        raw = (scaled * (2 ** (8 * width - 1) - 1)).astype(f"<i{width}").tobytes()
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw)
    return out.getvalue()


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000])
@pytest.mark.parametrize(("width", "channels"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 1)])
def test_any_wav_becomes_mono_at_the_models_rate(rate: int, width: int, channels: int) -> None:
    got = from_wav(wav(tone(rate), rate, width, channels))
    assert abs(len(got) - RATE // 2) <= 1
    middle = slice(800, -800)
    assert np.abs(got[middle] - tone(RATE)[: len(got)][middle]).max() < 0.02


def test_a_float_wav_whose_sizes_were_never_filled_in_is_read() -> None:
    body = tone(16000).astype("<f4").tobytes()
    head = b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<IHHIIHH", 16, 3, 1, 16000, 64000, 4, 32)
    got = from_wav(head + b"data\xff\xff\xff\xff" + body)
    assert len(got) == 8000


def test_what_is_above_the_new_half_rate_is_removed_and_not_folded_down() -> None:
    assert np.abs(resample(tone(48000, hertz=12000), 48000)[500:-500]).max() < 0.01


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
        b"RIFF\0\0\0\0WAVE",
        b"\x00" * 5000,
        b"RIFF\0\0\0\0WAVEfmt \x02\0\0\0xx",
        b"ID3" + b"\xff" * 400,
        b"RIFF\0\0\0\0WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 85, 1, 16000, 1, 1, 16)
        + b"data\0\0\0\0",
        b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 0, 0, 0, 0, 16) + b"data\0\0\0\0",
    ],
)
def test_what_is_no_wav_is_refused_with_its_reason(data: bytes) -> None:
    with pytest.raises(BadAudio, match="read the WAV"):
        from_wav(data)


def test_pcm_goes_both_ways() -> None:
    raw = to_pcm(np.array([0.0, 0.5, -2.0, 2.0], np.float32))
    assert from_pcm(raw + b"x").tolist() == pytest.approx([0.0, 0.5, -1.0, 1.0], abs=1e-3)
    assert from_wav(wav_bytes(raw, RATE)).shape == (4,)


def test_a_recording_is_measured_before_it_unfolds() -> None:
    with pytest.raises(BadAudio, match="longer than 2 s"):
        from_wav(wav(np.zeros(3000, np.float32), 1000, 1, 1), 2)
    assert len(from_wav(wav(np.zeros(2000, np.float32), 1000, 1, 1), 2)) == 2 * RATE
