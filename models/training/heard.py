"""How the cuts of `turn.end.heard.jsonl` came: `python -m exo.models.training.heard --clinc PATH > FILE`. Sentences
are spoken whole, and cut with the melody of what goes on (a comma), by Piper and four voices of espeak-ng, and
written by the default Whisper. The label is that of the cut; no model labels anything.

A line whose last word was written as another is left out: nobody could tell from its words. Voices draw noise, so
that another run writes a few lines otherwise; what was learnt from is the file."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from exo.core.base.home import models_folder
from exo.models import noises
from exo.models.audio import RATE, from_pcm, resample
from exo.models.catalog import Catalog
from exo.models.closed import kinds
from exo.models.piper import Piper
from exo.models.training import cuts
from exo.models.training.data import OWN, Clinc
from exo.models.vad import Vad
from exo.models.whisper import Whisper

VOICES = ("", "en-us", "en-gb", "en-us+f3", "en-gb+m3")  # "" is Piper
SENTENCES = 700  # of CLINC150's train
DIGITS = dict(zip(("one", "two", "three", "four", "five", "six", "seven"), "1234567", strict=True))
SAME, LIKE = 0.5, 0.75  # how alike all words, and the last ones, have to be


class Studio:
    """The default voice, ears and voice activity."""

    def __init__(self) -> None:
        """Raises ModelMissing, ModelCorrupt."""
        catalog = Catalog(models_folder())
        speech, activity = catalog.resolve("speech"), catalog.resolve("activity")
        self._piper = Piper(catalog.require(speech), speech.file(".onnx"), 1)
        self._vad = Vad(catalog.require(activity), activity.file(".onnx"))
        self._whisper = Whisper(catalog.require(catalog.resolve("transcription")), 1)

    def heard(self, text: str, label: str, voice: str) -> str:
        """What Whisper writes of the text, spoken so that it goes on or ends."""
        asks = not cuts.ASKS.isdisjoint(kinds(text.split()[0].lower()))
        mark = "," if label == "unfinished" else "?" if asks else "."
        if voice:
            sound = noises.by_espeak(text + mark, voice)
        else:
            sound = resample(from_pcm(self._piper.say(text, mark, 1.0)), self._piper.rate)
        quiet = np.zeros(RATE // 2, np.float32)
        sound = noises.at(np.concatenate([quiet, sound, quiet]).astype(np.float32), -26)
        activity = self._vad.begin()
        activity.feed(sound)
        spans = activity.spans()
        return self._whisper.transcribe(sound, spans, "en")[0] if spans else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="exo.models.training.heard", description=__doc__)
    parser.add_argument("--clinc", required=True, type=Path, help="data_full.json of CLINC150")
    options, studio = parser.parse_args(arguments), Studio()
    for at, (label, text) in enumerate(_sentences(Clinc(options.clinc), Random(1))):
        heard = studio.heard(text, label, VOICES[at % len(VOICES)])
        if as_said(text, heard):
            row = {"said": text, "heard": heard, "label": label}
            print(json.dumps(row, ensure_ascii=False), flush=True)
    return 0


def as_said(said: str, heard: str) -> bool:
    """Whether the words are about those that were said, and the last one is."""
    one, other = _words(said), _words(heard)
    if not other or difflib.SequenceMatcher(None, one, other).ratio() < SAME:
        return False
    last, its = one[-1], other[-1]
    near = len(one) == len(other) and difflib.SequenceMatcher(None, last, its).ratio() >= LIKE
    return last == its or (last.isdigit() and its.isdigit()) or near


def _sentences(clinc: Clinc, random: Random) -> Iterator[tuple[str, str]]:
    """(label, text): two cuts and two complete parts of each authored sentence, one and one of CLINC150's."""
    lines = (OWN / "turn.end.cuts.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        language, _, marked = line.partition("\t")
        if language == "en":
            found: dict[str, list[Any]] = {"finished": [], "unfinished": []}
            for label, text in cuts.labelled(marked):
                found[label].append((label, text))
            for each in found.values():
                yield from random.sample(each, min(2, len(each)))
    for sentence in random.sample(clinc.parts["train"].texts, SENTENCES):
        yield "finished", sentence
        places = range(2, len(sentence.split()))
        if parts := [cut for place in places if (cut := cuts.of_clinc(sentence, place))]:
            yield "unfinished", random.choice(parts)


def _words(text: str) -> list[str]:
    found: list[str] = re.findall(r"[^\W_]+(?:'\w+)?", text.lower())
    return [DIGITS.get(word, word) for word in found]


if __name__ == "__main__":
    sys.exit(main())
