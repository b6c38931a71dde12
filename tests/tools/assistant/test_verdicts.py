"""The person's next words become verdicts on the decisions before: real exod, record and rules, scripted models."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger
from exo.tools.assistant import signals
from exo.tools.assistant.verdicts import note
from exo.tools.clock import FakeClock
from exo.tools.decisions import labels, status

processes = sys.modules["core_bench"].processes


def record(exo: Any) -> list[Entry]:
    exo.client.call("memory.query", verb="status", args={})  # what waits is taken in
    ledger = Ledger(exo.home, FakeClock(), enrol=False)
    try:
        return list(ledger.entries())
    finally:
        ledger.close()


def until(exo: Any, count: int) -> list[Entry]:
    """The verdicts, once there are `count`: what is implied is written behind the turn."""
    waited = threading.Event()
    for _ in range(100):
        found = [each for each in record(exo) if each.kind == "verdict"]
        if len(found) >= count:
            return found
        waited.wait(0.05)
    raise AssertionError(f"{len(found)} verdicts of {count}")


def say(exo: Any, session: str, text: str, **more: Any) -> str:
    exo.end_of(str(exo.client.call("turn.send", session=session, text=text, **more)["turn"]))
    return str(exo.client.call("session.get", session=session)["messages"][-1]["text"])


def brief(entry: Entry) -> tuple[Any, ...]:
    body = entry.body or {}
    return tuple(body.get(key) for key in ("mechanism", "verdict", "answer", "via", "strength"))


def test_words_judge_the_turn_before_and_the_reply_says_so(processes: Any) -> None:
    session = processes.session()
    say(processes, session, "the secret blue bicycle of the neighbour")
    assert say(processes, session, "that was a question").splitlines() == [
        "Noted: that was a question.",
        "Shall I look for an answer in what you told me?",
    ]
    assert say(processes, session, "No, that was a question!") == "Noted: that was a question."
    assert say(processes, session, "das war nur eine Bemerkung").startswith("Notiert")
    found = until(processes, 2)
    kind = "request.kind"
    assert [brief(each) for each in found] == [
        (kind, "should_have_been", "question", "words", 800_000),
        (kind, "should_have_been", "note", "words", 800_000),
    ], "the same said again is one verdict; what judged is not judged itself"
    entries = {each.id: each for each in record(processes)}
    for each in found:
        decision, words = (entries[ref] for ref in each.refs)
        assert decision.kind == "decision" and words.kind == "utterance"
        assert entries[decision.refs[0]].body["text"].startswith("the secret blue")  # type: ignore[index]
        assert "bicycle" not in json.dumps(each.body)
    ledger = Ledger(processes.home, FakeClock(), enrol=False)
    [label] = labels(ledger)
    ledger.close()
    assert (label.label, label.weight) == ("note", 0.8), "the newest counts"
    assert label.text == "the secret blue bicycle of the neighbour"

    said = next(each for each in entries.values() if each.kind == "utterance")
    processes.client.call("memory.query", verb="forget", args={"id": said.id, "session": session})
    gone = {each.id: each for each in record(processes)}
    assert all(gone[each.id].body is None for each in found), "forgotten with what they refer to"


def test_nothing_but_the_persons_own_words_is_a_verdict(processes: Any) -> None:
    session = processes.session()
    assert say(processes, session, "that was wrong") == (
        "There is nothing before it that I could note it on."
    )
    say(processes, session, "the tap drips a lot")
    # a model's call, a client's call, and the words of a task
    say(processes, session, "!tool verdict {}\nplease do")
    told = processes.client.call("tool.run", session=session, tool="verdict", args={})
    assert "nothing before it" in told["text"]
    assert not [each for each in record(processes) if each.kind == "verdict"]


def test_a_second_try_and_a_correction(processes: Any) -> None:
    session = processes.session()
    say(processes, session, "pasta timer, nine minutes I would say")  # no rule takes it
    assert "Timer" in say(processes, session, "set a pasta timer for nine minutes")
    [tried] = until(processes, 1)
    assert brief(tried) == ("request.kind", "should_have_been", "command", "rephrased", 400_000)
    say(processes, session, "undo")
    say(processes, session, "tell me of the sea")
    say(processes, session, "no, I meant the lake")
    *_, undone, corrected = until(processes, 3)
    assert undone.body is not None and undone.body["via"] == "undo" and undone.refs
    assert brief(corrected) == (
        *("said.correction", "should_have_been", "correction", "correction", 600_000),
    )
    assert len(until(processes, 3)) == 3


def test_thanks_for_what_is_known_and_a_correction_of_it(processes: Any) -> None:
    processes.client.call(
        "memory.query", verb="remember", args={"text": "My exam question number is 4711."}
    )
    session = processes.session()
    assert "4711" in say(processes, session, "what is my exam number")
    say(processes, session, "ok, thank you")
    [thanked] = until(processes, 1)
    assert brief(thanked)[1:] == ("should_have_been", "question", "thanks", 300_000)
    # the scripted decider is sure of "question" where the word stands in the message
    assert "4711" in say(processes, session, "what is my exam question number")
    say(processes, session, "that's not what I asked")
    *_, rejected = until(processes, 2)
    assert brief(rejected) == ("request.kind", "reject", None, "words", 400_000)
    told = {row["mechanism"]: row for row in status(processes.home)["rows"]}
    assert told["request.kind"]["labels"] == 2 and told["request.kind"]["answered"] == 0.0


def test_a_second_look_at_an_action_is_labelled_by_the_answer_and_by_undo(processes: Any) -> None:
    """action.riskier, from the decision to the label: the scripted decider says yes where the word stands in the call."""
    session = processes.session()
    call, answered = '!tool write_file {"path": "yes.txt", "content": "%s"}', set[str]()

    def turn(text: str, choice: str) -> None:
        id_ = processes.client.call("turn.send", session=session, text=text)["turn"]
        for event in processes.follow():
            request = event["body"].get("request", "")
            if event["type"] == "approval.requested" and request not in answered:
                answered.add(request)
                processes.client.call("approval.respond", request=request, choice=choice)
            if event["type"] == "turn.completed" and event["body"]["turn"] == id_:
                return

    turn(call % "one", "deny")
    turn(call % "two", "allow")
    turn("undo", "deny")
    entries = {each.id: each for each in record(processes)}
    asked = [each for each in entries.values() if each.kind == "approval"]
    assert [entries[each.refs[0]].kind for each in asked] == ["decision", "decision"]
    ledger = Ledger(processes.home, FakeClock(), enrol=False)
    found = [each for each in labels(ledger) if each.mechanism == "action.riskier"]
    ledger.close()
    assert [(each.label, each.text.split()[0]) for each in found] == [
        ("yes", "write_file"),
        ("yes", "write_file"),
    ], "denied; and allowed, then taken back"


# ---- what is a signal -----------------------------------------------------------------------------------


class Scene:
    """A record written by hand: turns of one session, a second apart."""

    def __init__(self, folder: Path) -> None:
        from exo.core.base.home import Home

        self.clock = FakeClock()
        self.ledger = Ledger(Home(folder).make(), self.clock)
        self.count = 0

    def turn(self, text: str, kind: str = "chat", decided: str = "", **more: Any) -> None:
        self.count += 1
        self.clock.advance(more.get("after", 1.0))
        about = {"session": "s", "turn": f"t{self.count}"}
        said = {**about, "text": text, "channel": more.get("channel", "typed")}
        drafts = [Draft("utterance", said)]
        sure = {"answer": decided, "probabilities": {}, "raw": {}, "provider": "p"}
        for name in ("request.kind", "said.correction") if decided else ():
            drafts.append(Draft("decision", {**about, "mechanism": name, **sure}, (0,)))
        if kind == "command":
            drafts.append(Draft("action", {**about, "call": "c", "tool": "timer", "args": "{}"}))
        end = {"stop_reason": "end", "kind": kind, "text": "so it is", "model": kind == "chat"}
        self.ledger.append(*drafts, Draft("outcome", {**about, **end}, (0,)))

    def verdicts(self) -> list[tuple[Any, ...]]:
        note(self.ledger, "s")
        return [brief(each)[:4] for each in self.ledger.entries(kinds=("verdict",))]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "h")
    yield made
    made.ledger.close()


FIRST = "pasta timer, nine minutes"
SECOND = "set a pasta timer for nine minutes"
KIND, ACCEPT, SHOULD = "request.kind", "accept", "should_have_been"


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ((FIRST, "chat", "chat"), (SECOND, "command"), (KIND, SHOULD, "command", "rephrased")),
        ((FIRST, "chat", "command"), (SECOND, "command"), (KIND, ACCEPT, None, "rephrased")),
        (("where is it", "question", "question"), ("thanks!", "chat"), (KIND, ACCEPT, None, "thanks")),
        (("where is it", "question", "chat"), ("danke dir", "chat"), (KIND, SHOULD, "question", "thanks")),
        (("where is it", "question", "question"), ("no, not the red one", "chat"), (KIND, "reject", None, "correction")),
        (("where is it", "question", "question"), ("nein, ich meinte den Hof", "chat"), (KIND, "reject", None, "correction")),
        (("where is it", "question", "question"), ("no, me refería al coche", "chat"), (KIND, "reject", None, "correction")),
    ],
)  # fmt: skip
def test_what_is_a_signal_is_written_once(
    scene: Scene, before: Any, now: Any, verdict: tuple[Any, ...]
) -> None:
    scene.turn(*before)
    scene.turn(*now)
    assert scene.verdicts() == [verdict]
    assert scene.verdicts() == [verdict], "read again, nothing is written twice"
    scene.turn("and now to something else", "chat", "chat")
    assert scene.verdicts() == [verdict]


@pytest.mark.parametrize(
    ("before", "now", "more"),
    [
        ((FIRST, "chat", "chat"), (SECOND, "command"), {"after": 600}),  # much later
        ((FIRST, "chat", "chat"), (SECOND, "command"), {"channel": "task"}),
        ((FIRST, "chat", "chat"), ("set a timer for the eggs", "command"), {}),  # of another thing
        ((FIRST, "question", "question"), (SECOND, "command"), {}),  # it was asked for
        ((FIRST, "command"), (SECOND, "command"), {}),  # a rule took it: nothing was decided
        (("hi", "chat", "chat"), ("thanks", "chat"), {}),  # a model's answer
        (("where is it", "question", "question"), ("thanks", "chat"), {"channel": "mail"}),
        (("where is it", "question", "question"), ("thanks, and where is Tom", "chat"), {}),
        (("where is it", "question", "question"), ("no problem", "chat"), {}),
        (("where is it", "question", "question"), ("no, not yet", "chat"), {}),
        (("where is it", "question", "question"), ("I meant to call you", "chat"), {}),
        (("where is it", "question", "question"), ("I said hello", "chat"), {}),
    ],
)
def test_what_only_looks_like_a_signal(
    scene: Scene, before: Any, now: Any, more: dict[str, Any]
) -> None:
    scene.turn(*before)
    scene.turn(*now, **more)
    assert scene.verdicts() == []


def test_what_was_lost_in_a_crash_is_written_at_the_next_turn(scene: Scene) -> None:
    scene.turn("where is it", "question", "question")
    scene.turn("thanks", "chat", "small_talk")
    scene.turn("tell me a story", "chat", "chat")  # exod died between the end of a turn and this
    assert scene.verdicts() == [(KIND, ACCEPT, None, "thanks")]


def test_a_turn_that_still_runs_says_nothing_yet(scene: Scene) -> None:
    """The end of the turn before may be read while the next one is on its way to the rule that takes it."""
    scene.turn("where is it", "question", "question")
    about = {"session": "s", "turn": "now"}
    said = {**about, "text": "that's not what I asked", "channel": "typed"}
    [entry] = scene.ledger.append(Draft("utterance", said))
    assert scene.verdicts() == []
    scene.ledger.append(Draft("action", {**about, "tool": "verdict", "args": "{}"}, (entry.id,)))
    assert scene.verdicts() == [(KIND, "reject", None, "words")]


def test_forms_are_of_every_language() -> None:
    from exo.tools.assistant.tongue import NAMES, language

    for name in NAMES:
        rules = [row for row in language(name).data["rules"] if row["tool"] == signals.TOOL]
        answers = {row.get("args", {}).get("answer", "") for row in rules}
        assert answers == {"question", "command", "note", ""}
        assert {"was_question", "was_wrong", "was_nothing"} <= set(language(name).say)
