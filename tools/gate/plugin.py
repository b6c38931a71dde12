"""What is known of tools and programs, in a running exod: a plugin that takes the seat `judge`. Owns that the
table is read at the first call, not when exod starts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from exo.core.plugins import PluginContext

if TYPE_CHECKING:
    from exo.core.gate.axes import Act, Judge, Judgement


def register(ctx: PluginContext) -> None:
    """Take the seat `judge` of the home that is served."""
    if ctx.home is None:
        raise ValueError("the judge needs a home: what lies there is not everybody's")
    ctx.register_judge(Late(ctx.home))


class Late:
    """The judge of a home, made when it is first asked. Calls come from several threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._made: Judge | None = None
        self._lock = threading.Lock()

    def read(self, policies: Path) -> None:
        self._judge().read(policies)

    def judge(self, act: Act, inside: tuple[str, ...]) -> Judgement:
        return self._judge().judge(act, inside)

    def _judge(self) -> Judge:
        with self._lock:
            if self._made is None:
                from exo.tools.gate.judge import Consequences

                self._made = Consequences(self._home)
            return self._made
