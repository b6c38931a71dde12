"""Commands about the conversation and the device, as tools that rules call and no model sees: undo, stop,
repeat, and what only a device can do, which goes to it as an event (core/engine/README.md, "Commands of the device").

Invariant: a command changes only what it names; what a device makes of its event is the device's."""

from __future__ import annotations

from dataclasses import dataclass

from exo.core.plugins.registry import Core, PluginContext
from exo.core.toolbox.registry import HIDDEN, Context
from exo.tools.assistant.tongue import told


@dataclass(frozen=True)
class Commands:
    """What they work with."""

    core: Core

    def register(self, ctx: PluginContext) -> None:
        for function in (self.undo, self.stop, self.repeat, self.device):
            ctx.register_action(function, toolset=HIDDEN)

    async def undo(self, context: Context) -> str:
        """Take the turn before back, and the timer or reminder that it set."""
        before = self.core.undo(context.session)
        if before is None:
            return told(context.language, "no_undo")
        if any(name in ("timer", "reminder") for name, _ in before.calls):
            timers = self.core.timers
            timers.cancel([each.id for each in timers.newest(context.session)])
        return told(context.language, "undo", text=before.said)

    async def stop(self, context: Context) -> str:
        """Be still: nothing runs any more, and a device ends what it says."""
        self.core.panel(context.session, "stop", {})
        return told(context.language, "stop")

    async def repeat(self, context: Context) -> str:
        """Say the last answer again."""
        before = self.core.before(context.session)
        return before.reply if before and before.reply else told(context.language, "no_repeat")

    async def device(
        self, context: Context, action: str, value: int | None = None, delta: int = 0
    ) -> str:
        """Have the device do something."""
        data = {"value": value} if value is not None else {"delta": delta} if delta else {}
        self.core.panel(context.session, action, data)
        how = "_up" if delta > 0 else "_down" if delta < 0 else "_off" if value == 0 else ""
        return told(context.language, action + how, value=value)
