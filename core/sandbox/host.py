"""The parent's side of the sandbox: has a worker forked where a call finds none that is free, hands it the call, answers
what a guest asks of its host functions. Owns the lives of workers and of the server that forks them, and the wall
clock; knows no tool.

Invariant: a call ends within its limits, whatever the guest or the worker does; a worker that has not ended it by
then is killed, and the next call gets another. A call that no worker has begun is made again: only what was begun
can be the fault of a guest, and of that only what makes its worker break: one that breaks says so, in words that are
no JSON, one that somebody kills just ends. With exod ends the server (it reads from a socket whose other end exod
alone has), and with it its workers."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder
from exo.core.sandbox.worker import WASM
from exo.core.toolbox.workers import bounded

LINE = 4_000_000  # bytes between exod and a worker
START = 120.0  # seconds for the start of the server; the first on a machine compiles
TRIES = 3  # of a call, where workers or servers die before it begins
MOST = 8  # calls at once, those that wait for a person included; others wait
ENDED = "the sandbox was ended in the middle of it; call it again"
HostFunction = Callable[..., Awaitable[Any]]
_IMPORTS = re.compile(r"(?:^|[;:])[ \t]*(?:import|from)[ \t]+([\w, ]+)", re.M)


@dataclass(frozen=True)
class Limits:
    """`fuel` in steps of the machine (about 4 billion a second on a PC core), `memory` and `output` in bytes,
    `seconds` of the wall clock: what host functions take counts, what a person takes to answer them does not."""

    fuel: int = 5_000_000_000
    memory: int = 16 * 1024 * 1024
    output: int = 64 * 1024
    seconds: float = 10.0


@dataclass(frozen=True)
class Result:
    """How a guest ended: `value` is what its function returned (JSON), `out` what it printed, `error` "" or why
    it has no value."""

    ok: bool
    value: Any = None
    out: str = ""
    error: str = ""
    fuel: int = 0


class Worker(NamedTuple):
    """`number` is what the server knows it by."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Sandbox:
    """`cache` keeps the compiled machine; `library` are modules that a guest may import, name to source."""

    def __init__(self, cache: Path, clock: Clock, library: Mapping[str, str] | None = None) -> None:
        self._clock = clock
        self._library = library or {}
        self._cache = cache
        self._some = asyncio.Semaphore(MOST)
        self._starting = asyncio.Lock()
        self._free: list[Worker] = []  # some may have gone: they rest by themselves
        self._server: asyncio.subprocess.Process | None = None
        self._control = socket.socket()  # datagrams to the server; closed where there is none
        self._control.close()
        self._numbers = itertools.count()

    async def run(
        self,
        source: str,
        entry: str = "",
        args: Mapping[str, Any] | None = None,
        can: Mapping[str, HostFunction] | None = None,
        limits: Limits = Limits(),
        now: int = 0,
    ) -> Result:
        """Run `source`, then its function `entry` with `args`; `can` are the host functions it may call, `now`
        the time (ms UTC) that it is told, 0: the clock's. Raises ExoError where there is no sandbox on this
        machine."""
        can = can or {}
        task = {
            "source": source,
            "entry": entry,
            "args": dict(args or {}),
            "can": list(can),
            "modules": self._modules(source),
            "now": now or self._clock.now_ms(),
            "limits": asdict(limits),
        }
        async with self._some:
            for _ in range(len(self._free) + TRIES):  # all of those may have gone
                worker = self._free.pop() if self._free else await self._fork()
                if worker and (result := await self._call(worker, task, can, limits.seconds)):
                    return result
        do = "try again, or look at the log of exod"
        raise ExoError("start the sandbox", "its processes die as they begin", do)

    async def close(self) -> None:
        """End all workers and wait for their end; the next call starts one."""
        self._free.clear()
        self._stop()
        if self._server is not None:
            await self._server.wait()

    async def _call(
        self, worker: Worker, line: dict[str, Any], can: Mapping[str, HostFunction], seconds: float
    ) -> Result | None:
        """The result, None where the worker has not begun: it has gone. After a whole call it is free again, after
        any other it is killed."""
        begun = False
        with contextlib.ExitStack() as undo:
            undo.callback(self._kill, worker)
            try:
                async with bounded(seconds):
                    while True:
                        worker.writer.write(json.dumps(line).encode() + b"\n")
                        await worker.writer.drain()
                        begun = begun or bool(await _line(worker))
                        said = await _line(worker)
                        if said["op"] == "done":
                            break
                        line = await _answer(can, said)
                result = Result(**{key: said[key] for key in Result.__dataclass_fields__})
            except TimeoutError:
                return Result(False, error=f"more than {seconds:g} s")
            except OSError:
                return Result(False, error=ENDED) if begun else None
            except (ValueError, KeyError, TypeError, RecursionError):
                return Result(False, error="the worker died of it")
            undo.pop_all()
        self._free.append(worker)
        return result

    async def _fork(self) -> Worker | None:
        """A new worker; None where the server has died: the next try starts it. Raises ExoError where there is
        no sandbox on this machine."""
        async with self._starting:
            if self._control.fileno() < 0:
                await self._start()
        number, (ours, theirs) = next(self._numbers), socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [b"%d" % number], [theirs.fileno()])
        except OSError:
            ours.close()
            self._stop()
            return None
        return Worker(number, *await asyncio.open_unix_connection(sock=ours, limit=LINE))

    def _kill(self, worker: Worker) -> None:
        """Let a worker go, whatever it does. Where the server has died, so has it."""
        worker.writer.transport.abort()
        with contextlib.suppress(OSError):
            self._control.send(b"%d" % worker.number)

    def _stop(self) -> None:
        """End the server and with it all workers."""
        with contextlib.suppress(ProcessLookupError):
            if self._server is not None and self._server.returncode is None:
                # not its kill(): that looks whether it has ended, and takes its end from the loop
                os.kill(self._server.pid, signal.SIGKILL)
        self._control.close()

    async def _start(self) -> None:
        """Start the server, without the packages of this Python: they cost more than half of its start. Where it dies,
        `_control` is closed. Raises ExoError where it cannot run."""
        found = importlib.util.find_spec("wasmtime")
        site = Path(found.origin).parents[1] if found and found.origin else Path()
        if not (found and (site / WASM).exists()):
            do = "install exo-companion[sandbox]; agent tools are off until then"
            raise ExoError("start the sandbox", "wasmtime is not here", do, code="no_sandbox")
        words = ("-I", "-S", Path(__file__).with_name("worker.py"), make_folder(self._cache), site)
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        with contextlib.ExitStack() as undo, contextlib.suppress(OSError):  # TimeoutError is one
            undo.callback(self._stop)
            with theirs:
                self._server = await asyncio.create_subprocess_exec(
                    sys.executable, *words, stdin=theirs.fileno(), stdout=asyncio.subprocess.DEVNULL
                )
            async with asyncio.timeout(START):
                if await asyncio.get_running_loop().sock_recv(self._control, 16):
                    undo.pop_all()

    def _modules(self, source: str) -> list[tuple[str, str]]:
        """What it imports of the library, with what that imports, those first."""
        found: dict[str, str] = {}

        def look(text: str) -> None:
            for row in _IMPORTS.findall(text):
                for name in re.findall(r"\w+", row.split(" import")[0]):
                    if name in self._library and name not in found:
                        look(self._library[name])
                        found[name] = self._library[name]

        look(source)
        return list(found.items())


async def _answer(can: Mapping[str, HostFunction], said: dict[str, Any]) -> dict[str, Any]:
    """What a host function gives."""
    try:
        answer = {"ok": True, "value": await can[said["name"]](**said["args"])}
        json.dumps(answer)
        return answer
    except Exception as error:  # noqa: BLE001 - the host's fault, not the guest's
        return {"ok": False, "error": str(error)}


async def _line(worker: Worker) -> dict[str, Any]:
    """The next line. Raises OSError where the worker has died."""
    line = await worker.reader.readline()
    if not line.endswith(b"\n"):
        raise OSError("the worker died")
    return dict(json.loads(line))
