"""When a tapped recording ends: sentences with a pause of PAUSE seconds within, spoken by Piper and four voices of
espeak-ng, heard by the real models. How many are cut off in that pause, and how long after the last word the end
is told: with the words judged, at the pace of a microphone and beside whatever else runs; the same where the
machine has time, so that no judgement comes late; and beside both by silence alone.

English alone: the speech model of set-up hears nothing else."""

from __future__ import annotations

import asyncio
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.models import noises
from exo.models.audio import RATE, from_pcm, resample, to_pcm
from exo.models.local import LocalBackend
from exo.models.requests import Pauses, SpeechRequest
from exo.tools.bench import Figure, Say

SENTENCES = Path(__file__).with_name("turns.txt")
PAUSE = 1.2  # seconds of silence within a sentence
BLOCK = 1024  # bytes that a microphone gives at once
DBFS = -24
LOUD = 328  # of 32,768: what is below is the silence around a voice
PLAIN, ADAPTIVE = Pauses(), Pauses(adaptive=True)


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """The first `rounds` sentences (default all)."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line and line[0] != "#"][: rounds or None]
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        yield from asyncio.run(_run(Home(Path(folder)).make(), texts, say))


async def _run(home: Home, texts: list[str], say: Say) -> list[Figure]:
    backend = LocalBackend(home, Settings(home.settings_file))
    rows: list[dict[str, Any]] = []
    ways = {
        "judged": (ADAPTIVE, True),
        "judged in time": (ADAPTIVE, False),
        "silence": (PLAIN, False),
    }
    try:
        voices = noises.table()["speech"]["voices"]
        for number, text in enumerate(texts):
            first, second = (part.strip() for part in text.split("|"))
            parts = [
                await _said(backend, voices[number % len(voices)], each)
                for each in (f"{first},", second)
            ]
            if not rows:
                await _heard(backend, parts, PLAIN, False)  # loads the models
            row = {name: await _heard(backend, parts, *each) for name, each in ways.items()}
            say(f"{text}: {row}")
            rows.append(row)
    finally:
        await backend.close()
    return [figure for name in ways for figure in _figures(name, [row[name] for row in rows])]


def _figures(name: str, rows: list[dict[str, Any]]) -> Iterator[Figure]:
    delays = [row["delay"] for row in rows if row["delay"] is not None]
    cut = 100 * mean(row["cut"] for row in rows)
    yield Figure(f"{name}: cut off in a pause of {PAUSE:g} s", cut, "%")
    yield Figure(f"{name}: last word to the end told, mean", mean(delays), "s")
    yield Figure(f"{name}: the same, median", median(delays), "s")
    yield Figure(f"{name}: the same, longest", max(delays), "s")
    if name != "silence":
        for place, right in (("pause", "unfinished"), ("end", "finished")):
            found = [row[place] for row in rows]
            wrong = {"unfinished": "finished", "finished": "unfinished"}[right]
            for each, what in (
                (right, right),
                ("", "unsure"),
                (None, "too late"),
                (wrong, f"{wrong}, wrong"),
            ):
                share = 100 * found.count(each) / len(found)
                yield Figure(f"{name}: words at the {place}: {what}", share, "%")


async def _said(backend: LocalBackend, voice: str, text: str) -> bytes:
    """Raw signed 16-bit mono at 16 kHz, without the silence around it."""
    if voice == "piper":
        rate, pieces = await backend.speak(SpeechRequest(text=text, format="pcm"))
        sound = resample(from_pcm(b"".join([piece async for piece in pieces])), rate)
    else:
        sound = noises.by_espeak(text, voice)
    samples = array("h", to_pcm(noises.at(sound, DBFS)))
    loud = [at for at, value in enumerate(samples) if abs(value) > LOUD]
    return samples[loud[0] : loud[-1] + 1].tobytes()


async def _heard(
    backend: LocalBackend, parts: list[bytes], pauses: Pauses, paced: bool
) -> dict[str, Any]:
    """{cut: the end was told in the pause, delay: seconds from the last word to the end, what the words were
    judged at the pause and at the end}."""
    listener: Any = await backend.listen("en", True)
    lead, gap, tail = (bytes(2 * int(RATE * each)) for each in (0.5, PAUSE, pauses.later + 0.5))
    pcm = lead + parts[0] + gap + parts[1] + tail
    begins = len(lead + parts[0] + gap) // 2  # samples
    last = begins + len(parts[1]) // 2
    row: dict[str, Any] = {"cut": False, "delay": None, "pause": None, "end": None}
    loop, speaking = asyncio.get_running_loop(), False
    start = loop.time()
    try:
        for place in range(0, len(pcm), BLOCK):
            await listener.feed(pcm[place : place + BLOCK])
            heard = (place + BLOCK) // 2
            now, judged = listener.speaking(pauses), listener.judged
            if speaking and not now:
                if heard < begins:
                    row["cut"] = True
                elif heard > last:
                    row["delay"] = (heard - last) / RATE
            # what was known while it could still change something
            if heard < begins and (now or speaking):
                row["pause"] = judged
            elif heard > last and (now or row["delay"] is not None):
                row["end"] = judged
            if row["delay"] is not None:
                break
            speaking = now
            if paced:
                await asyncio.sleep(max(0.0, start + heard / RATE - loop.time()))
            else:
                await listener.thought()
    finally:
        await listener.close()
    return row
