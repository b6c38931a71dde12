"""The request that a model gets, built fresh for every call: base prompt, then the tail of the
conversation. Pure: the same messages give the same request.

Invariant: what stands first changes least. The tail's start moves in steps, not message by message, so
that from one call to the next the server finds its prefix again and computes only what is new."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from exo.core.protocol.schema import Message

MESSAGE_TOKENS = 8  # what a message costs beyond its text (role and marks), on the safe side
CUT = "\n[... {count} characters left out ...]\n"


@dataclass(frozen=True)
class Limits:
    """`window` tokens in all, of which `reply` stay free; `tail` messages at least are kept when
    older ones have to go."""

    window: int = 4096
    reply: int = 200
    tail: int = 12

    @property
    def budget(self) -> int:
        """Tokens for the request; an eighth is kept back because counts are estimates."""
        return max(64, (self.window - self.reply) * 7 // 8)


def build(system: str, messages: list[Message], limits: Limits) -> list[dict[str, Any]]:
    """Return `messages` in the OpenAI chat shape behind the system prompt, fitting the budget."""
    budget = max(32, limits.budget - estimate(system))
    sizes = [_size(message) for message in messages]
    start = tail_start(messages, sizes, budget, limits.tail)
    tail = messages[start:]
    while len(tail) > 1 and sum(min(size, budget // 2) for size in sizes[start:]) > budget:
        start = _next_start(messages, start + 1)
        tail = messages[start:]
    request = [{"role": "system", "content": system}]
    for message in tail:
        request += _shape(message, budget // 2 if len(tail) > 1 else budget)
    return request


def tail_start(messages: list[Message], sizes: list[int], budget: int, tail: int) -> int:
    """Index of the first message that is sent. Walks through the conversation as it grew: whenever
    it no longer fitted, the start jumped to leave half the budget free (but `tail` messages kept)."""
    start, total = 0, 0
    for end, size in enumerate(sizes):
        total += size
        if total <= budget:
            continue
        while start < end and (total > budget // 2 and end - start >= tail or total > budget):
            following = _next_start(messages, start + 1)
            if following > end:
                break
            total -= sum(sizes[start:following])
            start = following
    return start


def estimate(text: str) -> int:
    """Tokens of `text`, rather too many than too few: a third of its UTF-8 bytes."""
    return len(text.encode()) // 3 + 1


def shorten(text: str, tokens: int) -> str:
    """Cut the middle out of `text` so that about `tokens` remain; its start and end say most."""
    if estimate(text) <= tokens:
        return text
    keep = max(1, len(text) * tokens // (estimate(text) * 2))
    return text[:keep] + CUT.format(count=len(text) - 2 * keep) + text[-keep:]


def _next_start(messages: list[Message], start: int) -> int:
    """The next place where a request may begin: a user message, never between a call and its result."""
    while start < len(messages) and messages[start].role != "user":
        start += 1
    return start


def _size(message: Message) -> int:
    extra = json.dumps([call.args for call in message.calls]) if message.calls else ""
    results = "".join(result.text for result in message.results or [])
    return estimate(message.text + extra + results) + MESSAGE_TOKENS


def _shape(message: Message, limit: int) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [
            {"role": "tool", "tool_call_id": result.call, "content": shorten(result.text, limit)}
            for result in message.results or []
        ]
    shaped: dict[str, Any] = {"role": message.role, "content": shorten(message.text, limit)}
    if message.calls:
        shaped["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.tool,
                    "arguments": json.dumps(call.args, ensure_ascii=False),
                },
            }
            for call in message.calls
        ]
    return [shaped]
