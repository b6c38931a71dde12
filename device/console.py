"""exo-console: the serial port of the USB cable, and who may use it. Owns the port, which is open from the
start and never waited for, and the one session on it: a person's terminal program or `exo console`. Knows exod by its socket alone.

Told apart by the codec: bytes between frames are typed by a person, frames are a program's. Invariant: until
the PIN is shown to be known nothing of the person goes out; a hang-up ends what was opened by it."""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import select
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exo.board.cable import BOUND, GIVE_UP, LINK, SIZE, Outgoing
from exo.board.tty import carrier, flush, open_port
from exo.core.base.client import Client
from exo.core.base.clock import Clock, SystemClock
from exo.core.base.errors import ExoError, ProtocolError
from exo.core.base.files import ProcessLock
from exo.core.base.frames import TEXT, Reader
from exo.core.base.home import Home
from exo.device.pin import Pin

HELD = 256  # events that wait between exod and the port; more stay in the record
RETRY = (0.05, 1.0)  # seconds until a port that is away is looked for: the first time, and at most
CARRIER = 2.0  # seconds between two looks at the line
READ = 4096


class Pump:
    """Follows exod's events in a thread, as fast as they are taken."""

    def __init__(self, client: Client, since: int | None, wake: Callable[[], object]) -> None:
        self._client, self._since, self._wake = client, since, wake
        self._stop = threading.Event()
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue(HELD)
        threading.Thread(target=self._run, name="pump", daemon=True).start()

    def take(self) -> dict[str, Any] | None:
        """The next event, if there is one; `fault` (seq 0) when exod is away or lacks the position."""
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        told = False
        while not self._stop.is_set():
            try:
                if self._since is None:
                    self._since = int(
                        self._client.call("hello", protocol=1, client="console")["seq"]
                    )
                for event in self._client.events(self._since, stop=self._stop, retry=1.0):
                    told = False
                    if event["seq"]:
                        self._since = int(event["seq"])
                    self._put(event)
            except ExoError as error:
                if isinstance(error, ProtocolError):
                    self._since = None  # another record than before
                if not told:
                    told = True
                    body = {"message": f"{error}"}
                    self._put({"seq": 0, "session": None, "type": "fault", "body": body})
                self._stop.wait(0.25)

    def _put(self, event: dict[str, Any]) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(event, timeout=0.5)
                self._wake()
                return


@dataclass
class Around:
    """What a session on the port works with."""

    home: Home
    pin: Pin
    clock: Clock
    wake: Callable[[], object]
    answers: Any = None  # of console_link: what was answered, over all sessions
    jobs: queue.Queue[Callable[[], None]] = field(default_factory=queue.Queue)

    @property
    def client(self) -> Client:
        return Client(self.home.exod_socket)

    def spawn(self, work: Callable[[], Callable[[], None]]) -> None:
        """Do `work` in a thread; what it returns is called in the loop."""

        def run() -> None:
            self.jobs.put(work())
            self.wake()

        threading.Thread(target=run, name="job", daemon=True).start()


