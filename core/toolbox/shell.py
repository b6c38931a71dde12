"""The tool bash: one command in a session of processes of its own. Owns those processes.

Invariant: when the call is over, by its end, a time-out or an interrupt, nothing that it started runs,
also what left its process group, and no zombie stays."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from exo.core.base.errors import ExoError
from exo.core.toolbox.registry import Context, Output
from exo.core.toolbox.workers import in_thread

KEEP = 8_000_000  # characters of output that are kept; a program may write more
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


async def bash(context: Context, command: str, timeout: float = 60.0, join: float = 0.1) -> Output:
    """Run `command`; ok when it exits with 0. Output and errors come as one text, shown as it comes."""
    if not command.strip() or "\0" in command:
        raise ExoError("run a command", "it is empty or has a zero byte")
    if not context.cwd.is_dir():
        raise ExoError(f"run a command in {context.cwd}", "the folder is gone")
    mark = f"{owner(context.results)}-{os.urandom(8).hex()}"
    shell = shutil.which("bash") or "/bin/sh"
    try:
        # not asyncio's subprocess: its wait() may last until everybody has closed the pipe
        process = subprocess.Popen(
            [shell, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=context.cwd,
            env=clean_environment(os.environ) | {MARK: mark},
            start_new_session=True,
        )
    except OSError as error:
        raise ExoError("run a command", f"{shell} does not start: {error}") from error
    output = _Collector(context.emit, join)
    ended = asyncio.ensure_future(in_thread(process.wait))
    reading = asyncio.create_task(output.read(process))
    end = ""
    try:
        await asyncio.wait({ended}, timeout=timeout)
        if not ended.done():
            end = f"[stopped after {timeout:g} s]"
        else:
            await asyncio.wait({reading}, timeout=DRAIN)
            end = "" if reading.done() else "[what it left in the background was ended with it]"
    finally:
        await asyncio.shield(_end(process.pid, mark, ended))
        await asyncio.wait({reading}, timeout=DRAIN)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        output.close()
    notes = [output.dropped(), end, _verdict(process.returncode, end)]
    return Output(
        output.text(), process.returncode == 0 and not end.startswith("[stopped"), _lines(notes)
    )


def _lines(notes: list[str]) -> str:
    return "\n".join(note for note in notes if note)


def _verdict(code: int | None, end: str) -> str:
    if end.startswith("[stopped"):
        return ""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"[ended by {signal.Signals(-code).name}]"
    return f"[exit code {code}]"


class _Collector:
    """Puts the output together and shows it in pieces, `join` seconds apart."""

    def __init__(self, emit: Callable[[str], None], join: float) -> None:
        self._emit, self._join = emit, join
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: list[str] = []
        self._kept = self._seen = self._shown = 0
        self._pending = ""
        self._last = float("-inf")
        self._later: asyncio.TimerHandle | None = None

    async def read(self, process: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), process.stdout
        )
        try:
            while piece := await reader.read(65536):
                self._add(self._decoder.decode(piece))
                await asyncio.sleep(0)  # a flood of output lets the rest of exod go on
        finally:
            pipe.close()

    def text(self) -> str:
        return "".join(self._parts)

    def dropped(self) -> str:
        left = self._seen - self._kept
        return f"[{left} further characters of output were dropped]" if left else ""

    def close(self) -> None:
        """Show what waits."""
        self._add(self._decoder.decode(b"", final=True))
        self._flush()

    def _add(self, text: str) -> None:
        self._seen += len(text)
        if self._kept < KEEP:
            part = text[: KEEP - self._kept]
            self._parts.append(part)
            self._kept += len(part)
        if self._shown + len(self._pending) < SHOW:
            self._pending += text[: SHOW - self._shown - len(self._pending)]
            wait = self._last + self._join - time.monotonic()
            if wait <= 0:
                self._flush()
            elif self._later is None:
                self._later = asyncio.get_running_loop().call_later(wait, self._flush)

    def _flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._pending:
            text, self._pending = self._pending, ""
            self._shown += len(text)
            self._last = time.monotonic()
            self._emit(text)


async def _end(leader: int, mark: str, ended: asyncio.Future[int]) -> None:
    """Kill the group and whatever carries the mark or descends from it, until nothing is left."""
    for _ in range(20):
        # looked up before anything is killed: an orphan can no longer be told by its parent
        left = await in_thread(marked, mark, leader)
        if not ended.done():  # else the number may be somebody else's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
        await asyncio.sleep(0.02)
    await ended


def owner(results: Path | None) -> str:
    """The part of every mark that names the home."""
    return hashlib.sha256(str(results).encode()).hexdigest()[:16]


def sweep(results: Path) -> None:
    """At start: end what commands of this home still run, whose exod was killed."""
    for pid in marked(owner(results), 0):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def marked(mark: str, leader: int) -> set[int]:
    """Live processes whose mark begins with `mark`, that are in the session of `leader`, or that
    descend from one of these."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        pid = int(folder.name)
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] in (b"Z", b"X"):
                continue
            parents[pid] = int(fields[1])
            if leader and int(fields[3]) == leader:
                found.add(pid)
            names = (folder / "environ").read_bytes().split(b"\0")
            if any(name.startswith(wanted) for name in names):
                found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {os.getpid()}
