"""The protocol over TCP, for other programs of this machine or, when told so, the network around it.

Owns the token, the address and who may ask; what is asked is the routes' matter. There is no TLS: who
listens on the wire reads everything. Invariant: no request is looked into before its token was
compared, and none is answered without one."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from exo.core.base.errors import SettingError, storage_error
from exo.core.base.files import write_atomic
from exo.core.base.httpd import Handler, HttpError, Request, Response, error_response

VARIABLE = "EXO_TOKEN"
SHORTEST = 32  # characters of a token: a made one has 43
CONNECTIONS = 64  # at once
HEAD_WAIT = 10.0  # seconds for the head of a request to arrive whole
WARNING = "not encrypted: use it on this machine or a network that you trust, or through a tunnel"


def parse_address(text: str, lan: bool) -> tuple[str, int]:
    """Return (numeric host, port) of `HOST:PORT`. Raises SettingError for what is none, and for one
    that others can reach when `lan` does not say so."""
    what = f"listen on {text!r}"
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise SettingError(what, "no address", "write HOST:PORT, such as 127.0.0.1:7723")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise SettingError(what, f"unknown host: {error}") from error
    numeric = str(found[0][4][0])
    if not lan and not ipaddress.ip_address(numeric.partition("%")[0]).is_loopback:
        why = f"{numeric} can be reached from the network and the wire is not encrypted"
        raise SettingError(what, why, "use 127.0.0.1, or add --lan to mean it")
    return numeric, int(port)


def load_token(path: Path, environ: Mapping[str, str] | None = None) -> str:
    """Return the token of EXO_TOKEN, else of the file `path`, which is made when it is not there.
    Raises SettingError for a token that is too short or a file that others can read."""
    given = (os.environ if environ is None else environ).get(VARIABLE, "")
    if given:
        return _checked(given, VARIABLE)
    try:
        if not path.exists():
            write_atomic(path, secrets.token_urlsafe(32) + "\n")
        if path.stat().st_mode & 0o077:
            do = f"remove it for a new one, and do not let others read that: rm {path}"
            raise SettingError(f"use the token in {path}", "others can read it", do)
        return _checked(path.read_text(errors="replace").strip(), str(path))
    except OSError as error:
        raise storage_error(f"open {path}", error) from error


def _checked(token: str, source: str) -> str:
    if len(token) < SHORTEST or not (token.isascii() and token.isprintable() and " " not in token):
        why = f"the token in {source} is not {SHORTEST} or more visible ASCII characters"
        raise SettingError("serve on TCP", why, f"unset or remove {source} and one is made")
    return token


class Guarded:
    """Lets requests with the token through to `handler`. A browser is no client: a page of another
    site is refused by its Origin, a rebound name by its Host, and no CORS header is ever sent."""

    def __init__(self, handler: Handler, token: str) -> None:
        self._handler, self._token = handler, token.encode()

    async def __call__(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        if not _known(host):
            raise HttpError(403, "bad_host", "ask by IP address, localhost or this machine's name")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:  # RFC 6454: no path follows
            raise HttpError(403, "bad_origin", "pages of other sites are not served")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("utf-8"), self._token)
        if scheme.lower() != "bearer" or not right:
            why = "the header `Authorization: Bearer TOKEN` is missing or wrong"
            answer = error_response(401, "unauthorized", f"{why}; see state/token")
            answer.headers["WWW-Authenticate"] = 'Bearer realm="exo"'
            return answer
        return await self._handler(request)


def _known(host: str) -> bool:
    """Whether a Host header cannot be a foreign name that was made to point here (DNS rebinding)."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if name in ("localhost", socket.gethostname().lower()):
        return True
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name.partition("%")[0]).version)
    return name.endswith((".localhost", ".local"))
