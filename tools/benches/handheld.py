"""The handheld as a person feels it: from the edge of a button to changed pixels, in the simulator and
through each panel's own driver on a recorded bus; what a picture costs there; and what the device takes of
the processor while nobody touches it. exo-device runs as a process of its own and traces itself."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exo.board.panels import DRIVERS
from exo.board.profile import load
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.tools.bench import Figure, Say
from exo.tools.supervisor import Supervisor

BOARDS = (
    "sim",
    "adafruit-oled-bonnet",
    "waveshare-oled-1in3",
    "pimoroni-display-hat-mini",
    "pisugar-whisplay",
    "waveshare-epaper-2in13-v4",
)
PAUSE = 0.15  # seconds between two presses; an e-paper takes no second picture for one second
PAPER = 2.5
IDLE = 20.0  # seconds
I2C_HZ = 400_000


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` presses that open a page and as many that leave it, on each board (default 30)."""
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder) / "home").make()
        with Supervisor(home, ["exod", "models"], {"models": ("--fake",)}) as services:
            services.wait_ready()
            for board in BOARDS:
                say(f"{board}: pressing")
                yield from _presses(home, board, rounds or 30)
            say(f"idle for {IDLE:.0f} s")
            yield from _idle(home)


def _presses(home: Home, board: str, rounds: int) -> Iterator[Figure]:
    panel = load(board).panel
    paper = panel.driver.startswith("epd")
    rest = PAPER if paper else PAUSE
    rounds = max(4, rounds // 6) if paper else rounds
    # a short press listens and then says that it was short; the next one turns back
    leave = "ok" if "ok" in [button.name for button in load(board).buttons] else "talk"
    pair = f"press talk 40\nsleep {rest}\npress {leave} 40\nsleep {rest}\n"
    rows = _traced(home, board, f"wait idle 30\nsleep {rest}\n" + pair * rounds)
    found = [row for row in rows if row["moment"] in ("edge", "frame")]
    waits, frames = [], []
    for number, row in enumerate(found[:-1]):
        after = found[number + 1]
        if row["moment"] == "edge" and row["down"] and after["moment"] == "frame":
            waits.append(after["t"] - row["t"])
            frames.append(after)
    if len(waits) < rounds:
        raise ExoError(
            "bench handheld", f"{board}: {len(waits)} of {2 * rounds} presses changed a page"
        )
    kind = "sim" if board == "sim" else f"{panel.driver} {panel.size[0]}x{panel.size[1]}"
    hertz = (
        I2C_HZ if panel.bus == "i2c" else panel.speed_hz or DRIVERS.get(panel.driver, ("", 1))[1]
    )
    wires = [_on_the_wire(row, panel.bus, hertz) for row in frames]
    waits = [wait + wire for wait, wire in zip(waits, wires, strict=True)]
    yield Figure(f"{kind}: edge to changed pixel, median", 1000 * statistics.median(waits), "ms")
    yield Figure(f"{kind}: edge to changed pixel, p99", 1000 * _p99(waits), "ms", "<= 50")
    yield Figure(
        f"{kind}: drawing and sending", statistics.median(row["ms"] for row in frames), "ms"
    )
    if panel.bus:
        sent = [row["bytes"] for row in frames]
        yield Figure(f"{kind}: sent for a new page, median", statistics.median(sent), "bytes")
        yield Figure(f"{kind}: sent for a new page, most", max(sent), "bytes")
        yield Figure(f"{kind}: of it on the wire", 1000 * statistics.median(wires), "ms")


def _on_the_wire(row: dict[str, Any], bus: str, hertz: int) -> float:
    """Seconds that the bytes take by the bus's clock; I2C has a ninth bit and the address each time."""
    if not bus:
        return 0.0
    bits = 9 * (row["bytes"] + row["transfers"]) if bus == "i2c" else 8 * row["bytes"]
    return float(bits) / hertz


def _p99(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]


def _traced(home: Home, board: str, script: str) -> list[dict[str, Any]]:
    path, trace = home.root / "script.txt", home.root / "trace.jsonl"
    path.write_text(script)
    trace.unlink(missing_ok=True)
    command = [*_device(home, board), "--script", str(path), "--trace", str(trace), "--wires"]
    environ = os.environ | {"EXO_SCREEN_LINGER": "5"}
    done = subprocess.run(
        [*command, "--no-services"], env=environ, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise ExoError("bench handheld", f"{board}: {done.stderr[-300:]}")
    return [json.loads(line) for line in trace.read_text().splitlines()]


def _device(home: Home, board: str) -> list[str]:
    return [sys.executable, "-m", "exo.device.app", "--home", str(home.root), "--board", board]


def _idle(home: Home) -> Iterator[Figure]:
    """Processor time and wakes of exo-device beside an exod and an exo-models that answer."""
    path = home.root / "idle.txt"
    path.write_text(f"wait idle 30\nsleep {IDLE + 8}\n")
    command = [*_device(home, "sim"), "--no-services", "--script", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as device:
        try:
            assert device.stderr
            for line in device.stderr:
                if "sleep" in line:
                    break
            time.sleep(2.0)
            before, begun = _spent(device.pid), time.monotonic()
            time.sleep(IDLE)
            after, lasted = _spent(device.pid), time.monotonic() - begun
        finally:
            device.terminate()
    yield Figure("idle: of one core", 100 * (after[0] - before[0]) / lasted, "%", "< 1")
    yield Figure("idle: wakes", (after[1] - before[1]) / lasted, "a second")


def _spent(pid: int) -> tuple[float, int]:
    """Seconds on a processor and times put onto one, of all threads (proc(5), schedstat)."""
    seconds, wakes = 0.0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        on, _, times = (task / "schedstat").read_text().split()
        seconds, wakes = seconds + int(on) / 1e9, wakes + int(times)
    return seconds, wakes
