"""The labelled tool calls of calls.jsonl, as the gate is to see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "calls.jsonl"
HALVES = ("dev", "held-out")
# sets of a second and of a third author, a file each
FRESH = ("fresh-dev", "fresh-held-out", "third-dev", "third-held-out")
CWD = "/home/pi/work"  # of a call that names none
HOME = "/home/pi"
EXO_HOME = "/home/pi/.exo"


def calls(half: str = "") -> list[dict[str, Any]]:
    """The rows of a half of the first set ("": both), or of a fresh one, in the order of the file, arguments
    built, `cwd` filled in."""
    file = FILE.with_name(f"{half}.jsonl") if half in FRESH else FILE
    rows = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    wanted = ("", *FRESH)
    return [
        {"cwd": CWD, **row, "args": built(row["args"])}
        for row in rows
        if half in wanted or half == row["half"]
    ]


def built(value: Any) -> Any:
    """The value with its generators run: {"repeat": text, "times": n} and {"join": [part, ...]}."""
    if isinstance(value, list):
        return [built(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"repeat", "times"}:
        return str(value["repeat"]) * int(value["times"])
    if set(value) == {"join"}:
        return "".join(built(part) for part in value["join"])
    return {key: built(each) for key, each in value.items()}
