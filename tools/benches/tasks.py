"""What tasks cost: 1,000 of them over a simulated year, by a clock that jumps from one slot to the next; a delivery beside the
bare durable commits that it makes."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from exo.core.base.sqlite import Database
from exo.tools.bench import Figure, Say
from exo.tools.clock import FakeClock
from exo.tools.tasks.scheduler import Scheduler

TASKS, YEAR = 1_000, 366 * 86_400_000


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` tasks (default 1,000), each once a month."""
    count = rounds or TASKS
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        told: set[str] = set()
        clock = FakeClock()

        async def deliver(session: str, text: str, key: str, ask: bool) -> bool:
            told.add(key)
            return True

        async def wake(session: str, tool: str, args: dict[str, object]) -> str:
            return ""

        tasks = Scheduler(Path(folder) / "tasks.sqlite", clock, deliver, wake)
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
        bare = _bare(Path(folder) / "bare.sqlite")
        each = 1000 * spent / len(told)
        yield Figure("deliveries in the year", len(told), "")
        yield Figure("a delivery, looks included", each, "ms")
        yield Figure("two bare durable commits", bare, "ms")
        yield Figure("delivery / bare commits", each / bare, "")
        yield Figure("the whole year", spent, "s")


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
