"""The whole product in one file, in seconds. Read it as a tour: a person says something, the core keeps it,
a model answers, a tool acts, a timer rings, the power fails, and nothing is lost.

The models are scripted (`exo-models --fake`); everything else is the real thing, in real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.tools.supervisor import Supervisor


class Exo:
    """A person's device: one home folder, exod and exo-models under their supervisor, one client."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.supervisor = Supervisor(home, ("exod", "models"), {"models": ("--fake",)})
        self.client = Client(home.exod_socket, timeout=30.0)

    def say(self, session: str, text: str) -> list[dict[str, Any]]:
        """Send a turn; return its events, to the last."""
        since = int(self.client.call("hello", protocol=1, client="tour")["seq"])
        turn = self.client.call("turn.send", session=session, text=text)["turn"]
        return self.until("turn.completed", since, turn=turn)

    def until(self, type_: str, since: int, **body: Any) -> list[dict[str, Any]]:
        """Events after `since`, up to one of this type whose body has these values."""
        seen = []
        for event in self.client.events(since):
            seen.append(event)
            if event["type"] == type_ and body.items() <= event["body"].items():
                break
        return seen

    def record(self) -> list[dict[str, Any]]:
        """Everything that ever happened, replayed from zero."""
        last = int(self.client.call("hello", protocol=1, client="tour")["seq"])
        return list(islice(self.client.events(0), last))

    def transcript(self, session: str) -> list[str]:
        messages = self.client.call("session.get", session=session)["messages"]
        return [f"{m['role']}: {m['text']}" for m in messages]


@pytest.fixture
def exo(tmp_path: Path) -> Iterator[Exo]:
    device = Exo(Home(tmp_path / "home"))
    with device.supervisor:
        device.supervisor.wait_ready()
        yield device


def test_the_whole_product(exo: Exo) -> None:
    # A conversation is a session. It is a row in the home folder, not in any screen.
    session = exo.client.call("session.create")["session"]

    # A turn: the words are saved before anything else, then the reply streams, then the turn ends.
    events = exo.say(session, "tell me a story")
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message.completed", "turn.started"]
    assert kinds[-1] == "turn.completed" and events[-1]["body"]["stop_reason"] == "end"
    streamed = "".join(e["body"]["text"] for e in events if e["type"] == "message.delta")
    assert streamed == "You said: tell me a story"

    # What needs no language model does not ask one.
    end = exo.say(session, "what time is it?")[-1]["body"]
    assert (end["kind"], end["model_called"]) == ("command", False)

    # The model may ask for a tool. Its result goes back to the model, which then words the answer.
    events = exo.say(session, '!tool note {"text": "the key is under the mat"}\nremember that')
    [done] = [e["body"] for e in events if e["type"] == "tool.completed"]
    assert done["ok"] and done["text"] == "Noted: the key is under the mat"
    assert exo.transcript(session)[-1] == "assistant: Done: Noted: the key is under the mat"

    # A note is a plain file that belongs to the person.
    [note] = (exo.home.store / "private" / "corpus" / "notes").glob("*.md")
    assert "the key is under the mat" in note.read_text()

    # A timer is kept on the disk, so that it rings whatever happens in between.
    exo.say(session, "set a timer for 1 second called tea")

    # The power fails in the middle of a reply.
    since = int(exo.client.call("hello", protocol=1, client="tour")["seq"])
    turn = exo.client.call("turn.send", session=session, text="!words 500\n!delay 0.01\na story")[
        "turn"
    ]
    before = exo.until("message.delta", since)
    os.kill(exo.supervisor.pids()["exod"], signal.SIGKILL)
    while "exod" in exo.supervisor.pids():
        pass
    while not exo.home.exod_socket.exists() or not exo.supervisor.pids().get("exod"):
        exo.supervisor.tick()

    # exod is started again, finds the turn that was cut, keeps what was said, and ends it.
    exo.client.wait_ready(30)
    after = exo.until("turn.completed", since, turn=turn)
    assert after[: len(before)] == before
    assert after[-1]["body"]["error"]["code"] == "restarted"
    said = "".join(e["body"]["text"] for e in after if e["type"] == "message.delta")
    assert said and exo.transcript(session)[-1] == f"assistant: {said}"

    # The timer rings, once.
    exo.until("notice", 0, code="timer", text="Timer: tea")

    # The record is dense and the same for whoever reads it, and the conversation goes on.
    record = exo.record()
    assert [event["seq"] for event in record] == list(range(1, len(record) + 1))
    assert record == exo.record()
    assert [e["body"].get("code") for e in record if e["type"] == "notice"].count("timer") == 1
    assert exo.say(session, "are you still there?")[-1]["body"]["stop_reason"] == "end"
    assert exo.transcript(session)[-1] == "assistant: You said: are you still there?"
