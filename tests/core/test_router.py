"""The model's wire: OpenAI chunks in, events out; every way a server may misbehave gets its name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelGone,
    ModelMissing,
)
from exo.core.base.httpd import HttpServer, Response, error_response
from exo.core.base.httpd import Request as Asked
from exo.core.protocol.schema import Usage
from exo.core.router.model import Done, RawCall, Reasoning, Request, Text
from exo.core.router.router import Router


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return json.dumps({"choices": [choice], **more})


def part(index: int, id_: str = "", name: str = "", arguments: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": id_, "function": function}]}


def talk(
    tmp_path: Path, answer: Callable[[Asked], Any], request: Request | None = None
) -> list[Any]:
    """What the router makes of a server that answers so."""

    async def body() -> list[Any]:
        async def handler(asked: Asked) -> Response:
            result = answer(asked)
            return (
                result
                if isinstance(result, Response)
                else Response(sse(result), 200, "text/event-stream")
            )

        server = HttpServer(handler)
        await server.listen_unix(tmp_path / "models.sock")
        router = Router(tmp_path, 5.0)
        try:
            wanted = request or Request([{"role": "user", "content": "x"}])
            return [event async for event in router.stream("main", wanted)]
        finally:
            await router.close()
            await server.close()

    return asyncio.run(body())


async def sse(lines: list[str]) -> AsyncIterator[bytes]:
    for line in lines:
        yield (
            line.encode()
            if line.startswith((":", "data", "event"))
            else f"data: {line}\n\n".encode()
        )


def test_text_reasoning_and_usage_come_through(tmp_path: Path) -> None:
    events = talk(
        tmp_path,
        lambda asked: [
            ": comment\n\n",
            "event: message\n",
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "hm"}),
            chunk({"content": "Hé"}),
            chunk({"content": "llo"}, "stop"),
            json.dumps(
                {
                    "choices": [],
                    "usage": {
                        "prompt_tokens": 9,
                        "completion_tokens": 2,
                        "prompt_tokens_details": {"cached_tokens": 7},
                    },
                }
            ),
            "[DONE]",
        ],
    )
    assert events == [Reasoning("hm"), Text("Hé"), Text("llo"), Done("end", [], Usage(9, 2, 7))]


def test_calls_are_put_together_from_their_pieces(tmp_path: Path) -> None:
    events = talk(
        tmp_path,
        lambda asked: [
            chunk(part(0, "a", "time")),
            chunk(part(1, "b", "note", '{"te')),
            chunk(part(1, "", "", 'xt": "x"}')),
            chunk({}, "tool_calls"),
            "[DONE]",
        ],
    )
    assert events == [
        Done("calls", [RawCall("a", "time", "{}"), RawCall("b", "note", '{"text": "x"}')], Usage())
    ]


def test_length_and_an_end_without_done_are_ends(tmp_path: Path) -> None:
    assert talk(tmp_path, lambda asked: [chunk({"content": "x"}, "length")])[-1].reason == "length"


def test_request_carries_what_exo_models_knows(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    async def body() -> None:
        async def handler(asked: Asked) -> Response:
            seen.append({"path": asked.path, **json.loads(await asked.body())})
            if asked.path == "/v1/prefill":
                return Response(b"{}")
            return Response(sse([chunk({}, "stop")]), 200, "text/event-stream")

        server = HttpServer(handler)
        await server.listen_unix(tmp_path / "models.sock")
        router = Router(tmp_path, 5.0)
        tool = {"type": "function", "function": {"name": "time"}}
        request = Request([{"role": "user", "content": "x"}], [tool], 50, "session", 1)
        await router.prefill("main", request)
        assert [event async for event in router.stream("main", request)]
        await router.close()
        await server.close()

    asyncio.run(body())
    for each in seen:
        assert each["prompt_cache_key"] == "session" and each["save_prefix"] == 1
        assert each["model"] == "main" and each["tools"]
    assert [each["path"] for each in seen] == ["/v1/prefill", "/v1/chat/completions"]
    assert seen[1]["max_tokens"] == 50 and seen[1]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error_response(400, "context_overflow", "too long"), ContextOverflow),
        (error_response(400, "", "the context window is too small"), ContextOverflow),
        (error_response(503, "model_missing", "no file"), ModelMissing),
        (error_response(503, "model_corrupt", "bad hash"), ModelMissing),
        (error_response(429, "busy", "wait"), ModelBusy),
        (error_response(429, "", "wait"), ModelBusy),
        (error_response(500, "internal", "bug"), ModelGone),
        (error_response(400, "bad_request", "nonsense"), ModelError),
        (Response(b"<html>", 502), ModelGone),
        (Response(b"[]", 400), ModelError),
        (Response(b'{"error": "plain words"}', 400), ModelError),
        ([], ModelGone),
        ([chunk({"content": "x"})], ModelGone),
        (["nonsense"], ModelGone),
        (["[1]"], ModelGone),
        (["null"], ModelGone),
        (['{"choices": [5]}'], ModelGone),
        (['{"choices": [{"delta": {"tool_calls": [7]}}]}'], ModelGone),
        (['{"usage": {"prompt_tokens": "x"}, "choices": []}'], ModelGone),
        (
            [chunk({"content": "x"}), '{"error": {"code": "context_overflow", "message": "full"}}'],
            ContextOverflow,
        ),
        (
            [chunk({"content": "x"}), '{"error": {"code": "model_missing", "message": "gone"}}'],
            ModelMissing,
        ),
        ([chunk({"content": "x"}), '{"error": "plain words"}'], ModelGone),
    ],
)
def test_errors_get_their_type(tmp_path: Path, answer: Any, kind: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        talk(tmp_path, lambda asked: answer)
    assert type(caught.value) is kind
    assert caught.value.retryable is (kind in (ModelGone, ModelBusy))


def test_nobody_at_the_socket_and_silence_are_told_apart_from_an_answer(tmp_path: Path) -> None:
    async def body() -> None:
        request = Request([{"role": "user", "content": "x"}])
        router = Router(tmp_path, 0.1)
        with pytest.raises(ModelGone):
            await anext(router.stream("main", request))
        models, roles = await router.models()
        assert "local" not in [row["provider"] for row in models] and roles["main"]

        async def silent(asked: Asked) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

        server = HttpServer(silent)
        await server.listen_unix(tmp_path / "models.sock")
        with pytest.raises(ModelGone):
            await anext(router.stream("main", request))
        await router.close()
        await server.close()

    asyncio.run(body())


def test_a_stream_that_is_left_is_closed_at_the_server(tmp_path: Path) -> None:
    async def body() -> None:
        closed = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield f"data: {chunk({'content': 'x'})}\n\n".encode()
                    await asyncio.sleep(0.01)
            finally:
                closed.set()

        async def handler(asked: Asked) -> Response:
            return Response(endless(), 200, "text/event-stream")

        server = HttpServer(handler)
        await server.listen_unix(tmp_path / "models.sock")
        router = Router(tmp_path, 5.0)
        stream = router.stream("main", Request([{"role": "user", "content": "x"}]))
        assert await anext(stream) == Text("x")
        await stream.aclose()
        await asyncio.wait_for(closed.wait(), 30)
        await router.close()
        await server.close()

    asyncio.run(body())
