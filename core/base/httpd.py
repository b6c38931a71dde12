"""A small HTTP/1.1 server on asyncio streams (RFC 9112), for Unix sockets and TCP.

Owns parsing, limits, time-outs, streaming both ways and noticing that a client went away; knows no
route. Invariant: whatever arrives, the answer is a response or a closed connection, and a handler
whose client has gone is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from exo.core.base.errors import AlreadyRunning, ServiceError, StorageError, storage_error
from exo.core.base.files import make_folder
from exo.core.base.unix import bind, reachable

HEAD_LIMIT = 32 * 1024  # bytes of request line and headers
BODY = 8 * 1024 * 1024  # bytes of a body, unless told
TRAILERS = 64  # lines after a chunked body
IDLE = 75.0  # seconds a connection may wait for its next request
STALL = 30.0  # seconds a client may stop in the middle of a request, or stop reading an answer
LINGER = 2.0  # seconds a refused client may go on sending
HALF_CLOSED = 0.05  # seconds in which one who closed only its sending side still gets its answer
_START = re.compile(r"([!-~]+) ([!-~]+) HTTP/1\.[0-9]")
_FIELD = re.compile(r"([!-9;-~]+):([\t -~\x80-\xff]*)")
# twins of these are how requests are smuggled
_ONCE = ("content-length", "transfer-encoding", "host")


class HttpError(Exception):
    """Raise in a handler to answer with `status` and {"error": {"code", "message"}}."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass
