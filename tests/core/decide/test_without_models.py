"""Killing the decision provider changes answers to the safe default and nothing else: real processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from exo.core.base.unix import reachable
from exo.core.ledger.ledger import Ledger


def ask(processes: Any, state: str) -> dict[str, Any]:
    args = {"mechanism": "recall.depth", "state": state}
    found = dict(processes.client.call("command.run", name="decide", args=args)["result"])
    return found | {"ms": 0}


def turn(processes: Any, text: str) -> tuple[Any, ...]:
    session = processes.session()
    end = processes.ask(session, text)
    said = processes.client.call("session.get", session=session)["messages"]
    words = [word for word in said[-1]["text"].split() if ":" not in word]  # but the time of day
    return end["stop_reason"], end["kind"], end["model_called"], words


def test_without_the_provider_answers_are_the_safe_ones_and_turns_are_as_before(
    processes: Any,
) -> None:
    # the scripted models are sure of the option that stands in the state
    sure = ask(processes, "go deep")
    assert (sure["answer"], sure["abstained"], sure["provider"]) == ("deep", False, "local")
    with_it = turn(processes, "go deep into the garden")
    processes.client.call("config.set", key="decide.providers", value="rules")
    safe = ask(processes, "go deep")
    assert (safe["answer"], safe["abstained"], safe["provider"]) == ("shallow", True, "none")
    assert turn(processes, "go deep into the garden") == with_it
    timer = turn(processes, "set a timer for ten minutes")
    processes.client.call("config.set", key="decide.providers", value="local")

    pid = processes.pid("models")
    os.kill(pid, signal.SIGSTOP)  # there, and silent
    try:
        assert ask(processes, "go deep") == safe
        assert turn(processes, "set a timer for ten minutes") == timer
    finally:
        os.kill(pid, signal.SIGCONT)
    processes.kill("models")
    assert ask(processes, "go deep") in (safe, sure)  # it may be there again already
    assert turn(processes, "set a timer for ten minutes") == timer
    processes.supervisor.wait_ready()
    assert ask(processes, "go deep") == sure
    assert turn(processes, "go deep into the garden") == with_it


def test_a_turn_leaves_its_decisions_in_the_record(processes: Any) -> None:
    processes.ask(processes.session(), "go deep into the secret garden")
    processes.client.call("memory.query", verb="status", args={})
    home = processes.home
    ledger = Ledger(home, clock=None, enrol=False)  # type: ignore[arg-type]
    entries = list(ledger.entries(kinds=("utterance", "decision")))
    ledger.close()
    said = next(each for each in entries if each.kind == "utterance")
    found = {
        each.body["mechanism"]: each for each in entries if each.kind == "decision" and each.body
    }
    assert set(found) == {"request.kind", "request.tool", "recall.depth", "said.correction"}
    for each in found.values():
        assert each.refs == (said.id,) and each.body is not None
        assert "garden" not in str(each.body)
    depth = found["recall.depth"].body
    assert (
        depth is not None and depth["answer"] == "deep" and depth["probabilities"]["deep"] == 900000
    )


def said(processes: Any, session: str, text: str) -> str:
    processes.ask(session, text)
    words = processes.client.call("session.get", session=session)["messages"][-1]["text"]
    return str(words)


def test_a_decision_names_a_tool_that_runs_through_the_gate_and_asks_where_that_is_wise(
    processes: Any,
) -> None:
    session = processes.session()
    assert said(processes, session, "the eggs have to cook eight minutes !timer").startswith(
        "Timer for eggs set: 8 minutes"
    )
    assert said(processes, session, "the eggs are done, off with that !cancel timer") == (
        "Shall I cancel the timer?"
    )
    assert said(processes, session, "no thanks") == "All right, I leave it."
    again = said(processes, session, "the eggs are done, off with that !cancel timer")
    assert (again, said(processes, session, "yes please")) == (
        "Shall I cancel the timer?",
        "Cancelled: eggs.",
    )
    # a slot that is missing is asked for alone
    assert said(processes, session, "keep the clock for the eggs !timer") == "For how long?"
    assert said(processes, session, "nine minutes").startswith("Timer for eggs set: 9 minutes")

    # what is not of low risk waits for a yes, and then for the gate as ever
    asked = said(processes, session, "purge my knee !forget")
    assert asked == "Shall I forget: my knee?"
    calls = processes.client.call("session.get", session=session)["messages"][-1]
    assert not calls.get("calls")

    # without the provider it is the language model's, as it was before
    os.kill(pid := processes.pid("models"), signal.SIGSTOP)
    try:
        processes.client.call("config.set", key="decide.providers", value="rules")
    finally:
        os.kill(pid, signal.SIGCONT)
    end = processes.ask(processes.session(), "the eggs have to cook eight minutes !timer")
    assert end["model_called"]
    processes.client.call("config.set", key="decide.providers", value="local")


ASKED = (
    "what is my exam question number",  # known
    "where did I leave the deep umbrella of my aunt",  # not known
    "set a timer for ten minutes",
    "how much time is left",
    "undo",
    "cancel all timers",
    "remember that my bicycle is azure",
)
LOOKS = "yes.txt may do more"  # of the file, so that the scripted decider says yes


def act(processes: Any, session: str, dies: bool) -> tuple[Any, ...]:
    """A call with a second look at it: what the person is asked, and the result; `dies`: the models are killed while the
    call waits for their answer."""
    start, done = max((e["seq"] for e in news(processes)), default=0), threading.Event()
    found: dict[str, Any] = {}

    def call() -> None:
        args = {"path": LOOKS, "content": "x"}
        found.update(
            processes.client.call("tool.run", session=session, tool="write_file", args=args)
        )
        done.set()

    work = (lambda: during(processes, call)) if dies else call
    thread = threading.Thread(target=work)
    thread.start()
    asked = []
    while not done.wait(0.05):
        for event in news(processes, start):
            request = event["body"].get("request")
            if event["type"] == "approval.requested" and request not in dict(asked):
                asked.append((request, event["body"]["summary"]))
                processes.client.call("approval.respond", request=request, choice="allow")
    thread.join()
    return [summary for _, summary in asked], found["ok"]


def during(processes: Any, work: Callable[[], Any]) -> Any:
    """Do `work`, and kill the models while it waits for them: they have the question and say nothing."""
    pid = processes.pid("models")
    os.kill(pid, signal.SIGSTOP)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(work()))
    thread.start()
    threading.Event().wait(0.15)  # well within the half second that a decision is waited for
    assert processes.kill("models") == pid
    thread.join()
    models = processes.home.models_socket
    for _ in range(600):  # the supervisor brings them back
        if processes.supervisor.pids().get("models", pid) != pid and reachable(models):
            return answers[0]
        threading.Event().wait(0.05)
    raise AssertionError("the models did not come back")


def news(processes: Any, since: int = 0) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(processes.home.sessions_db)) as link:
        query = "SELECT data FROM events WHERE seq > ? ORDER BY seq"
        return [json.loads(row[0]) for row in link.execute(query, (since,))]


def decisions(processes: Any) -> list[dict[str, Any]]:
    processes.client.call("memory.query", verb="status", args={})
    ledger = Ledger(processes.home, clock=None, enrol=False)  # type: ignore[arg-type]
    found = [each.body or {} for each in ledger.entries(kinds=("decision",))]
    ledger.close()
    return found


def test_killed_in_the_middle_of_a_decision_answers_are_those_of_rules_alone(
    processes: Any,
) -> None:
    processes.client.call(
        "memory.query", verb="remember", args={"text": "My exam question number is 4711."}
    )

    def told(session: str, text: str) -> tuple[Any, ...]:
        end = processes.ask(session, text)
        said = processes.client.call("session.get", session=session)["messages"][-1]["text"]
        said = re.sub(r"\[[\w-]+\]|\d\d:\d\d(:\d\d)?|(\d+ (minutes?|seconds?) ?)+", "", said)
        return end["stop_reason"], end["kind"], end["model_called"], said

    processes.client.call("config.set", key="decide.providers", value="rules")
    session = processes.session()
    safe = [told(session, text) for text in ASKED]
    assert [each[2] for each in safe] == [False] * len(ASKED)
    unasked = act(processes, session, False)
    processes.client.call("config.set", key="decide.providers", value="local")
    session, before = processes.session(), len(decisions(processes))
    asked = act(processes, session, False)
    assert len(asked[0]) == 1 and "may do more than it seems" in asked[0][0] and asked[1]
    assert decisions(processes)[-1]["answer"] == "yes" and unasked != asked

    assert act(processes, session, True) == unasked
    found = [during(processes, lambda text=text: told(session, text)) for text in ASKED]
    assert found == safe
    lost = decisions(processes)[before + 1 :]
    assert {each["mechanism"] for each in lost} >= {"action.riskier", "request.kind"}
    for each in lost:
        assert each["provider"] == "none" and each["abstained"]
        assert each["answer"] in ("", "no", "none", "shallow")
    assert act(processes, session, False) == asked, "and as before once they are there again"
