"""What the rest of the core says to a language model and hears from it, whatever the wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from exo.core.protocol.schema import Usage

Reason = Literal["end", "length", "calls", "refused"]


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Reasoning:
    text: str


@dataclass
class RawCall:
    """A tool call as the model wrote it: `arguments` is meant to be a JSON object, and may not be."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Done:
    """The end of a stream, once: why it ended, what it asks for, what it cost. "refused" is a provider's
    own filter."""

    reason: Reason
    calls: list[RawCall] = field(default_factory=list)
    usage: Usage = Usage()


ModelEvent = Text | Reasoning | Done


@dataclass(frozen=True)
class Request:
    """One call of a model. `messages` and `tools` in the OpenAI chat shape. `cache_key` names the
    conversation whose prefix the server may keep; `fixed` leading messages are the same in every
    conversation."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    max_tokens: int = 200
    cache_key: str = ""
    fixed: int = 1
    priority: Literal["live", "aux"] = "live"  # aux work stands back for live turns
    temperature: float | None = None


async def words(model: Model, role: str, request: Request) -> str:
    """All that a model says to a request. Raises ModelError."""
    return "".join([e.text async for e in model.stream(role, request) if isinstance(e, Text)])


class Model(Protocol):
    """The seam to language models."""

    def stream(self, role: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield text as it comes, then exactly one Done. Raises ModelError instead of Done."""

    async def prefill(self, role: str, request: Request) -> None:
        """Let the server compute the prefix of a request that will come. Raises ModelError."""

    def set_routes(self, role: str, routes: list[str]) -> None:
        """Give a role other routes, for good. Raises SettingError, StorageError."""

    async def models(self) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        """(models that can be reached now, role -> routes)."""

    async def count(self, role: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        """(tokens of a text or of messages by the role's own tokenizer, None where there is none; the
        model's window, 0 where it is not known). Raises ModelError."""

    def local(self, role: str) -> bool:
        """Whether the role is answered by the model server of this machine."""

    async def small(self, role: str) -> bool:
        """Whether a model of this machine answers that is not to be trusted with more than words. Raises
        ModelError."""
