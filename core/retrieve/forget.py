"""Forgetting: what is known of an entry, a belief or an item goes everywhere it went. Owns what follows from
what (by refs, then by words that nothing else holds), and the order of the steps.

Invariant: once `forget` has begun, a crash cannot leave half of it: state/forget.json names what is still to
be done, and `resume` does it. It holds the words themselves until then, and goes last."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.errors import ExoError
from exo.core.base.files import write_atomic
from exo.core.base.home import Home
from exo.core.ledger.entry import Entry

if TYPE_CHECKING:
    from exo.core.retrieve.memory import Memory

# made from what others said, so that they do not keep a word of it alive
DERIVED = ("action", "outcome", "approval", "retrieval", "decision", "proposal", "question")
SOURCES = ("utterance", "action", "outcome")  # what a belief or note may be made from
# no words of the person, or the matter of the store
KEPT = ("forget", "checkpoint", "device", "edit")
SAID: tuple[str, ...] = ("text", "title", "summary", "load_when", "tags", "reason")
SAID += ("url", "external", "args", "answers")
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


def words(text: str) -> set[str]:
    """The words of a text, small."""
    return set(_WORD.findall(text.casefold()))


def forget(memory: Memory, home: Home, id_: str, erase: Callable[[Needles], None]) -> list[str]:
    """Forget an event, a node or an item with all that follows from it; `erase` takes it out of the
    conversations. Returns the entries that went. Raises ExoError for an id that is unknown."""
    resume(memory, home, erase)
    memory.refresh()
    ids = memory.store.entry_of(id_)
    start = [entry for entry in map(memory.ledger.get, ids) if entry and not _successor(entry, ids)]
    if all(entry.id != id_ for entry in start):  # a node or an item: with what it was made of
        start += _sources(memory, start)
    if not start:
        do = "ids stand in what recall shows and in `exo ledger tail`"
        raise ExoError(f"forget {id_!r}", "nothing of that id is known", do)
    gone = {entry.id: entry for entry in _closure(memory, start)}
    own = (entry for entry in gone.values() if entry.kind not in DERIVED)
    spoken = {text for entry in own for text in leaves(entry.body)}
    rare = _rare(memory, set().union(*map(words, spoken)), gone)
    texts = tuple(sorted(text for text in spoken if len(words(text)) > 2 or words(text) & rare))
    derived = (e for e in memory.ledger.entries(kinds=DERIVED) if e.id not in gone and e.body)
    needles = Needles(texts, frozenset(rare), ())
    gone |= {e.id: e for e in derived if any(map(needles.hit, leaves(e.body)))}
    turns = {str((entry.body or {}).get("turn", "")) for entry in gone.values()} - {""}
    plan = {"ids": sorted(gone), "texts": texts, "words": sorted(rare), "turns": sorted(turns)}
    write_atomic(_file(home), json.dumps(plan))
    resume(memory, home, erase)
    return sorted(gone)


def resume(memory: Memory, home: Home, erase: Callable[[Needles], None]) -> None:
    """Do what a `forget` that was cut off has left; nothing when there is none."""
    try:
        plan = json.loads(_file(home).read_text())
    except FileNotFoundError:
        return
    needles = Needles(tuple(plan["texts"]), frozenset(plan["words"]), tuple(plan["turns"]))
    left = [id_ for id_ in plan["ids"] if (entry := memory.ledger.get(id_)) and entry.body]
    if left:
        memory.ledger.forget(left, "asked")
    memory.store.erase(plan["ids"], [*needles.texts, *needles.words])
    memory.refresh()
    memory.index.scrub()
    erase(needles)
    _erase_files(home, needles)
    _file(home).unlink()


def _sources(memory: Memory, start: Sequence[Entry]) -> Iterator[Entry]:
    """The words that a belief or note was made from, where they say what it says."""
    texts = {str((entry.body or {}).get("text", "")).casefold() for entry in start} - {""}
    level = list(start)
    while level:
        refs = [ref for entry in level for ref in entry.refs]
        above = [entry for entry in map(memory.ledger.get, refs) if entry and entry.kind in SOURCES]
        said = [" ".join(leaves(entry.body)).casefold() for entry in above]
        level = [e for e, text in zip(above, said, strict=True) if any(t in text for t in texts)]
        yield from level


def _closure(memory: Memory, start: Iterable[Entry]) -> Iterator[Entry]:
    """The entries and all that was derived from them. A belief that replaces another one refers to it
    and is not derived from it; hand edits are the store's matter."""
    seen: set[str] = set()
    level = list(start)
    while level:
        yield from level
        ids = [entry.id for entry in level]
        seen.update(ids)
        later = [e for e in memory.ledger.referring(ids) if e.id not in seen]
        level = [e for e in later if e.kind not in KEPT and not _successor(e, seen)]


def _successor(entry: Entry, seen: Collection[str]) -> bool:
    action = (entry.body or {}).get("action")
    return entry.kind == "belief" and action == "supersede" and entry.refs[0] in seen


def _rare(memory: Memory, candidates: set[str], gone: Collection[str]) -> set[str]:
    """Those of the words that no other entry of the person holds."""
    for entry in memory.ledger.entries():
        if entry.id not in gone and entry.kind not in (*DERIVED, "edit"):
            candidates = candidates.difference(*map(words, leaves(entry.body)))
    return candidates


def leaves(value: Any, told: bool = False) -> Iterator[str]:
    """The texts in a body or an event: what stands under one of SAID, not ids, kinds or dates. Arguments
    that are carried as one string are read."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "args" and isinstance(each, str):
                each = json.loads(each)
            yield from leaves(each, told or key in SAID)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, told)
    elif told and isinstance(value, str) and value:
        yield value


def _file(home: Home) -> Path:
    return home.state / "forget.json"


def _erase_files(home: Home, needles: Needles) -> None:
    """Notes and kept results go whole, histories and logs lose the lines, saved prefixes go all: a model's
    state cannot be read line by line."""
    corpus = home.store / "private" / "corpus"
    for path in (*corpus.rglob("*"), *(home.state / "results").rglob("*")):
        if path.is_file() and needles.hit(path.read_text(errors="replace")):
            path.unlink()
    for path in (home.state / "chat.history", *home.logs.glob("*")):
        if path.is_file() and needles.hit(text := path.read_text(errors="replace")):
            lines = text.splitlines(keepends=True)
            write_atomic(path, "".join(line for line in lines if not needles.hit(line)))
    for path in (home.cache / "prefix").glob("*"):
        path.unlink()
