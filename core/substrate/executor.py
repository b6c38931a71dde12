"""What artifacts make of a session: its texts, and the settings that `settings/context` (TOML) and `threshold/MECHANISM`
(a number) change. Owns which settings an artifact may change, and what is known of each session.

Invariant: what does not fit is refused before it is kept; what was kept elsewhere and does not fit is read as if it
were not there. No setting beside `context.*` and `threshold.*` follows an artifact."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from exo.core.base.errors import SettingError
from exo.core.base.settings import Made, Settings, flat, parse


class Executor:
    """One for an exod. `fetch(session)` gets the artifacts that a session sees, by name; "" is a new one."""

    def __init__(
        self, settings: Settings, fetch: Callable[[str], Awaitable[dict[str, str]]]
    ) -> None:
        self._settings, self._fetch = settings, fetch
        self._held: dict[str, dict[str, str]] = {}

    async def learn(self, session: str) -> None:
        """Take in what holds for it: when its turn begins."""
        self._held[session] = await self._fetch(session)

    def texts(self, session: str) -> dict[str, str]:
        """What was taken in."""
        return self._held.get(session, {})

    def settings(self, session: str) -> Settings:
        """The settings, with what that makes of them."""
        made: Made = {}
        for name, text in self.texts(session).items():
            with suppress(SettingError):
                made |= changes(name, text)
        return replace(self._settings, made=made)


@functools.lru_cache(64)
def changes(name: str, text: str) -> Made:
    """What an artifact makes of the settings; nothing where it is but a text. Raises SettingError for what does
    not fit."""
    kind, _, area = name.partition("/")
    if kind not in ("settings", "threshold"):
        return {}
    area = "context." if name == "settings/context" else f"threshold.{area}"
    rows: dict[str, object] = {area: text.strip()}
    try:
        if kind == "settings":
            rows = dict(flat(tomllib.loads(text)))
    except (ValueError, RecursionError) as error:
        raise SettingError(f"read {name}", str(error), "give TOML: context.tail = 8") from error
    for key in rows:
        if not key.startswith(area):
            why = f"{name} does not change it"
            raise SettingError(f"setting {key[:80]}", why, "settings/context changes context.NAME")
    return {key: (parse(key, value, name), f"artifact {name}") for key, value in rows.items()}
