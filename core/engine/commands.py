"""Commands about the conversation and the device, as tools that rules call and no model sees: undo, stop,
repeat, and what only a device can do, which goes to it as an event (README.md, "Commands of the device").

Invariant: a command changes only what it names; what a device makes of its event is the device's."""

from __future__ import annotations

from dataclasses import dataclass

from exo.core.context.engine import ContextEngine
from exo.core.decide.rules import Past
from exo.core.decide.tongue import told
from exo.core.engine.sessions import Sessions
from exo.core.plugins.registry import PluginContext
from exo.core.protocol.schema import Message, UiPanel
from exo.core.server.hub import Hub
from exo.core.toolbox.registry import HIDDEN, Context
from exo.core.toolbox.timers import Timers


@dataclass(frozen=True)
class Commands:
    """What they work with."""

    sessions: Sessions
    hub: Hub
    context: ContextEngine
    timers: Timers

    def register(self, ctx: PluginContext) -> None:
        for function in (self.undo, self.stop, self.repeat, self.device):
            ctx.register_action(function, toolset=HIDDEN)

    async def undo(self, context: Context) -> str:
        """Take the turn before back, and the timer or reminder that it set."""
        session = context.session
        before, messages = past(self.sessions.messages(session)), self.sessions.messages(session)
        if before is None:
            return told(context.language, "no_undo")
        running = self.sessions.last_turn(session)
        with self.hub.commit(durable=True) as add:
            self.sessions.undo(session, 1, running)
            kept = {message.id for message in self.sessions.messages(session)}
            old = [m.id for m in messages if m.id in kept][:-2]  # all but this turn's own
            self.context.forget_after(session, old[-1] if old else "")
            self.sessions.tell(add, session)
        if any(name in ("timer", "reminder") for name, _ in before.calls):
            self.timers.cancel([each.id for each in self.timers.newest(session)])
        return told(context.language, "undo", text=before.said)

    async def stop(self, context: Context) -> str:
        """Be still: nothing runs any more, and a device ends what it says."""
        self.hub.publish(context.session, UiPanel("device", "command", "stop", {}))
        return told(context.language, "stop")

    async def repeat(self, context: Context) -> str:
        """Say the last answer again."""
        before = past(self.sessions.messages(context.session))
        return before.reply if before and before.reply else told(context.language, "no_repeat")

    async def device(
        self, context: Context, action: str, value: int | None = None, delta: int = 0
    ) -> str:
        """Have the device do something."""
        data = {"value": value} if value is not None else {"delta": delta} if delta else {}
        self.hub.publish(context.session, UiPanel("device", "command", action, data))
        how = "_up" if delta > 0 else "_down" if delta < 0 else "_off" if value == 0 else ""
        return told(context.language, action + how, value=value)


def past(messages: list[Message]) -> Past | None:
    """The last turn before the one whose words stand last among the person's."""
    starts = [n for n, message in enumerate(messages) if message.role == "user"]
    if len(starts) < 2:
        return None
    first, *turn = messages[starts[-2] : starts[-1]]
    calls = [(call.tool, call.args) for message in turn for call in message.calls or []]
    replies = [m.text for m in turn if m.role == "assistant" and not m.calls]
    return Past(first.text, calls, replies[-1] if replies else "")
