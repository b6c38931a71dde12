"""A spoken question, from the release of the button: to the first character on the screen and to the
first sound, through the whole product; beside the same models run strictly one after the other (speech
to text of the whole recording, then the whole reply, then speech of the whole reply)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Iterator
from pathlib import Path

from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.base.unix import post
from exo.tools.bench import Figure, Say
from exo.tools.supervisor import Supervisor

QUESTION = "Please tell me something about the sea and its ships."  # 3.1 s at 160 words a minute
SECONDS = 3.5  # length of the recording: people let go of a button a moment after the last word
TOKENS = 40  # length of the reply
SYSTEM = Path(__file__).parents[2] / "core" / "engine" / "prompts" / "system.md"
SCRIPT = """hold talk
say question.wav
release talk
wait reply 60
wait idle 120
"""


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` of each (default 5) after one that warms the models; medians."""
    rounds = rounds or 5
    os.environ["EXO_REPLY_TOKENS"] = str(TOKENS)
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        here = Path(folder)
        home = Home(here / "home").make()
        _question(here / "question.wav")
        (here / "script.txt").write_text(SCRIPT)
        with Supervisor(home, ["exod", "models"]) as services:
            services.wait_ready()
            product: list[tuple[float, ...]] = []
            apart: list[tuple[float, ...]] = []
            for n in range(rounds + 1):
                product.append(_product(home, here))
                apart.append(_one_after_the_other(home, here / "question.wav"))
                say(
                    f"round {n}: first sound {product[-1][1]:.2f} s, one after the other {apart[-1][1]:.2f} s"
                )
    heard, shown, sound = (_median([row[k] for row in product[1:]]) for k in (2, 0, 1))
    whole, spoken = (_median([row[k] for row in apart[1:]]) for k in (0, 1))
    yield Figure("release to the words that were heard", heard * 1000, "ms")
    yield Figure("release to first character on the screen", shown * 1000, "ms")
    yield Figure("release to first sound", sound * 1000, "ms")
    yield Figure("one after the other: to the text", whole * 1000, "ms")
    yield Figure("one after the other: to the sound", spoken * 1000, "ms")
    yield Figure("first character / one after the other", shown / whole, "x", "<= 0.5")
    yield Figure("first sound / one after the other", sound / spoken, "x", "<= 0.5")


def _question(path: Path) -> None:
    """The question spoken by espeak-ng, with a natural pause before the release, 16 kHz mono."""
    raw = path.with_name("raw.wav")
    command = ["espeak-ng", "-v", "en-us", "-s", "160", "-w", str(raw), QUESTION]
    subprocess.run(command, check=True, capture_output=True)
    with wave.open(str(raw)) as file:
        rate, frames = file.getframerate(), file.readframes(file.getnframes())
    samples = memoryview(frames).cast("h")
    want = int(SECONDS * 16000)
    picked = [
        samples[min(n * rate // 16000, len(samples) - 1)]
        for n in range(len(samples) * 16000 // rate)
    ]
    picked = picked[:want] + [0] * max(0, want - len(picked))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(b"".join(value.to_bytes(2, "little", signed=True) for value in picked))


def _product(home: Home, here: Path) -> tuple[float, float, float]:
    """Seconds from the release to the first character, to the first sound, to the words heard."""
    trace = here / "trace.jsonl"
    trace.unlink(missing_ok=True)
    command = [sys.executable, "-m", "exo.device.app", "--board", "sim", "--no-services"]
    command += ["--home", str(home.root), "--script", str(here / "script.txt")]
    command += ["--trace", str(trace), "--audio-out", str(here / "out.wav")]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise ExoError("bench voice", f"the handheld failed: {done.stderr[-400:]}")
    first: dict[str, float] = {}
    for line in trace.read_text().splitlines():
        row = json.loads(line)
        first.setdefault(row["moment"], row["t"])
    shown, sounds, heard = (
        first[name] - first["released"] for name in ("shown", "sounds", "heard")
    )
    return shown, sounds, heard


def _one_after_the_other(home: Home, path: Path) -> tuple[float, float]:
    """Seconds until the whole text is there, and until its whole speech is there."""
    with wave.open(str(path)) as file:
        pcm = file.readframes(file.getnframes())
    begun = time.monotonic()
    kind = "audio/pcm;rate=16000"
    heard = _ask(home, "/v1/audio/transcriptions?language=en", pcm, kind)["text"]
    messages = [
        {"role": "system", "content": SYSTEM.read_text().strip()},
        {"role": "user", "content": heard},
    ]
    body = {"messages": messages, "max_tokens": TOKENS}
    reply = _ask(home, "/v1/chat/completions", json.dumps(body).encode(), "application/json")
    text = reply["choices"][0]["message"]["content"]
    whole = time.monotonic() - begun
    status, raw = post(home.models_socket, "/v1/audio/speech", {"input": text}, timeout=60.0)
    if status != 200:
        raise ExoError("bench voice", raw.decode(errors="replace")[:200])
    return whole, time.monotonic() - begun


def _ask(home: Home, target: str, body: bytes, kind: str) -> dict:  # type: ignore[type-arg]
    status, raw = post(home.models_socket, target, body, content_type=kind, timeout=60.0)
    if status != 200:
        raise ExoError("bench voice", raw.decode(errors="replace")[:200])
    return dict(json.loads(raw))


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
