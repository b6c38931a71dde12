"""Unix sockets whose path may be longer than the 107 bytes of sockaddr_un (unix(7)), and the HTTP
client on them. Standard library only."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from exo.core.base.errors import ServiceError

JSON = "application/json"
Body = bytes | Iterable[bytes] | dict[str, Any]


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a name of `path` that fits a socket address: itself, or through /proc/self/fd."""
    if len(os.fsencode(path)) <= 107:
        yield str(path)
        return
    handle = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{path.name}"
    finally:
        os.close(handle)


def bind(path: Path) -> socket.socket:
    """Return a listening socket at `path`. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(path) as name:
            listener.bind(name)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def connect(path: Path, timeout: float | None = 10.0) -> socket.socket:
    """Return a connected socket. Raises OSError (nobody listens, no such file)."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(timeout)
        with short_path(path) as name:
            link.connect(name)
    except BaseException:
        link.close()
        raise
    return link


def reachable(path: Path) -> bool:
    """Whether a living process listens on `path`."""
    try:
        connect(path, 1.0).close()
    except BlockingIOError:
        return True  # its queue of callers is full: busy, not gone
    except OSError:
        return False
    return True


class UnixConnection(http.client.HTTPConnection):
    """http.client over a Unix socket; `timeout` is seconds of silence, None for no limit."""

    def __init__(self, path: Path, timeout: float | None = 10.0) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = connect(self.path, self.timeout)


def post(
    path: Path, target: str, body: Body, *, content_type: str = JSON, timeout: float | None = 10.0
) -> tuple[int, bytes]:
    """POST to a server on a Unix socket and return (status, body). An iterable is sent chunked, as it
    yields. Raises ServiceError when nobody answers, falls silent for `timeout` or hangs up."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    return _ask(path, "POST", target, data, {"Content-Type": content_type}, timeout)


def get(path: Path, target: str, timeout: float | None = 10.0) -> dict[str, Any]:
    """GET a JSON object. Raises ServiceError."""
    _, raw = _ask(path, "GET", target, None, {}, timeout)
    with contextlib.suppress(ValueError):
        if isinstance(value := json.loads(raw), dict):
            return value
    raise ServiceError(f"read {target} from {path}", "the answer is no JSON object")


def _ask(
    path: Path, method: str, target: str, data: Any, headers: dict[str, str], timeout: float | None
) -> tuple[int, bytes]:
    chunked = data is not None and not isinstance(data, bytes)
    with contextlib.closing(UnixConnection(path, timeout)) as link:
        try:
            # a server may refuse a large body before all of it is sent: then its answer waits here
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                link.request(method, target, data, headers, encode_chunked=chunked)
            answer = link.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            why, do = str(error) or type(error).__name__, "see whether it runs with `exo doctor`"
            raise ServiceError(f"ask {path} for {target}", why, do) from error
