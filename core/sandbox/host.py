"""The parent's side of the sandbox: starts the worker when it is needed, hands it one call at a time, answers what
a guest asks of its host functions. Owns the worker's life; knows no tool.

Invariant: a call ends within its limits and a second, whatever the guest or the worker does; a worker that does
not is killed, and the next call gets a new one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError

LINE = 4_000_000  # bytes between the two
GRACE = 1.0  # seconds beyond a guest's own, then the worker is killed
COMPILE = 120.0  # seconds for the first start on a machine
REST = 60.0  # seconds without a call until the worker's memory is given back
HostFunction = Callable[..., Awaitable[Any]]
_IMPORTS = re.compile(r"(?:^|[;:])[ \t]*(?:import|from)[ \t]+([\w, ]+)", re.M)


@dataclass(frozen=True)
class Limits:
    """`fuel` in steps of the machine (about 4 billion a second on a PC core), `memory` and `output` in bytes,
    `seconds` of the wall clock, what host functions take included."""

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


@dataclass
class Sandbox:
    """`cache` keeps the compiled machine; `library` are modules that a guest may import, name to source."""

    cache: Path
    clock: Clock
    library: Mapping[str, str] = field(default_factory=dict)
    _worker: asyncio.subprocess.Process | None = None
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)
    _idle: asyncio.TimerHandle | None = None

    async def run(
        self,
        source: str,
        entry: str = "",
        args: Mapping[str, Any] | None = None,
        can: Mapping[str, HostFunction] | None = None,
        limits: Limits = Limits(),
    ) -> Result:
        """Run `source`, then its function `entry` with `args`; `can` are the host functions it may call.
        Raises ExoError where there is no sandbox on this machine."""
        can = can or {}
        task = {
            "op": "run",
            "source": source,
            "entry": entry,
            "args": dict(args or {}),
            "can": list(can),
            "modules": self._modules(source),
            "now": self.clock.now_ms(),
            "limits": asdict(limits),
        }
        async with self._one:
            worker = await self._ready()
            try:
                done = await asyncio.wait_for(self._talk(worker, task, can), limits.seconds + GRACE)
            except (TimeoutError, ValueError, OSError) as error:
                self.stop()
                why = f"more than {limits.seconds:g} s" if isinstance(error, TimeoutError) else ""
                return Result(False, error=why or "the worker died of it")
            except BaseException:  # a cancelled call leaves a worker in the middle of it
                self.stop()
                raise
            self._idle = asyncio.get_running_loop().call_later(REST, self.stop)
        return Result(**{key: done[key] for key in Result.__dataclass_fields__})

    def stop(self) -> None:
        """End the worker; the next call starts one."""
        if self._idle is not None:
            self._idle.cancel()
        if self._worker is not None:
            with contextlib.suppress(ProcessLookupError):
                self._worker.kill()
        self._worker = self._idle = None

    async def close(self) -> None:
        """End the worker and wait for its end."""
        worker = self._worker
        self.stop()
        if worker is not None:
            await worker.wait()

    async def _ready(self) -> asyncio.subprocess.Process:
        if self._idle is not None:
            self._idle.cancel()
        if self._worker is not None and self._worker.returncode is None:
            return self._worker
        self._worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "exo.core.sandbox.worker", str(self.cache)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE,
        )
        with contextlib.suppress(TimeoutError, OSError):
            if await asyncio.wait_for(_line(self._worker), COMPILE):
                return self._worker
        self.stop()
        do = "install exo-companion[sandbox]; agent tools are off until then"
        raise ExoError("start the sandbox", "its worker does not start", do, code="no_sandbox")

    async def _talk(
        self,
        worker: asyncio.subprocess.Process,
        task: dict[str, Any],
        can: Mapping[str, HostFunction],
    ) -> dict[str, Any]:
        line = task
        while True:
            assert worker.stdin is not None
            worker.stdin.write(json.dumps(line).encode() + b"\n")
            await worker.stdin.drain()
            said = await _line(worker)
            if said.get("op") == "done":
                return said
            try:
                function = can[said["name"]]
                line = {"ok": True, "value": await function(**said["args"])}
                json.dumps(line)
            except Exception as error:  # noqa: BLE001 - the host's fault, not the guest's
                line = {"ok": False, "error": str(error)}

    def _modules(self, source: str) -> list[tuple[str, str]]:
        """What it imports of the library, with what that imports, those first."""
        found: dict[str, str] = {}

        def look(text: str) -> None:
            for row in _IMPORTS.findall(text):
                for name in re.findall(r"\w+", row.split(" import")[0]):
                    if name in self.library and name not in found:
                        look(self.library[name])
                        found[name] = self.library[name]

        look(source)
        return list(found.items())


async def _line(worker: asyncio.subprocess.Process) -> dict[str, Any]:
    """The next line. Raises OSError where the worker has died."""
    assert worker.stdout is not None
    line = await worker.stdout.readline()
    if not line:
        raise OSError("the worker died")
    said: dict[str, Any] = json.loads(line)
    return said
