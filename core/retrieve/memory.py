"""What the person is remembered by, behind one object: record, store, index and recall together. Owns the
order in which they are written: the ledger first, then the views, then the index, so that what a crash
cut off is made again from what stands before it. For one thread.

Invariant: what was written is found by the next call; nothing that was forgotten is found by any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.engine.outbox import Row
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.core.ledger.mirror import Mirror
from exo.core.retrieve.document import TRUST, Embedder
from exo.core.retrieve.index import Index
from exo.core.retrieve.recall import Recall, Recalled
from exo.core.store.nodes import Node
from exo.core.store.store import Store
from exo.core.substrate.artifacts import Artifacts

_TYPES = {"k": int, "budget": int, "refs": list}  # of arguments; the others are texts
CHECKED = 500  # entries between two checkpoints
VERBS = ("recall", "remember", "rule", "why", "status")  # of memory.query; forget is the engine's


class Memory:
    """`embedder` None: keywords alone."""

    def __init__(self, home: Home, clock: Clock, embedder: Embedder | None = None) -> None:
        """Opens the record, making it where there is none. Raises StorageError, HomeError."""
        self.ledger = Ledger(home, clock)
        self.store = Store(home, self.ledger, clock)
        self.index = Index(home.store / "private" / "index.sqlite")
        self.mirror = Mirror(self.ledger)
        self.artifacts = Artifacts(self.ledger, self.mirror.over)
        self.embedder = embedder
        self._recall = Recall(self.index, clock)

    def check(self) -> str:
        """Verify what came since the last checkpoint and make one where much did; "" when all is well, else
        what a person should know."""
        if self.ledger.notice:
            return self.ledger.notice
        fault = self.ledger.verify(full=False).fault
        if fault is not None:
            what = f"the record breaks at entry {fault.seq} of {fault.author[:12]}: {fault.what}"
            return f"{what}; run `exo ledger verify`, restore a backup"
        if not any(entry.kind == "checkpoint" for entry in self.ledger.newest(CHECKED)):
            self.ledger.checkpoint()
        return ""

    def close(self) -> None:
        self.index.close()
        self.store.close()
        self.ledger.close()

    def refresh(self) -> None:
        """Take in what any process or hand has written since."""
        self.store.sync()
        with self.index.mending():
            self._take_in()
            return
        self._take_in()

    def _take_in(self) -> None:
        since = self.index.revision
        now = self.store.revision()
        if since == now:
            return
        if not self.store.first < since < now:  # it is new, or of other tables
            since = 0
            known = {each.id for each in self.store.documents()}
            self.index.remove(self.index.ids() - known)
        self.index.put(self.store.documents(since))
        self.index.remove(self.store.removed(since))
        self.index.revision = now

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows of the outbox into the record."""
        if any(entry.kind == "note" for entry in self.mirror.write(rows)):
            if not self.store.revision():
                self.store.init({})
            self.refresh()

    def pack(self) -> str:
        """What every request carries, with the rules that another process has kept meanwhile."""
        self.refresh()
        return self.store.pack()

    def recall(self, query: str, at: str = "", **asked: Any) -> Recalled:
        """What is known to `query` (`asked`: k, min_trust, budget of `Recall.search`); the record notes
        which ids were found, not what was asked."""
        self.refresh()
        if not self.store.revision():
            return Recalled()
        more = {"embedder": self.embedder, "triggers": self.store.triggers(), "at": at}
        found = self._recall.search(query, **asked | more)
        if not self.index.revision:  # it was damaged and begun again
            return self.recall(query, at, **asked)
        body = {
            "query_hash": self.ledger.blind(query),
            "ids": [hit.id for hit in found.hits],
            "abstained": found.abstain,
            "tokens": found.tokens,
            "at": at,
        }
        self.ledger.append(Draft("retrieval", body), durable=False)
        return found

    def remember(
        self, text: str, channel: str = "typed", refs: Sequence[str] = (), supersedes: str = ""
    ) -> dict[str, Any]:
        """Keep a belief in the person's words; one that is there already is not written twice."""
        more = {"channel": channel, "refs": refs, "supersedes": supersedes}
        return self._keep(self.store.remember, text, **more)

    def rule(self, text: str, channel: str = "typed", refs: Sequence[str] = ()) -> dict[str, Any]:
        """Keep a standing rule; it is in the pack of the next turn."""
        return self._keep(self.store.rule, text, channel=channel, refs=refs)

    def _keep(self, how: Callable[..., Node], text: str, **more: Any) -> dict[str, Any]:
        if not text.strip():
            raise ExoError(how.__name__, "the text is empty", "say it in your own words")
        node = how(text, **more)
        self.refresh()
        return {"id": node.id, "title": node.title, "type": node.type}

    def why(self, id: str) -> dict[str, Any]:
        """A belief, an item or an entry, and the entries it stands on."""
        self.refresh()
        ids = self.store.entry_of(id)
        entries = [entry for entry in map(self.ledger.get, ids) if entry is not None]
        if not entries:
            do = "ids stand in what recall shows and in `exo ledger tail`"
            raise ExoError(f"say why {id!r}", "nothing of that id is known", do)
        known = self.store.node(id) or self.store.item(id)
        said = [each for entry in entries for each in map(self.ledger.get, entry.refs) if each]
        seen = {entry.id: entry for entry in [*entries, *said]}
        told = {name: getattr(known, name, "") for name in ("title", "text", "trust")}
        return {"id": id, **told, "evidence": [_evidence(entry) for entry in seen.values()]}

    def status(self) -> dict[str, Any]:
        """How much is known, and how much of it the embedding model has still to read."""
        self.refresh()
        return {"documents": self.index.count(), "pending": self.index.pending()}

    def query(self, verb: str, args: dict[str, Any]) -> dict[str, Any]:
        """Answer memory.query. Raises ExoError for a verb or arguments that are none."""
        if verb not in VERBS:
            raise ExoError(f"memory.query {verb!r}", f"there are {', '.join(VERBS)} and forget")
        try:
            wrong = [key for key, each in args.items() if type(each) is not _TYPES.get(key, str)]
            if wrong or args.get("min_trust", "") not in ("", *TRUST):
                raise TypeError(f"{', '.join(wrong) or 'min_trust'} cannot be that")
            if verb == "recall":
                return shown(self.recall(args.pop("query"), **args))
            answer: dict[str, Any] = getattr(self, verb)(**args)
            return answer
        except (TypeError, KeyError) as error:
            raise ExoError(f"memory.query {verb}", f"its arguments do not fit: {error}") from error


def shown(found: Recalled) -> dict[str, Any]:
    """The shape that `exo recall --json` prints."""
    names = ("id", "kind", "title", "score", "found_by", "trust", "text")
    hits = [{name: getattr(hit, name) for name in names} for hit in found.hits]
    return {"hits": hits, "abstain": found.abstain, "tokens": found.tokens}


def _evidence(entry: Entry) -> dict[str, Any]:
    body = entry.body or {"text": "(forgotten)"}
    text = str(body.get("text") or body.get("title") or body.get("path") or "")[:2000]
    told = {"id": entry.id, "kind": entry.kind, "ts": entry.ts}
    return {**told, "channel": str(body.get("channel", "")), "text": text}
