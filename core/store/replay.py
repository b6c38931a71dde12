"""What an entry of the ledger means for the files and items of a store. Owns that meaning; reads no clock,
no disk and no database: a State is a base that is only read, and what entries changed on top of it.

Invariants: replay depends on the base and the entries alone; taking an entry twice is taking it once; an
entry whose body was forgotten means nothing; a file that does not parse is only ever changed by an edit."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from exo.core.ledger.entry import Entry
from exo.core.store import nodes, words
from exo.core.store.nodes import BadNode, Node, changed, node_of, parse

FORMAT = 2
TEMPLATES = Path(__file__).parent / "templates"
RULES, ROUTES = "## Standing rules", "## Load rules"
ANSWERS = {  # question of the onboarding -> the line of PACK.md that keeps its answer
    "name": ("## Person", "Call me: "),
    "languages": ("## Person", "Languages: "),
    "about": ("## Person", "About: "),
    "style": ("## Answers", ""),
    "ask": ("## Ask first", ""),
}


@dataclass(frozen=True)
class File:
    """A curated file: its bytes, how far it is trusted, when it came (ms UTC), the entries behind it."""

    data: bytes
    trust: str = "self"
    ts: int = 0
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Item:
    """Something saved elsewhere, or a note (`kind`): evidence, not a belief. `hash` finds doubles."""

    id: str
    kind: str = "item"
    source: str = ""
    external: str = ""
    url: str = ""
    title: str = ""
    text: str = ""
    tags: str = ""
    created: str = ""
    tier: str = "curated"
    review: str = "new"
    trust: str = "untrusted"
    hash: str = ""
    ts: int = 0
    entries: str = ""


class Base(Protocol):
    """What a State stands on."""

    def file(self, path: str) -> File | None: ...

    def paths(self, id_: str) -> list[str]:
        """The files of nodes/ that are named so."""
        ...

    def item(self, id_: str) -> Item | None: ...


class State:
    """`files` and `items` are what changed since the base; None: gone."""

    def __init__(self, base: Base | None = None) -> None:
        self.base = base
        self.files: dict[str, File | None] = {}
        self.items: dict[str, Item | None] = {}
        self._paths: dict[str, set[str]] = {}

    def file(self, path: str) -> File | None:
        if path in self.files or self.base is None:
            return self.files.get(path)
        return self.base.file(path)

    def path(self, id_: str) -> str | None:
        """Where the node of that id lies; the first where there are two."""
        return min(filter(self.file, self.paths(id_)), default=None)

    def paths(self, id_: str) -> list[str]:
        return [*self._paths.get(id_, ()), *(self.base.paths(id_) if self.base else ())]

    def item(self, id_: str) -> Item | None:
        if id_ in self.items or self.base is None:
            return self.items.get(id_)
        return self.base.item(id_)

    def lay(self, path: str, file: File | None) -> None:
        """Set a file, or None for no file."""
        self.files[path] = file
        self._paths.setdefault(PurePosixPath(path).stem, set()).add(path)

    def put(self, path: str, data: bytes, entry: Entry, trust: str = "") -> None:
        """Set a file; of a page only the last entry is kept with it, of a node all."""
        old = self.file(path)
        made = File(data, trust or "self", entry.ts) if old is None else old
        before = made.entries if path.startswith("nodes/") else ()
        entries = (*before, *(() if entry.id in before else (entry.id,)))
        self.lay(path, replace(made, data=data, entries=entries))

    def page(self, path: str, entry: Entry, change: Callable[[bytes], bytes]) -> None:
        """Change PACK.md or INDEX.md, unless it does not parse; the entries behind it stay as they are."""
        old = self.file(path) or File((TEMPLATES / path).read_bytes(), ts=entry.ts)
        with suppress(BadNode):
            nodes.text_of(path, old.data)
            if (data := change(old.data)) != old.data or self.file(path) is None:
                self.files[path] = replace(old, data=data)


def replay(entries: Iterable[Entry], base: Base | None = None) -> State:
    """What `entries`, in the ledger's order, make of `base`."""
    state = State(base)
    for entry in entries:
        step(state, entry)
    return state


def step(state: State, entry: Entry) -> None:
    """Take the next entry."""
    act = _MEANINGS.get(entry.kind)
    if act is not None and entry.body is not None:
        act(state, entry, entry.body)


def node_id(type_: str, entry_id: str) -> str:
    """The id of the node that an entry makes: none of its words."""
    return f"{type_ if type_ in nodes.TYPES else 'fact'}-{entry_id[:12]}"


