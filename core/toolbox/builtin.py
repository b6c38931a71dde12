"""The tools that every session has: time, timer, note, read_file."""

from __future__ import annotations

import datetime
import secrets
from pathlib import Path

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, storage_error
from exo.core.base.files import make_folder, write_atomic
from exo.core.toolbox.registry import Context, Toolbox, ToolSpec
from exo.core.toolbox.timers import Timers

READ_LIMIT = 400  # lines of a file in one result, unless asked otherwise
MAX_TIMER = 30 * 24 * 3600  # seconds


def register(toolbox: Toolbox, clock: Clock, timers: Timers, notes: Path) -> None:
    """Put the built-in tools into `toolbox`; `notes` is the folder where notes are kept."""

    def time(context: Context) -> str:
        now = clock.local()
        date = f"{now:%A}, {now.day} {now:%B} {now.year}"
        return f"It is {now:%H:%M} on {date} ({now:%Z})."

    async def timer(context: Context, seconds: float, label: str = "") -> str:
        due = timers.add(context.session, seconds, label).due
        at = datetime.datetime.fromtimestamp(due / 1000, clock.local().tzinfo)
        name = f" for {label}" if label else ""
        return f"Timer{name} set: {duration(seconds)}, until {at:%H:%M:%S}."

    def note(context: Context, text: str) -> str:
        if not text.strip():
            raise ExoError("note", "the text is empty", "say what to note")
        make_folder(notes)
        now = clock.local()
        path = notes / f"{now:%Y-%m-%dT%H%M%S}-{secrets.token_hex(3)}.md"
        write_atomic(path, f"+++\nwritten = {now.isoformat(timespec='seconds')}\n+++\n\n{text}\n")
        return f"Noted: {text}"

    def read_file(context: Context, path: str, offset: int = 1, limit: int = READ_LIMIT) -> str:
        return _read_lines(resolve(path, context.cwd), offset, limit)

    text = {"type": "string"}
    specs = [
        ToolSpec("time", "Tell the date and the time of day.", _object({}), time),
        ToolSpec(
            "timer",
            "Start a countdown that rings.",
            _object(
                {
                    "seconds": {"type": "number", "minimum": 1, "maximum": MAX_TIMER},
                    "label": text,
                },
                "seconds",
            ),
            timer,
        ),
        ToolSpec(
            "note", "Write down a note for the person.", _object({"text": text}, "text"), note
        ),
        ToolSpec(
            "read_file",
            "Read lines of a text file in the working folder.",
            _object(
                {
                    "path": text,
                    "offset": {"type": "integer", "minimum": 1, "maximum": 10**9},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 10**5},
                },
                "path",
            ),
            read_file,
        ),
    ]
    for spec in specs:
        toolbox.register(spec)


def resolve(path: str, cwd: Path) -> Path:
    """Return `path` inside `cwd`, links followed. Raises ExoError for one that leads outside."""
    try:
        root = cwd.resolve()
        full = (root / Path(path).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise ExoError(f"open {path!r}", f"no usable path: {error}") from error
    if not full.is_relative_to(root):
        raise ExoError(f"open {path}", f"it lies outside the working folder {root}")
    return full


def duration(seconds: float) -> str:
    """Words for a span: "1 hour 30 minutes"."""
    left, parts = round(seconds), []
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts) or "0 seconds"


def _read_lines(path: Path, offset: int, limit: int) -> str:
    if path.is_dir():
        raise ExoError(f"read {path.name}", "it is a folder")
    if path.exists() and not path.is_file():
        raise ExoError(f"read {path.name}", "it is no regular file")  # a pipe would block for ever
    try:
        with path.open("rb") as file:
            if b"\0" in file.read(8192):
                raise ExoError(f"read {path.name}", "it is no text file")
            file.seek(0)
            lines = []
            for number, line in enumerate(file, 1):
                if number >= offset + limit:
                    lines.append(f"[more lines: go on with offset {number}]")
                    break
                if number >= offset:
                    lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
    except FileNotFoundError as error:
        raise ExoError(f"read {path.name}", "there is no such file") from error
    except OSError as error:
        raise storage_error(f"read {path}", error) from error
    return "\n".join(lines)


def _object(properties: dict[str, object], *required: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
