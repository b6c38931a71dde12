"""HTTP and Server-Sent Events in front of the dispatcher.

POST /command: a command, its response. GET /events?since=N&session=S (or Last-Event-ID): the stream,
a comment every 15 s. GET /health. Knows nothing of what commands do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from exo.core.base.errors import ExoError, ProtocolError
from exo.core.base.httpd import HttpError, Request, Response, json_response
from exo.core.protocol.codec import encode
from exo.core.protocol.schema import VERSION
from exo.core.server.dispatcher import Dispatcher
from exo.core.server.hub import Hub, Truncated

KEEP_ALIVE = 15.0  # seconds


class Routes:
    """The handler of exod's HTTP server."""

    def __init__(self, dispatcher: Dispatcher, server: str, keep_alive: float = KEEP_ALIVE) -> None:
        self._dispatcher, self._hub = dispatcher, dispatcher.hub
        self._server, self._keep_alive = server, keep_alive

    async def __call__(self, request: Request) -> Response:
        table = {
            "/command": ("POST", self._command),
            "/events": ("GET", self._events),
            "/health": ("GET", self._health),
        }
        if request.path not in table:
            raise HttpError(404, "not_found", f"there is no {request.path}; see /health")
        method, handler = table[request.path]
        if request.method != method:
            raise HttpError(405, "bad_method", f"{request.path} takes {method}")
        return await handler(request)

    async def _command(self, request: Request) -> Response:
        response = await self._dispatcher.respond(await request.body())
        code = response.error.code if response.error else ""
        return Response(encode(response), 400 if code in ("bad_json", "bad_envelope") else 200)

    async def _health(self, request: Request) -> Response:
        facts = {"status": "ok", "protocol": VERSION, "seq": self._hub.seq, "server": self._server}
        return json_response(facts)

    async def _events(self, request: Request) -> Response:
        # the browser's own reconnect is newer than the address it was given
        text = request.headers.get("last-event-id", request.query.get("since", ""))
        if text and not (text.isascii() and text.isdigit() and len(text) < 19):
            raise HttpError(400, "bad_since", f"since={text!r}: a whole number from 0 is wanted")
        since = int(text) if text else self._hub.seq
        try:
            self._hub.check_since(since)
        except ProtocolError as error:
            raise HttpError(400, error.code, str(error)) from error
        session = request.query.get("session") or None
        stream = sse(self._hub, since, session, self._keep_alive)
        return Response(stream, 200, "text/event-stream", {"Cache-Control": "no-store"})


async def sse(hub: Hub, since: int, session: str | None, keep_alive: float) -> AsyncIterator[bytes]:
    """The stream as Server-Sent Events (WHATWG HTML 9.2). Two frames are no events of the record:
    `truncated` tells where it starts when older events were pruned, `fault` that the disk refuses."""
    yield b": exo\n\n"
    rows = hub.follow(since, session, keep_alive)
    try:
        async for row in rows:
            if row is None:
                yield b": keep-alive\n\n"
            elif isinstance(row, ExoError):
                name = "truncated" if isinstance(row, Truncated) else "fault"
                data = json.dumps({"code": row.code, "message": str(row)}, ensure_ascii=False)
                yield f"event: {name}\ndata: {data}\n\n".encode()
            else:
                yield b"id: %d\ndata: %b\n\n" % (row[0], row[2])
    finally:
        await rows.aclose()
