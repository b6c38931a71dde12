"""The store of one person: what is known, as the other rooms use it. Owns how a sentence becomes an entry
(and so a node, a rule, an item), and forgetting in files and history; the views are the keeper's.

Invariant: nothing is known that the ledger does not say; the text of others never becomes a standing rule."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, HomeError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.core.retrieve.document import Document
from exo.core.store import words as rules
from exo.core.store.git import History
from exo.core.store.keeper import BATCH, Keeper, Progress, Rebuilt
from exo.core.store.lint import lint
from exo.core.store.nodes import LIMIT, BadNode, Node, node_of, parse, table_of
from exo.core.store.replay import FORMAT, Item, item_id, manifest_format, node_id, replay
from exo.core.store.views import Finding, sha

_ROUTE = re.compile(r"[-*]\s+(?P<when>.+?)\s*(?:->|→)\s*\[{0,2}(?P<id>[\w.:/-]+)\]{0,2}\s*")
_FILE_KINDS = {"belief", "rule", "edit", "state"}

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


class Store:
    """Usable by one thread; several processes may have the same store open."""

    def __init__(self, home: Home, ledger: Ledger, clock: Clock) -> None:
        """Make nothing yet. What is written makes the store where there is none."""
        self.folder, self._ledger, self._clock = home.store, ledger, clock
        self._keeper, self._history = Keeper(home.store, ledger, clock), History(home.store)
        self._known = False  # its format was looked at

    # ---- writing -------------------------------------------------------------------------------------

    def init(self, answers: dict[str, str]) -> None:
        """Make the store, or put more answers (name, languages, about, style, ask) into its pack."""
        with self._keeper.locked():
            begun = self._begun()
            self._begin(answers if not begun else {})
            draft = Draft(
                "state", {"action": "init", "store": self._manifest(), "answers": answers}
            )
            if begun and any(answers.values()):
                sample = Entry(
                    *("0" * 64, "", 0, 0, 0, "principal", "state"), (), "", "", "", None, draft.body
                )
                if replay([sample], self._keeper.views).files:
                    self._ledger.append(draft)
            self._keeper.sync()
            self.commit("init")

    def remember(
        self,
        text: str,
        *,
        channel: str = "typed",
        refs: Sequence[str] = (),
        supersedes: str = "",
        at: int = 0,
        **fields: Any,
    ) -> Node:
        """Make a belief of `text`; the same text again gives the node that is there. `fields` are keys of a
        node that win over what the text says of itself; `at` is when it was said (ms UTC). Raises ExoError
        for an empty text and for an unknown `supersedes`."""
        with self._writing():
            text = self._worded(text, "remember")
            query = "SELECT id FROM files WHERE norm = ? AND fault = '' AND id <> ''"
            same = self._rows(query, rules.norm(text))
            if same and not supersedes and (found := self.node(same[0][0])):
                return found
            day = self._clock.local(at or None).date().isoformat()
            guessed = rules.guess(text) | {"valid_from": day, "sources": list(refs)}
            node = node_of(guessed | fields, text)
            behind = tuple(refs)
            if supersedes:
                old = self._stem(supersedes)
                node = replace(node, links=(*node.links, ("supersedes", old)))
                behind = (*self.entry_of(supersedes)[:1], *refs)
            table = {key: value for key, value in table_of(node).items() if key != "id"}
            body = {
                "node": table,
                "text": text,
                "channel": channel,
                "trust": self._trust(channel, refs, node),
            }
            body["action"] = "supersede" if supersedes else "add"
            entry = self._append(Draft("belief", body, tuple(dict.fromkeys(behind)), ts=at))
            return self._made(node_id(node.type, entry.id))

    def rule(self, text: str, *, channel: str = "typed", refs: Sequence[str] = ()) -> Node:
        """Make a standing rule in the person's own words: it is in the pack of the next request. From a
        channel that is not the person's it becomes a node and nothing more."""
        with self._writing():
            text = self._worded(text, "keep a rule")
            for (id_,) in self._rows(
                "SELECT id FROM files WHERE norm = ? AND fault = ''", rules.norm(text)
            ):
                if id_.startswith("rule-") and (found := self.node(id_)):
                    return found
            entry = self._append(Draft("rule", {"text": text, "channel": channel}, tuple(refs)))
            return self._made(node_id("rule", entry.id))

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
        with self._writing():
            node = {"id": self._stem(id_), "valid_until": self._clock.local().date().isoformat()}
            self._append(
                Draft("belief", {"action": "retire", "node": node}, tuple(self.entry_of(id_)[:1]))
            )

    def link(self, id_: str, type_: str, to: str) -> None:
        """Link a node to another. Raises ExoError when it is unknown."""
        with self._writing():
            node = {"id": self._stem(id_), "links": [{"type": type_, "to": to}]}
            self._append(
                Draft("belief", {"action": "link", "node": node}, tuple(self.entry_of(id_)[:1]))
            )

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
        counts, known = counts or Counts(), rules.trust_of(source)
        rows = iter(items)
        with self._writing():
            while batch := list(islice(rows, BATCH)):
                drafts: dict[str, Draft] = {}
                hashes: set[str] = set()
                for each in batch:
                    counts.seen += 1
                    draft, hash_ = _item_draft(each, source, known)
                    old = self.item(id_ := item_id(source, each.external))
                    if not each.external or not (each.title or each.text or each.url):
                        counts.skipped += 1
                    elif id_ in drafts or hash_ in hashes or self._kept(old, hash_):
                        counts.duplicate += 1
                    else:
                        behind = tuple(old.entries.split()[-1:]) if old else ()
                        drafts[id_] = replace(draft, refs=behind)
                        hashes.add(hash_)
                        counts.new += 1
                if drafts:
                    self._ledger.append(*drafts.values())
                    self._synced()
                if progress is not None:
                    progress(counts.seen)
            if counts.new:
                self._append(Draft("import", {"source": source, "path": path, **vars(counts)}))
        return counts

    def review(self, id_: str, review: str) -> Item:
        """Mark an item as kept or dropped; recall does not find what is dropped. Raises ExoError for what is
        no item."""
        with self._writing():
            old = self.item(id_)
            if old is None or old.kind != "item":
                why = "there is no item of that id" if old is None else "a note is no item"
                raise ExoError(f"review {id_}", why, "see `exo items list`, `exo forget`")
            body = {k: v for k, v in vars(old).items() if k not in ("id", "kind", "ts", "entries")}
            body |= {"tags": old.tags.split(), "review": review}
            self._append(Draft("item", body, tuple(old.entries.split()[-1:])))
            return replace(old, review=review)

    # ---- reading -------------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """Every node that parses and whose id is its own, also those that hold no longer; by id."""
        query = (
            "SELECT path, trust, ts, min(fault) FROM files WHERE id <> '' AND sha <> ''"
            " GROUP BY id HAVING count(*) = 1 ORDER BY id"
        )
        return [node for row in self._rows(query) if (node := self._node(*row[:3]))]

    def node(self, id_: str) -> Node | None:
        rows = self._rows("SELECT path, trust, ts FROM files WHERE id = ? AND sha <> ''", id_)
        return self._node(*rows[0]) if len(rows) == 1 else None

    def items(self) -> Iterator[Item]:
        """Items and notes, by id; read a few at a time."""
        return self._keeper.views.items() if self._begun() else iter(())

    def item(self, id_: str) -> Item | None:
        return self._keeper.views.item(id_) if self._begun() else None

    def revision(self) -> int:
        """A number that rises with every change of a node or item."""
        return self._keeper.views.revision() if self._begun() else 0

    def documents(self, since: int = 0) -> Iterator[Document]:
        """What recall indexes: all, or what changed since `revision()` was `since` (one that is higher than
        today's is of another store: all)."""
        if not 0 < since <= self.revision():
            yield from map(_node_document, self.nodes())
            yield from (_item_document(item) for item in self.items() if item.review != DROPPED)
            return
        for (id_,) in self._rows("SELECT id FROM changes WHERE rev > ? ORDER BY rev", since):
            if node := self.node(id_):
                yield _node_document(node)
            elif (item := self.item(id_)) and item.review != DROPPED:
                yield _item_document(item)

    def removed(self, since: int) -> list[str]:
        """Ids that changed since then and are no longer to be found."""
        ids = [row[0] for row in self._rows("SELECT id FROM changes WHERE rev > ?", since)]
        items = ((id_, self.item(id_)) for id_ in ids if self.node(id_) is None)
        return [id_ for id_, item in items if item is None or item.review == DROPPED]

    def pack(self) -> str:
        """PACK.md as a request carries it: without comments and empty sections."""
        text = re.sub(r"<!--.*?-->", "", self._page("PACK.md"), flags=re.S)
        parts = re.split(r"^(?=#)", text, flags=re.M)
        return "\n\n".join(
            part.strip() for part in parts if part.strip().partition("\n")[2].strip()
        )

    def triggers(self) -> list[tuple[str, str]]:
        """The load rules of INDEX.md: (what is talked about, node id)."""
        found = [
            match
            for line in self._page("INDEX.md").splitlines()
            if (match := _ROUTE.fullmatch(line.strip()))
        ]
        return [
            (when.strip(), each["id"])
            for each in found
            for when in each["when"].split(";")
            if when.strip()
        ]

    def lint(self) -> tuple[list[Finding], list[Finding]]:
        """What is wrong and what may be, in the curated files: (errors, warnings)."""
        return lint(self._keeper.views, lambda id_: self._ledger.get(id_) is not None)

    def entry_of(self, id_: str) -> list[str]:
        """Ids of the entries behind an entry, node or item, the one it was born by first; [] when unknown."""
        rows = self._rows(
            "SELECT entries FROM files WHERE id = ? UNION SELECT entries FROM items WHERE id = ?",
            id_,
            id_,
        )
        if rows:
            return [each for row in rows for each in str(row[0]).split()]
        entry = self._ledger.get(id_)
        return [entry.id] if entry else []

    # ---- keeping ---------------------------------------------------------------------------------------

    def sync(self) -> set[str]:
        """Record hand edits, apply entries of any process. Returns ids of nodes and items, and paths of
        pages, that changed; cheap when nothing did. Raises StorageError, HomeError."""
        with self._keeper.locked():
            if not self._begun():
                return set()
            self._begin({})
            before = self.revision()
            self._synced()
            return {row[0] for row in self._rows("SELECT id FROM changes WHERE rev > ?", before)}

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make every view again from the ledger, after hand edits were recorded."""
        with self._keeper.locked():
            self._begin({})
            done = self._keeper.rebuild(progress)
            self.commit("rebuild")
            return done

    def commit(self, what: str = "") -> bool:
        """Commit the curated files to the store's own history; a message names ids and numbers alone."""
        views = self._keeper.views
        since, now = views.meta("committed") or 0, views.revision()
        if since == now and self._history.git.exists():
            return False
        with self._keeper.locked():
            ids = [
                row[0]
                for row in self._rows(
                    "SELECT id FROM changes WHERE rev > ? AND id NOT LIKE 'item-%' LIMIT 9", since
                )
            ]
            named = [id_ for id_ in ids if re.fullmatch(r"[a-z]+-[0-9a-f]{12}", id_)]
            message = f"{what or 'change'}: {now - since} changes {' '.join(named)}".strip()
            done = self._history.commit(views, message, self._clock.now_ms())
            with views.db.transaction() as link:
                views.remember(link, {"committed": now})
            return done

    def erase(self, entry_ids: Collection[str], words: Collection[str]) -> None:
        """After Ledger.forget: make views and history without those entries, and without lines that hold
        their `words` (texts or single words). Raises StorageError; it can be called again."""
        with self._keeper.locked():
            if not self._begun():
                return
            gone = set(entry_ids)
            hand = self._keeper.record()
            while more := [
                e.id
                for e in self._ledger.referring(gone)
                if e.kind == "edit" and e.body is not None
            ]:
                self._ledger.forget(more, "what was forgotten stood in it")
                gone.update(more)
            entries = [entry for id_ in gone if (entry := self._ledger.get(id_))]
            derived = {e.id for e in entries if e.kind == "edit" and gone & set(e.refs)}
            behind = self._rows("SELECT path, entries FROM files WHERE sha <> ''")
            paths = {
                path
                for path, ids in behind
                if path.startswith("nodes/") and ids.split()[:1] and ids.split()[0] in gone
            }
            dropped = self._dropper(gone, [text for text in words if len(text.split()) > 1])
            kept = {}
            for path, ids in behind:
                if (path in hand or derived & set(ids.split())) and not path.startswith("nodes/"):
                    rows = (self.folder / path).read_bytes().splitlines(keepends=True)
                    kept[path] = b"".join(
                        row for row in rows if not dropped(row.decode(errors="replace"))
                    )
            self._keeper.rebuild(kept=kept, told={path: {sha(data)} for path, data in hand.items()})
            self._keeper.views.db.scrub()
            single = {each for text in words for each in re.findall(r"\w{3,}", text.casefold())}
            for text in self._texts():
                single = {each for each in single if each not in text}
            dropped = self._dropper(
                gone, [*(text for text in words if len(text.split()) > 1), *single]
            )
            if {entry.kind for entry in entries} & _FILE_KINDS or single:
                self._history.rewrite(paths, dropped)
                self._scrub_copy(paths, dropped)
            self.commit("forget")

    def close(self) -> None:
        """Commit what changed and let go of the files."""
        if self._begun() and self._known:
            self.commit()
        self._keeper.close()

    # ---- inside ----------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._keeper.locked():
            self._begin({})
            self._synced()
            yield

    def _begun(self) -> bool:
        return (
            self._known
            or any((self.folder / name).exists() for name in ("STORE.toml", "PACK.md", "nodes"))
            or (next(self._ledger.entries(kinds=("state",)), None) is not None)
        )

    def _begin(self, answers: dict[str, str]) -> None:
        """Look at the format once; make the store where there is none, bring an older one to this format.
        Raises HomeError for a newer one."""
        if self._known:
            return
        manifest = self.folder / "STORE.toml"
        old = manifest.read_bytes() if manifest.exists() else b""
        if (found := manifest_format(old) if old else 0) > FORMAT:
            why = f"it has format {found}, this program knows {FORMAT}"
            raise HomeError(f"open the store {self.folder}", why, "use the newer Exo that wrote it")
        begun = any(
            e.body and e.body.get("action") == "init"
            for e in self._ledger.entries(kinds=("state",))
        )
        if not begun:
            drafts = [
                Draft("state", {"action": "init", "store": self._manifest(), "answers": answers})
            ]
            if found == 1 or any(
                (self.folder / name).exists() for name in ("PACK.md", "INDEX.md", "nodes")
            ):
                drafts += self._older()
            self._ledger.append(*drafts)
        self._known = True
        if found == 1 or not begun:
            self._keeper.rebuild()

    def _older(self) -> list[Draft]:
        """The files of a store of format 1 as edits; a copy of them is kept in private/format-1."""
        views, copy = self._keeper.views, self.folder / "private" / "format-1"
        found = {path: data for path, data in views.by_hand().items() if data is not None}
        for name in ("STORE.toml", *found):
            if (source := self.folder / name).is_file() and not (copy / name).exists():
                make_folder((copy / name).parent)
                shutil.copy2(source, copy / name)
        return [self._keeper.draft(path, data) for path, data in sorted(found.items())]

    def _manifest(self) -> dict[str, Any]:
        device = next(self._ledger.entries(kinds=("device",)), None)
        root = str((device.body or {}).get("root", "")) if device else ""
        created = self._clock.local().isoformat(timespec="seconds")
        return {
            "kind": "principal",
            "id": sha(root.encode())[:12],
            "format": FORMAT,
            "created": created,
            "root": root,
        }

    def _synced(self) -> None:
        if gone := self._keeper.sync():
            self.erase(gone, ())

    def _append(self, draft: Draft) -> Entry:
        entry = self._ledger.append(draft)[0]
        self._synced()
        return entry

    def _made(self, id_: str) -> Node:
        node = self.node(id_)
        if node is None:
            faults = "; ".join(
                each.what for each in self._keeper.views.faults() if id_ in each.path
            )
            raise HomeError(
                f"write node {id_}", faults or "its file is not there", "run `exo store lint`"
            )
        return node

    def _worded(self, text: str, verb: str) -> str:
        text = rules.clean(text)
        if not text or len(text.encode()) > LIMIT // 2:
            why = "there is no text" if not text else "the text is too long"
            raise ExoError(verb, why, "say it in one or a few sentences")
        return text

    def _stem(self, id_: str) -> str:
        rows = self._rows("SELECT stem FROM files WHERE id = ? AND sha <> ''", id_)
        if not rows:
            raise ExoError(
                f"find node {id_}",
                "there is none of that id",
                "see `exo store show`",
                code="unknown_node",
            )
        return str(rows[0][0])

    def _trust(self, channel: str, refs: Sequence[str], node: Node) -> str:
        """The worst of the channel and of what the belief was made from."""
        trusts = [rules.trust_of(channel)]
        for entry in filter(None, map(self._ledger.get, refs)):
            body = entry.body or {}
            own = "self" if entry.kind in ("edit", "answer", "verdict", "rule") else "untrusted"
            trusts.append(
                str(
                    body.get("trust")
                    or (rules.trust_of(body["channel"]) if "channel" in body else own)
                )
            )
        for id_ in (*node.sources, *(to for kind, to in node.links if kind == "derived-from")):
            if source := self.node(id_) or self.item(id_):
                trusts.append(source.trust)
        return rules.worst(*trusts)

    def _kept(self, old: Item | None, hash_: str) -> bool:
        query = "SELECT 1 FROM items WHERE hash = ? LIMIT 1"
        return old.hash == hash_ if old else bool(self._rows(query, hash_))

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._keeper.views.db.rows(query, *values) if self._begun() else []

    def _node(self, path: str, trust: str, ts: int) -> Node | None:
        try:
            return replace(parse(path, (self.folder / path).read_bytes()), trust=trust, ts=ts)
        except (BadNode, OSError):
            return None

    def _page(self, name: str) -> str:
        try:
            return (
                (self.folder / name).read_bytes()[:LIMIT].decode(errors="replace").replace("\0", "")
            )
        except OSError:
            return ""

    def _texts(self) -> Iterator[str]:
        for path, _ in self._keeper.views.walk():
            yield (self.folder / path).read_bytes().decode(errors="replace").casefold()

    def _dropper(self, gone: Collection[str], texts: Collection[str]) -> Callable[[str], bool]:
        """Whether a line holds one of the texts, or the mark of a node that is gone."""
        marks = [f"-{id_[:12]}" for id_ in gone] + [
            rules.one_line(text, LIMIT).casefold() for text in texts
        ]
        return lambda line: any(
            mark in rules.one_line(line, LIMIT).casefold() for mark in marks if mark
        )

    def _scrub_copy(self, paths: Collection[str], dropped: Callable[[str], bool]) -> None:
        copy = self.folder / "private" / "format-1"
        for path in [path for path in copy.rglob("*") if path.is_file()]:
            rows = path.read_text(errors="replace").splitlines(keepends=True)
            left = (
                []
                if path.relative_to(copy).as_posix() in paths
                else [row for row in rows if not dropped(row)]
            )
            if left != rows:
                write_atomic(path, "".join(left))


def _item_draft(each: NewItem, source: str, trust: str) -> tuple[Draft, str]:
    url, text = rules.same_url(each.url) if each.url else "", rules.clean(each.text)
    title = rules.one_line(rules.clean(each.title) or text or url, 200)
    # a bookmark is its address; two texts about one address are two
    hash_ = rules.norm(f"{title}\n{text}" if text or not url else url)
    body = {"source": source, "external": each.external, "url": url, "title": title, "text": text}
    body |= {"created": each.created, "tier": each.tier, "review": each.review, "hash": hash_}
    tags = [rules.one_line(tag, 60).replace(" ", "-") for tag in each.tags]
    return Draft(
        "item", {**body, "tags": tags, "trust": rules.worst(trust, each.trust or trust)}
    ), hash_


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
