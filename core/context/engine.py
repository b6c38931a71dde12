"""The context engine: what the model sees of a conversation, turn by turn. Owns when messages are folded
into summaries, which jobs are due, and the waiting for them.

Invariant: every message of the session is in the request, verbatim or under a summary; the view changes
only when it must (or a step of leaves is full), so that between two such moments each request begins with
the one before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ModelError, StorageError
from exo.core.base.settings import Settings
from exo.core.base.sqlite import Database
from exo.core.context import builder
from exo.core.context.builder import MESSAGE_TOKENS, Limits, Parts, estimate, size, weight
from exo.core.context.extract import Digest
from exo.core.context.lanes import Key, Lane, Lanes
from exo.core.context.meter import Meter
from exo.core.context.store import Node, State, Store
from exo.core.context.summary import By, Summariser, of_messages, of_pair
from exo.core.context.tree import LEAF, Address, children, covered, merge, pair, tile
from exo.core.protocol.schema import ContextCompacted, Usage
from exo.core.router.model import Model
from exo.core.server.hub import Hub

NEAR = 0.8  # of the budget: from here on the tokenizer is asked about the whole request
FULL = 0.85  # after a turn: the next one is not likely to fit
LOW = 0.5  # of the budget: folding goes on until no more is used
HIGH = 0.6  # the tail is cut below its wanted length while more is used


class ContextEngine:
    """One for all sessions. `settings(session)` are those that hold for it; `alone()` says that summaries are
    made by the same model, on the same machine, as live turns: then nobody waits for them."""

    def __init__(
        self,
        database: Database,
        hub: Hub,
        model: Model,
        settings: Callable[[str], Settings],
        clock: Clock,
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._hub = hub
        self._alone = alone
        self._settings = settings
        self.store = Store(database)
        self.meter = Meter(lambda what: model.count("main", what))
        self._summariser = Summariser(model, self.meter.measure)
        self.lanes = Lanes(self._at_once, self._job, alone, clock)
        # session -> (opening, tokens of its tools), of the last request
        self._last: dict[str, tuple[Sequence[dict[str, Any]], int]] = {}
        self._predicted = 0
        self._beyond: int | None = None  # tokens of a prompt beyond its messages, once observed

    # ---- a turn ----------------------------------------------------------------------------------

    def limits(self, session: str, shrink: int = 0) -> Limits:
        """The limits in force; each `shrink` halves the window, for a model that found it too long."""
        count = self._settings(session).count
        limits = Limits(
            count("context.window") or count("models.window"),
            count("reply.tokens"),
            count("context.tail"),
            count("context.view"),
            count("context.step"),
            self.meter.exact,
        )
        if self.meter.window:
            limits = replace(limits, window=min(limits.window, self.meter.window))
        if not limits.step and not self._alone():
            limits = replace(limits, step=1)
        for _ in range(shrink):
            limits = limits.halved()
        return limits

    async def build(
        self,
        session: str,
        opening: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] = (),
        *,
        recall: str = "",
        shrink: int = 0,
        wait: bool = True,
    ) -> list[dict[str, Any]]:
        """The messages of a request for this session as it stands. With `wait`, and where another model
        summarises, pending summaries are waited for first."""
        self.touch(session)
        if wait and not self._alone():
            await self.lanes.settle(session, self._settings(session).number("context.settle"))
        extra = estimate(json.dumps(list(tools))) if tools else 0
        self._last[session] = opening, extra
        request = await self._request(session, self.limits(session, shrink), recall)
        self._predicted = weight(request, self.meter.measure)
        return request

    def heard(self, usage: Usage) -> None:
        """What the model counted for the request that was built last: tools and marks that the messages
        do not show are known from then on."""
        if usage.prompt_tokens:
            self._beyond = max(0, usage.prompt_tokens - self._predicted)

    def live(self) -> AbstractContextManager[None]:
        """A turn runs in this block: summaries by the same model stand back."""
        return self.lanes.hold()

    async def rest(self, session: str) -> bool:
        """After a turn: count what is new, make what is due; where the next turn would hardly fit, fold
        now, while nobody waits. Whether the view changed."""
        self.touch(session)
        if session not in self._last:
            return False
        view = self.store.state(session).view
        await self._request(session, self.limits(session), "", FULL)
        return self.store.state(session).view is not view

    def touch(self, session: str, lane: Lane = "live") -> None:
        """Queue every summary of the session that is due: new, interrupted or failed before."""
        due = self._due(self.store.state(session), self.limits(session))
        self.lanes.add(lane, [(session, address) for address in due])

    async def close(self) -> None:
        await self.lanes.close()

    # ---- for undo and fork -----------------------------------------------------------------------

    def forget_after(self, session: str, message: str) -> None:
        """Messages after `message` are taken back ("" for all): so are the summaries that know of them.
        Call inside the transaction that deletes them, before it does."""
        self.lanes.drop(session)
        self.store.forget_after(session, message)

    # ---- folding ---------------------------------------------------------------------------------

    async def _request(
        self, session: str, limits: Limits, recall: str, full: float = 1.0
    ) -> list[dict[str, Any]]:
        """The next request, after folding when it takes more than `full` of its budget."""
        beyond = self._beyond
        if beyond is None:
            _, beyond = self._last[session]
        budget = max(64, limits.budget - beyond)
        state = self.store.state(session)
        measure = self.meter.measure
        parts = self._parts(session, state, recall)
        draft = builder.lay_out(parts, limits, budget, measure)
        total = weight(draft, measure)
        if total > NEAR * budget or full < 1:
            total = await self.meter.total(draft) or total
            if self.store.state(session) is not state:  # an undo came in between
                return await self._request(session, limits, recall, full)
        ready = self._ready(state, (state.count - limits.tail) // LEAF)
        stepped = limits.step and ready - state.start // LEAF >= limits.step
        if total > full * budget or stepped:
            with suppress(StorageError):  # told by the hub; the request is cut to fit without
                self._fold(session, state, limits, budget, total, ready)
                parts = self._parts(session, self.store.state(session), recall)
        elif total <= budget:
            return draft
        return builder.build(parts, limits, budget, measure)

    def _parts(self, session: str, state: State, recall: str) -> Parts:
        opening, _ = self._last[session]
        messages = [each for _, each in state.open]
        task = ""
        if state.view and all(each.role != "user" for each in messages):
            task = self.store.task(session)
        view = [(node.address, node.text) for node in state.view]
        return Parts(opening, view, messages, state.lead, task, recall)

    def _fold(
        self, session: str, state: State, limits: Limits, budget: int, total: int, ready: int
    ) -> None:
        """Change the view. Ready leaves first; where that is not enough, leaves that are not ready, too,
        by rules; the tail is cut below its length only when even that is too much."""
        sizes = [size(each, budget // 2, self.meter.measure) for _, each in state.open]
        room = limits.node(0)
        left = total
        leaves = state.start // LEAF
        usual = (state.count - limits.tail) // LEAF
        most = (state.count - 2) // LEAF
        least = ready if limits.step else 0
        while leaves < most:
            goal = LOW if leaves < usual else HIGH
            enough = left <= goal * budget
            waits = leaves >= ready and left <= FULL * budget
            if leaves >= least and (enough or waits):
                break
            first = leaves * LEAF - state.start
            left -= sum(sizes[first : first + LEAF]) - room
            self._node(session, state, (0, leaves), limits)
            leaves += 1
        must = left > budget or not limits.step
        view = self._merged(session, leaves, limits, must)
        reach = covered([each.address for each in view])
        if view != state.view and reach >= state.start:
            with self._hub.commit() as add:
                self.store.save_view(session, view)
                add(session, ContextCompacted(total, max(0, left)))
            self.store.show(session, view)

    def _merged(self, session: str, leaves: int, limits: Limits, must: bool) -> list[Node]:
        """The coarsest finished nodes over `leaves`; over the limit of the view, oldest pairs are merged
        (down to three quarters, so that this does not happen at every fold)."""
        state = self.store.state(session)
        goal = limits.summaries
        view = tile(state.nodes, leaves)
        while self._weight(state, view) > goal:
            parent = pair(view)
            if parent is None:
                break
            goal = limits.summaries * 3 // 4
            if parent not in state.nodes and not must:
                break  # its job is due, and comes with the next fold
            self._node(session, state, parent, limits)
            view = merge(view, parent)
        return [state.nodes[each] for each in view]

    def _node(self, session: str, state: State, address: Address, limits: Limits) -> Node:
        """A finished node; one that is not is made by rules, until a model does it better."""
        if address not in state.nodes:
            last, _, facts = self._source_of(session, state, address)
            text = self._summariser.rules(facts, limits.node(address[0]))
            self._save(session, address, last, text, "stopgap")
        return state.nodes[address]

    def _save(self, session: str, address: Address, last: int, text: str, by: By) -> None:
        with self._database.transaction():
            node = self.store.save_node(session, address, last, text, by)
        self.store.state(session).add(node)

    def _source_of(self, session: str, state: State, address: Address) -> tuple[int, str, Digest]:
        """(row of the last message under a node, what a model is given of it, what rules lift from it)."""
        if address[0] == 0:
            rows = self.store.leaf(session, address)
            messages = [each for _, each in rows]
            last, _ = rows[-1]
            # aux work has half the window on the local server; the prompt and the reply need room too
            room = max(200, min(6000, self.limits(session).window // 2 - 400))
            return last, *of_messages(messages, room)
        older, newer = children(address)
        last = state.nodes[newer].last
        return last, *of_pair(state.nodes[older].text, state.nodes[newer].text)

    # ---- jobs ------------------------------------------------------------------------------------

    def _ready(self, state: State, most: int) -> int:
        """How many leaves from the first on are finished, at most `most`."""
        leaves = state.start // LEAF
        while leaves < most and (0, leaves) in state.nodes:
            leaves += 1
        return leaves

    def _due(self, state: State, limits: Limits) -> list[Address]:
        """Summaries to make: leaves older than the tail, parents that the view will need."""
        begin = state.start // LEAF
        end = (state.count - limits.tail) // LEAF
        leaves = [(0, n) for n in range(begin, end)]
        due = [each for each in leaves if each not in state.nodes]
        for address in sorted(state.stopgaps):
            if not address[0] or state.stopgaps.isdisjoint(children(address)):
                due.append(address)
        view = tile(state.nodes, max(begin, self._ready(state, end)))
        while self._weight(state, view) > limits.summaries:
            parent = pair(view)
            if parent is None:
                break
            if parent not in state.nodes:
                due.append(parent)
                break
            view = merge(view, parent)
        return due

    def _weight(self, state: State, view: Sequence[Address]) -> int:
        measure = self.meter.measure
        total = measure(builder.VIEW)
        for each in view:
            if each in state.nodes:
                total += measure(state.nodes[each].text) + MESSAGE_TOKENS
        return total

    def _at_once(self, lane: Lane, session: str) -> int:
        count = self._settings(session).count
        return count("context.live" if lane == "live" else "context.imports")

    async def _job(self, lane: Lane, key: Key) -> None:
        """Make one summary and save it. When no model answers, rules do it for now: it stays due."""
        session, address = key
        state = self.store.state(session)
        last, source, facts = self._source_of(session, state, address)
        room = self.limits(session).node(address[0])
        by: By = "rules"
        text = self._summariser.rules(facts, room)
        if self._settings(session).text("context.summaries") == "model":
            try:
                text, by = await self._summariser.write(source, facts, room)
            except ModelError:
                by = "stopgap"
        if by == "stopgap" and address in self.store.state(session).nodes:
            return
        self._save(session, address, last, text, by)
        if by != "stopgap":
            self.touch(session, lane)
