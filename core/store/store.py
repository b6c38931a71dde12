"""The store of one person: what is known, as the other rooms use it. Owns how a sentence becomes an entry
(and so a node, a rule, an item) and how they are read; the views and forgetting are the keeper's.

Invariant: nothing is known that the ledger does not say; the text of others never becomes a standing rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.ledger.entry import Draft, Entry
from exo.core.retrieve.document import Document
from exo.core.store import words as rules
from exo.core.store.keeper import BATCH, Keeper
from exo.core.store.nodes import LIMIT, Node, node_of, parse, table_of, text_of
from exo.core.store.replay import Item, answered, item_id, node_id

_ROUTE = re.compile(
    r"^[ \t]*[-*]\s+(?P<when>.+?)\s*(?:->|→)\s*\[{0,2}(?P<id>[\w.:/-]+)\]{0,2}\s*$", re.M
)

DROPPED = "dropped"  # the review of an item that is not wanted


@dataclass(frozen=True)
class NewItem:
    """Something to be added: `external` names it within its source for ever (a path, an address)."""

    external: str
    title: str
    text: str = ""
    url: str = ""
    tags: tuple[str, ...] = ()
    created: str = ""
    tier: str = "curated"
    review: str = "new"
    trust: str = ""


@dataclass
class Counts:
    """What became of the items of an import."""

    seen: int = 0
    new: int = 0
    duplicate: int = 0
    skipped: int = 0
    failed: int = 0


class Store(Keeper):
    """Usable by one thread; several processes may have the same store open."""

    # ---- writing -------------------------------------------------------------------------------------

    def init(self, answers: dict[str, str]) -> None:
        """Make the store, or put more answers (name, languages, about, style, ask) into its pack."""
        with self.locked():
            self._begin(answers)
            self._synced()
            lines = {line for _, _, line in answered(answers)}
            if not lines <= set(self._page("PACK.md").splitlines()):
                self._append(self._first(answers))
            self.commit("init")

    def remember(
        self,
        text: str,
        *,
        channel: str = "typed",
        refs: Sequence[str] = (),
        supersedes: str = "",
        **fields: Any,
    ) -> Node:
        """Make a belief of `text`; the same text again gives the node that is there. `fields` are keys of a
        node that win over what the text says of itself. Raises ExoError for an empty text and for an unknown
        `supersedes`."""
        with self._writing(look=bool(supersedes)):
            text = self._worded(text, "remember")
            if not supersedes and (same := self._same(text)):
                return same
            day = self._clock.local().date().isoformat()
            guessed = rules.guess(text) | {"valid_from": day, "sources": list(refs)}
            node, behind = node_of(guessed | fields, text), tuple(refs)
            if supersedes:
                node = replace(node, links=(*node.links, ("supersedes", self._stem(supersedes))))
                behind = (*self.entry_of(supersedes)[:1], *refs)
            table = table_of(node)
            del table["id"]
            body = {
                "node": table,
                "text": text,
                "channel": channel,
                "trust": self._trust(channel, refs, node),
                "action": "supersede" if supersedes else "add",
            }
            entry = self._append(Draft("belief", body, tuple(dict.fromkeys(behind))))
            return self._must(node_id(node.type, entry.id))

    def rule(self, text: str, *, channel: str = "typed", refs: Sequence[str] = ()) -> Node:
        """Make a standing rule in the person's own words: it is in the pack of the next request. From a
        channel that is not the person's it becomes a node and nothing more. Raises ExoError where the pack
        cannot be written, BadNode where it does not parse."""
        with self._writing():
            text = self._worded(text, "keep a rule")
            if (pack := self.views.read("PACK.md")) is None:
                what = f"write the rule into {self.folder / 'PACK.md'}"
                raise ExoError(what, "something else lies in its place", "move it, then try again")
            text_of("PACK.md", pack)
            if same := self._same(text, "rule-"):
                return same
            entry = self._append(Draft("rule", {"text": text, "channel": channel}, tuple(refs)))
            return self._must(node_id("rule", entry.id))

    def note(self, text: str, *, channel: str, refs: Sequence[str] = ()) -> Item:
        """Keep a note: found by recall, no belief."""
        with self._writing():
            body = {"text": self._worded(text, "keep a note"), "channel": channel}
            entry = self._append(Draft("note", body, tuple(refs)))
            item = self.item(item_id("note", entry.id))
            assert item is not None
            return item

    def retire(self, id_: str) -> None:
        """Let a node hold no longer from today on; it stays to be read. Raises ExoError when unknown."""
        self._change("retire", id_, valid_until=self._clock.local().date().isoformat())

    def link(self, id_: str, type_: str, to: str) -> None:
        """Link a node to another. Raises ExoError when it is unknown."""
        self._change("link", id_, links=[{"type": type_, "to": to}])

    def _change(self, action: str, id_: str, **node: Any) -> None:
        with self._writing(look=True):
            body = {"action": action, "node": {"id": self._stem(id_), **node}}
            self._append(Draft("belief", body, tuple(self.entry_of(id_)[:1])))

    def add_items(
        self,
        items: Iterable[NewItem],
        source: str,
        path: str,
        progress: Callable[[int], None] | None = None,
        counts: Counts | None = None,
    ) -> Counts:
        """Add what is new, in batches of one commit each; what is there already, under its id or with the
        same content, is counted and left. `progress` gets the number seen; to `counts` the maker of `items`
        may add what it passes by."""
        counts, rows = counts or Counts(), iter(items)
        with self._writing():
            while batch := list(islice(rows, BATCH)):
                drafts: dict[str, Draft] = {}
                told = Counter(self._sorted(each, source, drafts) for each in batch)
                for what, number in told.items():
                    setattr(counts, what, getattr(counts, what) + number)
                counts.seen += len(batch)
                if drafts:
                    self._ledger.append(*drafts.values())
                    self._synced(look=False)
                if progress is not None:
                    progress(counts.seen)
            if counts.new:
                self._append(Draft("import", {"source": source, "path": path, **vars(counts)}))
        return counts

    def _sorted(self, each: NewItem, source: str, drafts: dict[str, Draft]) -> str:
        """Put what is new into `drafts`, under its id; returns what it was counted as."""
        if not each.external or not (each.title or each.text or each.url):
            return "skipped"
        body, id_ = _item_body(each, source), item_id(source, each.external)
        old, hash_ = self.item(id_), body["hash"]
        same = hash_ in {draft.body["hash"] for draft in drafts.values()}
        query = "SELECT 1 FROM items WHERE hash = ? LIMIT 1"
        if id_ in drafts or same or (old.hash == hash_ if old else self._rows(query, hash_)):
            return "duplicate"
        drafts[id_] = Draft("item", body, tuple(old.entries.split()[-1:]) if old else ())
        return "new"

    def review(self, id_: str, review: str) -> Item:
        """Mark an item as kept or dropped; recall does not find what is dropped. Raises ExoError for what is
        no item."""
        with self._writing():
            old = self.item(id_)
            if old is None or old.kind != "item":
                why = "there is no item of that id, or it is a note"
                raise ExoError(f"review {id_}", why, "see `exo items list`, `exo forget`")
            body = {k: v for k, v in vars(old).items() if k not in ("id", "kind", "ts", "entries")}
            body |= {"tags": old.tags.split(), "review": review}
            self._append(Draft("item", body, tuple(old.entries.split()[-1:])))
            return replace(old, review=review)

    # ---- reading -------------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """Every node that parses and whose id is its own (of several the file that is named so), also those
        that hold no longer; by id."""
        return self._nodes("")

    def node(self, id_: str) -> Node | None:
        return next(iter(self._nodes("AND id = ?", id_)), None)

    def items(self) -> Iterator[Item]:
        """Items and notes, by id; read a few at a time."""
        return self.views.select("ORDER BY id")

    def item(self, id_: str) -> Item | None:
        return self.views.item(id_)

    def documents(self, since: int = 0) -> Iterator[Document]:
        """What recall indexes: all, or what changed since `revision()` was `since` (one that is higher than
        today's is of another store: all)."""
        found: Iterable[Node | Item | None] = (
            self.node(id_) or self.item(id_) for id_ in self._changed(since)
        )
        if not 0 < since <= self.revision():
            found = chain(self.nodes(), self.items())
        for each in found:
            if isinstance(each, Node):
                yield _node_document(each)
            elif each is not None and each.review != DROPPED:
                yield _item_document(each)

    def removed(self, since: int) -> list[str]:
        """Ids that changed since then and are no longer to be found."""
        there = {document.id for document in self.documents(since)}
        return [id_ for id_ in self._changed(since) if id_ not in there]

    def pack(self) -> str:
        """PACK.md as a request carries it: without comments and empty sections."""
        text = re.sub(r"<!--.*?-->", "", self._page("PACK.md"), flags=re.S)
        parts = (part.strip() for part in re.split(r"^(?=#)", text, flags=re.M))
        return "\n\n".join(part for part in parts if "\n" in part)

    def triggers(self) -> list[tuple[str, str]]:
        """The load rules of INDEX.md: (what is talked about, node id)."""
        return [
            (when.strip(), found["id"])
            for found in _ROUTE.finditer(self._page("INDEX.md"))
            for when in found["when"].split(";")
            if when.strip()
        ]

    def entry_of(self, id_: str) -> list[str]:
        """Ids of the entries behind an entry, node or item, the one it was born by first; [] when unknown."""
        if id_ and (ids := self.views.entries(id_)):
            return ids
        entry = self._ledger.get(id_)
        return [entry.id] if entry else []

    # ---- inside ----------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, look: bool = False) -> Iterator[None]:
        """Ready to append; with `look` after hand edits. Without, one that is in the way is met by the write."""
        with self.locked():
            self._begin()
            self._synced(look)
            yield

    def _append(self, draft: Draft) -> Entry:
        entry = self._ledger.append(draft)[0]
        self._synced(look=False)
        return entry

    def _worded(self, text: str, verb: str) -> str:
        text = rules.clean(text)
        if not text or len(text.encode()) > LIMIT // 2:
            why = "there is no text" if not text else "the text is too long"
            raise ExoError(verb, why, "say it in one or a few sentences")
        return text

    def _must(self, id_: str) -> Node:
        if node := self.node(id_):
            return node
        raise ExoError(
            f"find node {id_}", "none has that id", "see `exo store show`", code="unknown_node"
        )

    def _stem(self, id_: str) -> str:
        """The name of a node's file. Raises ExoError when there is no such node."""
        self._must(id_)
        query = "SELECT stem FROM files WHERE id = ? ORDER BY stem <> id"
        return str(self._rows(query, id_)[0][0])

    def _trust(self, channel: str, refs: Sequence[str], node: Node) -> str:
        """The worst of the channel and of what the belief was made from."""
        trusts = [rules.trust_of(channel)]
        for entry in filter(None, map(self._ledger.get, refs)):
            own = "hand" if entry.kind in ("edit", "answer", "verdict") else "unknown"
            body = {"channel": own, **(entry.body or {})}
            trusts.append(str(body.get("trust") or rules.trust_of(body["channel"])))
        for id_ in (*node.sources, *(to for kind, to in node.links if kind == "derived-from")):
            source = self.node(id_) or self.item(id_)
            trusts += [source.trust] if source else []
        return rules.worst(*trusts)

    def _same(self, text: str, start: str = "") -> Node | None:
        """The node that says so, and whose id begins so."""
        query = "SELECT id FROM files WHERE norm = ? AND id LIKE ?"
        ids = self._rows(query, rules.norm(text), f"{start}%")
        return next(filter(None, (self.node(id_) for (id_,) in ids)), None)

    def _nodes(self, where: str, *values: object) -> list[Node]:
        once = "GROUP BY id HAVING count(*) = 1 OR sum(stem = id) = 1 ORDER BY id"
        query = "SELECT path, data, trust, ts, max(stem = id) FROM files WHERE id <> ''"
        rows = self._rows(f"{query} {where} {once}", *values)
        return [replace(parse(path, data), trust=trust, ts=ts) for path, data, trust, ts, _ in rows]


def _item_body(each: NewItem, source: str) -> dict[str, Any]:
    url, text, own = rules.same_url(each.url), rules.clean(each.text), rules.trust_of(source)
    title = rules.one_line(rules.clean(each.title) or text or url, 200)
    body = {
        "source": source,
        "external": each.external,
        "url": url,
        "title": title,
        "text": text,
        "created": each.created,
        "tier": each.tier,
        "review": each.review,
        "tags": [rules.one_line(tag, 60).replace(" ", "-") for tag in each.tags],
        "trust": rules.worst(own, each.trust or own),
    }
    # a bookmark is its address; two texts about one address are two
    return body | {"hash": rules.norm(f"{title}\n{text}" if text or not url else url)}


def _node_document(node: Node) -> Document:
    keys = (node.title, node.summary, " ".join(node.load_when), " ".join(node.tags), node.text)
    dates = (node.trust, node.valid_from, node.valid_until, node.ts)
    return Document(node.id, "node", *keys, *dates, domain=node.domain, links=node.links)


def _item_document(item: Item) -> Document:
    told = {
        "tags": item.tags,
        "body": item.text,
        "trust": item.trust,
        "ts": rules.milliseconds(item.created) or item.ts,
        "url": item.url,
    }
    return Document(item.id, item.kind, item.title, **told)  # type: ignore[arg-type]
