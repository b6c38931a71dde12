"""Speech to text by Whisper on CTranslate2, the engine of faster-whisper. Owns the log-mel front end, the
prompt and the split of long recordings; voice activity is handed in.

faster-whisper's Python layer is not imported: it brings PyAV and a hub client, 23 MB resident that are
never used here."""

from __future__ import annotations

import difflib
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.models.audio import RATE
from exo.models.replies import BadRequest

if TYPE_CHECKING:
    import numpy as np
    from exo.models.audio import Samples
    from numpy.typing import NDArray

HOP, FFT = 160, 400  # samples between frames, samples in one
WINDOW = 3000  # frames (30 s) the model was trained on
LONGEST = 28.0  # seconds in one piece
MARGIN = 0.2  # seconds kept before and after speech
# frames computed for a short recording, and silence after a longer one. Measured, see README: half the
# window hears espeak-ng's sentences as well as the whole one in half the time; less makes it loop
SHORT, TAIL = 1500, 300
# when words are made up, chosen on the dev half of noises.toml: Whisper's probability that nobody speaks
# (real speech 0.01 to 0.28, voices backwards 0.21 to 0.79), and below which score it is not sure
EMPTY, SURE = 0.4, -0.5
DOUBT = -0.9  # of the score less twice that probability; then the sound is heard again
MOVED = 0.37  # seconds that it is moved for it
AGREE = (
    0.5  # share of words that must come again (real speech 0.5 to 1, voices backwards 0 to 0.34)
)


