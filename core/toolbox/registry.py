"""The tools there are: what each is called, takes and may do. Knows no model, no event, no person.

Invariant: `run` never raises for a tool's failure; the model sees an error result and goes on."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from exo.core.base.errors import ExoError
from exo.core.protocol.schema import Call, ToolResult
from exo.core.substrate.secrets import Secrets
from exo.core.toolbox import results
from exo.core.toolbox.workers import call as call_handler
from exo.core.toolbox.workers import within

Risk = Literal["low", "medium", "high"]
HIDDEN = "commands"  # the toolset that rules call and no model sees
Handler = Callable[..., Any]  # (context, **args) -> str or Output, or a coroutine of it
Rewrite = Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class Context:
    """What a tool may know of the call: its session and turn, its working folder, a way to show progress, the
    folder of long results, folders that are closed to it, the language of the answer, and `stop`, set once nobody waits."""

    session: str
    cwd: Path
    emit: Callable[[str], None] = lambda text: None
    results: Path | None = None
    closed: tuple[Path, ...] = ()
    toolsets: frozenset[str] | None = None
    language: str = "en"  # of the answer
    turn: str = ""
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Output:
    """A handler's answer where a plain text is not enough: `end` is never cut off."""

    text: str
    ok: bool = True
    end: str = ""


@dataclass(frozen=True)
class ToolSpec:
    """`parameters` is a JSON Schema object; `risk` is a hint for people, not a decision, and may be
    computed from the arguments; `available` returns why the tool cannot be used now, "" when it can;
    `timeout` 0 means that the handler bounds itself, None the toolbox's; `needs` says what a person is
    asked about; `code` is the hash of code that may change while exod runs."""

    name: str
    description: str
    parameters: dict[str, Any]
    handler: Handler
    risk: Risk | Callable[[dict[str, Any]], Risk] = "low"
    toolset: str = "plugins"
    available: Callable[[], str] = lambda: ""
    timeout: float | None = None
    needs: str = ""
    code: str = ""

    def openai(self, text: str = "") -> dict[str, Any]:
        """How a model is told of it; `text` in the place of its description."""
        function = {"name": self.name, "description": text or self.description}
        return {"type": "function", "function": function | {"parameters": self.parameters}}

    def row(self) -> dict[str, Any]:
        """How `tools.list` shows it."""
        risk = self.risk if isinstance(self.risk, str) else "high"
        return {**self.openai()["function"], "toolset": self.toolset, "risk": risk}


