"""One JSON object a line: {text, title?, url?, created?, tags?, id?}. A line that is not exactly that is
counted and named; nothing of it is taken.

`id` names the item for ever (without one its address does, else its text), `created` is an ISO date or time,
or a number of seconds or ms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from exo.tools.importers.record import (
    LONGEST,
    NewItem,
    Passed,
    cut,
    moment,
    number,
    one_line,
    plain,
    whole_file,
)

LONGEST_LINE = 4 * LONGEST  # bytes


def read(path: Path) -> Iterator[NewItem | Passed]:
    """Every line of the file, in order. Raises ExoError when it cannot be opened."""
    with whole_file(path).open("rb") as file:
        at = 0
        while line := file.readline(LONGEST_LINE + 1):
            at += 1
            name = f"line {at}"
            if len(line) > LONGEST_LINE:
                _drain(file, line)
                yield Passed("skipped", name, f"longer than {LONGEST_LINE:,} bytes")
            elif line.strip(b" \t\r\n\0\xef\xbb\xbf"):
                yield from _line(name, line.removeprefix(b"\xef\xbb\xbf"))


def _drain(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(LONGEST_LINE)


def _line(name: str, line: bytes) -> Iterator[NewItem | Passed]:
    try:
        item = _item(json.loads(line))
    except UnicodeDecodeError:
        yield Passed("failed", name, "not UTF-8")
    except (json.JSONDecodeError, RecursionError):
        yield Passed("failed", name, "not JSON")
    except ValueError as error:
        yield Passed("failed", name, str(error))
    else:
        if len(item.text) > LONGEST:
            yield Passed("remark", name, f"text cut at {LONGEST:,} characters")
        yield NewItem(**{**vars(item), "text": cut(item.text)})


def _item(record: Any) -> NewItem:
    """Raises ValueError: what is wrong with it."""
    if not isinstance(record, dict):
        raise ValueError("not an object")
    text, title, url = (_string(record, key) for key in ("text", "title", "url"))
    if not text.strip():
        raise ValueError("no text")
    tags = record.get("tags") or []
    if isinstance(tags, str):
        tags = tags.split(",")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("tags are neither a list of strings nor a string")
    external = record.get("id")
    if isinstance(external, bool) or not isinstance(external, str | int | None):
        raise ValueError("id is neither a string nor a number")
    names = (one_line(plain(tag)) for tag in tags)
    return NewItem(
        external=plain(str(external)) if external not in (None, "") else url or _digest(text),
        title=one_line(title) or one_line(text.strip().partition("\n")[0], 80),
        text=text.strip(),
        url=url.strip(),
        tags=tuple(dict.fromkeys(tag for tag in names if tag)),
        created=_created(record.get("created")),
    )


def _string(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a string")
    return plain(value)


def _created(value: Any) -> str:
    if value in (None, ""):
        return ""
    if isinstance(value, str):
        at = moment(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        at = number(value)
    else:
        at = ""
    if not at:
        raise ValueError("created is no date between 1970 and 2100")
    return at


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
