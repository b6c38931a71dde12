"""What comes at its time: a timer or reminder that rings, a task that is asked of the model or told to the person. Owns
which is due, the leases, and what becomes of times that were missed; `deliver` is exod's, and does the same delivery
once.

Invariant: a slot of a row is delivered once, also when the process is killed between delivery and the note that it
was: the key of a delivery is row and slot, and the slot moves on only after it. While the clock is unsure timers alone
fire."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, StorageError
from exo.tools.tasks.cron import following
from exo.tools.tasks.table import Table, Task

LOOK = 30.0  # seconds between looks, for the wall clock may have been set
LATE = 120_000  # ms after which a slot counts as missed
LEASE = 300_000  # ms that a delivery may take before another may try
RETRY = 5.0  # seconds until what is due still is looked at again
ASKED = 1.0  # seconds that looking for news may keep the other tasks
MOST = 100  # missed slots that are made up for by `all`
GONE = ("unknown_session", "no_tool")  # codes of errors that no later time mends
Deliver = Callable[[str, str, str, bool, str], Awaitable[bool]]
Wake = Callable[[str, str, dict[str, Any]], Awaitable[str]]  # (session, tool, arguments) -> result


class Scheduler(Table):
    """The rows, and the loop that fires them. `sessions` is a sessions.sqlite that may still hold timers."""

    def __init__(
        self, path: Path, clock: Clock, deliver: Deliver, wake: Wake, sessions: Path | None = None
    ) -> None:
        super().__init__(path, clock)
        self._deliver, self._wake, self._sessions = deliver, wake, sessions
        self._holder = secrets.token_hex(4)
        self._asking: dict[str, asyncio.Task[None]] = {}  # task -> it looks for news
        self._last: int | None = None  # ms UTC of the last look

    async def stop(self) -> None:
        """Look for no more news."""
        asking = [*self._asking.values()]
        for work in asking:
            work.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def begin(self) -> None:
        """Before the first look. Raises StorageError, HomeError; then nothing fires until it was done."""
        if self._sessions is not None:
            self.take_over(self._sessions)
            self._sessions = None

    async def run(self) -> None:
        """Fire what is due, for ever."""
        said = ""
        while True:
            self.changed.clear()
            wait = RETRY
            try:
                self.begin()
                wait = await self.fire()
                said = ""
            except Exception as error:  # noqa: BLE001 - the other tasks are to come
                if said != (said := f"tasks: {type(error).__name__}: {error}"):
                    print(said, file=sys.stderr)
            # not wait_for: on Python 3.11 it swallows a cancel that comes together with the event
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self.changed.wait()

    async def fire(self) -> float:
        """Deliver what is due; returns the seconds until there is something to look at. Raises StorageError."""
        self.follow_clock()
        now = self._clock.now_ms()
        if not self.unsure:
            if self._last is None or now < self._last:
                self._turn_back(now)
            self._last = now
        await self._ring()
        for task in self._due("kind = 'task'"):
            await self._start(task)
            await self._ring()
        wait = self._wait()
        if self._asking:
            await asyncio.wait([*self._asking.values()], timeout=min(ASKED, wait))
            wait = self._wait()
        return wait

    async def _ring(self) -> None:
        """Timers and reminders: somebody counts their seconds, so that they wait for one delivery at most."""
        for each in self._due("kind <> 'task'"):
            await self._start(each)

    def _due(self, which: str) -> list[Task]:
        trusted = "kind = 'timer'" if self.unsure else "1"
        return self.every(f"slot <= ? AND {trusted} AND {which}", self._clock.now_ms())

    def _wait(self) -> float:
        """Seconds until the next slot, or until what is due still is tried again."""
        now = self._clock.now_ms()
        trusted = "kind = 'timer'" if self.unsure else "1"
        query = f"SELECT min(slot), (SELECT count(*) FROM tasks WHERE slot <= ?1 AND {trusted})"
        ((slot, left),) = self._database.rows(f"{query} FROM tasks WHERE slot > ?1", now)
        waits = [(slot - now) / 1000] if slot is not None else []
        return min([LOOK, *waits, *([RETRY] if left else [])])

    def _turn_back(self, now: int) -> None:
        """The clock was ahead, or may have been before the start: what comes again comes by the time that it is.
        A slot that was delivered already is not delivered again. Raises StorageError: then all is looked at again."""
        for task in self.every("slot > ? AND kind <> 'timer' AND line NOT LIKE '@at %'", now):
            slot = None
            with contextlib.suppress(ExoError):  # a line that can be read no longer
                slot = self._following(task, now)
            if slot is not None and slot < task.due:
                self._done(task, slot, task.seen)

    def _following(self, task: Task, after: int) -> int | None:
        if task.kind == "timer":
            return None
        return following(task.line, after, task.zone, task.since, self._clock)

    async def _start(self, task: Task) -> None:
        """Deliver it, or begin to look for its news."""
        now = self._clock.now_ms()
        if task.id in self._asking or not self._claim(task, now):
            return
        work = asyncio.create_task(self._handle(task, now))
        if task.wake:  # it may ask a person, who is not there
            self._asking[task.id] = work
            work.add_done_callback(lambda work: self._asked(task.id))
        else:
            await work

    def _asked(self, id_: str) -> None:
        self._asking.pop(id_, None)
        self.changed.set()  # it has another slot now

    def _claim(self, task: Task, now: int) -> bool:
        """Take the lease of this slot, in one statement: another process may have it. Not durable: after a power cut
        there is nobody who could still deliver."""
        claim = (
            "UPDATE tasks SET holder = ?1, until = ?2 WHERE id = ?3 AND slot = ?4"
            " AND (until <= ?5 OR holder = ?1) RETURNING id"
        )
        given = (self._holder, now + LEASE, task.id, task.slot, now)
        with self._database.transaction() as link:
            return link.execute(claim, given).fetchone() is not None

    async def _handle(self, task: Task, now: int) -> None:
        try:
            slots, after = self._slots(task, now)
            for slot in slots:
                if slot != slots[0] and not task.wake:
                    await self._ring()
                text, seen = await self._news(task)
                if task.wake and not self.every("id = ?", task.id):
                    return  # it was taken back meanwhile
                if text or task.kind != "task":
                    bell, said = "", text
                    if task.kind != "task":
                        bell = task.kind
                        said = f"{bell.capitalize()}: {text}" if text else "Your timer is done."
                    await self._deliver(task.session, said, task.key(slot), task.ask, bell)
                self._done(task, slot if slot != slots[-1] else after, seen)
            if not slots:
                self._done(task, after, task.seen)
        except StorageError as error:  # a full disk is no reason to forget it
            print(f"task {task.id}: {error}", file=sys.stderr)
            with contextlib.suppress(StorageError):
                self._done(task, task.slot, task.seen)
        except ExoError as error:
            self._failed(task, now, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this slot alone
            self._failed(task, now, ExoError("do the task", f"{type(error).__name__}: {error}"))

    def _failed(self, task: Task, now: int, error: ExoError) -> None:
        """It costs this slot; where what the task needs is gone, or its line can be read no longer, the task: it
        rests, and says why."""
        print(f"task {task.id}: {error}", file=sys.stderr)
        rests, slot = str(error) if error.code in GONE else "", None
        try:
            slot = None if rests else self._following(task, now)
        except ExoError as unread:  # its zone, say, is not in this machine's tables
            rests = str(unread)
        self._done(task, slot, task.seen, rests)

    def _slots(self, task: Task, now: int) -> tuple[list[int], int | None]:
        """(slots to deliver, the one that comes then)."""
        due, slot = list[int](), task.slot
        while slot is not None and slot <= now:
            due.append(slot)
            if not len(due) % (10 * MOST):  # a long sleep: the last ones alone matter
                slot = max(slot, now - (slot - due[-10 * MOST]) // 2)
            slot = self._following(task, slot)
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

    def _done(self, task: Task, slot: int | None, seen: str, rests: str = "") -> None:
        move = "UPDATE tasks SET slot = ?, seen = ?, rests = ?, holder = '', until = 0 WHERE id = ?"
        with self._database.transaction(durable=True) as link:
            link.execute(move, (slot, seen, rests, task.id))
