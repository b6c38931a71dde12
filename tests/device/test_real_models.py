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