class Console:
    """The port and its session."""

    def __init__(self, port: Path, home: Home, pin: Pin, clock: Clock, baud: int = 0) -> None:
        from exo.device.console_line import LineSession
        from exo.device.console_link import Answers, LinkSession

        self._port, self._clock, self._baud = port, clock, baud
        self._line, self._link = LineSession, LinkSession
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._around = Around(home, pin, clock, self.wake, Answers())
        self._handle, self._wait, self._due = -1, RETRY[0], 0.0
        self._reader, self._came = Reader(2 * SIZE), 0.0
        self._out = Outgoing(self.wake)
        self._session: Any = LineSession(self._around, self._out)
        self._held: bool | None = None
        self._looked = 0.0

    def wake(self) -> None:
        """Have the loop look again; from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._waker, b"!")

    def run(self, stop: threading.Event) -> None:
        """Serve the port until `stop` is set (and `wake` called)."""
        try:
            while not stop.is_set():
                self.step()
        finally:
            self._hang_up()
            os.close(self._woken)
            waker, self._waker = self._waker, -1
            os.close(waker)

    def step(self) -> None:
        """Wait for what happens next, and see to it."""
        now = self._clock.monotonic()
        if self._handle < 0 and now >= self._due:
            self._open()
        reading = [self._woken] + ([self._handle] if self._handle >= 0 else [])
        writing = [self._handle] if self._handle >= 0 and self._out.peek() else []
        ready, free, _ = select.select(reading, writing, [], self._patience())
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, READ)
        if self._handle in ready:
            self._read()
        if self._handle >= 0 and self._handle in free:
            self._write()
        self._tick()

    def _patience(self) -> float | None:
        """Seconds until something is due; None: nothing."""
        now = self._clock.monotonic()
        due = [self._due] if self._handle < 0 else []
        if self._reader.waits:
            due.append(self._came + GIVE_UP)
        if self._session.due is not None:
            due.append(self._session.due)
        if self._held is not None:
            due.append(self._looked + CARRIER)
        return max(0.0, min(due) - now) if due else None

    def _open(self) -> None:
        try:
            self._handle = open_port(self._port, self._baud)
            self._held = carrier(self._handle)
        except OSError:
            self._later()

    def _later(self) -> None:
        self._due = self._clock.monotonic() + self._wait
        self._wait = min(2 * self._wait, RETRY[1])

    def _read(self) -> None:
        try:
            data = os.read(self._handle, READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        self._wait = RETRY[0]
        self._came = self._clock.monotonic()
        self._take(self._reader.feed(data))

    def _take(self, found: list[tuple[int, bytes]]) -> None:
        for kind, payload in found:
            if kind == LINK and self._link.greets(payload):
                self._change(self._link(self._around, self._begin()))
            if kind == TEXT and isinstance(self._session, self._line):
                self._session.typed(payload)
            elif kind != TEXT and isinstance(self._session, self._link):
                self._session.frame(kind, payload)

    def _write(self) -> None:
        try:
            count = os.write(self._handle, self._out.peek()[:READ])
        except BlockingIOError:
            return
        except OSError:
            self._hang_up()
            return
        if count:
            self._out.wrote(count)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        if self._reader.waits and now - self._came >= GIVE_UP:
            self._take(self._reader.give_up())
            self._came = now
        while not self._around.jobs.empty():
            self._around.jobs.get()()
        if self._held is not None and now - self._looked >= CARRIER and self._handle >= 0:
            self._looked, before = now, self._held
            self._held = carrier(self._handle)
            if before and self._held is False:
                self._hang_up()
                return
        self._session.tick(self._out.size < BOUND)
        if self._session.over:
            self._change(self._line(self._around, self._begin()))

    def _begin(self) -> Outgoing:
        """A new queue, which ends what the old one has begun."""
        self._out = Outgoing(self.wake, self._out.close())
        return self._out

    def _change(self, session: Any) -> None:
        self._session.close()
        self._session = session

    def _hang_up(self) -> None:
        """The other side is gone: all that it was let in to is closed."""
        self._out.close()
        self._out = Outgoing(self.wake)
        self._change(self._line(self._around, self._out))
        self._reader = Reader(2 * SIZE)
        if self._handle >= 0:
            flush(self._handle)
            os.close(self._handle)
            self._handle = -1
        self._later()


def main(arguments: list[str] | None = None) -> int:
    """Entry of the script `exo-console`."""
    parser = argparse.ArgumentParser(prog="exo-console", description="Exo on a serial port.")
    parser.add_argument("--port", type=Path, default=Path("/dev/ttyGS0"), metavar="PATH")
    parser.add_argument("--baud", type=int, default=0, metavar="N", help="speed of a real UART")
    parser.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME or ~/.exo)")
    options = parser.parse_args(arguments)
    home, clock, stop = Home.find(options.home), SystemClock(), threading.Event()
    try:
        home.make()
        lock = ProcessLock(home.lock_file("console"), "exo-console")
    except ExoError as error:
        print(f"exo-console: {error}", file=sys.stderr)
        return 1
    try:
        console = Console(options.port, home, Pin(home.state / "pin", clock), clock, options.baud)

        def end(*_: object) -> None:
            stop.set()
            console.wake()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, end)
        console.run(stop)
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
