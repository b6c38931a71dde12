"""What plugins register, and the object by which they do it. Owns the tables of tools, hooks, commands,
channels, skills and the slots.

Invariant: a plugin's registrations come in all together or not at all: the context only collects, and
`Registry.admit` checks every name before it takes the first."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.base.settings import Settings
from exo.core.plugins.hooks import Hook, Hooks, check_name
from exo.core.protocol.schema import ToolResult
from exo.core.toolbox.registry import Context, Handler, Toolbox, ToolSpec

if TYPE_CHECKING:
    from exo.core.engine.reader import Past
    from exo.core.retrieve.provider import Provider
    from exo.core.substrate.secrets import Secrets

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what model providers accept
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_JSON_TYPES |= {dict: "object", list: "array"}


@dataclass(frozen=True)
class Command:
    """Run by `command.run`: `handler(args, session)` returns a text or a dict."""

    name: str
    description: str
    handler: Callable[..., Any]


@dataclass(frozen=True)
class Skill:
    """A text that a model may be given; `path` is where it lies."""

    name: str
    description: str
    path: Path


class PluginContext:
    """Handed to a plugin's register(ctx). `folder` is the plugin's own, `home` Exo's (None: built in)."""

    def __init__(
        self, name: str, folder: Path | None, home: Path | None = None, core: Core | None = None
    ) -> None:
        self.name, self.folder, self.home, self.core = name, folder, home, core
        self.items: list[tuple[str, str, Any]] = []  # (table, name, what)

    def register_tool(self, spec: ToolSpec) -> None:
        """Offer a tool. Raises ValueError for a name that models cannot say, and for no JSON Schema."""
        if not _TOOL_NAME.fullmatch(spec.name):
            raise ValueError(f"register tool {spec.name!r}: use letters, digits, _ and -")
        try:  # one that cannot be sent would cost every request
            json.dumps(spec.openai(), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise ValueError(f"register tool {spec.name}: no JSON Schema: {error}") from error
        self._add("tool", spec.name, spec)

    def register_action(self, function: Callable[..., Any], name: str = "", **more: Any) -> None:
        """Offer a plain function as a tool: its signature gives the arguments, the first lines of its
        docstring the description. `more` are fields of ToolSpec; `needs` is what the person is asked
        about, and makes the risk medium where none is given."""
        more = {"toolset": self.name, "risk": "medium" if more.get("needs") else "low"} | more
        self.register_tool(spec_of(function, name, **more))

    def register_hook(self, name: str, function: Handler) -> None:
        """Hang `function` at a hook. Raises ValueError for a name that is no hook."""
        check_name(name)
        self.items.append(("hook", name, Hook(name, self.name, function)))

    def register_command(self, name: str, handler: Handler, description: str = "") -> None:
        """Offer a command for `command.run`."""
        self._add("command", name, Command(name, description, handler))

    def register_memory_provider(self, provider: Any) -> None:
        """Take the slot `memory` (see MemoryProvider)."""
        self._add("slot", "memory", provider)
        for spec in provider.tools() if hasattr(provider, "tools") else []:
            self.register_tool(spec)

    def register_reader(self, reader: Any) -> None:
        """Take the slot `reader` (see Reader in core/engine/reader.py)."""
        self._add("slot", "reader", reader)

    def register_context_engine(self, engine: Any) -> None:
        """Take the slot `context` (see ContextEngine)."""
        self._add("slot", "context", engine)

    def register_judge(self, judge: Any) -> None:
        """Take the slot `judge`: what is known of tools and programs (core/gate/axes.py, Judge)."""
        self._add("slot", "judge", judge)

    def register_schedule(self, schedule: Any) -> None:
        """Take the slot `schedule` (see Schedule)."""
        self._add("slot", "schedule", schedule)

    def register_channel(self, name: str, send: Callable[..., Any]) -> None:
        """Offer a way to send messages: `send(to, text)`."""
        self._add("channel", name, send)

    def register_life(self, start: Callable[..., Any], stop: Callable[..., Any]) -> None:
        """Have `start` called once all plugins are loaded, and `stop` when exod ends; both may be async."""
        self.items.append(("life", self.name, (start, stop)))

    def register_skill(self, name: str, path: Path | str, description: str = "") -> None:
        """Offer a skill, a text file below the plugin's folder. Raises ValueError."""
        full = (self.folder or Path()) / path
        if not full.is_file():
            raise ValueError(f"register skill {name}: there is no file {full}")
        self._add("skill", name, Skill(name, description, full))

    def _add(self, table: str, name: str, item: Any) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"register {table} {name!r}: that is no usable name")
        self.items.append((table, name, item))


