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
from exo.core.base.errors import ExoError, StorageError
from exo.core.base.sqlite import Database
from exo.tools.tasks.cron import following

LOOK = 30.0  # seconds between looks, for the wall clock may have been set
LATE = 120_000  # ms after which a slot counts as missed
LEASE = 300_000  # ms that a delivery may take before another may try
RETRY = 5.0  # seconds until what is due still is looked at again
ASKED = 1.0  # seconds that looking for news may keep the other tasks
LONGEST = 20_000  # characters of a task's text, and of its condition
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
        self._asking: dict[str, asyncio.Task[None]] = {}  # task -> it looks for news
        self._last: int | None = None  # ms UTC of the last look

    async def stop(self) -> None:
        """Look for no more news."""
        asking = [*self._asking.values()]
        for work in asking:
            work.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

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
        if wake is not None and not _condition(wake):
            raise ExoError("add a task", "wake_if is {tool, args}")
        now = self._clock.now_ms()
        slot = following(line, now, zone, now)
        if slot is None:
            raise ExoError(f"add a task for {line!r}", "that time never comes, or is past")
        told = json.dumps(wake, sort_keys=True) if wake else ""
        whole = text == text.encode("utf-8", "replace").decode()
        if not whole or max(len(text), len(told)) > LONGEST:
            why = f"its text has half a character, or more than {LONGEST} of them"
            raise ExoError("add a task", why)
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
            except Exception as error:  # noqa: BLE001 - the other tasks are to come
                print(f"tasks: {type(error).__name__}: {error}", file=sys.stderr)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    async def fire(self) -> float:
        """Deliver what is due; returns the seconds until there is something to look at. Raises StorageError."""
        if getattr(self._clock, "unsure", False):
            return LOOK
        now = self._clock.now_ms()
        if self._last is None or now < self._last:
            self._turn_back(now)
        self._last = now
        due = f"SELECT {_COLUMNS} FROM tasks WHERE slot <= ? ORDER BY slot, id"
        for task in map(_task, self._database.rows(due, now)):
            now = self._clock.now_ms()
            if task.id in self._asking or not self._claim(task, now):
                continue
            work = asyncio.create_task(self._handle(task, now))
            if task.wake:  # it may ask a person, who is not there
                self._asking[task.id] = work
                work.add_done_callback(lambda work, id_=task.id: self._asking.pop(id_))  # type: ignore[misc]
            else:
                await work
        if self._asking:
            await asyncio.wait([*self._asking.values()], timeout=ASKED)
        now = self._clock.now_ms()
        query = "SELECT min(slot), (SELECT count(*) FROM tasks WHERE slot <= ?1) FROM tasks WHERE slot > ?1"
        ((slot, waiting),) = self._database.rows(query, now)
        left = [(slot - now) / 1000] if slot is not None else []
        return max(0.2, min([LOOK, *left, *([RETRY] if waiting else [])]))

    def _turn_back(self, now: int) -> None:
        """The clock was ahead, or may have been before the start: what comes next comes by the time that it is.
        A slot that was delivered already is not delivered again."""
        for task in self.every():
            if task.slot is None or task.slot <= now:
                continue
            with contextlib.suppress(ExoError):
                slot = following(task.line, now, task.zone, task.since)
                if slot is not None and slot < task.slot:
                    self._done(task, slot, task.seen)

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
        except StorageError as error:  # a full disk is no reason to forget it
            print(f"task {task.id}: {error}", file=sys.stderr)
            with contextlib.suppress(StorageError):
                self._done(task, task.slot, task.seen)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this slot alone
            print(f"task {task.id}: {type(error).__name__}: {error}", file=sys.stderr)
            self._done(task, following(task.line, now, task.zone, task.since), task.seen)

    def _slots(self, task: Task, now: int) -> tuple[list[int], int | None]:
        """(slots to deliver, the one that comes then)."""
        due, slot = list[int](), task.slot
        while slot is not None and slot <= now:
            due.append(slot)
            if not len(due) % (10 * MOST):  # a long sleep: the last ones alone matter
                slot = max(slot, now - (slot - due[-10 * MOST]) // 2)
            slot = following(task.line, slot, task.zone, task.since)
        after = slot
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


def _condition(wake: Any) -> bool:
    fits = isinstance(wake, dict) and isinstance(wake.get("tool"), str)
    return fits and isinstance(wake.get("args") or {}, dict)


def _task(row: tuple[Any, ...]) -> Task:
    values = list(row)
    values[5] = bool(values[5])
    return Task(*values)
