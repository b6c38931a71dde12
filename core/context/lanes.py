"""Summary jobs in lanes. Owns how many run at once, who waits, pause and resume; knows nothing of what a
job does.

Invariant: a key is pending or running at most once; while held (a live turn runs and there is one model
for all) nothing runs, and what ran is stopped and starts over later."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.context.tree import Address

Lane = Literal["live", "import"]
Key = tuple[str, Address]  # (session, node)
POLL = 0.02  # seconds between looks while settling


@dataclass
class _Job:
    """Waits while it has no task."""

    lane: Lane
    task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.task = None


@dataclass
class Lanes:
    """`_limit(lane, session)` is how many jobs of a lane run at once; `_alone()` says that they share the one model with
    live turns: then one job runs at a time, and only while no turn does."""

    _limit: Callable[[Lane, str], int]
    _run: Callable[[Lane, Key], Awaitable[None]]
    _alone: Callable[[], bool]
    _clock: Clock
    _jobs: dict[Key, _Job] = field(default_factory=dict)  # in the order they came
    _paused: set[Lane] = field(default_factory=set)
    _held: int = 0

    def add(self, lane: Lane, keys: Iterable[Key]) -> None:
        """Queue jobs, but for those that are queued or running."""
        for key in keys:
            self._jobs.setdefault(key, _Job(lane))
        self._pump()

    def drop(self, session: str) -> None:
        """Forget every job of a session; what runs is stopped."""
        for key in [each for each in self._jobs if each[0] == session]:
            self._jobs.pop(key).stop()
        self._pump()

    def pause(self, lane: Lane) -> None:
        """Start no more jobs of the lane; those that run end by themselves."""
        self._paused.add(lane)

    def resume(self, lane: Lane) -> None:
        self._paused.discard(lane)
        self._pump()

    def pending(self, lane: Lane, session: str = "") -> int:
        """Jobs of the lane that wait or run (of one session)."""
        jobs = self._jobs.items()
        return sum(job.lane == lane and session in ("", key[0]) for key, job in jobs)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """A live turn runs in this block."""
        self._held += 1
        if self._alone():
            for job in self._jobs.values():
                job.stop()
        try:
            yield
        finally:
            self._held -= 1
            self._pump()

    async def settle(self, session: str, seconds: float) -> bool:
        """Wait until no live job of the session is pending, `seconds` at most; whether that is so."""
        end = self._clock.monotonic() + seconds
        while self.pending("live", session):
            if self._clock.monotonic() >= end:
                return False
            await asyncio.sleep(POLL)
        return True

    async def close(self) -> None:
        """Stop everything; what was not done is queued again by whoever asks for it next time."""
        tasks = [job.task for job in self._jobs.values() if job.task]
        for job in self._jobs.values():
            job.stop()
        self._jobs.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _pump(self) -> None:
        alone = self._alone()
        if alone and self._held:
            return
        running = Counter(job.lane for job in self._jobs.values() if job.task)
        # live ones first
        for key, job in sorted(self._jobs.items(), key=lambda each: each[1].lane == "import"):
            most = 1 if alone else self._limit(job.lane, key[0])
            full = (running.total() if alone else running[job.lane]) >= most
            if job.task is None and not full and job.lane not in self._paused:
                job.task = asyncio.create_task(self._work(key, job))
                running[job.lane] += 1

    async def _work(self, key: Key, job: _Job) -> None:
        try:
            await self._run(job.lane, key)
        except ExoError as error:
            print(f"exod: summary of {key}: {error}", file=sys.stderr)
        except Exception:  # noqa: BLE001 - one job's bug must not stop the lane
            traceback.print_exc(file=sys.stderr)
        if job.task is asyncio.current_task():  # else it was stopped, and its place given away
            del self._jobs[key]
            self._pump()
