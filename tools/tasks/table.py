"""What is to come: timers, reminders and tasks as rows of tasks.sqlite. Owns the rows, and what a person and a tool
do to them; when they fire is scheduler.py's matter.

A timer counts down by the monotonic clock: when the wall clock is set, its row moves along. A reminder and a task come
by the wall, and stay where they are. Invariant: what was saved survives power loss; a row leaves only when it is taken
back, and goes on to its next slot only after its delivery."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.sqlite import Database
from exo.core.retrieve.forget import Needles
from exo.tools.tasks.cron import following

FORMAT = 3
SET = 1000  # ms that the clocks may differ before the wall clock counts as set
LONGEST = 20_000  # characters of a row's text, and of its condition
RUNG = 100  # timers and reminders that stay known after their end
MISSED = ("once", "skip", "all")
_COLUMNS = "id, kind, line, zone, text, session, ask, missed, wake, since, slot, seen, rests"


@dataclass(frozen=True)
class Task:
    """`line` is cron, @every, @at or @daily FIRST, and "@in 300000ms" of a timer; `ask` has the model answer, else the text
    is told as it is; `wake` is "" or JSON {tool, args}: only when that gives something new does the task fire. `slot`
    is ms UTC, None when it is over; `since` is when it was made; `rests` is why it comes no more, where what it needs is
    gone."""

    id: str
    kind: str
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
    rests: str = ""

    @property
    def due(self) -> int:
        return self.slot or 0

    @property
    def repeat(self) -> str:
        """The word of a reminder that comes again."""
        word = self.line.rpartition(" ")[0].removeprefix("@") if self.kind == "reminder" else ""
        return "" if word == "at" else word

    @property
    def first(self) -> str:
        """The first wall time of a reminder (ISO)."""
        if self.kind != "reminder":
            return ""
        at = datetime.datetime.fromisoformat(self.line.rpartition(" ")[2])
        return at.replace(tzinfo=None).isoformat()

    @property
    def label(self) -> str:
        return self.text

    @property
    def seconds(self) -> float:
        """How long a timer was set for; 0 of anything else."""
        found = re.fullmatch(r"@in (\d+)ms", self.line)
        return int(found[1]) / 1000 if found else 0.0

    def set_by(self, tool: str, label: Any, seconds: Any = None) -> bool:
        """Whether a call of the tool `timer` or `reminder` with these arguments may have made it."""
        if self.kind != tool or self.text != label:
            return False
        usual = isinstance(seconds, int | float) and 0 < seconds < 1e9
        return tool == "reminder" or usual and self.line == span_line(round(seconds * 1000))

    def key(self, slot: int) -> str:
        """Of a delivery. The one slot of a timer moves with the wall clock: when it was made does not."""
        return f"task-{self.id}-{self.since if self.kind == 'timer' else slot}"

    def row(self) -> dict[str, Any]:
        """As tasks.list shows it."""
        told: dict[str, Any] = {"id": self.id, "kind": self.kind, "session": self.session}
        told |= {"due": self.slot, "label": self.text}
        if self.kind != "task":
            return told | {"first": self.first, "repeat": self.repeat}
        wake = json.loads(self.wake) if self.wake else None
        names = ("line", "zone", "text", "missed", "slot", "rests")
        told |= {name: getattr(self, name) for name in names}
        return told | {"repeat": self.line, "ask": self.ask, "wake_if": wake}


class Table:
    """Used on one thread, that of its first use but for the making."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self.changed = asyncio.Event()  # set whenever something was added or taken back
        self._skew = self._offset()  # what the rows of timers count from

    @cached_property
    def _database(self) -> Database:
        database = Database(self._path, Path(__file__).with_name("tasks.sql").read_text(), FORMAT)
        ((found,),) = database.rows("PRAGMA user_version")
        if found < FORMAT:
            with database.transaction(durable=True) as link:
                if found == 1:  # tasks alone
                    link.execute("ALTER TABLE tasks ADD kind TEXT NOT NULL DEFAULT 'task'")
                    link.execute("CREATE TABLE moved (id TEXT PRIMARY KEY) STRICT")
                link.execute("ALTER TABLE tasks ADD rests TEXT NOT NULL DEFAULT ''")
                link.execute(f"PRAGMA user_version = {FORMAT}")
        return database

    def close(self) -> None:
        if "_database" in vars(self):
            self._database.close()

    # ---- setting ---------------------------------------------------------------------------------

    def count_down(self, session: str, seconds: float, label: str, instead: str = "") -> Task:
        """Save a timer, `instead` of the one with that id where there is one. Raises ExoError for a label that is too
        long, StorageError."""
        self.follow_clock()
        now = self._clock.now_ms()
        id_, span = secrets.token_hex(4), round(seconds * 1000)
        more = (False, "once", "", now, now + span)
        return self._save(Task(id_, "timer", span_line(span), "", label, session, *more), instead)

    def remind(self, session: str, at: datetime.datetime, text: str, repeat: str = "") -> Task:
        """Save a reminder for `at`, which may be wall time. Raises StorageError, ExoError for a time that is past, and
        while nobody knows what time it is."""
        wall = self._clock.local(self._clock.stamp(at))
        line = (
            f"@{repeat} {wall.replace(tzinfo=None).isoformat()}"
            if repeat
            else f"@at {wall.isoformat()}"
        )
        return self._add("reminder", line, text, session, "")

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
        """Save a task. Raises ExoError for a line that never comes or cannot be read, and while nobody knows what time
        it is; StorageError."""
        if not text.strip() or missed not in MISSED:
            raise ExoError("add a task", "it needs a text, and missed is once, skip or all")
        if wake is not None and not is_condition(wake):
            raise ExoError("add a task", "wake_if is {tool, args}")
        told = json.dumps(wake, sort_keys=True) if wake else ""
        return self._add("task", line, text, session, zone, ask, missed, told)

    def _add(self, kind: str, line: str, text: str, session: str, zone: str, *more: Any) -> Task:
        if self.unsure:
            do = "connect to a network, or set a timer instead"
            raise ExoError(f"set a {kind}", "the clock of this board is not set yet", do)
        now = self._clock.now_ms()
        slot = following(line, now, zone, now, self._clock)
        if slot is None:
            raise ExoError(f"add a {kind} for {line!r}", "that time never comes, or is past")
        ask, missed, wake = more or (False, "once", "")
        id_ = secrets.token_hex(4)
        return self._save(Task(id_, kind, line, zone, text, session, ask, missed, wake, now, slot))

    def _save(self, task: Task, instead: str = "") -> Task:
        whole = task.text == task.text.encode("utf-8", "replace").decode()
        if not whole or max(len(task.text), len(task.wake)) > LONGEST:
            why = f"its text has half a character, or more than {LONGEST} of them"
            raise ExoError(f"add a {task.kind}", why)
        old = "SELECT rowid FROM tasks WHERE slot IS NULL AND kind <> 'task' ORDER BY rowid DESC"
        with self._database.transaction(durable=True) as link:
            link.execute("DELETE FROM tasks WHERE id = ?", (instead,))
            link.execute(f"DELETE FROM tasks WHERE rowid IN ({old} LIMIT -1 OFFSET {RUNG})")
            _insert(link, task)
        self.changed.set()
        return task

    # ---- looking and taking back -----------------------------------------------------------------

    def every(self, which: str = "1", *values: object) -> list[Task]:
        """Soonest first; those that are over last. `which` is a condition in SQL."""
        query = f"SELECT {_COLUMNS} FROM tasks WHERE {which} ORDER BY slot IS NULL, slot, id"
        return [_task(row) for row in self._database.rows(query, *values)]

    def pending(self) -> list[Task]:
        """Timers and reminders, soonest first."""
        return self.every("kind <> 'task' AND slot IS NOT NULL")

    def rows(self) -> list[dict[str, Any]]:
        """For tasks.list: timers and reminders, then tasks."""
        return [each.row() for each in (*self.pending(), *self.every("kind = 'task'"))]

    @property
    def busy(self) -> bool:
        """Whether anything is to come. A disk that cannot be read is no reason to stay."""
        with contextlib.suppress(ExoError):
            return bool(self._database.rows("SELECT 1 FROM tasks WHERE slot IS NOT NULL LIMIT 1"))
        return False

    def newest(self, session: str) -> list[Task]:
        """The timers and reminders that were set in this session, the last one first; `slot` of one that has rung
        is None. Those that were taken back are gone."""
        query = (
            f"SELECT {_COLUMNS} FROM tasks WHERE session = ? AND kind <> 'task' ORDER BY rowid DESC"
        )
        return [_task(row) for row in self._database.rows(query, session)]

    def cancel(self, ids: list[str]) -> bool:
        """Let these not come; False where all of them have. Raises StorageError."""
        with self._database.transaction(durable=True) as link:
            query = "DELETE FROM tasks WHERE id = ? AND (slot IS NOT NULL OR kind = 'task')"
            gone = sum(link.execute(query, (id_,)).rowcount for id_ in ids)
        self.changed.set()
        return gone > 0

    def remove(self, id_: str) -> Task:
        """Let it go; `id_` may be its beginning. Raises ExoError."""
        listed = (*self.pending(), *self.every("kind = 'task'"))
        found = [task for task in listed if id_ and task.id.startswith(id_)]
        if len(found) != 1:
            several = ", ".join(f"{task.id} ({task.text[:30]})" for task in found[:8])
            why = f"several begin so: {several}" if found else "there is none of that id"
            raise ExoError(f"remove the task {id_!r}", why, "see `exo task list`")
        self.cancel([found[0].id])
        return found[0]

    def erase(self, needles: Needles) -> None:
        """Take out every row that says what is to be forgotten; then no byte of it is in the file."""
        with self._database.transaction(durable=True) as link:
            for task in self.every():
                if needles.named(task.text) or needles.hit(task.wake):
                    link.execute("DELETE FROM tasks WHERE id = ?", (task.id,))
                elif needles.hit(task.seen):
                    link.execute("UPDATE tasks SET seen = '' WHERE id = ?", (task.id,))
        self._database.scrub()

    # ---- the clock, and rows of before -----------------------------------------------------------

    @property
    def unsure(self) -> bool:
        """Whether nobody knows what time it is."""
        return bool(getattr(self._clock, "unsure", False))

    def _offset(self) -> int:
        """Milliseconds from the monotonic to the wall clock; constant but when the latter is set."""
        return self._clock.now_ms() - round(self._clock.monotonic() * 1000)

    def follow_clock(self) -> None:
        """Move the timers along with a wall clock that was set. Raises StorageError."""
        moved = self._offset() - self._skew
        if abs(moved) > SET:
            with self._database.transaction(durable=True) as link:
                link.execute("UPDATE tasks SET slot = slot + ? WHERE kind = 'timer'", (moved,))
            self._skew += moved

    def take_over(self, sessions: Path) -> None:
        """Before the first look: leases of a process that died are void, for there is one exod to a home; and what a
        sessions.sqlite of format 1 holds in its table `timers` moves here, each row once whatever is killed in
        between. Raises StorageError, HomeError."""
        with self._database.transaction() as link:
            link.execute("UPDATE tasks SET holder = '', until = 0 WHERE until > 0")
        if not sessions.exists():
            return
        with contextlib.closing(Database(sessions, "", 2)) as old:
            if old.rows("PRAGMA user_version") != [(1,)]:
                return
            rows = old.rows(
                "SELECT id, session, due, label, first, repeat FROM timers ORDER BY rowid"
            )
            now = self._clock.now_ms()
            with self._database.transaction(durable=True) as link:
                for id_, session, due, label, first, again in rows:
                    if link.execute("INSERT OR IGNORE INTO moved VALUES (?)", (id_,)).rowcount:
                        kind, line = "timer", span_line(due - now)
                        if first:
                            kind, line = "reminder", f"@{again or 'at'} {first}"
                        more = (session or "", False, "once", "", now, due)
                        _insert(link, Task(id_, kind, line, "", label, *more))
            with old.transaction(durable=True) as link:
                link.execute("DROP TABLE timers")
                link.execute("PRAGMA user_version = 2")
        self.changed.set()


def span_line(ms: int) -> str:
    """The line of a timer."""
    return f"@in {ms}ms"


def _insert(link: Any, task: Task) -> None:
    marks = ", ".join("?" * len(vars(task)))
    link.execute(f"INSERT INTO tasks ({_COLUMNS}) VALUES ({marks})", [*vars(task).values()])


def is_condition(wake: Any) -> bool:
    """Whether it is {tool, args}."""
    fits = isinstance(wake, dict) and isinstance(wake.get("tool"), str)
    return fits and isinstance(wake.get("args") or {}, dict)


def _task(row: tuple[Any, ...]) -> Task:
    return Task(**dict(zip(_COLUMNS.split(", "), row, strict=True)) | {"ask": bool(row[6])})
