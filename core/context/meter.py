"""How many tokens a text has: an estimate, put right by what the model's own tokenizer counted for the last
whole request, where there is one.

Invariant: the correction is rounded up to eighths, so that a text that is cut is cut at the same place from
one request to the next."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

from exo.core.base.errors import ModelError
from exo.core.context.builder import MESSAGE_TOKENS, estimate, weight

Count = Callable[[str | list[dict[str, Any]]], Awaitable[tuple[int | None, int]]]


class Meter:
    """`count` asks the model's server: (tokens, None where it has no tokenizer; window, 0 where it is not
    known). `measure` never waits."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._ratio = 1.0  # tokens for each one that was estimated
        self.exact = False  # a tokenizer has answered
        self.window = 0  # the model's, once it is known

    def measure(self, text: str) -> int:
        """Tokens of `text`."""
        return math.ceil(estimate(text) * self._ratio)

    async def total(self, request: list[dict[str, Any]]) -> int | None:
        """Tokens of a whole request, in one question; None where nobody can tell."""
        plain = [
            {"role": each["role"], "content": each["content"] + str(each.get("tool_calls", ""))}
            for each in request
        ]
        try:
            tokens, self.window = await self._count(plain)
        except ModelError:
            return None  # estimates do, and the turn itself says what is wrong with the model
        self.exact = tokens is not None
        if tokens is not None:
            marks = MESSAGE_TOKENS * len(plain)
            ratio = (tokens - marks) / max(1, weight(plain, estimate) - marks)
            self._ratio = min(3.0, max(0.25, math.ceil(8 * ratio) / 8))
        return tokens
