"""The tool http_request, off unless a person turned it on. Owns what may be asked of whom.

Invariant: only http and https; every hop of a redirect is checked again, and none leads from a public
address into the person's own network."""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, urlsplit

from exo.core.base.errors import ExoError
from exo.core.substrate.secrets import Secrets
from exo.core.toolbox.registry import Context, Risk
from exo.core.toolbox.workers import in_thread

if TYPE_CHECKING:
    import httpx

BODY_LIMIT = 1_000_000  # bytes of an answer, unpacked
MARGIN = 64_000  # bytes that are read beyond them
HOPS = 5
SILENCE = 30.0  # seconds
# charsets that are decoded in a blink; a server may name `punycode` and hold up exod for minutes
_CHARSET = re.compile(r"utf|ascii|iso|latin|windows|cp\d|koi8|gb|big5|shift|euc", re.I)
Headers = dict[str, str] | None
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


async def http_request(
    context: Context,
    method: Method,
    url: str,
    headers: Headers = None,
    body: str = "",
    secrets: Secrets | None = None,
) -> str:
    """Send an HTTP request and read status, type and text of the answer.

    `{{secret:NAME}}` in address (coded), headers or body becomes the value of `secrets` on its way out. Raises ExoError
    for an address that is refused or does not answer, and for a secret that may not go there."""
    if secrets is None or not secrets.used(url, body, *(headers or {}).values()):
        return await _request(method, url, headers, body)
    url = url.strip()
    host, scheme = _split(url).hostname or "", _split(url).scheme
    if scheme != "https" and not _local(host):
        raise ExoError(f"{method} {url[:200]}", "a secret goes through https alone")
    filled = {name: secrets.fill(value, host) for name, value in (headers or {}).items()}
    begin = re.match(r"[^/?#]*//[^/?#]*", url)
    at = begin.end() if begin else 0
    # coded: a value with a slash would make another host of what stands before it
    full = secrets.fill(url[:at], host, "") + secrets.fill(url[at:], host, "/")
    try:
        return await _request(method, full, filled, secrets.fill(body, host), url, secrets.hide)
    except ExoError as error:
        raise ExoError(f"{method} {url[:200]}", secrets.hide(str(error))) from None


async def _request(
    method: Method,
    url: str,
    headers: Headers,
    body: str,
    shown: str = "",
    hide: Callable[[str], str] = str,
) -> str:
    """The answer as text. `shown` is the address for errors of a request that holds a secret: it follows no
    redirect to another origin, and `hide` goes over what comes back."""
    import httpx

    for name in ("httpx", "httpcore"):  # they write whole addresses into the log
        logging.getLogger(name).setLevel(logging.WARNING)
    about = f"{method} {(shown or url)[:200]}"

    class Checked(httpx.AsyncHTTPTransport):
        """Connects to the very address that was checked: a name may lead elsewhere the next time."""

        private = True

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            named = request.url
            origin = named.copy_with(userinfo=b"", path="/", query=None, fragment=None)
            address, self.private = await check(str(origin), not self.private)
            request.url = named.copy_with(host=address)
            request.extensions |= {"sni_hostname": named.host}
            try:
                return await super().handle_async_request(request)
            finally:
                request.url = named

    content = body.encode("utf-8", "replace") or None
    try:
        async with httpx.AsyncClient(timeout=SILENCE, transport=Checked()) as client:
            request = client.build_request(method, url, headers=headers, content=content)
            request.headers["accept-encoding"] = "gzip"
            for _ in range(HOPS + 1):
                answer = await client.send(request, stream=True)
                try:
                    if answer.next_request is None:
                        return await _read(answer, hide)
                    if shown and _origin(answer.next_request.url) != _origin(request.url):
                        raise ExoError(about, "it redirects to another host, port or scheme")
                    request = answer.next_request
                finally:
                    await answer.aclose()  # unread: the body of a redirect may have no end
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, zlib.error) as error:
        raise ExoError(about, str(error) or type(error).__name__) from error
    raise ExoError(about, f"more than {HOPS} redirects")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def risk(args: dict[str, Any]) -> Risk:
    """Reading a public page is medium; sending, and anything in the person's own network, is high."""
    reads = str(args.get("method", "")).upper() in ("GET", "HEAD") and not args.get("body")
    host = _split(str(args.get("url", ""))).hostname or ""
    return "medium" if reads and not _local(host) else "high"


async def check(url: str, public_only: bool) -> tuple[str, bool]:
    """Return the address behind `url` and whether it is in a private network. Raises ExoError for what
    may not be asked."""
    parts = _split(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise ExoError(f"open {url[:200]!r}", "only http and https addresses with a host are open")
    try:
        found = await in_thread(socket.getaddrinfo, host, parts.port or parts.scheme)
    except (OSError, UnicodeError) as error:
        raise ExoError(f"open {url[:200]}", f"the host {host!r} is not found: {error}") from error
    private = any(not _public(str(row[4][0])) for row in found)
    if private and (public_only or not _local(host)):
        why = f"{host} leads into a private network"
        raise ExoError(f"open {url[:200]}", why, "name the machine itself if you mean it")
    return str(found[0][4][0]), private


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        _ = parts.port  # raises for one that is no number
        return parts
    except ValueError as error:
        raise ExoError(f"open {url[:200]!r}", f"no address: {error}") from error


def _local(host: str) -> bool:
    """Whether the name itself says that it is here: an address, localhost, one word, .local."""
    if re.fullmatch(r"[0-9.]+|.*:.*", host):
        return not _public(host)
    return "." not in host or host.endswith((".local", ".localhost", ".lan", ".home.arpa"))


def _public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_global
    except ValueError:
        return False


async def _read(answer: httpx.Response, hide: Callable[[str], str]) -> str:
    kind = answer.headers.get("content-type", "")
    head = hide(f"HTTP {answer.status_code} {answer.reason_phrase} {kind}".strip())
    body, most = b"", BODY_LIMIT + MARGIN
    async for piece in answer.aiter_raw(65536):
        body += piece
        if len(body) > most:
            break
    # not httpx's decoders: a packed kilobyte may become gigabytes, and a server may pack twice
    coding = answer.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("gzip", "x-gzip", "deflate"):
        body = zlib.decompressobj(47).decompress(body, most)
    elif coding not in ("identity", ""):
        return f"{head}\n[{len(body)} bytes packed as {coding[:40]}]"
    if b"\0" in body[:8192]:
        return f"{head}\n[{len(body)} bytes that are no text]"
    charset = answer.encoding or ""
    charset = charset if _CHARSET.match(charset) else "utf-8"
    text = await in_thread(lambda: hide(body[:most].decode(charset, "replace")))
    if len(body) > BODY_LIMIT:  # only now: a value that is cut in two is not found
        text = text.encode()[:BODY_LIMIT].decode("utf-8", "ignore")
        text += f"\n[cut after {BODY_LIMIT} bytes]"
    return f"{head}\n\n{text}"
