"""The points where plugins watch and steer, and the calling of what they hung there. Owns order,
deadlines and failures; knows no tool.

Invariant: `fire` never raises for a hook's failure and waits for none longer than its deadline; a
failing hook changes no other hook's say, and is itself as if it were not there."""

from __future__ import annotations

import copy
import inspect
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from exo.core.toolbox.workers import call, within

LIVE = (
    *("pre_tool_call", "post_approval_response", "post_tool_call", "transform_tool_result"),
    "on_turn_end",
)
RESERVED = (
    *("pre_llm_call", "post_llm_call", "on_turn_start"),
    *("on_session_start", "on_session_end", "pre_compaction", "post_compaction"),
    *("pre_command", "post_command", "on_subagent_start", "on_subagent_stop", "on_skill_loaded"),
)
ACTIONS = "register_actions"  # not fired: called once, when the plugin is loaded
SLOW = 3  # deadlines missed in a row until a hook is no longer called
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Decision:
    """What a pre_tool_call hook may return. `rule` names the kind of call for `allow_always`."""

    action: Literal["block", "approve"]
    reason: str
    rule: str = ""


def block(reason: str) -> Decision:
    """The call is not made; the model reads why."""
    return Decision("block", reason)


def approve(reason: str, rule: str = "") -> Decision:
    """The person is asked first."""
    return Decision("approve", reason, rule)


def hook(function: F) -> F:
    """Mark a function of a plugin's module as the hook of its own name. Raises ValueError for a name
    that is no hook."""
    check_name(function.__name__, ACTIONS)
    function.__exo_hook__ = True  # type: ignore[attr-defined]
    return function


def check_name(name: str, *also: str) -> None:
    """Raises ValueError for a name that is no hook; reserved ones are accepted and not yet fired."""
    names = (*also, *LIVE, *RESERVED)
    if name not in names:
        raise ValueError(f"register hook {name!r}: there are {', '.join(names)}")


@dataclass
class Hook:
    """One hung-up function; `faults` counts its failures, `missed` its deadlines missed in a row."""

    name: str
    owner: str
    function: Callable[..., Any]
    faults: int = 0
    missed: int = 0
    last: str = ""


class Hooks:
    """All hooks, called in the order in which they were registered."""

    def __init__(self, timeout: float = 5.0) -> None:
        self._timeout = timeout
        self._hooks: list[Hook] = []

    def add(self, hook: Hook) -> None:
        """Raises ValueError for a name that is no hook."""
        check_name(hook.name)
        self._hooks.append(hook)

    def of(self, owner: str) -> list[Hook]:
        return [hook for hook in self._hooks if hook.owner == owner]

    async def fire(self, name: str, **facts: Any) -> list[Any]:
        """Call every hook of this name with those of `facts` that it takes (copies: what it changes
        stays with it); return what they returned, None left out."""
        return [value async for _, value in self._each(name, facts) if value is not None]

    async def decide(self, **facts: Any) -> list[Decision]:
        """What the pre_tool_call hooks say: a block alone, else every wish to ask. A rule is its owner's
        alone."""
        wishes: list[Decision] = []
        async for hook, value in self._each("pre_tool_call", facts):
            decision = _decision(hook, value)
            if decision is not None and decision.action == "block":
                return [decision]
            if decision is not None:
                rule = decision.rule and f"{hook.owner}: {decision.rule}"
                wishes.append(approve(decision.reason, rule))
        return wishes

    async def transform(self, text: str, **facts: Any) -> str:
        """The text of a result after every transform_tool_result hook."""
        given = facts | {"result": text}
        async for hook, value in self._each("transform_tool_result", given):
            if isinstance(value, str):
                given["result"] = value
            elif value is not None:
                _failed(hook, f"it returned a {type(value).__name__}, a text is wanted")
        return str(given["result"])

    async def _each(self, name: str, facts: dict[str, Any]) -> AsyncIterator[tuple[Hook, Any]]:
        for hook in [hook for hook in self._hooks if hook.name == name]:
            if hook.missed >= SLOW:
                continue
            value = None
            try:
                value = await within(self._timeout, call(hook.function, **_taken(hook, facts)))
                hook.missed = 0
            except TimeoutError:
                hook.missed += 1
                off = "; it is no longer called" if hook.missed == SLOW else ""
                _failed(hook, f"it took longer than {self._timeout:g} s{off}")
            except Exception as error:  # noqa: BLE001 - one broken plugin never breaks a turn
                traceback.print_exc(file=sys.stderr)
                _failed(hook, f"{type(error).__name__}: {error}")
            yield hook, value


def _taken(hook: Hook, facts: dict[str, Any]) -> dict[str, Any]:
    rows = inspect.signature(hook.function).parameters
    every = any(row.kind is row.VAR_KEYWORD for row in rows.values())
    return copy.deepcopy({name: facts[name] for name in facts if every or name in rows})


def _decision(hook: Hook, value: Any) -> Decision | None:
    """A hook may also return {"action", "message"} as a dict."""
    if value is None or isinstance(value, Decision):
        return value
    action: Any = value.get("action", "allow") if isinstance(value, dict) else "none"
    if action == "allow":
        return None
    if action not in ("block", "approve"):
        _failed(hook, f"it returned {value!r:.80}, a decision is wanted")
        return None
    reason = value.get("message") or f"the plugin {hook.owner} wants it"
    return Decision(action, str(reason), str(value.get("rule", "")))


def _failed(hook: Hook, why: str) -> None:
    """Count a failure."""
    hook.faults += 1
    hook.last = why
    print(f"plugin {hook.owner}, hook {hook.name}: {why}", file=sys.stderr)
