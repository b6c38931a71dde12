"""Search files line by line. Runs as a process of its own, because a regular expression that runs away
holds the interpreter's lock and no thread could stop it; only the standard library, for a quick start.

stdin: [root, start, pattern, closed] as JSON; stdout: one line per find."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator

SKIP = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache"}
FINDS, WIDTH, LINE = 200, 300, 1_000_000


def files(start: str, closed: list[str]) -> Iterator[str]:
    """Regular files below `start` in a fixed order; links are not followed."""
    if os.path.isfile(start):  # noqa: PTH113 - no pathlib: half of the start-up time
        yield start
    for folder, names, found in os.walk(start):
        names[:] = sorted(set(names) - SKIP)
        if folder in closed:
            names[:] = found = []
        for name in sorted(found):
            path = os.path.join(folder, name)  # noqa: PTH118
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield path


def lines(path: str) -> Iterator[str]:
    """The lines of a text file, none of one that is binary or cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            if b"\0" in file.read(8192):
                return
            file.seek(0)
            while line := file.readline(LINE):
                yield line.decode("utf-8", "replace")
    except OSError:
        return


def search(root: str, start: str, pattern: str, closed: list[str]) -> Iterator[str]:
    """Yield `path:line: text` for every line that fits."""
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        yield "[no regular expression: searched as plain text]"
        expression = re.compile(re.escape(pattern))
    for path in files(start, closed):
        for number, line in enumerate(lines(path), 1):
            if match := expression.search(line):
                begin = max(0, match.start() - WIDTH // 2) if len(line) > WIDTH else 0
                name = os.path.relpath(path, root)
                yield f"{name}:{number}: {line[begin : begin + WIDTH].strip()}"


def main() -> None:
    end = f"[stopped after {FINDS} finds: narrow the pattern or the path]"
    for n, row in enumerate(search(*json.load(sys.stdin))):
        sys.stdout.buffer.write((end if n > FINDS else row).encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
        if n > FINDS:
            return


if __name__ == "__main__":
    main()
