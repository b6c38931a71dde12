"""What is heard where nobody speaks, and what is lost of speech: words for an hour of each kind of
noise, recordings of real sentences that came out empty, and how soon the end of speech is told; beside
the voice activity alone, which is what decides without the rest."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.models import noises
from exo.models.audio import RATE, from_pcm, resample, to_pcm
from exo.models.local import LocalBackend
from exo.models.requests import Pauses, SpeechRequest
from exo.tools.bench import Figure, Say

BLOCK = 1024  # bytes that a microphone gives at once
PAD = RATE // 2  # samples of silence before a sentence; behind it three times as much


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """The held half of noises.toml; EXO_BENCH_SPLIT=dev for the half that thresholds were chosen on."""
    split = os.environ.get("EXO_BENCH_SPLIT", "held")
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        yield from asyncio.run(_run(Home(Path(folder)).make(), split, say))


async def _run(home: Home, split: str, say: Say) -> list[Figure]:
    backend = LocalBackend(home, Settings(home.settings_file))
    try:
        return [*await _noise(backend, split, say), *await _speech(backend, split, say)]
    finally:
        await backend.close()


async def _noise(backend: LocalBackend, split: str, say: Say) -> list[Figure]:
    figures, total, voiced, seconds = [], 0, 0, 0.0
    for row in noises.table()["noise"]:
        words = 0
        for clip in noises.clips(row["name"], split):
            text, spans, _ = await _heard(backend, clip)
            words += len(text.split())
            voiced += bool(spans)
            seconds += len(clip) / RATE
            if text:
                say(f"{row['name']}: {text}")
        total += words
        figures.append(Figure(f"words in {row['name']}", words, "words", "0"))
    figures.append(Figure("noise that sounded", seconds, "s"))
    figures.append(Figure("words for an hour of noise", total * 3600 / seconds, "words", "0"))
    figures.append(Figure("voice activity alone: clips taken for speech", voiced, "clips"))
    return figures


async def _speech(backend: LocalBackend, split: str, say: Say) -> list[Figure]:
    speech: Any = noises.table()["speech"]
    lost = {False: 0, True: 0}
    right, count, told = 0.0, 0, 0
    for voice in speech["voices"]:
        for number, text in enumerate(speech[split]):
            clean = await _said(backend, voice, text, speech["dbfs"])
            noise = noises.clip("pink", split, number % noises.table()["clips"])
            noise = noises.at(noise, speech["dbfs"] - speech["snr_db"])
            for noisy in (False, True):
                sound = clean.copy()
                if noisy:
                    for place in range(0, len(sound), len(noise)):
                        part = sound[place : place + len(noise)]
                        part += noise[: len(part)]
                heard, _, ended = await _heard(backend, sound)
                lost[noisy] += not heard
                count += 1
                right += difflib.SequenceMatcher(None, _words(text), _words(heard)).ratio()
                told += ended > 0
                if not heard:
                    say(f"dropped{', noisy' if noisy else ''}: {voice}: {text}")
    half = count // 2
    return [
        Figure("sentences dropped, quiet room", 100 * lost[False] / half, "%", "<= 2"),
        Figure(
            f"sentences dropped, noise {speech['snr_db']} dB below", 100 * lost[True] / half, "%"
        ),
        Figure("words heard as they were said", 100 * right / count, "%"),
        Figure("sentences whose end was told", 100 * told / count, "%"),
    ]


async def _said(backend: LocalBackend, voice: str, text: str, dbfs: float) -> Any:
    if voice == "piper":
        rate, pieces = await backend.speak(SpeechRequest(text=text, format="pcm"))
        pcm = b"".join([piece async for piece in pieces])
        sound = resample(from_pcm(pcm), rate)
    else:
        sound = noises.by_espeak(text, voice)
    quiet = bytes(2 * PAD)
    padded = from_pcm(quiet + to_pcm(sound) + 3 * quiet)
    return noises.at(padded, dbfs)


async def _heard(backend: LocalBackend, sound: Any) -> tuple[str, Any, float]:
    """(text, spans of speech, second at which the end of speech was told or 0), fed as it comes."""
    listener, pcm = await backend.listen("en", True), to_pcm(sound)
    ended, before = 0.0, False
    try:
        for place in range(0, len(pcm), BLOCK):
            await listener.feed(pcm[place : place + BLOCK])
            speaking = listener.speaking(Pauses())
            if before and not speaking:
                ended = place / 2 / RATE
            before = speaking
        heard = await listener.finish()
    finally:
        await listener.close()
    return heard.text, heard.speech, ended


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
