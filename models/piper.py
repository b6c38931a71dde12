"""Text to speech by a Piper voice (VITS) on onnxruntime. Owns the ids of phonemes and the synthesis of one
clause; phonemes come from espeak.py, clauses from ear.py."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from exo.models import espeak
from exo.models.audio import to_pcm
from exo.models.onnx import session

PAUSES = {
    ".": 0.25,
    "!": 0.25,
    "?": 0.25,
    ":": 0.15,
    ";": 0.15,
    ",": 0.06,
}  # seconds after a clause


class Piper:
    """One voice. `rate` is its samples a second."""

    def __init__(self, folder: Path, model: str, threads: int) -> None:
        """Raises OSError, ValueError, KeyError or onnxruntime's errors for files that are no voice."""
        config = json.loads((folder / f"{model}.json").read_text(encoding="utf-8"))
        self.rate = int(config["audio"]["sample_rate"])
        self.voice = str(config["espeak"]["voice"])
        self._ids: dict[str, list[int]] = config["phoneme_id_map"]
        scales = config.get("inference", {})
        self._noise = float(scales.get("noise_scale", 0.667))
        self._length = float(scales.get("length_scale", 1.0))
        self._jitter = float(scales.get("noise_w", 0.8))
        self._speakers = int(config.get("num_speakers", 1))
        self._session = session(folder / model, threads)

    def say(self, words: str, mark: str, speed: float) -> bytes:
        """One clause as raw signed 16-bit mono, its pause included; b"" when nothing in it can be said.
        Raises ModelMissing or ModelError when espeak-ng does not serve."""
        import numpy as np

        ids = self.ids(espeak.phonemes(words, self.voice), mark)
        if not ids:
            return b""
        feeds: dict[str, Any] = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([self._noise, self._length / speed, self._jitter], np.float32),
        }
        if self._speakers > 1:
            feeds["sid"] = np.array([0], np.int64)
        sound = self._session.run(None, feeds)[0].reshape(-1)
        # level: joe's clauses differ by 10 dB when left as they come
        peak = float(np.abs(sound).max()) or 1.0
        pause = bytes(2 * int(self.rate * PAUSES.get(mark, 0.1) / speed))
        return to_pcm(sound * min(4.0, 0.85 / peak)) + pause

    def ids(self, phonemes: str, mark: str) -> list[int]:
        """Piper's numbers: ^ _ then every phoneme followed by _, the mark, and $. [] without phonemes."""
        body: list[int] = []
        for letter in unicodedata.normalize("NFD", phonemes):
            for number in self._ids.get(
                letter, []
            ):  # a phoneme that the voice never learnt is left out
                body += [number, *self._ids["_"]]
        if not body:
            return []
        for number in self._ids.get(mark, []):
            body += [number, *self._ids["_"]]
        return [*self._ids["^"], *self._ids["_"], *body, *self._ids["$"]]
