"""A tool call on its way: hooks may stop it, a person may be asked, the tool runs, hooks see and rewrite
the result. One way for the calls of a model, of a rule and of a client. Owns the table `approvals` and who
waits for an answer.

Invariant: `run` gives every call one result; it raises only for a disk that refuses or a cancellation.
Every approval.requested is followed by exactly one approval.resolved: by a client's answer, by time-out,
interrupt or restart (these three deny)."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

from exo.core.base.sqlite import Database
from exo.core.engine.outbox import Outbox
from exo.core.engine.sessions import new_id
from exo.core.plugins.hooks import Hooks
from exo.core.protocol.codec import refused
from exo.core.protocol.schema import ApprovalRequested, ApprovalResolved, Call, ToolResult
from exo.core.server.hub import Hub
from exo.core.toolbox.registry import Context, Risk, Toolbox

Choice = Literal["allow", "deny", "allow_always"]
KEEP_MS = 7 * 86_400_000  # answered ones are known this long, to tell "answered" from "unknown"


class Approvals:
    """Asks, waits, and takes the first answer. `timeout` seconds."""

    def __init__(self, database: Database, hub: Hub, outbox: Outbox, timeout: float) -> None:
        self._database = database
        self._hub = hub
        self._outbox = outbox
        self._timeout = timeout
        self._clock = outbox.clock
        # who waits, and what the record says of the question
        self._waiting: dict[str, tuple[asyncio.Future[tuple[Choice, str]], dict[str, str]]] = {}
        self._always: set[tuple[str, str]] = set()  # (session, rule), for this run of exod

    async def ask(
        self, session: str, tool: str, args: dict[str, Any], risk: Risk, summary: str, rule: str
    ) -> tuple[Choice, str]:
        """Return (choice, by). A rule that was allowed for ever in this session is not asked again.
        Raises StorageError, and CancelledError once the question is closed."""
        if rule and (session, rule) in self._always:
            return "allow", "rule"
        id_ = new_id()
        now = self._clock.now_ms()
        expires = now + round(self._timeout * 1000)
        asked = ApprovalRequested(id_, summary, risk, tool, args, expires)
        query = "INSERT INTO approvals (id, session, created) VALUES (?, ?, ?)"
        with self._hub.commit(durable=True) as add:
            self._database.link.execute(query, (id_, session, now))
            add(session, asked)
        future: asyncio.Future[tuple[Choice, str]] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = future, {"tool": tool, "summary": summary}
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
        session, before = rows[0]
        if before is not None:
            why = f"it was answered already: {before}"
            raise refused("already_answered", f"answer {request!r}", why)
        self._resolve(request, session, choice, by)

    def close_lost(self) -> None:
        """At start: whoever asked is gone with the last exod, so what is open is denied."""
        query = "DELETE FROM approvals WHERE choice NOT NULL AND created < ?"
        with self._database.transaction() as link:
            link.execute(query, (self._clock.now_ms() - KEEP_MS,))
        query = "SELECT id, session FROM approvals WHERE choice IS NULL"
        for id_, session in self._database.rows(query):
            self._resolve(id_, session, "deny", "restart")

    def _resolve(self, request: str, session: str, choice: Choice, by: str) -> None:
        with self._hub.commit(durable=True) as add:
            link = self._database.link
            link.execute("UPDATE approvals SET choice = ? WHERE id = ?", (choice, request))
            add(session, ApprovalResolved(request, choice, by))
            _, about = self._waiting.get(request, (None, {}))
            asked = {"request": request, **about, "choice": choice, "by": by}
            self._outbox.put("approval", f"{request}:approval", session, "", **asked)
        if request in self._waiting:
            self._waiting.pop(request)[0].set_result((choice, by))


class Actions:
    """Puts hooks and approvals around the toolbox."""

    def __init__(self, tools: Toolbox, hooks: Hooks, approvals: Approvals) -> None:
        self.tools = tools
        self._hooks = hooks
        self._approvals = approvals

    async def run(self, call: Call, context: Context) -> tuple[ToolResult, int]:
        """Return the result and the milliseconds that the tool itself took."""
        if fault := self.tools.fault(call, context):
            return ToolResult(call.id, False, fault), 0
        facts: dict[str, Any] = {
            "tool_name": call.tool,
            "args": call.args,
            "risk": self.tools.risk(call),
            "needs": self.tools.needs(call.tool),
            "session_id": context.session,
            "tool_call_id": call.id,
            "cwd": str(context.cwd),
        }
        if refusal := await self._refused(call, context, facts):
            return ToolResult(call.id, False, refusal), 0
        begun = time.monotonic()

        async def rewrite(text: str) -> str:
            return await self._hooks.transform(text, **facts)

        result = await self.tools.run(call, context, rewrite)
        spent = round((time.monotonic() - begun) * 1000)
        facts |= {"result": result.text, "ok": result.ok, "duration_ms": spent}
        await self._hooks.fire("post_tool_call", **facts)
        return result, spent

    async def _refused(self, call: Call, context: Context, facts: dict[str, Any]) -> str:
        """Why the call is not made, "" when it may be."""
        decision = await self._hooks.decide(**facts)
        if decision is None:
            return ""
        if decision.action == "block":
            return f"blocked: {decision.reason}"
        choice, by = await self._approvals.ask(
            context.session, call.tool, call.args, facts["risk"], decision.reason, decision.rule
        )
        await self._hooks.fire("post_approval_response", **facts, choice=choice, by=by)
        if choice != "deny":
            return ""
        if by == "timeout":
            return "not done: nobody answered the question in time"
        return "not done: the person said no"
