"""No secret gets through, and ordinary talk does."""

from __future__ import annotations

import pytest
from exo.core.context import extract
from exo.core.context.redact import MARK, redact
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
