"""What comes at its time: what it costs, and how late it is. 1,000 tasks over a simulated year, by a clock that jumps from
one slot to the next; a delivery beside the bare durable commits that it makes; timers by the real clock, while nothing
else is due and while a crowd of tasks is."""

from __future__ import annotations

import asyncio
import datetime
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from exo.core.base.clock import SystemClock
from exo.core.base.sqlite import Database
from exo.tools.bench import Figure, Say
from exo.tools.clock import FakeClock
from exo.tools.tasks.scheduler import Scheduler

TASKS, YEAR = 1_000, 366 * 86_400_000
TIMERS = 40
APART = 0.11  # seconds from one timer to the next
CROWD = 300  # tasks that are due in the same second


async def wake(session: str, tool: str, args: dict[str, object]) -> str:
    return ""


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` tasks (default 1,000), each once a month."""
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        yield from _year(Path(folder), rounds or TASKS, say)
        for name, crowd in (("alone", 0), (f"beside {CROWD} due tasks", CROWD)):
            say(f"{TIMERS} timers {name}")
            late = asyncio.run(_late(Path(folder) / f"late-{crowd}", rounds or TASKS, crowd))
            yield Figure(f"a timer {name} is late, median", median(late), "ms")
            yield Figure("at most", max(late), "ms")


def _year(folder: Path, count: int, say: Say) -> Iterator[Figure]:
    told: set[str] = set()
    clock = FakeClock()

    async def deliver(session: str, text: str, key: str, ask: bool, bell: str) -> bool:
        told.add(key)
        return True

    tasks = Scheduler(folder / "tasks.sqlite", clock, deliver, wake)
    for n in range(count):
        line = f"{n % 60} {n // 60 % 24} {n % 28 + 1} * *"
        tasks.add(line, f"task {n}", "s", "Europe/Zurich", missed="all")
    say(f"{count} tasks over a year")
    end, looks, begun = clock.now_ms() + YEAR, 0, time.perf_counter()
    while clock.now_ms() < end:
        asyncio.run(tasks.fire())
        looks += 1
        ((slot,),) = tasks._database.rows("SELECT min(slot) FROM tasks")
        clock.advance(max(1, (slot - clock.now_ms()) / 1000))
    spent = time.perf_counter() - begun
    tasks.close()
    bare = _bare(folder / "bare.sqlite")
    each = 1000 * spent / len(told)
    yield Figure("deliveries in the year", len(told), "")
    yield Figure("a delivery, looks included", each, "ms")
    yield Figure("two bare durable commits", bare, "ms")
    yield Figure("delivery / bare commits", each / bare, "")
    yield Figure("the whole year", spent, "s")


async def _late(folder: Path, count: int, crowd: int) -> list[float]:
    """Milliseconds after its time that each timer was delivered, among `count` tasks that wait and `crowd` that are due."""
    clock, late = SystemClock(), list[float]()
    folder.mkdir()
    told = Database(folder / "told.sqlite", "CREATE TABLE t (key TEXT) STRICT;", 1)
    due: dict[str, int] = {}

    async def deliver(session: str, text: str, key: str, ask: bool, bell: str) -> bool:
        with told.transaction(durable=True) as link:
            link.execute("INSERT INTO t VALUES (?)", (key,))
        if key in due:
            late.append(time.time() * 1000 - due[key])
        return True

    tasks = Scheduler(folder / "tasks.sqlite", clock, deliver, wake)
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2 + (count + crowd) / 50)
    for n in range(count):
        tasks.add("@yearly", f"task {n}", "s", "UTC")
    for n in range(crowd):
        tasks.add(f"@at {at.isoformat()}", f"crowd {n}", "s", "UTC")
    ahead = at.timestamp() - time.time()
    for n in range(TIMERS):
        timer = tasks.count_down("s", max(0.5, ahead) + n * APART, "tea")
        due[timer.key(timer.due)] = timer.due
    loop = asyncio.create_task(tasks.run())
    while len(late) < TIMERS:
        await asyncio.sleep(0.05)
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    tasks.close()
    told.close()
    return late


def _bare(path: Path, rounds: int = 200) -> float:
    """Milliseconds of the two commits that a delivery needs at least."""
    database = Database(path, "CREATE TABLE t (n INTEGER) STRICT;", 1)
    begun = time.perf_counter()
    for n in range(2 * rounds):
        with database.transaction(durable=True) as link:
            link.execute("INSERT INTO t VALUES (?)", (n,))
    spent = time.perf_counter() - begun
    database.close()
    return 1000 * spent / rounds
