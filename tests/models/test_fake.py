"""The scripted server: same socket, same shapes, no model."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import pytest
from modelkit import Server, deltas, messages, text_of

TOOL = {"type": "function", "function": {"name": "timer", "parameters": {"type": "object"}}}


def test_it_says_what_it_was_told_word_by_word(fake: Server) -> None:
    assert text_of(fake.chat("hello you")[1]) == "You said: hello you"
    chunks = fake.stream({"messages": messages("!say one two three")})
    assert deltas(chunks) == "one two three" and len(chunks) > 4
    assert text_of(fake.chat("!words 3")[1]) == "word0 word1 word2"


def test_it_calls_a_tool_when_told_and_reports_its_result(fake: Server) -> None:
    asked = messages('!tool timer {"seconds": 5}')
    answer = fake.ask("/v1/chat/completions", {"messages": asked, "tools": [TOOL]})[1]
    call = answer["choices"][0]["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"seconds": 5}
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    more = [
        *asked,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "started"},
    ]
    assert (
        text_of(fake.ask("/v1/chat/completions", {"messages": more, "tools": [TOOL]})[1])
        == "Done: started"
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("busy", 429),
        ("context_overflow", 400),
        ("model_missing", 503),
        ("model_corrupt", 503),
        ("internal", 500),
    ],
)
def test_it_refuses_as_told(fake: Server, code: str, status: int) -> None:
    got, answer = fake.chat(f"!error {code}")
    assert (got, answer["error"]["code"]) == (status, code)
    chunks = fake.stream({"messages": messages(f"!break {code}\na b c d e")})
    assert chunks[-1]["error"]["code"] == code and deltas(chunks)


def test_a_client_that_goes_away_is_noticed(fake: Server) -> None:
    link = fake.open({"messages": messages("!words 1000\n!delay 0.01")})
    link.getresponse().readline()
    link.sock.close()
    link.close()
    end = time.monotonic() + 10
    while fake.get("/health")["queue"]["running"]:
        assert time.monotonic() < end


def test_it_hears_sound_and_not_silence(fake: Server) -> None:
    wav = fake.raw("/v1/audio/speech", {"input": "hello"})[1]
    assert fake.ask("/v1/audio/transcriptions", wav, "audio/wav")[1]["text"] == "what time is it"
    assert (
        fake.ask("/v1/audio/transcriptions", b"\0\0" * 8000, "audio/pcm;rate=16000")[1]["text"]
        == ""
    )


def test_it_dies_as_told_and_starts_again(another: Any) -> None:
    server = another("--fake").start()
    link = server.open({"messages": messages("!die\na b c d")})
    with pytest.raises((http.client.HTTPException, OSError)):
        link.getresponse().read()
    link.close()
    assert server.process.wait(10) == 70
    server.start()
    assert server.chat("hi")[0] == 200
    assert server.end() == 0
