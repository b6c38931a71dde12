"""http_request against a server on loopback: what is asked, what is refused."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.substrate.secrets import Secrets
from exo.core.toolbox.registry import Context
from exo.tools.workbench import web
from exo.tools.workbench.web import http_request


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, dict[str, str], bytes]] = []
    places: dict[str, str] = {}

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        place = self.places.get(self.path, "")
        data, kind = b"gr\xc3\xbcn", "text/plain; charset=utf-8"
        if self.path == "/big":
            data = b"x" * 3_000_000
        elif self.path == "/edge":  # what it was told, across the end of what is shown
            data = b"x" * 999_990 + self.headers["X-Token"].encode() + b"y" * 100_000
        elif self.path == "/bin":
            data, kind = b"\0\1", "application/octet-stream"
        elif self.path == "/latin":
            data, kind = b"gr\xfcn", "text/plain; charset=latin-1"
        elif self.path == "/puny":
            data, kind = b"a-" + b"b" * 300_000, "text/plain; charset=punycode"
        coding = self.path[1:].replace("-", ", ") if "gzip" in self.path else ""
        for _ in coding.split():
            data = gzip.compress(data if b"\x1f" in data else b"z" * 50_000_000)
        self.send_response(302 if place else 404 if self.path == "/none" else 200)
        if place:
            self.send_header("Location", place)
        self.send_header("Content-Type", kind)
        if coding:
            self.send_header("Content-Encoding", coding)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_HEAD = answer

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen, Handler.places = [], {}
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


def ask(method: str, url: str, **more: Any) -> str:
    return asyncio.run(http_request(Context("s", None), method, url, **more))  # type: ignore[arg-type]


def test_an_answer_cannot_cost_more_than_its_limit(server: str) -> None:
    begun = time.monotonic()
    packed = ask("GET", server + "/gzip")
    assert packed.endswith("[cut after 1000000 bytes]") and packed.count("z") > 999_000
    assert ask("GET", server + "/gzip-gzip").endswith("bytes packed as gzip, gzip]")
    assert ask("GET", server + "/puny").endswith("a-" + "b" * 300_000)
    assert time.monotonic() - begun < 15  # httpx and punycode need minutes and gigabytes


def test_text_comes_back_with_its_status(server: str) -> None:
    assert ask("GET", server + "/a") == "HTTP 200 OK text/plain; charset=utf-8\n\ngrün"
    assert ask("GET", server + "/latin").endswith("grün")
    assert ask("GET", server + "/none").startswith("HTTP 404")
    assert ask("HEAD", server + "/a").startswith("HTTP 200 OK text/plain")
    ask("POST", server + "/a", headers={"X-A": "b"}, body="ü")
    assert Handler.seen[-1][2]["X-A"] == "b" and Handler.seen[-1][3] == "ü".encode()


def test_large_and_binary_answers_are_bounded(server: str) -> None:
    assert "[cut after 1000000 bytes]" in ask("GET", server + "/big")
    assert ask("GET", server + "/bin").endswith("[2 bytes that are no text]")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x/",
        "http://",
        "x",
        "",
        "http://[::1",
        "http://a:b/",
        "gopher://x",
    ],
)
def test_only_http_addresses_are_open(url: str) -> None:
    with pytest.raises(ExoError):
        ask("GET", url)


def test_redirects_are_followed_and_checked_again(server: str) -> None:
    Handler.places = {"/1": "/2", "/loop": "/loop", "/file": "file:///etc/passwd"}
    assert ask("GET", server + "/1").endswith("grün")
    ask("POST", server + "/1", body="x")
    assert [row[:2] for row in Handler.seen[-2:]] == [("POST", "/1"), ("GET", "/2")]
    with pytest.raises(ExoError, match="redirects"):
        ask("GET", server + "/loop")
    with pytest.raises(ExoError, match="only http"):
        ask("GET", server + "/file")


def test_no_way_from_the_public_net_into_the_private_one(server: str, monkeypatch: Any) -> None:
    Handler.places = {"/in": server.replace("127.0.0.1", "localhost") + "/a"}
    port = int(server.rpartition(":")[2])

    def look_up(host: str, where: Any, *rest: Any) -> list[Any]:
        address = {"public.example": "93.184.216.34"}.get(host, "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(web.socket, "getaddrinfo", look_up)
    found = asyncio.run(web.check("http://public.example/", True))
    assert found == ("93.184.216.34", False)
    with pytest.raises(ExoError, match="private network"):
        asyncio.run(web.check("http://rebound.example/", False))  # a public name that leads inside
    for inside in ("http://localhost/", "http://10.0.0.1/", "http://router/"):
        with pytest.raises(ExoError, match="private network"):
            asyncio.run(web.check(inside, True))
        assert asyncio.run(web.check(inside, False))[1] is True


def test_the_connection_goes_to_the_address_that_was_checked(server: str, monkeypatch: Any) -> None:
    port = int(server.rpartition(":")[2])
    asked: list[str] = []

    def look_up(host: str, where: Any, *rest: Any, **more: Any) -> list[Any]:
        asked.append(host if isinstance(host, str) else host.decode())
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(web.socket, "getaddrinfo", look_up)
    monkeypatch.setattr(web, "_public", lambda address: address == "127.0.0.1")
    Handler.places = {"/there": "/a"}
    assert ask("GET", f"http://twice.example:{port}/there").endswith("grün")
    # the name was looked up once a hop, for the check; nothing asked again to connect
    assert asked.count("twice.example") == 2
    assert [row[2]["Host"] for row in Handler.seen] == [f"twice.example:{port}"] * 2


def test_secrets_do_not_follow_to_another_host(server: str) -> None:
    other = server.replace("127.0.0.1", "localhost")
    Handler.places = {"/out": other + "/a"}
    secret = {"Authorization": "Bearer x", "Cookie": "z"}
    ask("GET", server + "/out", headers=secret | {"X-Other": "y"})
    first, second = (row[2] for row in Handler.seen[-2:])
    assert first["Authorization"] == "Bearer x" and first["Cookie"] == "z"
    assert "Authorization" not in second and "Cookie" not in second and second["X-Other"] == "y"


def test_a_host_that_is_not_there_is_said() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    with pytest.raises(ExoError, match=f"127.0.0.1:{port}"):
        ask("GET", f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("args", "risk"),
    [
        ({"method": "GET", "url": "https://example.org/"}, "medium"),
        ({"method": "GET", "url": "https://example.org/", "body": "x"}, "high"),
        ({"method": "POST", "url": "https://example.org/"}, "high"),
        ({"method": "GET", "url": "http://192.168.1.1/"}, "high"),
        ({"method": "GET", "url": "http://localhost/"}, "high"),
        ({"method": "GET", "url": "http://printer.local/"}, "high"),
        ({"method": "GET", "url": "http://[::1]/"}, "high"),
    ],
)
def test_sending_and_the_own_network_are_of_high_risk(args: dict[str, Any], risk: str) -> None:
    assert web.risk(args) == risk


VALUE = "k3y/of+a=service"


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    made = Secrets(tmp_path / "sealed", lambda: bytes(32))
    made.put("key", VALUE, ["127.0.0.1", "localhost"])
    return made


def ask_with(secrets: Secrets, url: str, **more: Any) -> str:
    return asyncio.run(http_request(Context("s", Path()), "GET", url, secrets=secrets, **more))


def test_a_secret_is_in_no_error_however_it_is_cut(server: str, secrets: Secrets) -> None:
    """An address is shown to 200 characters: what is cut in the middle of a value shows none of it."""
    Handler.places = {}
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    for n in range(150, 200):
        begin = f"http://127.0.0.1:{port}/?"
        url = begin + "x" * (n - len(begin)) + "{{secret:key}}"
        with pytest.raises(ExoError) as told:
            ask_with(secrets, url)
        assert "k3y" not in str(told.value) and "k3y" not in repr(told.value.__cause__)


@pytest.mark.parametrize("place", ["http://localhost:{port}/a", "http://127.0.0.1:{other}/a"])
def test_a_secret_follows_to_the_very_same_origin_alone(
    server: str, secrets: Secrets, place: str
) -> None:
    port = int(server.rpartition(":")[2])
    Handler.places = {"/out": place.format(port=port, other=port + 1), "/in": "/a"}
    headers = {"X-Key": "{{secret:key}}"}
    assert "grün" in ask_with(secrets, server + "/in", headers=headers)
    Handler.seen.clear()
    with pytest.raises(ExoError, match="redirects to another"):
        ask_with(secrets, server + "/out", headers=headers)
    assert len(Handler.seen) == 1


def test_a_secret_does_not_follow_out_of_https(monkeypatch: Any, secrets: Secrets) -> None:
    import httpx

    sent: list[str] = []

    async def answer(self: Any, request: httpx.Request) -> httpx.Response:
        sent.append(str(request.url))
        return httpx.Response(302, headers={"Location": "http://127.0.0.1/plain"}, request=request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", answer)
    with pytest.raises(ExoError, match="redirects to another"):
        ask_with(secrets, "https://127.0.0.1/x", headers={"X-Key": "{{secret:key}}"})
    assert len(sent) == 1


def test_a_value_moves_no_request_to_another_host(server: str, secrets: Secrets) -> None:
    """k3y/of+a=service before the @ would make of its begin the host."""
    asked: list[Any] = []
    real = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **more: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1", *rest, **more)

    server = server.replace("http://", "http://{{secret:key}}@")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web.socket, "getaddrinfo", look_up)
        assert "grün" in ask_with(secrets, server + "/a")
    assert asked and not any("k3y" in str(host) for host in asked)


def test_a_secret_is_in_no_log(server: str, secrets: Secrets, caplog: Any) -> None:
    Handler.places = {}
    with caplog.at_level(logging.DEBUG):
        ask_with(secrets, server + "/a?k={{secret:key}}", headers={"X-Key": "{{secret:key}}"})
    assert "k3y" not in caplog.text


def test_a_secret_on_the_edge_of_what_is_shown_is_hidden(server: str, tmp_path: Path) -> None:
    secrets = Secrets(tmp_path / "secrets.sealed", lambda: bytes(32))
    secrets.put("token", "value-of-the-token", ["127.0.0.1"])
    headers = {"X-Token": "{{secret:token}}"}
    shown = ask_with(secrets, server + "/edge", headers=headers)
    assert Handler.seen[-1][2]["X-Token"] == "value-of-the-token"
    assert "value-of" not in shown and shown.endswith("[cut after 1000000 bytes]")
