"""What an entry of the ledger means for the files and items of a store. Owns that meaning; reads no clock,
no disk and no database.

Invariants: replay depends on the state before and the entries alone; taking an entry twice is taking it once; an
entry whose body was forgotten means nothing; a file that does not parse is only ever changed by an edit."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from exo.core.ledger.entry import Entry
from exo.core.store import nodes, words
from exo.core.store.nodes import BadNode, Node, changed, node_of, parse

FORMAT = 2
TEMPLATES = Path(__file__).parent / "templates"
MANIFEST = "STORE.toml"
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


class State:
    """Files and items as replay makes them, held in memory; Views holds them in tables."""

    def __init__(self) -> None:
        self.files: dict[str, File | None] = {}
        self.items: dict[str, Item] = {}

    def file(self, path: str) -> File | None:
        return self.files.get(path)

    def paths(self, id_: str) -> list[str]:
        """The files of nodes/ that are named so, in order."""
        named = [path for path in self.files if PurePosixPath(path).stem == id_]
        return sorted(path for path in named if path.startswith("nodes/") and self.files[path])

    def item(self, id_: str) -> Item | None:
        return self.items.get(id_)

    def lay(self, path: str, file: File | None) -> None:
        """Set a file, or None for no file."""
        self.files[path] = file

    def keep(self, item: Item) -> None:
        """Set an item."""
        self.items[item.id] = item

    def put(self, path: str, data: bytes, entry: Entry, trust: str = "self") -> None:
        """Set the bytes of a file; of a page only the last entry is kept with it, of a node all."""
        old = self.file(path) or File(data, trust, entry.ts)
        before = old.entries if path.startswith("nodes/") else ()
        entries = tuple(dict.fromkeys((*before, entry.id)))
        self.lay(path, replace(old, data=data, entries=entries))

    def page(self, path: str, change: Callable[[str], str]) -> None:
        """Change PACK.md or INDEX.md, unless it does not parse; the entries behind it stay as they are."""
        old = self.file(path) or File((TEMPLATES / path).read_bytes())
        with suppress(BadNode):
            nodes.text_of(path, old.data)
            data = change(old.data.decode()).encode()
            if data != old.data or self.file(path) is None:
                self.lay(path, replace(old, data=data))


def replay(entries: Iterable[Entry], state: State | None = None) -> State:
    """What `entries`, in the ledger's order, make of `state`."""
    state = state or State()
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


