"""How many tokens a text has: by the model's own tokenizer where there is one, remembered text by text;
an estimate, corrected by what was counted so far, where there is none or it was not asked yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from exo.core.base.errors import ModelError
from exo.core.context.builder import MESSAGE_TOKENS, estimate

REMEMBERED = 8192  # texts
ENOUGH = 200  # estimated tokens that must have been counted before the correction is believed
Count = Callable[[str | list[dict[str, Any]]], Awaitable[tuple[int | None, int]]]


class Meter:
    """`count` asks the model's server: (tokens, None where it has no tokenizer; window, 0 where it is not
    known). `measure` never waits."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known: OrderedDict[int, int] = OrderedDict()
        self._guessed = self._counted = 0
        self.exact = False  # a tokenizer has answered
        self.window = 0  # the model's, once it is known

    def measure(self, text: str) -> int:
        """Tokens of `text`: counted, else estimated and corrected."""
        known = self._known.get(hash(text))
        if known is not None:
            return known
        guess = estimate(text)
        if self._guessed < ENOUGH or guess < 8:
            return guess
        return max(1, round(guess * min(1.0, max(0.4, 1.1 * self._counted / self._guessed))))

    async def learn(self, texts: Iterable[str], most: int = 64) -> None:
        """Count texts that are not known yet, `most` at a time; for idle moments, one request each."""
        for text in [each for each in texts if hash(each) not in self._known][:most]:
            tokens = await self._ask(text)
            if tokens is None:
                return
            self._known[hash(text)] = tokens
            self._guessed += estimate(text)
            self._counted += tokens
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    async def total(self, request: list[dict[str, Any]]) -> int | None:
        """Tokens of a whole request, in one question; None where nobody can tell."""
        plain = [
            {
                "role": each["role"],
                "content": each["content"] + str(each.get("tool_calls", "")),
            }
            for each in request
        ]
        tokens = await self._ask(plain)
        if tokens is not None and self._guessed < ENOUGH:
            self._guessed += sum(estimate(each["content"]) for each in plain)
            self._counted += max(1, tokens - MESSAGE_TOKENS * len(plain))
        return tokens

    async def _ask(self, what: str | list[dict[str, Any]]) -> int | None:
        try:
            tokens, self.window = await self._count(what)
        except ModelError:
            return None  # estimates do, and the turn itself says what is wrong with the model
        self.exact = tokens is not None
        return tokens
