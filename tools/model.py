"""A language model for trials and tests: it is not there. They override what they need, so that what the core asks of a
model newly is answered in one place."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from exo.core.base.errors import ModelGone
from exo.core.router.model import ModelEvent, Request


class NoModel:
    """Nobody answers and nobody counts: what remains are rules and estimates."""

    async def stream(self, role: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        raise ModelGone("ask", "there is none")
        yield

    async def prefill(self, role: str, request: Request) -> None:
        return

    def set_routes(self, role: str, routes: list[str]) -> None:
        return

    async def models(self) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        return [], {}

    async def count(self, role: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        return None, 0

    def local(self, role: str) -> bool:
        return True

    async def small(self, role: str) -> bool:
        return False