@dataclass
class Channels:
    """Ways to send a message, by name."""

    table: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def pick(self, name: str) -> tuple[str, Callable[..., Any]]:
        """The channel of that name; "" is the only one. Raises ExoError no_channel."""
        names = ", ".join(self.table)
        name = name or names  # the only one, or none that can be
        if name not in self.table:
            do = f"name one of: {names}" if names else "a plugin may bring one"
            raise ExoError("send a message", "there is no such channel", do, code="no_channel")
        return name, self.table[name]


@dataclass(frozen=True)
class Core:
    """What a plugin may use of the exod that it runs in: settings, clock, who holds which slot, the folder of notes, channels; the
    toolbox, for tools that come and go while it runs; `act(session, call, by=, code=)`, a call through gate and approvals, made by that code;
    `before(session, replied=)`, the turn before the present one or the last that was answered, and `undo` of the former; `panel(session, action, data)`, a command to
    the device; `as_of(session)`, the time (ms UTC) that a fork looks back to, else 0; `new_session(title)` and
    `deliver(session, text, key, ask, bell)` of Engine; `known(session)`, which raises unknown_session; the record (None where none is kept) and the secrets of the home."""

    settings: Settings
    clock: Clock
    slots: dict[str, Any]
    notes: Path
    channels: Channels
    tools: Toolbox
    act: Callable[..., Awaitable[ToolResult]]
    before: Callable[..., Past | None]
    undo: Callable[[str], Past | None]
    panel: Callable[[str, str, dict[str, Any]], None]
    as_of: Callable[[str], int]
    new_session: Callable[[str], str]
    deliver: Callable[[str, str, str, bool, str], Awaitable[bool]]
    known: Callable[[str], object]
    memory: Provider | None = None
    secrets: Secrets | None = None


@dataclass
class Registry:
    """Where what was registered ends up."""

    tools: Toolbox
    hooks: Hooks
    channels: Channels = field(default_factory=Channels)
    commands: dict[str, Command] = field(default_factory=dict)
    skills: dict[str, Skill] = field(default_factory=dict)
    slots: dict[str, Any] = field(default_factory=dict)
    lives: list[tuple[Callable[..., Any], Callable[..., Any]]] = field(default_factory=list)
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    def holder(self, table: str, name: str) -> str:
        """The plugin that has this name, "" when nobody has."""
        return self.owners.get((table, name), "")

    def admit(self, ctx: PluginContext) -> list[str]:
        """Take all that a plugin registered; returns it as text. Raises ValueError, and takes nothing,
        when one of its names is taken."""
        owners = dict(self.owners)
        for table, name, _ in ctx.items:
            if table not in ("hook", "life") and (table, name) in owners:
                raise ValueError(f"register {table} {name}: it is taken by {owners[table, name]}")
            owners[table, name] = ctx.name
        take: dict[str, Callable[[str, Any], None]] = {
            "tool": lambda name, item: self.tools.register(item),
            "hook": lambda name, item: self.hooks.add(item),
            "life": lambda name, item: self.lives.append(item),
            "command": self.commands.__setitem__,
            "skill": self.skills.__setitem__,
            "slot": self.slots.__setitem__,
            "channel": self.channels.table.__setitem__,
        }
        for table, name, item in ctx.items:
            take[table](name, item)
        self.owners = owners
        return [f"{table} {name}" for table, name, _ in ctx.items]


def spec_of(function: Callable[..., Any], name: str = "", **more: Any) -> ToolSpec:
    """A ToolSpec from a function's signature and docstring. A first parameter `context` gets the
    call's Context; Literal types become enums, Annotated[type, {...}] adds to the JSON Schema. Raises
    ValueError for a parameter without a type that JSON has."""
    name = name or function.__name__
    hints = typing.get_type_hints(function, include_extras=True)
    rows = inspect.signature(function).parameters
    properties, required = {}, []
    for row in rows.values():
        if row.name == "context":
            continue
        rule = _rule(hints.get(row.name, str))
        if rule is None or row.kind in (row.VAR_POSITIONAL, row.VAR_KEYWORD):
            raise ValueError(f"register tool {name}: give {row.name} a type such as str or float")
        properties[row.name] = rule
        if row.default is row.empty:
            required.append(row.name)
    parameters = {"type": "object", "properties": properties, "required": required}

    def bare(context: Context, **args: Any) -> Any:
        return function(**args)

    text = (inspect.getdoc(function) or name.replace("_", " ")).split("\n\n")[0].replace("\n", " ")
    handler = function if "context" in rows else bare
    return ToolSpec(name, text, parameters | {"additionalProperties": False}, handler, **more)


def _rule(hint: Any) -> dict[str, Any] | None:
    """The JSON Schema of a type, None when it has none."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        rule = _rule(args[0])
        return None if rule is None else rule | args[1]
    if origin is typing.Literal:
        return {"type": "string", "enum": list(args)}
    if type(None) in args:
        return _rule(args[0])
    if origin is dict and args == (str, str):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    kind = _JSON_TYPES.get(origin or hint)
    return None if kind is None else {"type": kind}
