"""A node: one belief as a Markdown file with TOML front matter between +++ lines. Owns the fixed keys, the
types and links there are, reading and writing; knows nothing of folders on a disk or of the ledger.

Invariant: parse(render(node)) gives the same node for any text; what does not parse raises BadNode with
its line, and nothing here repairs it."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from exo.core.base.errors import HomeError

TYPES = (
    *("trait", "value", "fact", "preference", "rule", "episode", "entity", "procedure", "question"),
    *("pattern", "tension"),
)
FENCE = "+++"
LIMIT = 1_000_000  # bytes; a curated file above this is named and left alone
ROOTS = ("PACK.md", "INDEX.md", "nodes/", "policies/", "skills/")  # what a person may edit
_NAME = re.compile(r"[^\W_](?:[\w.-]{0,98}\w)?")
_FRONT = re.compile(r"\ufeff?\+\+\+[^\S\n]*\n(?P<table>.*?)^\+\+\+[ \t\r]*$\n?", re.M | re.S)
_PLACE = re.compile(r"at line (\d+)")


class BadNode(HomeError, ValueError):
    """A file that does not parse; `line` counts from 1."""

    code = "bad_node"

    def __init__(self, path: str, line: int, why: str) -> None:
        super().__init__(f"read {path} line {line}", why, "mend the file; it is left as it is")
        self.line = line


@dataclass(frozen=True)
class Node:
    """A belief. `links` are (type, id); dates ISO, "" open. `trust` and `ts` (ms UTC of its capture) are
    known from the ledger and stand in no file."""

    id: str
    title: str = ""
    type: str = "fact"
    domain: str = "general"
    summary: str = ""
    load_when: tuple[str, ...] = ()
    confidence: str = "medium"
    stability: str = "durable"
    valid_from: str = ""
    valid_until: str = ""
    sources: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    text: str = ""
    trust: str = "self"
    ts: int = 0

    @property
    def path(self) -> str:
        return f"nodes/{self.domain}/{self.id}.md"


KEYS = tuple(name for name in Node.__dataclass_fields__ if name not in ("text", "trust", "ts"))
LISTS = ("load_when", "sources", "links", "tags")


def safe_name(name: str) -> bool:
    """Whether `name` can be an id, a domain or a file: letters, digits, . _ - inside, at most 100."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def safe_path(path: str) -> bool:
    """Whether `path` is a curated file of a store: below ROOTS, no `..`, nothing hidden, no surrogates."""
    parts = path.split("/")
    fine = all(safe_name(part.replace(" ", "-")) for part in parts) and len(parts) <= 8
    return fine and (path in ROOTS or (len(parts) > 1 and f"{parts[0]}/" in ROOTS))


def text_of(path: str, data: bytes) -> str:
    """`data` as text, a byte order mark apart. Raises BadNode for NUL, other encodings and too much."""
    if len(data) > LIMIT:
        raise BadNode(path, 1, f"{len(data)} bytes, at most {LIMIT} are read")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadNode(path, data.count(b"\n", 0, error.start) + 1, "it is not UTF-8") from error
    if "\0" in text:
        raise BadNode(path, text.count("\n", 0, text.index("\0")) + 1, "it holds a NUL")
    return text.removeprefix("\ufeff")


def front(path: str, data: bytes) -> tuple[dict[str, Any], str]:
    """The front matter's table and the text below it. Raises BadNode."""
    text = text_of(path, data)
    if text.split("\n", 1)[0].rstrip() != FENCE:
        raise BadNode(path, 1, f"it does not begin with {FENCE}")
    found = _FRONT.match(text)
    if found is None:
        raise BadNode(path, 1, f"the closing {FENCE} is missing")
    return toml_table(path, found["table"], 1), text[found.end() :]


def toml_table(path: str, text: str, above: int = 0) -> dict[str, Any]:
    """`text` as TOML, below so many lines of its file. Raises BadNode."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = _PLACE.search(str(error))
        raise BadNode(path, int(place[1]) + above if place else 1, str(error)) from error


def parse(path: str, data: bytes) -> Node:
    """The node in a file; keys that are missing or of a wrong type take their default (lint names them).
    Raises BadNode."""
    table, text = front(path, data)
    place = PurePosixPath(path)
    return node_of(table, text, id=place.stem, title=place.stem, domain=place.parent.name)


def checked(path: str, data: bytes) -> Node | None:
    """The node in a file of nodes/; None for what is another file. Raises BadNode where it does not parse."""
    if path.startswith("nodes/"):
        return parse(path, data)
    text = text_of(path, data)
    if path.endswith(".toml"):
        toml_table(path, text)
    return None


def node_of(table: dict[str, Any], text: str, **values: Any) -> Node:
    """A node from keys and values of any make; `values` are for what is missing or of a wrong type."""
    for key in KEYS:
        value = table.get(key)
        if key in LISTS:
            rows = value if isinstance(value, list | tuple) else [value] if value else ()
            made = map(_link if key == "links" else _plain, rows)
            values[key] = tuple(each for each in made if each)
        elif value is not None and not isinstance(value, list | dict):
            values[key] = _plain(value)
    return Node(**{"id": "", **values}, text=text)


def _link(row: object) -> tuple[str, str] | None:
    if isinstance(row, dict) and {"type", "to"} <= row.keys():
        return str(row["type"]), str(row["to"])
    return None


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def table_of(node: Node) -> dict[str, Any]:
    """The front matter of `node` as JSON-like values, in the fixed order."""
    table: dict[str, Any] = {}
    for key in KEYS:
        value = getattr(node, key)
        if key == "links":
            table[key] = [{"type": kind, "to": to} for kind, to in value]
        else:
            table[key] = list(value) if key in LISTS else value
    return table


def render(node: Node) -> bytes:
    """The file of `node`: every key in the fixed order, one a line."""
    return f"{FENCE}\n{toml_lines(table_of(node))}{FENCE}\n{node.text}".encode()


def toml(value: object) -> str:
    """A number, string, list or table as TOML on one line; strings are those of JSON, DEL apart."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {toml(each)}' for key, each in value.items())}}}"
    made = value if isinstance(value, int) else str(value)
    return json.dumps(made, ensure_ascii=False).replace("\x7f", "\\u007F")


def toml_lines(table: dict[str, Any]) -> str:
    """A table as TOML, one key a line."""
    return "".join(f"{key} = {toml(value)}\n" for key, value in table.items())


def changed(path: str, data: bytes, **values: Any) -> bytes:
    """`data` with keys set, every other byte as it was; written anew only where a key's value spans
    lines. Raises BadNode."""
    node = replace(parse(path, data), **values)
    text, table = data.decode(), table_of(node)
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    for key in values:
        found = _FRONT.match(text)
        assert found is not None
        begin, after = found.span("table")
        line = re.compile(rf"^{key}[ \t]*=.*\n", re.M).search(text, begin, after)
        begin, after = line.span() if line else (begin, begin)
        text = f"{text[:begin]}{key} = {toml(table[key])}{end}{text[after:]}"
    with suppress(BadNode):
        if parse(path, text.encode()) == node:
            return text.encode()
    return render(node)
