"""Requests fit, whatever is in them, and are the same for the same parts."""

from __future__ import annotations

import json

from exo.core.context.builder import (
    RECALL,
    TASK,
    VIEW,
    Limits,
    Parts,
    build,
    estimate,
    shorten,
    weigh,
)
from exo.core.protocol.schema import Call, Message, ToolResult
from hypothesis import given, settings
from hypothesis import strategies as st

BASE = [{"role": "system", "content": "base"}]
texts = st.text(max_size=60) | st.integers(1, 20_000).map(lambda n: "long text " * n)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    out: list[Message] = []
    for n in range(draw(st.integers(1, 12))):
        out.append(Message(f"u{n}", "user", draw(texts)))
        for r in range(draw(st.integers(0, 2))):
            args = {"path": draw(texts), "more": draw(st.integers() | st.none())}
            out.append(Message(f"c{n}{r}", "assistant", draw(texts), [Call("a", "t", args)]))
            results = [ToolResult("a", True, draw(texts))]
            out.append(Message(f"r{n}{r}", "tool", "", results=results))
        out.append(Message(f"a{n}", "assistant", draw(texts)))
    return out[draw(st.integers(0, min(3, len(out) - 1))) :]


@settings(deadline=None)
@given(conversations(), st.integers(512, 9000), texts, st.lists(texts, max_size=6))
def test_a_request_fits_is_valid_and_deterministic(
    messages: list[Message], window: int, system: str, view: list[str]
) -> None:
    limits = Limits(window=window)
    lead = Message("c", "assistant", "", [Call("a", "t", {})])
    pieces = [((0, n), text) for n, text in enumerate(view)]
    parts = Parts(
        [{"role": "system", "content": system}], pieces, messages, lead, "the task", "recalled"
    )
    request = build(parts, limits, limits.budget, estimate)
    assert request == build(parts, limits, limits.budget, estimate)
    assert sum(weigh(each, estimate) for each in request) <= limits.budget
    assert request[0]["role"] == "system" and len(request) > 1
    waiting: list[str] = []
    for each in request:
        if each["role"] == "tool":
            assert each["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
        waiting += [call["id"] for call in each.get("tool_calls", [])]
        for call in each.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting


def test_what_changes_stands_last() -> None:
    messages = [Message("1", "user", "old"), Message("2", "assistant", "yes")]
    messages.append(Message("3", "user", "new"))
    parts = Parts(BASE, [((1, 0), "they met")], messages, recall="a fact")
    texts = [each["content"] for each in build(parts, Limits(), 3000, estimate)]
    assert (
        texts[0] == "base" and texts[1].startswith(VIEW) and "[messages 1-16] they met" in texts[1]
    )
    assert texts[2:4] == ["old", "yes"] and texts[4].startswith(RECALL) and texts[5] == "new"


def test_a_folded_request_of_the_person_is_repeated() -> None:
    messages = [Message("1", "assistant", "", [Call("a", "t", {})])]
    messages.append(Message("2", "tool", "", results=[ToolResult("a", True, "ok")]))
    parts = Parts(BASE, [((0, 0), "x")], messages, task="mend the roof")
    request = build(parts, Limits(), 3000, estimate)
    assert request[2]["content"] == f"{TASK}\nmend the roof"


@given(st.text(max_size=4000), st.integers(1, 900))
def test_shortening_keeps_both_ends(text: str, tokens: int) -> None:
    short = shorten(text, tokens)
    assert estimate(short) <= max(tokens, 20)
    if estimate(text) <= tokens:
        assert short == text


@given(st.integers(0, 40), st.integers(64, 200_000), st.integers(8, 8192))
def test_no_limit_is_negative(level: int, window: int, reply: int) -> None:
    limits = Limits(window, reply)
    assert limits.budget > 0 and limits.summaries > 0 and limits.node(level) > 0
    assert limits.halved().budget <= limits.budget
