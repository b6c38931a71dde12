"""`@path` in what is typed: the file goes along with the message, up to a limit."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from exo.core.base.errors import ExoError, storage_error

FILE_LIMIT = 32_000  # characters of one file
LIMIT = 64_000  # characters of all files of a message
_NOWHERE = (OSError, RuntimeError, ValueError)  # too long, not allowed, no such user, zero bytes
_NAME = re.compile(r'(?<!\S)@(?:"([^"]+)"|([^\s"]+))')
_RANGE = re.compile(r"(.+):(\d+)(?:-(\d+))?$")


def attach(text: str, folder: Path) -> str:
    """Return `text` with the content of every file that it names as @path, @path:10-20 or
    @"a path". A name of no file stays a word. Raises ExoError for one that cannot be read."""
    parts, left = [], LIMIT
    for quoted, bare in _NAME.findall(text):
        name = quoted or bare
        found = _find(name, folder) or _find(name.rstrip(".,;:!?)"), folder)
        if found is None:
            continue
        path, start, end = found
        content = _read(path, start, end)[: min(FILE_LIMIT, left)]
        left -= len(content)
        where = f" lines {start} to {end}" if start else ""
        parts.append(f"File {path.name}{where}:\n```\n{content}\n```")
    return "\n\n".join([text, *parts])


def paths(typed: str, folder: Path) -> list[str]:
    """Completions of `typed` (what stands behind @): paths, folders with a slash, 50 at most."""
    head, _, tail = typed.rpartition("/")
    try:
        root = folder / Path(f"{head}/" if head or typed.startswith("/") else ".").expanduser()
        found = sorted(root.iterdir())
    except _NOWHERE:
        return []
    lead = typed[: len(typed) - len(tail)]
    return [
        lead + each.name + ("/" if each.is_dir() else "")
        for each in found
        if each.name.startswith(tail) and (tail or not each.name.startswith("."))
    ][:50]


def _find(name: str, folder: Path) -> tuple[Path, int, int] | None:
    with suppress(*_NOWHERE):
        path = folder / Path(name).expanduser()
        if path.is_file():
            return path, 0, 0
        if match := _RANGE.fullmatch(name):
            path = folder / Path(match[1]).expanduser()
            start = int(match[2])
            if path.is_file() and start:
                return path, start, max(start, int(match[3] or start))
    return None


def _read(path: Path, start: int, end: int) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(4_000_000)
    except OSError as error:
        raise storage_error(f"attach {path}", error) from error
    if b"\0" in raw:
        raise ExoError(f"attach {path}", "it is no text file")
    text = raw.decode("utf-8", "replace").rstrip("\n")
    if start:
        text = "\n".join(text.splitlines()[start - 1 : end])
    return text if len(text) <= FILE_LIMIT else f"{text[: FILE_LIMIT - 40]}\n[the rest is left out]"
