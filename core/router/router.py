"""Roles to models. Code asks for a role; which provider and model answers is data (catalog.toml, the
person's state/providers.toml, models.set).

Invariant: another credential or route is tried only before any output, since two different answers are
never spliced together, and never for a request that was itself wrong. When nothing is left, one error says
why for each route and when the next one opens again."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.clock import Clock, SystemClock
from exo.core.base.errors import (
    ContextOverflow,
    ExoError,
    ModelBusy,
    ModelError,
    ModelSilent,
)
from exo.core.base.files import write_atomic
from exo.core.router.anthropic import AnthropicTransport
from exo.core.router.catalog import CHAIN, Provider, check_routes, load, read_toml
from exo.core.router.cooldown import WRONG, Credential, Key, said
from exo.core.router.model import Done, ModelEvent, Request
from exo.core.router.openai import OpenAiTransport
from exo.core.router.wire import Transport

if TYPE_CHECKING:
    import httpx

ROLES = "roles.toml"  # in state/: what models.set has set
LIST = 3.0  # seconds for a server's list of models
PATIENCE = 15.0  # seconds: a route that opens within is worth waiting for


@dataclass(frozen=True)
class _Closed:
    """Why a route was of no use. `opens` seconds from now, None when time alone does not help."""

    route: str
    why: str
    opens: float | None = None
    error: ModelError | None = None


class Router:
    """Implements Model over the providers of the catalog."""

    def __init__(
        self,
        state: Path,
        silence: float,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        connect: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`silence` seconds without a byte end a request. A person's file that does not read leaves
        the catalog alone in force, and its fault in `fault`. `connect` replaces the network."""
        self._file = state / ROLES
        self._clock = clock or SystemClock()
        self._environ = os.environ if environ is None else environ
        self.fault: ExoError | None = None
        try:
            catalog = load(state)
        except ExoError as error:
            self.fault, catalog = error, load(None)
        self._providers, self._roles = catalog.providers, catalog.roles
        self._set: dict[str, list[str]] = {}
        try:
            for name, routes in read_toml(self._file).items():
                self._set[name] = check_routes(self._providers, name, routes, ROLES)
        except ExoError as error:
            self.fault = self.fault or error
        self._roles |= self._set
        self._transports: dict[str, Transport] = {
            name: (AnthropicTransport if row.transport == "anthropic" else OpenAiTransport)(
                row, state, silence, self._clock, connect
            )
            for name, row in self._providers.items()
        }
        self._credentials: dict[tuple[str, Key], Credential] = {}

    async def stream(self, role: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield the first answer to be had. Raises ModelError."""
        closed: list[_Closed] = []
        for route, provider, model in self._routes(role, closed):
            for key in self._keys(provider, route, closed):
                transport = self._transports[provider.name]
                begun, started = False, self._clock.monotonic()
                try:
                    answer = transport.stream(model, request, role, key)
                    async with contextlib.aclosing(answer) as events:
                        async for event in events:
                            if isinstance(event, Done):
                                self._credentials.pop((provider.name, key), None)
                            begun = True
                            yield event
                    return
                except ModelError as error:
                    opens = self._failed(provider, key, error, started)
                    if begun or isinstance(error, ContextOverflow) or error.status in WRONG:
                        raise
                    closed.append(_Closed(route, said(error), opens, error))
        raise self._exhausted(role, closed)

    async def prefill(self, role: str, request: Request) -> None:
        """Only on the route that would be asked first, and only where the server keeps prefixes."""
        for transport, model, key in self._first(role):
            if isinstance(transport, OpenAiTransport):
                await transport.prefill(model, request, role, key)

    async def count(self, role: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        """The catalog knows the windows of models that run elsewhere."""
        for transport, model, key in self._first(role):
            if isinstance(transport, OpenAiTransport) and transport.provider.prefix_cache:
                return await transport.count(model, what, key)
            return None, transport.provider.model(model).window
        return None, 0

    def local(self, role: str) -> bool:
        return any(transport.provider.prefix_cache for transport, _, _ in self._first(role))

    async def models(self) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        """Servers of one's own are asked what they have; for the others the catalog's rows stand, if
        there is a key. A server that does not answer has no rows."""
        found = await asyncio.gather(*(self._listed(row) for row in self._providers.values()))
        return [row for rows in found for row in rows], dict(self._roles)

    def set_routes(self, role: str, routes: list[str]) -> None:
        """Change a role, now and after a restart. Raises SettingError, StorageError."""
        chosen = self._set | {role: check_routes(self._providers, role, routes, "models.set")}
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in chosen.items())
        write_atomic(self._file, "".join(lines))
        self._set = chosen
        self._roles |= chosen

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()

    # ---- routes and credentials ------------------------------------------------------------------

    def _routes(self, role: str, closed: list[_Closed]) -> Iterator[tuple[str, Provider, str]]:
        """(route, provider, model) in order; what leads nowhere is noted in `closed`."""
        routes = [route for each in CHAIN[role] for route in self._roles.get(each, [])]
        for route in dict.fromkeys(routes):
            name, _, model = route.partition(":")
            if provider := self._providers.get(name):
                yield route, provider, model
            else:
                closed.append(_Closed(route, f"there is no provider {name!r}"))

    def _first(self, role: str) -> list[tuple[Transport, str, Key]]:
        """The route that would be asked now, as a list of one, or none."""
        usable = (
            (self._transports[provider.name], model, key)
            for route, provider, model in self._routes(role, [])
            for key in self._keys(provider, route, [])
        )
        return list(itertools.islice(usable, 1))

    def _keys(self, provider: Provider, route: str, closed: list[_Closed]) -> Iterator[Key]:
        """The provider's keys that may be used now. They are read from the environment each time."""
        keys = self._present(provider)
        if not keys:
            names = " or ".join(provider.keys)
            why = f"no key is set in {names}" if names else "it takes no key and answers to none"
            closed.append(_Closed(route, why))
        for key in keys:
            if not re.fullmatch(r"[!-~]*", key.value):
                closed.append(_Closed(route, f"{key.variable} holds what no key can hold"))
                continue
            credential = self._credential(provider, key)
            if wait := credential.wait(self._clock.monotonic()):
                closed.append(_Closed(route, credential.why, wait))
            else:
                yield key

    def _present(self, provider: Provider) -> list[Key]:
        values = ((name, self._environ.get(name, "").strip()) for name in provider.keys)
        keys = [Key(name, value) for name, value in values if value]
        return keys or ([Key()] if provider.keyless else [])

    def _credential(self, provider: Provider, key: Key) -> Credential:
        """A key that was changed is another one, and starts afresh."""
        return self._credentials.setdefault((provider.name, key), Credential())

    def _failed(
        self, provider: Provider, key: Key, error: ModelError, started: float
    ) -> float | None:
        """Note a failure; seconds until the credential may be used again, None when time does not
        help. Our own model server is repaired by its supervisor and costs nothing to ask, so it is
        set aside only for silence."""
        if provider.socket and not isinstance(error, ModelSilent):
            return 0.0 if error.retryable else None
        now, credential = self._clock.monotonic(), self._credential(provider, key)
        lone = len(self._present(provider)) == 1
        credential.fail(error, now, started, lone)
        wait = credential.wait(now)
        return wait if wait or error.retryable else None

    def _exhausted(self, role: str, closed: list[_Closed]) -> ModelError:
        """One error for all. It is worth another try when a route opens soon."""
        what = f"ask a model for {role}"
        if not closed:
            return ModelError(what, "no route is set for it", "set one with models.set")
        errors = [each.error for each in closed if each.error is not None]
        waits = [(each.opens, each.route) for each in closed if each.opens is not None]
        opens, route = min(waits, default=(None, ""))
        hint = f"{route} opens again in {_span(opens)}" if opens else ""
        if opens is None and not errors:
            hint = "set a key, or give the role another route with models.set"
        if self.fault is not None:
            hint = f"{hint}; besides, {self.fault}".removeprefix("; ")
        kind = type(errors[0]) if errors else ModelBusy if waits else ModelError
        why = "; ".join(dict.fromkeys(f"{each.route}: {each.why}" for each in closed))
        error = kind(what, why, hint, code=errors[0].code if errors else "")
        error.status = errors[0].status if errors else None
        error.retry_after = opens
        error.retryable = opens is not None and opens <= PATIENCE
        return error

    # ---- models and roles ------------------------------------------------------------------------

    async def _listed(self, provider: Provider) -> list[dict[str, Any]]:
        keys = self._present(provider)
        if not keys:
            return []
        rows = [{"id": name, "object": "model"} for name in provider.models]
        if provider.keyless:
            rows = []
            with contextlib.suppress(ModelError, TimeoutError, KeyError, TypeError, ValueError):
                async with asyncio.timeout(LIST):
                    found = await self._transports[provider.name].ask("GET", "/models", keys[0])
                rows = [dict(row) for row in found["data"]]
        return [{**_known(provider, row), **row, "provider": provider.name} for row in rows]


def _known(provider: Provider, row: dict[str, Any]) -> dict[str, Any]:
    model = provider.model(str(row.get("id")))
    known: dict[str, Any] = {"context_window": model.window} if model.window else {}
    return known | ({"price": vars(model)} if model.input is not None else {})


def _span(seconds: float) -> str:
    """A wait as a person says it: 9 s, 3 min, 2 h."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"
