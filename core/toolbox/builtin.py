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
from exo.core.decide.tongue import fold, moment, told
from exo.core.decide.when import read_time
from exo.core.plugins.hooks import Decision, approve
from exo.core.plugins.registry import Channels, PluginContext
from exo.core.toolbox import files, schedule, shell, web
from exo.core.toolbox.registry import HIDDEN, Context, Output
from exo.core.toolbox.timers import Timer, Timers
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
        offer(HIDDEN, self.list_timers, name="timers")
        offer(HIDDEN, self.cancel, self.add_time)
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

    def time(self, context: Context) -> str:
        """Tell the date and the time of day."""
        return told(context.language, "time", **moment(self.clock.local(), context.language))

    async def timer(self, context: Context, seconds: Seconds, label: str = "") -> str:
        """Start a countdown that rings."""
        until = f"{self.clock.local(self.timers.add(context.session, seconds, label).due):%H:%M:%S}"
        name = told(context.language, "label", label=label) if label else ""
        span = duration(seconds, context.language)
        return told(context.language, "timer", label=name, span=span, until=until)

    async def reminder(
        self, context: Context, at: When, text: str, repeat: schedule.Repeat | None = None
    ) -> str:
        """Remind the person at a time, once or again and again."""
        filled(text)
        when = read_time(at, self.clock.local())
        timer = self.timers.remind(context.session, when, text, repeat or "")
        facts = moment(self.clock.local(timer.due), context.language, timer.repeat)
        return told(context.language, "reminder", **facts, text=text)

    async def list_timers(self, context: Context) -> str:
        """Tell what is set."""
        rows = self.timers.pending()
        if not rows:
            return told(context.language, "no_timers")
        lines = [told(context.language, "timers", count=len(rows))]
        return "\n".join(lines + self._numbered(rows, context.language))

    async def cancel(
        self, context: Context, what: str, label: str = "", which: str = "", number: int = 0
    ) -> str:
        """Let timers or reminders not ring: `which` is last, or all, `number` counts them as they are
        listed; where several are left, asks which."""
        rows = [each for each in self.timers.pending() if bool(each.first) == (what != "timer")]
        if which == "last":
            rows = [each for each in self.timers.newest(context.session) if each in rows]
        rows = [each for each in rows if fold(label) in fold(each.label)]
        rows = rows[number - 1 : number] if number else rows
        if not rows:
            return told(context.language, "no_timer")
        if len(rows) > 1 and not which:
            lines = [told(context.language, "which"), *self._numbered(rows, context.language)]
            return "\n".join(lines)
        self.timers.cancel(rows)
        names = [each.label or told(context.language, "untitled") for each in rows]
        return told(context.language, "cancelled", what=", ".join(names))

    async def add_time(self, context: Context, seconds: Seconds) -> str:
        """Let the timer ring later, of several the last one."""
        rows = [each for each in self.timers.pending() if not each.first][-1:]
        if not rows:
            return told(context.language, "no_timer")
        self.timers.cancel(rows)
        left = (rows[0].due - self.clock.now_ms()) / 1000
        return await self.timer(context, max(1, left + seconds), rows[0].label)

    def _numbered(self, rows: list[Timer], language: str) -> list[str]:
        lines = []
        for number, row in enumerate(rows, 1):
            label = f"{row.label}: " if row.label else ""
            if row.first:
                facts = moment(self.clock.local(row.due), language, row.repeat)
                said = told(language, "at", label=label, **facts)
            else:
                span = duration((row.due - self.clock.now_ms()) / 1000, language)
                said = told(language, "left", label=label, span=span)
            lines.append(f"{number}. {said}")
        return lines

    def note(self, context: Context, text: str) -> str:
        """Write down a note for the person."""
        filled(text)
        make_folder(self.notes)
        now = self.clock.local()
        path = self.notes / f"{now:%Y-%m-%dT%H%M%S}-{secrets.token_hex(3)}.md"
        write_atomic(path, f"+++\nwritten = {now.isoformat(timespec='seconds')}\n+++\n\n{text}\n")
        return told(context.language, "note", text=text)

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


def duration(seconds: float, language: str = "en") -> str:
    """Words for a span: "1 hour 30 minutes"."""
    left, parts = round(seconds), []
    words = [each.split(",") for each in told(language, "units").split(";")]
    for (one, many), size in zip(reversed(words), (86400, 3600, 60, 1), strict=True):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {one if count == 1 else many}")
    return " ".join(parts) or f"0 {words[0][1]}"
