"""The companion's own tools: time, timers, reminders, notes, messages; registered through the same hooks as
a plugin's. Tools that work on the machine (files, shell, web) are a plugin."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder, write_atomic
from exo.core.plugins.registry import Core, PluginContext
from exo.core.toolbox.registry import HIDDEN, Context
from exo.core.toolbox.workers import call
from exo.tools.assistant.tongue import NAMES, duration, fold, moment, told
from exo.tools.assistant.when import read_time, wholes
from exo.tools.tasks.plugin import schedule_of
from exo.tools.tasks.repeat import Repeat
from exo.tools.tasks.scheduler import Scheduler
from exo.tools.tasks.table import Task

Seconds = Annotated[float, {"minimum": 1, "maximum": 30 * 24 * 3600}]
Minutes = Annotated[
    int,
    {"minimum": 0, "maximum": 30 * 24 * 60, "description": "minutes between, in place of repeat"},
]
When = Annotated[str, {"description": "18:30, tomorrow 9:00, or an ISO date and time"}]


@cache
def _alarms() -> set[str]:
    """What reminders that wake are called, folded."""
    return {fold(told(name, "alarm")) for name in NAMES}


@dataclass(frozen=True)
class Builtin:
    """What the built-in tools work with."""

    core: Core

    @property
    def clock(self) -> Clock:
        return self.core.clock

    @property
    def timers(self) -> Scheduler:
        """Raises ExoError where nobody keeps them."""
        return schedule_of(self.core)

    def register(self, ctx: PluginContext) -> None:
        seen: tuple[Callable[..., Any], ...] = (self.time, self.timer, self.reminder, self.note)
        for function in seen:
            ctx.register_action(function, toolset="assistant")
        ctx.register_action(self.list_timers, "timers", toolset=HIDDEN)
        ctx.register_action(self.cancel, toolset=HIDDEN)
        ctx.register_action(self.add_time, toolset=HIDDEN)
        ctx.register_action(self.set_time, toolset=HIDDEN)
        ctx.register_action(self.send_message, toolset="messages", risk="high")

    # ---- the tools; what a docstring says first is what a model reads ------------------------------

    def time(self, context: Context) -> str:
        """Tell the date and the time of day."""
        return told(context.language, "time", **moment(self.clock.local(), context.language))

    async def timer(self, context: Context, seconds: Seconds, label: str = "") -> str:
        """Start a countdown that rings."""
        return self._set_timer(context, seconds, label)

    def _set_timer(self, context: Context, seconds: float, label: str, instead: str = "") -> str:
        timer = self.timers.count_down(context.session, seconds, label, instead)
        until = f"{self.clock.local(timer.due):%H:%M:%S}"
        name = told(context.language, "label", label=label) if label else ""
        span = duration(seconds, context.language)
        return told(context.language, "timer", label=name, span=span, until=until)

    async def reminder(
        self,
        context: Context,
        at: When,
        text: str,
        repeat: Repeat | None = None,
        every: Minutes = 0,
    ) -> str:
        """Remind the person at a time, once or again and again."""
        filled(text)
        if repeat and every:
            raise ExoError("set a reminder", "it comes again `repeat` or `every`, not both")
        when = read_time(at, self.clock.local())
        timer = self.timers.remind(
            context.session, when, text, f"every {every}m" if every else repeat or ""
        )
        facts = moment(self.clock.local(timer.due), context.language, timer.repeat)
        return told(context.language, "reminder", **facts, text=text)

    async def list_timers(self, context: Context, what: str = "") -> str:
        """Tell what is set, or what is of timers or of reminders."""
        rows = self._set(what)
        if not rows:
            return told(context.language, f"none_{what}" if what else "no_timers")
        lines = [told(context.language, "timers", count=len(rows))]
        return "\n".join(lines + self._numbered(rows, context.language))

    async def cancel(
        self,
        context: Context,
        what: str = "",
        label: str = "",
        which: str = "",
        number: int = 0,
        until: str = "",
    ) -> str:
        """Let timers or reminders not ring: `which` is last (if it rings at `until`, as a clock shows it), or
        all, `number` counts them as they are listed; where several are left, asks which."""
        rows = self._set(what)
        if which == "last":
            last = [each for each in self.timers.newest(context.session)[:1] if each in rows]
            rows = [
                each for each in last if f"{self.clock.local(each.due):%H:%M:%S}".startswith(until)
            ]
        called = [each for each in rows if fold(label) in fold(each.label)]
        rows = called or [each for each in rows if self._rings(each, label)]
        rows = rows[number - 1 : number] if number else rows
        if not rows:
            return told(context.language, "no_timer")
        if len(rows) > 1 and not which:
            lines = [told(context.language, "which"), *self._numbered(rows, context.language)]
            return "\n".join(lines)
        self.timers.cancel([each.id for each in rows])
        names = [each.label or told(context.language, "untitled") for each in rows]
        return told(context.language, "cancelled", what=", ".join(names))

    async def add_time(self, context: Context, seconds: Seconds) -> str:
        """Let the timer ring later, of several the last one."""
        rows = [each for each in self.timers.pending() if not each.first][-1:]
        if not rows:
            return told(context.language, "no_timer")
        left = (rows[0].due - self.clock.now_ms()) / 1000
        return self._set_timer(context, max(1, left + seconds), rows[0].label, rows[0].id)

    def _set(self, what: str) -> list[Task]:
        """The timers or reminders that are to come; all for ""; alarms, or the reminders where none is one."""
        rows = self.timers.pending()
        if what == "alarm" and (woken := [row for row in rows if fold(row.label) in _alarms()]):
            return woken
        return [row for row in rows if not what or bool(row.first) == (what != "timer")]

    def _rings(self, row: Task, said: str) -> bool:
        """Whether it rings when `said` says: "boxing day", "half past six"."""
        at, now = self.clock.local(row.due), self.clock.local()
        for name in NAMES if said else ():
            for when in (*wholes(said, now, name), *wholes(said, now, name, twelve=False)):
                if when.parts - {"date", "clock", "part"}:
                    continue
                day = "date" not in when.parts or when.at.date() == at.date()
                minute = f"{when.at:%H:%M}" == f"{at:%H:%M}"
                if day and (minute or not when.parts & {"clock", "part"}):
                    return True
        return False

    async def set_time(self, context: Context, seconds: float = 0, count: float = 0) -> str:
        """Let the only timer, or of several the last one, run for `seconds` from now, or for `count` of what it was counted in."""
        rows = self._set("timer")[-1:]
        if not rows:
            return told(context.language, "none_timer")
        if count:
            whole = rows[0].seconds
            seconds = count * (
                3600 if whole % 3600 == 0 else 60 if whole >= 120 or whole == 60 else 1
            )
        return self._set_timer(context, seconds, rows[0].label, rows[0].id)

    def _numbered(self, rows: list[Task], spoken: str) -> list[str]:
        lines = []
        for number, row in enumerate(rows, 1):
            label = f"{row.label}: " if row.label else ""
            if row.first:
                facts = moment(self.clock.local(row.due), spoken, row.repeat)
                said = told(spoken, "at", label=label, **facts)
            else:
                span = duration((row.due - self.clock.now_ms()) / 1000, spoken)
                said = told(spoken, "left", label=label, span=span)
            lines.append(f"{number}. {said}")
        return lines

    def note(self, context: Context, text: str) -> str:
        """Write down a note for the person."""
        filled(text)
        make_folder(self.core.notes)
        now = self.clock.local()
        path = self.core.notes / f"{now:%Y-%m-%dT%H%M%S}-{secrets.token_hex(3)}.md"
        write_atomic(path, f"+++\nwritten = {now.isoformat(timespec='seconds')}\n+++\n\n{text}\n")
        return told(context.language, "note", text=text)

    async def send_message(self, to: str, text: str, channel: str = "") -> str:
        """Send a message to somebody through a channel."""
        name, send = self.core.channels.pick(channel)
        return str(await call(send, to, text) or f"Sent to {to} through {name}.")


def filled(text: str) -> None:
    """Raises ExoError for a text that says nothing."""
    if not text.strip():
        raise ExoError("note it", "the text is empty", "say what to note or to remind of")
