"""The tools on files of the working folder. A docstring's first lines are what a model reads."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import sys
from pathlib import Path
from typing import Annotated

from exo.core.base.errors import ExoError, storage_error
from exo.core.toolbox.edit import edit
from exo.core.toolbox.patch import apply
from exo.core.toolbox.paths import read_text, resolve, save_text
from exo.core.toolbox.registry import Context

READ_LINES = 400  # of a file in one result, unless asked otherwise
READ_LIMIT = 90_000  # characters in one result
LINE_LIMIT = 20_000  # characters of one line
ENTRIES = 1000  # of a folder in one result
DEADLINE = 10.0  # seconds of a search
Offset = Annotated[int, {"minimum": 1, "maximum": 10**9}]
Count = Annotated[int, {"minimum": 1, "maximum": 10**5}]


def read_file(context: Context, path: str, offset: Offset = 1, limit: Count = READ_LINES) -> str:
    """Read lines of a text file in the working folder, from line `offset` on."""
    full = resolve(path, context, write=False)
    if full.is_dir():
        raise ExoError(f"read {full.name}", "it is a folder; use list_dir")
    if full.exists() and not full.is_file():
        raise ExoError(f"read {full.name}", "it is no regular file")  # a pipe would block for ever
    lines: list[str] = []
    size = 0
    try:
        with full.open("rb") as file:
            if b"\0" in file.read(8192):
                raise ExoError(f"read {full.name}", "it is no text file")
            file.seek(0)
            for number, line in enumerate(file, 1):
                if number >= offset + limit or size > READ_LIMIT:
                    lines.append(f"[more lines: go on with offset {number}]")
                    break
                if number >= offset:
                    lines.append(_line(line))
                    size += len(lines[-1])
                if context.stop.is_set():
                    break
    except FileNotFoundError as error:
        raise ExoError(f"read {full.name}", "there is no such file") from error
    except OSError as error:
        raise storage_error(f"read {full}", error) from error
    return "\n".join(lines)


def write_file(context: Context, path: str, content: str) -> str:
    """Make or replace a text file in the working folder."""
    full = resolve(path, context)
    if full.exists() and not full.is_file():
        raise ExoError(f"write {path}", "there is something that is no file")
    fresh = not full.exists()
    save_text(full, content)
    return f"{'Made' if fresh else 'Replaced'} {path}: {len(content)} characters."


def edit_file(context: Context, path: str, old: str, new: str) -> str:
    """Replace the one passage `old` by `new` in a text file of the working folder.

    `old` may differ from the file in white space; it has to stand there once."""
    full = resolve(path, context)
    text = read_text(full)
    result = edit(text, old, new, path)
    save_text(full, result.text)
    how = "" if result.how == "exact" else f" (matched by {result.how})"
    return f"Edited {path} at line {result.line}{how}."


def list_dir(context: Context, path: str = ".") -> str:
    """List a folder in the working folder."""
    full = resolve(path, context, write=False)
    if not full.is_dir():
        why = "it is no folder" if full.exists() else "there is no such folder"
        raise ExoError(f"list {path}", why)
    try:
        found = sorted(full.iterdir(), key=lambda item: (not item.is_dir(), item.name))
    except OSError as error:
        raise storage_error(f"list {full}", error) from error
    rows = [_entry(item) for item in found[:ENTRIES]]
    if len(found) > ENTRIES:
        rows.append(f"[{len(found) - ENTRIES} more]")
    return "\n".join(rows) or "(empty)"


async def search_files(context: Context, pattern: str, path: str = ".") -> str:
    """Find lines by a regular expression in the files of a folder of the working folder.

    What was found before the deadline is given with a note."""
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


def apply_patch(context: Context, patch: str) -> str:
    """Apply a unified diff or a *** Begin Patch to files of the working folder: all of it or nothing.

    What was written before a failure is put back."""
    root = context.cwd.resolve()

    def name(path: str) -> str:
        return str(resolve(path, context).relative_to(root))

    def load(path: str) -> str | None:
        full = root / path
        return read_text(full) if full.exists() else None

    made = apply(patch, load, name)
    before = {path: load(path) for path in made}
    done: list[str] = []
    try:
        for path, text in made.items():
            done.append(path)
            _put(root / path, text)
    except ExoError:
        for path in done:
            with contextlib.suppress(ExoError):  # the disk refuses: told by the first error
                _put(root / path, before[path])
        raise
    return "\n".join(f"{_verb(before[path], text)} {path}" for path, text in made.items())


def _entry(path: Path) -> str:
    if path.is_symlink():
        return f"{path.name} -> {path.readlink()}"
    if path.is_dir():
        return f"{path.name}/"
    try:
        facts = path.stat()
    except OSError:
        return f"{path.name}  ?"
    when = datetime.datetime.fromtimestamp(facts.st_mtime).astimezone()
    return f"{path.name}  {facts.st_size} bytes  {when:%Y-%m-%d %H:%M %Z}"


def _line(raw: bytes) -> str:
    line = raw.decode("utf-8", "replace").rstrip("\r\n")
    if len(line) <= LINE_LIMIT:
        return line
    return f"{line[:LINE_LIMIT]} [{len(line) - LINE_LIMIT} more characters in this line]"


async def _talk(process: asyncio.subprocess.Process, ask: str, rows: list[str]) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(ask.encode("utf-8", "replace"))
    process.stdin.close()
    async for line in process.stdout:
        rows.append(line.decode("utf-8", "replace").rstrip("\n"))


def _put(path: Path, text: str | None) -> None:
    if text is not None:
        save_text(path, text)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(f"delete {path}", error) from error


def _verb(before: str | None, after: str | None) -> str:
    return "added" if before is None else "deleted" if after is None else "changed"
