"""HTTP on the socket: whatever arrives, the answer is a response or a closed connection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base import httpd, unix
from exo.core.base.errors import AlreadyRunning, ServiceError, StorageError
from exo.core.base.httpd import HttpServer, Request, Response, json_response
from exo.core.server.http import Routes

Run = Callable[..., Any]
LIMIT = 8 * 1024 * 1024


class Peer:
    """Raw bytes on a server's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) of the next response."""
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 30)).decode()
        first, *rest = head.strip().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            body = b""
            while size := int((await self.reader.readline()).strip(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        return int(first.split()[1]), headers, body

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(self.reader.read(), 30)
        return b""

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def served(
    path: Path, handler: Any, limit: int = LIMIT
) -> AsyncIterator[Callable[[], Awaitable[Peer]]]:
    server = HttpServer(handler, limit)
    await server.listen_unix(path)
    peers: list[Peer] = []

    async def peer() -> Peer:
        with unix.short_path(path) as name:
            peers.append(Peer(*await asyncio.open_unix_connection(name, limit=1 << 26)))
        return peers[-1]

    try:
        yield peer
    finally:
        for each in peers:
            await each.close()
        await server.close()


async def echo(request: Request) -> Response:
    body = await request.body()
    return json_response({"method": request.method, "path": request.path, "bytes": len(body)})


def post(body: bytes, *headers: str, target: str = "/x") -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*raw: bytes) -> bytes:
    return b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(raw)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx", 400),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 40_000 + b"\r\n\r\n", 431),
        (b"x" * 80_000, 431),
        (chunked(b"z\r\n"), 400),
        (chunked(b"\r\n"), 400),
        (chunked(b"-5\r\nhello\r\n0\r\n\r\n"), 400),
        (chunked(b"+5\r\nhello\r\n0\r\n\r\n"), 400),
        (chunked(b"0x5\r\nhello\r\n0\r\n\r\n"), 400),
        (chunked(b"1_0\r\nhello\r\n0\r\n\r\n"), 400),
        (chunked(b"3\r\nhello\r\n0\r\n\r\n"), 400),
        (chunked(b"1" * 70_000), 400),
        (chunked(b"f" * 16 + b"\r\n"), 413),
        (chunked(b"f" * 17 + b"\r\n"), 400),
        (chunked(b"0\r\n", b"a: b\r\n" * 100, b"\r\n"), 400),
    ],
)
def test_malformed_requests_get_a_typed_error_and_the_connection_ends(
    tmp_path: Path, data: bytes, status: int
) -> None:
    async def test() -> None:
        async with served(tmp_path / "s", echo) as connect:
            peer = await connect()
            await peer.send(data)
            found, headers, body = await peer.answer()
            error = json.loads(body)["error"]
            assert (found, headers["connection"]) == (status, "close")
            assert error["code"] and error["message"]
            assert await peer.rest() == b""
            assert await ask(await connect()) == 200  # and the server lives

    asyncio.run(test())


