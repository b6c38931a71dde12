"""The request that a model gets, built fresh for every call: base prompt, then the tail of the
conversation. Pure: the same messages give the same request.

Invariant: what stands first changes least. The tail's start moves in steps, not message by message, so
that from one call to the next the server finds its prefix again and computes only what is new."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from exo.core.protocol.schema import Call, Message

MESSAGE_TOKENS = 8  # what a message costs beyond its text (role and marks), on the safe side
LEAST = 32  # tokens of a text that is cut, at the fewest
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


def build(
    opening: list[dict[str, Any]], messages: list[Message], limits: Limits
) -> list[dict[str, Any]]:
    """Return `messages` in the OpenAI chat shape behind `opening` (the system prompt and what never
    changes), fitting the budget. When
    the last turn alone is too long, its longest texts are cut first, then its oldest rounds left out."""
    used = sum(estimate(each["content"]) + MESSAGE_TOKENS for each in opening)
    budget = max(32, limits.budget - used)
    sizes = [_size(message) for message in messages]
    tail = messages[tail_start(messages, sizes, budget, limits.tail) :]
    while (share := _share([_size(message) for message in tail], budget)) < 3 * LEAST:
        if len(tail) <= 3:
            break
        del tail[1 : 3 if tail[2].role == "tool" else 2]
    request = list(opening)
    for message in tail:
        request += _shape(message, share)
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
    """Cut the middle out of `text` so that `tokens` remain; its start and end say most."""
    if estimate(text) <= tokens:
        return text
    raw = text.encode()
    keep = max(1, (tokens * 3 - len(CUT) - 8) // 2)
    head, tail = raw[:keep].decode(errors="ignore"), raw[-keep:].decode(errors="ignore")
    return head + CUT.format(count=len(text) - len(head) - len(tail)) + tail


def _share(sizes: list[int], budget: int) -> int:
    """The most tokens a message may have so that all fit `budget`; short ones stay whole. The budget
    itself when nothing has to be cut."""
    left = budget
    for n, size in enumerate(sorted(sizes)):
        many = len(sizes) - n
        if size * many > left:
            return left // many
        left -= size
    return budget


def _next_start(messages: list[Message], start: int) -> int:
    """The next place where a request may begin: a user message, never between a call and its result."""
    while start < len(messages) and messages[start].role != "user":
        start += 1
    return start


def _parts(message: Message) -> list[str]:
    """The texts of a message that cost tokens: what it says, and each call or each result."""
    if message.role == "tool":
        return [result.text for result in message.results or []]
    return [message.text, *(_arguments(call) for call in message.calls or [])]


def _size(message: Message) -> int:
    return sum(estimate(part) + MESSAGE_TOKENS for part in _parts(message))


def _arguments(call: Call) -> str:
    return json.dumps(call.args, ensure_ascii=False)


def _shape(message: Message, share: int) -> list[dict[str, Any]]:
    limit = share
    if _size(message) > share:
        limit = max(LEAST, share // len(_parts(message)) - MESSAGE_TOKENS)
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
                "function": {"name": call.tool, "arguments": _fitting(call, limit)},
            }
            for call in message.calls
        ]
    return [shaped]


def _fitting(call: Call, limit: int) -> str:
    """The arguments, still a JSON object when they had to be cut."""
    text = _arguments(call)
    if estimate(text) <= limit:
        return text
    # quotes and backslashes in it are escaped once more: at most twice as long
    return json.dumps({"cut": shorten(text, limit // 2)}, ensure_ascii=False)
