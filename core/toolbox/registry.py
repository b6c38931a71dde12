"""The tools of a session: what each is called, takes and may do. Knows no model and no event.

Invariant: `run` never raises for a tool's failure; the model sees an error result and goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from exo.core.base.errors import ExoError
from exo.core.protocol.schema import ToolResult

RESULT_LIMIT = 100_000  # characters


@dataclass(frozen=True)
class Context:
    """What a tool may know of the call: its session, its working folder, a way to show progress."""

    session: str
    cwd: Path
    emit: Callable[[str], None] = lambda text: None


Handler = Callable[..., Any]  # (context, **args) -> str, or a coroutine of it


@dataclass(frozen=True)
class ToolSpec:
    """`parameters` is a JSON Schema object; `risk` is a hint for people, not a decision."""

    name: str
    description: str
    parameters: dict[str, Any]
    handler: Handler
    risk: Literal["low", "medium", "high"] = "low"

    def openai(self) -> dict[str, Any]:
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


class Toolbox:
    """A registry of tools by name."""

    def __init__(self, timeout: float = 60.0) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._timeout = timeout

    def register(self, spec: ToolSpec) -> None:
        """Raises ValueError for a name that is taken."""
        if spec.name in self._tools:
            raise ValueError(f"register tool {spec.name}: the name is taken")
        self._tools[spec.name] = spec

    def specs(self) -> list[ToolSpec]:
        return list(self._tools.values())

    def risk(self, name: str) -> Literal["low", "medium", "high"]:
        """An unknown tool counts as high."""
        return self._tools[name].risk if name in self._tools else "high"

    async def run(self, call: str, name: str, args: dict[str, Any], context: Context) -> ToolResult:
        """Run a tool within the time-out; blocking handlers run in a worker thread."""
        spec = self._tools.get(name)
        if spec is None:
            known = ", ".join(self._tools)
            return ToolResult(call, False, f"there is no tool {name!r}; there are: {known}")
        if fault := check_args(spec.parameters, args):
            return ToolResult(call, False, f"{name}: {fault}")
        try:
            async with asyncio.timeout(self._timeout) as limit:
                text = await _call(spec.handler, context, args)
        except ExoError as error:
            return ToolResult(call, False, cut(str(error)))
        except Exception as error:  # noqa: BLE001 - a tool's bug is an error result
            if limit.expired():
                return ToolResult(call, False, f"{name}: stopped after {self._timeout:g} s")
            return ToolResult(call, False, cut(f"{name}: {type(error).__name__}: {error}"))
        return ToolResult(call, True, cut(str(text)))


async def _call(handler: Handler, context: Context, args: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(handler):
        return await handler(context, **args)
    return await asyncio.to_thread(handler, context, **args)


def cut(text: str) -> str:
    if len(text) <= RESULT_LIMIT:
        return text
    return f"{text[:RESULT_LIMIT]}\n[{len(text) - RESULT_LIMIT} more characters]"


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def check_args(schema: dict[str, Any], args: dict[str, Any]) -> str:
    """Say what is wrong with `args` for a flat object schema; "" when nothing is."""
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in args:
            return f"the argument {name!r} is missing"
    for name, value in args.items():
        if name not in properties:
            return f"there is no argument {name!r}; there are: {', '.join(properties)}"
        kinds = _TYPES[properties[name]["type"]]
        if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
            return f"the argument {name!r} is to be a {properties[name]['type']}"
        low, high = properties[name].get("minimum"), properties[name].get("maximum")
        if low is not None and value < low or high is not None and value > high:
            return f"the argument {name!r} is to be {low} to {high}"
    return ""
