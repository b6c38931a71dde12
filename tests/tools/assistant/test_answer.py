"""What of the found answers by itself: the asked kind, the names, the newer of two; else honest silence."""

from __future__ import annotations

from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.core.retrieve.candidates import Candidate
from exo.core.retrieve.document import Document
from exo.tools.assistant.answer import choose, concerns
from exo.tools.supervisor import Supervisor


def belief(text: str, score: float = 0.9, ts: int = 0) -> Candidate:
    document = Document(id=text[:6], kind="node", title=text, body=text, trust="self", ts=ts)
    return Candidate(0, document, text, 0.7, score, found_by={"bm25", "vector"})


@pytest.mark.parametrize(
    ("query", "text", "answers"),
    [
        ("who is Anna's doctor?", "Anna sees Doctor Weiss on Mondays", True),
        ("who is Anna's doctor?", "Ben sees Doctor Weiss on Mondays", False),  # of somebody else
        ("who is Anna's doctor?", "Anna has a doctor at last", False),  # no name
        (
            "who runs our choir?",
            "The choir sings on Tuesday in Saint Mary",
            False,
        ),  # a day, a place
        ("how much did the bike cost?", "The bike cost 310 in the sale", True),
        ("how much did the bike cost?", "The bike has 98 thousand on the clock", False),
        ("how old is my dad?", "Dad is in room 12", False),
        ("how old is my dad?", "Dad turned 71 last week", True),
        ("when is my exam?", "The exam is on the twentieth of May", True),
        ("when is my exam?", "Learning for the exam, twenty minutes each", False),
        ("how often do I swim?", "I swim twice a week", True),
        ("what colour is our cat?", "Our cat is grey", True),
        ("what do I do for a living?", "My sister lives in Rome", False),
        ("Wie alt ist mein Vater?", "Mein Vater ist 71", True),
        ("Wann ist meine Prüfung?", "Die Prüfung ist am zwanzigsten Mai", True),
        ("¿cuándo es mi examen?", "El examen es el 20 de mayo", True),
    ],
)
def test_an_answer_holds_what_was_asked_for(query: str, text: str, answers: bool) -> None:
    assert (choose(query, [belief(text)]) is not None) == answers


def test_of_two_that_fit_the_newer_one_answers_unless_the_past_is_asked_for() -> None:
    old, new = belief("I swim on Monday", 0.9, 1), belief("I swim on Friday", 0.85, 2)
    assert choose("on which day do I swim?", [old, new]) is new
    assert choose("on which day did I swim?", [old, new]) is old
    far = belief("I swim on Friday", 0.72, 2)
    assert choose("on which day do I swim?", [old, far]) is old
    assert choose("on which day do I swim now?", [old, far]) is far


@pytest.mark.parametrize(
    ("kind", "text", "answers"),
    [
        ("note", "The spare key lies under the mat", True),
        ("note", "The spare key lies under the mat. " * 8, False),
        ("note", "# House\nThe spare key lies under the mat", False),
        ("note", "", False),
        ("item", "The spare key lies under the mat", False),
    ],
)
def test_a_note_of_one_sentence_answers_like_a_belief(kind: str, text: str, answers: bool) -> None:
    document = Document(id="n1", kind=kind, title="Note", body=text, trust="self")
    found = Candidate(0, document, text, 0.7, 0.9, found_by={"bm25", "vector"})
    assert (choose("where does the spare key lie?", [found]) is not None) == answers


def test_weak_evidence_and_what_others_said_are_no_answer() -> None:
    assert choose("what colour is our cat?", [belief("Our cat is grey", 0.75)]) is None
    assert choose("what colour is our cat?", []) is None
    page = belief("Our cat is grey")
    item = Candidate(0, Document(**{**vars(page.document), "kind": "item"}), "", 0.7, 0.9)
    assert choose("what colour is our cat?", [item]) is None


def test_what_is_about_a_known_world_is_told_from_what_is_about_the_wide_one() -> None:
    known = [belief("Elio begins school at eight, the van is white", 0.6)]
    assert concerns("what is Elio's shoe size?", known)
    assert concerns("how fast is the van?", known)
    assert not concerns("what is the capital of France?", known)
    assert not concerns("who invented the van?", known)
    assert not concerns("what is Elio's shoe size?", [belief("Elio begins school", 0.1)])
    assert concerns("wie alt ist Elio", [belief("My son Elio begins school", 0.2)])
    assert not concerns("was kostet ein Auto", [belief("My son Elio begins school", 0.2)])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("how many jars did the second harvest give?", "The first harvest gave nineteen jars"),
        ("where do I swim on Fridays?", "I swim at the Tarn pool on Tuesdays"),
        ("how much did the new gearbox cost?", "The van got a new gearbox for three days"),
        ("how old was Ingrith when she died?", "Five years today since Ingrith died"),
    ],
)
def test_another_time_or_another_kind_of_number_is_no_answer(text: str, kept: str) -> None:
    assert choose(text, [belief(kept, 0.95)]) is None


def turn(client: Client, session: str, text: str) -> str:
    """A turn whose questions are allowed; the last answer."""
    since = int(client.call("hello", protocol=1, client="test")["seq"])
    made = client.call("turn.send", session=session, text=text)["turn"]
    for event in client.events(since, session):
        body: dict[str, Any] = event["body"]
        if event["type"] == "approval.requested":
            client.call("approval.respond", request=body["request"], choice="allow")
        if event["type"] == "turn.completed" and body["turn"] == made:
            break
    return str(client.call("session.get", session=session)["messages"][-1]["text"])


def test_nothing_known_is_said_and_words_forget_what_they_alone_fit(home: Home) -> None:
    with Supervisor(home, ["exod", "models"], {"models": ("--fake",)}) as services:
        services.wait_ready()
        client = Client(home.exod_socket, 60.0)
        session = client.call("session.create")["session"]
        for text in ("My sister is called Zelmira", "My locker at the pool is 204"):
            client.call("memory.query", verb="remember", args={"text": text})
        # the scripted vectors are near to each other whatever the words mean
        assert turn(client, session, "what is my shoe size?").startswith("I have nothing")
        assert turn(client, session, "Wie heißt mein Zahnarzt?") == "Dazu habe ich nichts."
        assert "204" in turn(client, session, "which number has my locker at the pool?")
        assert turn(client, session, "forget my locker at the pool").startswith("Forgotten")
        assert "204" not in turn(client, session, "what do you know about my locker?")
        assert "Zelmira" in turn(client, session, "what do you know about my sister?")
        # what was told in this conversation is for the model to find there
        turn(client, session, "my shoe size is 43")
        assert turn(client, session, "what is my shoe size?") != "I have nothing on that."
