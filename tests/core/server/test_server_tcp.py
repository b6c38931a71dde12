"""exod on TCP: nothing without the token, nothing to the network unless told, slow clients end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exo.core.base.errors import SettingError
from exo.core.base.home import Home
from exo.core.base.httpd import HttpServer, Response
from exo.core.server import tcp


@pytest.fixture
def exod(tmp_path):
    """Start exod with words; gives (process, first lines of its log)."""
    started = []

    def start(*words, **environ):
        home = tmp_path / "home"
        env = {k: v for k, v in os.environ.items() if k != "EXO_TOKEN"} | environ
        process = subprocess.Popen(
            [sys.executable, "-m", "exo.core.server.app", "--home", str(home), *words],
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        started.append(process)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.strip().endswith(str(home)) and "serves" in line:
                break
        return process, "".join(lines), Home(home)

    yield start
    for process in started:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def ask(port, method, path, body=None, **headers):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(link):
        link.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = link.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers


HELLO = json.dumps({"id": "1", "type": "hello", "body": {"protocol": 1, "client": "t"}})


def test_tcp_wants_the_token_for_everything(exod):
    _, log, home = exod("--tcp", "127.0.0.1:0")
    assert "not encrypted" in log
    port = int(re.search(r"127\.0\.0\.1:(\d+)", log)[1])
    token = home.token_file.read_text().strip()
    assert len(token) >= 43 and token not in log
    assert stat.S_IMODE(home.token_file.stat().st_mode) == 0o600
    for headers in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {token}x"},
        {"Authorization": f"Basic {token}"},
        {"Authorization": "Bearer \xff\xfe"},
    ):
        for method, path in (("POST", "/command"), ("GET", "/events"), ("GET", "/health"), ("OPTIONS", "/command"), ("GET", "/nope")):  # fmt: skip
            status, body, answer = ask(port, method, path, None, **headers)
            assert (status, body["error"]["code"]) == (401, "unauthorized"), (headers, path)
            assert answer["WWW-Authenticate"].startswith("Bearer")
            assert not [name for name in answer if name.lower().startswith("access-control")]
    right = {"Authorization": f"bearer {token}"}
    status, body, _ = ask(port, "POST", "/command", HELLO, **right)
    assert status == 200 and body["ok"] and body["result"]["protocol"] == 1
    assert ask(port, "GET", "/health", **right)[1]["status"] == "ok"

    # a page of another site, a rebound name
    assert ask(port, "POST", "/command", HELLO, Origin="http://evil.example", **right)[0] == 403
    assert ask(port, "POST", "/command", HELLO, Origin="null", **right)[0] == 403
    assert ask(port, "POST", "/command", HELLO, Origin="http://[::", **right)[0] == 403
    status, body, _ = ask(port, "POST", "/command", HELLO, Host="evil.example", **right)
    assert (status, body["error"]["code"]) == (403, "bad_host")
    assert ask(port, "POST", "/command", HELLO, Host="localhost:1", **right)[0] == 200

    # the stream, and the same token at the next start
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    link.request("GET", "/events?since=0", headers=right)
    stream = link.getresponse()
    create = json.dumps({"id": "2", "type": "session.create", "body": {}})
    ask(port, "POST", "/command", create, **right)
    text = b""
    while b"session.created" not in text:
        text += stream.read1(65536)
    link.close()


def test_exod_keeps_its_token_and_takes_one_from_the_environment(exod):
    process, _, home = exod("--tcp", "127.0.0.1:0")
    token = home.token_file.read_text()
    process.terminate()
    process.wait(20)
    given = "g" * 40
    _, log, _ = exod(EXO_TCP_LISTEN="localhost:0", EXO_TOKEN=given)
    port = int(re.search(r"127\.0\.0\.1:(\d+)", log)[1])
    assert ask(port, "GET", "/health", Authorization=f"Bearer {given}")[0] == 200
    assert ask(port, "GET", "/health", Authorization=f"Bearer {token.strip()}")[0] == 401
    assert home.token_file.read_text() == token


@pytest.mark.parametrize(
    ("words", "environ", "says"),
    [
        (("--tcp", "0.0.0.0:0"), {}, "add --lan"),
        (("--tcp", "[::]:0"), {}, "add --lan"),
        (("--tcp", "7723"), {}, "write HOST:PORT"),
        (("--tcp", "127.0.0.1:99999"), {}, "write HOST:PORT"),
        (("--tcp", "127.0.0.1:0"), {"EXO_TOKEN": "short"}, "32 or more"),
        (("--tcp", "192.0.2.1:7723", "--lan"), {}, "listen on 192.0.2.1"),
    ],
)
def test_exod_refuses_to_listen_and_says_why(exod, words, environ, says):
    process, log, home = exod(*words, **environ)
    assert process.wait(20) == 1
    assert says in log and len(log.splitlines()) == 1 or "192.0.2.1" in log
    assert not home.exod_socket.exists()


def test_lan_must_be_meant():
    assert tcp.parse_address("0.0.0.0:7723", lan=True) == ("0.0.0.0", 7723)
    assert tcp.parse_address("[::1]:7723", lan=False) == ("::1", 7723)
    with pytest.raises(SettingError):
        tcp.parse_address("192.0.2.7:7723", lan=False)


def test_a_token_file_is_whole_and_nobody_elses(tmp_path: Path):
    path = tmp_path / "token"
    token = tcp.load_token(path, {})
    assert tcp.load_token(path, {}) == token
    assert [each.name for each in tmp_path.iterdir()] == ["token"]
    path.chmod(0o640)
    with pytest.raises(SettingError, match="others can read it"):
        tcp.load_token(path, {})
    path.chmod(0o600)
    path.write_text("")
    with pytest.raises(SettingError):
        tcp.load_token(path, {})
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert tcp.load_token(path, {}) != token and not path.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_slow_heads_end_and_connections_are_counted():
    async def main():
        async def answer(request):
            return Response(b"{}")

        server = HttpServer(answer, most=3, wait=0.2)
        port = await server.listen_tcp("127.0.0.1", 0)
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in slow:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")  # and never the end
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""  # one too many
        writer.close()
        for reader, writer in slow:
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
        while server._tasks:
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        await server.close()

    asyncio.run(main())


def test_a_flood_of_wrong_tokens_leaves_exod_answering(exod):
    _, log, home = exod("--tcp", "127.0.0.1:0")
    port = int(re.search(r"127\.0\.0\.1:(\d+)", log)[1])
    links = []
    for _ in range(80):
        link = socket.create_connection(("127.0.0.1", port))
        with contextlib.suppress(OSError):
            link.sendall(
                b"POST /command HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n"
            )
        links.append(link)
    from exo.core.base.client import Client

    begun = time.monotonic()
    assert Client(home.exod_socket).call("hello", protocol=1, client="t")["protocol"] == 1
    assert time.monotonic() - begun < 10
    for link in links:
        link.close()
