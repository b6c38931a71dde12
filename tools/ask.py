"""`exo ask`: one turn, the reply on stdout."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from exo.core.base.client import Client
from exo.core.base.errors import ExoError, ProtocolError
from exo.core.base.home import Home
from exo.tools.running import connect, here
from exo.tools.transcript import visible
from exo.tools.turns import run_turn


def ask(options: argparse.Namespace) -> int:
    """One turn; the reply on stdout as it comes, once. Exit 1 when no answer came."""
    raw = sys.stdin.buffer.read() if options.text == "-" else os.fsencode(options.text)
    text = raw.decode("utf-8", "replace")  # a file of any bytes may be piped in
    client = connect(Home.find(options.home))
    session = options.session or _session(client)
    show = _quiet if options.json else _show
    try:
        outcome = run_turn(client, session, text, show, _notice, _terminal())
    except ProtocolError as error:
        raise ExoError("ask", error.why or str(error)) from error
    if options.json:
        print(json.dumps(outcome.json(), ensure_ascii=False))
    elif outcome.reply:
        print()
    if outcome.stop_reason in ("end", "length"):
        return 0
    _notice(outcome.error or f"stopped: {outcome.stop_reason}")
    return 1


def _session(client: Client) -> str:
    return str(client.call("session.create", cwd=str(here()))["session"])


def _terminal() -> Callable[[dict[str, Any]], str] | None:
    """Ask the person here, where one sits; None where none does."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def approve(asked: dict[str, Any]) -> str:
        print(f"\nexo: {visible(asked['summary'])} [risk {asked['risk']}]", file=sys.stderr)
        always = ", a = always in this session" if asked.get("always") else ""
        print(f"exo: allow? y = yes{always}, else no: ", end="", file=sys.stderr)
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().lower()
        return {"y": "allow", "yes": "allow", "a": "allow_always"}.get(answer, "deny")

    return approve


def _show(text: str) -> None:
    # a terminal would obey what a model says; a file or a pipe gets the reply as it is
    print(visible(text) if sys.stdout.isatty() else text, end="", flush=True)


def _quiet(text: str) -> None:
    pass


def _notice(text: str) -> None:
    print(f"exo: {visible(text)}", file=sys.stderr)
