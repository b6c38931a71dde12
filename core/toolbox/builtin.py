"""The tools that come with Exo, registered through the same hooks as a plugin's."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.settings import Settings
from exo.core.plugins.hooks import Decision, approve
from exo.core.plugins.registry import Channels, PluginContext
from exo.core.toolbox import files, schedule, web
from exo.core.toolbox.patching import apply_patch
from exo.core.toolbox.registry import Context, Output, ToolSpec
from exo.core.toolbox.searching import search_files
from exo.core.toolbox.shell import bash
from exo.core.toolbox.timers import Timers
from exo.core.toolbox.workers import call

MAX_TIMER = 30 * 24 * 3600  # seconds
MAX_COMMAND = 3600  # seconds
_TEXT = {"type": "string"}


@dataclass(frozen=True)
class Builtin:
    """What the built-in tools work with; `notes` is the folder where notes are kept."""

    clock: Clock
    timers: Timers
    notes: Path
    settings: Settings
    channels: Channels

    def register(self, ctx: PluginContext) -> None:
        for spec in (*self._assistant(), *self._files(), *self._outside()):
            ctx.register_tool(spec)
        ctx.register_hook("pre_tool_call", self.ask, guard=True)

    # ---- who may do what, until a gate decides by consequence --------------------------------------

    def ask(self, tool_name: str, args: dict[str, Any], risk: str, needs: str) -> Decision | None:
        """Ask the person before a tool of high risk (or medium, by the setting tools.ask)."""
        asked = {"high": ("high",), "medium": ("high", "medium"), "never": ()}
        if risk not in asked[self.settings.text("tools.ask")]:
            return None
        return approve(summary(tool_name, args, needs), rule_key(tool_name, args))

    # ---- time, timer, reminder, note ---------------------------------------------------------------

    def _assistant(self) -> list[ToolSpec]:
        seconds = {"type": "number", "minimum": 1, "maximum": MAX_TIMER}
        repeat = {"type": "string", "enum": list(schedule.REPEATS)}
        at = {"type": "string", "description": "18:30, tomorrow 9:00, or an ISO date and time"}
        return [
            _spec("time", "Tell the date and the time of day.", {}, "", self._time, "assistant"),
            _spec(
                "timer",
                "Start a countdown that rings.",
                {"seconds": seconds, "label": _TEXT},
                "seconds",
                self._timer,
                "assistant",
            ),
            _spec(
                "reminder",
                "Remind the person at a time, once or again and again.",
                {"at": at, "text": _TEXT, "repeat": repeat},
                "at text",
                self._reminder,
                "assistant",
            ),
            _spec(
                "note",
                "Write down a note for the person.",
                {"text": _TEXT},
                "text",
                self._note,
                "assistant",
            ),
        ]

    def _time(self, context: Context) -> str:
        now = self.clock.local()
        return f"It is {now:%H:%M} on {now:%A}, {now.day} {now:%B} {now.year} ({now:%Z})."

    async def _timer(self, context: Context, seconds: float, label: str = "") -> str:
        due = self.timers.add(context.session, seconds, label).due
        name = f" for {label}" if label else ""
        return f"Timer{name} set: {duration(seconds)}, until {self.clock.local(due):%H:%M:%S}."

    async def _reminder(self, context: Context, at: str, text: str, repeat: str = "") -> str:
        if not text.strip():
            raise ExoError("set a reminder", "the text is empty", "say what to remind of")
        when = schedule.read_time(at, self.clock.local())
        due = self.clock.local(self.timers.remind(context.session, when, text, repeat).due)
        again = f", {repeat}" if repeat else ""
        return f"Reminder set for {due:%A}, {due.day} {due:%B %Y, %H:%M} ({due:%Z}){again}: {text}"

    def _note(self, context: Context, text: str) -> str:
        if not text.strip():
            raise ExoError("note", "the text is empty", "say what to note")
        make_folder(self.notes)
        now = self.clock.local()
        path = self.notes / f"{now:%Y-%m-%dT%H%M%S}-{secrets.token_hex(3)}.md"
        write_atomic(path, f"+++\nwritten = {now.isoformat(timespec='seconds')}\n+++\n\n{text}\n")
        return f"Noted: {text}"

    # ---- files -------------------------------------------------------------------------------------

    def _files(self) -> list[ToolSpec]:
        lines = {"type": "integer", "minimum": 1, "maximum": 10**5}
        offset = {"type": "integer", "minimum": 1, "maximum": 10**9}
        where = " in the working folder."
        return [
            _spec(
                "read_file",
                f"Read lines of a text file{where}",
                {"path": _TEXT, "offset": offset, "limit": lines},
                "path",
                files.read_file,
                "files",
            ),
            _spec(
                "list_dir",
                f"List a folder{where}",
                {"path": _TEXT},
                "path",
                files.list_dir,
                "files",
            ),
            _spec(
                "search_files",
                f"Find lines by a regular expression in the files of a folder{where}",
                {"pattern": _TEXT, "path": _TEXT},
                "pattern",
                search_files,
                "files",
                timeout=0,
            ),
            _spec(
                "write_file",
                f"Make or replace a text file{where}",
                {"path": _TEXT, "content": _TEXT},
                "path content",
                files.write_file,
                "files",
                risk="medium",
            ),
            _spec(
                "edit_file",
                f"Replace the one passage `old` by `new` in a text file{where}",
                {"path": _TEXT, "old": _TEXT, "new": _TEXT},
                "path old new",
                files.edit_file,
                "files",
                risk="medium",
            ),
            _spec(
                "apply_patch",
                f"Apply a unified diff or a *** Begin Patch to files{where}",
                {"patch": _TEXT},
                "patch",
                apply_patch,
                "files",
                risk="medium",
            ),
        ]

    # ---- the world outside the folder ----------------------------------------------------------------

    def _outside(self) -> list[ToolSpec]:
        timeout = {"type": "number", "minimum": 0.1, "maximum": MAX_COMMAND}
        methods = {"type": "string", "enum": list(web.METHODS)}
        headers = {"type": "object", "additionalProperties": {"type": "string"}}
        return [
            _spec(
                "bash",
                "Run a shell command in the working folder; it cannot ask for input.",
                {"command": _TEXT, "timeout": timeout},
                "command",
                self._bash,
                "shell",
                risk="high",
                timeout=0,
            ),
            _spec(
                "http_request",
                "Send an HTTP request and read the answer.",
                {"method": methods, "url": _TEXT, "headers": headers, "body": _TEXT},
                "method url",
                web.http_request,
                "web",
                risk=web.risk,
                available=self._web_off,
            ),
            _spec(
                "send_message",
                "Send a message to somebody through a channel.",
                {"to": _TEXT, "text": _TEXT, "channel": _TEXT},
                "to text",
                self._send_message,
                "messages",
                risk="high",
            ),
        ]

    async def _bash(self, context: Context, command: str, timeout: float | None = None) -> Output:
        limit = self.settings.number("tool.timeout") if timeout is None else timeout
        return await bash(context, command, limit, self.settings.count("deltas.join_ms") / 1000)

    def _web_off(self) -> str:
        if self.settings.origin("tools.http")[0]:
            return ""
        return "requests to the network are off; a person can set tools.http to true"

    async def _send_message(self, context: Context, to: str, text: str, channel: str = "") -> str:
        name, send = self.channels.pick(channel)
        return str(await call(send, to, text) or f"Sent to {to} through {name}.")


def summary(tool: str, args: dict[str, Any], needs: str = "") -> str:
    """What a person is asked, in a line that a small screen can show."""
    forms = {
        "bash": "Run: {command}",
        "write_file": "Write {path}",
        "edit_file": "Edit {path}",
        "http_request": "{method} {url}",
        "send_message": "Send to {to}: {text}",
    }
    if tool in forms:
        text = forms[tool].format(**args)
    else:
        text = f"{tool} {json.dumps(args, ensure_ascii=False)}" + (f" ({needs})" if needs else "")
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:199] + "…"


def rule_key(tool: str, args: dict[str, Any]) -> str:
    """What `allow_always` allows: for a command the very same one, for a request the same host, for a
    message the same person, for the rest the tool."""
    if tool == "bash":
        return f"bash {args.get('command')}"
    if tool == "http_request":
        parts = urlsplit(str(args.get("url")))
        return f"http_request {args.get('method')} {parts.scheme}://{parts.netloc}"
    if tool == "send_message":
        return f"send_message {args.get('channel', '')} {args.get('to')}"
    return tool


def duration(seconds: float) -> str:
    """Words for a span: "1 hour 30 minutes"."""
    left, parts = round(seconds), []
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts) or "0 seconds"


def _spec(
    name: str,
    description: str,
    properties: dict[str, Any],
    required: str,
    handler: Callable[..., Any],
    toolset: str,
    **more: Any,
) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, parameters, handler, toolset=toolset, **more)
