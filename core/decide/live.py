"""Decisions in a running exod: what is asked of each message, a second look at each call of a tool, and the
command `decide`. Owns where an answer has an effect, and how small that is.

Invariant: an answer here finds more, looks deeper, asks the person first or names the tool that a message wants
where no rule took it; it allows nothing: each call goes through the gate, and those of a tool so named run only
at a low risk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.decide.decider import Decider
from exo.core.decide.question import MECHANISMS, MILLION, asked
from exo.core.plugins.hooks import Decision, approve
from exo.core.plugins.registry import PluginContext

READ = [
    MECHANISMS[name] for name in ("request.kind", "recall.depth", "request.tool", "said.correction")
]
LIKELY = 0.5  # nine of ten are right above it, but of questions (models/README.md)
PATIENCE = 60.0  # seconds a person may name at the command line


@dataclass(frozen=True)
class Read:
    """The kind of request ("": nobody is sure) and the likeliest one ("": LIKELY is not reached); whether much of
    what is known bears on it; the tool that is wanted ("": none is) and how sure that is, 0 to 1."""

    kind: str = ""
    likely: str = ""
    deep: bool = False
    tool: str = ""
    sure: float = 0.0


class Decisions:
    """`turn_of` is the turn that runs in a session, "" for none."""

    def __init__(self, decider: Decider, turn_of: Callable[[str], str]) -> None:
        self._decider = decider
        self._turn_of = turn_of

    def register(self, ctx: PluginContext) -> None:
        ctx.register_hook("pre_tool_call", self.pre_tool_call)
        ctx.register_command("decide", self.command, "Answer a typed question with probabilities.")

    async def read(self, session: str, turn: str, text: str) -> Read:
        """What a message is that no rule takes. Never raises."""
        about: dict[str, Any] = {"session": session, "turn": turn}
        # what the rules do today for every message is to look for one fact
        ruled = {"recall.depth": "shallow"}
        with contextlib.suppress(ExoError):
            found = await self._decider.decide_all(READ, text, ruled, **about)
            kind, depth, tool = (found[each.name] for each in READ[:3])
            named = "" if tool.answer == "none" else tool.answer
            sure = tool.probabilities.get(named, 0) / MILLION
            best = max(kind.probabilities, key=kind.probabilities.__getitem__)
            likely = best if kind.probabilities[best] > LIKELY * MILLION else ""
            return Read(kind.answer, likely, depth.answer == "deep", named, sure)
        return Read()

    async def pre_tool_call(
        self, tool_name: str, args: dict[str, Any], risk: str, session_id: str
    ) -> Decision | None:
        """Ask the person where a call may be riskier than its risk says. What only looks or keeps a note is
        let be."""
        if risk == "low":
            return None
        about: dict[str, Any] = {"session": session_id, "tool": tool_name}
        about["turn"] = self._turn_of(session_id)
        state = " ".join([tool_name, *map(str, args.values())])
        found = await self._decider.decide(MECHANISMS["action.riskier"], state, **about)
        if found.answer != "yes":
            return None
        return approve(f"{tool_name} may do more than it seems", f"riskier {tool_name}")

    async def command(self, args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """{mechanism, state, options?: {name: meaning}, patience?} -> what `exo decide --json` prints."""
        name, state, options = (args.get(key) for key in ("mechanism", "state", "options"))
        patience = min(float(args.get("patience") or 0), PATIENCE)
        mechanism = asked(str(name or ""), options)
        if not isinstance(state, str) or not state.strip():
            raise ExoError(f"decide {mechanism.name}", "there is no state", "give a short text")
        return (await self._decider.decide(mechanism, state, patience=patience)).shown()
