"""Questions to the person before a tool runs. Owns the table `approvals` and who waits.

Invariant: every approval.requested is followed by exactly one approval.resolved: by a client's answer,
by time-out, interrupt or restart (these three deny)."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from exo.core.base.clock import Clock
from exo.core.base.sqlite import Database
from exo.core.engine.outbox import Outbox
from exo.core.engine.sessions import new_id
from exo.core.protocol.codec import refused
from exo.core.protocol.schema import ApprovalRequested, ApprovalResolved
from exo.core.server.hub import Hub
from exo.core.toolbox.registry import Risk

Choice = Literal["allow", "deny", "allow_always"]
KEEP_MS = 7 * 86_400_000  # answered ones are known this long, to tell "answered" from "unknown"


class Approvals:
    """Asks, waits, and takes the first answer. `timeout` seconds."""

    def __init__(
        self, database: Database, hub: Hub, clock: Clock, timeout: float, outbox: Outbox
    ) -> None:
        self._outbox = outbox
        self._asked: dict[str, dict[str, str]] = {}  # what the record says of open questions
        self._database, self._hub, self._clock, self._timeout = database, hub, clock, timeout
        self._waiting: dict[str, asyncio.Future[tuple[Choice, str]]] = {}
        self._always: set[tuple[str, str]] = set()  # (session, rule), for this run of exod

    async def ask(
        self, session: str, tool: str, args: dict[str, Any], risk: Risk, summary: str, rule: str
    ) -> tuple[Choice, str]:
        """Return (choice, by). A rule that was allowed for ever in this session is not asked again.
        Raises StorageError, and CancelledError once the question is closed."""
        if rule and (session, rule) in self._always:
            return "allow", "rule"
        id_, now = new_id(), self._clock.now_ms()
        expires = now + round(self._timeout * 1000)
        asked = ApprovalRequested(id_, summary, risk, tool, args, expires)
        with self._hub.commit(durable=True) as add:
            self._database.link.execute(
                "INSERT INTO approvals (id, session, created) VALUES (?, ?, ?)", (id_, session, now)
            )
            add(session, asked)
        future: asyncio.Future[tuple[Choice, str]] = asyncio.get_running_loop().create_future()
        self._waiting[id_], self._asked[id_] = future, {"tool": tool, "summary": summary}
        by = "interrupt"
        try:
            await asyncio.wait({future}, timeout=self._timeout)
            by = "timeout"
        finally:
            if not future.done():
                self._resolve(id_, session, "deny", by)
        choice, by = future.result()
        if choice == "allow_always" and rule:
            self._always.add((session, rule))
        return choice, by

    def respond(self, request: str, choice: Choice, by: str) -> None:
        """Take a client's answer. Raises ProtocolError unknown_approval or already_answered."""
        rows = self._database.rows("SELECT session, choice FROM approvals WHERE id = ?", request)
        if not rows:
            raise refused("unknown_approval", f"answer {request!r}", "there is no such question")
        if rows[0][1] is not None:
            why = f"it was answered already: {rows[0][1]}"
            raise refused("already_answered", f"answer {request!r}", why)
        self._resolve(request, str(rows[0][0]), choice, by)

    def close_lost(self) -> None:
        """At start: whoever asked is gone with the last exod, so what is open is denied."""
        before = self._clock.now_ms() - KEEP_MS
        with self._hub.commit(durable=True) as add:
            link = self._database.link
            link.execute("DELETE FROM approvals WHERE choice NOT NULL AND created < ?", (before,))
            rows = link.execute("SELECT id, session FROM approvals WHERE choice IS NULL").fetchall()
            for id_, session in rows:
                add(session, ApprovalResolved(id_, "deny", "restart"))
                asked = {"request": id_, "choice": "deny", "by": "restart"}
                self._outbox.put("approval", f"{id_}:approval", session, "", **asked)
            link.execute("UPDATE approvals SET choice = 'deny' WHERE choice IS NULL")

    def _resolve(self, request: str, session: str, choice: Choice, by: str) -> None:
        with self._hub.commit(durable=True) as add:
            self._database.link.execute(
                "UPDATE approvals SET choice = ? WHERE id = ?", (choice, request)
            )
            add(session, ApprovalResolved(request, choice, by))
            asked = {"request": request, **self._asked.get(request, {}), "choice": choice, "by": by}
            self._outbox.put("approval", f"{request}:approval", session, "", **asked)
        self._asked.pop(request, None)
        if request in self._waiting:
            self._waiting.pop(request).set_result((choice, by))
