"""The companion's own tools: time, timers, reminders, notes, messages; registered through the same hooks as
a plugin's. Tools that work on the machine (files, shell, web) are a plugin."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.settings import Settings
from exo.core.plugins.registry import Channels, PluginContext
from exo.core.toolbox import schedule
from exo.core.toolbox.registry import Context
from exo.core.toolbox.timers import Timers
from exo.core.toolbox.workers import call

Seconds = Annotated[float, {"minimum": 1, "maximum": 30 * 24 * 3600}]
When = Annotated[str, {"description": "18:30, tomorrow 9:00, or an ISO date and time"}]


@dataclass(frozen=True)
class Builtin:
    """What the built-in tools work with; `notes` is the folder where notes are kept."""

    clock: Clock
    timers: Timers
    notes: Path
    settings: Settings
    channels: Channels

    def register(self, ctx: PluginContext) -> None:
        for function in (self.time, self.timer, self.reminder, self.note):
            ctx.register_action(function, toolset="assistant")
        ctx.register_action(self.send_message, toolset="messages", risk="high")

    # ---- the tools; what a docstring says first is what a model reads ------------------------------

    def time(self) -> str:
        """Tell the date and the time of day."""
        now = self.clock.local()
        return f"It is {now:%H:%M} on {now:%A}, {now.day} {now:%B} {now.year} ({now:%Z})."

    async def timer(self, context: Context, seconds: Seconds, label: str = "") -> str:
        """Start a countdown that rings."""
        due = self.timers.add(context.session, seconds, label).due
        name = f" for {label}" if label else ""
        return f"Timer{name} set: {duration(seconds)}, until {self.clock.local(due):%H:%M:%S}."

    async def reminder(
        self, context: Context, at: When, text: str, repeat: schedule.Repeat | None = None
    ) -> str:
        """Remind the person at a time, once or again and again."""
        filled(text)
        when = schedule.read_time(at, self.clock.local())
        timer = self.timers.remind(context.session, when, text, repeat or "")
        due, again = self.clock.local(timer.due), f", {repeat}" if repeat else ""
        return f"Reminder set for {due:%A}, {due.day} {due:%B %Y, %H:%M} ({due:%Z}){again}: {text}"

    def note(self, text: str) -> str:
        """Write down a note for the person."""
        filled(text)
        make_folder(self.notes)
        now = self.clock.local()
        path = self.notes / f"{now:%Y-%m-%dT%H%M%S}-{secrets.token_hex(3)}.md"
        write_atomic(path, f"+++\nwritten = {now.isoformat(timespec='seconds')}\n+++\n\n{text}\n")
        return f"Noted: {text}"

    async def send_message(self, to: str, text: str, channel: str = "") -> str:
        """Send a message to somebody through a channel."""
        name, send = self.channels.pick(channel)
        return str(await call(send, to, text) or f"Sent to {to} through {name}.")


def filled(text: str) -> None:
    """Raises ExoError for a text that says nothing."""
    if not text.strip():
        raise ExoError("note it", "the text is empty", "say what to note or to remind of")


def duration(seconds: float) -> str:
    """Words for a span: "1 hour 30 minutes"."""
    left, parts = round(seconds), []
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts) or "0 seconds"
