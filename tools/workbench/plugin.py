"""The workbench in a running exod: a plugin that offers the tools on the machine: files, a shell, the web.
Owns their names, risks and limits.

Invariant: `plugins.off = workbench` leaves a companion that can touch nothing but its own record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Annotated, Any

from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.plugins import Context, Output, PluginContext
from exo.tools.workbench import files, shell, web

Timeout = Annotated[float, {"minimum": 0.1, "maximum": 3600}]


def register(ctx: PluginContext) -> None:
    """Offer the tools; end what commands of this home still run, whose exod was killed."""
    if ctx.core is None:
        raise ValueError("the workbench works in a running exod")
    settings, secrets = ctx.core.settings, ctx.core.secrets
    if ctx.home is not None:
        shell.sweep(Home(ctx.home).state / "results")

    def keeps_secrets() -> bool:
        with contextlib.suppress(ExoError, OSError):
            return secrets is not None and bool(secrets.names())
        return True  # they cannot be read now; they may have been

    async def bash(context: Context, command: str, timeout: Timeout = 0.0) -> Output:
        """Run a shell command in the working folder; it cannot ask for input."""
        limit = timeout or settings.number("tool.timeout")
        join = settings.count("deltas.join_ms") / 1000
        return await shell.bash(context, command, limit, join, lines=keeps_secrets())

    async def http_request(
        context: Context, method: web.Method, url: str, headers: web.Headers = None, body: str = ""
    ) -> str:
        """Send an HTTP request and read status, type and text of the answer."""
        return await web.http_request(context, method, url, headers, body, secrets)

    def web_off() -> str:
        on = settings.origin("tools.http")[0]
        return "" if on else "requests to the network are off; a person can set tools.http to true"

    def offer(toolset: str, *functions: Callable[..., Any], **more: Any) -> None:
        for function in functions:
            ctx.register_action(function, toolset=toolset, **more)

    offer("files", files.read_file, files.list_dir)
    offer("files", files.search_files, timeout=0)
    offer("files", files.write_file, files.edit_file, files.apply_patch, risk="medium")
    offer("shell", bash, risk="high", timeout=0)
    offer("web", http_request, risk=web.risk, available=web_off)
