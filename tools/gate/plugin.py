"""The gate in a running exod: a plugin that takes the slot `gate`. Owns the way from a verdict to what a
hook may say; judges nothing itself.

Invariant: every call gets its verdict or is blocked: what goes wrong here goes up to the guard."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.plugins import Decision, PluginContext, approve, block

if TYPE_CHECKING:
    from exo.tools.gate.gate import Gate


def register(ctx: PluginContext) -> None:
    """Take the slot `gate` of the home that is served."""
    if ctx.home is None:
        raise ValueError("the gate needs a home, for its policies")
    home = ctx.home
    ctx.register_gate(Guard(lambda: open_gate(home)).check)


def open_gate(root: Path) -> Gate:
    """The gate of a home; imported here, as an exod that runs no tool does without it."""
    from exo.core.base.clock import SystemClock
    from exo.core.base.home import Home
    from exo.tools.gate.gate import Gate

    home = Home(root)
    return Gate(home.store / "policies", home, SystemClock())


class Guard:
    """Asks the gate that `opens` makes at the first call. Calls come from several threads."""

    def __init__(self, opens: Callable[[], Gate]) -> None:
        self._opens = opens
        self._gate: Gate | None = None
        self._lock = threading.Lock()
        self._told = ""

    def check(
        self, tool_name: str, args: dict[str, Any], cwd: str, risk: str, needs: str
    ) -> Decision | None:
        """None for allow and log: the action is in the record anyway. A question names the rule that an
        allow_always would write; without one every such call asks again."""
        with self._lock:
            if self._gate is None:
                self._gate = self._opens()
            verdict = self._gate.check(tool_name, args, cwd, risk, needs)
            self._tell(self._gate.fault)
        if verdict.outcome in ("allow", "log"):
            return None
        if verdict.outcome == "ask":
            return approve(verdict.summary, verdict.grant)
        return block(f"the person's policies deny it ({verdict.rule}): {verdict.summary}")

    def _tell(self, fault: str) -> None:
        if fault and fault != self._told:
            print(f"gate: {fault}; the policies before stay in force", file=sys.stderr)
        self._told = fault
