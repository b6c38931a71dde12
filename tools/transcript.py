"""What the events of a conversation look like to a person: streamed text, tool calls folded to a line,
approvals, notices. Knows no terminal; writes to an Out.

Invariant: each piece of a reply is shown once, however often the connection broke."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

KEPT = 200  # tool outputs that can be shown in full
_TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # Unicode TR9
ARGUMENTS = 44  # characters of a call's arguments in its line


class Out(Protocol):
    """Where it is shown. `kind` is one of: user, tool, notice, error, plain."""

    def text(self, piece: str) -> None:
        """A piece of the reply that is being written."""
        ...

    def line(self, text: str, kind: str) -> None:
        """Whole lines; they end a reply that was not at its line's end."""
        ...

    def end(self) -> None:
        """The reply is complete."""
        ...


@dataclass
class Transcript:
    """Folds events. `session` is the one that is shown; turns and approvals of all are known."""

    out: Out
    session: str
    quiet_until: int = 0  # events up to this number are known from before: nothing is shown
    mine: set[str] = field(default_factory=set)  # ids of messages that were typed here
    running: dict[str, str] = field(default_factory=dict)  # session -> turn
    ended: dict[str, str] = field(default_factory=dict)  # turn -> stop reason
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)  # request -> what is asked
    outputs: list[tuple[str, str]] = field(default_factory=list)  # (call, its whole output)
    working: str = ""  # the tool that runs
    typed: str = (
        ""  # the shell command that was typed here and runs now: typing it was the approval
    )
    grant: Callable[[str], None] = lambda request: None
    _shown: dict[str, str] = field(default_factory=dict)
    _calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> None:
        """Take the next event of the whole stream."""
        kind, body, session = event["type"], event["body"], event["session"]
        self._follow(kind, body, session)
        if 0 < event["seq"] <= self.quiet_until:
            return
        if kind == "fault":
            self.out.line(body["message"], "error")
        elif kind == "truncated":
            self.out.line("what happened before is no longer in the record", "notice")
        elif kind == "notice" and (session == self.session or body["code"] == "timer"):
            self._line(body["text"], "error" if body["level"] == "error" else "notice")
        elif session == self.session:
            self._show(kind, body)

    def approval(self) -> dict[str, Any] | None:
        """What waits for an answer of the person, the oldest first."""
        return next((b for b in self.asked.values() if b["session"] == self.session), None)

    def _follow(self, kind: str, body: dict[str, Any], session: str | None) -> None:
        if kind == "turn.started" and session:
            self.running[session] = body["turn"]
        elif kind == "turn.completed" and session:
            self.running.pop(session, None)
            self.ended[body["turn"]] = body["stop_reason"]
        elif kind == "approval.requested" and self._typed(body):
            self.grant(body["request"])
        elif kind == "approval.requested":
            self.asked[body["request"]] = {**body, "session": session}
        elif kind == "approval.resolved":
            self.asked.pop(body["request"], None)

    def _typed(self, asked: dict[str, Any]) -> bool:
        return bool(self.typed) and asked["args"] == {"command": self.typed}

    def _show(self, kind: str, body: dict[str, Any]) -> None:
        if kind == "message.delta":
            self._text(body["message"], body["text"])
        elif kind == "message.completed":
            self._message(body["message"])
        elif kind == "tool.started":
            self.working, self._calls[body["call"]] = body["tool"], body
        elif kind == "tool.completed":
            self._tool(body)
        elif kind == "approval.requested" and not self._typed(body):
            self._line(f"{body['tool']} ({body['risk']}) asks: {body['summary']}", "notice")
        elif kind == "approval.resolved" and not self.typed:
            self._line(f"{body['choice'].replace('_', ' ')} (by {body['by']})", "notice")
        elif kind == "question.asked":
            self._line(body["text"], "notice")
        elif kind == "context.compacted":
            self.out.line(f"context: {body['before']} -> {body['after']} tokens", "notice")
        elif kind == "turn.completed":
            self.working = ""
            if body["stop_reason"] not in ("end", "error"):
                self.out.line(f"stopped: {body['stop_reason']}", "notice")
            self.out.end()

    def _line(self, text: str, kind: str) -> None:
        self.out.line(visible(text), kind)

    def _text(self, message: str, text: str) -> None:
        self._shown[message] = self._shown.get(message, "") + text
        self.out.text(visible(text))

    def _message(self, message: dict[str, Any]) -> None:
        """A reply that was not streamed, or whose last piece was not, is shown now."""
        if message["role"] == "user" and message["id"] not in self.mine:
            self.out.line(visible(message["text"]), "user")
        if message["role"] != "assistant":
            return
        shown = self._shown.pop(message["id"], "")
        if message["text"] != shown and message["text"].startswith(shown):
            self.out.text(visible(message["text"][len(shown) :]))
        if message["text"]:
            self.out.end()

    def _tool(self, body: dict[str, Any]) -> None:
        self.working = ""
        call = self._calls.pop(body["call"], None)
        if call is None:
            return  # its start lies before what was followed
        label = f"{call['tool']} {fold(call['args'])}".strip()
        self.keep(label, body["text"])
        count = body["text"].count("\n") + 1 if body["text"] else 0
        state = f"{count} line{'' if count == 1 else 's'}" if body["ok"] else first(body["text"])
        spent = f", {body['ms'] / 1000:.1f} s" if body["ms"] >= 100 else ""
        mark = "+" if body["ok"] else "!"
        self._line(f"{mark} {label}: {state}{spent} (/output {len(self.outputs)})", "tool")

    def keep(self, label: str, text: str) -> None:
        """Remember an output for /output; beyond KEPT the oldest texts are let go."""
        self.outputs.append((label, visible(text)))
        if len(self.outputs) > KEPT:
            self.outputs[-KEPT - 1] = (self.outputs[-KEPT - 1][0], "[let go]")


def visible(text: str) -> str:
    """Text without what a terminal would obey: escape sequences and other control characters, and
    those that turn the order of what follows (a command to approve must read as it runs)."""
    return "".join(
        c
        for c in text
        if c in "\n\t" or ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0 and c not in _TURNS
    ).replace("\t", "    ")


def fold(args: dict[str, Any]) -> str:
    """A call's arguments in a few words: the value alone when there is one."""
    text = json.dumps(args, ensure_ascii=False) if len(args) > 1 else ""
    if len(args) == 1:
        text = str(next(iter(args.values())))
    text = " ".join(visible(text).split())
    return text if len(text) <= ARGUMENTS else text[: ARGUMENTS - 1] + "…"


def first(text: str) -> str:
    """The first line of an error, short enough for a line of the terminal."""
    line = visible(text).strip().partition("\n")[0]
    return line if len(line) <= 60 else line[:59] + "…"
