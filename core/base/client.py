"""The protocol client: commands in, events out, over exod's Unix socket. Standard library only, so
that every room can use it. Survives a restart of exod: `events` goes on after the last number seen."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exo.core.base.errors import ProtocolError, ServiceError
from exo.core.base.unix import UnixConnection, post

SILENCE = 45.0  # seconds: exod sends a comment every 15, so silence means that it is gone


class Client:
    """One client of one exod. Safe to use from several threads: each call has its own connection."""

    def __init__(self, socket: Path, timeout: float = 10.0) -> None:
        self.socket, self.timeout = socket, timeout

    def call(self, type_: str, /, **body: Any) -> dict[str, Any]:
        """Send one command and return its result. Raises ProtocolError with exod's code, or
        ServiceError when exod does not answer within the time-out."""
        command = {"id": secrets.token_hex(8), "type": type_, "body": body}
        _, raw = post(self.socket, "/command", command, timeout=self.timeout)
        try:
            response = json.loads(raw)
            if response.get("ok"):
                return dict(response.get("result") or {})
            error = response.get("error") or {}
        except (ValueError, AttributeError) as error_:
            raise ServiceError(f"send {type_} to {self.socket}", "no JSON came back") from error_
        code = str(error.get("code", "internal"))
        raise ProtocolError(type_, str(error.get("message", "refused")), code=code)

    def wait_ready(self, seconds: float) -> dict[str, Any]:
        """Say hello until exod answers; returns its hello. Raises ServiceError after `seconds`."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.call("hello", protocol=1, client="exo")
            except ServiceError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def events(
        self,
        since: int | None = None,
        session: str | None = None,
        stop: threading.Event | None = None,
        retry: float = 30.0,
    ) -> Iterator[dict[str, Any]]:
        """Yield events numbered above `since` (None: only new ones), then live ones, for ever or until
        `stop` is set (looked at once a second). A `fault` (the disk refuses) and `truncated` (older
        events are gone) come with seq 0: they are no events of the record. A lost connection is resumed without loss; raises
        ServiceError when exod stays away for `retry` seconds."""
        last = since
        if last is None:
            last = int(self.call("hello", protocol=1, client="exo")["seq"])
        lost_at: float | None = None
        while stop is None or not stop.is_set():
            try:
                for event in self._stream(last, session, stop):
                    lost_at = None
                    last = max(last, int(event["seq"]))
                    yield event
            except (OSError, http.client.HTTPException, ValueError) as error:
                now = time.monotonic()
                lost_at = lost_at or now
                if now - lost_at > retry:
                    why = str(error) or type(error).__name__
                    raise ServiceError(f"follow events of {self.socket}", why) from error
                time.sleep(0.1)

    def _stream(
        self, since: int, session: str | None, stop: threading.Event | None
    ) -> Iterator[dict[str, Any]]:
        link = UnixConnection(self.socket, self.timeout)
        try:
            target = f"/events?since={since}" + (f"&session={session}" if session else "")
            link.request("GET", target)
            answer = link.getresponse()
            if answer.status != 200:
                raise ProtocolError("events", answer.read().decode(errors="replace"))
            # one timed recv at a time: a buffered readline would lose what it holds at a time-out
            sock = link.sock
            sock.settimeout(1.0)
            yield from _parse_events(_lines(answer, stop))
        finally:
            link.close()


def _lines(answer: http.client.HTTPResponse, stop: threading.Event | None) -> Iterator[bytes]:
    """Yield lines of a chunked answer; ends on `stop`, raises OSError after SILENCE or a cut."""
    pending, heard = b"", time.monotonic()
    while stop is None or not stop.is_set():
        try:
            piece = answer.read1(65536)
        except TimeoutError:
            if time.monotonic() - heard > SILENCE:
                raise
            # http.client's buffered reader refuses to go on after a time-out unless told
            _rearm(answer)
            continue
        if not piece:
            raise ConnectionError("exod closed the stream")
        heard = time.monotonic()
        *lines, pending = (pending + piece).split(b"\n")
        yield from lines


def _rearm(answer: http.client.HTTPResponse) -> None:
    raw = getattr(answer.fp, "raw", None)
    if raw is not None:
        raw._timeout_occurred = False


def _parse_events(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Server-Sent Events (WHATWG HTML 9.2) as exod sends them: one `data:` line an event."""
    name = ""
    for line in lines:
        if line.startswith(b"event:"):
            name = line[6:].strip().decode()
        elif line.startswith(b"data:"):
            value = json.loads(line[5:])
            if name:
                value = {"seq": 0, "session": None, "type": name, "body": value}
            name = ""
            yield value
