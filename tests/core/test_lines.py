"""JSON lines: on streams in this process, and on a real child's stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.core.server.lines import LINE_LIMIT, LineSession

Run = Callable[..., Any]
Exod = Callable[..., "subprocess.Popen[bytes]"]


def line(type_: str, id_: str = "1", **body: Any) -> bytes:
    return json.dumps({"id": id_, "type": type_, "body": body}).encode() + b"\n"


def spoken(
    test: Callable[[Any, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> Any:
    """Run `test(bench, reader, writer)` as the peer of a LineSession."""

    async def body(bench: Any) -> None:
        done = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await LineSession(bench.dispatcher, reader, writer).run()
            writer.close()
            done.set()

        path = bench.home.state / "lines"
        server = await asyncio.start_unix_server(serve, path, limit=LINE_LIMIT)
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 26)
        await test(bench, reader, writer)
        writer.close()
        await asyncio.wait_for(done.wait(), 30)
        assert bench.hub.listeners == 0
        server.close()

    return body


async def read(reader: asyncio.StreamReader) -> dict[str, Any]:
    return dict(json.loads(await asyncio.wait_for(reader.readline(), 30)))


def test_each_line_gets_its_response_in_order(run: Run) -> None:
    async def test(bench: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\n  \r\n" + line("hello", "a", protocol=1, client="t") + b"garbage\n")
        writer.write(b"\xff\xfe\n" + line("none", "b") + line("session.list", "c"))
        answers = [await read(reader) for _ in range(5)]
        assert [a["id"] for a in answers] == ["a", "", "", "b", "c"]
        codes = [(a.get("error") or {}).get("code") for a in answers]
        assert codes == [None, "bad_json", "bad_json", "unknown_command", None]

    run(spoken(test))


def test_an_over_long_line_is_refused_and_the_next_one_answered(run: Run) -> None:
    async def test(bench: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = line("none", "x").rstrip()
        for size in (LINE_LIMIT + 10, 2 * LINE_LIMIT + 100_000):
            long = head + b" " * (size - len(head))
            writer.write(long + b"\n" + line("session.list", "next"))
            assert (await read(reader))["error"]["code"] == "too_large"
            assert (await read(reader))["id"] == "next"

    run(spoken(test))


def test_the_last_line_counts_without_its_end(run: Run) -> None:
    async def test(bench: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(line("session.list", "last").rstrip())
        writer.write_eof()
        assert (await read(reader))["id"] == "last"
        assert await reader.read() == b""

    run(spoken(test))


def test_subscription_replays_then_follows_and_the_bytes_are_those_saved(run: Run) -> None:
    async def test(bench: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await bench.session()
        writer.write(line("events.subscribe", "s", since=0))
        assert (await read(reader))["result"] == {"seq": 1, "first": 1}
        await bench.session()
        lines = [await reader.readline() for _ in range(2)]
        saved = bench.database.rows("SELECT data FROM events ORDER BY seq")
        assert lines == [f"{row[0]}\n".encode() for row in saved]
        writer.write(line("events.subscribe", "t", since=99))
        assert (await read(reader))["error"]["code"] == "bad_since"
        bench.disk.arm(1)
        assert await bench.refused("session.create") == "storage"
        assert (await read(reader))["error"]["code"] == "storage"

    run(spoken(test))


def test_pruned_start_is_told(run: Run) -> None:
    async def test(bench: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(120):
            await bench.session()
        writer.write(line("events.subscribe", "s", since=0))
        assert (await read(reader))["result"]["first"] == bench.hub.first > 1
        assert (await read(reader))["error"]["code"] == "truncated"
        assert (await read(reader))["seq"] == bench.hub.first

    run(spoken(test), env={"EXO_EVENTS_KEEP": "100"})


# ---- a real child ------------------------------------------------------------------------------


def test_child_on_stdio_answers_follows_and_ends_in_order(exod: Exod, tmp_path: Path) -> None:
    child = exod("--stdio")
    assert child.stdin and child.stdout and child.stderr
    child.stdin.write(
        line("events.subscribe", "sub") + b"{nonsense\n" + line("session.create", "new")
    )
    child.stdin.flush()
    heard = [json.loads(child.stdout.readline()) for _ in range(4)]
    answers = {each["id"]: each for each in heard if "ok" in each}
    assert (
        answers["sub"]["ok"] and answers["new"]["ok"] and answers[""]["error"]["code"] == "bad_json"
    )
    assert [each["type"] for each in heard if "seq" in each] == ["session.created"]
    # both transports are one exod
    client = Client(Home(tmp_path / "home").exod_socket)
    assert client.call("session.list")["sessions"][0]["id"] == answers["new"]["result"]["session"]
    child.stdin.close()
    assert child.wait(30) == 0
    assert not Home(tmp_path / "home").exod_socket.exists()


def test_child_loses_no_answer_when_its_reader_is_slow(exod: Exod) -> None:
    child = exod("--stdio")
    assert child.stdin and child.stdout
    for n in range(100):
        child.stdin.write(line("config.get", str(n)))
    child.stdin.close()  # more than a pipe holds is on its way back
    lines = child.stdout.read().splitlines()
    assert [json.loads(each)["id"] for each in lines] == [str(n) for n in range(100)]
    assert sum(map(len, lines)) > 100_000
    assert child.wait(30) == 0


def test_a_file_in_place_of_a_pipe_is_refused_with_a_reason(exod: Exod, tmp_path: Path) -> None:
    with (tmp_path / "in").open("w+b") as file:
        child = exod("--stdio", stdin=file)
        _, err = child.communicate(timeout=30)
    assert child.returncode == 1
    assert err.decode().strip().splitlines()[-1].startswith("exod: serve stdin and stdout: ")
