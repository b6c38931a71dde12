"""A spoken question through the real models: espeak-ng speaks it, whisper hears it, the language model
answers, Piper says it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from exo.core.base.home import models_folder

NEEDED = ("whisper-tiny", "smollm2-135m", "piper-en-joe", "silero-vad")

SCRIPT = """
wait idle 120
hold talk
say question.wav
release talk
wait thinking 60
wait reply 180
expect (?i)ocean
shot reply
wait idle 180
"""


@pytest.mark.slow
def test_a_spoken_question_is_answered_aloud(tmp_path: Path) -> None:
    if not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not installed")
    if absent := [name for name in NEEDED if not (models_folder() / name).is_dir()]:
        pytest.skip(f"models are not here: {', '.join(absent)}; run `exo models get`")
    question = "Why is the ocean salty? Tell me about the ocean."
    subprocess.run(["espeak-ng", "-w", tmp_path / "question.wav", question], check=True)
    (tmp_path / "script.txt").write_text(SCRIPT)
    command = [sys.executable, "-m", "exo.device.app", "--home", str(tmp_path / "home")]
    command += ["--board", "sim", "--script", str(tmp_path / "script.txt")]
    command += ["--shots", str(tmp_path), "--audio-out", str(tmp_path / "out.wav")]
    command += ["--trace", str(tmp_path / "trace.jsonl")]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    moments = [json.loads(line)["moment"] for line in (tmp_path / "trace.jsonl").open()]
    assert moments[:4] == ["pressed", "released", "heard", "shown"]
    assert moments.index("sounds") < moments.index("silent")
    with wave.open(str(tmp_path / "out.wav"), "rb") as file:
        assert any(file.readframes(file.getnframes()))


USEFUL = """
wait idle 120
hold talk
say timer.wav
release talk
wait thinking 60
wait reply 60
expect (?i)timer
wait notice 60
expect (?i)timer is done
press ok
wait idle 60
hold talk
say decided.wav
release talk
wait thinking 60
wait reply 60
expect (?i)boiler
wait idle 60
hold talk
say nothing.wav
release talk
wait thinking 60
wait reply 60
expect I have nothing on that
wait idle 60
"""


@pytest.mark.slow
def test_spoken_commands_and_questions_are_of_use(tmp_path: Path) -> None:
    """A timer that rings, an answer from the store, and an honest word where there is none."""
    if not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not installed")
    if absent := [n for n in (*NEEDED, "minilm-l6-v2") if not (models_folder() / n).is_dir()]:
        pytest.skip(f"models are not here: {', '.join(absent)}; run `exo models get`")
    spoken = {
        "timer": "Set a timer for three seconds.",
        "decided": "What did I decide about the boiler?",
        "nothing": "What is my shoe size?",
    }
    for name, text in spoken.items():
        subprocess.run(["espeak-ng", "-s", "140", "-w", tmp_path / f"{name}.wav", text], check=True)
    home = str(tmp_path / "home")
    told = "I decided to have the boiler repaired in May."
    keep = [sys.executable, "-m", "exo.tools.cli", "remember", told, "--home", home]
    subprocess.run(keep, check=True, capture_output=True, timeout=120)
    (tmp_path / "script.txt").write_text(USEFUL)
    command = [sys.executable, "-m", "exo.device.app", "--home", home, "--board", "sim"]
    command += ["--script", str(tmp_path / "script.txt"), "--shots", str(tmp_path)]
    command += ["--audio-out", str(tmp_path / "out.wav")]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280
    )
    assert result.returncode == 0, result.stderr
