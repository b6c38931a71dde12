"""How a conversation is laid out for the Anthropic API, which refuses what is not quite in order."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from exo.core.router.catalog import Catalog
from exo.core.router.model import Request
from exo.tools.clock import FakeClock
from exo.tools.providers.anthropic import AnthropicTransport, layout


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, *calls: tuple[str, str, str]) -> dict[str, Any]:
    shaped = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    return message | {"tool_calls": shaped} if calls else message


def result(id_: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def check(messages: list[dict[str, Any]]) -> None:
    """What the API demands."""
    assert messages[0]["role"] == "user"
    ids: list[str] = []
    open_: list[str] = []
    for position, message in enumerate(messages):
        assert message["role"] == ("assistant" if position % 2 else "user")
        assert message["content"]
        kinds = [block["type"] for block in message["content"]]
        results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        assert results == open_ and kinds[: len(results)] == ["tool_result"] * len(results)
        for block in message["content"]:
            assert block["type"] != "text" or block["text"].strip()
        open_ = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        ids += open_
        for block in message["content"]:
            if block["type"] == "tool_use":
                assert message["role"] == "assistant" and isinstance(block["input"], dict)
    assert not open_ and len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", id_) for id_ in ids)


def test_a_whole_conversation() -> None:
    request = Request(
        [
            system("You are Exo."),
            system("The pack."),
            user("What time?"),
            said("I look.", ("call_1", "time", "{}"), ("call_2", "note", '{"text":"a"}')),
            result("call_1", "12:00"),
            result("call_2", ""),
            said("Noon."),
            system("Recalled: likes tea."),
            user("Thanks"),
        ],
        fixed=2,
    )
    first, messages = layout(request)
    assert [block["text"] for block in first] == ["You are Exo.", "The pack."]
    assert "cache_control" not in first[0]
    assert first[1]["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(messages).count("cache_control") == 0
    check(messages)
    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert messages[2]["content"][1]["content"] == "(nothing)"
    assert [block["text"] for block in messages[4]["content"]] == ["Recalled: likes tea.", "Thanks"]


HARD = {
    "begins with the model": [said("And so on."), user("Go on")],
    "nothing at all": [],
    "only a system": [system("x")],
    "two of the person": [user("a"), user("b")],
    "empty texts": [user("  "), said(""), user("a"), said(" "), user("")],
}


@pytest.mark.parametrize("name", HARD)
def test_hard_cases_are_put_in_order(name: str) -> None:
    check(layout(Request(HARD[name]))[1])


def test_any_conversation_is_put_in_order() -> None:
    """Of whole rounds with ids of their own, which is what sessions hold."""
    dice = random.Random(7)
    for _ in range(500):
        messages = []
        for round_ in range(dice.randint(0, 8)):
            ids = [f"c{round_}-{n}" for n in range(dice.randint(1, 3))]
            tools = [
                said("", *((id_, "t", "{}") for id_ in ids)),
                *(result(id_, "r") for id_ in ids),
            ]
            one = [[system("s")], [user("u")], [user("")], [said("m")], tools]
            messages += dice.choice(one)
        check(layout(Request(messages))[1])


def test_the_body_of_a_request() -> None:
    row = Catalog().providers["anthropic"]
    transport = AnthropicTransport(row, Path("/nowhere"), 5.0, FakeClock())
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = {
        "type": "function",
        "function": {"name": "note", "description": "d", "parameters": schema},
    }
    body = transport.body("claude-haiku-4-5", Request([user("a")], [tool], 50), "main")
    assert body == {
        "model": "claude-haiku-4-5",
        "max_tokens": 50,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **CACHED}]}],
        "tools": [{"name": "note", "description": "d", "input_schema": schema}],
    }


CACHED = {"cache_control": {"type": "ephemeral"}}
