"""The console's cable: throughput of events, of a command and its answer, and the time from plugging in to the first
event that was missing. Over pseudo-terminals, beside the socket; 9,600 baud is paced."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from exo.board.cable import key
from exo.board.fake_cable import FakeCable
from exo.core.base.client import Client
from exo.core.base.files import write_atomic
from exo.core.base.home import Home
from exo.tools.bench import Figure, Say
from exo.tools.console import open_serial
from exo.tools.link import Link
from exo.tools.supervisor import Supervisor

ROUNDS = 10
PIN = "2468"
WORDS = 2000


def run(rounds: int, say: Say) -> Iterable[Figure]:
    """Rows of figures; `rounds` is the number of cuts."""
    rounds = rounds or ROUNDS
    with tempfile.TemporaryDirectory(prefix="exo-") as name:
        folder = Path(name)
        home = Home(folder / "h").make()
        with Supervisor(home, ["exod", "models"], {"models": ("--fake",)}) as services:
            services.wait_ready()
            client = Client(home.exod_socket)
            with FakeCable(folder) as cable, _console(home, cable.device):
                link = Link(lambda: open_serial(str(cable.host)), lambda why: PIN)
                link.start(30)
                yield from _measure(client, link, cable, rounds, say)
                link.close()


@contextlib.contextmanager
def _console(home: Home, port: Path) -> Iterator[None]:
    """exo-console on `port`, behind a PIN."""
    cost = {"salt": secrets.token_hex(16), "n": 2**14, "r": 8, "p": 1}
    kept = {"salt": cost["salt"], "hash": key(PIN, cost).hex(), "wrong": 0}
    write_atomic(home.state / "pin", json.dumps(kept), 0o600)
    words = [sys.executable, "-m", "exo.device.console", "--port", str(port)]
    process = subprocess.Popen([*words, "--home", str(home.root)], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def _measure(
    client: Client, link: Link, cable: FakeCable, rounds: int, say: Say
) -> Iterable[Figure]:
    def hello(of: Client | Link) -> Callable[[], object]:
        return lambda: of.call("hello", protocol=1, client="bench")

    say("commands")
    yield Figure("a command by the socket", _median(hello(client)) * 1000, "ms")
    yield Figure("a command by the cable", _median(hello(link)) * 1000, "ms")
    say("events")
    session = client.call("session.create")["session"]
    since = int(client.call("hello", protocol=1, client="bench")["seq"])
    client.send(session, f"!words {WORDS}")
    seen = _until_end(client, since)
    for name, of in (("the socket", client), ("the cable", link)):
        began, before = time.monotonic(), cable.carried
        _until_end(of, since)
        spent = time.monotonic() - began
        yield Figure(f"events a second by {name}", seen / spent, "1/s")
    size = cable.carried - before
    yield Figure("bytes on the cable an event", size / seen, "bytes")
    yield Figure("throughput of the cable", size / spent / 1000, "kB/s")
    say(f"{rounds} cuts")
    spans = [_cut(client, link, cable, session) for _ in range(rounds)]
    yield Figure("plugged in to the first missed event, median", sorted(spans)[rounds // 2], "s")
    yield Figure("the slowest", max(spans), "s")
    say("9,600 baud")
    cable.baud = 9600
    began, before = time.monotonic(), cable.carried
    since = int(client.call("hello", protocol=1, client="bench")["seq"])
    client.send(session, "!words 30")
    _until_end(link, since)
    yield Figure("a reply of 30 words at 9,600 baud", time.monotonic() - began, "s")
    yield Figure("bytes of it on the cable", cable.carried - before, "bytes")
    cable.baud = 0


def _median(act: Callable[[], object], times: int = 51) -> float:
    spans = []
    for _ in range(times):
        began = time.monotonic()
        act()
        spans.append(time.monotonic() - began)
    return sorted(spans)[times // 2]


def _until_end(of: Client | Link, since: int) -> int:
    """Events until a turn has ended."""
    stop = threading.Event()
    for count, event in enumerate(of.events(since, stop=stop), 1):
        if event["type"] == "turn.completed":
            stop.set()
            return count
    return 0


def _cut(client: Client, link: Link, cable: FakeCable, session: str) -> float:
    """Pull the cable, let something happen, plug it in; seconds until that arrives."""
    since = int(client.call("hello", protocol=1, client="bench")["seq"])
    stop, came = threading.Event(), threading.Event()

    def follow() -> None:
        for _ in link.events(since, stop=stop):
            came.set()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    cable.pull()
    client.send(session, "hello")
    time.sleep(0.3)
    began = time.monotonic()
    cable.plug()
    came.wait(60)
    spent = time.monotonic() - began
    stop.set()
    thread.join(5)
    return spent
