"""The tool search_files: runs search.py as a process with a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

from exo.core.base.errors import ExoError
from exo.core.toolbox.paths import resolve
from exo.core.toolbox.registry import Context

DEADLINE = 10.0  # seconds


async def search_files(context: Context, pattern: str, path: str = ".") -> str:
    """Lines that fit, as `path:line: text`; what was found before the deadline is given with a note."""
    if not pattern:
        raise ExoError("search", "the pattern is empty")
    start = resolve(path, context, write=False)
    if not start.exists():
        raise ExoError(f"search {path}", "there is no such file or folder")
    ask = {
        "root": str(context.cwd.resolve()),
        "start": str(start),
        "pattern": pattern,
        "closed": [str(folder.resolve()) for folder in context.closed],
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("search.py")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    rows: list[str] = []
    note = ""
    try:
        async with asyncio.timeout(DEADLINE):
            await _talk(process, json.dumps(ask), rows)
    except TimeoutError:
        note = f"\n[stopped after {DEADLINE:g} s: the pattern or the folder is too much]"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return "\n".join(rows) + note


async def _talk(process: asyncio.subprocess.Process, ask: str, rows: list[str]) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(ask.encode("utf-8", "replace"))
    process.stdin.close()
    async for line in process.stdout:
        rows.append(line.decode("utf-8", "replace").rstrip("\n"))
