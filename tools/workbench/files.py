"""The tools on files of the working folder, and which files they may touch: those inside the session's
folder, links followed, without the folders that hold keys and state; and, to read, the folder of long
results. A tool's docstring's first lines are what a model reads."""

from __future__ import annotations

import contextlib
import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from exo.core.base.errors import ExoError, storage_error
from exo.core.base.files import write_atomic
from exo.core.toolbox.registry import Context
from exo.tools.workbench.edit import edit
from exo.tools.workbench.patch import apply

FILE_LIMIT = 5_000_000  # bytes of a text that is edited
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
    closed = [str(folder.resolve()) for folder in context.closed]
    ask = [str(context.cwd.resolve()), str(start), pattern, closed]
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
    verbs = {path: "deleted" if text is None else "changed" for path, text in made.items()}
    verbs |= {path: "added" for path, text in before.items() if text is None}
    return "\n".join(f"{verb} {path}" for path, verb in verbs.items())


def _entry(path: Path) -> str:
    with contextlib.suppress(OSError):
        if path.is_symlink():
            return f"{path.name} -> {path.readlink()}"
        return f"{path.name}/" if path.is_dir() else f"{path.name}  {path.stat().st_size} bytes"
    return f"{path.name}  ?"


def resolve(path: str, context: Context, write: bool = True) -> Path:
    """Return the full path. Raises ExoError for one that leads outside the working folder or into a
    closed folder."""
    if not path:
        raise ExoError("open a file", "the path is empty")
    try:
        root = context.cwd.resolve()
        full = (root / Path(path).expanduser()).resolve()
        results = context.results.resolve() if context.results else None
        closed = [folder.resolve() for folder in context.closed]
    except (OSError, ValueError, RuntimeError) as error:
        raise ExoError(f"open {path!r}", f"no usable path: {error}") from error
    if not write and results is not None and full.is_relative_to(results):
        return full
    if not full.is_relative_to(root) or full != full.resolve():  # a circle of links stops resolving
        raise ExoError(f"open {path}", f"it lies outside the working folder {root}")
    if any(full.is_relative_to(folder) for folder in closed):
        raise ExoError(f"open {path}", "this folder holds keys or state and is closed to tools")
    return full


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[BinaryIO]:
    """A text file, opened to be read. Raises ExoError for what is none, also while it is read."""
    try:
        if path.exists() and not path.is_file():  # a pipe would block for ever
            why = "it is a folder; use list_dir" if path.is_dir() else "it is no regular file"
            raise ExoError(f"read {path.name}", why)
        with path.open("rb") as file:
            if b"\0" in file.read(8192):
                raise ExoError(f"read {path.name}", "it is no text file")
            file.seek(0)
            yield file
    except FileNotFoundError as error:
        raise ExoError(f"read {path.name}", "there is no such file") from error
    except OSError as error:
        raise storage_error(f"read {path}", error) from error


def read_text(path: Path) -> str:
    """The whole text; bytes that are no UTF-8 survive a later `save_text`. Raises ExoError."""
    with open_text(path) as file:
        raw = file.read(FILE_LIMIT + 1)
    if len(raw) > FILE_LIMIT:
        raise ExoError(f"read {path.name}", f"it is larger than {FILE_LIMIT} bytes")
    return raw.decode("utf-8", "surrogateescape")


def save_text(path: Path, text: str | None) -> None:
    """Replace the file whole, keeping its permissions; None: remove it. Raises ExoError."""
    if path.exists() and not path.is_file():
        raise ExoError(f"write {path.name}", "there is something that is no file")
    try:
        if text is None:
            return path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        data = text.encode("utf-8", "surrogateescape")
        write_atomic(path, data, 0o666 if mode is None else mode)
        if mode is not None:
            path.chmod(mode)  # what the umask took away
    except UnicodeEncodeError as error:
        raise ExoError(f"write {path.name}", "the text has half a character") from error
    except OSError as error:
        raise storage_error(f"write {path}", error) from error
