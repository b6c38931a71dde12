"""`exo chat`: a conversation in a terminal, or line by line through a pipe.

Chat is what can be done; a front end (PromptScreen in a terminal, Plain elsewhere) reads and shows.
Everything goes through exod's protocol, so what is typed here, on the device or elsewhere is one
conversation, and a restart of exod loses nothing."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exo.core.base.client import Client
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.tools.attach import attach, paths
from exo.tools.running import connect, here
from exo.tools.transcript import Out, Transcript, first, visible

if TYPE_CHECKING:
    from exo.tools.link import Link

BACK = 2000  # events read again at the start, for turns that run and questions that are open
SHELL = 3600.0  # seconds a command of the person may take
SHOWN = 60  # lines of a shell command's output; /output has all


class Chat:
    """A conversation with exod, whatever the front end."""

    def __init__(self, client: Client | Link, session: str, out: Out) -> None:
        self.client, self.out = client, out
        self._patient = client.patient(SHELL)
        hello = client.call("hello", protocol=1, client="exo chat")
        self._since = max(int(hello["first"]) - 1, int(hello["seq"]) - BACK, 0)
        self.transcript = Transcript(out, session, int(hello["seq"]))
        self.transcript.grant = self._grant
        self.fault: ExoError | None = None
        self.leaving = False
        self._listed: list[str] = []  # session ids of the last list, for /resume N
        self._stop = threading.Event()
        self.commands: dict[str, tuple[Callable[[str], None], str]] = {
            "help": (self._help, "what can be typed"),
            "new": (self._new, "[TITLE] begin a new session"),
            "sessions": (self._sessions, "the sessions used last"),
            "resume": (self._resume, "N|ID go on with a session of the list"),
            "fork": (self._fork, "[MESSAGE] go on in a copy of this session"),
            "undo": (self._undo, "[N] take the last turns out of the conversation"),
            "search": (self._search, "WORDS in all sessions"),
            "history": (self._history, "[N] the last messages"),
            "steer": (self._steer, "TEXT slip it into the turn that runs"),
            "output": (self._output, "[N] the whole output of a tool (Ctrl-O: the last)"),
            "models": (self._models, "models that can be reached, and their roles"),
            "tools": (self._tools, "tools that the model has"),
            "quit": (self._quit, "leave; a turn that runs goes on"),
        }

    @property
    def session(self) -> str:
        return self.transcript.session

    def follow(self, deliver: Callable[[dict[str, Any]], object]) -> None:
        """Hand every event to `deliver` from a thread, until `close`; `fault` says why it ended."""

        def run() -> None:
            try:
                for event in self.client.events(self._since, None, self._stop):
                    deliver(event)
            except ExoError as error:
                self.fault = error
                deliver({"seq": 0, "session": None, "type": "", "body": {}})

        threading.Thread(target=run, name="events", daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    def submit(self, line: str) -> str:
        """Do what was typed. Returns the turn that answers it, "" when none does."""
        try:
            if line.startswith("/") and not line.startswith("//"):
                return self._command(line[1:])
            if line.startswith("!"):
                self._shell(line[1:].strip())
                return ""
            return self._say(attach(line.removeprefix("/"), here()), "queue")
        except ExoError as error:
            self.out.line(str(error), "error")
            return ""

    def interrupt(self) -> bool:
        """Stop the turn that runs; whether one did."""
        try:
            answer = self.client.call("turn.interrupt", session=self.session)
        except ExoError as error:
            self.out.line(str(error), "error")
            return False
        return bool(answer["interrupted"])

    def answer(self, choice: str) -> None:
        """Answer the oldest open approval: allow, deny or allow_always."""
        if asked := self.transcript.approval():
            self.transcript.asked.pop(asked["request"], None)
            try:
                self.client.call(
                    "approval.respond", request=asked["request"], choice=choice, via="typed"
                )
            except ExoError as error:
                self.out.line(str(error), "error")

    def prefill(self) -> None:
        """Let the model read what comes before the next message, while the person types."""
        try:
            self.client.call("session.resume", session=self.session, prefill=True)
        except ExoError:
            return  # only speed is lost

    def complete(self, before: str) -> tuple[int, list[str]]:
        """Completions of the text before the cursor: (how much of it they replace, candidates)."""
        if before.startswith("/") and " " not in before:
            return len(before), [f"/{n}" for n in self.commands if n.startswith(before[1:])]
        word = before.rpartition(" ")[2]
        if word.startswith("@"):
            return len(word) - 1, paths(word[1:], here())
        return 0, []

    # ---- what is typed ---------------------------------------------------------------------------

    def _say(self, text: str, mode: str) -> str:
        message = secrets.token_hex(8)
        self.transcript.mine.add(message)
        return self.client.send(self.session, text, mode, message)

    def _shell(self, command: str) -> None:
        args = {"command": command}
        self.transcript.typed = command
        try:
            result = self._patient.call("tool.run", session=self.session, tool="bash", args=args)
        finally:
            self.transcript.typed = ""
        lines = visible(result["text"]).splitlines()
        self.transcript.keep(f"!{command}", result["text"])
        if len(lines) > SHOWN:
            rest = f"[{len(lines) - SHOWN} more lines: /output {len(self.transcript.outputs)}]"
            lines = [*lines[:SHOWN], rest]
        self.out.line("\n".join(lines), "plain" if result["ok"] else "error")

    def _grant(self, request: str) -> None:
        with contextlib.suppress(ExoError):  # somebody else was quicker, or exod restarts
            self.client.call("approval.respond", request=request, choice="allow", via="typed")

    def _command(self, line: str) -> str:
        name, _, rest = line.partition(" ")
        known = [each for each in self.commands if each.startswith(name)] if name else []
        if name not in self.commands and len(known) != 1:
            self.out.line(f"there is no /{name}; see /help", "error")
            return ""
        self.commands[name if name in self.commands else known[0]][0](rest.strip())
        return ""

    # ---- commands --------------------------------------------------------------------------------

    def _help(self, rest: str) -> None:
        lines = ["TEXT says it; @path sends a file along; !command runs in the shell", ""]
        lines += [f"/{name:9} {text}" for name, (_, text) in self.commands.items()]
        lines += ["", "A line that ends in \\ goes on in the next. Ctrl-C stops the answer."]
        self._print(lines)

    def _new(self, rest: str) -> None:
        body = where(self.client) | ({"title": rest} if rest else {})
        self._go(str(self.client.call("session.create", **body)["session"]))

    def _sessions(self, rest: str) -> None:
        rows = self.client.call("session.list", limit=20)["sessions"]
        self._listed = [row["id"] for row in rows]
        for n, row in enumerate(rows, 1):
            mark = "*" if row["id"] == self.session else " "
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["updated"] / 1000))
            title = visible(row["title"]) or "(no title)"
            self._print([f"{mark}{n:2}  {when}  {row['turns']:3} turns  {title}"])

    def _resume(self, rest: str) -> None:
        if rest.isdigit() and 0 < int(rest) <= len(self._listed):
            rest = self._listed[int(rest) - 1]
        self.client.call("session.resume", session=rest)
        self._go(rest)
        self._history("4")

    def _fork(self, rest: str) -> None:
        body = {"at": rest} if rest else {}
        self._go(str(self.client.call("session.fork", session=self.session, **body)["session"]))

    def _undo(self, rest: str) -> None:
        turns = int(rest) if rest.isascii() and rest.isdigit() else 1
        removed = self.client.call("session.undo", session=self.session, turns=turns)["removed"]
        self._print(
            [f"{removed} turn{'' if removed == 1 else 's'} removed; files stay as they are"]
        )

    def _search(self, rest: str) -> None:
        hits = self.client.call("search", query=rest, limit=10)["hits"]
        self._listed = [hit["session"] for hit in hits]
        for n, hit in enumerate(hits, 1):
            self._print([f"{n:2}  {' '.join(visible(hit['snippet']).split())}"])
        self._print(["/resume N goes there" if hits else "nothing was found"])

    def _history(self, rest: str) -> None:
        count = int(rest) if rest.isascii() and rest.isdigit() else 10
        messages = self.client.call("session.get", session=self.session)["messages"]
        for message in [m for m in messages if m["text"]][-max(1, count) :]:
            kind = "user" if message["role"] == "user" else "plain"
            self.out.line(visible(message["text"]), kind)

    def _steer(self, rest: str) -> None:
        if rest:
            self._say(rest, "steer")

    def _output(self, rest: str) -> None:
        kept = self.transcript.outputs
        n = int(rest) if rest.isascii() and rest.isdigit() else len(kept)
        if not 0 < n <= len(kept):
            self._print(["there is no such output"])
            return
        self._print([f"{n}: {kept[n - 1][0]}", *kept[n - 1][1].splitlines()])

    def _models(self, rest: str) -> None:
        answer = self.client.call("models.list")
        self._print([f"{role}: {', '.join(routes)}" for role, routes in answer["roles"].items()])
        self._print([f"  {row.get('id')} ({row.get('provider', '')})" for row in answer["models"]])

    def _tools(self, rest: str) -> None:
        tools = self.client.call("tools.list", session=self.session)["tools"]
        self._print([f"{tool['name']:13} {first(tool['description'])}" for tool in tools])

    def _quit(self, rest: str) -> None:
        self.leaving = True

    def _go(self, session: str) -> None:
        self.transcript.session = session
        self._print([f"session {session}"])

    def _print(self, lines: list[str]) -> None:
        if lines:
            self.out.line("\n".join(lines), "plain")


def where(client: Client | Link) -> dict[str, str]:
    """The folder of a new session: this one, if exod runs on this machine."""
    return {"cwd": str(here())} if isinstance(client, Client) else {}


def chat(options: argparse.Namespace) -> int:
    """Turns until the end of input or /quit. Exit 1 when exod goes away for good."""
    home = Home.find(options.home)
    client = connect(home)
    session = options.session or str(client.call("session.create", cwd=str(here()))["session"])
    client.call("session.resume", session=session)  # refuses an unknown one before a word is typed
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if terminal:
        try:
            from exo.tools.chat_screen import PromptScreen
        except ImportError:
            terminal = False  # without the extra `host`: plain lines
    if terminal:
        return PromptScreen(home.state / "chat.history").run(client, session)
    from exo.tools.chat_plain import Plain

    return Plain().run(client, session)