class Toolbox:
    """A registry of tools by name. Whatever one shows or gives has no value of `secrets` in it."""

    def __init__(self, timeout: float = 60.0, secrets: Secrets | None = None) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._timeout, self._secrets = timeout, secrets

    def register(self, spec: ToolSpec) -> None:
        """Raises ValueError for a name that is taken."""
        if spec.name in self._tools:
            raise ValueError(f"register tool {spec.name}: the name is taken")
        self._tools[spec.name] = spec

    def get(self, name: str) -> ToolSpec | None:
        """The tool of that name, whether it can be used or not."""
        return self._tools.get(name)

    def withdraw(self, name: str) -> None:
        """Let a tool go; a call of it that runs ends by itself."""
        self._tools.pop(name, None)

    def specs(self, toolsets: Collection[str] | None = None) -> list[ToolSpec]:
        """The tools that a model can use now, of these toolsets (None: of all)."""
        return [
            spec
            for spec in self._tools.values()
            if (toolsets is None or spec.toolset in toolsets)
            and spec.toolset != HIDDEN
            and not _missing(spec)
        ]

    def risk(self, call: Call) -> Risk:
        """An unknown tool, and one whose own estimate fails, counts as high."""
        try:
            risk = self._tools[call.tool].risk
            return risk if isinstance(risk, str) else risk(copy.deepcopy(call.args))
        except Exception:  # noqa: BLE001 - arguments that are not yet checked
            return "high"

    def fault(self, call: Call, context: Context) -> str:
        """Why this call cannot be made, "" when it can."""
        spec, name = self._tools.get(call.tool), call.tool
        if spec is None or context.toolsets is not None and spec.toolset not in context.toolsets:
            known = ", ".join(spec.name for spec in self.specs(context.toolsets))
            return f"there is no tool {name!r}; there are: {known}"
        why = _missing(spec, call.args)
        return why and f"{name}: {why}"

    async def run(self, call: Call, context: Context, rewrite: Rewrite | None = None) -> ToolResult:
        """Run a tool within its time-out; blocking handlers run in a worker thread. `rewrite` sees the
        whole text before it is cut, so that what it takes out is not in the kept file either."""
        if fault := self.fault(call, context):
            return ToolResult(call.id, False, fault)
        secrets, show = self._secrets, context.emit
        if secrets is not None:
            context = replace(context, emit=lambda piece: show(secrets.hide(piece)))
        output = await self._invoke(self._tools[call.tool], call.args, context)
        text = await rewrite(output.text) if rewrite else output.text
        text = await secrets.shown(text) if secrets else text
        text = results.cut(text, context.results, call.id)
        end = f"\n{output.end}" if output.end and text[-1:] not in ("", "\n") else output.end
        return ToolResult(call.id, output.ok, text + end)

    async def _invoke(self, spec: ToolSpec, args: dict[str, Any], context: Context) -> Output:
        seconds = self._timeout if spec.timeout is None else spec.timeout or None
        try:
            made = await within(seconds, call_handler(spec.handler, context, **args))
            return made if isinstance(made, Output) else Output("" if made is None else str(made))
        except TimeoutError:
            return Output(f"{spec.name}: stopped after {seconds or 0:g} s", False)
        except ExoError as error:
            mark = "" if error.code == "internal" else f"[{error.code}] "
            return Output(mark + str(error), False)
        except Exception as error:  # noqa: BLE001 - a tool's bug is an error result
            return Output(f"{spec.name}: {type(error).__name__}: {error}", False)
        finally:
            context.stop.set()


def _missing(spec: ToolSpec, args: dict[str, Any] | None = None) -> str:
    """Why the tool cannot be used now, or not with `args`; a check that fails is a reason too."""
    try:
        return spec.available() or ("" if args is None else check_args(spec.parameters, args))
    except Exception as error:  # noqa: BLE001 - a plugin's check must not cost a turn
        return f"its check failed: {error}"


_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


def check_args(schema: dict[str, Any], args: dict[str, Any]) -> str:
    """Say what is wrong with `args` for a flat object schema; "" when nothing is."""
    properties = schema.get("properties", {})
    if missing := [name for name in schema.get("required", []) if name not in args]:
        return f"the argument {missing[0]!r} is missing"
    for name, value in args.items():
        if name not in properties:
            return f"there is no argument {name!r}; there are: {', '.join(properties)}"
        if fault := _check_value(properties[name], value):
            return f"the argument {name!r} is to be {fault}"
    return ""


def _check_value(rule: dict[str, Any], value: Any) -> str:
    names = rule.get("type", list(_TYPES))
    names = [names] if isinstance(names, str) else names
    known = ["boolean"] if isinstance(value, bool) else _TYPES  # to Python, a bool is an int too
    if not any(name in known and isinstance(value, _TYPES[name]) for name in names):
        return f"a {' or '.join(names)}"
    if "enum" in rule and value not in rule["enum"]:
        return f"one of {', '.join(map(str, rule['enum']))}"
    low, high = rule.get("minimum", -math.inf), rule.get("maximum", math.inf)
    if isinstance(value, int | float) and not low <= value <= high:
        return f"{low} to {high}"
    texts = rule.get("additionalProperties") == {"type": "string"}
    if texts and not all(isinstance(item, str) for item in value.values()):
        return "an object of strings"
    return ""
