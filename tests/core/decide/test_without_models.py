"""Killing the decision provider changes answers to the safe default and nothing else: real processes."""

from __future__ import annotations

import os
import signal
from typing import Any

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
