from __future__ import annotations

import array
import math
import struct
import wave
from pathlib import Path

import pytest
from exo.board.pcm import Resampler, dbfs, level, read_wav, samples, scaled, write_wav
from exo.core.base.errors import BoardError


def tone(rate: int, hertz: float, seconds: float, peak: int = 12_000) -> bytes:
    count = round(rate * seconds)
    return array.array(
        "h", (round(peak * math.sin(2 * math.pi * hertz * n / rate)) for n in range(count))
    ).tobytes()


def energy(pcm: bytes, rate: int, hertz: float) -> float:
    """Amplitude of one frequency (Goertzel by definition)."""
    values = samples(pcm)
    step = 2 * math.pi * hertz / rate
    real = sum(value * math.cos(step * n) for n, value in enumerate(values))
    imaginary = sum(value * math.sin(step * n) for n, value in enumerate(values))
    return 2 * math.hypot(real, imaginary) / len(values)


@pytest.mark.parametrize(
    ("source", "target"), [(22_050, 16_000), (48_000, 16_000), (8_000, 16_000)]
)
def test_a_tone_stays_that_tone(source: int, target: int) -> None:
    resampler = Resampler(source, target)
    out = resampler.feed(tone(source, 440, 0.25)) + resampler.flush()
    assert len(out) / 2 == pytest.approx(target * 0.25, abs=16)
    assert energy(out, target, 440) == pytest.approx(12_000, rel=0.03)


def test_what_the_lower_rate_cannot_hold_is_taken_out() -> None:
    resampler = Resampler(48_000, 16_000)
    out = resampler.feed(tone(48_000, 11_000, 0.1))
    assert energy(out, 16_000, 5_000) < 1_200  # its mirror image


def test_pieces_give_what_the_whole_gives() -> None:
    pcm = tone(22_050, 300, 0.1)
    whole, pieces = Resampler(22_050, 16_000), Resampler(22_050, 16_000)
    parts = [pieces.feed(pcm[start : start + 202]) for start in range(0, len(pcm), 202)]
    assert b"".join(parts) == whole.feed(pcm)


def test_the_level_is_that_of_a_meter() -> None:
    assert level(b"") == level(bytes(1024)) == (0.0, False)
    full = struct.pack("<h", 32_767) * 512
    assert dbfs(full) == pytest.approx(0.0, abs=0.01)
    assert dbfs(tone(16_000, 400, 0.1, 32_767)) == pytest.approx(-3.01, abs=0.05)
    assert dbfs(struct.pack("<h", 328) * 512) == pytest.approx(-40.0, abs=0.1)
    assert level(struct.pack("<h", 328) * 512)[0] == pytest.approx(1 / 3, abs=0.01)
    assert dbfs(struct.pack("<h", 1) * 512) == -60.0


def test_clipping_is_seen_and_a_lone_click_is_none() -> None:
    quiet = struct.pack("<h", 1000) * 500
    assert level(quiet + struct.pack("<h", -32_768) * 3)[1]
    assert not level(quiet + struct.pack("<h", 32_767) * 2)[1]
    assert not level(struct.pack("<h", 32_000) * 512)[1]


def test_a_volume_makes_it_quieter_by_that_much() -> None:
    sound = struct.pack("<hh", 10_000, -10_000)
    assert scaled(sound, 1.0) == sound
    assert list(samples(scaled(sound, 0.25))) == [2500, -2500]
    assert set(samples(scaled(sound, 0.0))) == {0}


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav_files_of_any_kind_are_read(tmp_path: Path, width: int, channels: int) -> None:
    path = tmp_path / "a.wav"
    value = 8192 >> 8 if width == 1 else 8192 << 8 * (width - 2)
    sample = bytes([128 + value]) if width == 1 else value.to_bytes(width, "little", signed=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, 16_000, 0, "NONE", ""))
        file.writeframes(sample * channels * 100)
    assert list(samples(read_wav(path, 16_000))) == [8192] * 100


@pytest.mark.parametrize(
    "content", [b"", b"RIFF", b"\x00" * 100, b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0"]
)
def test_what_is_no_wav_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(BoardError, match=r"a\.wav"):
        read_wav(path, 16_000)


def test_a_rate_that_would_unfold_for_ever_is_refused(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", bytes(4000), 1)
    with pytest.raises(BoardError, match="1 samples a second"):
        read_wav(tmp_path / "a.wav", 16_000)


def test_a_path_with_a_zero_byte_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="null byte"):
        read_wav(tmp_path / "a\0.wav", 16_000)


def test_a_missing_file_and_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="No such file"):
        read_wav(tmp_path / "no.wav", 16_000)
    with pytest.raises(BoardError, match="No such file"):
        write_wav(tmp_path / "no" / "a.wav", b"", 16_000)


def test_write_and_read(tmp_path: Path) -> None:
    pcm = tone(16_000, 440, 0.05)
    write_wav(tmp_path / "a.wav", pcm, 16_000)
    assert read_wav(tmp_path / "a.wav", 16_000) == pcm
