"""The router behind the engine: models.list, models.set, cost in the events, a fallback nobody sees."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
from exo.core.router.router import Router
from exo.tools.clock import FakeClock

Run = Callable[..., Any]
OK = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
COST = b'data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}\n\n'
END = b"data: [DONE]\n\n"


def plug(bench: Any, *statuses: int, retry_after: str = "0") -> list[str]:
    """Put a real router on a scripted network behind the bench's engine; returns what is asked."""
    asked: list[str] = []
    script = list(statuses)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.url.host}{request.url.path}")
        if request.method == "GET":
            return httpx.Response(200, content=json.dumps({"data": [{"id": "main"}]}).encode())
        status = script.pop(0) if script else 200
        if status != 200:
            return httpx.Response(status, headers={"retry-after": retry_after}, content=b"no")
        return httpx.Response(200, content=OK + COST + END)

    environ = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
    network = httpx.MockTransport(answer)
    router = Router(bench.home.state, 5.0, FakeClock(), environ, network)
    bench.engine._model = bench.engine._loop._model = router
    return asked


def test_models_list_and_set(run: Run) -> None:
    async def test(bench: Any) -> None:
        plug(bench)
        await bench.call("models.set", role="main", routes=["openai:gpt-4.1", "local:main"])
        found = await bench.call("models.list")
        assert found["roles"]["main"] == ["openai:gpt-4.1", "local:main"]
        assert {"openai", "local"} <= {row["provider"] for row in found["models"]}
        assert await bench.refused("models.set", role="main", routes=["nobody:x"]) == "bad_route"
        assert await bench.refused("models.set", role="king", routes=[]) == "bad_body"

    run(test)


def test_usage_tells_the_cost_of_the_turn_and_of_the_session(run: Run) -> None:
    async def test(bench: Any) -> None:
        plug(bench)
        await bench.call("models.set", role="main", routes=["openai:gpt-4.1"])
        session = await bench.session()
        for _ in range(2):
            await bench.ask(session, "hullo there")
        one = {"prompt_tokens": 1000, "completion_tokens": 100, "cached_tokens": 0, "cost": 0.0028}
        first, second = (event["body"] for event in bench.events("usage.updated"))
        assert first["usage"] == second["usage"] == first["total"] == one
        assert second["total"] == {
            **one,
            "prompt_tokens": 2000,
            "completion_tokens": 200,
            "cost": 0.0056,
        }

    run(test)


def test_the_person_does_not_see_a_fallback(run: Run) -> None:
    async def test(bench: Any) -> None:
        asked = plug(bench, 503)
        await bench.call("models.set", role="main", routes=["openai:gpt-4.1", "local:main"])
        end = await bench.ask(await bench.session(), "hullo there")
        assert end["stop_reason"] == "end" and not bench.events("notice")
        assert asked == ["api.openai.com/v1/chat/completions", "models/v1/chat/completions"]

    run(test)


def test_a_dead_end_is_one_readable_error_without_the_key(run: Run) -> None:
    async def test(bench: Any) -> None:
        plug(bench, 429, retry_after="3600")
        await bench.call("models.set", role="main", routes=["openai:gpt-4.1"])
        end = await bench.ask(await bench.session(), "hullo there")
        assert end["stop_reason"] == "error" and end["error"]["code"] == "model_busy"
        assert "openai:gpt-4.1: HTTP 429" in end["error"]["message"]
        assert "opens again in 72 s" in end["error"]["message"]
        record = json.dumps(bench.events())
        assert "sk-0123" not in record

    run(test)


def test_a_network_that_is_lost_in_mid_reply_costs_the_rest_of_it_alone(run: Run) -> None:
    """What was said stays on the record, the turn says why it ended, and the next question goes to what
    is still in reach."""

    class Cut(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b'data: {"choices":[{"delta":{"content":"Paris is "}}]}\n\n'
            raise httpx.ReadError("the network went away")

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "api.openai.com":
            return httpx.Response(200, stream=Cut())
        return httpx.Response(200, content=OK + END)

    async def test(bench: Any) -> None:
        environ = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
        network = httpx.MockTransport(answer)
        router = Router(bench.home.state, 5.0, FakeClock(), environ, network)
        bench.engine._model = bench.engine._loop._model = router
        await bench.call("models.set", role="main", routes=["openai:gpt-4.1", "local:main"])
        session = await bench.session()
        end = await bench.ask(session, "Where is Paris?")
        assert end["stop_reason"] == "error" and end["error"]["code"] == "model_gone"
        last = (await bench.messages(session))[-1]
        assert last["text"] == "Paris is " and last["interrupted"]
        [notice] = [event["body"] for event in bench.events("notice")]
        assert notice["level"] == "error" and "openai" in notice["text"]
        end = await bench.ask(session, "And Rome?")  # the lost route is set aside
        assert end["stop_reason"] == "end"
        assert (await bench.messages(session))[-1]["text"] == "hi"

    run(test)
