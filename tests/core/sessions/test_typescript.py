"""The TypeScript types are those of the schema."""

from __future__ import annotations

import re

from exo.core.protocol import schema
from exo.tools import protocol as generate


def test_the_checked_in_types_are_current():
    assert generate.TYPES.read_text() == generate.typescript()


def test_every_name_is_declared_and_every_type_has_a_body():
    text = generate.typescript()
    declared = set(re.findall(r"^export (?:interface|type) (\w+)", text, re.M))
    used = set(re.findall(r"\b[A-Z]\w+", re.sub(r'/\*\*.*?\*/|//.*|"[^"]*"', "", text)))
    assert used - declared <= {"Array", "Record", "Omit", "PROTOCOL", "K"}
    for name in (*schema.COMMANDS, *schema.EVENTS):
        assert f'"{name}": ' in text
    assert text.count("{") == text.count("}")
