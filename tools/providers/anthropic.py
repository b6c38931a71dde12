"""The Anthropic Messages API: how a conversation is laid out for it and how its events read.

Invariant: the request is one that the API takes: roles alternate and begin with the person, no text is
empty. That every call has one result right behind it, and an id of its own, is the sessions' doing."""

from __future__ import annotations

import json
from typing import Any

from exo.core.router.catalog import ModelRow
from exo.core.router.cooldown import Key
from exo.core.router.model import ModelEvent, RawCall, Reason, Reasoning, Request, Text
from exo.core.router.wire import Refusal, Reply, Transport

VERSION = "2023-06-01"
CACHE = {"type": "ephemeral"}
Block = dict[str, Any]
Turn = tuple[str, list[Block]]  # role, content
_LENGTH: dict[str, Reason] = dict.fromkeys(
    ("max_tokens", "model_context_window_exceeded"), "length"
)
_REASONS: dict[str, Reason] = _LENGTH | {"tool_use": "calls", "refusal": "refused"}


class MessagesReply(Reply):
    """Text and thinking go through as they come; calls and usage are collected."""

    def __init__(self, row: ModelRow) -> None:
        super().__init__(row)
        self._calls: dict[int, RawCall] = {}
        self._counts: dict[str, int] = {}

    def read(self, data: str) -> list[ModelEvent]:
        event = json.loads(data)
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            raise Refusal(event.get("error") or event)
        if kind == "message_start":
            self._count(event["message"].get("usage"))
        elif kind == "content_block_start":
            return self._start(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            return self._delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._count(event.get("usage"))
            if reason := (event.get("delta") or {}).get("stop_reason"):
                self.reason = _REASONS.get(str(reason), "end")
        elif kind == "message_stop":
            self.closed = True
        return []  # ping, content_block_stop, and kinds that are yet to be invented

    def _start(self, index: int, block: dict[str, Any]) -> list[ModelEvent]:
        if block.get("type") == "tool_use":
            # most send the input in pieces afterwards, and an empty one here
            given = json.dumps(block["input"], ensure_ascii=False) if block.get("input") else ""
            self._calls[index] = RawCall(str(block["id"]), str(block["name"]), given)
            self.calls.append(self._calls[index])
        return _events(block)

    def _delta(self, index: int, delta: dict[str, Any]) -> list[ModelEvent]:
        if delta.get("type") == "input_json_delta":
            if index in self._calls:  # else a call that the server runs itself
                self._calls[index].arguments += str(delta.get("partial_json") or "")
            return []
        return _events(delta)

    def _count(self, usage: dict[str, Any] | None) -> None:
        """The counts of message_delta are totals; what it leaves out stays."""
        for name, value in (usage or {}).items():
            if isinstance(value, int):
                self._counts[name] = value
        cached = self._counts.get("cache_read_input_tokens", 0)
        written = self._counts.get("cache_creation_input_tokens", 0)
        prompt = self._counts.get("input_tokens", 0) + cached + written
        self.count(prompt, self._counts.get("output_tokens", 0), cached, written)


class AnthropicTransport(Transport):
    """One server that speaks Messages."""

    path = "/messages"
    reply = MessagesReply

    def headers(self, key: Key) -> dict[str, str]:
        keys = {"x-api-key": key.value} if key.value else {}
        return {"anthropic-version": VERSION, **keys}

    def body(self, model: str, request: Request, role: str) -> dict[str, Any]:
        system, messages = layout(request)
        body: dict[str, Any] = {"model": model, "stream": True, "messages": messages}
        body["max_tokens"] = request.max_tokens + self.provider.model(model).thinking
        if system:
            body["system"] = system
        if request.temperature is not None:
            body["temperature"] = min(request.temperature, 1.0)
        for function in (tool["function"] for tool in request.tools):
            tool = {name: function[name] for name in ("name", "description")}
            body.setdefault("tools", []).append({**tool, "input_schema": function["parameters"]})
        return body


def layout(request: Request) -> tuple[list[Block], list[Block]]:
    """(system blocks, messages) of a conversation in the OpenAI shape. The last block of the fixed
    prefix carries the mark up to which the provider caches."""
    system: list[Block] = []
    turns: list[Turn] = []
    for position, message in enumerate(request.messages):
        role, blocks = _blocks(message)
        if blocks and position == request.fixed - 1:
            blocks[-1] = {**blocks[-1], "cache_control": CACHE}
        if role == "system" and not turns:
            system += blocks
        elif blocks:
            # later notes of the system are words to the model, not the model's
            role = "assistant" if role == "assistant" else "user"
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(blocks)
            else:
                turns.append((role, blocks))
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"type": "text", "text": "(The conversation goes on.)"}]))
    return system, [{"role": role, "content": blocks} for role, blocks in turns]


def _blocks(message: dict[str, Any]) -> tuple[str, list[Block]]:
    role, text = message["role"], message["content"]
    if role == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
        return role, [{**block, "content": text if text.strip() else "(nothing)"}]
    blocks: list[Block] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.get("tool_calls", []):
        function = call["function"]
        use = {"type": "tool_use", "id": call["id"], "name": function["name"]}
        blocks.append({**use, "input": json.loads(function["arguments"])})
    return role, blocks


def _events(block: dict[str, Any]) -> list[ModelEvent]:
    if text := block.get("text"):
        return [Text(str(text))]
    if thinking := block.get("thinking"):
        return [Reasoning(str(thinking))]
    return []
