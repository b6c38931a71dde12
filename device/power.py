"""Power: what the battery says, when a person is warned, the orderly end before it is empty, and what the
light shows.

Owns thresholds and the order of an end; knows no gauge and no page. Invariant: a warning comes once until
the battery has risen above it; the machine is never switched off before exod has put down what it
acknowledged, and never where it is no board."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from exo.board.battery import AGREE, Gauge, Reading, Trust
from exo.board.led import Beacon
from exo.core.base.client import Client
from exo.core.base.clock import Clock
from exo.core.base.errors import BoardError, ExoError
from exo.core.base.files import read_pid
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import reachable
from exo.device.events import Alert, Battery, Event, Quit

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

POLL = 10.0  # seconds between two looks at the battery
RISE = 5  # points above a threshold at which it can warn again
SURE = 20.0  # seconds that the battery must be at the floor
AGAIN = 300.0  # seconds until an end that failed is tried once more
NOTICE = 4.0  # seconds to read that it is switching off
ANSWER = 5.0  # seconds for exod to answer
GONE = 20.0  # seconds for exod to end
COMMAND = 30.0  # seconds for the command that switches off

Run = Callable[[Sequence[str]], str]  # a command; why it failed, or empty


class Watch:
    """When to warn and when to end. Pure."""

    def __init__(self, warnings: Sequence[int] = (15, 5), floor: int = 3) -> None:
        """`warnings` in percent, 0 is none; `floor` 0: never end."""
        self._warnings = sorted(each for each in warnings if each)
        self._given: set[int] = set()
        self._floor = floor
        self._since: float | None = None  # at the floor
        self._ended: float | None = None

    def take(self, now: float, reading: Reading) -> str:
        """What `reading`, believed at `now`, asks for: "warn", "end" or nothing."""
        percent = reading.percent
        if percent is None:
            self._since = None  # a gauge that fell silent switches nothing off
            return ""
        self._given -= {each for each in self._given if percent >= each + RISE}
        if reading.charging or percent > self._floor or not self._floor:
            self._since = self._ended = None
        elif self._since is None:
            self._since = now
        if self._since is not None and now - self._since >= SURE:
            if self._ended is None or now - self._ended >= AGAIN:
                self._ended = now
                return "end"
            return ""
        fresh = {each for each in self._warnings if percent <= each} - self._given
        if not fresh or reading.charging:
            return ""
        self._given |= fresh
        return "warn"


class Power:
    """Looks at the gauge and posts Battery and Alert; calls `end` at the floor."""

    def __init__(
        self,
        gauge: Gauge,
        post: Callable[[Event], None],
        clock: Clock,
        watch: Watch,
        end: Callable[[], object],
    ) -> None:
        """`end` runs in this thread; it may take its time."""
        self._gauge, self._post, self._clock, self._watch = gauge, post, clock, watch
        self._end, self._trust = end, Trust()
        self._told = Battery(None)
        self._wake, self._stopped = threading.Event(), False
        self._thread: threading.Thread | None = None
        self.due = clock.monotonic()  # when to look next

    def start(self) -> None:
        """Look every POLL seconds until `close`."""
        self._thread = threading.Thread(target=self._run, name="power", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more, and let go of the gauge."""
        self._stopped = True
        self._wake.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(5)
        self._gauge.close()

    def soon(self) -> None:
        """Look now, as often as it takes to believe whatever is there."""
        if self._thread:
            self._wake.set()
            return
        for _ in range(AGREE):
            self.look()

    def look(self) -> None:
        """Look once: read, post what changed, warn, end."""
        self.due = self._clock.monotonic() + POLL
        try:
            reading: Reading | None = self._gauge.read()
        except BoardError:  # unknown, and shown as that: told as a fault it would come every 10 s
            reading = None
        now = self._clock.monotonic()
        believed = self._trust.take(now, reading)
        charge = Battery(believed.percent, bool(believed.charging))
        if charge != self._told:
            self._told = charge
            self._post(charge)
        asked = self._watch.take(now, believed)
        if asked == "warn":
            self._post(Alert("warning", "power.low", str(believed.percent)))
        elif asked == "end":
            self._end()

    def _run(self) -> None:
        while not self._stopped:
            self.look()
            if self._wake.wait(POLL):
                self._wake.clear()
                for _ in range(AGREE - 1):
                    self.look()


def in_a_thread(act: Callable[[], None]) -> None:
    """Have `act` done aside."""
    threading.Thread(target=act, name="ending", daemon=True).start()


