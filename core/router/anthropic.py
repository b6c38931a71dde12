"""The Anthropic Messages API: how a conversation is laid out for it and how its events read.

Invariant: whatever the conversation, the request is one that the API takes: roles alternate and begin with
the person, every call has its result right after it, no text is empty."""

from __future__ import annotations

import json
import re
from typing import Any

from exo.core.router.catalog import ModelRow
from exo.core.router.cooldown import Key
from exo.core.router.model import ModelEvent, Reason, Reasoning, Request, Text
from exo.core.router.wire import Part, Refusal, Reply, Transport, text_of

VERSION = "2023-06-01"
CACHE = {"type": "ephemeral"}
Block = dict[str, Any]
Turn = tuple[str, list[Block]]  # role, content
_MISSING = {"type": "tool_result", "content": "no result came", "is_error": True}
_REASONS: dict[str, Reason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "calls",
    "refusal": "refused",
}


class MessagesReply(Reply):
    """Text and thinking go through as they come; calls and usage are collected."""

    def __init__(self, row: ModelRow) -> None:
        super().__init__(row)
        self._calls: dict[int, Part] = {}
        self._counts: dict[str, int] = {}
        self._block = 0

    def read(self, data: str) -> list[ModelEvent]:
        event = json.loads(data)
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            raise Refusal(event.get("error") or event)
        if kind == "message_start":
            self._count(event["message"].get("usage"))
        elif kind == "content_block_start":
            self._block = int(event.get("index", self._block + 1))
            return self._start(event["content_block"])
        elif kind == "content_block_delta":
            return self._delta(int(event.get("index", self._block)), event["delta"])
        elif kind == "message_delta":
            self._count(event.get("usage"))
            if reason := (event.get("delta") or {}).get("stop_reason"):
                self.reason = _REASONS.get(str(reason), "end")
        elif kind == "message_stop":
            self.closed = True
        return []  # ping, content_block_stop, and kinds that are yet to be invented

    def _start(self, block: dict[str, Any]) -> list[ModelEvent]:
        if block.get("type") == "tool_use":
            given = json.dumps(block["input"], ensure_ascii=False) if block.get("input") else ""
            names = str(block.get("id") or ""), str(block.get("name") or "")
            call = self._calls[self._block] = Part(self._block, *names, given=given)
            self.parts.append(call)
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
        if request.tools:
            body["tools"] = [_tool(tool["function"]) for tool in request.tools]
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
    return system, [{"role": role, "content": blocks} for role, blocks in _paired(turns)]


def _blocks(message: dict[str, Any]) -> tuple[str, list[Block]]:
    role, text = str(message.get("role")), text_of(message.get("content"), "\n")
    if role == "tool":
        block = {"type": "tool_result", "tool_use_id": _id(message.get("tool_call_id"))}
        return role, [{**block, "content": text if text.strip() else "(nothing)"}]
    blocks: list[Block] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        name, arguments = str(function.get("name") or "unknown"), function.get("arguments")
        use = {"type": "tool_use", "id": _id(call.get("id")), "name": name}
        blocks.append({**use, "input": _object(arguments)})
    return role, blocks


def _paired(turns: list[Turn]) -> list[Turn]:
    """Every call with exactly one result, first thing in the next turn; a result without its call
    becomes text."""
    out: list[Turn] = []
    open_: list[tuple[str, str]] = []  # (id it came with, id that no other call has)
    taken: set[str] = set()
    for role, blocks in [*turns, ("user", [])] if _calls(turns[-1][1]) else turns:
        wanted = [id_ for id_, _ in open_]
        found: dict[str, list[Block]] = {}
        rest = []
        for block in blocks:
            if block["type"] != "tool_result":
                rest.append(block)
            elif len(found.setdefault(id_ := block["tool_use_id"], [])) < wanted.count(id_):
                found[id_].append(block)
            else:
                rest.append({"type": "text", "text": f"(Result of a tool: {block['content']})"})
        results = []
        for id_, unique in open_:
            block = found[id_].pop(0) if found.get(id_) else dict(_MISSING)
            results.append({**block, "tool_use_id": unique})
        open_ = []
        for block in _calls(rest):
            id_, unique = block["id"], block["id"]
            while unique in taken:
                unique = f"{id_}_{len(taken)}"
            taken.add(unique)
            block["id"] = unique
            open_.append((id_, unique))
        out.append((role, results + rest))
    return out


def _calls(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if block["type"] == "tool_use"]


def _events(block: dict[str, Any]) -> list[ModelEvent]:
    if text := block.get("text"):
        return [Text(str(text))]
    if thinking := block.get("thinking"):
        return [Reasoning(str(thinking))]
    return []


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    tool = {"name": function["name"], "input_schema": schema}
    return tool | {"description": function["description"]} if function.get("description") else tool


def _id(id_: object) -> str:
    """The API takes letters, digits, dash and underscore; a call may come from another provider."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(id_ or "")) or "call"


def _object(arguments: object) -> dict[str, Any]:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
