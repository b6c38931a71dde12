"""Recorded answers of providers, written after the public descriptions of their APIs and the faults that
their users reported: what comes out of them, however the bytes are cut, wherever they break off."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from exo.core.base.errors import ModelError
from exo.core.router.catalog import Catalog
from exo.core.router.cooldown import Key
from exo.core.router.model import Done, Reasoning, Request, Text
from exo.core.router.openai import OpenAiTransport
from exo.core.router.wire import Transport
from exo.tools.clock import FakeClock
from exo.tools.providers.anthropic import AnthropicTransport

STREAMS = Path(__file__).with_name("streams")
EXPECTED: dict[str, dict[str, Any]] = json.loads((STREAMS / "expected.json").read_text())
ASKED = Request([{"role": "user", "content": "Hello"}])
MODELS = {"openai": "gpt-4.1-mini", "anthropic": "claude-haiku-4-5-20251001"}


class Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = list(pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def recorded(name: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a recorded answer."""
    head, _, body = (STREAMS / f"{name}.http").read_bytes().partition(b"\n\n")
    first, *lines = head.decode().split("\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def transport(kind: str, answer: httpx.AsyncBaseTransport | None, url: str = "") -> Transport:
    row = Catalog().providers[kind]
    if url:
        row = type(row)(**{**vars(row), "url": url})
    made = {"openai": OpenAiTransport, "anthropic": AnthropicTransport}[kind]
    return made(row, Path("/nowhere"), 5.0, FakeClock(), answer)


async def events_of(kind: str, transport_: Transport) -> list[list[Any]]:
    """What the stream gave, a ModelError as its last item."""
    key = Key(f"{kind.upper()}_API_KEY", "sk-secret-and-long-enough")
    out: list[list[Any]] = []
    try:
        async for event in transport_.stream(MODELS[kind], ASKED, "main", key):
            if isinstance(event, Text):
                out.append(["text", event.text])
            elif isinstance(event, Reasoning):
                out.append(["reasoning", event.text])
            else:
                out.append(done_of(event))
    except ModelError as error:
        name = type(error).__name__
        out.append(["error", name, error.status, error.retryable, str(error), error.retry_after])
    finally:
        await transport_.close()
    return out


def done_of(event: Done) -> list[Any]:
    usage = event.usage
    cost = None if usage.cost is None else round(usage.cost, 12)
    calls = [[call.id, call.name, call.arguments] for call in event.calls]
    counts = [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, cost]
    return ["done", event.reason, calls, counts]


def play(name: str, pieces: Iterable[bytes]) -> list[list[Any]]:
    status, headers, _ = recorded(name)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, stream=Pieces(pieces))

    kind = EXPECTED[name]["transport"]
    return asyncio.run(events_of(kind, transport(kind, httpx.MockTransport(answer))))


def check(name: str, got: list[list[Any]]) -> None:
    wanted = EXPECTED[name]["events"]
    assert len(got) == len(wanted), got
    for one, other in zip(got, wanted, strict=True):
        if other[0] == "error":
            one, other = list(one), list(other)
            said, part = one.pop(4), other.pop(4)
            assert part in said
        assert one == other


def final(event: list[Any]) -> bool:
    return event[0] in ("done", "error")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_answer_gives_its_events(name: str) -> None:
    check(name, play(name, [recorded(name)[2]]))


@pytest.mark.parametrize("name", EXPECTED)
def test_however_the_bytes_are_cut_the_events_are_the_same(name: str) -> None:
    body = recorded(name)[2]
    check(name, play(name, [body[n : n + 1] for n in range(len(body))]))
    dice = random.Random(name)
    for _ in range(5):
        cuts = sorted(dice.choices(range(len(body) + 1), k=dice.randint(1, 12)))
        pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        check(name, play(name, pieces))


def cut_short(name: str, points: Iterable[int]) -> None:
    body = recorded(name)[2]
    whole = [event for event in play(name, [body]) if not final(event)]
    for point in points:
        got = play(name, [body[:point]])
        assert [final(event) for event in got] == [False] * (len(got) - 1) + [True], point
        assert got[:-1] == whole[: len(got) - 1], point


@pytest.mark.parametrize("name", EXPECTED)
def test_wherever_it_breaks_off_there_is_one_end(name: str) -> None:
    size = len(recorded(name)[2])
    cut_short(name, range(0, size, max(1, size // 20)))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_at_every_byte_there_is_one_end(name: str) -> None:
    cut_short(name, range(len(recorded(name)[2])))


def test_a_line_of_three_megabytes_is_read_in_small_pieces() -> None:
    text = "x" * 3_000_000
    line = "data: " + json.dumps({"choices": [{"delta": {"content": text}}]})
    body = (line + "\n\ndata: [DONE]\n\n").encode()
    status = play("openai-text", [body[n : n + 4096] for n in range(0, len(body), 4096)])
    assert status[0] == ["text", text] and status[1][0] == "done"


def test_an_event_without_end_is_given_up() -> None:
    got = play("openai-text", [b"data: " + b"x" * 1_000_000] * 20)
    assert got[0][:2] == ["error", "ModelGone"] and "over 16 MB" in got[0][4]


async def served(name: str, frame: str, size: int = 7, hold: bool = False) -> list[list[Any]]:
    """The answer over a real connection, in pieces of `size` bytes; `frame` is chunked, length or
    close; `hold` keeps silent at the end."""
    status, headers, body = recorded(name)
    held = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(int(length.split(b":")[1]))
        lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in headers.items())]
        frames = {"chunked": "transfer-encoding: chunked", "length": f"content-length: {len(body)}"}
        lines.append(frames.get(frame, "connection: close"))
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        for n in range(0, len(body), size):
            piece = body[n : n + size]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if frame == "chunked" else piece)
            await writer.drain()
        if hold:
            await held.wait()
        writer.write(b"0\r\n\r\n" if frame == "chunked" else b"")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        kind = EXPECTED[name]["transport"]
        made = transport(kind, None, url)
        made._silence = 0.2 if hold else 5.0
        return await events_of(kind, made)
    finally:
        held.set()
        server.close()


@pytest.mark.parametrize("frame", ["chunked", "length", "close"])
@pytest.mark.parametrize(
    "name",
    ["utf8-and-separators", "gzip", "anthropic-tools", "openai-rate", "crlf-comments-multiline"],
)
def test_over_a_real_connection(name: str, frame: str) -> None:
    check(name, asyncio.run(served(name, frame)))


def test_a_broken_chunk_is_an_error() -> None:
    got = asyncio.run(served("broken-off", "length"))
    assert got[0] == ["text", "half a"] and got[1][:4] == ["error", "ModelGone", None, True]


def test_silence_after_the_reason_is_an_end() -> None:
    check("no-last-event", asyncio.run(served("no-last-event", "chunked", hold=True)))


def test_silence_before_it_is_an_error() -> None:
    got = asyncio.run(served("broken-off", "chunked", hold=True))
    assert got[-1][:4] == ["error", "ModelSilent", None, True]
    assert "said nothing for 0.2 s" in got[-1][4]