class Ending:
    """Switches the machine off, or starts it anew: a notice, exod put down, the disk in step, the command."""

    def __init__(
        self,
        home: Home,
        post: Callable[[Event], None],
        board: bool,
        off: str,
        restart: str,
        services: Callable[[bool], None] = lambda run: None,
        run: Run | None = None,
        pause: Callable[[float], None] = time.sleep,
        aside: Callable[[Callable[[], None]], None] = in_a_thread,
    ) -> None:
        """`off` and `restart` are command lines; without `board` they are only told. `services(False)`
        stops what this process started and waits, `services(True)` starts it again. `run` runs a command, `pause` waits, `aside` begins
        something that takes its time."""
        self._home, self._post, self._board, self._pause = home, post, board, pause
        self._commands = {False: shlex.split(off), True: shlex.split(restart)}
        self._services, self._command = services, run or (command if board else told)
        self._aside = aside
        self._once = threading.Lock()

    def empty(self) -> None:
        """End because the battery is empty."""
        self._end(False, "power.empty")

    @property
    def actions(self) -> dict[str, Callable[[], None]]:
        """What a person can want, by name; each returns at once."""

        def begin(restart: bool, key: str) -> None:
            self._aside(lambda: self._end(restart, key))

        return {
            "restart": lambda: begin(True, "power.restart"),
            "off": lambda: begin(False, "power.off"),
        }

    def _end(self, restart: bool, key: str) -> None:
        if not self._once.acquire(blocking=False):
            return  # it ends already
        try:
            self._post(Alert("warning", key, urgent=True))
            self._pause(NOTICE)
            self._settle()
            failed = self._command(self._commands[restart])
            if failed:
                self._services(True)
                self._post(Alert("error", "power.failed", failed, urgent=True))
            else:
                self._post(Quit())
        except ExoError as error:  # what was started cannot be started again
            self._post(Alert("error", "power.failed", str(error), urgent=True))
        finally:
            self._once.release()

    def _settle(self) -> None:
        """Return once exod has written what it acknowledged, and is gone where that is ours to say."""
        exod = self._home.exod_socket
        # it answers a command only between two writes; what it said yes to before is committed
        try:
            Client(exod, ANSWER).call("hello", protocol=1, client="exo-device")
        except ExoError:
            pass  # away, or so ill that waiting longer would cost what is left in the battery
        self._services(False)
        if self._board and reachable(
            exod
        ):  # started by somebody else: the pid file is a living one's
            pid = read_pid(self._home.lock_file("exod"))
            try:
                os.kill(pid, signal.SIGTERM) if pid > 1 else None
            except OSError:
                pass  # another user's: the command below stops it in order
            for _ in range(round(GONE / 0.1)):
                if not reachable(exod):
                    break
                self._pause(0.1)
        if self._board:
            os.sync()


def command(words: Sequence[str]) -> str:
    """Run a command; returns why it failed, or empty."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND,
            check=False,
        )
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        return str(error) or type(error).__name__
    lines = done.stderr.strip().splitlines()
    return (lines[-1] if lines else f"exit {done.returncode}") if done.returncode else ""


def told(words: Sequence[str]) -> str:
    """What a machine that is no board does of a command: say it."""
    what = f"on a board this would run: {shlex.join(words)}"
    print(f"exo-device: {what}", file=sys.stderr, flush=True)
    return ""


def lamp(device: Handheld, low: int) -> str:
    """The state of the light (board/led.py); `low` percent and less is a low battery."""
    state, (percent, charging) = device.machine.state, device.battery
    if state == "notice" and device.notice.level == "error":
        return "error"
    if state in ("listening", "thinking"):
        return state
    if state == "reply" and device.reply.active:
        return "speaking" if device.reply.speaking else "thinking"
    if percent is not None and percent <= low and not charging:
        return "low"
    return "idle"


@contextlib.contextmanager
def powered(
    handheld: Handheld,
    settings: Settings,
    ending: Ending,
    gauge: Gauge | None,
    beacon: Beacon | None,
    waits: bool = True,
) -> Iterator[Power | None]:
    """Give the handheld its battery and its light, and the battery its end; yields what looks at the battery. `waits`:
    in a thread of its own."""
    warn, critical, floor = (
        settings.count(f"power.{name}") for name in ("warn", "critical", "floor")
    )
    if handheld.system:
        handheld.system.actions = ending.actions | handheld.system.actions
    power = None
    if beacon:
        handheld.lamp = lambda: beacon.show(lamp(handheld, warn))
    if gauge:
        watch = Watch((warn, critical), floor)
        power = Power(gauge, handheld.post, handheld.clock, watch, ending.empty)
    try:
        if power and waits:
            power.start()
        yield power
    finally:
        handheld.lamp = lambda: None
        if power:
            power.close()
        if beacon:
            beacon.close()
