"""Forgetting: what is known of an entry, a belief or an item goes everywhere it went. Owns what follows from
what (by refs, then by words that nothing else holds), and the order of the steps.

Invariant: once `forget` has begun, a crash cannot leave half of it: state/forget.json names what is still to
be done, and `resume` does it. It holds the words themselves until then, and goes last: not before the turns
end that ran meanwhile, which may still say it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.errors import ExoError, HomeError
from exo.core.base.files import write_atomic
from exo.core.base.home import Home
from exo.core.ledger.entry import Entry
from exo.core.retrieve.words import STOP

if TYPE_CHECKING:
    from exo.core.retrieve.memory import Memory

# made from what others said, so that they do not keep a word of it alive
DERIVED = ("action", "outcome", "approval", "retrieval", "decision", "proposal", "question")
SOURCES = ("utterance", "action", "outcome")  # what a belief or note may be made from
KEPT = ("forget", "checkpoint", "device")  # hold no words of the person
SAID = {"text", "title", "summary", "load_when", "tags"}
SAID |= {"reason", "url", "external", "args", "answers"}
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True)
class Needles:
    """What has to go: whole texts, words that nothing else holds, and the turns they were said in."""

    texts: tuple[str, ...]
    words: frozenset[str]
    turns: tuple[str, ...]

    def hit(self, text: str) -> bool:
        """Whether `text` says any of it."""
        return any(each in text for each in self.texts) or not self.words.isdisjoint(words(text))

    def meant(self, body: dict[str, Any]) -> bool:
        """Whether a body says any of it, or is of one of the turns."""
        return body.get("turn") in self.turns or any(map(self.hit, leaves(body)))

    def named(self, text: str) -> bool:
        """The same of a title or label, which may be cut out of what has to go."""
        part = text.rstrip("…")
        cut = len(words(part)) > 2 and any(part in " ".join(each.split()) for each in self.texts)
        return cut or self.hit(text)


def words(text: str) -> set[str]:
    """The words of a text, small."""
    return set(_WORD.findall(text.casefold()))


def forget(
    memory: Memory, home: Home, id_: str, erase: Callable[[Needles], object], asked: str = ""
) -> list[str]:
    """Forget an event, a node or an item with all that follows from it; `erase` takes it out of the
    conversations, and is true while a turn runs; `asked` is the entry of the words that asked for it: they go
    along where they say it. Returns the entries that went. Raises ExoError for an id that is unknown."""
    resume(memory, home, erase)
    memory.refresh()
    ids = memory.store.entry_of(id_)
    start = [entry for entry in map(memory.ledger.get, ids) if entry and not _stays(entry, ids)]
    if not start:
        do = "ids stand in what recall shows and in `exo ledger tail`"
        raise ExoError(f"forget {id_!r}", "nothing of that id is known that could go", do)
    if not start[0].id.startswith(id_):  # a node or an item: with what it was made of
        start += _sources(memory, start)
    gone = {entry.id: entry for entry in _closure(memory, start)}
    own = (entry.body for entry in gone.values() if entry.kind not in DERIVED)
    spoken = {text for body in own for text in leaves(body)}
    rare = _rare(
        memory, set().union(*map(words, spoken)).difference(*STOP.values()), {*gone, asked}
    )
    texts = {text for text in spoken if len(words(text)) > 2 or words(text) & rare}
    asking = memory.ledger.get(asked)
    if asking and Needles((*texts,), frozenset(rare), ()).meant(asking.body or {}):
        gone |= {entry.id: entry for entry in _closure(memory, [asking])}
    turns = {str((entry.body or {}).get("turn", "")) for entry in gone.values()} - {""}
    plan = {"ids": {*gone}, "texts": texts, "words": rare, "turns": turns}
    old = _plan(home)  # of a turn that still runs
    write_atomic(_file(home), json.dumps({key: [*old[key], *plan[key]] for key in plan}))
    return sorted({*gone, *resume(memory, home, erase)})


def resume(memory: Memory, home: Home, erase: Callable[[Needles], object]) -> list[str]:
    """Do what a `forget` has left that was cut off, or that a turn outlasted; returns the entries that
    went. Raises HomeError."""
    plan = _plan(home)
    if not plan["ids"]:
        return []
    needles = Needles(tuple(plan["texts"]), frozenset(plan["words"]), tuple(plan["turns"]))
    named = filter(None, map(memory.ledger.get, plan["ids"]))
    made = (e for e in memory.ledger.entries(kinds=DERIVED) if needles.meant(e.body or {}))
    if left := [e.id for e in (*named, *made) if e.body and e.kind not in KEPT]:
        memory.ledger.forget(left, "asked")
    memory.store.erase([*plan["ids"], *left], [*needles.texts, *needles.words])
    memory.refresh()
    memory.index.scrub()
    busy = erase(needles)
    _erase_files(home, needles)
    if not busy:
        _file(home).unlink()
    return left


def _plan(home: Home) -> dict[str, list[str]]:
    """What is still to go. Raises HomeError."""
    plan: dict[str, list[str]] = {"ids": [], "texts": [], "words": [], "turns": []}
    try:
        plan = {**plan, **json.loads(_file(home).read_text())}
        if not all(
            isinstance(rows, list) and {*map(type, rows)} <= {str} for rows in plan.values()
        ):
            raise ValueError("lists of texts are wanted")
    except FileNotFoundError:
        pass
    except (OSError, ValueError, TypeError, RecursionError) as error:
        do = "remove it, then forget again what was to go"
        raise HomeError(f"read {_file(home)}", f"it is damaged: {error}", do) from error
    return plan


def _sources(memory: Memory, start: Sequence[Entry]) -> list[Entry]:
    """The words that a belief or note was made from, where they say what it says."""
    found: list[Entry] = []
    level = [(entry, " ".join(leaves(entry.body)).casefold()) for entry in start]
    texts = {str((entry.body or {}).get("text", "")).casefold() for entry in start} - {""}
    while level:
        refs = [ref for entry, _ in level for ref in entry.refs]
        above = [entry for entry in map(memory.ledger.get, refs) if entry and entry.kind in SOURCES]
        level = [(entry, " ".join(leaves(entry.body)).casefold()) for entry in above]
        level = [(entry, said) for entry, said in level if any(text in said for text in texts)]
        found += [entry for entry, _ in level]
    return found


def _closure(memory: Memory, start: Iterable[Entry]) -> Iterator[Entry]:
    """The entries and all that was derived from them. A belief that replaces another one refers to it
    and is not derived from it; hand edits are the store's matter."""
    seen: set[str] = set()
    level = list(start)
    while level:
        yield from level
        seen |= {entry.id for entry in level}
        level = [
            entry
            for entry in memory.ledger.referring([entry.id for entry in level])
            if entry.id not in seen and entry.kind != "edit" and not _stays(entry, seen)
        ]


