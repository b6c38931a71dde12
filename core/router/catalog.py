"""Which providers and models there are, as data: catalog.toml, and over it the person's own
state/providers.toml. Owns reading and checking both; opens no connection and reads no key.

Invariant: what comes out is whole and typed; what does not fit is named with its place, never its value,
because a key may have been written where its variable's name belongs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exo.core.base.errors import SettingError
from exo.core.base.settings import read_toml

CHAIN = {"main": ("main",), "aux": ("aux", "main"), "decision": ("decision", "aux", "main")}
FILE = "providers.toml"  # in state/
HINT = (
    "the comment in core/router/catalog.toml says what it may hold; a key is never written here, only "
    "the name of its environment variable"
)

# what each field may hold, as a regular expression for its JSON
_NUMBER, _COUNT, _FLAG = r"\d[\d.e-]*", r"\d+", "true|false"
_PROVIDER = {
    "transport": '"(openai|anthropic)"',
    "url": r'"https?://[^\s"/@?#\\]+[^\s"@?#\\]*"',
    "socket": '".*"',
    "keys": r'\[("[A-Z_][A-Z0-9_]*"(, )?)*\]',
    "keyless": _FLAG,
    "prefix_cache": _FLAG,
    "limit": '".*"',
    "silence": r"(?!0+\.?0*$)" + _NUMBER,
    "models": r"\{.*\}",
}
_MODEL = {
    **dict.fromkeys(("input", "output", "cache_read", "cache_write"), _NUMBER),
    **dict.fromkeys(("window", "thinking"), _COUNT),
}


@dataclass(frozen=True)
class ModelRow:
    """What is known of a model: USD per million tokens, None where it is not known (the cache costs as
    input does then); `window` 0 means unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    window: int = 0
    thinking: int = 0

    def cost(self, prompt: int, completion: int, cached: int, written: int) -> float | None:
        """USD of a call, None without a price; `cached` and `written` are parts of `prompt`."""
        if self.input is None or self.output is None:
            return None
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, prompt - cached - written)
        total = fresh * self.input + completion * self.output
        return (total + cached * read + written * write) / 1e6


@dataclass(frozen=True)
class Provider:
    """One row; the comment at the top of catalog.toml explains the fields."""

    name: str
    transport: str = ""
    url: str = ""
    socket: str = ""
    keys: tuple[str, ...] = ()
    keyless: bool = False
    prefix_cache: bool = False
    limit: str = "max_tokens"
    silence: float | None = None
    models: dict[str, ModelRow] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return (self.url or "http://models/v1").rstrip("/")

    def model(self, name: str) -> ModelRow:
        """The row of a model, also when its name carries a date (gpt-4.1-2025-04-14)."""
        short = re.sub(r"-(latest|\d{4}-?\d{2}-?\d{2})$", "", name)
        return self.models.get(name) or self.models.get(short) or ModelRow()


class Catalog:
    """catalog.toml, and what is laid over it."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.roles: dict[str, list[str]] = {}
        self.add(Path(__file__).with_name("catalog.toml"))

    def add(self, path: Path) -> dict[str, list[str]]:
        """Lay a file over what is here, field by field, all of it or nothing; an absent one is empty.
        Returns the roles it sets. Raises SettingError, StorageError."""
        own = read_toml(path)
        _check(own, {"providers": r"\{.*\}", "roles": r"\{.*\}"}, path, "the file")
        providers = dict(self.providers)
        for name, row in own.get("providers", {}).items():
            providers[name] = _provider(providers.get(name, Provider(name)), row, path)
        named = own.get("roles", {}).items()
        roles = {role: check_routes(providers, role, routes, str(path)) for role, routes in named}
        self.providers = providers
        self.roles |= roles
        return roles


def check_routes(known: Collection[str], role: str, routes: object, source: str) -> list[str]:
    """Return `routes` if they can be a role's. Raises SettingError with code bad_role or bad_route."""
    what = f"set the routes of {role} ({source})"
    if role not in CHAIN:
        raise SettingError(what, f"the roles are {', '.join(CHAIN)}", code="bad_role")
    shape = (
        f'a list of "provider:model" is wanted, for main one at least; known are {", ".join(known)}'
    )
    if not isinstance(routes, list) or role == "main" and not routes:
        raise SettingError(what, "that is no list of routes", shape, code="bad_route")
    for route in routes:
        provider, _, model = str(route).partition(":")
        if provider not in known or not model.isprintable() or not model:
            raise SettingError(what, f"{route!r} leads nowhere", shape, code="bad_route")
    return list(dict.fromkeys(routes))


def _provider(base: Provider, own: dict[str, Any], path: Path) -> Provider:
    where = f"providers.{base.name}"
    _check(own, _PROVIDER, path, where)
    models = dict(base.models)
    for name, values in own.get("models", {}).items():
        _check(values, _MODEL, path, f"{where}.models.{name}")
        models[name] = ModelRow(**values)
    socket = own.get("socket", "" if "url" in own else base.socket)
    keys = tuple(own.get("keys", base.keys))
    row = replace(base, **{**own, "socket": socket, "keys": keys, "models": models})
    if not row.transport or not row.url and not row.socket:
        raise SettingError(f"read {path}", f"{where} needs a transport and a url")
    return row


def _check(table: Any, fields: Mapping[str, str], path: Path, where: str) -> None:
    """Raises SettingError unless `table` is one and its fields hold what they may."""
    if not isinstance(table, dict):
        raise SettingError(f"read {path}", f"{where} is no table")
    for key, value in table.items():
        if key not in fields or not re.fullmatch(fields[key], json.dumps(value, default=str)):
            why = "does not fit" if key in fields else "is not known"
            raise SettingError(f"read {path}", f"{where}.{key} {why}", HINT)
