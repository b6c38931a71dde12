"""The OpenAI-compatible chat API: how a request looks and how its chunks read. Many servers speak it, each
with faults of its own; what was met in the wild is taken as it was meant."""

from __future__ import annotations

import json
from typing import Any

from exo.core.router.catalog import ModelRow
from exo.core.router.cooldown import Key
from exo.core.router.model import ModelEvent, RawCall, Reason, Reasoning, Request, Text
from exo.core.router.wire import Refusal, Reply, Transport

_REASONS: dict[str, Reason] = {"length": "length", "content_filter": "refused"}  # else "end"


class ChatReply(Reply):
    """Text goes through as it comes; calls and usage are collected."""

    def __init__(self, row: ModelRow) -> None:
        super().__init__(row)
        self._open: dict[object, RawCall] = {}  # by index, by id where there is none
        self._last: object = None

    def read(self, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":
            self.closed = True
            return []
        chunk = json.loads(data)
        if chunk.get("error") or chunk.get("object") == "error":
            raise Refusal(chunk.get("error") or chunk)
        if isinstance(usage := chunk.get("usage"), dict):
            self._count(usage)
        out: list[ModelEvent] = []
        for choice in (chunk.get("choices") or [])[:1]:
            reason = choice.get("finish_reason")
            if choice.get("error") or reason == "error":
                raise Refusal(choice.get("error") or "the provider broke off")
            out += self._delta(choice.get("delta") or choice.get("message") or {})
            if reason:
                self.reason = _REASONS.get(str(reason), "end")
        return out

    def _delta(self, delta: dict[str, Any]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        if reasoning := _text(delta.get("reasoning_content") or delta.get("reasoning")):
            out.append(Reasoning(reasoning))
        if text := _text(delta.get("content")):
            out.append(Text(text))
        for call in filter(None, delta.get("tool_calls") or []):
            self._collect(call)
        return out

    def _collect(self, delta: dict[str, Any]) -> None:
        function = delta.get("function") or {}
        id_, name = str(delta.get("id") or ""), str(function.get("name") or "")
        arguments = function.get("arguments") or ""
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        index = delta.get("index")
        self._last = index if index is not None else id_ or self._last
        call = self._open.get(self._last)
        if call is None or _another(call, id_, name, arguments):
            call = self._open[self._last] = RawCall("", "", "")
            self.calls.append(call)
        call.id = call.id or id_
        if name != call.name and not call.arguments:  # some repeat the name, few send it in parts
            call.name += name
        call.arguments += arguments

    def _count(self, usage: dict[str, Any]) -> None:
        details = usage.get("prompt_tokens_details") or {}
        cost = usage.get("cost")
        self.count(
            int(usage.get("prompt_tokens") or 0),
            int(usage.get("completion_tokens") or 0),
            int(details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0),
            int(details.get("cache_write_tokens") or 0),
            float(cost) if isinstance(cost, int | float) else None,
        )


class OpenAiTransport(Transport):
    """One server. A provider with `prefix_cache` is exo-models and knows its additions."""

    path = "/chat/completions"
    reply = ChatReply

    def headers(self, key: Key) -> dict[str, str]:
        return {"authorization": f"Bearer {key.value}"} if key.value else {}

    def body(self, model: str, request: Request, role: str) -> dict[str, Any]:
        thinking = self.provider.model(model).thinking
        body: dict[str, Any] = {
            "model": model,
            "messages": request.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            self.provider.limit: request.max_tokens + thinking,
        }
        if request.tools:
            body["tools"] = request.tools
        if request.temperature is not None and not thinking:  # models that reason refuse it
            body["temperature"] = request.temperature
        aux = "aux" in (role, request.priority)
        if self.provider.prefix_cache and request.cache_key:
            body["prompt_cache_key"] = request.cache_key
            if not aux:  # the card's room is for conversations
                body["save_prefix"] = request.fixed
        if self.provider.prefix_cache and aux:
            body["priority"] = "aux"
        return body


def _another(call: RawCall, id_: str, name: str, arguments: str) -> bool:
    """Whether a delta cannot belong to `call`: some servers number every call 0, some give several calls
    one id."""
    if id_ and call.id and id_ != call.id:
        return True
    try:
        return bool(name and arguments) and isinstance(json.loads(call.arguments), dict)
    except ValueError:
        return False


def _text(content: object) -> str:
    """The text of a content that is a string, or a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content if isinstance(content, str) else ""
