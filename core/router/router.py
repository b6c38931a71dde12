"""Roles to models. Code asks for a role; which provider and model answers is data (catalog.toml, the
person's state/providers.toml, models.set).

Invariant: another credential or route is tried only before any output, since two different answers are
never spliced together, and never for a request that was itself wrong. When nothing is left, one error says
why for each route and when the next one opens again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.clock import Clock, SystemClock
from exo.core.base.errors import ContextOverflow, ExoError, ModelBusy, ModelError, ModelSilent
from exo.core.base.files import write_atomic
from exo.core.router.catalog import CHAIN, FILE, Catalog, Provider, check_routes
from exo.core.router.cooldown import WRONG, Credential, Key, said
from exo.core.router.model import Done, ModelEvent, Request
from exo.core.router.openai import OpenAiTransport
from exo.core.router.wire import Transport

if TYPE_CHECKING:
    import httpx

ROLES = "roles.toml"  # in state/: what models.set has set
TRANSPORTS: dict[str, type[Transport]] = {"openai": OpenAiTransport}  # plugins may add
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
        self._catalog, self._set = Catalog(), dict[str, list[str]]()
        for name in (FILE, ROLES):
            try:
                self._set = self._catalog.add(state / name)
            except ExoError as error:
                self._set = {}
                self.fault = self.fault or error
        self._made: dict[str, Transport] = {}
        self._parts = (state, silence, self._clock, connect)
        self._credentials: dict[tuple[str, Key], Credential] = {}

    async def stream(self, role: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield the first answer to be had. Raises ModelError."""
        closed: list[_Closed] = []
        for route, transport, model, key in self._ways(role, closed):
            begun, started = False, self._clock.monotonic()
            try:
                answer = transport.stream(model, request, role, key)
                async with contextlib.aclosing(answer) as events:
                    async for event in events:
                        if isinstance(event, Done):
                            self._credentials.pop((transport.provider.name, key), None)
                        begun = True
                        yield event
                return
            except ModelError as error:
                opens = self._failed(transport.provider, key, error, started)
                if begun or isinstance(error, ContextOverflow) or error.status in WRONG:
                    raise
                closed.append(_Closed(route, said(error), opens, error))
        raise self._exhausted(role, closed)

    async def prefill(self, role: str, request: Request) -> None:
        """Only on the route that would be asked first, and only where the server keeps prefixes."""
        _, transport, model, key = self._first(role)
        if transport and transport.provider.prefix_cache:
            body = transport.body(model, request, role)
            await transport.ask("POST", "/prefill", key, body)

    async def count(self, role: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        """The catalog knows the windows of models that run elsewhere."""
        _, transport, model, key = self._first(role)
        if not transport or not transport.provider.prefix_cache:
            return None, transport.provider.model(model).window if transport else 0
        body = {"model": model, "text" if isinstance(what, str) else "messages": what}
        found = await transport.ask("POST", "/tokenize", key, body)
        return int(found.get("tokens") or 0) or None, int(found.get("window") or 0)

    def local(self, role: str) -> bool:
        _, transport, _, _ = self._first(role)
        return transport is not None and transport.provider.prefix_cache

    async def small(self, role: str) -> bool:
        _, transport, _, key = self._first(role)
        if transport is None or not transport.provider.prefix_cache:
            return False
        rows = (await transport.ask("GET", "/models", key)).get("data") or ()
        return any(row.get("small") and row.get("role") == role for row in rows)

    async def models(self) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        """Servers of one's own are asked what they have; for the others the catalog's rows stand, if
        there is a key. A server that does not answer has no rows."""
        found = await asyncio.gather(*map(self._listed, self._transports()))
        return [row for rows in found for row in rows], dict(self._catalog.roles)

    def set_routes(self, role: str, routes: list[str]) -> None:
        """Change a role, now and after a restart. Raises SettingError, StorageError."""
        checked = check_routes(self._catalog.providers, role, routes, "models.set")
        chosen = self._set | {role: checked}
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in chosen.items())
        write_atomic(self._file, "[roles]\n" + "".join(lines))
        self._set = chosen
        self._catalog.roles |= chosen

    async def close(self) -> None:
        for transport in self._made.values():
            await transport.close()

    # ---- routes and credentials ------------------------------------------------------------------

    def _ways(self, role: str, closed: list[_Closed]) -> Iterator[tuple[str, Transport, str, Key]]:
        """(route, transport, model, key) of what may be asked now, in order; why the others may not is
        noted in `closed`."""
        routes = [route for each in CHAIN[role] for route in self._catalog.roles[each]]
        for route in dict.fromkeys(routes):
            name, _, model = route.partition(":")
            provider = self._catalog.providers[name]
            transport, keys = self._transport(provider), self._present(provider)
            if transport is None:
                keys = []
                closed.append(_Closed(route, f"nothing here speaks {provider.transport}"))
            elif not keys:
                closed.append(_Closed(route, f"no key is set in {' or '.join(provider.keys)}"))
            for key in keys:
                credential = self._credential(provider, key)
                if not re.fullmatch(r"[!-~]*", key.value):
                    closed.append(_Closed(route, f"{key.variable} holds what no key can hold"))
                elif wait := credential.wait(self._clock.monotonic()):
                    closed.append(_Closed(route, credential.why, wait))
                elif transport is not None:
                    yield route, transport, model, key

    def _transport(self, provider: Provider) -> Transport | None:
        """None while no plugin has brought it."""
        if provider.name not in self._made and provider.transport in TRANSPORTS:
            made = TRANSPORTS[provider.transport](provider, *self._parts)
            self._made[provider.name] = made
        return self._made.get(provider.name)

    def _transports(self) -> list[Transport]:
        return [each for each in map(self._transport, self._catalog.providers.values()) if each]

    def _first(self, role: str) -> tuple[str, Transport | None, str, Key]:
        """What would be asked now, no transport where nothing can be."""
        return next(self._ways(role, []), ("", None, "", Key()))

    def _present(self, provider: Provider) -> list[Key]:
        """The provider's keys; they are read from the environment each time."""
        values = ((name, self._environ.get(name, "").strip()) for name in provider.keys)
        keys = [Key(name, value) for name, value in values if value]
        return keys or ([Key()] if provider.keyless else [])

    def _credential(self, provider: Provider, key: Key) -> Credential:
        """A key that was changed is another one, and starts afresh."""
        return self._credentials.setdefault((provider.name, key), Credential())

    def _failed(
        self, provider: Provider, key: Key, error: ModelError, begun: float
    ) -> float | None:
        """Note a failure; seconds until the credential may be used again, None when time does not
        help. Our own model server is repaired by its supervisor and costs nothing to ask, so it is
        set aside only for silence."""
        if provider.socket and not isinstance(error, ModelSilent):
            return 0.0 if error.retryable else None
        now, credential = self._clock.monotonic(), self._credential(provider, key)
        lone = len(self._present(provider)) == 1
        credential.fail(error, now, begun, lone)
        wait = credential.wait(now)
        return wait if wait or error.retryable else None

    def _exhausted(self, role: str, closed: list[_Closed]) -> ModelError:
        """One error for all. It is worth another try when a route opens soon."""
        waits = [(each.opens, each.route) for each in closed if each.opens is not None]
        opens, route = min(waits, default=(None, ""))
        hint = "set a key, or give the role another route with models.set"
        if opens is not None:
            hint = f"{route} opens again in {_span(opens)}"
        if self.fault is not None:
            hint += f"; besides, {self.fault}"
        why = "; ".join(dict.fromkeys(f"{each.route}: {each.why}" for each in closed))
        why = why or "no route is set for it"
        usual = ModelBusy("") if waits else ModelError("")
        first = next((each.error for each in closed if each.error), usual)
        error = type(first)(f"ask a model for {role}", why, hint, code=first.code)
        error.status, error.retry_after = first.status, opens
        error.retryable = opens is not None and opens <= PATIENCE
        return error

    async def _listed(self, transport: Transport) -> list[dict[str, Any]]:
        provider = transport.provider
        keys = self._present(provider)
        rows = [{"id": name, **vars(row)} for name, row in provider.models.items() if keys]
        if provider.keyless:
            rows = []
            with contextlib.suppress(ModelError, TimeoutError, KeyError, TypeError, ValueError):
                async with asyncio.timeout(LIST):
                    found = await transport.ask("GET", "/models", keys[0])
                rows = [dict(row) for row in found["data"]]
        return [{**row, "provider": provider.name} for row in rows]


def _span(seconds: float) -> str:
    """A wait as a person says it."""
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
