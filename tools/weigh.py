"""Memory and start of the running processes, for `exo footprint --measure`. Owns temporary homes and
the processes it starts in them; the person's home is not touched.

Resident memory is VmRSS, a sum over processes is PSS (shared pages divided among their users), both from
/proc (proc(5)). A process is weighed once it has answered and has been idle for a moment."""

from __future__ import annotations

import array
import contextlib
import datetime
import functools
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exo.core.base import unix
from exo.core.base.client import Client
from exo.core.base.errors import ExoError, ServiceError
from exo.core.base.home import Home
from exo.tools.footprint import Row

SETTLE = 3.0  # seconds of idleness before a process is weighed
PATIENCE = 180.0  # seconds a model may take to load on a busy machine
RATE = 16_000


def rows() -> list[Row]:
    """Start what there is, weigh it, stop it. Raises ExoError naming what did not start."""
    exod_mb, start_s = _exod()
    together_mb, all_mb, device_mb, largest_mb = _together()
    return [
        Row("exod, idle, empty store (RSS)", round(exod_mb), 80, "MB"),
        Row("exod, start to first answered command", round(start_s, 2), 1.0, "s"),
        Row("exo-device, idle (RSS)", round(device_mb), 60, "MB"),
        Row("exo-models, default models all loaded (RSS)", round(all_mb), 700, "MB"),
        Row("exo-models, one model at a time (RSS)", round(_one_at_a_time(largest_mb)), 350, "MB"),
        Row("all processes together (PSS)", round(together_mb), 850, "MB"),
    ]


def when_and_where() -> str:
    """Date, processor and Python of a measurement, without the machine's name."""
    processor = platform.machine()
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
        processor = found.group(1) if found else processor
    cores = os.cpu_count() or 1
    return f"{datetime.date.today()} on {cores} cores of {processor}, Python {platform.python_version()}"


# ---- /proc -----------------------------------------------------------------------------------------


def rss_mb(pid: int) -> float:
    """Resident memory of a process in MB (10^6 bytes). Raises ServiceError when it is gone."""
    return _kilobytes(pid, "status", "VmRSS") * 1024 / 1e6


def pss_mb(pid: int) -> float:
    """Proportional share of a process in MB (10^6 bytes). Raises ServiceError when it is gone."""
    return _kilobytes(pid, "smaps_rollup", "Pss") * 1024 / 1e6


def _kilobytes(pid: int, file: str, field: str) -> int:
    try:
        text = Path(f"/proc/{pid}/{file}").read_text()
    except OSError as error:
        raise ServiceError(f"weigh process {pid}", "it is gone") from error
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    if found is None:
        raise ServiceError(f"weigh process {pid}", "it has ended")
    return int(found.group(1))


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for member in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{member}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


# ---- processes ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _started(home: Home, *words: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of our programs in `home` until the block ends."""
    command = [sys.executable, "-P", "-m", *words, "--home", str(home.root)]
    log = home.logs / "weigh.log"
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            env={**os.environ, "EXO_DUMPABLE": "1", **variables},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(
    process: subprocess.Popen[bytes], home: Home, what: str, ready: Callable[[], bool]
) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            logs = (path.read_text(errors="replace") for path in sorted(home.logs.iterdir()))
            words = [line for text in logs for line in text.strip().splitlines()[-1:]]
            raise ServiceError(f"start {what}", "; ".join(words) or "it does not answer")
        time.sleep(0.01)


@contextlib.contextmanager
def _home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="exo-") as folder:
        yield Home(Path(folder)).make()


def _exod() -> tuple[float, float]:
    """(idle MB, seconds from start to the first answered command: the best of three starts)."""
    starts, weight = [], 0.0
    for last in (False, False, True):
        with _home() as home:
            begun = time.perf_counter()
            with _started(home, "exo.core.server.app") as process:
                _until(process, home, "exod", functools.partial(_answers, home))
                starts.append(time.perf_counter() - begun)
                if last:
                    time.sleep(SETTLE)
                    weight = rss_mb(process.pid)
    return weight, min(starts)


def _answers(home: Home) -> bool:
    try:
        Client(home.exod_socket).call("hello", protocol=1, client="footprint")
    except (ExoError, OSError):
        return False
    return True


def _together() -> tuple[float, float, float, int]:
    """(PSS of everything, RSS of exo-models with all models loaded, RSS of exo-device, and what the
    largest of the models takes by the catalog), in MB."""
    with _home() as home:
        script = home.root / "idle.txt"
        script.write_text("wait idle 60\nsleep 600\n")
        words = ("exo.device.app", "--board", "sim", "--script", str(script))
        with _started(home, *words, EXO_MODELS_RAM_MB="4096") as device:
            _until(device, home, "exo-device", lambda: unix.reachable(home.models_socket))
            _until(device, home, "exod", lambda: _answers(home))
            rows = unix.get(home.models_socket, "/v1/models")["data"]
            foreseen = {row["id"]: int(row["ram_mb"]) for row in rows}
            _use_every_model(home, lambda: None)
            time.sleep(SETTLE)
            health = unix.get(home.models_socket, "/health")
            largest = max(foreseen[model["name"]] for model in health["loaded"])
            everything = sum(pss_mb(pid) for pid in family(device.pid))
            return everything, rss_mb(int(health["pid"])), rss_mb(device.pid), largest


def _one_at_a_time(largest_mb: int) -> float:
    """The heaviest moment of exo-models between requests when its budget holds the largest model."""
    budget = {"EXO_MODELS_RAM_MB": str(max(64, largest_mb))}
    with _home() as home, _started(home, "exo.models.app", **budget) as process:
        _until(process, home, "exo-models", lambda: unix.reachable(home.models_socket))
        weights: list[float] = []
        _use_every_model(home, lambda: weights.append(rss_mb(process.pid)))
        return max(weights)


def _use_every_model(home: Home, after: Callable[[], None]) -> None:
    """Ask for one thing of each kind; `after` is called after each answer."""
    voice = _ask(
        home, "/v1/audio/speech", {"input": "What time is it now?", "response_format": "pcm"}
    )
    after()
    sound = array.array("h", voice[: len(voice) // 2 * 2]).tobytes()
    kind = f"audio/pcm;rate={RATE}"
    for target in ("/v1/audio/activity", "/v1/audio/transcriptions"):
        _ask(home, target, sound, kind)
        after()
    _ask(home, "/v1/embeddings", {"input": "a walk by the sea"})
    after()
    message = {"role": "user", "content": "Say hello."}
    _ask(home, "/v1/chat/completions", {"messages": [message], "max_tokens": 8})
    after()


def _ask(
    home: Home, target: str, body: bytes | dict[str, object], kind: str = "application/json"
) -> bytes:
    status, answer = unix.post(
        home.models_socket, target, body, content_type=kind, timeout=PATIENCE
    )
    if status != 200:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            answer = json.loads(answer)["error"]["message"].encode()
        raise ServiceError(f"ask exo-models for {target}", answer.decode(errors="replace")[:300])
    return answer
