"""Results that are too long for a model: it sees the beginning and the end, the whole is kept in a file
that it can read on in. Owns the folder of those files and its size."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

from exo.core.base.errors import StorageError
from exo.core.base.files import make_folder, write_atomic

LIMIT = 100_000  # characters that a model sees of one result
HEAD = LIMIT * 4 // 5
KEPT_FILES, KEPT_BYTES = 50, 64_000_000


def cut(text: str, folder: Path | None, name: str) -> str:
    """Return `text`, or its ends with a note of where the whole is kept (at most LIMIT characters and
    the note)."""
    if len(text) <= LIMIT:
        return text
    head, tail = text[:HEAD], text[-(LIMIT - HEAD) :]
    left = len(text) - len(head) - len(tail)
    path = _keep(text, folder, name) if folder is not None else None
    note = f"[... {left} characters left out"
    if path is not None:
        note += f"; the whole is in {path}, read_file it from offset {head.count(chr(10)) + 1}"
    return f"{head}\n{note} ...]\n{tail}"


def _keep(text: str, folder: Path, name: str) -> Path | None:
    """Write the whole; None when the disk refuses: the tool's work is done all the same."""
    path = folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:64]}.txt"
    try:
        make_folder(folder)
        write_atomic(path, text.encode("utf-8", "replace"))
        _prune(folder)
    except StorageError as error:
        print(f"keep a long result: {error}", file=sys.stderr)
        return None
    return path


def _prune(folder: Path) -> None:
    size = 0
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("*.txt"), key=lambda path: path.stat().st_mtime, reverse=True)
        for n, path in enumerate(files):
            size += path.stat().st_size
            if n and (n >= KEPT_FILES or size > KEPT_BYTES):
                path.unlink()
