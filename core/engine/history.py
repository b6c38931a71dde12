"""What can be done with a conversation that was had: search it, fork it, undo its last turns, mend it.
The handlers of those commands; the rows are the business of Sessions."""

from __future__ import annotations

from collections.abc import Container

from exo.core.context.engine import ContextEngine
from exo.core.engine.sessions import Sessions, check_count
from exo.core.protocol import schema
from exo.core.protocol.codec import refused
from exo.core.server.hub import Hub

HITS = 20  # of one search, unless told


class History:
    """`running` holds the sessions in which a turn runs; the summaries of `context` follow the messages."""

    def __init__(
        self, sessions: Sessions, hub: Hub, context: ContextEngine, running: Container[str]
    ) -> None:
        self._sessions, self._hub, self._running = sessions, hub, running
        self._context = context

    async def on_search(self, body: schema.Search) -> schema.SearchResult:
        limit = check_count("search.limit", body.limit, HITS)
        if body.session is not None:
            self._sessions.info(body.session)
        return schema.SearchResult(self._sessions.index.find(body.query, body.session, limit))

    async def on_session_fork(self, body: schema.SessionFork) -> schema.SessionRef:
        """A fork of a session whose turn runs has what stood when it was made, in whole rounds."""
        self._sessions.info(body.session)
        with self._hub.commit(durable=True) as add:
            fork = self._sessions.fork(body.session, body.at)
            self._context.copy(body.session, fork)
            info = self._sessions.info(fork)
            add(fork, schema.SessionCreated(info.title))
            add(fork, schema.SessionUpdated(info.title, info.turns, info.updated))
        return schema.SessionRef(fork)

    async def on_session_undo(self, body: schema.SessionUndo) -> schema.UndoResult:
        self._sessions.info(body.session)
        turns = check_count("session.undo.turns", body.turns, 1)
        if body.session in self._running:
            raise refused("turn_running", "undo", "a turn runs in this session; interrupt it first")
        with self._hub.commit(durable=True) as add:
            removed = self._sessions.undo(body.session, turns)
            left = self._sessions.messages(body.session)
            self._context.forget_after(body.session, left[-1].id if left else "")
            info = self._sessions.info(body.session)
            add(body.session, schema.SessionUpdated(info.title, info.turns, info.updated))
        return schema.UndoResult(removed)

    def mend(self, session: str) -> None:
        """Answer the calls that a crash left without a result. Raises ProtocolError unknown_session."""
        self._sessions.info(session)
        if session in self._running or not self._sessions.unanswered(session):
            return
        with self._hub.commit(durable=True) as add:
            self._sessions.mend(add, session, self._sessions.last_turn(session))