async def ask(peer: Peer) -> int:
    await peer.send(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
    return (await peer.answer())[0]


def test_a_request_cut_off_in_its_head_or_body_is_no_crash(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        async with served(tmp_path / "s", echo) as connect:
            for data in (
                b"GET / HT",
                b"",
                post(b"x" * 10)[:-3],
                chunked(b"5\r\nhe"),
                chunked(b"5\r\nhello\r\n"),
            ):
                peer = await connect()
                await peer.send(data)
                peer.writer.write_eof()
                rest = await peer.rest()
                assert rest == b"" or rest.startswith(b"HTTP/1.1 400 ")
            assert await ask(await connect()) == 200

    asyncio.run(test())
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_body_limit_is_exact(tmp_path: Path, framing: str) -> None:
    def request(size: int) -> bytes:
        if framing == "length":
            return post(b"x" * size)
        return chunked(
            *(b"%x\r\n" % n + b"x" * n + b"\r\n" for n in (size - 700, 700)), b"0\r\n\r\n"
        )

    async def test() -> None:
        async with served(tmp_path / "s", echo, 1000) as connect:
            peer = await connect()
            await peer.send(request(1000))
            assert json.loads((await peer.answer())[2])["bytes"] == 1000
            await peer.send(request(1001) + b"GET /smuggled HTTP/1.1\r\n\r\n")
            status, headers, body = await peer.answer()
            assert status == 413 and json.loads(body)["error"]["code"] == "too_large"
            # what is left of the refused body is never read as a next request
            assert headers["connection"] == "close" and await peer.rest() == b""

    asyncio.run(test())


def test_a_body_that_nobody_read_ends_the_connection(tmp_path: Path) -> None:
    async def deaf(request: Request) -> Response:
        return json_response({})

    async def test() -> None:
        async with served(tmp_path / "s", deaf) as connect:
            peer = await connect()
            await peer.send(post(b"GET /smuggled HTTP/1.1\r\n\r\n"))
            status, headers, _ = await peer.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert await peer.rest() == b""

    asyncio.run(test())


def test_keep_alive_close_pipelined_and_odd_methods(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path / "s", echo) as connect:
            peer = await connect()
            await peer.send(post(b"abc") + chunked(b"2;x=y\r\nhi\r\n0\r\nTrailer: a\r\n\r\n"))
            assert json.loads((await peer.answer())[2])["bytes"] == 3
            assert json.loads((await peer.answer())[2])["bytes"] == 2
            for method in (b"PUT", b"DELETE", b"OPTIONS", b"FROBNICATE"):
                await peer.send(method + b" /a?b=c%20d HTTP/1.1\r\n\r\n")
                assert json.loads((await peer.answer())[2])["method"] == method.decode()
            await peer.send(b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n")
            assert (await peer.answer())[1]["connection"] == "close"
            assert await peer.rest() == b""
            peer = await connect()
            await peer.send(b"HEAD / HTTP/1.1\r\n\r\n")
            assert (await peer.answer())[1]["connection"] == "close"

    asyncio.run(test())


def test_expect_100_continue_is_answered_before_the_body(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path / "s", echo) as connect:
            peer = await connect()
            await peer.send(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await peer.send(b"hi")
            assert json.loads((await peer.answer())[2])["bytes"] == 2

    asyncio.run(test())


def test_a_body_that_stalls_is_told_so(tmp_path: Path) -> None:
    async def patient(request: Request) -> Response:
        return json_response({"n": len([piece async for piece in request.chunks(stall=0.05)])})

    async def test() -> None:
        async with served(tmp_path / "s", patient) as connect:
            for data in (post(b"x" * 10)[:-3], chunked(b"5\r\nhe"), chunked(b"5")):
                peer = await connect()
                await peer.send(data)
                status, headers, body = await peer.answer()
                assert (status, json.loads(body)["error"]["code"]) == (408, "timeout")
                assert headers["connection"] == "close"

    asyncio.run(test())


def test_handler_of_a_client_that_went_away_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def slow(request: Request) -> Response:
            await request.body()
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        async with served(tmp_path / "s", slow) as connect:
            peer = await connect()
            await peer.send(post(b"abc"))
            await begun.wait()
            await peer.close()
            await asyncio.wait_for(ended.wait(), 30)

    asyncio.run(test())


@pytest.mark.parametrize("reads", [True, False])
def test_stream_of_a_client_that_went_away_is_closed(tmp_path: Path, reads: bool) -> None:
    async def test() -> None:
        sent, closed = asyncio.Event(), asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            try:
                yield b"one"
                sent.set()
                await asyncio.Event().wait()
            finally:
                closed.set()

        async def handler(request: Request) -> Response:
            return Response(pieces(), 200, "text/plain")

        async with served(tmp_path / "s", handler) as connect:
            if reads:
                peer = await connect()
                await peer.send(b"GET / HTTP/1.1\r\n\r\n")
                await peer.reader.readuntil(b"one")
                await peer.close()
            else:  # what stays unread resets the connection
                link = unix.connect(tmp_path / "s")
                link.sendall(b"GET / HTTP/1.1\r\n\r\n")
                await sent.wait()
                link.close()
            await asyncio.wait_for(closed.wait(), 30)

    asyncio.run(test())


def test_bugs_in_handlers_and_streams_cost_their_own_connection_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        raise RuntimeError("stream bug")

    async def handler(request: Request) -> Response:
        if request.path == "/stream":
            return Response(pieces(), 200, "text/plain")
        raise RuntimeError("handler bug")

    async def test() -> None:
        async with served(tmp_path / "s", handler) as connect:
            peer = await connect()
            assert await ask(peer) == 500 and await ask(peer) == 500  # the connection stays up
            await peer.send(b"GET /stream HTTP/1.1\r\n\r\n")
            rest = await peer.rest()
            assert b"one" in rest and not rest.endswith(b"0\r\n\r\n")  # cut, and seen as cut
            assert await ask(await connect()) == 500
        gc.collect()

    asyncio.run(test())
    err = capfd.readouterr().err
    assert "handler bug" in err and "stream bug" in err and "never retrieved" not in err


# ---- the socket ----------------------------------------------------------------------------------


def test_socket_is_for_its_owner_alone_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = httpd.bind

    def look(path: Path) -> socket.socket:
        listener = real(path)
        seen.append(stat.S_IMODE(path.stat().st_mode))
        return listener

    monkeypatch.setattr(httpd, "bind", look)
    before = os.umask(0)
    try:

        async def test() -> None:
            async with served(tmp_path / "new" / "s", echo):
                assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700

        asyncio.run(test())
        assert os.umask(0) == 0  # the mask is put back
    finally:
        os.umask(before)
    assert seen == [0o600]


def test_socket_path_longer_than_an_address_serves_all_the_same(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90) / ("e" * 90) / "exod.sock"

    async def test() -> None:
        async with served(deep, echo) as connect:
            assert await ask(await connect()) == 200
            answer = await asyncio.to_thread(unix.get, deep, "/x")
            assert answer["method"] == "GET"
        assert not await asyncio.to_thread(unix.reachable, deep)

    asyncio.run(test())
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if "ddd" in _target(fd)]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def test_stale_socket_is_replaced_and_a_living_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    unix.bind(path).close()

    async def test() -> None:
        async with served(path, echo) as connect:
            with pytest.raises(AlreadyRunning):
                await HttpServer(echo).listen_unix(path)
            assert await ask(await connect()) == 200

    asyncio.run(test())


def test_listener_with_a_full_queue_counts_as_living(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen(0)
    callers = []
    with contextlib.suppress(BlockingIOError):
        for _ in range(5):
            callers.append(unix.connect(tmp_path / "s", 0.0))
    assert unix.reachable(tmp_path / "s")
    for each in (*callers, listener):
        each.close()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s"
    path.mkdir() if kind == "folder" else path.write_text("mine")
    with pytest.raises(StorageError, match="no socket"):
        asyncio.run(HttpServer(echo).listen_unix(path))
    assert path.is_dir() if kind == "folder" else path.read_text() == "mine"


def test_post_reads_the_refusal_of_a_body_that_was_cut_short(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path / "s", echo, 1000):
            status, body = await asyncio.to_thread(
                unix.post, tmp_path / "s", "/x", b"x" * 20_000_000
            )
            assert status == 413 and json.loads(body)["error"]["code"] == "too_large"

    asyncio.run(test())
    with pytest.raises(ServiceError, match="exo doctor"):
        unix.post(tmp_path / "nobody", "/x", b"")


def test_tcp_serves_the_same(tmp_path: Path) -> None:
    async def test() -> None:
        server = HttpServer(echo)
        port = await server.listen_tcp("127.0.0.1", 0)
        peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
        assert await ask(peer) == 200
        await peer.close()
        await server.close()

    asyncio.run(test())


# ---- the routes of exod --------------------------------------------------------------------------


def routed(
    test: Callable[[Any, Any], Awaitable[None]], keep_alive: float = 60.0
) -> Callable[[Any], Any]:
    async def body(bench: Any) -> None:
        routes = Routes(bench.dispatcher, "exod test", keep_alive)
        async with served(bench.home.exod_socket, routes) as connect:
            await test(bench, connect)

    return body


async def frames(peer: Peer, count: int) -> list[bytes]:
    """The next SSE frames, comments among them."""
    found: list[bytes] = []
    while len(found) < count:
        size = int((await asyncio.wait_for(peer.reader.readline(), 30)).strip(), 16)
        found += (await peer.reader.readexactly(size + 2)).strip().split(b"\n\n")
    return found


async def stream(connect: Any, target: str, *headers: str) -> Peer:
    peer = await connect()
    await peer.send("\r\n".join([f"GET {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode())
    head = await peer.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head
    assert await frames(peer, 1) == [b": exo"]
    return peer


def test_routes_answer_commands_health_and_refuse_the_rest(run: Run) -> None:
    async def test(bench: Any, connect: Any) -> None:
        peer = await connect()
        table = [
            (b"GET /health HTTP/1.1\r\n\r\n", 200, None),
            (post(b'{"id":"1","type":"models.list"}', target="/command"), 200, None),
            (post(b'{"id":"1","type":"none"}', target="/command"), 200, "unknown_command"),
            (post(b'{"id":"1","type":"seat.list"}', target="/command"), 200, "unsupported"),
            (post(b"nonsense", target="/command"), 400, "bad_json"),
            (post(b"[]", target="/command"), 400, "bad_envelope"),
            (b"GET /command HTTP/1.1\r\n\r\n", 405, "bad_method"),
            (b"GET / HTTP/1.1\r\n\r\n", 404, "not_found"),
            (b"GET /events?since=x HTTP/1.1\r\n\r\n", 400, "bad_since"),
            (b"GET /events?since=-1 HTTP/1.1\r\n\r\n", 400, "bad_since"),
            (b"GET /events?since=7 HTTP/1.1\r\n\r\n", 400, "bad_since"),
            (b"GET /events?since=%EF%BC%91 HTTP/1.1\r\n\r\n", 400, "bad_since"),
            (b"GET /events HTTP/1.1\r\nLast-Event-ID: 9\r\n\r\n", 400, "bad_since"),
        ]
        for data, status, code in table:
            await peer.send(data)
            found, _, body = await peer.answer()
            answer = json.loads(body)
            assert (found, (answer.get("error") or {}).get("code")) == (status, code), data

    run(routed(test))


def test_command_of_exactly_eight_megabytes_is_read_and_one_more_refused(run: Run) -> None:
    async def test(bench: Any, connect: Any) -> None:
        head = b'{"id":"1","type":"none"}'
        for size, status, code in ((LIMIT, 200, "unknown_command"), (LIMIT + 1, 413, "too_large")):
            peer = await connect()
            await peer.send(post(head + b" " * (size - len(head)), target="/command"))
            found, _, body = await peer.answer()
            assert (found, json.loads(body)["error"]["code"]) == (status, code)

    run(routed(test))


def test_two_streams_and_a_replay_are_the_same_bytes(run: Run) -> None:
    async def test(bench: Any, connect: Any) -> None:
        live = [await stream(connect, "/events") for _ in range(2)]
        session = await bench.session()
        await bench.ask(session, "hello")
        count = bench.hub.seq
        first, second = [await frames(peer, count) for peer in live]
        replay = await frames(await stream(connect, "/events?since=0"), count)
        assert first == second == replay
        rows = bench.database.rows("SELECT seq, data FROM events ORDER BY seq")
        assert first == [f"id: {seq}\ndata: {data}".encode() for seq, data in rows]
        peer = await stream(connect, "/events?since=1", f"Last-Event-ID: {count - 1}")
        assert await frames(peer, 1) == [first[-1]]
        other = await bench.session()
        peer = await stream(connect, f"/events?since=0&session={other}")
        assert json.loads((await frames(peer, 1))[0].split(b"data: ")[1])["session"] == other

    run(routed(test))


def test_idle_stream_gets_comments(run: Run) -> None:
    async def test(bench: Any, connect: Any) -> None:
        peer = await stream(connect, "/events")
        assert await frames(peer, 2) == [b": keep-alive"] * 2

    run(routed(test, keep_alive=0.01))


def test_a_refusing_disk_and_a_pruned_start_are_told_in_frames_of_their_own(run: Run) -> None:
    async def test(bench: Any, connect: Any) -> None:
        for _ in range(70):
            await bench.session()
            await bench.call("tool.run", session=await bench.session(), tool="time", args={})
        peer = await stream(connect, "/events?since=0")
        told, event = (await frames(peer, 2))[:2]
        assert told.startswith(b'event: truncated\ndata: {"code": "truncated"')
        assert told.endswith(b'starts at %d"}' % bench.hub.first)
        assert event.startswith(b"id: %d\n" % bench.hub.first)
        peer = await stream(connect, "/events")
        bench.disk.arm(1, lasting=True)
        assert await bench.refused("session.create") == "storage"
        fault = (await frames(peer, 1))[0]
        assert fault.startswith(b'event: fault\ndata: {"code": "storage"')
        bench.disk.arm(0)
        await bench.session()
        assert (await frames(peer, 1))[0].startswith(b"id: ")

    run(routed(test), env={"EXO_EVENTS_KEEP": "100"})


def test_a_subscriber_that_stops_reading_blocks_nobody_and_is_let_go(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(httpd, "STALL", 0.5)

    async def test(bench: Any, connect: Any) -> None:
        def deaf(done: threading.Event) -> None:
            link = unix.connect(bench.home.exod_socket)
            link.sendall(b"GET /events?since=0 HTTP/1.1\r\n\r\n")
            done.wait(60)
            link.close()

        done = threading.Event()
        stuck = asyncio.create_task(asyncio.to_thread(deaf, done))
        session = await bench.session()
        while not bench.hub.listeners:
            await asyncio.sleep(0.01)
        reader = await stream(connect, "/events?since=0")
        from exo.core.protocol.schema import Notice

        for n in range(3000):
            bench.hub.publish(session, Notice("info", "n", f"{n} " + "x" * 500))
        got = await frames(reader, 3001)
        assert len(got) == 3001
        while (
            bench.hub.listeners > 1
        ):  # the deaf one was let go; it may come back with Last-Event-ID
            await asyncio.sleep(0.01)
        await reader.close()
        while bench.hub.listeners:
            await asyncio.sleep(0.01)
        done.set()
        await stuck

    run(routed(test))
