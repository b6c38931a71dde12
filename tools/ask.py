"""`exo ask` and the simple `exo chat`: a turn, or one after the other, in a terminal."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exo.core.base.client import Client
from exo.core.base.errors import ExoError, ProtocolError
from exo.core.base.home import Home
from exo.tools.running import connect
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
        raise ExoError("ask", str(error)) from error
    if options.json:
        print(json.dumps(outcome.json(), ensure_ascii=False))
    elif outcome.reply:
        print()
    if outcome.stop_reason in ("end", "length"):
        return 0
    print(f"exo: {outcome.error or 'stopped: ' + outcome.stop_reason}", file=sys.stderr)
    return 1


def chat(options: argparse.Namespace) -> int:
    """Turns until the end of input or /quit; Ctrl-C stops the answer, at the prompt it quits."""
    client = connect(Home.find(options.home))
    session = options.session or _session(client)
    client.call("session.resume", session=session)  # refuses an unknown one before a word is typed
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - line editing and history for input()
    stop = threading.Event()
    bell = threading.Thread(target=_bell, args=(client, session, stop), daemon=True)
    bell.start()
    print("Type, Enter sends, Ctrl-C stops the answer, /quit leaves.", file=sys.stderr)
    try:
        while True:
            client.call("session.resume", session=session, prefill=True)
            try:
                text = input("> " if sys.stdin.isatty() else "")
            except (EOFError, KeyboardInterrupt):
                return 0
            if text.strip() == "/quit":
                return 0
            if text.strip():
                _say(client, session, text)
    finally:
        stop.set()


def _say(client: Client, session: str, text: str) -> None:
    try:
        outcome = run_turn(client, session, text, _show)
        print()
        if outcome.stop_reason not in ("end", "length"):
            print(f"exo: {outcome.error or outcome.stop_reason}", file=sys.stderr)
    except ProtocolError as error:
        print(f"exo: {error}", file=sys.stderr)


def _bell(client: Client, session: str, stop: threading.Event) -> None:
    """Show what happens beside the turns: timers that ring."""
    with contextlib.suppress(ExoError):
        for event in client.events(None, None, stop):
            if event["type"] == "notice" and event["body"]["level"] != "error":
                _notice(event["body"]["text"])


def _session(client: Client) -> str:
    return str(client.call("session.create", cwd=str(Path.cwd()))["session"])


def _terminal() -> Callable[[dict[str, Any]], str] | None:
    """Ask the person here, where one sits; None where none does."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def approve(asked: dict[str, Any]) -> str:
        print(f"\nexo: {asked['summary']} [risk {asked['risk']}]", file=sys.stderr)
        print("exo: allow? y = yes, a = always in this session, else no: ", end="", file=sys.stderr)
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().lower()
        return {"y": "allow", "yes": "allow", "a": "allow_always"}.get(answer, "deny")

    return approve


def _show(text: str) -> None:
    print(text, end="", flush=True)


def _quiet(text: str) -> None:
    pass


def _notice(text: str) -> None:
    print(f"exo: {text}", file=sys.stderr)
