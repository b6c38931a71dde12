"""What a person hears on the default models: real exod, real exo-models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from exo.core.base.client import Client
from exo.core.base.home import Home, models_folder
from exo.tools.supervisor import Supervisor

pytestmark = pytest.mark.skipif(
    not (models_folder() / "smollm2-135m").exists(), reason="needs the local model: exo models get"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = Home(tmp_path_factory.mktemp("exo") / "h").make()
    with Supervisor(home, ["exod", "models"]) as services:
        services.wait_ready()
        yield Client(home.exod_socket)


def asked(client: Client, *texts: str) -> tuple[str, bool]:
    """(the last reply, whether the language model was asked for it), in a session of its own."""
    session, seen = client.call("session.create")["session"], False
    since = client.call("hello", protocol=1, client="test")["seq"]
    for text in texts:
        turn = client.call("turn.send", session=session, text=text)["turn"]
        for event in client.events(since, session):
            since = event["seq"]
            if event["type"] == "turn.completed" and event["body"]["turn"] == turn:
                assert event["body"]["stop_reason"] == "end"
                seen = event["body"]["model_called"]
                break
    return client.call("session.get", session=session)["messages"][-1]["text"], seen


@pytest.mark.parametrize("text", ["turn on the lights", "call my mother", "order a pizza"])
def test_what_it_cannot_do_is_said_and_not_pretended(client: Client, text: str) -> None:
    said, model = asked(client, text)
    assert said.startswith("I cannot do that.") and not model


def test_a_statement_is_kept_on_a_word(client: Client) -> None:
    said, model = asked(client, "my bicycle was stolen from the yard last night")
    assert "remember that" in said and not model
    said, _ = asked(client, "my bicycle was stolen from the yard last night", "remember that")
    assert said.startswith("I will remember: My bicycle was stolen")


def test_knowledge_is_the_models(client: Client) -> None:
    said, model = asked(client, "why is the sky blue?")
    assert model and "scatter" in said.lower()


def test_where_nothing_answers_the_nearest_is_told_and_nothing_made_up(client: Client) -> None:
    for text in ("I lent my good spade to Kit from plot nine", "My boiler was serviced in May"):
        client.call("memory.query", verb="remember", args={"text": text})
    said, model = asked(client, "who borrowed my spade?")
    assert said.startswith("I have nothing that says just that.") and "to Kit" in said and not model
    said, model = asked(client, "how often do I visit my dentist?")
    assert "I have nothing" in said and not model


def test_what_was_said_in_the_conversation_is_quoted_and_refusals_are_not_copied(
    client: Client,
) -> None:
    talk = ["my uncle Bo lives in Oslo", "Where does my uncle live?"]
    said, model = asked(client, *talk)
    assert "my uncle Bo lives in Oslo" in said and not model
    said, model = asked(client, *talk, "order a pizza", "book a flight", "why is the sky blue?")
    assert model and "cannot do" not in said and "scatter" in said.lower()
