"""Seats that one plugin each can hold, and how the loop talks to whoever sits there. Invariant: a
provider that fails, hangs or answers nonsense is ignored for that call; a turn never suffers from it."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from exo.core.plugins.registry import Registry
from exo.core.protocol.schema import Usage
from exo.core.toolbox.registry import ToolSpec
from exo.core.toolbox.workers import call, within

if TYPE_CHECKING:
    from exo.core.retrieve.forget import Needles


@dataclass(frozen=True)
class Remembered:
    """What is remembered to a message: lines for the model, the ids they come from, and, where what is
    known answers by itself, the answer; or the words that say that nothing is known, and what is `near`;
    `ours`: it asks about the person."""

    text: str = ""
    ids: tuple[str, ...] = ()
    answer: str = ""
    nothing: str = ""
    ours: bool = False
    near: bool = False


class MemoryProvider(Protocol):
    """The slot `memory`. Every method may be async, and each may be left out."""

    def pack(self, session: str) -> str:
        """What stands in every request behind the base prompt; "" for nothing."""

    def artifacts(self, session: str, at: int) -> dict[str, str]:
        """Versioned texts that hold now (0), or held at `at` (ms UTC): prompt/system, text/TOOL."""

    def recall(self, session: str, text: str) -> str | Remembered:
        """What is remembered to this message of the person; stands right before it, once."""

    def heard(self, session: str, said: str, replied: str) -> None:
        """Told of each exchange once its turn has ended."""

    def tools(self) -> list[ToolSpec]:
        """Its own tools; asked once, when it takes the slot. Not async."""


class ContextEngine(Protocol):
    """The slot `context`. Every method may be async, and each may be left out."""

    def reshape(self, session: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        """The messages (OpenAI chat shape) of a request as they are to be sent; None: as they are."""

    def used(self, session: str, usage: Usage) -> None:
        """Told after each turn what it cost."""


class Schedule:
    """The slot `schedule`: what comes at its time. This one, which sits there without a plugin, keeps nothing."""

    busy = False  # whether anything is to come, a reason for exod to stay

    def rows(self) -> list[dict[str, Any]]:
        """For tasks.list: {id, kind, due (ms UTC, None when it is over), label, repeat, session, ...}."""
        return []

    def erase(self, needles: Needles) -> None:
        """Take out whatever says what is to be forgotten. Raises StorageError."""


class Slots:
    """Fail-soft calls to the holders of the slots."""

    def __init__(self, registry: Registry, timeout: float) -> None:
        self._registry, self._timeout = registry, timeout
        self.held: dict[str, dict[str, str]] = {}  # session ("": a new one) -> its artifacts

    async def pack(self, session: str) -> str:
        value = await self._call("memory", "pack", session)
        return value if isinstance(value, str) else ""

    async def artifacts(self, session: str, at: int) -> None:
        """Take in, when a turn begins, the artifacts that hold for its session (0), or held at `at`, by name."""
        value = await self._call("memory", "artifacts", session, at)
        self.held[session] = value if isinstance(value, dict) else {}

    async def recall(self, session: str, text: str, deep: bool = False) -> Remembered:
        """`deep` where much that is known bears on it: a provider without that method does as always."""
        deep = deep and hasattr(self._registry.slots.get("memory"), "recall_deep")
        value = await self._call("memory", "recall_deep" if deep else "recall", session, text)
        if isinstance(value, str):
            return Remembered(value)
        return value if isinstance(value, Remembered) else Remembered()

    async def heard(self, session: str, said: str, replied: str) -> None:
        await self._call("memory", "heard", session, said, replied)

    async def used(self, session: str, usage: Usage) -> None:
        await self._call("context", "used", session, usage)

    async def reshape(self, session: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`messages`, or what the context engine made of them when that is a list of messages."""
        value = await self._call("context", "reshape", session, [dict(each) for each in messages])
        whole = isinstance(value, list) and all(
            isinstance(each, dict) and isinstance(each.get("role"), str) for each in value
        )
        return list(value) if whole and value else messages

    async def _call(self, slot: str, method: str, *args: Any) -> Any:
        function = getattr(self._registry.slots.get(slot), method, None)
        if function is None:
            return None
        owner = self._registry.holder("slot", slot)
        try:
            return await within(self._timeout, call(function, *args))
        except TimeoutError:
            print(f"plugin {owner}, {method}: longer than {self._timeout:g} s", file=sys.stderr)
        except Exception:  # noqa: BLE001 - ignored for this call
            print(f"plugin {owner}, {method} failed:", file=sys.stderr)
            traceback.print_exc(file=sys.stderr)
        return None
