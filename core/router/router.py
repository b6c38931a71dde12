"""Roles to models. Code asks for a role; which provider and model answers is data (catalog.toml).

Falls back along a role's routes, and then along the chain decision > aux > main, but only before any
output: two different answers are never spliced together."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from exo.core.base.errors import ContextOverflow, ModelError, ModelGone
from exo.core.router.model import ModelEvent, Request
from exo.core.router.openai import OpenAiTransport

CHAIN = {"main": ("main",), "aux": ("aux", "main"), "decision": ("decision", "aux", "main")}


class Router:
    """Implements Model over the providers of the catalog."""

    def __init__(self, state: Path, silence: float) -> None:
        catalog = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text())
        self._providers = {
            name: OpenAiTransport(name, state / row["socket"], row["prefix_cache"], silence)
            for name, row in catalog["providers"].items()
        }
        self._roles: dict[str, list[str]] = catalog["roles"]

    async def stream(self, role: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Raises the first route's ModelError once every route has failed before output."""
        first: ModelError | None = None
        for provider, model in self._routes(role):
            begun = False
            try:
                async with aclosing(provider.stream(model, request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ModelError as error:
                if begun or isinstance(error, ContextOverflow):
                    raise
                first = first or error
        raise first or ModelGone(f"ask a model for {role}", "no route is set for it")

    async def prefill(self, role: str, request: Request) -> None:
        for provider, model in self._routes(role)[:1]:
            await provider.prefill(model, request)

    async def models(self) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        models: list[dict[str, Any]] = []
        for name, provider in self._providers.items():
            models += [{**row, "provider": name} for row in await provider.models()]
        return models, self._roles

    async def count(self, role: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        for provider, model in self._routes(role)[:1]:
            return await provider.count(model, what)
        return None, 0

    def local(self, role: str) -> bool:
        return any(provider.prefix_cache for provider, _ in self._routes(role)[:1])

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()

    def _routes(self, role: str) -> list[tuple[OpenAiTransport, str]]:
        names = [route for each in CHAIN[role] for route in self._roles.get(each, [])]
        pairs = (name.split(":", 1) for name in dict.fromkeys(names))
        return [(self._providers[provider], model) for provider, model in pairs]