class Request:
    """One request. Read the body once, whole by `body()` or piece by piece by `chunks()`."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _limit: int
    # not set while bytes of the body still stand in the stream: no next request can follow them
    _whole: asyncio.Event = field(default_factory=asyncio.Event)
    _taken: bool = False

    async def body(self) -> bytes:
        """The whole body. Raises HttpError 413 above the server's limit."""
        return b"".join([piece async for piece in self.chunks()])

    async def json(self) -> object:
        """The body as JSON. Raises HttpError 400 for what is none."""
        raw = await self.body()
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, "bad_json", f"read the body: no JSON: {error}") from error

    async def chunks(self, stall: float = STALL) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; each piece must come within `stall` seconds."""
        if self._taken:
            return
        self._taken = True
        if self.headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        total = 0
        async for left in self._parts(stall):
            total += left
            if total > self._limit:
                raise HttpError(413, "too_large", f"the body is over {self._limit} bytes")
            while left:
                piece = await _timed(self._reader.read(min(left, 65536)), stall)
                if not piece:
                    raise ConnectionError("the client went away in the middle of its request")
                left -= len(piece)
                yield piece
        self._whole.set()

    async def _parts(self, stall: float) -> AsyncIterator[int]:
        """Yield the length of each part of the body; the part is read before the next is asked for."""
        if "transfer-encoding" not in self.headers:
            yield int(self.headers.get("content-length", 0))
            return
        while size := await self._chunk_size(stall):
            yield size
            if await self._line(stall):
                raise HttpError(400, "bad_chunk", "a chunk of the body is not as long as it says")
        for _ in range(TRAILERS):
            if not await self._line(stall):
                return
        raise HttpError(400, "bad_chunk", "too many trailers follow the body")

    async def _chunk_size(self, stall: float) -> int:
        # int() alone would take -5, +5, 0x5 and 1_0: RFC 9112 7.1 has hex digits and nothing else
        digits = re.fullmatch(rb"\s*([0-9a-fA-F]{1,16})\s*(;.*)?", await self._line(stall), re.S)
        if digits is None:
            raise HttpError(400, "bad_chunk", "a chunk of the body has no size")
        return int(digits[1], 16)

    async def _line(self, stall: float) -> bytes:
        try:
            return (await _timed(self._reader.readuntil(b"\n"), stall)).rstrip(b"\r\n")
        except asyncio.LimitOverrunError as error:
            raise HttpError(400, "bad_chunk", "a line between chunks has no end") from error


@dataclass
class Response:
    """An answer; an async iterator as body is sent piece by piece and closed when the client goes."""

    body: bytes | AsyncIterator[bytes] = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def json_response(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), status)


def error_response(status: int, code: str, message: str) -> Response:
    return json_response({"error": {"code": code, "message": message}}, status)


class HttpServer:
    """Serves `handler` until `close()`. One task a connection; keep-alive; no pipelining."""

    def __init__(
        self, handler: Handler, body_limit: int = BODY, *, most: int = 0, wait: float = IDLE
    ) -> None:
        """`most` connections at once (0: any number); a head must be whole within `wait` seconds."""
        self._handler, self._limit, self._most, self._wait = handler, body_limit, most, wait
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen_unix(self, path: Path) -> None:
        """Listen on `path`, mode 0600; a stale socket is replaced, a living one is refused."""
        make_folder(path.parent)
        what = f"listen on {path}"
        if reachable(path):
            raise AlreadyRunning(what, "a living process answers there")
        if path.exists() and not path.is_socket():
            raise StorageError(what, "a file that is no socket is there", "move it")
        mask = os.umask(0o177)  # no moment at which others could connect
        try:
            path.unlink(missing_ok=True)
            listener = bind(path)
        except OSError as error:
            raise storage_error(what, error) from error
        finally:
            os.umask(mask)
        await self._serve(listener)

    async def listen_tcp(self, host: str, port: int) -> int:
        """Listen on TCP; returns the port (0 asks the kernel for one). Raises ServiceError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listener = socket.create_server((host, port), family=family)
        except OSError as error:
            why = error.strerror or str(error)
            raise ServiceError(f"listen on {host} port {port}", why, "use another port") from error
        await self._serve(listener)
        return int(listener.getsockname()[1])

    async def close(self) -> None:
        """Stop listening and end every connection."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, listener: socket.socket) -> None:
        listener.setblocking(False)

        def protocol() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(_Reader(limit=HEAD_LIMIT), self._accept)

        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(protocol, sock=listener))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _Reader)
        if self._most and len(self._tasks) >= self._most:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        # many small pieces go out: a slow client must be felt early, not after megabytes
        writer.transport.set_write_buffer_limits(high=256 * 1024)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client is gone: nobody is left to tell
        except Exception:  # noqa: BLE001 - a stream that breaks costs its own connection alone
            traceback.print_exc(file=sys.stderr)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                await _timed(writer.wait_closed(), 5)
            writer.transport.abort()  # who does not read the rest by then is cut off

    async def _exchange(self, reader: _Reader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; returns whether the connection goes on."""
        try:
            request = await self._read_head(reader, writer)
        except HttpError as error:
            await _send(writer, error_response(error.status, error.code, error.message), False)
            await _linger(reader, writer)
            return False
        if request is None:
            return False
        answer = asyncio.create_task(self._answer(request))
        gone = asyncio.create_task(_gone(request, reader))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            return answer.done() and answer.result()
        finally:
            for each in (answer, gone):
                each.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)

    async def _read_head(self, reader: _Reader, writer: asyncio.StreamWriter) -> Request | None:
        try:
            head = await _timed(reader.readuntil(b"\r\n\r\n"), self._wait)
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                raise HttpError(400, "bad_request", "the request ends in its headers") from error
            return None
        except asyncio.LimitOverrunError as error:
            text = f"the headers are over {HEAD_LIMIT} bytes"
            raise HttpError(431, "too_large", text) from error
        try:
            method, target, headers = _parse_head(head.decode("latin-1").removesuffix("\r\n\r\n"))
            parts = urlsplit(target)
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            # it may have too many digits to be a number
            length = int(headers.get("content-length", 0))
        except ValueError as error:
            raise HttpError(400, "bad_request", "this is no HTTP/1.1 request") from error
        request = Request(method, parts.path, query, headers, reader, writer, self._limit)
        if not length and "transfer-encoding" not in headers:
            request._whole.set()
        return request

    async def _answer(self, request: Request) -> bool:
        response = await self._guard(request)
        keep = request.headers.get("connection", "").lower() != "close" and request._whole.is_set()
        keep = keep and request.method != "HEAD"  # whose client takes no body: ours would stay
        await _send(request._writer, response, keep)
        if not request._whole.is_set():
            await _linger(request._reader, request._writer)
        return keep

    async def _guard(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except HttpError as error:
            return error_response(error.status, error.code, error.message)
        except TimeoutError:
            return error_response(408, "timeout", "the request stopped in the middle")
        except (ConnectionError, asyncio.IncompleteReadError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not end the server
            traceback.print_exc(file=sys.stderr)
            return error_response(500, "internal", f"{type(error).__name__}: {error}")


class _Reader(asyncio.StreamReader):
    """Tells when the client closed its side, also to one who reads nothing."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.ended = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)  # the connection was reset: no end of file comes then
        self.ended.set()


async def _gone(request: Request, reader: _Reader) -> None:
    """Return when the client went away; looks once the request's body is read."""
    await request._whole.wait()
    await reader.ended.wait()
    await asyncio.sleep(HALF_CLOSED)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take what a refused client still sends, for a moment: closing on unread bytes resets the
    connection, and many a client then never reads its answer (RFC 9112 9.6)."""
    with contextlib.suppress(TimeoutError, OSError):  # it may be gone already
        writer.write_eof()
        async with asyncio.timeout(LINGER):
            while await reader.read(65536):
                pass


async def _send(writer: asyncio.StreamWriter, response: Response, keep: bool) -> None:
    status = HTTPStatus(response.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {response.content_type}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines.append("Connection: keep-alive" if keep else "Connection: close")
    whole = response.body if isinstance(response.body, bytes) else None
    length = "Transfer-Encoding: chunked" if whole is None else f"Content-Length: {len(whole)}"
    writer.write("\r\n".join([*lines, length, "\r\n"]).encode("latin-1") + (whole or b""))
    if not isinstance(response.body, bytes):
        await _stream(writer, response.body)
        writer.write(b"0\r\n\r\n")
    await _timed(writer.drain(), STALL)


async def _stream(writer: asyncio.StreamWriter, body: AsyncIterator[bytes]) -> None:
    """Send the pieces; a client that goes away or stops reading ends the iterator."""
    try:
        async for piece in body:
            if piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await _timed(writer.drain(), STALL)
    finally:
        if close := getattr(body, "aclose", None):
            await close()


async def _timed(awaitable: Awaitable[T], seconds: float) -> T:
    # not wait_for: in 3.11 it loses a cancellation that meets the result, and close() waits for ever
    async with asyncio.timeout(seconds):
        return await awaitable


def _parse_head(head: str) -> tuple[str, str, dict[str, str]]:
    """Return method, target and headers. Raises ValueError for what RFC 9112 does not allow."""
    first, *rest = head.split("\r\n")
    if (start := _START.fullmatch(first)) is None:
        raise ValueError(first)
    headers: dict[str, str] = {}
    for line in rest:
        found = _FIELD.fullmatch(line)
        if found is None or found[1].lower() in headers and found[1].lower() in _ONCE:
            raise ValueError(line)
        headers[found[1].lower()] = found[2].strip()
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if length is not None and not re.fullmatch("[0-9]+", length):
        raise ValueError(length)
    if coding is not None and (length is not None or coding != "chunked"):
        raise ValueError(coding)  # RFC 9112 6.1: smuggling
    return start[1], start[2], headers
