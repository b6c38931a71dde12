"""Tasks that come at their time: asked of the model or told to the person. Owns which is due, the leases, and what
becomes of times that were missed; `deliver` is exod's, and does the same delivery once.

Invariant: a slot of a task is delivered once, also when the process is killed between delivery and the note that it
was: the key of a delivery is task and slot, and the slot moves on only after it. While the clock is unsure nothing
fires."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.sqlite import Database
from exo.tools.tasks.cron import following

LOOK = 30.0  # seconds between looks, for the wall clock may have been set
LATE = 120_000  # ms after which a slot counts as missed
LEASE = 300_000  # ms that a delivery may take before another may try
MOST = 100  # missed slots that are made up for by `all`
MISSED = ("once", "skip", "all")
Deliver = Callable[[str, str, str, bool], Awaitable[bool]]
Wake = Callable[[str, str, dict[str, Any]], Awaitable[str]]  # (session, tool, arguments) -> result
_COLUMNS = "id, line, zone, text, session, ask, missed, wake, since, slot, seen"


@dataclass(frozen=True)
class Task:
    """`line` is cron, @every or @at; `ask` has the model answer, else the text is told as it is; `wake` is ""
    or JSON {tool, args}: only when that gives something new does the task fire."""

    id: str
    line: str
    zone: str
    text: str
    session: str
    ask: bool
    missed: str
    wake: str
    since: int
    slot: int | None
    seen: str = ""

    def row(self) -> dict[str, Any]:
        """As tasks.list shows it."""
        names = ("id", "line", "zone", "text", "session", "missed", "slot")
        wake = json.loads(self.wake) if self.wake else None
        told = {"kind": "task", "due": self.slot, "label": self.text, "repeat": self.line}
        told |= {name: getattr(self, name) for name in names}
        return told | {"ask": self.ask, "wake_if": wake}


class Scheduler:
    """Owns tasks.sqlite; used on one thread."""

    def __init__(self, path: Path, clock: Clock, deliver: Deliver, wake: Wake) -> None:
        self._clock, self._deliver, self._wake = clock, deliver, wake
        self._database = Database(path, Path(__file__).with_name("tasks.sql").read_text(), 1)
        self._holder = secrets.token_hex(4)
        self._changed = asyncio.Event()

    def close(self) -> None:
        self._database.close()

    def add(
        self,
        line: str,
        text: str,
        session: str,
        zone: str,
        *,
        ask: bool = False,
        missed: str = "once",
        wake: dict[str, Any] | None = None,
    ) -> Task:
        """Save a task. Raises ExoError for a line that never comes or cannot be read, StorageError."""
        if not text.strip() or missed not in MISSED:
            raise ExoError("add a task", "it needs a text, and missed is once, skip or all")
        if wake is not None and not isinstance(wake.get("tool"), str):
            raise ExoError("add a task", "wake_if is {tool, args}")
        now = self._clock.now_ms()
        slot = following(line, now, zone, now)
        if slot is None:
            raise ExoError(f"add a task for {line!r}", "that time never comes, or is past")
        told = json.dumps(wake, sort_keys=True) if wake else ""
        task = Task(secrets.token_hex(4), line, zone, text, session, ask, missed, told, now, slot)
        with self._database.transaction(durable=True) as link:
            marks = ", ".join("?" * len(vars(task)))
            link.execute(f"INSERT INTO tasks ({_COLUMNS}) VALUES ({marks})", [*vars(task).values()])
        self._changed.set()
        return task

    def every(self) -> list[Task]:
        """Soonest first; those that are over last."""
        query = f"SELECT {_COLUMNS} FROM tasks ORDER BY slot IS NULL, slot, id"
        return [_task(row) for row in self._database.rows(query)]

    def remove(self, id_: str) -> Task:
        """Let it go; `id_` may be its beginning. Raises ExoError."""
        found = [task for task in self.every() if id_ and task.id.startswith(id_)]
        if len(found) != 1:
            why = "several begin so" if found else "there is none of that id"
            raise ExoError(f"remove the task {id_!r}", why, "see `exo task list`")
        with self._database.transaction(durable=True) as link:
            link.execute("DELETE FROM tasks WHERE id = ?", (found[0].id,))
        return found[0]

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            self._changed.clear()
            wait = LOOK
            try:
                wait = await self.fire()
            except ExoError as error:
                print(f"tasks: {error}", file=sys.stderr)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    async def fire(self) -> float:
        """Deliver what is due; returns the seconds until there is something to look at. Raises StorageError."""
        if getattr(self._clock, "unsure", False):
            return LOOK
        due = f"SELECT {_COLUMNS} FROM tasks WHERE slot <= ? ORDER BY slot, id"
        for task in map(_task, self._database.rows(due, self._clock.now_ms())):
            now = self._clock.now_ms()
            if self._claim(task, now):
                await self._handle(task, now)
        ((slot,),) = self._database.rows("SELECT min(slot) FROM tasks")
        left = LOOK if slot is None else (slot - self._clock.now_ms()) / 1000
        return min(LOOK, max(0.2, left))

    def _claim(self, task: Task, now: int) -> bool:
        """Take the lease of this slot, in one statement: another process, or we ourselves, may have it."""
        claim = "UPDATE tasks SET holder = ?, until = ? WHERE id = ? AND slot = ? AND until <= ? RETURNING id"
        with self._database.transaction(durable=True) as link:
            mine = link.execute(
                claim, (self._holder, now + LEASE, task.id, task.slot, now)
            ).fetchone()
        return mine is not None

    async def _handle(self, task: Task, now: int) -> None:
        try:
            slots, after = self._slots(task, now)
            for slot in slots:
                text, seen = await self._news(task)
                if text:
                    await self._deliver(task.session, text, f"task-{task.id}-{slot}", task.ask)
                self._done(task, slot if slot != slots[-1] else after, seen)
            if not slots:
                self._done(task, after, task.seen)
        except ExoError as error:
            print(f"task {task.id}: {error}", file=sys.stderr)
            self._done(task, following(task.line, now, task.zone, task.since), task.seen)

    def _slots(self, task: Task, now: int) -> tuple[list[int], int | None]:
        """(slots to deliver, the one that comes then)."""
        due, slot = list[int](), task.slot
        while slot is not None and slot <= now and len(due) < 10 * MOST:
            due.append(slot)
            slot = following(task.line, slot, task.zone, task.since)
        after = (
            slot if slot is None or slot > now else following(task.line, now, task.zone, task.since)
        )
        on_time = now - due[-1] <= LATE
        if task.missed == "skip":
            return due[-1:] if on_time else [], after
        return due[-MOST:] if task.missed == "all" else due[-1:], after

    async def _news(self, task: Task) -> tuple[str, str]:
        """(what to deliver, "" for nothing; what the condition gave)."""
        if not task.wake:
            return task.text, task.seen
        asked = json.loads(task.wake)
        found = (await self._wake(task.session, asked["tool"], asked.get("args") or {})).strip()
        quiet = found in ("", "null", "false", "[]", "{}", "0", task.seen)
        return "" if quiet else f"{task.text}\n{found}", found

    def _done(self, task: Task, slot: int | None, seen: str) -> None:
        move = "UPDATE tasks SET slot = ?, seen = ?, holder = '', until = 0 WHERE id = ?"
        with self._database.transaction(durable=True) as link:
            link.execute(move, (slot, seen, task.id))


def _task(row: tuple[Any, ...]) -> Task:
    values = list(row)
    values[5] = bool(values[5])
    return Task(*values)
