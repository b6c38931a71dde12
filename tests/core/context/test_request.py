"""The request: it fits, starts with the person, keeps calls with their results, and begins alike."""

from __future__ import annotations

import json
from typing import Any

from exo.core.context import builder
from exo.core.context.builder import (
    LEAST,
    MESSAGE_TOKENS,
    Limits,
    Parts,
    estimate,
    shorten,
)
from exo.core.protocol.schema import Call, Message, ToolResult
from hypothesis import given, settings
from hypothesis import strategies as st


def build(
    opening: list[dict[str, Any]], messages: list[Message], limits: Limits
) -> list[dict[str, Any]]:
    return builder.build(Parts(opening, [], messages), limits, limits.budget, estimate)


SYSTEM = "You are a small companion. " * 4

OPENING = [{"role": "system", "content": SYSTEM}]

texts = st.one_of(
    st.text(max_size=200),
    st.integers(0, 40_000).map(lambda n: "word " * (n // 5)),
    st.integers(0, 8_000).map(lambda n: "日本" * (n // 2)),
    st.integers(0, 8_000).map(lambda n: "ascii " * (n // 12) + "🧀" * (n // 8)),
)


@st.composite
def conversations(draw: Any) -> list[Message]:
    """Turns of a user message, rounds of tools, a reply; the last one may still wait for its reply."""
    messages: list[Message] = []
    count = draw(st.integers(1, 8))
    for turn in range(count):
        messages.append(Message(f"u{turn}", "user", draw(texts)))
        for n in range(draw(st.integers(0, 4))):
            calls = [
                Call(f"c{turn}.{n}.{k}", "tool", {"a": draw(texts)})
                for k in range(draw(st.integers(1, 2)))
            ]
            messages.append(Message(f"a{turn}.{n}", "assistant", draw(texts), calls))
            results = [ToolResult(each.id, True, draw(texts)) for each in calls]
            messages.append(Message(f"t{turn}.{n}", "tool", "", results=results))
        if turn < count - 1:
            messages.append(Message(f"r{turn}", "assistant", draw(texts)))
    return messages


limits = st.builds(
    Limits,
    st.sampled_from([512, 1024, 2048, 4096, 32768]),
    st.sampled_from([8, 100, 200]),
    st.integers(2, 30),
)


def cost(request: list[dict[str, Any]]) -> int:
    total = 0
    for row in request[1:]:
        total += estimate(row["content"]) + MESSAGE_TOKENS
        for call in row.get("tool_calls", []):
            total += estimate(call["function"]["arguments"]) + MESSAGE_TOKENS
    return total


@settings(max_examples=150, deadline=None)
@given(conversations(), limits)
def test_request_fits_starts_with_the_person_and_keeps_rounds_whole(
    messages: list[Message], limit: Limits
) -> None:
    request = build(OPENING, messages, limit)
    assert request == build(OPENING, list(messages), limit)
    assert request[0] == {"role": "system", "content": SYSTEM}
    assert request[1]["role"] == "user"
    assert cost(request) <= limit.budget - estimate(SYSTEM) + LEAST
    waiting: list[str] = []
    for row in request[1:]:
        if row["role"] == "tool":
            assert row["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in row.get("tool_calls", [])]
        for call in row.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting
    # what was said last is there, if need be cut
    last_user = max(n for n, message in enumerate(messages) if message.role == "user")
    assert any(row["role"] == "user" for row in request)
    if last_user == len(messages) - 1:
        assert request[-1]["role"] == "user"
    json.dumps(request).encode()


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(LEAST, 500))
def test_shortened_text_fits_and_keeps_both_ends(text: str, tokens: int) -> None:
    short = shorten(text, tokens)
    assert estimate(short) <= tokens
    if estimate(text) <= tokens:
        assert short == text
    else:
        assert "characters left out" in short and short[0] == text[0] and short[-1] == text[-1]


def test_what_fits_is_sent_word_for_word() -> None:
    messages = [
        Message(str(n), "user" if n % 2 == 0 else "assistant", f"text {n}") for n in range(9)
    ]
    request = build(OPENING, messages, Limits())
    assert [row["content"] for row in request[1:]] == [message.text for message in messages]


def test_one_long_result_is_cut_and_the_short_messages_stay_whole() -> None:
    messages = [
        Message("1", "user", "what does it say?"),
        Message("2", "assistant", "I look.", [Call("c", "read_file", {"path": "x"})]),
        Message("3", "tool", "", results=[ToolResult("c", True, "line of text\n" * 10_000)]),
    ]
    request = build(OPENING, messages, Limits())
    assert request[1]["content"] == "what does it say?" and request[2]["content"] == "I look."
    assert request[2]["tool_calls"][0]["function"]["arguments"] == '{"path": "x"}'
    assert 5000 < len(request[3]["content"]) < 12_000


def test_a_turn_of_many_long_rounds_keeps_its_question_and_its_newest_round() -> None:
    messages = [Message("q", "user", "the question")]
    for n in range(24):
        messages.append(
            Message(f"a{n}", "assistant", "", [Call(f"c{n}", "read_file", {"path": f"{n}"})])
        )
        messages.append(
            Message(f"t{n}", "tool", "", results=[ToolResult(f"c{n}", True, f"{n} " + "x" * 9000)])
        )
    request = build(OPENING, messages, Limits(window=1024))
    assert request[1]["content"] == "the question"
    assert request[-1]["content"].startswith("23 ")
    assert cost(request) <= Limits(window=1024).budget
