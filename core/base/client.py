"""The protocol client: commands in, events out, over exod's Unix socket. Standard library only, so
that every room can use it. Survives a restart of exod: `events` goes on after the last number seen."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from exo.core.base.errors import ProtocolError, ServiceError
from exo.core.base.unix import connect, post

SILENCE = 45.0  # seconds: exod sends a comment every 15, so silence means that it is gone


class Client:
    """One client of one exod. Safe to use from several threads: each call has its own connection."""

    def __init__(self, socket: Path, timeout: float = 10.0) -> None:
        self.socket, self.timeout = socket, timeout

    def patient(self, timeout: float) -> Client:
        """The same exod with another time-out."""
        return Client(self.socket, timeout)

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

    def send(
        self, session: str, text: str, mode: str = "send", message: str = "", retry: float = 30.0
    ) -> str:
        """Say `text`; returns the turn. Until exod answers, for `retry` seconds, it is sent again
        under the same id (`message`, else a new one), so that it is said once whatever breaks."""
        body = {"session": session, "text": text, "mode": mode}
        body["message"] = message or secrets.token_hex(8)
        return str(self._insist("turn.send", body, retry)["turn"])

    def wait_ready(self, seconds: float) -> dict[str, Any]:
        """Say hello until exod answers; returns its hello. Raises ServiceError after `seconds`."""
        return self._insist("hello", {"protocol": 1, "client": "exo"}, seconds)

    def _insist(self, type_: str, body: dict[str, Any], seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while True:
            try:
                return self.call(type_, **body)
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
        events are gone) come with seq 0: they are no events of the record. A lost connection is resumed
        without loss; raises ServiceError when exod stays away for `retry` seconds, ProtocolError for a
        position that it does not have."""
        last = int(self.call("hello", protocol=1, client="exo")["seq"]) if since is None else since
        lost_at: float | None = None
        while stop is None or not stop.is_set():
            try:
                for event in self._stream(last, session, stop):
                    lost_at = None
                    if event is not None:
                        last = max(last, int(event["seq"]))
                        yield event
            except ProtocolError:
                raise  # exod is there and refuses: asking again changes nothing
            except (OSError, ValueError) as error:
                now = time.monotonic()
                lost_at = lost_at or now
                if now - lost_at > retry:
                    why = str(error) or type(error).__name__
                    raise ServiceError(f"follow events of {self.socket}", why) from error
                time.sleep(0.1)

    def _stream(
        self, since: int, session: str | None, stop: threading.Event | None
    ) -> Iterator[dict[str, Any] | None]:
        """Events of one connection, until it breaks; None first, once it stands."""
        target = f"/events?since={since}" + (f"&session={quote(session)}" if session else "")
        with contextlib.closing(connect(self.socket, self.timeout)) as link:
            head = f"GET {target} HTTP/1.1\r\nHost: exod\r\nConnection: close\r\n\r\n"
            link.sendall(head.encode())
            lines = _lines(link, stop)
            status = next(lines, b"").split()
            if status[1:2] == [b"200"]:
                yield None
                yield from _parse_events(lines)
            for line in lines:  # of a refusal
                if line.startswith(b"{"):
                    error = json.loads(line)["error"]
                    raise ProtocolError("follow events", error["message"], code=error["code"])


def _lines(link: socket.socket, stop: threading.Event | None) -> Iterator[bytes]:
    """Lines as they come, until `stop`, which is looked at once a second. Raises ConnectionError at the
    end of the connection, TimeoutError after SILENCE.

    The lengths of the chunks (RFC 9112 7.1) come along as lines of their own: exod sends each event
    whole and with its line's end in one chunk. Not http.client: its reader loses its place when a read
    times out, which on a quiet stream is the rule."""
    link.settimeout(1.0)
    heard, data = time.monotonic(), b""
    while stop is None or not stop.is_set():
        try:
            piece = link.recv(65536)
        except TimeoutError:
            if time.monotonic() - heard > SILENCE:
                raise
            continue
        heard = time.monotonic()
        *lines, data = (data + piece).split(b"\n")
        yield from lines
        if not piece:
            yield data
            raise ConnectionError("exod closed the stream")


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
