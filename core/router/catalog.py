"""Which providers and models there are, as data: catalog.toml, and over it the person's own
state/providers.toml. Owns reading and checking both; opens no connection and reads no key.

Invariant: what comes out is whole and typed; what does not fit is named with its place, never its value,
because a key may have been written where its variable's name belongs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from exo.core.base.errors import SettingError, storage_error

CHAIN = {"main": ("main",), "aux": ("aux", "main"), "decision": ("decision", "aux", "main")}
FILE = "providers.toml"  # in state/

_Kinds = Mapping[str, type | tuple[type, ...]]
_NUMBER = (int, float)
_PROVIDER: _Kinds = {
    **dict.fromkeys(("transport", "url", "socket", "limit"), str),
    **dict.fromkeys(("keyless", "prefix_cache"), bool),
    **{"keys": list, "silence": _NUMBER, "models": dict},
}
_MODEL: _Kinds = {
    **dict.fromkeys(("input", "output", "cache_read", "cache_write"), _NUMBER),
    **dict.fromkeys(("window", "thinking"), int),
}


@dataclass(frozen=True)
class Price:
    """USD per million tokens; what is not listed for the cache costs as input does."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, prompt: int, completion: int, cached: int, written: int) -> float:
        """USD of a call; `cached` and `written` are parts of `prompt`."""
        fresh = max(0, prompt - cached - written)
        total = fresh * self.input + completion * self.output
        return (total + cached * self.cache_read + written * self.cache_write) / 1e6


@dataclass(frozen=True)
class ModelRow:
    """What is known of a model; `window` 0 means unknown."""

    price: Price | None = None
    window: int = 0
    thinking: int = 0


@dataclass(frozen=True)
class Provider:
    """One row; the comment at the top of catalog.toml explains the fields."""

    name: str
    transport: str
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
        return self.url.rstrip("/") if self.url else "http://models/v1"

    def model(self, name: str) -> ModelRow:
        """The row of a model, also when its name carries a date (gpt-4.1-2025-04-14)."""
        short = re.sub(r"-(latest|\d{4}-?\d{2}-?\d{2})$", "", name)
        return self.models.get(name) or self.models.get(short) or ModelRow()


@dataclass(frozen=True)
class Catalog:
    providers: dict[str, Provider]
    roles: dict[str, list[str]]


def load(state: Path | None) -> Catalog:
    """The catalog, under the person's file in `state` if there is one. Raises SettingError, StorageError."""
    data = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text())
    path = (state or Path()) / FILE
    own = read_toml(path) if state is not None else {}
    _known(own, {"providers": dict, "roles": dict}, path, "the file")
    rows, owned = data["providers"], own.get("providers", {})
    providers = {
        name: _merge(rows.get(name, {}), owned.get(name, {}), path, name) for name in rows | owned
    }
    roles = data["roles"] | own.get("roles", {})
    known = {name: _provider(name, row, path) for name, row in providers.items()}
    checked = {role: check_routes(known, role, routes, str(path)) for role, routes in roles.items()}
    return Catalog(known, checked)


def read_toml(path: Path) -> dict[str, Any]:
    """The file's values, {} when it is absent. Raises SettingError, StorageError."""
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise storage_error(f"read {path}", error) from error
    except ValueError as error:  # no TOML, or no UTF-8
        raise SettingError(f"read {path}", str(error), "mend or remove the file") from error


def check_routes(
    providers: Mapping[str, Provider], role: str, routes: object, source: str
) -> list[str]:
    """Return `routes` if they can be a role's. Raises SettingError with code bad_role or bad_route."""
    what = f"set the routes of {role} ({source})"
    if role not in CHAIN:
        raise SettingError(what, f"the roles are {', '.join(CHAIN)}", code="bad_role")
    shape = 'write a list of "provider:model"'
    if not isinstance(routes, list) or not all(isinstance(route, str) for route in routes):
        raise SettingError(what, "that is no list of routes", shape, code="bad_route")
    if role == "main" and not routes:
        raise SettingError(what, "main needs one route at least", shape, code="bad_route")
    for route in routes:
        provider, _, model = route.partition(":")
        if not model or not route.isprintable():
            raise SettingError(what, f"{route!r} is no route", shape, code="bad_route")
        if provider not in providers:
            known = f"known are {', '.join(providers)}; add it to state/{FILE}"
            raise SettingError(what, f"no provider {provider!r}", known, code="bad_route")
    return list(dict.fromkeys(routes))


def _merge(base: dict[str, Any], own: dict[str, Any], path: Path, name: str) -> dict[str, Any]:
    _known(own, _PROVIDER, path, f"providers.{name}")
    other = {"url": "socket", "socket": "url"}
    gone = {other[key] for key in other if key in own} - set(own)
    merged = {key: value for key, value in (base | own).items() if key not in gone}
    return merged | {"models": base.get("models", {}) | own.get("models", {})}


def _provider(name: str, row: dict[str, Any], path: Path) -> Provider:
    where = f"providers.{name}"
    variables = [str(variable) for variable in row.get("keys", [])]
    why = ""
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        why = "the name may hold letters, digits, dot, dash and underscore"
    elif row.get("transport") not in ("openai", "anthropic"):
        why = 'transport must be "openai" or "anthropic"'
    elif bool(row.get("url")) == bool(row.get("socket")):
        why = "either url or socket is wanted"
    elif not all(re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable) for variable in variables):
        why = "keys holds names of environment variables (capitals), never a key itself"
    elif row.get("silence", 1) <= 0:
        why = "silence is more than 0 seconds"
    elif row.get("url"):
        why = _fault_of(row["url"])
    if why:
        raise SettingError(f"read {path}", f"{where}: {why}")
    models = {
        model: _model(values, path, f"{where}.models.{model}")
        for model, values in row["models"].items()
    }
    return Provider(name, **{**row, "keys": tuple(variables), "models": models})


def _fault_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not re.fullmatch("[!-~]+", url):
        return "url is no http or https address"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "url carries a name, a password or a query; a key belongs in the environment"
    return ""


def _model(values: dict[str, Any], path: Path, where: str) -> ModelRow:
    _known(values, _MODEL, path, where)
    if any(value < 0 for value in values.values()):
        raise SettingError(f"read {path}", f"{where}: no number may be below 0")
    price = None
    if "input" in values and "output" in values:
        rates = {"cache_read": values["input"], "cache_write": values["input"]} | values
        price = Price(*(float(rates[each.name]) for each in fields(Price)))
    return ModelRow(price, values.get("window", 0), values.get("thinking", 0))


def _known(row: object, allowed: _Kinds, path: Path, where: str) -> None:
    """Raises SettingError unless `row` is a table that holds what is allowed."""
    if not isinstance(row, dict):
        raise SettingError(f"read {path}", f"{where} is no table")
    for key, value in row.items():
        if key not in allowed:
            known = f"known are {', '.join(allowed)}"
            if re.search(r"key|token|secret", key, re.I):
                known = 'a key is never written here: keys = ["NAME_OF_ENVIRONMENT_VARIABLE"]'
            raise SettingError(f"read {path}", f"{where} has an unknown field {key!r}", known)
        wanted = allowed[key]
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            name = wanted.__name__ if isinstance(wanted, type) else "a number"
            raise SettingError(f"read {path}", f"{where}.{key} must be {name}")