def item_id(source: str, external: str) -> str:
    """The id of an item: the same whenever its source is read again."""
    named = hashlib.sha256("\n".join((source, external)).encode())
    return f"item-{named.hexdigest()[:12]}"


def bytes_of(body: dict[str, Any]) -> bytes | None:
    """What the body of an `edit` says a file holds; None: it was deleted."""
    if "base64" in body:
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(str(body["base64"]))
    return None if body.get("deleted") else str(body.get("text", "")).encode()


def _belief(state: State, entry: Entry, body: dict[str, Any]) -> None:
    fields, action = dict(body.get("node") or {}), body.get("action", "add")
    day = str(fields.get("valid_from") or _day(entry))
    old = [
        path
        for path in (state.path(node_id(t, ref)) for ref in entry.refs[:1] for t in nodes.TYPES)
        if path
    ]
    if action in ("retire", "link"):
        path = state.path(str(fields.get("id", ""))) or next(iter(old), None)
        if path and action == "retire":
            _close(state, entry, path, str(fields.get("valid_until") or _day(entry)))
        elif path and (file := state.file(path)):
            with suppress(BadNode):
                links = parse(path, file.data).links
                fresh = [each for each in node_of(fields, "").links if each not in links]
                state.put(path, changed(path, file.data, links=(*links, *fresh)), entry)
        return
    made = node_of(fields, words.clean(str(body.get("text", ""))) + "\n")
    targets = [to for kind, to in made.links if kind == "supersedes"]
    if action == "supersede" and not targets:
        targets = [PurePosixPath(path).stem for path in old]
        made = replace(made, links=(*made.links, *(("supersedes", each) for each in targets)))
    trust = words.worst(str(body.get("trust", "untrusted")))
    node = replace(made, valid_from=day, trust=trust)
    standing = any(_marked(state, each) for each in targets)
    _add(state, entry, node, standing and trust == "self" and node.type == "rule")
    for path in filter(None, map(state.path, targets)):
        _close(state, entry, path, day[:10])


def _rule(state: State, entry: Entry, body: dict[str, Any]) -> None:
    text, trust = words.clean(str(body.get("text", ""))), words.trust_of(str(body.get("channel")))
    fields = words.guess(text) | {"type": "rule", "domain": "rules", "load_when": []}
    fixed = {"confidence": "high", "stability": "core", "valid_from": _day(entry)}
    node = node_of(fields | fixed, text + "\n")
    _add(state, entry, replace(node, trust=trust), trust == "self")


def _add(state: State, entry: Entry, node: Node, standing: bool) -> None:
    domain = node.domain if nodes.safe_name(node.domain) else "general"
    id_ = node_id(node.type, entry.id)
    type_, sources = id_.rpartition("-")[0], node.sources or (entry.id,)
    node = replace(node, id=id_, type=type_, domain=domain, sources=sources)
    if state.file(node.path) is None:
        state.put(node.path, nodes.render(node), entry, node.trust)
    if node.load_when:
        line = f"- {'; '.join(words.one_line(each) for each in node.load_when)} -> {id_}"
        state.page("INDEX.md", entry, lambda data: put_line(data, ROUTES, line, f"-> {id_}"))
    if standing:
        line = f"- {words.one_line(node.text, 1000)} [{id_}]"
        state.page("PACK.md", entry, lambda data: put_line(data, RULES, line, f"[{id_}]"))


def _close(state: State, entry: Entry, path: str, day: str) -> None:
    """The node holds no longer from `day` on, and no page names it."""
    id_, file = PurePosixPath(path).stem, state.file(path)
    with suppress(BadNode):
        if file and not parse(path, file.data).valid_until:
            state.put(path, changed(path, file.data, valid_until=day), entry)
    for page, mark in (("PACK.md", f"[{id_}]"), ("INDEX.md", f"-> {id_}")):
        if state.file(page):
            state.page(page, entry, lambda data, mark=mark: drop_lines(data, mark))  # type: ignore[misc]


def _marked(state: State, id_: str) -> bool:
    pack = state.file("PACK.md")
    return pack is not None and f"[{id_}]".encode() in pack.data


def _edit(state: State, entry: Entry, body: dict[str, Any]) -> None:
    path, data = str(body.get("path", "")), bytes_of(body)
    if not nodes.safe_path(path):
        return
    if data is None:
        state.files[path] = None
    else:
        state.put(path, data, entry)