def answered(answers: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(heading, label, line) of PACK.md for each answer that says something."""
    for key, (heading, label) in ANSWERS.items():
        if answer := words.one_line(str(answers.get(key, ""))):
            yield heading, label, f"- {label}{answer}"


def _belief(state: State, entry: Entry, body: dict[str, Any]) -> None:
    fields, action = dict(body.get("node") or {}), body.get("action", "add")
    if action in ("retire", "link"):
        for path in state.paths(str(fields.get("id", "")))[:1]:
            if action == "retire":
                _close(state, entry, path, str(fields.get("valid_until") or _day(entry)))
            else:
                _change(state, entry, path, links=node_of(fields, "").links)
        return
    node = node_of(fields, words.clean(str(body.get("text", ""))) + "\n")
    node = replace(node, trust=words.worst(str(body.get("trust", "untrusted"))))
    targets = [to for kind, to in node.links if kind == "supersedes"]
    pack = state.file("PACK.md")
    standing = any(pack and f"[{each}]".encode() in pack.data for each in targets)
    day = _add(state, entry, node, standing or entry.kind == "rule").valid_from
    for each in targets:
        for path in state.paths(each)[:1]:
            _close(state, entry, path, day[:10])


def _rule(state: State, entry: Entry, body: dict[str, Any]) -> None:
    fields = words.guess(words.clean(str(body.get("text", ""))))
    fields |= {"type": "rule", "domain": "rules", "confidence": "high", "stability": "core"}
    del fields["load_when"]
    trust = words.trust_of(str(body.get("channel")))
    _belief(state, entry, body | {"node": fields, "trust": trust, "action": "add"})


def _add(state: State, entry: Entry, node: Node, standing: bool) -> Node:
    """Lay the node that an entry makes; a rule of the person's own that is `standing` enters the pack."""
    id_ = node_id(node.type, entry.id)
    node = replace(
        node,
        id=id_,
        type=id_.rpartition("-")[0],
        domain=node.domain if nodes.safe_name(node.domain) else "general",
        sources=node.sources or (entry.id,),
        valid_from=node.valid_from or _day(entry),
    )
    if state.file(node.path) is None:
        state.put(node.path, nodes.render(node), entry, node.trust)
    if node.load_when:
        when = "; ".join(map(words.one_line, node.load_when))
        state.page("INDEX.md", _line(ROUTES, f"- {when}", f" -> {id_}"))
    if standing and node.trust == "self" and node.type == "rule":
        state.page("PACK.md", _line(RULES, f"- {words.one_line(node.text, 1000)}", f" [{id_}]"))
    return node


def _close(state: State, entry: Entry, path: str, day: str) -> None:
    """The node holds no longer from `day` on, and no page names it."""
    _change(state, entry, path, valid_until=day)
    id_ = PurePosixPath(path).stem
    state.page("PACK.md", lambda text: _without(text, f"[{id_}]"))
    state.page("INDEX.md", lambda text: _without(text, f"-> {id_}"))


def _change(state: State, entry: Entry, path: str, **values: Any) -> None:
    """Set a key of a node that parses: links are added to, an end that is set stays."""
    file = state.file(path)
    with suppress(BadNode):
        if file:
            node = parse(path, file.data)
            if "links" in values:
                values["links"] = tuple(dict.fromkeys((*node.links, *values["links"])))
            if "links" in values or not node.valid_until:
                state.put(path, changed(path, file.data, **values), entry)


def _edit(state: State, entry: Entry, body: dict[str, Any]) -> None:
    path, data = str(body.get("path", "")), bytes_of(body)
    if not nodes.safe_path(path):
        return
    if data is None:
        state.lay(path, None)
    else:
        state.put(path, data, entry)


def _item(state: State, entry: Entry, body: dict[str, Any], kind: str = "item") -> None:
    names = set(Item.__dataclass_fields__) - {"id", "kind", "tags", "ts", "entries"}
    values = {name: str(body[name]) for name in names & body.keys()}
    id_ = item_id(values.get("source", ""), values.get("external", ""))
    old = state.item(id_)
    entries = dict.fromkeys((*(old.entries.split() if old else ()), entry.id))
    values |= {"tags": " ".join(map(str, body.get("tags") or [])), "entries": " ".join(entries)}
    state.keep(Item(id_, kind, ts=entry.ts, **values))


def _note(state: State, entry: Entry, body: dict[str, Any]) -> None:
    text = words.clean(str(body.get("text", "")))
    made = {
        "source": "note",
        "external": entry.id,
        "title": words.one_line(text, 70),
        "text": text,
        "review": "kept",
        "trust": words.trust_of(str(body.get("channel"))),
        "hash": words.norm(text),
    }
    _item(state, entry, made, "note")


def _init(state: State, entry: Entry, body: dict[str, Any]) -> None:
    if body.get("action") != "init":
        return
    manifest = {"kind": "principal", "id": "", "format": FORMAT, "created": "", "root": ""}
    made = {MANIFEST: nodes.toml_lines(manifest | (body.get("store") or {})).encode()}
    for path in sorted(TEMPLATES.rglob("*.*")):
        made[path.relative_to(TEMPLATES).as_posix()] = path.read_bytes()
    for name, data in made.items():
        if state.file(name) is None:
            state.lay(name, File(data))
    for heading, label, line in answered(body.get("answers") or {}):
        state.page("PACK.md", _line(heading, line, "", label))


def _day(entry: Entry) -> str:
    return datetime.datetime.fromtimestamp(entry.ts / 1000, datetime.UTC).date().isoformat()


_MEANINGS: dict[str, Callable[[State, Entry, dict[str, Any]], None]] = {
    "belief": _belief,
    "rule": _rule,
    "edit": _edit,
    "item": _item,
    "note": _note,
    "state": _init,
}


# ---- lines of a page -----------------------------------------------------------------------------


def _line(heading: str, line: str, mark: str, label: str = "") -> Callable[[str], str]:
    """Puts `line` and its closing `mark` at the end of a section, which is made where it is missing. A page
    where a line ends so stays as it is; a line with the same `label` is replaced."""

    def change(text: str) -> str:
        rows, end = text.splitlines(keepends=True), "\r\n" if "\r\n" in text else "\n"
        names = [row.rstrip() for row in rows]
        if any(name.endswith(mark or line) for name in names):
            return text
        for number, row in enumerate(rows):
            if label and row.startswith(f"- {label}"):
                return "".join((*rows[:number], line + end, *rows[number + 1 :]))
        if heading not in names:
            closed = text if text.endswith("\n") or not text else text + end
            return change(f"{closed}{end}{heading}{end}")
        at = names.index(heading) + 1
        after = next((n for n in range(at, len(rows)) if rows[n].startswith("#")), len(rows))
        head, section, rest = map("".join, (rows[:at], rows[at:after], rows[after:]))
        said = section.rstrip()
        if said:
            section = f"{said}{end}{line}{mark}{section[len(said) :] or end}"
        else:  # a blank line before and behind, whatever was there
            head += "" if head.endswith("\n") else end
            section = f"{end}{line}{mark}{end}{end if rest else ''}"
        return head + section + rest

    return change


def _without(text: str, mark: str) -> str:
    """`text` without the lines that end in `mark`."""
    rows = text.splitlines(keepends=True)
    return "".join(row for row in rows if not row.rstrip().endswith(mark))
