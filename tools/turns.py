"""One turn as a client sees it: send, follow the events, hand the text on. Shared by `exo ask`,
`exo chat` and the benches; knows nothing of terminals."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exo.core.base.client import Client
from exo.core.base.errors import ProtocolError


@dataclass
class Outcome:
    """What a turn came to. Times are seconds from sending; `first_token` is None without text."""

    session: str
    reply: str = ""
    stop_reason: str = "error"
    kind: str = ""
    model_called: bool = False
    actions: list[dict[str, Any]] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    total: float = 0.0
    first_token: float | None = None
    error: str = ""

    def json(self) -> dict[str, Any]:
        """The shape that `exo ask --json` prints."""
        return {
            "session": self.session,
            "reply": self.reply,
            "stop_reason": self.stop_reason,
            "kind": self.kind,
            "model_called": self.model_called,
            "actions": self.actions,
            "recalled": self.recalled,
            "usage": self.usage,
            "seconds": {"total": self.total, "first_token": self.first_token},
        }


Show = Callable[[str], None]


def run_turn(
    client: Client,
    session: str,
    text: str,
    show: Show = lambda text: None,
    notice: Show = lambda text: None,
    approve: Callable[[dict[str, Any]], str] | None = None,
) -> Outcome:
    """Send `text` and return once the turn has ended; `show` gets the reply's text as it comes, each
    piece once. `approve` gets each approval.requested and returns the person's choice; without it,
    another client may answer. Raises ProtocolError when it is refused, ServiceError when exod goes away."""
    since = int(client.call("hello", protocol=1, client="exo ask")["seq"])
    begun = time.monotonic()
    turn = str(client.call("turn.send", session=session, text=text)["turn"])
    outcome = Outcome(session)
    follower = _Follower(outcome, turn, show, notice, begun)
    ended = False
    while not ended:
        try:
            for event in client.events(since, session):
                since = max(since, int(event["seq"]))
                if event["type"] == "approval.requested":
                    _approve(client, event["body"], approve, notice)
                if ended := follower.take(event):
                    break
        except KeyboardInterrupt:  # it ended that generator too: a new one sees the turn's end
            client.call("turn.interrupt", session=session)
    outcome.total = round(time.monotonic() - begun, 4)
    return outcome


def _approve(
    client: Client,
    asked: dict[str, Any],
    approve: Callable[[dict[str, Any]], str] | None,
    notice: Show,
) -> None:
    if approve is None:
        notice(f"waits for your approval on another client: {asked['summary']}")
        return
    choice = approve(asked)
    with contextlib.suppress(ProtocolError):  # another client was faster
        answer = {"request": asked["request"], "choice": choice, "by": "terminal"}
        client.call("approval.respond", **answer, via="typed")


class _Follower:
    """Folds the events of one turn into its outcome."""

    def __init__(self, outcome: Outcome, turn: str, show: Show, notice: Show, begun: float) -> None:
        self._outcome, self._turn = outcome, turn
        self._show, self._notice, self._begun = show, notice, begun
        self._shown: dict[str, str] = {}  # message id -> text that was shown
        self._calls: dict[str, dict[str, Any]] = {}

    def take(self, event: dict[str, Any]) -> bool:
        """Returns whether the turn has ended."""
        kind, body = event["type"], event["body"]
        if kind == "notice" and body["level"] != "error":
            self._notice(body["text"])
        elif kind == "fault":
            self._notice(body["message"])
        elif kind == "tool.completed" and body["call"] in self._calls:
            call = self._calls[body["call"]]
            call["outcome"], call["text"] = ("done" if body["ok"] else "failed"), body["text"]
        if body.get("turn") != self._turn:
            return False
        if kind == "message.delta":
            self._text(body["message"], body["text"])
        elif kind == "message.completed" and body["message"]["role"] == "assistant":
            self._completed(body["message"])
        elif kind == "tool.started":
            call = {"tool": body["tool"], "args": body["args"], "outcome": "running"}
            self._calls[body["call"]] = call
            self._outcome.actions.append(call)
        elif kind == "turn.completed":
            self._outcome.recalled = list(body.get("recalled") or [])
            self._end(body)
            return True
        return False

    def _text(self, message: str, text: str) -> None:
        if self._outcome.first_token is None:
            self._outcome.first_token = round(time.monotonic() - self._begun, 4)
        self._shown[message] = self._shown.get(message, "") + text
        self._show(text)

    def _completed(self, message: dict[str, Any]) -> None:
        """A reply that was not streamed, or whose last piece was not, is shown now."""
        shown = self._shown.get(message["id"], "")
        if message["text"].startswith(shown) and message["text"] != shown:
            self._text(message["id"], message["text"][len(shown) :])
        if message["text"]:
            self._outcome.reply = message["text"]

    def _end(self, body: dict[str, Any]) -> None:
        self._outcome.stop_reason = body["stop_reason"]
        self._outcome.usage = body["usage"]
        self._outcome.kind = body.get("kind") or ""
        self._outcome.model_called = bool(body.get("model_called"))
        self._outcome.error = (body.get("error") or {}).get("message", "")
