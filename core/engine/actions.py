"""A tool call on its way: hooks may stop it, a person may be asked, the tool runs, hooks see and rewrite
the result. One way for the calls of a model, of a rule and of a client.

Invariant: `run` gives every call one result; it raises only for a disk that refuses or a cancellation."""

from __future__ import annotations

import time
from typing import Any

from exo.core.engine.approvals import Approvals
from exo.core.plugins.hooks import Hooks
from exo.core.protocol.schema import Call, ToolResult
from exo.core.toolbox.registry import Context, Toolbox


class Actions:
    """Puts hooks and approvals around the toolbox."""

    def __init__(self, tools: Toolbox, hooks: Hooks, approvals: Approvals) -> None:
        self.tools, self._hooks, self._approvals = tools, hooks, approvals

    async def run(self, call: Call, context: Context) -> tuple[ToolResult, int]:
        """Return the result and the milliseconds that the tool itself took."""
        if fault := self.tools.fault(call.tool, call.args, context):
            return ToolResult(call.id, False, fault), 0
        facts: dict[str, Any] = {
            "tool_name": call.tool,
            "args": call.args,
            "risk": self.tools.risk(call.tool, call.args),
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

        result = await self.tools.run(call.id, call.tool, call.args, context, rewrite)
        spent = round((time.monotonic() - begun) * 1000)
        await self._hooks.fire(
            "post_tool_call", **facts, result=result.text, ok=result.ok, duration_ms=spent
        )
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
