"""A tool call on its way: the gate judges it, hooks may stop it, a person may be asked, the tool runs, hooks
see and rewrite the result. One way for the calls of a model, of a rule and of a client. Owns the table
`approvals` and who waits for an answer.

Invariant: `run` gives every call one result; it raises only for a disk that refuses or a cancellation.
Every approval.requested is followed by exactly one approval.resolved: by a client's answer, by time-out,
interrupt or restart (these three deny). An approval holds for one call of one digest: it is used up in a
commit of its own before that call runs, and none is used twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Literal

from exo.core.base.sqlite import Database
from exo.core.engine.outbox import Outbox
from exo.core.engine.sessions import new_id
from exo.core.gate.axes import Act
from exo.core.gate.decide import Verdict, mark
from exo.core.gate.gate import Gate, doubtful
from exo.core.gate.words import WIDTH, middle
from exo.core.plugins.hooks import Hooks
from exo.core.protocol.codec import refused
from exo.core.protocol.schema import ApprovalRequested, ApprovalResolved, Call, ToolResult
from exo.core.server.hub import Hub
from exo.core.toolbox.registry import Context, Toolbox
from exo.core.toolbox.workers import in_thread, standing, within

Choice = Literal["allow", "deny", "allow_always"]
KEEP_MS = 7 * 86_400_000  # answered ones are known this long, to tell "answered" from "unknown"
JUDGE = 5.0  # seconds; a judge that takes longer leaves the call not understood


# who waits, for what, in which turn, and the rules that an allow_always would write
Waiting = tuple[asyncio.Future[tuple[Choice, str]], ApprovalRequested, str, list[str]]


class Approvals:
    """Asks, waits, and takes the first answer. `timeout` seconds."""

    def __init__(self, database: Database, hub: Hub, outbox: Outbox, timeout: float) -> None:
        self._database = database
        self._hub = hub
        self._outbox = outbox
        self._timeout = timeout
        self._clock = outbox.clock
        self._begun = self._clock.now_ms()
        self._waiting: dict[str, Waiting] = {}

    async def ask(
        self, session: str, turn: str, summary: str, verdict: Verdict, rules: list[str]
    ) -> tuple[str, Choice, str]:
        """Return (request, choice, by). Raises StorageError, and CancelledError once it is closed."""
        id_, now, act = new_id(), self._clock.now_ms(), verdict.act
        expires = now + round(self._timeout * 1000)
        asked = ApprovalRequested(
            *(id_, summary, act.risk or "high", act.tool, act.args, expires),
            *(verdict.digest, asdict(verdict.axes), bool(rules)),
        )
        query = "INSERT INTO approvals (id, session, created, digest) VALUES (?, ?, ?, ?)"
        with self._hub.commit(durable=True) as add:
            self._database.link.execute(query, (id_, session, now, verdict.digest))
            add(session, asked)
        future: asyncio.Future[tuple[Choice, str]] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = future, asked, turn, rules
        by = "interrupt"
        try:
            with standing():
                await asyncio.wait({future}, timeout=self._timeout)
            by = "timeout"
        finally:
            if not future.done():
                self._resolve(id_, session, "deny", by)
        return id_, *future.result()

    def respond(self, request: str, choice: Choice, by: str, via: str = "") -> None:
        """Take a client's answer. Raises ProtocolError unknown_approval, already_answered or
        voice_cannot_allow."""
        rows = self._database.rows("SELECT session, choice FROM approvals WHERE id = ?", request)
        if not rows:
            raise refused("unknown_approval", f"answer {request!r}", "there is no such question")
        session, before = rows[0]
        if before is not None:
            why = f"it was answered already: {before}"
            raise refused("already_answered", f"answer {request!r}", why)
        if via == "voice" and choice != "deny":
            why = "a voice may deny, not allow: it can be anybody's; hold the button, or type it"
            raise refused("voice_cannot_allow", f"answer {request!r}", why)
        self._resolve(request, session, choice, by, via)

    def rules(self, session: str) -> set[str]:
        """The marks of what was allowed always in this session."""
        query = "SELECT rules FROM approvals WHERE session = ? AND rules <> ''"
        return {each for (row,) in self._database.rows(query, session) for each in row.split()}

    def left(self, session: str, digest: str) -> str:
        """An approval of exactly this call that exod, when it died, had not yet used; "" for none."""
        query = (
            "SELECT id FROM approvals WHERE session = ? AND digest = ? AND used = 0"
            " AND choice IN ('allow', 'allow_always') AND created BETWEEN ? AND ?"
        )
        since = self._clock.now_ms() - round(self._timeout * 1000)
        rows = self._database.rows(query, session, digest, since, self._begun)
        return str(rows[0][0]) if rows else ""

    def take(self, request: str, digest: str) -> bool:
        """Use an approval up, durably; False when it is used, or was for another call."""
        query = "UPDATE approvals SET used = 1 WHERE id = ? AND digest = ? AND used = 0"
        with self._database.transaction(durable=True) as link:
            return link.execute(query, (request, digest)).rowcount == 1

    def close_lost(self) -> None:
        """At start: whoever asked is gone with the last exod, so what is open is denied."""
        query = "DELETE FROM approvals WHERE choice NOT NULL AND rules = '' AND created < ?"
        with self._database.transaction() as link:
            link.execute(query, (self._clock.now_ms() - KEEP_MS,))
        query = "SELECT id, session FROM approvals WHERE choice IS NULL"
        for id_, session in self._database.rows(query):
            self._resolve(id_, session, "deny", "restart")

    def _resolve(self, request: str, session: str, choice: Choice, by: str, via: str = "") -> None:
        future, asked, turn, rules = self._waiting.get(request, (None, None, "", []))
        about = ("tool", "summary", "digest", "axes") if asked else ()
        facts = {name: getattr(asked, name) for name in about}
        facts |= {"request": request, "choice": choice, "by": by} | ({"via": via} if via else {})
        if choice == "allow_always" and rules:  # the signed rule of the session
            facts["rules"] = rules
        with self._hub.commit(durable=True) as add:
            query = "UPDATE approvals SET choice = ?, rules = ? WHERE id = ?"
            kept = " ".join(map(mark, facts.get("rules", ())))
            self._database.link.execute(query, (choice, kept, request))
            add(session, ApprovalResolved(request, choice, by))
            self._outbox.put("approval", f"{request}:approval", session, turn, **facts)
        if future is not None:
            del self._waiting[request]
            future.set_result((choice, by))


class Actions:
    """Puts the gate, hooks and approvals around the toolbox. `spent` gives what this month has cost, in
    cents; `tell` shows a warning to the person."""

    def __init__(
        self,
        tools: Toolbox,
        hooks: Hooks,
        approvals: Approvals,
        gate: Gate,
        spent: Callable[[], Awaitable[int]],
        tell: Callable[[str, str], None],
    ) -> None:
        self.tools = tools
        self._hooks, self._approvals, self._gate = hooks, approvals, gate
        self._spent, self._tell = spent, tell
        self._told = ""

    async def judge(self, call: Call, context: Context) -> Verdict | str:
        """What the gate says of a call, or why it cannot be made at all."""
        if fault := self.tools.fault(call, context):
            return fault
        spec, risk, gate = self.tools.get(call.tool), self.tools.risk(call), self._gate
        assert spec is not None
        act = Act(call.tool, call.args, str(context.cwd), risk, spec.needs, spec.code)
        try:
            act.digest  # noqa: B018
        except (RecursionError, ValueError) as error:
            return f"{call.tool}: its arguments cannot be written down: {error}"
        try:
            found = await within(JUDGE, in_thread(gate.judge, act))
        except Exception as error:  # noqa: BLE001 - it hangs, or all threads do
            found = doubtful(act, f"the judge gave no answer ({type(error).__name__})")
        if gate.fault and gate.fault != self._told:
            self._tell("policies", gate.fault)
        self._told = gate.fault
        spent = 0
        if found.axes.cost == "money" and gate.current.month_cents:
            spent = await self._spent()
        return gate.decide(act, found, self._approvals.rules(context.session), spent)

    async def run(
        self, call: Call, context: Context, verdict: Verdict, turn: str = ""
    ) -> tuple[ToolResult, int, bool]:
        """The result, the milliseconds that the tool itself took, and whether it ran at all."""
        act = verdict.act
        facts: dict[str, Any] = {"tool_name": act.tool, "args": act.args, "risk": act.risk}
        facts |= {"needs": act.needs, "session_id": context.session, "cwd": act.cwd}
        facts |= {"tool_call_id": call.id}
        if refusal := await self._refused(context.session, turn, verdict, facts):
            return ToolResult(call.id, False, refusal), 0, False
        begun = time.monotonic()

        async def rewrite(text: str) -> str:
            return await self._hooks.transform(text, **facts)

        result = await self.tools.run(call, context, rewrite)
        spent = round((time.monotonic() - begun) * 1000)
        facts |= {"result": result.text, "ok": result.ok, "duration_ms": spent}
        await self._hooks.fire("post_tool_call", **facts)
        return result, spent, True

    async def _refused(
        self, session: str, turn: str, verdict: Verdict, facts: dict[str, Any]
    ) -> str:
        """Why the call is not made, "" when it may be."""
        if verdict.outcome == "deny":
            return f"blocked: the person's policies deny it ({verdict.rule}): {verdict.summary}"
        wants = [(verdict.summary, verdict.grant)] if verdict.outcome == "ask" else []
        approvals, rules = self._approvals, self._approvals.rules(session)
        for wish in await self._hooks.decide(**facts):
            if wish.action == "block":
                return f"blocked: {wish.reason}"
            wants += [(wish.reason, wish.rule)] * (mark(wish.rule) not in rules)
        request = approvals.left(session, verdict.digest) if wants else ""
        if wants and not request:
            summary = middle("; ".join(why for why, _ in wants), WIDTH)
            grants = [rule for _, rule in wants]
            grants = grants if all(grants) else []
            request, choice, by = await approvals.ask(session, turn, summary, verdict, grants)
            await self._hooks.fire("post_approval_response", **facts, choice=choice, by=by)
            if choice == "deny":
                how = "nobody answered the question in time"
                return f"not done: {how if by == 'timeout' else 'the person said no'}"
        spec, act = self.tools.get(verdict.act.tool), verdict.act
        changed = spec is not None and spec.code != act.code  # while a person was asked
        if changed or wants and not approvals.take(request, act.digest):
            return "not done: it is no longer the call that was approved"
        return ""
