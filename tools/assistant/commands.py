"""Commands about the conversation and the device, as tools that rules call and no model sees: undo, stop,
repeat, and what only a device can do, which goes to it as an event (core/engine/README.md, "Commands of the device").

Invariant: a command changes only what it names; what a device makes of its event is the device's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.engine.reader import Past
from exo.core.plugins.registry import Core, PluginContext
from exo.core.toolbox.registry import HIDDEN, Context
from exo.tools.assistant.offer import TOOL, once
from exo.tools.assistant.tongue import told
from exo.tools.tasks.plugin import schedule_of
from exo.tools.tasks.table import Task


@dataclass(frozen=True)
class Commands:
    """What they work with."""

    core: Core

    def register(self, ctx: PluginContext) -> None:
        for function in (self.undo, self.stop, self.repeat, self.device):
            ctx.register_action(function, toolset=HIDDEN)
        ctx.register_action(self.ask, TOOL, toolset=HIDDEN)

    async def ask(
        self,
        context: Context,
        text: str,
        language: str,
        at: str,
        seal: str,
        tool: str = "",
        args: dict[str, Any] | None = None,
        said: str = "",
        nonce: str = "",
    ) -> str:
        """Ask back, once; what the answer does is in the arguments (offer.py). A call that a model copies from what it was
        shown asks nothing."""
        if not once(seal):
            raise ExoError("ask", "that question was asked already")
        return text

    async def undo(self, context: Context) -> str:
        """Take the turn before back, and the timers and reminders that it set, unless they all rang already."""
        before = self.core.before(context.session)
        while before is not None and before.calls and before.calls[-1][0] == TOOL:
            self.core.undo(context.session)  # a question back did nothing
            before = self.core.before(context.session)
        if before is None:
            return told(context.language, "no_undo")
        made = self._set_by(before, context.session)
        if made and not any(each.slot for each in made):
            names = [each.label or told(context.language, "untitled") for each in made]
            return told(context.language, "rung", what=", ".join(names))
        self.core.undo(context.session)
        if made:
            schedule_of(self.core).cancel([each.id for each in made])
        return told(context.language, "undo", text=before.said)

    def _set_by(self, turn: Past, session: str) -> list[Task]:
        """The timers and reminders that a turn set; those that were taken back since are not among them."""
        calls = [call for call in turn.calls if call[0] in ("timer", "reminder")]
        rows = schedule_of(self.core).newest(session) if calls else []
        made: list[Task] = []
        for name, args in reversed(calls):
            label = args.get("label") or args.get("text") or ""
            for row in rows:
                if row not in made and row.set_by(name, label, args.get("seconds")):
                    made.append(row)
                    break
        return made

    async def stop(self, context: Context) -> str:
        """Be still: nothing runs any more, and a device ends what it says."""
        self.core.panel(context.session, "stop", {})
        return told(context.language, "stop")

    async def repeat(self, context: Context) -> str:
        """Say the last answer again."""
        before = self.core.before(context.session, True)
        return before.reply if before and before.reply else told(context.language, "no_repeat")

    async def device(
        self, context: Context, action: str, value: int | None = None, delta: int = 0
    ) -> str:
        """Have the device do something."""
        data = {"value": value} if value is not None else {"delta": delta} if delta else {}
        self.core.panel(context.session, action, data)
        how = "_up" if delta > 0 else "_down" if delta < 0 else "_off" if value == 0 else ""
        return told(context.language, action + how, value=value)
