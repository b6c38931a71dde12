"""Sounds that are no speech, made from fixed seeds: what a handheld hears when its button is held and
nobody speaks. Owns the sounds; `noises.toml` owns which there are and that none of them holds a word.

Invariant: the same row, split and number give the same samples on every machine with the same espeak-ng."""

from __future__ import annotations

import subprocess
import tomllib
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.models.audio import RATE, from_wav

if TYPE_CHECKING:
    import numpy as np
    from exo.models.audio import Samples

    Random = np.random.Generator

TABLE = Path(__file__).with_name("noises.toml")
VOICES = ("en-us", "en-gb+m3", "en-us+f3", "en-gb+f2", "en-us+m7")


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The rows of noises.toml."""
    return tomllib.loads(TABLE.read_text())


def clips(name: str, split: str) -> Iterator[Samples]:
    """Every clip of one row."""
    for number in range(table()["clips"]):
        yield clip(name, split, number)


def clip(name: str, split: str, number: int) -> Samples:
    """One clip, float32 at RATE. `split` is dev or held."""
    import numpy as np

    rows = table()
    row = next(each for each in rows["noise"] if each["name"] == name)
    random = np.random.default_rng([rows["seeds"][split], zlib.crc32(name.encode()), number])
    count = int(rows["clip"] * RATE)
    made = MAKERS[name](random, count)[:count]
    low, high = row["dbfs"]
    return at(made, low + (high - low) * number / max(1, rows["clips"] - 1))


def at(sound: Samples, dbfs: float) -> Samples:
    """The sound at that mean level; peaks beyond full scale are cut, as a converter cuts them."""
    import numpy as np

    power = float(np.sqrt(np.mean(np.square(sound)))) or 1.0
    return np.clip(sound * (10 ** (dbfs / 20) / power), -1.0, 1.0).astype(np.float32)


def by_espeak(text: str, voice: str, pace: int = 160) -> Samples:
    """A sentence spoken by espeak-ng."""
    command = ["espeak-ng", "-v", voice, "-s", str(pace), "--stdin", "--stdout"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=20)
    return from_wav(done.stdout)


def _time(count: int) -> Any:
    import numpy as np

    return np.arange(count) / RATE


def _silence(random: Random, count: int) -> Any:
    return random.choice([-1.0, 0.0, 0.0, 1.0], count).astype("float32")


def _hum(random: Random, count: int) -> Any:
    import numpy as np

    mains, time = random.choice([50.0, 60.0]), _time(count)
    parts = [random.uniform(0.1, 1) / n for n in range(1, 9)]
    tones = (part * np.sin(2 * np.pi * mains * n * time) for n, part in enumerate(parts, 1))
    return sum(tones) + 0.01 * random.normal(size=count)


def _white(random: Random, count: int) -> Any:
    return random.normal(size=count)


def _coloured(random: Random, count: int, slope: float, low: float = 20.0) -> Any:
    """Noise whose power falls with frequency: slope 1 is pink, 2 brown."""
    import numpy as np

    bands = np.fft.rfft(random.normal(size=count))
    hertz = np.maximum(np.fft.rfftfreq(count, 1 / RATE), low)
    return np.fft.irfft(bands / hertz ** (slope / 2), count)


def _pink(random: Random, count: int) -> Any:
    return _coloured(random, count, 1.0)


def _note(hertz: float, seconds: float, bright: float, vibrato: float = 0.0) -> Any:
    import numpy as np

    time = _time(int(seconds * RATE))
    phase = 2 * np.pi * hertz * time + vibrato * np.sin(2 * np.pi * 5.5 * time)
    tone = sum(bright**n * np.sin((n + 1) * phase) for n in range(8) if (n + 1) * hertz < RATE / 2)
    return tone * np.minimum(1, time / 0.02) * np.exp(-time * 1.5 / seconds)


def _laid(count: int, parts: Iterator[tuple[float, Any]]) -> Any:
    """Sounds laid over each other, each at its second."""
    import numpy as np

    out = np.zeros(count)
    for second, sound in parts:
        place = int(second * RATE)
        piece = sound[: max(0, count - place)]
        out[place : place + len(piece)] += piece
    return out


def _chords(random: Random, count: int) -> Any:
    def parts() -> Iterator[tuple[float, Any]]:
        bright, beat = random.uniform(0.2, 0.7), random.uniform(0.4, 1.0)
        for n in range(int(count / RATE / beat) + 1):
            root = 110 * 2 ** (random.integers(0, 24) / 12)
            for step in (0, random.choice([3, 4]), 7, 12):
                yield n * beat, _note(root * 2 ** (step / 12), beat * 1.3, bright)

    return _laid(count, parts())


def _melody(random: Random, count: int) -> Any:
    """One line in the range of a singing voice, with vibrato."""

    def parts() -> Iterator[tuple[float, Any]]:
        second, bright = 0.0, random.uniform(0.4, 0.8)
        while second < count / RATE:
            length = random.choice([0.2, 0.3, 0.4, 0.6])
            hertz = 196 * 2 ** (random.choice([0, 2, 4, 5, 7, 9, 11, 12]) / 12)
            yield second, _note(hertz, length * 1.1, bright, random.uniform(0, 0.6))
            second += length

    return _laid(count, parts())


def _beats(random: Random, count: int) -> Any:
    import numpy as np

    def parts() -> Iterator[tuple[float, Any]]:
        beat = 60 / random.uniform(80, 150) / 2
        time = _time(int(0.2 * RATE))
        for n in range(int(count / RATE / beat) + 1):
            hat = np.diff(random.normal(size=len(time) + 1)) * np.exp(-time * 60)
            yield n * beat, 0.3 * hat
            if n % 4 == 0:
                yield n * beat, 2 * np.sin(2 * np.pi * 60 * time * (1 + np.exp(-time * 40)))
            if n % 4 == 2:
                yield n * beat, random.normal(size=len(time)) * np.exp(-time * 25)

    return _laid(count, parts())


def _typing(random: Random, count: int) -> Any:
    import numpy as np

    def parts() -> Iterator[tuple[float, Any]]:
        second = 0.1
        while second < count / RATE:
            time = _time(int(0.03 * RATE))
            click = random.normal(size=len(time)) * np.exp(-time * random.uniform(150, 500))
            body = np.sin(2 * np.pi * random.uniform(200, 900) * time) * np.exp(-time * 120)
            yield second, random.uniform(0.3, 1) * (click + body)
            second += random.uniform(0.06, 0.3) if random.random() < 0.9 else 1.0

    return _laid(count, parts()) + 0.001 * random.normal(size=count)


def _breath(random: Random, count: int) -> Any:
    import numpy as np

    time, pace = _time(count), random.uniform(0.2, 0.5)
    swell = np.maximum(0, np.sin(2 * np.pi * pace * time + random.uniform(0, 6))) ** 2
    bands = np.fft.rfft(random.normal(size=count))
    hertz = np.fft.rfftfreq(count, 1 / RATE)
    middle = random.uniform(500, 1800)
    air = np.fft.irfft(bands * np.exp(-(((hertz - middle) / 900) ** 2)), count)
    return air * swell + 0.01 * random.normal(size=count)


def _fan(random: Random, count: int) -> Any:
    import numpy as np

    blade, time = random.uniform(60, 160), _time(count)
    tone = sum(np.sin(2 * np.pi * blade * n * time) / n for n in range(1, 5))
    air = _coloured(random, count, 2.0, 80.0)
    return air / np.std(air) + 0.3 * tone


def _knocks(random: Random, count: int) -> Any:
    import numpy as np

    def parts() -> Iterator[tuple[float, Any]]:
        for _ in range(random.integers(2, 12)):
            time = _time(int(0.25 * RATE))
            thump = np.sin(2 * np.pi * random.uniform(70, 300) * time) * np.exp(-time * 30)
            yield (
                random.uniform(0, count / RATE),
                thump + 0.2 * random.normal(size=len(time)) * np.exp(-time * 80),
            )

    return _laid(count, parts()) + 0.0005 * random.normal(size=count)


def _whistle(random: Random, count: int) -> Any:
    import numpy as np

    knots = random.uniform(600, 2400, 12)
    hertz = np.interp(_time(count), np.linspace(0, count / RATE, 12), knots)
    swell = np.interp(_time(count), np.linspace(0, count / RATE, 12), random.uniform(0, 1, 12))
    tone = np.sin(2 * np.pi * np.cumsum(hertz) / RATE)
    return tone * swell + 0.02 * random.normal(size=count)


def _voice(random: Random, count: int) -> Any:
    """Sentences backwards, joined until they fill the clip."""
    import numpy as np

    said: list[Any] = []
    voice, pace = str(random.choice(VOICES)), int(random.integers(140, 200))
    while sum(map(len, said)) < count:
        text = str(random.choice(table()["speech"]["television"]))
        said.append(by_espeak(text, voice, pace)[::-1])
    return np.concatenate(said)[:count]


def _babble(random: Random, count: int) -> Any:

    voices = [_voice(random, count) for _ in range(3)]
    return sum(voices) + 0.02 * _pink(random, count)


MAKERS: dict[str, Callable[[Any, int], Any]] = {
    "silence": _silence,
    "hum": _hum,
    "white": _white,
    "pink": _pink,
    "chords": _chords,
    "melody": _melody,
    "beats": _beats,
    "typing": _typing,
    "breath": _breath,
    "fan": _fan,
    "knocks": _knocks,
    "whistle": _whistle,
    "babble": _babble,
    "backwards": _voice,
}
