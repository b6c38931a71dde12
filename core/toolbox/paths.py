"""Which files a tool may touch: those inside the session's working folder, links followed, without the
folders that hold keys and state; and, to read, the folder of long results."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from exo.core.base.errors import ExoError, storage_error
from exo.core.base.files import write_atomic
from exo.core.toolbox.registry import Context

FILE_LIMIT = 5_000_000  # bytes of a text that is edited


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
    if not full.is_relative_to(root):
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
