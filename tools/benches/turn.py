"""The core's own delay in a turn. A model server that answers at once stands on models.sock and notes
when the request came and when its first token left; the client notes when it sent and when it saw."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.core.base.httpd import HttpServer, Request, Response, json_response
from exo.core.base.unix import UnixConnection
from exo.tools.bench import Figure, Say
from exo.tools.supervisor import Supervisor

PAUSE = 0.1  # seconds between two turns: nobody speaks sooner, and what follows a turn is over


class InstantServer:
    """An exo-models that replies one word at once; `arrived` and `sent` are monotonic seconds."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self.arrived = self.sent = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> InstantServer:
        self._thread.start()
        self._server = HttpServer(self._answer)
        asyncio.run_coroutine_threadsafe(self._server.listen_unix(self._socket), self._loop).result(
            5
        )
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _answer(self, request: Request) -> Response:
        arrived = time.monotonic()
        await request.body()
        if request.path != "/v1/chat/completions":
            return json_response({})  # tokens are counted and prefixes computed beside the turns
        self.arrived = arrived
        return Response(self._chunks(), content_type="text/event-stream")

    async def _chunks(self) -> AsyncIterator[bytes]:
        self.sent = time.monotonic()
        yield _chunk({"content": "Yes."}, None)
        yield _chunk({}, "stop")
        yield b"data: [DONE]\n\n"


def _chunk(delta: dict[str, str], reason: str | None) -> bytes:
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return f"data: {json.dumps(body)}\n\n".encode()


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` turns (default 200) through exod and as many straight to the server."""
    rounds = rounds or 200
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        with InstantServer(home.models_socket) as server, Supervisor(home, ["exod"]) as services:
            services.wait_ready()
            say(f"{rounds} turns through exod, {rounds} straight")
            there, back = _through(Client(home.exod_socket), server, rounds)
            straight = [_straight(server, home.models_socket) for _ in range(rounds)]
    both = [a + b for a, b in zip(there, back, strict=True)]
    yield Figure("turn.send to the request at exo-models, p50", _ms(there, 50), "ms")
    yield Figure("first token to the client's delta, p50", _ms(back, 50), "ms")
    yield Figure(
        "both together, first 20 turns of a conversation, p50", _ms(both[:20], 50), "ms", "< 10"
    )
    yield Figure(
        f"both together, {rounds} turns, summaries included, p50", _ms(both, 50), "ms", "< 10"
    )
    yield Figure("both together, p99", _ms(both, 99), "ms")
    yield Figure("a client straight to exo-models, there and back, p50", _ms(straight, 50), "ms")
    ratio = statistics.median(both) / statistics.median(straight)
    yield Figure("through the core / straight", ratio, "x")


def _through(client: Client, server: InstantServer, rounds: int) -> tuple[list[float], list[float]]:
    session = client.call("session.create")["session"]
    events = client.events(0, session)
    there, back = [], []
    for n in range(rounds + 3):
        time.sleep(PAUSE)
        begun = time.monotonic()
        client.call("turn.send", session=session, text=f"please go on {n}")
        seen = 0.0
        for event in events:
            if event["type"] == "message.delta":
                seen = time.monotonic()
            if event["type"] == "session.updated":
                break
        if n >= 3:  # the first turns import httpx
            there.append(server.arrived - begun)
            back.append(seen - server.sent)
    return there, back


def _straight(server: InstantServer, socket: Path) -> float:
    link = UnixConnection(socket)
    begun = time.monotonic()
    link.request("POST", "/v1/chat/completions", b"{}", {"Content-Type": "application/json"})
    answer = link.getresponse()
    answer.readline()
    seen = time.monotonic()
    link.close()
    return server.arrived - begun + seen - server.sent


def _ms(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] * 1000