def _stays(entry: Entry, seen: Collection[str]) -> bool:
    """Whether it holds no words of the person, or replaces one of `seen`."""
    replaces = entry.kind == "belief" and (entry.body or {}).get("action") == "supersede"
    return entry.kind in KEPT or replaces and entry.refs[0] in seen


def _rare(memory: Memory, candidates: set[str], gone: Collection[str]) -> set[str]:
    """Those of the words that no other entry of the person holds."""
    for entry in memory.ledger.entries():
        if not candidates:
            break
        if entry.id not in gone and entry.kind not in (*DERIVED, "edit"):
            for text in leaves(entry.body):
                candidates = candidates - words(text)
    return candidates


def leaves(value: Any, told: bool = False) -> Iterator[str]:
    """The texts in a body or an event: what stands under one of SAID, not ids, kinds or dates. Arguments
    that are carried as one string are read."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "args" and isinstance(each, str):
                with contextlib.suppress(ValueError):  # a model may write anything there
                    each = json.loads(each)
            yield from leaves(each, told or key in SAID)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, told)
    elif told and isinstance(value, str) and value:
        yield value


def _file(home: Home) -> Path:
    return home.state / "forget.json"


def _told(needles: Needles, line: str) -> bool:
    """Whether a line of JSON says any of it, or is of one of the turns; one that cannot be read may be."""
    try:
        row = json.loads(line)
        said = needles.hit(line) or any(map(needles.hit, leaves(row, told=True)))
        return said or needles.meant(row)
    except (ValueError, AttributeError, RecursionError):
        return True


def _erase_files(home: Home, needles: Needles) -> None:
    """Notes and kept results go whole, histories, logs and records of calls lose the lines, saved prefixes go all:
    a model's state cannot be read line by line."""
    corpus = home.store / "private" / "corpus"
    for path in (*corpus.rglob("*"), *(home.state / "results").rglob("*")):
        if path.is_file() and needles.hit(path.read_text(errors="replace")):
            path.unlink()
    for path in (home.state / "chat.history", *home.logs.glob("*")):
        if path.is_file() and needles.hit(text := path.read_text(errors="replace")):
            lines = text.splitlines(keepends=True)
            write_atomic(path, "".join(line for line in lines if not needles.hit(line)))
    for path in (home.state / "replay").glob("*"):
        lines = path.read_text(errors="replace").splitlines(keepends=True)
        write_atomic(path, "".join(line for line in lines if not _told(needles, line)))
    for path in (home.cache / "prefix").glob("*"):
        path.unlink()
