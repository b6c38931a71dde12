"""The tools that come with Exo, registered through the same hooks as a plugin's."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.settings import Settings
from exo.core.decide.when import read_time
from exo.core.plugins.hooks import Decision, approve
from exo.core.plugins.registry import Channels, PluginContext
from exo.core.toolbox import files, schedule, shell, web
from exo.core.toolbox.registry import Context, Output
from exo.core.toolbox.timers import Timers
from exo.core.toolbox.workers import call

Seconds = Annotated[float, {"minimum": 1, "maximum": 30 * 24 * 3600}]
Timeout = Annotated[float, {"minimum": 0.1, "maximum": 3600}]
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
        def offer(toolset: str, *functions: Callable[..., Any], **more: Any) -> None:
            for function in functions:
                ctx.register_action(function, toolset=toolset, **more)

        offer("assistant", self.time, self.timer, self.reminder, self.note)
        offer("files", files.read_file, files.list_dir)
        offer("files", files.search_files, timeout=0)
        offer("files", files.write_file, files.edit_file, files.apply_patch, risk="medium")
        offer("shell", self.bash, risk="high", timeout=0)
        offer("web", web.http_request, risk=web.risk, available=self._web_off)
        offer("messages", self.send_message, risk="high")

    # ---- who may do what, where no gate decides by consequence -------------------------------------

    def register_ask(self, ctx: PluginContext) -> None:
        ctx.register_gate(self.ask)

    def ask(self, tool_name: str, args: dict[str, Any], risk: str, needs: str) -> Decision | None:
        """Ask the person before a tool of high risk (or medium, by the setting tools.ask)."""
        asked = {"high": ("high",), "medium": ("high", "medium"), "never": ()}
        if risk not in asked[self.settings.text("tools.ask")]:
            return None
        text = question(tool_name, args, needs)
        line = " ".join(text.split())
        if len(line) > 200:  # the end of a long command may be what matters
            line = f"{line[:120]} … {line[-77:]}"
        return approve(line, f"{tool_name} {text}")

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
        when = read_time(at, self.clock.local())
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

    async def bash(self, context: Context, command: str, timeout: Timeout = 0.0) -> Output:
        """Run a shell command in the working folder; it cannot ask for input."""
        limit = timeout or self.settings.number("tool.timeout")
        join = self.settings.count("deltas.join_ms") / 1000
        return await shell.bash(context, command, limit, join)

    async def send_message(self, to: str, text: str, channel: str = "") -> str:
        """Send a message to somebody through a channel."""
        name, send = self.channels.pick(channel)
        return str(await call(send, to, text) or f"Sent to {to} through {name}.")

    def _web_off(self) -> str:
        on = self.settings.origin("tools.http")[0]
        return "" if on else "requests to the network are off; a person can set tools.http to true"


def question(tool: str, args: dict[str, Any], needs: str = "") -> str:
    """What a person is asked, and what `allow_always` allows: the very same, no more."""
    forms = {
        "bash": "Run: {command}",
        "write_file": "Write {path}",
        "edit_file": "Edit {path}",
        "http_request": "{method} {url}",
        "send_message": "Send to {to}: {text}",
    }
    if tool in forms:
        more = {name: args[name] for name in ("headers", "body", "channel") if args.get(name)}
        text = forms[tool].format(**args)
        return text + (f" {json.dumps(more, ensure_ascii=False)}" if more else "")
    return f"{tool} {json.dumps(args, ensure_ascii=False)}" + (f" ({needs})" if needs else "")


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
