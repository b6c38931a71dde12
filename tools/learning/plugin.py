"""Learning on its own, as a plugin: once a night the labels that came since are learnt from (`exo decide --learn`), in a
process of its own. Owns when, and that process; what is learnt and kept stands in tools/decisions.py and models/personal.py.

Invariant: exod computes nothing for it and waits for nothing of it; the process has a deadline, the lowest priority, and ends
with exod, however exod ends. A night that was missed is made up for at the first idle time after."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import signal
import sys

from exo.core.base import lifeline
from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import reachable
from exo.core.plugins import PluginContext

AT = datetime.time(3, 30)  # of the night, by the person's clock
IDLE = 300.0  # seconds without a turn
LOOK = 120.0  # seconds between looks: the clock may be set, the board may sleep
DEADLINE = 900.0  # seconds that learning may take
LEAST = 8  # new labels
LOWEST = 19  # priority, nice(1)
TRIED = "night.json"  # in state/cache/decide: when this was done last


def register(ctx: PluginContext) -> None:
    """Look for a night from the start on."""
    if ctx.core is None or ctx.home is None:
        raise ValueError("learning needs a running exod with a home")
    nightly = Nightly(Home(ctx.home), ctx.core.settings, ctx.core.clock)
    ctx.register_hook("on_turn_end", nightly.on_turn_end)
    ctx.register_life(nightly.start, nightly.stop)


class Nightly:
    """Learns at night, or at the first idle time after."""

    def __init__(self, home: Home, settings: Settings, clock: Clock) -> None:
        self._home, self._settings, self._clock = home, settings, clock
        self._file = home.cache / "decide" / TRIED
        self._active = clock.monotonic()  # when a turn ended last
        self._loop: asyncio.Task[None] | None = None

    async def on_turn_end(self) -> None:
        self._active = self._clock.monotonic()

    async def start(self) -> None:
        self._loop = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End, with the process that learns."""
        if self._loop is not None:
            self._loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except (ExoError, OSError) as error:
                print(f"learning: {error}", file=sys.stderr)
            await asyncio.sleep(LOOK)

    def due(self) -> bool:
        """Whether a night has come since this was done last, and nobody needs the machine."""
        if self._settings.text("decide.learn") != "night" or getattr(self._clock, "unsure", False):
            return False
        if self._clock.monotonic() - self._active < IDLE:
            return False
        now = self._clock.local().replace(tzinfo=None)
        night = datetime.datetime.combine(now, AT)
        if night > now:
            night -= datetime.timedelta(1)
        tried = self._tried()
        return tried < self._clock.stamp(night) or tried > self._clock.now_ms()

    async def look(self) -> bool:
        """Learn if it is due; returns whether that was tried. Raises OSError, HomeError."""
        # exo-models fits the heads; without it there is nothing to start for this alone
        if not self.due() or not reachable(self._home.models_socket):
            return False
        how = await self._learn()
        make_folder(self._file.parent)
        write_atomic(self._file, json.dumps({"tried": self._clock.now_ms(), "how": how}))
        return True

    async def _learn(self) -> str:
        """How the process ended: "" for well, else its last words."""
        words = [
            "decide",
            "--learn",
            "--least",
            str(LEAST),
            "--json",
            "--home",
            str(self._home.root),
        ]
        ours, theirs = os.pipe()  # closed by any death of exod: then the process ends as well
        try:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "exo.tools.cli", *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(ours,),
                env={**os.environ, lifeline.VARIABLE: str(ours)},
                start_new_session=True,
            )
            os.close(ours)
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, child.pid, LOWEST)
            try:
                async with asyncio.timeout(DEADLINE):
                    _, said = await child.communicate()
            except TimeoutError:
                said = f"it took longer than {DEADLINE:g} s".encode()
            finally:
                if child.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
                    await child.wait()
        finally:
            os.close(theirs)
        how = "" if child.returncode == 0 else said.decode(errors="replace").strip()[-500:]
        if how:
            print(f"learning: {how}", file=sys.stderr)
        return how

    def _tried(self) -> int:
        with contextlib.suppress(
            OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError
        ):
            return int(json.loads(self._file.read_text())["tried"])
        return 0