class Whisper:
    """One loaded model. Not safe for two transcriptions at once: the pool gives it out one at a time."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Raises RuntimeError, OSError or ValueError for files that are no model."""
        import ctranslate2
        import tokenizers

        self._numbers = ctranslate2.StorageView
        self._model = ctranslate2.models.Whisper(
            str(folder), device="cpu", compute_type="int8", intra_threads=threads, inter_threads=1
        )
        self._words = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "config.json").read_text())
        self._bins = 128 if "large-v3" in config.get("_name_or_path", "") else 80
        self._mel = mel_filters(self._bins)
        self._begin = self._token("<|startoftranscript|>")
        self._end = self._token("<|endoftext|>")
        self._many = bool(self._model.is_multilingual)  # the .en models hear English alone
        self._task = [self._token("<|transcribe|>")] if self._many else []
        self._task.append(self._token("<|notimestamps|>"))
        import numpy as np

        self.transcribe(np.zeros(RATE, np.float32), [(0.0, 1.0)], "en")  # warm: first use is slow

    def transcribe(
        self, samples: Samples, speech: list[tuple[float, float]], language: str
    ) -> tuple[str, str]:
        """(text, language) of the spans of `speech`. `language` "" asks the model. Raises BadRequest for
        a language that the model does not know."""
        texts: list[str] = []
        if not self._many and language not in ("", "en"):
            why = f"the model that is installed hears English alone, not {language!r}"
            raise BadRequest(
                "transcribe", why, "set voice.language = en, or install a larger model"
            )
        language = language or ("" if self._many else "en")
        for start, end in _pieces(speech, len(samples) / RATE):
            part = samples[int(start * RATE) : int(end * RATE)]
            encoded = self._encode(part)
            language = language or self._guess(encoded)
            texts.append(self._certain(part, encoded, end - start, language))
        return " ".join(text for text in texts if text), language

    def _encode(self, part: Samples) -> Any:
        import numpy as np

        features = log_mel(part, self._mel)
        frames = min(WINDOW, max(SHORT, (features.shape[1] + TAIL + 1) // 2 * 2))
        quiet = float(features.min()) if features.size else 0.0
        padded = np.full((1, self._bins, frames), quiet, np.float32)
        padded[0, :, : features.shape[1]] = features[:, :frames]
        return self._model.encode(self._numbers.from_array(padded))

    def _guess(self, encoded: Any) -> str:
        found = self._model.detect_language(encoded)[0]
        return str(found[0][0]).strip("<|>")

    def _certain(self, part: Samples, encoded: Any, seconds: float, language: str) -> str:
        """The words of a piece, "" when they are not to be trusted: Whisper writes sentences for any
        sound. Where it doubts, it hears the sound once more, moved in its window: what was said is heard
        again, what was made up comes out otherwise."""
        import numpy as np

        text, score, empty = self._decode(encoded, seconds, language)
        if empty > EMPTY and score < SURE:
            return ""
        if text and score - 2 * empty < DOUBT:
            again = self._encode(np.pad(part, (int(MOVED * RATE), 0)))
            other = self._decode(again, seconds, language)[0]
            if agreement(text, other) < AGREE:
                return ""
        return text

    def _decode(self, encoded: Any, seconds: float, language: str) -> tuple[str, float, float]:
        """(words, mean log probability of a token, probability that nobody speaks)."""
        spoken = self._words.token_to_id(f"<|{language}|>")
        if spoken is None:
            raise BadRequest("read language", f"{language!r} is none that this model knows")
        prompt = [self._begin, *([spoken] if self._many else []), *self._task]
        # nobody says ten tokens a second: the limit cuts a loop before it costs seconds
        limit = len(prompt) + 16 + int(seconds * 10)
        best, best_score, empty = "", float("-inf"), 0.0
        for temperature in (0.0, 0.4, 0.8):
            result = self._model.generate(
                encoded,
                [prompt],
                beam_size=1 if temperature else 5,
                sampling_topk=0 if temperature else 1,
                sampling_temperature=temperature or 1.0,
                max_length=min(448, limit),
                return_scores=True,
                return_no_speech_prob=True,
                suppress_blank=True,
            )[0]
            text = self._words.decode([t for t in result.sequences_ids[0] if t < self._end]).strip()
            score = float(result.scores[0])
            empty = float(result.no_speech_prob)
            if not _loops(text) and score > best_score:
                best, best_score = text, score
            if best_score > -1.0 or (empty > EMPTY and score < SURE):
                break
        return best, best_score, empty

    def _token(self, text: str) -> int:
        found = self._words.token_to_id(text)
        if found is None:
            raise ValueError(f"tokenizer.json knows no {text}")
        return int(found)


def agreement(one: str, other: str) -> float:
    """How much of two texts is the same words in the same order, 0 to 1."""
    first, second = (re.findall(r"\w+", text.lower()) for text in (one, other))
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


def _loops(text: str) -> bool:
    """Whisper's own measure of a text that repeats itself."""
    raw = text.encode()
    return len(raw) > 40 and len(raw) / len(zlib.compress(raw)) > 2.4


def _pieces(speech: list[tuple[float, float]], duration: float) -> list[tuple[float, float]]:
    """Join spans into pieces of at most LONGEST seconds, with a margin; a longer span is cut hard."""
    out: list[tuple[float, float]] = []
    for start, end in speech:
        start, end = max(0.0, start - MARGIN), min(duration, end + MARGIN)
        while end - start > LONGEST:
            out.append((start, start + LONGEST))
            start += LONGEST
        if out and end - out[-1][0] <= LONGEST and start - out[-1][1] < 2.0:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def log_mel(samples: Samples, filters: NDArray[np.float32]) -> NDArray[np.float32]:
    """(bins, frames of 10 ms): the front end that Whisper was trained with."""
    import numpy as np

    sound = np.pad(samples, (0, HOP))
    sound = np.pad(sound, FFT // 2, mode="reflect" if len(sound) > FFT // 2 else "constant")
    frames = np.lib.stride_tricks.sliding_window_view(sound, FFT)[::HOP]
    window = np.hanning(FFT + 1)[:-1].astype(np.float32)
    power = np.abs(np.fft.rfft(frames * window, axis=-1)[:-1]).astype(np.float32) ** 2
    mel = np.log10(np.maximum(filters @ power.T, 1e-10))
    mel = np.maximum(mel, mel.max() - 8.0)
    return ((mel + 4.0) / 4.0).astype(np.float32)


def mel_filters(bins: int) -> NDArray[np.float32]:
    """(bins, 201) triangles on the Slaney mel scale: linear to 1 kHz, then 27 steps to each 6.4-fold."""
    import numpy as np

    step = 200.0 / 3
    ratio = np.log(6.4) / 27.0
    top = 15 + np.log(RATE / 2 / 1000.0) / ratio
    marks = np.linspace(0, top, bins + 2)
    hertz = np.where(marks < 15, marks * step, 1000.0 * np.exp(ratio * (marks - 15)))
    bands = np.fft.rfftfreq(FFT, 1 / RATE)
    rising = (bands[None, :] - hertz[:-2, None]) / np.diff(hertz)[:-1, None]
    falling = (hertz[2:, None] - bands[None, :]) / np.diff(hertz)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return (triangles * (2.0 / (hertz[2:] - hertz[:-2]))[:, None]).astype(np.float32)
