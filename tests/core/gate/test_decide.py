"""The decision: the floor under everything that would lower it, the matrix, grants, money, private folders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from exo.core.gate.axes import COST, EXPOSURE, REVERSIBILITY, Act, Axes, Judgement, Part
from exo.core.gate.decide import decide, mark
from exo.core.gate.policy import ASK, OUTCOMES, STRICT, Policy
from hypothesis import given
from hypothesis import strategies as st

ACT = Act("t", {"a": 1}, "/w")
NAMES = frozenset({"program:p", "host:h"})
AXES = [Axes(*cell) for cell in itertools.product(REVERSIBILITY, EXPOSURE, COST, (True, False))]


def judgements() -> Iterator[Judgement]:
    for axes, secrets in itertools.product(AXES, ((), ("s",))):
        yield Judgement((Part(axes, "what", "shape", NAMES),), (), secrets, NAMES)


def test_nothing_lowers_the_floor() -> None:
    every = [dict.fromkeys(ASK, outcome) for outcome in OUTCOMES]
    overrides: list[dict[str, str]] = [
        {},
        {"tool:t": "allow", "program:p": "allow", "host:h": "allow"},
    ]
    cells: list[tuple[dict[str, Any], ...]] = [
        (),
        ({"outcome": "allow"},),
        ({"exposure": "public", "outcome": "log"},),
    ]
    seen = 0
    for ask, override, cell, judged in itertools.product(every, overrides, cells, judgements()):
        policy = Policy(ask=ask, overrides=override, cells=cell, month_cents=10**9)
        asked = decide(ACT, judged, Policy())
        rules = {mark(rule) for rule in ("shape", "s", "", asked.grant, "t: shape @ /w")}
        verdict = decide(ACT, replace(judged, cents=0), policy, rules)
        if judged.axes.floor:
            seen += 1
            assert verdict.outcome in ("ask", "deny") and not verdict.grant
    assert seen > 20


def test_the_defaults_over_the_whole_matrix() -> None:
    for judged in judgements():
        axes = judged.axes
        asks = axes.reversibility == "irreversible" or axes.exposure == "public" or axes.third_party
        asks = asks or axes.cost == "money" or bool(judged.secrets)
        assert (decide(ACT, judged, Policy()).outcome == "ask") == asks


def test_without_good_policies_all_but_looking_asks() -> None:
    for changes, axes in itertools.product((True, False), AXES):
        verdict = decide(ACT, Judgement((Part(axes, "x", changes=changes),)), STRICT)
        assert (verdict.outcome == "allow") == (axes == Axes() and not changes)


def test_a_message_reaches_somebody_whatever_the_judge_says() -> None:
    act = Act("send_message", {"to": "x", "text": "y"}, "/w")
    assert decide(act, Judgement(), Policy()).outcome == "ask"
    assert decide(act, Judgement(), Policy()).axes.third_party


def test_what_a_tool_needs_is_asked_each_time() -> None:
    act = replace(ACT, needs="pay")
    verdict = decide(act, Judgement((Part(Axes(), "x", "s"),)), Policy())
    assert (verdict.outcome, verdict.rule, verdict.grant) == ("ask", "needs pay", "")


def test_a_grant_is_for_its_shape_and_never_firm() -> None:
    irreversible = Part(Axes("irreversible"), "x", "delete a")
    asked = decide(ACT, Judgement((irreversible,)), Policy())
    assert asked.outcome == "ask" and asked.grant
    granted = {mark(asked.grant)}
    assert decide(ACT, Judgement((irreversible,)), Policy(), granted).outcome == "log"
    for judged, policy in (
        (Judgement((irreversible, replace(irreversible, shape="delete b"))), Policy()),
        (Judgement((irreversible,), secrets=("k",)), Policy()),
        (Judgement((irreversible,), doubts=("?",)), Policy()),
        (Judgement((irreversible,), names=frozenset({"git push"})), Policy(reserved=("git push",))),
        (Judgement((irreversible,), touched=frozenset({"/p/x"})), Policy(folders=("/p",))),
        (Judgement((irreversible,)), Policy(denied=("t",))),
    ):
        verdict = decide(ACT, judged, policy, granted)
        assert verdict.outcome in ("ask", "deny"), judged
    assert (
        decide(replace(ACT, cwd="/v"), Judgement((irreversible,)), Policy(), granted).outcome
        == "ask"
    )
    # what is not understood is granted for the very same call alone
    odd = decide(ACT, Judgement(doubts=("?",)), Policy())
    assert decide(ACT, Judgement(doubts=("?",)), Policy(), {mark(odd.grant)}).outcome == "log"
    other = replace(ACT, args={"a": 2})
    assert decide(other, Judgement(doubts=("?",)), Policy(), {mark(odd.grant)}).outcome == "ask"


@pytest.mark.parametrize(
    ("cents", "spent", "month", "rule"),
    [
        (500, 0, 0, "budget"),
        (None, 0, 1000, "budget: the amount is not known"),
        (500, 501, 1000, "budget: 501 of 1000 cents are spent"),
        (500, 500, 1000, "log"),
    ],
)
def test_money_within_the_budget(cents: int | None, spent: int, month: int, rule: str) -> None:
    policy = Policy(ask=ASK | {"money": "log", "irreversible": "log"}, month_cents=month)
    judged = Judgement((Part(Axes("irreversible", cost="money"), "pay", "p"),), cents=cents)
    verdict = decide(ACT, judged, policy, spent=spent)
    assert (verdict.outcome if rule == "log" else verdict.rule) == rule
    assert rule == "log" or verdict.outcome == "ask" and not verdict.grant
    assert verdict.record().get("cents") == cents


@pytest.mark.parametrize(
    ("touched", "cwd", "asks"),
    [
        ("/p/diary/x", "/w", True),
        ("/p/diary", "/w", True),
        ("/p", "/w", True),  # what is above it has it
        ("/p/", "/w", False),  # the names there are not what lies in it
        ("/p/diary/", "/w", True),
        ("/p/diary2", "/w", False),
        ("/p/diary/x", "/p/diary/y", False),  # who works there was let in
        ("/q", "/w", False),
    ],
)
def test_a_private_folder_asks(touched: str, cwd: str, asks: bool) -> None:
    look = Part(Axes(), "read x", changes=False)
    judged = Judgement((look,), touched=frozenset({touched}))
    verdict = decide(replace(ACT, cwd=cwd), judged, Policy(folders=("/p/diary",)))
    assert verdict.outcome == ("ask" if asks else "allow")
    assert not asks or verdict.rule == "private /p/diary" and not verdict.grant


def test_the_digest_holds_for_exactly_one_call() -> None:
    one = Act("bash", {"command": "ls", "timeout": 1}, "/w")
    same = Act("bash", {"timeout": 1, "command": "ls"}, "/w", "high", "x")
    others = [
        replace(one, cwd="/v"),
        replace(one, tool="sh"),
        replace(one, args={"command": "ls "}),
        replace(one, args={"command": "ls\ud800"}),
    ]
    assert one.digest == same.digest and len({one.digest, *(o.digest for o in others)}) == 5


texts = st.text(max_size=40) | st.text("ab\0\u202e\u200b\x07é ", max_size=200)


@given(texts, texts, st.lists(st.sampled_from(AXES), max_size=3), st.lists(texts, max_size=2))
def test_words_fit_a_small_screen_and_deceive_nobody(
    what: str, command: str, axes: list[Axes], doubts: list[str]
) -> None:
    parts = tuple(Part(each, what, "s") for each in axes)
    act = Act("bash", {"command": command}, "/w")
    verdict = decide(act, Judgement(parts, tuple(doubts)), Policy())
    assert len(verdict.summary) <= 80 and verdict.summary.isprintable()
    assert not doubts or verdict.outcome in ("ask", "deny")


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_words_fit_also_where_there_are_very_many_parts(count: int) -> None:
    """Every mark stands at its end at once, and how many more there are takes what room is left."""
    parts = tuple(
        Part(Axes("irreversible", "public", "money", True), "w" * 500, "s") for _ in range(count)
    )
    judgement = Judgement(parts, ("doubt",), ("a key",))
    verdict = decide(Act("bash", {"command": "c" * 500}, "/w"), judgement, Policy())
    assert len(verdict.summary) <= 80 and verdict.summary.endswith("no undo")
    milder = tuple(
        Part(replace(each.axes, reversibility="recoverable"), "w" * 500) for each in parts
    )
    verdict = decide(verdict.act, replace(judgement, parts=milder), Policy())
    assert len(verdict.summary) <= 80 and verdict.summary.endswith("partly undone")


def test_a_digest_and_a_grant_cover_the_code_of_a_tool() -> None:
    one, other = (Act("t", {"a": 1}, "/w", code=code) for code in ("1" * 64, "2" * 64))
    assert len({one.digest, other.digest, ACT.digest}) == 3
    changes = Judgement((Part(Axes("irreversible"), "change", "change it"),))
    first, again = (decide(act, changes, Policy()) for act in (one, one))
    assert first.grant and first.grant == again.grant and first.record()["code"] == one.code
    assert decide(one, changes, Policy(), {mark(first.grant)}).outcome == "log"
    assert decide(other, changes, Policy(), {mark(first.grant)}).outcome == "ask"
    assert "code" not in decide(ACT, changes, Policy()).record()
