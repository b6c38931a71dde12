"""The tools on files of the working folder. A docstring's first lines are what a model reads."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from exo.core.base.errors import ExoError, storage_error
from exo.core.toolbox.edit import edit
from exo.core.toolbox.patch import apply
from exo.core.toolbox.paths import open_text, read_text, resolve, save_text
from exo.core.toolbox.registry import Context

READ_LINES = 400  # of a file in one result, unless asked otherwise
READ_LIMIT = 90_000  # characters in one result
ENTRIES = 1000  # of a folder in one result
DEADLINE = 10.0  # seconds of a search
Offset = Annotated[int, {"minimum": 1, "maximum": 10**9}]
Count = Annotated[int, {"minimum": 1, "maximum": 10**5}]


def read_file(context: Context, path: str, offset: Offset = 1, limit: Count = READ_LINES) -> str:
    """Read lines of a text file in the working folder, from line `offset` on."""
    lines: list[str] = []
    size = 0
    with open_text(resolve(path, context, write=False)) as file:
        for number, line in enumerate(file, 1):
            if number >= offset + limit or size > READ_LIMIT:
                lines.append(f"[more lines: go on with offset {number}]")
                break
            if number >= offset:
                lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
                size += len(lines[-1])
    return "\n".join(lines)


def write_file(context: Context, path: str, content: str) -> str:
    """Make or replace a text file in the working folder."""
    full = resolve(path, context)
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
    try:
        found = sorted(full.iterdir(), key=lambda item: (not item.is_dir(), item.name))
    except FileNotFoundError as error:
        raise ExoError(f"list {path}", "there is no such folder") from error
    except OSError as error:
        raise storage_error(f"list {full}", error) from error
    rows = [_entry(item) for item in found[:ENTRIES]]
    if len(found) > ENTRIES:
        rows.append(f"[{len(found) - ENTRIES} more]")
    return "\n".join(rows) or "(empty)"


def search_files(context: Context, pattern: str, path: str = ".") -> str:
    """Find lines by a regular expression in the files of a folder of the working folder.

    What was found before the deadline is given with a note."""
    start = resolve(path, context, write=False)
    if not pattern or not start.exists():
        why = "there is no such file or folder" if pattern else "the pattern is empty"
        raise ExoError(f"search {path}", why)
    ask = {
        "root": str(context.cwd.resolve()),
        "start": str(start),
        "pattern": pattern,
        "closed": [str(folder.resolve()) for folder in context.closed],
    }
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("search.py"))]
    note = ""
    try:
        asked = json.dumps(ask).encode()
        found = subprocess.run(command, input=asked, capture_output=True, timeout=DEADLINE).stdout
    except subprocess.TimeoutExpired as error:
        found = error.stdout or b""
        note = f"\n[stopped after {DEADLINE:g} s: the pattern or the folder is too much]"
    return (found.decode("utf-8", "replace").rstrip("\n") or "nothing found") + note


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
            save_text(root / path, text)
    except ExoError:
        for path in done:
            with contextlib.suppress(ExoError):  # the disk refuses: told by the first error
                save_text(root / path, before[path])
        raise
    return "\n".join(f"{_verb(before[path], text)} {path}" for path, text in made.items())


def _entry(path: Path) -> str:
    if path.is_symlink():
        return f"{path.name} -> {path.readlink()}"
    if path.is_dir():
        return f"{path.name}/"
    with contextlib.suppress(OSError):
        return f"{path.name}  {path.stat().st_size} bytes"
    return f"{path.name}  ?"


def _verb(before: str | None, after: str | None) -> str:
    return "added" if before is None else "deleted" if after is None else "changed"
