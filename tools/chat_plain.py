"""The front end of `exo chat` for a pipe or a plain terminal: a line in, its answer out. Replies go to
stdout; tools, notices and faults to stderr."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from exo.core.base.client import Client
from exo.tools.chat import Chat
from exo.tools.transcript import visible

_CHOICES = {"y": "allow", "n": "deny", "a": "allow_always"}


class Plain:
    """Reads whole lines; what is typed while a turn runs waits in the terminal's own buffer."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open_line = False
        self._terminal = sys.stdin.isatty()

    # ---- Out -------------------------------------------------------------------------------------

    def text(self, piece: str) -> None:
        print(piece, end="", flush=True)
        self._open_line = not piece.endswith("\n")

    def line(self, text: str, kind: str) -> None:
        self.end()
        text = visible(text)
        if kind == "user":
            text = f"> {text}"
        if kind in ("notice", "error"):
            text = f"exo: {text}"
        print(text, file=sys.stdout if kind == "plain" else sys.stderr, flush=True)

    def end(self) -> None:
        if self._open_line:
            print(flush=True)
        self._open_line = False

    # ---- the loop --------------------------------------------------------------------------------

    def run(self, client: Client, session: str) -> int:
        """Returns the exit code."""
        chat = Chat(client, session, self)
        with contextlib.suppress(ImportError):
            _readline(chat)
        chat.follow(lambda event: self._take(chat, event))
        print("Type, Enter sends, Ctrl-C stops the answer, /help, /quit.", file=sys.stderr)
        try:
            while not chat.leaving and chat.fault is None:
                if self._terminal:
                    chat.prefill()
                try:
                    line = self._read()
                except (EOFError, KeyboardInterrupt):
                    break
                if line.strip() and not self._do(chat, line):
                    break
        finally:
            chat.close()
        if chat.fault is not None:
            print(f"exo: {chat.fault}", file=sys.stderr)
            return 1
        return 0

    def _read(self) -> str:
        line = input("> " if self._terminal else "")
        while line.endswith("\\"):
            line = line[:-1] + "\n" + input("… " if self._terminal else "")
        return line

    def _do(self, chat: Chat, line: str) -> bool:
        """Submit a line and wait for its end; False when the person wants to leave."""
        turns: list[str] = []
        job = threading.Thread(target=lambda: turns.append(chat.submit(line)), daemon=True)
        job.start()
        if not self._wait(chat, lambda: not job.is_alive()):
            return False
        turn = turns[0] if turns else ""
        return not turn or self._wait(chat, lambda: turn in chat.transcript.ended)

    def _wait(self, chat: Chat, done: Callable[[], bool]) -> bool:
        """Until `done`; Ctrl-C stops the turn, a second one gives up (False)."""
        stopped = False
        while chat.fault is None:
            try:
                with self._changed:
                    if done():
                        return True
                    self._changed.wait(0.05)
                if asked := chat.transcript.approval():
                    chat.answer(self._approve(asked))
            except KeyboardInterrupt:
                if stopped:
                    return False
                stopped = True
                chat.interrupt()
        return False

    def _approve(self, asked: dict[str, Any]) -> str:
        if not self._terminal:
            return "deny"  # nobody is there to be asked
        always = " [a]lways in this session" if asked.get("always") else ""
        try:
            typed = input(f"allow? [y]es [n]o (Enter){always}: ").strip().lower()[:1]
        except EOFError:
            return "deny"
        choice = _CHOICES.get(typed, "deny")
        return "allow" if choice == "allow_always" and not always else choice

    def _take(self, chat: Chat, event: dict[str, Any]) -> None:
        with self._changed:
            chat.transcript.take(event)
            self._changed.notify_all()


def _readline(chat: Chat) -> None:
    """Line editing and completion for input()."""
    import readline

    def complete(text: str, n: int) -> str | None:
        before = readline.get_line_buffer()[: readline.get_endidx()]
        count, found = chat.complete(before)
        lead = before[: len(before) - count][readline.get_begidx() :]
        return lead + found[n] if n < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
