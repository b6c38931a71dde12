"""Fan-out of events to 20 subscribers, and turns per second with a model that answers at once.

The publisher is a hub with its HTTP server in this process, the subscribers are raw sockets in one
other process; each event carries the time at which it was published (CLOCK_MONOTONIC is the same for
both). The peer is one subscriber: what the other 19 cost."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import multiprocessing.connection
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.base.httpd import HttpServer
from exo.core.base.unix import connect
from exo.core.engine.sessions import open_database
from exo.core.protocol.schema import Notice
from exo.core.server.dispatcher import Dispatcher
from exo.core.server.http import Routes
from exo.core.server.hub import Hub
from exo.tools.bench import Figure, Say
from exo.tools.benches.turn import InstantServer
from exo.tools.supervisor import Supervisor

SUBSCRIBERS = 20
PACE = 200  # events a second of the paced run: about two fast models streaming at once


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` events (default 5000) as fast as they can be saved, then paced; then turns."""
    rounds = rounds or 5000
    say(f"{rounds} events to 1 and to {SUBSCRIBERS} subscribers")
    alone, _ = _fan_out(1, rounds, 0)
    rate, _ = _fan_out(SUBSCRIBERS, rounds, 0)
    _, lags = _fan_out(SUBSCRIBERS, min(rounds, PACE * 5), PACE)
    yield Figure(f"events a second, every one at {SUBSCRIBERS} subscribers", rate, "/s")
    yield Figure(f"1 subscriber / {SUBSCRIBERS} subscribers", alone / rate, "x")
    yield Figure(
        f"lag of the slowest subscriber at {PACE} events a second, p50", _p(lags, 50), "ms"
    )
    yield Figure("the same, the slowest event of all", max(lags) * 1000, "ms")
    say("turns with a model that answers at once")
    yield Figure("turns a second, one session", _turns(1, 100), "/s")
    yield Figure("turns a second, 8 sessions at once", _turns(8, 25), "/s")


def _fan_out(subscribers: int, count: int, pace: int) -> tuple[float, list[float]]:
    """(events a second until the last subscriber had the last one, lag in s of the slowest subscriber
    for each event)."""
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        socket = Path(folder) / "s"
        process = context.Process(target=_subscribe, args=(socket, subscribers, count, theirs))
        process.start()
        try:
            begun = asyncio.run(_publish(Path(folder), socket, subscribers, count, pace, mine))
            ended, lags = mine.recv()
        finally:
            process.join(30)
            if process.is_alive():
                process.kill()
    return count / (ended - begun), lags


async def _publish(
    folder: Path,
    socket: Path,
    subscribers: int,
    count: int,
    pace: int,
    pipe: multiprocessing.connection.Connection,
) -> float:
    database = open_database(folder / "sessions.sqlite")
    hub = Hub(database, SystemClock())
    server = HttpServer(Routes(Dispatcher(_NoEngine(), hub), "bench"))
    await server.listen_unix(socket)
    pipe.send("listening")
    while hub.listeners < subscribers:
        await asyncio.sleep(0.01)
    begun = time.monotonic()
    for n in range(count):
        hub.publish(None, Notice("info", "bench", repr(time.monotonic())))
        await asyncio.sleep(max(0.0, begun + (n + 1) / pace - time.monotonic()) if pace else 0)
    while not pipe.poll():
        await asyncio.sleep(0.01)
    hub.close()
    await server.close()
    database.close()
    return begun


class _NoEngine:
    async def handle(self, command: object, body: object, hub: object) -> object:
        raise NotImplementedError


def _subscribe(
    path: Path, subscribers: int, count: int, pipe: multiprocessing.connection.Connection
) -> None:
    pipe.recv()
    lags = [0.0] * (count + 1)

    def follow() -> None:
        link = connect(path, 120.0)
        link.sendall(b"GET /events?since=0 HTTP/1.1\r\nHost: bench\r\n\r\n")
        seen, rest = 0, b""
        while seen < count:
            *lines, rest = (rest + link.recv(1 << 16)).split(b"\n")
            now = time.monotonic()
            for line in lines:
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    seen = event["seq"]
                    lags[seen] = max(lags[seen], now - float(event["body"]["text"]))
        link.close()

    threads = [threading.Thread(target=follow) for _ in range(subscribers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.send((time.monotonic(), lags[1:]))


def _turns(sessions: int, each: int) -> float:
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        with InstantServer(home.models_socket), Supervisor(home, ["exod"]) as services:
            services.wait_ready()
            client = Client(home.exod_socket)
            names = [str(client.call("session.create")["session"]) for _ in range(sessions)]
            _talk(client, names[0], 3)  # the first turns import httpx
            threads = [threading.Thread(target=_talk, args=(client, name, each)) for name in names]
            begun = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sessions * each / (time.monotonic() - begun)


def _talk(client: Client, session: str, count: int) -> None:
    events = client.events(0, session)
    for n in range(count):
        turn = client.send(session, f"please go on {n}", "queue")
        for event in events:
            if event["type"] == "turn.completed" and event["body"]["turn"] == turn:
                break


def _p(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] * 1000
