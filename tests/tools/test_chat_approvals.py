"""Approvals in the line client: asked by a stand-in for exod that speaks the protocol."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest
from exo.core.base.home import Home
from exo.core.base.httpd import HttpServer, Response, json_response
from exo.tools.chat import Chat
from exo.tools.chat_plain import Plain

PATIENCE = 60.0  # seconds
ASKS = {
    "request": "r1",
    "summary": "push branch to origin",
    "risk": "high",
    "tool": "bash",
    "args": {"command": "git push"},
    "expires": 0,
}


class StandIn:
    """Speaks for exod: every turn asks for an approval and ends when it got one."""

    def __init__(self, home: Home) -> None:
        self.home, self.commands, self.events = home, [], []
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._wait(self._listen())

    def close(self):
        self._wait(self._server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def publish(self, kind, **body):
        seq = len(self.events) + 1
        event = {"id": f"e{seq}", "seq": seq, "session": "s1", "type": kind, "ts": 0, "body": body}
        self.events.append(event)

    def _wait(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _listen(self):
        self._server = HttpServer(self._answer)
        await self._server.listen_unix(self.home.exod_socket)
        await self._server.listen_unix(self.home.models_socket)

    async def _answer(self, request):
        if request.path == "/events":
            return Response(
                self._stream(int(request.query["since"])), content_type="text/event-stream"
            )
        command = json.loads(await request.body())
        kind, body = command["type"], command["body"]
        self.commands.append((kind, body))
        result = {"session": "s1"}
        if kind == "hello":
            result = {"protocol": 1, "server": "x", "seq": len(self.events), "first": 1}
        elif kind == "turn.send":
            result = {"accepted": True, "turn": "t1"}
            self.publish("turn.started", turn="t1")
            self.publish("approval.requested", **ASKS)
        elif kind == "approval.respond":
            result = {}
            self.publish("approval.resolved", request="r1", choice=body["choice"], by="exo chat")
            self.publish("turn.completed", turn="t1", stop_reason="end", usage={})
        return json_response({"id": command["id"], "ok": True, "result": result})

    async def _stream(self, since):
        while True:
            while since < len(self.events):
                yield f"data: {json.dumps(self.events[since])}\n\n".encode()
                since += 1
            await asyncio.sleep(0.01)

    def answered(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := [b for kind, b in self.commands if kind == "approval.respond"]:
                return found
            time.sleep(0.01)
        raise AssertionError(self.commands)


@pytest.fixture
def stand_in(home):
    made = StandIn(home)
    yield made
    made.close()


@pytest.mark.parametrize(("key", "choice"), [("y", "allow"), ("n", "deny"), ("a", "allow_always")])
def test_a_key_answers(stand_in, key, choice):
    pytest.importorskip("prompt_toolkit")
    from exo.core.base.client import Client
    from exo.tools.chat_screen import PromptScreen
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("please push\r")

        def person():
            end = time.monotonic() + PATIENCE
            while not any(e["type"] == "approval.requested" for e in stand_in.events):
                assert time.monotonic() < end
                time.sleep(0.01)
            while not any(kind == "approval.respond" for kind, _ in stand_in.commands):
                assert time.monotonic() < end
                keys.send_text("\x7f" + key)  # typed before the client has seen it, it is text
                time.sleep(0.1)
            keys.send_text("\x7f")
            keys.send_text("/quit\r")

        typist = threading.Thread(target=person)
        typist.start()
        screen = PromptScreen(stand_in.home.state / "history")
        assert screen.run(Client(stand_in.home.exod_socket), "s1") == 0
        typist.join(PATIENCE)
    assert stand_in.answered() == [{"request": "r1", "choice": choice, "via": "typed"}]


def test_an_approval_that_was_open_before_is_asked_again(stand_in):
    from exo.core.base.client import Client

    stand_in.publish("turn.started", turn="t1")
    stand_in.publish("approval.requested", **ASKS)
    shown = []

    class Paper:
        def text(self, piece):
            shown.append(piece)

        def line(self, text, kind):
            shown.append(text)

        def end(self):
            pass

    chat = Chat(Client(stand_in.home.exod_socket), "s1", Paper())
    seen = threading.Event()

    def take(event):
        chat.transcript.take(event)
        seen.set() if event["seq"] == 2 else None

    chat.follow(take)
    assert seen.wait(PATIENCE)
    assert chat.transcript.approval()["summary"] == "push branch to origin"
    assert chat.transcript.running == {"s1": "t1"} and shown == []
    chat.answer("deny")
    assert stand_in.answered() == [{"request": "r1", "choice": "deny", "via": "typed"}]
    chat.close()


def test_nobody_at_a_pipe_means_no(stand_in, monkeypatch):
    import io
    import sys

    from exo.core.base.client import Client

    monkeypatch.setattr(sys, "stdin", io.StringIO("please push\n"))
    assert Plain().run(Client(stand_in.home.exod_socket), "s1") == 0
    assert stand_in.answered() == [{"request": "r1", "choice": "deny", "via": "typed"}]


@pytest.mark.parametrize(
    ("always", "typed", "choice"),
    [
        (True, "a", "allow_always"),
        (False, "a", "allow"),  # nothing could be kept: it counts this once
        (False, "y", "allow"),
        (True, "", "deny"),  # Enter alone
        (True, "what", "deny"),
    ],
)
def test_a_plain_line_asks_with_what_can_be_answered(monkeypatch, always, typed, choice):
    asked = []
    monkeypatch.setattr("builtins.input", lambda prompt: asked.append(prompt) or typed)
    plain = Plain()
    plain._terminal = True
    assert plain._approve({**ASKS, "always": always}) == choice
    assert ("[a]lways" in asked[0]) == always
