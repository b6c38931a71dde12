"""Schemas become grammars whose every text parses: proven by drawing from them."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import pytest
from exo.models.grammar import gbnf, plan
from exo.models.replies import BadRequest
from exo.models.requests import chat_request

TIMER = {
    "type": "object",
    "properties": {"seconds": {"type": "integer", "minimum": 1}, "label": {"type": "string"}},
    "required": ["seconds"],
}
SCHEMAS = [
    {},
    TIMER,
    {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}},
    {"type": "object", "properties": {"a": {"enum": ["x", 'q"uote', 3]}, "n": {"type": "number"}}},
    {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 2, "maxItems": 4},
    {"type": "array", "items": TIMER},
    {"anyOf": [{"const": "yes"}, {"type": "array", "items": {"type": "integer"}}]},
    {"type": ["string", "null"]},
    {"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 23}},
    {"type": "number", "minimum": 0},
    {"allOf": [TIMER, {"properties": {"c": {"const": 1}}, "required": ["c"], "type": "object"}]},
    {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "v": {"type": "string", "minLength": 1}},
        "required": ["v"],
    },
]


class Drawer:
    """Draws texts from the part of GBNF that gbnf() writes."""

    def __init__(self, text: str, seed: int) -> None:
        self.rules = dict(line.split(" ::= ", 1) for line in text.strip().splitlines())
        self.random = random.Random(seed)
        self.depth = 0

    def draw(self) -> str:
        return self._options(self.rules["root"])

    def _options(self, body: str) -> str:
        options = _split(body, "|")
        self.depth += 1
        choice = options[0] if self.depth > 30 else self.random.choice(options)
        out = "".join(self._item(each) for each in _split(choice, " ") if each)
        self.depth -= 1
        return out

    def _item(self, item: str) -> str:
        found = re.match(r"^(.*?)(\?|\*|\{(\d+)(?:,(\d+))?\})?$", item, re.DOTALL)
        assert found
        core, mark = found[1], found[2] or ""
        low, high = {"": (1, 1), "?": (0, 1)}.get(mark, (0, 0))
        if found[3]:
            low, high = int(found[3]), int(found[4] or found[3])
        count = low if self.depth > 20 else self.random.randint(low, min(high, low + 3))
        return "".join(self._one(core) for _ in range(count))

    def _one(self, core: str) -> str:
        if core.startswith("("):
            return self._options(core[1:-1])
        if core.startswith('"'):
            return json.loads(core)
        if core.startswith("[^"):
            return self.random.choice("aé 7-")
        if core.startswith("["):
            letters = {"[0-9]": "0123456789", "[1-9]": "19"}.get(core, "nbt")
            return self.random.choice(letters)
        return self._options(self.rules[core])


def _split(text: str, mark: str) -> list[str]:
    out, depth, quoted, bracket, start = [], 0, False, False, 0
    index = 0
    while index < len(text):
        letter = text[index]
        if letter == "\\" and (quoted or bracket):
            index += 2
            continue
        if letter == '"' and not bracket:
            quoted = not quoted
        elif not quoted and letter in "[]":
            bracket = letter == "["
        elif not quoted and not bracket and letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == mark and not quoted and not bracket and not depth:
            out.append(text[start:index].strip())
            start = index + 1
        index += 1
    return [*out, text[start:].strip()]


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_every_text_of_a_grammar_fits_its_schema(index: int) -> None:
    text = gbnf(SCHEMAS[index])
    for seed in range(60):
        value = json.loads(Drawer(text, seed).draw())
        jsonschema.validate(value, SCHEMAS[index])


@pytest.mark.parametrize(
    "schema",
    [{"type": "wrong"}, {"enum": []}, {"$ref": "#/nowhere"}, {"properties": 3}, {"anyOf": [3]}],
)
def test_a_schema_that_cannot_be_met_is_refused(schema: dict) -> None:
    with pytest.raises(BadRequest):
        gbnf(schema)


def _asked(choice: object, tools: int = 1) -> object:
    made = [
        {"type": "function", "function": {"name": f"t{i}", "parameters": TIMER}}
        for i in range(tools)
    ]
    body = {"messages": [{"role": "user", "content": "x"}], "tools": made, "tool_choice": choice}
    return chat_request(body)


def test_a_weak_model_is_not_shown_tools_it_may_not_choose() -> None:
    made = plan(_asked("auto"), "forced")
    assert not made.offered and not made.trigger and not made.call


def test_a_strong_model_is_shown_tools_and_bound_once_it_calls() -> None:
    made = plan(_asked("auto"), "auto")
    assert made.offered and made.trigger == "<tool_call>" and "seconds" in made.call_grammar


def test_a_required_call_is_read_back_as_name_and_arguments() -> None:
    made = plan(_asked("required"), "forced")
    assert made.call and "t0" in made.aside
    assert made.read_call(made.start + '{"seconds": 3}') == ("t0", '{"seconds": 3}')
    many = plan(_asked("required", 2), "auto")
    text = f'{many.start}{{"name": "t1", "arguments": {{"seconds": 4}}}}'
    assert many.read_call(text) == ("t1", '{"seconds": 4}')


def _nested(levels: int, wrap: dict[str, Any], key: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        inner = {"a": schema} if key == "properties" else schema
        schema = {**wrap, key: inner}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {}}, "required": 5},
        {"properties": {"a": {}}, "required": [["a"]]},
        {"type": "number", "maximum": float("inf")},
        {"anyOf": 5},
        {"allOf": 5},
        {"allOf": [{"properties": [1]}]},
        {"const": "\ud800"},
        {"enum": list(range(5000))},
        _nested(8, {"type": ["object"] * 30}, "properties"),  # unfolds into 30 to the 8th rules
        _nested(900, {"type": "array"}, "items"),
    ],
)
def test_a_hostile_schema_is_refused_at_once(schema: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="JSON schema"):
        gbnf(schema)