def _item(state: State, entry: Entry, body: dict[str, Any]) -> None:
    names = set(Item.__dataclass_fields__) - {"id", "kind", "tags", "ts", "entries"}
    values = {name: str(body[name]) for name in names & body.keys()}
    tags = body.get("tags") or []
    id_ = item_id(values.get("source", ""), values.get("external", ""))
    _row(state, entry, Item(id_, tags=" ".join(map(str, tags)), ts=entry.ts, **values))


def _note(state: State, entry: Entry, body: dict[str, Any]) -> None:
    text, trust = words.clean(str(body.get("text", ""))), words.trust_of(str(body.get("channel")))
    made = Item(item_id("note", entry.id), "note", "note", entry.id, trust=trust, ts=entry.ts)
    title, hash_ = words.one_line(text, 70), words.norm(text)
    _row(state, entry, replace(made, title=title, text=text, hash=hash_, review="kept"))


def _row(state: State, entry: Entry, item: Item) -> None:
    old = state.item(item.id)
    before = [each for each in (old.entries.split() if old else ()) if each != entry.id]
    state.items[item.id] = replace(item, entries=" ".join((*before, entry.id)))


def _init(state: State, entry: Entry, body: dict[str, Any]) -> None:
    if body.get("action") != "init":
        return
    store = body.get("store") or {}
    manifest = {"kind": "principal", "id": "", "format": FORMAT, "created": "", "root": ""} | store
    rows = (
        f"{key} = {value if isinstance(value, int) else nodes.toml(value)}"
        for key, value in manifest.items()
    )
    made = {"STORE.toml": ("\n".join(rows) + "\n").encode()}
    for path in sorted(TEMPLATES.rglob("*.*")):
        made[path.relative_to(TEMPLATES).as_posix()] = path.read_bytes()
    for name, data in made.items():
        if state.file(name) is None:
            state.files[name] = File(data, ts=entry.ts)
    for key, (heading, label) in ANSWERS.items():
        if answer := words.one_line(str((body.get("answers") or {}).get(key, ""))):
            line = f"- {label}{answer}"
            state.page("PACK.md", entry, lambda data: put_line(data, heading, line, line, label))  # noqa: B023


def _day(entry: Entry) -> str:
    return datetime.datetime.fromtimestamp(entry.ts / 1000, datetime.UTC).date().isoformat()


_MEANINGS: dict[str, Callable[[State, Entry, dict[str, Any]], None]] = {
    **{"belief": _belief, "rule": _rule, "edit": _edit},
    **{"item": _item, "note": _note, "state": _init},
}


# ---- lines of a page -----------------------------------------------------------------------------


def put_line(data: bytes, heading: str, line: str, mark: str, label: str = "") -> bytes:
    """`data` with `line` at the end of a section; as it is where a line ends in `mark`. A line with the
    same `label` is replaced. A heading that is missing is made."""
    rows, end = data.decode().splitlines(keepends=True), "\r\n" if b"\r\n" in data else "\n"
    if any(row.rstrip().endswith(mark) for row in rows):
        return data
    if label and (same := [n for n, row in enumerate(rows) if row.startswith(f"- {label}")]):
        rows[same[0]] = line + end
        return "".join(rows).encode()
    at = next((n for n, row in enumerate(rows) if row.rstrip() == heading), -1)
    if at < 0:
        rows += [*([end] if not rows or rows[-1].endswith("\n") else [end, end]), heading + end]
        at = len(rows) - 1
    after = next((n for n in range(at + 1, len(rows)) if rows[n].startswith("#")), len(rows))
    last = after
    while last > at + 1 and not rows[last - 1].strip():
        last -= 1
    if not rows[last - 1].endswith("\n"):
        rows[last - 1] += end
    if last == at + 1:  # an empty section: a blank line before and behind, whatever was there
        return "".join(
            (*rows[:last], end, line + end, *([end] * bool(rows[after:])), *rows[after:])
        ).encode()
    return "".join((*rows[:last], line + end, *rows[last:])).encode()


def drop_lines(data: bytes, mark: str) -> bytes:
    """`data` without the lines that end in `mark`."""
    rows = data.decode().splitlines(keepends=True)
    return "".join(row for row in rows if not row.rstrip().endswith(mark)).encode()


def manifest_format(data: bytes) -> int:
    """The format that a STORE.toml names; 1 where it names none."""
    with suppress(tomllib.TOMLDecodeError, UnicodeDecodeError):
        found = tomllib.loads(data.decode()).get("format", 1)
        return found if isinstance(found, int) else 1
    return 1
