"""Search files line by line. Runs as a process of its own, because a regular expression that runs away
holds the interpreter's lock and no thread could stop it; only the standard library, for a quick start.

stdin: {"root", "start", "pattern", "closed"} as JSON; stdout: one line per find, then what was skipped."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator

SKIP = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache"}
FINDS, FILES, SIZE, WIDTH = 200, 50_000, 2_000_000, 300


def files(start: str, closed: set[str]) -> Iterator[str]:
    """Regular files below `start` in a fixed order; links are not followed."""
    if os.path.isfile(start):  # noqa: PTH113 - no pathlib: half of the start-up time
        yield start
        return
    for folder, names, found in os.walk(start):
        names[:] = sorted(
            name
            for name in names
            if name not in SKIP and os.path.join(folder, name) not in closed  # noqa: PTH118
        )
        for name in sorted(found):
            path = os.path.join(folder, name)  # noqa: PTH118
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield path


def search(root: str, start: str, pattern: str, closed: set[str]) -> Iterator[str]:
    """Yield `path:line: text` for every line that fits, at most FINDS."""
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        yield "[no regular expression: searched as plain text]"
        expression = re.compile(re.escape(pattern))
    finds = skipped = 0
    for n, path in enumerate(files(start, closed)):
        if n >= FILES:
            yield f"[stopped after {FILES} files]"
            return
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                raw = file.read(SIZE + 1)
        except OSError:
            skipped += 1
            continue
        if len(raw) > SIZE or b"\0" in raw[:8192]:
            skipped += 1
            continue
        name = os.path.relpath(path, root)
        for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
            match = expression.search(line)
            if match is None:
                continue
            if finds >= FINDS:
                yield f"[stopped after {FINDS} finds: narrow the pattern or the path]"
                return
            finds += 1
            begin = max(0, match.start() - WIDTH // 2) if len(line) > WIDTH else 0
            yield f"{name}:{number}: {line[begin : begin + WIDTH].strip()}"
    if not finds:
        yield "nothing found"
    if skipped:
        yield f"[{skipped} binary, unreadable or very large files were skipped]"


def main() -> None:
    ask = json.load(sys.stdin)
    for row in search(ask["root"], ask["start"], ask["pattern"], set(ask["closed"])):
        sys.stdout.buffer.write(row.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
