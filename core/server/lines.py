"""The protocol as JSON lines on two byte streams (stdio, a serial line): commands in; responses, and
after events.subscribe events, out. One writer, so that lines never mix."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from exo.core.base.errors import ExoError
from exo.core.protocol.codec import encode, failure
from exo.core.protocol.schema import EventsSubscribe, SubscribeResult
from exo.core.server.dispatcher import Dispatcher

LINE_LIMIT = 8 * 1024 * 1024  # bytes
SLOW = 0.2  # seconds after which a command no longer holds up the next: it may wait for the person,
# whose answer comes on this very line
LINGER = 60.0  # seconds that a peer's last commands may take once it has closed its side


@dataclass
class LineSession:
    """Serves one peer until it closes its side."""

    _dispatcher: Dispatcher
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _keep_alive: float = 15.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _following: set[asyncio.Task[None]] = field(default_factory=set)
    _answering: set[asyncio.Task[bool]] = field(default_factory=set)

    async def run(self) -> None:
        try:
            while (line := await self._line()) is not None:
                if not line.strip():
                    continue
                answer = asyncio.create_task(self._answer(line))
                self._answering.add(answer)
                answer.add_done_callback(self._answering.discard)
                await asyncio.wait({answer}, timeout=SLOW)
                if answer.done() and not answer.result():
                    return
            if self._answering:
                await asyncio.wait(self._answering, timeout=LINGER)
        except ConnectionError:
            pass  # the peer is gone
        finally:
            tasks = [*self._following, *self._answering]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _line(self) -> bytes | None:
        """The next line, None at the end; an over-long one is answered and skipped."""
        while True:
            try:
                return await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                return error.partial or None
            except asyncio.LimitOverrunError:
                await self._skip()
                text = f"a line is over {LINE_LIMIT} bytes"
                await self._send(encode(failure("", "too_large", text)))

    async def _skip(self) -> None:
        """Drop what is left of an over-long line, and nothing of the next."""
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                try:
                    await self._reader.readuntil(b"\n")
                    return
                except asyncio.LimitOverrunError as error:
                    await self._reader.readexactly(error.consumed)

    async def _answer(self, line: bytes) -> bool:
        """Return False when the peer is gone."""
        response = await self._dispatcher.respond(line, self._subscribe)
        with contextlib.suppress(ConnectionError):
            await self._send(encode(response))
            return True
        return False

    def _subscribe(self, body: EventsSubscribe) -> SubscribeResult:
        """Follow from now on; the response is written first, because the task has yet to start."""
        hub = self._dispatcher.hub
        since = hub.seq if body.since is None else body.since
        hub.check_since(since)
        self._following.add(asyncio.create_task(self._follow(since, body.session)))
        return SubscribeResult(hub.seq, hub.first)

    async def _follow(self, since: int, session: str | None) -> None:
        with contextlib.suppress(ConnectionError):
            async for row in self._dispatcher.hub.follow(since, session, self._keep_alive):
                if isinstance(row, ExoError):
                    await self._send(encode(failure("", row.code, str(row))))
                elif row is not None:
                    await self._send(row[2])

    async def _send(self, line: bytes) -> None:
        async with self._lock:
            self._writer.write(line + b"\n")
            await self._writer.drain()
