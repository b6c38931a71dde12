"""The OpenAI-compatible chat API, streaming, over httpx. Owns the wire; decides no fallback.

Time-outs are on silence: a slow model may take as long as it speaks. httpx is imported on the first
request, because it costs 12 MB of memory that an idle daemon does not need."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.errors import ContextOverflow, ModelBusy, ModelError, ModelGone, ModelMissing
from exo.core.base.unix import short_path
from exo.core.protocol.schema import Usage
from exo.core.router.model import Done, ModelEvent, RawCall, Reasoning, Request, Text

if TYPE_CHECKING:
    import httpx

_ERRORS: dict[str, type[ModelError]] = {
    "context_overflow": ContextOverflow,
    "context_length_exceeded": ContextOverflow,
    "model_missing": ModelMissing,
    "model_corrupt": ModelMissing,
    "busy": ModelBusy,
}
_REASONS = {"stop": "end", "length": "length", "tool_calls": "calls", "function_call": "calls"}


class OpenAiTransport:
    """One server. `prefix_cache` says that it is exo-models and knows its additions."""

    def __init__(self, name: str, socket: Path, prefix_cache: bool, silence: float) -> None:
        self.name, self._socket = name, socket
        self.prefix_cache, self._silence = prefix_cache, silence
        self._client: httpx.AsyncClient | None = None
        self._keep = contextlib.ExitStack()

    async def stream(self, model: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply's events, exactly one Done last. Raises ModelError."""
        body = self._body(model, request)
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        body["max_tokens"] = request.max_tokens
        import httpx

        reply = _Reply(self.name)
        try:
            async with self._http().stream("POST", "/v1/chat/completions", json=body) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise _refused(self.name, answer)
                async for line in answer.aiter_lines():
                    for event in reply.read(line):
                        yield event
                    if reply.closed:
                        break
        except httpx.HTTPError as error:
            raise self._gone(error) from error
        yield reply.done()

    async def prefill(self, model: str, request: Request) -> None:
        if not self.prefix_cache:
            return
        import httpx

        try:
            answer = await self._http().post("/v1/prefill", json=self._body(model, request))
        except httpx.HTTPError as error:
            raise self._gone(error) from error
        if answer.status_code != 200:
            raise _refused(self.name, answer)

    async def count(self, model: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        """(tokens, window) from the server's tokenizer. Raises ModelError."""
        if not self.prefix_cache:
            return None, 0
        import httpx

        body = {"model": model, "text" if isinstance(what, str) else "messages": what}
        try:
            answer = await self._http().post("/v1/tokenize", json=body)
        except httpx.HTTPError as error:
            raise self._gone(error) from error
        if answer.status_code != 200:
            raise _refused(self.name, answer)
        try:
            return int(answer.json()["tokens"]), int(answer.json()["window"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._gone(error) from error

    async def models(self) -> list[dict[str, Any]]:
        """The server's own list. Raises ModelError."""
        import httpx

        try:
            answer = await self._http().get("/v1/models", timeout=5.0)
            return list(answer.json()["data"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise self._gone(error) from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._keep.close()

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            name = self._keep.enter_context(short_path(self._socket))
            self._client = httpx.AsyncClient(
                transport=httpx.AsyncHTTPTransport(uds=name),
                base_url="http://models",
                timeout=httpx.Timeout(self._silence, connect=5.0),
                trust_env=False,
            )
        return self._client

    def _body(self, model: str, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, "messages": request.messages}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.tools:
            body["tools"] = request.tools
        if self.prefix_cache and request.cache_key:
            body["prompt_cache_key"] = request.cache_key
            if request.priority == "aux":
                body["priority"] = "aux"  # no saved prefix: the card's room is for conversations
            else:
                body["save_prefix"] = request.fixed
        return body

    def _gone(self, error: Exception) -> ModelGone:
        why = str(error) or type(error).__name__
        do = "it is started again by itself; ask again, or run `exo doctor`"
        return ModelGone(f"ask the model server {self.name}", why, do)


class _Reply:
    """Puts a stream of chunks together: text goes through, calls and usage are collected."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: dict[int, dict[str, str]] = {}
        self._usage = Usage()
        self._reason = ""
        self._data: list[str] = []
        self.closed = False

    def read(self, line: str) -> list[ModelEvent]:
        """One line of Server-Sent Events: comments and other fields are passed over."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            return []
        if line.strip() or not self._data:
            return []
        data, self._data = "\n".join(self._data), []
        return self._chunk(data)

    def done(self) -> Done:
        """The last event. Raises ModelGone when the stream ended before the model said why."""
        if self._data:  # the server closed without the blank line
            self._chunk("\n".join(self._data))
        if not self._reason and not self.closed:
            raise ModelGone(f"read the reply of {self._name}", "it broke off", "ask again")
        calls = [
            RawCall(call["id"], call["name"], call["arguments"] or "{}")
            for _, call in sorted(self._calls.items())
        ]
        if calls:
            return Done("calls", calls, self._usage)
        return Done("length" if self._reason == "length" else "end", [], self._usage)

    def _chunk(self, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":
            self.closed = True
            return []
        try:
            chunk = json.loads(data)
            if "error" in chunk:
                raise _typed(self._name, chunk["error"], 500)
            if isinstance(usage := chunk.get("usage"), dict):
                self._usage = _usage(usage)
            events: list[ModelEvent] = []
            for choice in chunk.get("choices", [])[:1]:
                delta = choice.get("delta") or {}
                events += _texts(delta)
                self._collect(delta.get("tool_calls") or [])
                self._reason = _REASONS.get(choice.get("finish_reason") or "", "") or self._reason
        except ModelError:
            raise  # some of them are a ValueError too
        except (ValueError, TypeError, AttributeError) as error:
            what = f"read the reply of {self._name}"
            raise ModelGone(what, f"a chunk is no chat chunk: {data[:80]!r}") from error
        return events

    def _collect(self, deltas: list[dict[str, Any]]) -> None:
        for n, delta in enumerate(deltas):
            call = self._calls.setdefault(
                int(delta.get("index", n)), {"id": "", "name": "", "arguments": ""}
            )
            function = delta.get("function") or {}
            call["id"] = call["id"] or str(delta.get("id") or "")
            call["name"] += str(function.get("name") or "")
            call["arguments"] += str(function.get("arguments") or "")


def _texts(delta: dict[str, Any]) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    if reasoning := delta.get("reasoning_content") or delta.get("reasoning"):
        events.append(Reasoning(str(reasoning)))
    if text := delta.get("content"):
        events.append(Text(str(text)))
    return events


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details") or {}
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return Usage(int(counts[0] or 0), int(counts[1] or 0), int(details.get("cached_tokens") or 0))


def _refused(name: str, answer: httpx.Response) -> ModelError:
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = {"message": answer.text[:200] or f"HTTP {answer.status_code}"}
    return _typed(name, error, answer.status_code)


def _typed(name: str, error: Any, status: int) -> ModelError:
    if not isinstance(error, dict):
        error = {"message": str(error)}
    code, message = str(error.get("code") or ""), str(error.get("message") or f"HTTP {status}")
    kind = _ERRORS.get(code)
    if kind is None and status >= 500:
        kind = ModelGone
    if kind is None and status == 429:
        kind = ModelBusy
    if (
        kind is None
        and re.search(r"context|too (long|large)", message, re.I)
        and status in (400, 413)
    ):
        kind = ContextOverflow
    return (kind or ModelError)(f"ask the model server {name}", message)
