"""The tool bash: one command in a session of processes of its own. Owns those processes.

Invariant: when the call is over, by its end, a time-out or an interrupt, nothing that it started runs,
also what left its process group but not its environment, and no zombie stays."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.toolbox.registry import Context, Output

KEEP = 8_000_000  # characters of output that are kept; a program may write more
BORDER = 16_384  # characters before the border that go with secrets kept, where no line ends
SHOW = 100_000  # characters of output that are shown while it runs
DRAIN = 0.3  # seconds in which a background process may still write after the shell has ended
MARK = "EXO_CALL"  # environment variable by which everything that a call started is found
_SECRET = re.compile(
    r"(^|_)(API_?KEY|ACCESS_KEY(_ID)?|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?"
    r"|AUTH|PIN|KEY)S?(_|$)|PASSWORD$|TOKEN$|SECRET$|APIKEY$",
    re.I,
)
_LOGIN = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without variables that hold a secret by name or by value, and without our own."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("EXO_")
        and (name == "SSH_AUTH_SOCK" or not _SECRET.search(name))
        and not _LOGIN.search(value)
    }


async def bash(
    context: Context, command: str, timeout: float = 60.0, join: float = 0.1, lines: bool = False
) -> Output:
    """Run `command`; ok when it exits with 0. Output and errors come as one text, shown as it comes, with `lines`
    in whole lines."""
    if not command.strip() or "\0" in command:
        raise ExoError("run a command", "it is empty or has a zero byte")
    if not context.cwd.is_dir():
        raise ExoError(f"run a command in {context.cwd}", "the folder is gone")
    mark = f"{context.results}:{os.urandom(8).hex()}"
    try:
        # not asyncio's subprocess: its wait() may last until everybody has closed the pipe
        process = subprocess.Popen(
            [shutil.which("bash") or "/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=context.cwd,
            env=clean_environment(os.environ) | {MARK: mark},
            start_new_session=True,
        )
    except OSError as error:
        raise ExoError("run a command", f"the shell does not start: {error}") from error
    # ended, but not yet reaped: until it is, its number cannot be given to another process
    ended = asyncio.create_task(_ended(process.pid))
    output = _Collector(context.emit, join, lines)
    reading = asyncio.create_task(output.read(process, ended))
    notes = []
    try:
        await asyncio.wait({ended}, timeout=timeout)
        on_time = ended.done()
        if on_time:
            await asyncio.wait({reading}, timeout=DRAIN)
    finally:
        left = not reading.done()
        await asyncio.shield(_end(process, mark, ended))
        await asyncio.wait({reading}, timeout=DRAIN)
        reading.cancel()
        await asyncio.gather(reading, ended, return_exceptions=True)
    if output.dropped:
        notes.append(f"[{output.dropped} further characters of output were dropped]")
    if on_time and left:
        notes.append("[what it left in the background was ended with it]")
    notes.append(_verdict(process.returncode) if on_time else f"[stopped after {timeout:g} s]")
    return Output("".join(output.parts), on_time and process.returncode == 0, "\n".join(notes))


def _verdict(code: int) -> str:
    with contextlib.suppress(ValueError):
        return f"[ended by {signal.Signals(-code).name}]"
    return f"[exit code {code}]"


class _Collector:
    """Puts the output together and shows it in pieces, `join` seconds apart, with `lines` in whole ones: what
    is looked for in a piece is whole in it. `dropped` counts the characters that were too many to keep."""

    def __init__(self, emit: Callable[[str], None], join: float, lines: bool = False) -> None:
        self._emit, self._join, self._lines = emit, join, lines
        self.parts: list[str] = []
        self.dropped = 0

    async def read(self, process: subprocess.Popen[bytes], ended: asyncio.Future[Any]) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe, _ = await loop.connect_read_pipe(lambda: protocol, process.stdout)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        keep, show, begun = KEEP, SHOW, ""
        try:
            while piece := await reader.read(65536):
                text = decoder.decode(piece)
                kept = text[:keep]
                if self._lines and keep < len(text) and not self.dropped:
                    # a value that the border cuts would not be found: the last, broken line goes
                    kept = _whole("".join(self.parts) + kept)
                    self.parts.clear()
                self.parts.append(kept)
                self.dropped += max(0, len(text) - keep)
                keep = max(0, keep - len(text))
                fresh, show = text[:show], max(0, show - len(text))
                if self._lines:
                    whole, end, begun = (begun + fresh).rpartition("\n")
                    fresh = whole + end
                if fresh:
                    self._emit(fresh)
                    await asyncio.wait({ended}, timeout=self._join)
                await asyncio.sleep(0)  # a flood of output lets the rest of exod go on
        finally:
            pipe.close()


def _whole(text: str) -> str:
    """`text` without its broken last line, else without as much of it as a value may be long."""
    head, end, last = text.rpartition("\n")
    return head + end + last[: max(0, len(last) - BORDER)] if len(last) > BORDER else head + end


async def _ended(pid: int) -> None:
    """Return once the process has ended. Holds no thread: as many commands may run as are asked for."""
    loop, handle, end = asyncio.get_running_loop(), os.pidfd_open(pid), asyncio.Event()
    loop.add_reader(handle, end.set)
    try:
        await end.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def _end(process: subprocess.Popen[bytes], mark: str, ended: asyncio.Task[None]) -> None:
    """Kill the group and whatever carries the mark, until nothing is left."""
    for _ in range(20):
        _kill(os.killpg, process.pid)
        left = await asyncio.to_thread(marked, mark)
        for pid in left:
            _kill(os.kill, pid)
        if not left:
            break
        await asyncio.sleep(0.02)
    await asyncio.wait({ended})
    process.wait()


def _kill(kill: Callable[[int, int], None], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(number, signal.SIGKILL)


def sweep(results: Path) -> None:
    """At start: end what commands of this home still run, whose exod was killed."""
    for pid in marked(f"{results}:"):
        _kill(os.kill, pid)


def marked(mark: str) -> set[int]:
    """Live processes whose mark begins with `mark`."""
    found = set()
    wanted = f"\0{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in b"\0" + path.read_bytes():
                found.add(int(path.parent.name))
    return found - {os.getpid()}
