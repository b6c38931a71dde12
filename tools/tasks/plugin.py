"""Tasks in a running exod, as a plugin: the command `task`, and the loop that fires them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.plugins import PluginContext
from exo.core.protocol.schema import Call
from exo.tools.tasks.cron import following
from exo.tools.tasks.scheduler import Scheduler


def register(ctx: PluginContext) -> None:
    """Offer `task` and let the tasks run from the start on."""
    core = ctx.core
    if core is None or ctx.home is None:
        raise ValueError("tasks need a running exod with a home")
    home, kept = Home(ctx.home), dict[str, Any]()

    async def wake(session: str, tool: str, args: dict[str, Any]) -> str:
        result = await core.act(session, Call(f"wake-{tool}", tool, args))
        if not result.ok:
            raise ExoError(f"look whether there is news ({tool})", result.text)
        return result.text

    async def start() -> None:
        kept["tasks"] = tasks = Scheduler(
            home.state / "tasks.sqlite", core.clock, core.deliver, wake
        )
        kept["loop"] = asyncio.create_task(tasks.run())

    async def stop() -> None:
        if loop := kept.get("loop"):
            loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loop
            await kept["tasks"].stop()
            kept["tasks"].close()

    async def task(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """add {line, text, zone?, ask?, missed?, wake_if?, session?}, list, remove {id}."""
        tasks: Scheduler = kept["tasks"]
        match args.get("action"):
            case "add":
                zone = str(args.get("zone") or local_zone())
                following(
                    str(args.get("line", "")), core.clock.now_ms(), zone
                )  # before a session is made
                place = str(args.get("session") or session or core.new_session("Tasks"))
                more = {"ask": bool(args.get("ask")), "missed": str(args.get("missed") or "once")}
                line, text = str(args.get("line", "")), str(args.get("text", ""))
                return tasks.add(line, text, place, zone, wake=args.get("wake_if"), **more).row()  # type: ignore[arg-type]
            case "list":
                return {"tasks": [each.row() for each in tasks.every()]}
            case "remove":
                return tasks.remove(str(args.get("id", ""))).row()
        raise ExoError("exo task", "there are add, list and remove")

    ctx.register_command("task", task, "Tasks that come at their time: add, list, remove.")
    ctx.register_life(start, stop)


def local_zone() -> str:
    """The IANA name of this machine's zone: TZ, else /etc/localtime, else UTC."""
    with contextlib.suppress(OSError):
        link = os.environ.get("TZ", "").lstrip(":") or str(Path("/etc/localtime").readlink())
        return link.rpartition("zoneinfo/")[2]
    return "UTC"
