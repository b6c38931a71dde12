"""Tools on files of the working folder: read_file, write_file, edit_file, list_dir."""

from __future__ import annotations

import datetime
from pathlib import Path

from exo.core.base.errors import ExoError, storage_error
from exo.core.toolbox.edit import edit
from exo.core.toolbox.paths import read_text, resolve, save_text
from exo.core.toolbox.registry import Context

READ_LINES = 400  # of a file in one result, unless asked otherwise
READ_LIMIT = 90_000  # characters in one result
LINE_LIMIT = 20_000  # characters of one line
ENTRIES = 1000  # of a folder in one result


def read_file(context: Context, path: str, offset: int = 1, limit: int = READ_LINES) -> str:
    """Lines `offset` to `offset + limit - 1`, and where to go on."""
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
    """The file is whole, or as it was."""
    full = resolve(path, context)
    if full.exists() and not full.is_file():
        raise ExoError(f"write {path}", "there is something that is no file")
    fresh = not full.exists()
    save_text(full, content)
    return f"{'Made' if fresh else 'Replaced'} {path}: {len(content)} characters."


def edit_file(context: Context, path: str, old: str, new: str) -> str:
    """`old` may differ from the file in white space; it has to stand there once."""
    full = resolve(path, context)
    text = read_text(full)
    result = edit(text, old, new, path)
    save_text(full, result.text)
    how = "" if result.how == "exact" else f" (matched by {result.how})"
    return f"Edited {path} at line {result.line}{how}."


def list_dir(context: Context, path: str = ".") -> str:
    """Folders first, then files with size and time."""
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
