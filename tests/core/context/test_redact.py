"""No secret gets through, and ordinary talk does."""

from __future__ import annotations

import time

import pytest
from exo.core.context import extract
from exo.core.context.extract import digest
from exo.core.context.redact import MARK, redact
from exo.core.protocol.schema import Message
from exo.tools.benches.planted import PLANTED, conversation, with_tools
from hypothesis import given
from hypothesis import strategies as st

SECRETS = [(text, secret) for each in PLANTED for _, text, secret in each.secrets]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_planted_secrets_are_replaced(text: str, secret: str) -> None:
    assert secret not in redact(text) and MARK in redact(text)
    assert secret not in redact(f'{{"said": "{text}"}}')
    assert secret not in redact(f"before it\n{text}\nafter it")


def test_facts_are_left_alone() -> None:
    for each in PLANTED:
        for fact in each.facts:
            assert redact(fact.text) == fact.text


def test_rules_keep_no_secret_in_any_shape() -> None:
    for each in PLANTED:
        for messages in (conversation(each), with_tools(conversation(each))):
            text = extract.digest(messages).text(100_000)
            assert not [secret for _, _, secret in each.secrets if secret in text]


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "part", ["x", "a-", "a.", "/a", "a/a.", "1a-", "ab ", "A1 ", "12.5,7;\n", "pin=1 ", "Ab ", "`a"]
)
def test_long_words_lines_and_tables_take_no_time(part: str) -> None:
    """Where the cost grew with the square of the length, each of these held up exod for minutes."""
    begun = time.monotonic()
    digest([Message("1", "user", part * (200_000 // len(part)))])
    assert time.monotonic() - begun < 10


def test_a_line_may_hold_many_secrets() -> None:
    assert redact("pin: 1234 " * 3000) == ("pin: [secret] " * 3000)
