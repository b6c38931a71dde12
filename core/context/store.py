"""The rows of the context engine in sessions.sqlite: summary nodes, and what each session's view was when
it was last changed. Reads only the messages that are not summarised yet, so that a turn's cost does not
grow with the history.

Invariant: a node's `last` is the row of the last message it covers; nodes are never changed, a better one
of the same address is a newer row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from exo.core.base.sqlite import Database
from exo.core.context.tree import LEAF, Address, covered, span, tile
from exo.core.protocol.codec import read_message
from exo.core.protocol.schema import Message

KEPT = 8  # sessions that stay in memory
LOOK_BACK = 256  # messages searched for the request that is being worked on


@dataclass(frozen=True)
class Node:
    """A finished summary. `by`: model, rules, or stopgap (rules, until a model answers)."""

    n: int
    address: Address
    last: int
    text: str
    by: str


@dataclass
class State:
    """One session in memory. `rows` are (row, message) from the last summarised message on."""

    view: list[Node] = field(default_factory=list)
    last: int = 0  # row of the last message that the view covers
    nodes: dict[Address, Node] = field(default_factory=dict)
    rows: list[tuple[int, Message]] = field(default_factory=list)
    stopgaps: set[Address] = field(default_factory=set)

    def add(self, node: Node) -> None:
        self.nodes[node.address] = node
        if node.by == "stopgap":
            self.stopgaps.add(node.address)
        else:
            self.stopgaps.discard(node.address)

    @property
    def start(self) -> int:
        """How many messages the view covers."""
        return covered([node.address for node in self.view])

    @property
    def open(self) -> list[tuple[int, Message]]:
        """The rows that the view does not cover."""
        if self.view:
            return self.rows[1:]
        return self.rows

    @property
    def lead(self) -> Message | None:
        """The last message that the view covers, None where there is no view."""
        if self.view and self.rows:
            return self.rows[0][1]
        return None

    @property
    def count(self) -> int:
        return self.start + len(self.open)


class Store:
    """Reads and writes; `save_*` inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._states: dict[str, State] = {}

    def state(self, session: str) -> State:
        """The session with its newest messages; only rows that are new are read."""
        state = self._states.pop(session, None) or self._load(session)
        after = max(0, state.last - 1)
        if state.rows:
            after, _ = state.rows[-1]
        state.rows += self._messages(session, "n > ? ORDER BY n", after)
        self._states[session] = state
        while len(self._states) > KEPT:
            del self._states[next(iter(self._states))]
        return state

    def leaf(self, session: str, address: Address) -> list[tuple[int, Message]]:
        """The rows that a leaf covers; fewer than LEAF when they are gone."""
        state = self.state(session)
        first = span(address)[0] - state.start
        if first >= 0:
            return state.open[first : first + LEAF]
        node = state.nodes.get(address)
        if node is None:
            return []
        rows = self._messages(session, f"n <= ? ORDER BY n DESC LIMIT {LEAF}", node.last)
        return rows[::-1]

    def task(self, session: str) -> str:
        """The last message of the person, near the end."""
        rows = self._messages(session, f"n > ? ORDER BY n DESC LIMIT {LOOK_BACK}", 0)
        for _, message in rows:
            if message.role == "user":
                return message.text
        return ""

    def save_node(self, session: str, address: Address, last: int, text: str, by: str) -> Node:
        columns = "session, level, place, last, text, made_by"
        query = f"INSERT INTO nodes ({columns}) VALUES (?, ?, ?, ?, ?, ?)"
        cursor = self._database.link.execute(query, (session, *address, last, text, by))
        return Node(int(cursor.lastrowid or 0), address, last, text, by)

    def save_view(self, session: str, view: Sequence[Node]) -> None:
        last = view[-1].last if view else 0
        nodes = json.dumps([node.n for node in view])
        query = "INSERT OR REPLACE INTO views (session, last, nodes) VALUES (?, ?, ?)"
        self._database.link.execute(query, (session, last, nodes))

    def show(self, session: str, view: list[Node]) -> None:
        """Make `view` the one in memory, after its commit."""
        state = self.state(session)
        state.view = view
        state.last = view[-1].last
        state.rows = [row for row in state.rows if row[0] >= state.last]

    def drop_caches(self) -> None:
        """Read everything again: rows were changed behind our back."""
        self._states.clear()

    def forget_after(self, session: str, message: str) -> None:
        """Drop nodes that cover anything after `message` ("" for all). In the caller's transaction,
        before or after the messages themselves go."""
        query = "SELECT n FROM messages WHERE session = ? AND id = ?"
        (end,) = self._database.link.execute(query, (session, message)).fetchone() or (0,)
        self._states.pop(session, None)
        state = self._load(session)
        query = "DELETE FROM nodes WHERE session = ? AND last > ?"
        self._database.link.execute(query, (session, end))
        nodes = {each: node for each, node in state.nodes.items() if node.last <= end}
        shown = tile(nodes, state.start // LEAF)
        self.save_view(session, [nodes[each] for each in shown])

    def copy(self, session: str, new: str) -> None:
        """Give the fork `new`, whose messages are copied already, the nodes that it has messages for. In
        the caller's transaction."""
        query = "SELECT n FROM messages WHERE session = ? ORDER BY n"
        rows = [n for (n,) in self._database.link.execute(query, (new,))]
        nodes: dict[Address, Node] = {}
        parent = self._load(session)
        for address, node in parent.nodes.items():
            end = span(address)[1]
            if end <= len(rows):
                nodes[address] = self.save_node(new, address, rows[end - 1], node.text, node.by)
        shown = tile(nodes, min(len(rows), parent.start) // LEAF)
        self.save_view(new, [nodes[each] for each in shown])

    def _load(self, session: str) -> State:
        state = State()
        by_row: dict[int, Node] = {}
        columns = "n, level, place, last, text, made_by"
        query = f"SELECT {columns} FROM nodes WHERE session = ? ORDER BY n"
        for n, level, place, last, text, by in self._database.link.execute(query, (session,)):
            node = by_row[n] = Node(n, (level, place), last, text, by)
            state.add(node)
        query = "SELECT last, nodes FROM views WHERE session = ?"
        for last, names in self._database.link.execute(query, (session,)):
            state.view = [by_row[n] for n in json.loads(names)]
            state.last = last
        return state

    def _messages(self, session: str, where: str, value: int) -> list[tuple[int, Message]]:
        query = f"SELECT n, data FROM messages WHERE session = ? AND {where}"
        rows = self._database.link.execute(query, (session, value))
        return [(n, read_message(data)) for n, data in rows]
