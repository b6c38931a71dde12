"""Summary jobs in lanes. Owns how many run at once, who waits, pause and resume; knows nothing of what a
job does.

Invariant: a key is pending or running at most once; while held (a live turn runs and there is one model
for all) nothing runs, and what ran is stopped and starts over later."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.context.tree import Address

Lane = Literal["live", "import"]
Key = tuple[str, Address]  # (session, node)
POLL = 0.05  # seconds between looks at the clock while settling


@dataclass
class _Line:
    waiting: dict[Key, None] = field(default_factory=dict)  # in order
    running: dict[Key, asyncio.Task[None]] = field(default_factory=dict)
    paused: bool = False


class Lanes:
    """`limits` is how many jobs of a lane run at once; `alone()` says that they share the one model with
    live turns: then one job runs at a time, and only while no turn does."""

    def __init__(
        self,
        limits: dict[Lane, int],
        run: Callable[[Lane, Key], Awaitable[None]],
        alone: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._limits, self._run, self._alone, self._clock = limits, run, alone, clock
        self._lines: dict[Lane, _Line] = {"live": _Line(), "import": _Line()}
        self._held = 0
        self._closed = False
        self._changed = asyncio.Event()

    def add(self, lane: Lane, key: Key) -> None:
        """Queue a job unless it is queued or running."""
        if not any(key in line.waiting or key in line.running for line in self._lines.values()):
            self._lines[lane].waiting[key] = None
        self._pump()

    def drop(self, session: str) -> None:
        """Forget every job of a session; what runs is stopped."""
        for line in self._lines.values():
            for key in [each for each in line.waiting if each[0] == session]:
                del line.waiting[key]
            for key in [each for each in line.running if each[0] == session]:
                line.running.pop(key).cancel()
        self._wake()

    def pause(self, lane: Lane) -> None:
        """Start no more jobs of the lane; those that run end by themselves."""
        self._lines[lane].paused = True

    def resume(self, lane: Lane) -> None:
        self._lines[lane].paused = False
        self._pump()

    def pending(self, lane: Lane, session: str = "") -> int:
        """Jobs of the lane that wait or run (of one session)."""
        line = self._lines[lane]
        return sum(session in ("", key[0]) for key in (*line.waiting, *line.running))

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """A live turn runs in this block."""
        self._held += 1
        if self._alone():
            for line in self._lines.values():
                again = dict.fromkeys(line.running)
                for task in line.running.values():
                    task.cancel()
                line.running = {}
                line.waiting = again | line.waiting
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
            changed = self._changed
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), POLL)
        return True

    async def close(self) -> None:
        """Stop everything; what was not done is queued again by whoever asks for it next time."""
        self._closed = True
        tasks = [task for line in self._lines.values() for task in line.running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _pump(self) -> None:
        alone = self._alone()
        if self._closed or alone and self._held:
            return
        for lane, line in self._lines.items():
            while line.waiting and not line.paused and self._room(lane, alone):
                key = next(iter(line.waiting))
                del line.waiting[key]
                line.running[key] = asyncio.create_task(self._work(lane, key))

    def _room(self, lane: Lane, alone: bool) -> bool:
        if alone:
            return not any(line.running for line in self._lines.values())
        return len(self._lines[lane].running) < self._limits[lane]

    async def _work(self, lane: Lane, key: Key) -> None:
        line = self._lines[lane]
        try:
            await self._run(lane, key)
        except ExoError as error:
            print(f"exod: summary of {key}: {error}", file=sys.stderr)
        except Exception:  # noqa: BLE001 - one job's bug must not stop the lane
            traceback.print_exc(file=sys.stderr)
        finally:
            if line.running.get(key) is asyncio.current_task():
                del line.running[key]
            self._wake()
            self._pump()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
