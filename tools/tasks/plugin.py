"""Timers, reminders and tasks in a running exod, as a plugin: it takes the seat `schedule`, and brings the commands
`task` and `cancel` and the loop that fires."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.plugins import PluginContext
from exo.core.plugins.registry import Core
from exo.core.protocol.schema import Call
from exo.core.toolbox.registry import check_args
from exo.tools.tasks.cron import following
from exo.tools.tasks.scheduler import Scheduler
from exo.tools.tasks.table import is_condition


def register(ctx: PluginContext, root: Path | None = None) -> None:
    """Take the seat, offer the commands, and fire from the start on. `root` is a home that `ctx` does not name."""
    core, root = ctx.core, root or ctx.home
    if core is None or root is None:
        raise ValueError("tasks need a running exod with a home")
    home, loops = Home(root), list[asyncio.Task[None]]()

    def usable(tool: str, args: dict[str, Any]) -> None:
        """Raises ExoError no_tool for a condition that cannot be looked at."""
        spec = core.tools.get(tool)
        why = "there is no tool of that name" if spec is None else spec.available()
        if why or spec is None:
            raise ExoError(f"look at {tool[:60]}", why, "see `exo tool list`", code="no_tool")
        if fault := check_args(spec.parameters, args):
            do = "give what it needs: --with JSON"
            raise ExoError(f"look at {tool[:60]}", fault, do, code="no_tool")

    async def wake(session: str, tool: str, args: dict[str, Any]) -> str:
        core.known(session)
        usable(tool, args)
        result = await core.act(session, Call(f"wake-{tool}", tool, args))
        if not result.ok:
            raise ExoError(f"look whether there is news ({tool})", result.text)
        return result.text

    tasks = Scheduler(home.state / "tasks.sqlite", core.clock, core.deliver, wake, home.sessions_db)

    async def start() -> None:
        try:
            tasks.begin()
        except ExoError as error:  # a disk that refuses: the loop tries on
            print(f"tasks: {error}", file=sys.stderr)
        loops.append(asyncio.create_task(tasks.run()))

    async def stop() -> None:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await tasks.stop()
        tasks.close()

    async def task(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """add {line, text, zone?, ask?, missed?, wake_if?, session?}, list, remove {id}."""
        match args.get("action"):
            case "add":
                line, text = str(args.get("line", "")), str(args.get("text", ""))
                zone = str(args.get("zone") or local_zone())
                following(line, core.clock.now_ms(), zone)  # before a session is made
                wake_if = args.get("wake_if")
                if isinstance(wake_if, dict) and is_condition(wake_if):
                    usable(wake_if["tool"], wake_if.get("args") or {})
                if place := str(args.get("session") or session or ""):
                    core.known(place)
                place = place or core.new_session("Tasks")
                more: dict[str, Any] = {"ask": bool(args.get("ask")), "wake": wake_if}
                missed = str(args.get("missed") or "once")
                return tasks.add(line, text, place, zone, missed=missed, **more).row()
            case "list":
                return {"tasks": tasks.rows()}
            case "remove":
                return tasks.remove(str(args.get("id", ""))).row()
        raise ExoError("exo task", "there are add, list and remove")

    async def cancel(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        return {"cancelled": tasks.cancel([str(args.get("id", ""))])}

    ctx.register_schedule(tasks)
    ctx.register_command("task", task, "Tasks that come at their time: add, list, remove.")
    ctx.register_command("cancel", cancel, "Take a timer, reminder or task back.")
    ctx.register_life(start, stop)


def schedule_of(core: Core) -> Scheduler:
    """The one that keeps timers and reminders in this exod. Raises ExoError where there is none."""
    found: Scheduler | None = core.slots.get("schedule")
    if found is None:
        do = "take it out of plugins.off, or see `exo doctor`"
        raise ExoError("use timers", "they are off: the plugin tasks is not loaded", do)
    return found


def local_zone() -> str:
    """The IANA name of this machine's zone: TZ where it is one (it may be a rule, "CET-1CEST"), else /etc/localtime,
    else UTC."""
    links = [os.environ.get("TZ", "").lstrip(":")]
    with contextlib.suppress(OSError):
        links.append(str(Path("/etc/localtime").readlink()))
    for link in filter(None, links):
        with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
            return ZoneInfo(link.rpartition("zoneinfo/")[2]).key
    return "UTC"
