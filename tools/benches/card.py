"""What a spoken turn writes to the card: write_bytes of /proc/PID/io (proc(5)), summed over exod,
exo-models and exo-device, for a reply of 100 tokens at ten a second. A saved prefix counts apart."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Iterator
from pathlib import Path

from exo.core.base.client import Client
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.tools.bench import Figure, Say
from exo.tools.supervisor import Supervisor

WORDS = 100
SCRIPT = """hold talk
say question.wav
release talk
wait reply 20
wait idle 120
"""


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` spoken turns (default 3), each by a fresh simulated handheld."""
    rounds = rounds or 3
    # a folder on a real disk: a temporary one may lie in memory, where nothing is ever written back
    base = Path.home() / ".cache"
    base.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="exo-bench-", dir=base) as folder:
        home = Home(Path(folder) / "home").make()
        _tone(Path(folder) / "question.wav")
        (Path(folder) / "script.txt").write_text(SCRIPT)
        os.environ["EXO_DELTAS_JOIN_MS"] = "400"  # as on a board
        os.environ["EXO_FAKE_DELAY"] = "0.1"
        os.environ["EXO_FAKE_HEARD"] = f"!words {WORDS}"
        options: dict[str, tuple[str, ...]] = {"models": ("--fake",)}
        figures = []
        with Supervisor(home, ["exod", "models"], options) as services:
            services.wait_ready()
            client = Client(home.exod_socket)
            client.call("session.create")
            client.call("memory.query", verb="status", args={})  # the record is made at the start
            for n in range(rounds):
                say(f"turn {n + 1} of {rounds}: {WORDS} words at ten a second")
                before = _written(services.pids().values())
                own = _handheld(home, Path(folder))
                time.sleep(1.0)
                figures.append(_written(services.pids().values()) - before + own)
    yield Figure(
        "written for one spoken turn, median", sorted(figures)[rounds // 2] / 1000, "kB", "128"
    )
    yield Figure("written for one spoken turn, most", max(figures) / 1000, "kB", "< 512")


def _handheld(home: Home, folder: Path) -> int:
    """Run the script in a simulated handheld; returns the bytes that process wrote."""
    command = [sys.executable, "-m", "exo.device.app", "--board", "sim", "--no-services"]
    command += ["--home", str(home.root), "--script", str(folder / "script.txt")]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    written = 0
    while process.poll() is None:
        written = max(written, _written([process.pid]))
        time.sleep(0.05)
    if process.returncode:
        raise ExoError("bench card", f"the handheld failed: {process.communicate()[1][-400:]}")
    return written


def _written(pids: object) -> int:
    total = 0
    for pid in pids:  # type: ignore[attr-defined]
        try:
            text = Path(f"/proc/{pid}/io").read_text()
        except OSError:
            continue
        total += int(text.split("\nwrite_bytes: ")[1].split("\n")[0])
    return total


def _tone(path: Path) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((b"\0\x20" * 8 + b"\0\xe0" * 8) * 1000)
