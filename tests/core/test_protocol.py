"""The wire: the schema is current, decoding is strict, what is written reads back."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, Literal

import jsonschema
import pytest
from exo.core.base.errors import ProtocolError
from exo.core.protocol import schema
from exo.core.protocol.codec import (
    DEPTH,
    command_id,
    decode_command,
    encode,
    failure,
    from_json,
    read_json,
    to_json,
)
from exo.core.protocol.schema import COMMANDS, EVENTS, RESULTS, Command, Event, Response
from exo.tools import protocol as generate
from hypothesis import given, settings
from hypothesis import strategies as st

FIXED_COMMANDS = [
    "hello",
    "session.create",
    "session.list",
    "session.get",
    "session.resume",
    "session.fork",
    "session.undo",
    "turn.send",
    "turn.interrupt",
    "approval.respond",
    "question.answer",
    "events.subscribe",
    "search",
    "models.list",
    "models.set",
    "tools.list",
    "tool.run",
    "command.list",
    "command.run",
    "skills.list",
    "config.get",
    "config.set",
    "tasks.list",
    "seat.list",
    "taste.list",
    "taste.edit",
    "memory.query",
    "inbox.list",
    "inbox.update",
]
FIXED_EVENTS = [
    "session.created",
    "session.updated",
    "turn.started",
    "turn.completed",
    "message.delta",
    "reasoning.delta",
    "message.completed",
    "tool.started",
    "tool.output",
    "tool.completed",
    "usage.updated",
    "context.compacted",
    "approval.requested",
    "approval.resolved",
    "question.asked",
    "notice",
    "ui.panel",
    "handoff.written",
    "task.updated",
    "decision.queued",
    "taste.updated",
    "inbox.updated",
    "sync.updated",
]

DEFS = generate.document()["$defs"]
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | text
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner)
)


def instances(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type that the schema uses."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(instances, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        return st.lists(instances(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(text, instances(args[1]), max_size=3)
    if dataclasses.is_dataclass(hint):
        return bodies(hint)  # type: ignore[arg-type]
    table = {str: text, int: st.integers(), bool: st.booleans(), Any: values, type(None): st.none()}
    return st.floats(allow_nan=False, allow_infinity=False) if hint is float else table[hint]


def bodies(cls: type) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    return st.builds(
        cls, **{item.name: instances(hints[item.name]) for item in dataclasses.fields(cls)}
    )


def raw(type_: str, body: Any, **more: Any) -> bytes:
    return json.dumps({"id": "1", "type": type_, "body": body, **more}).encode()


def code(data: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_command(data)
    return caught.value.code


def test_schema_file_is_what_the_classes_give() -> None:
    assert generate.TARGET.read_text() == generate.text(), "run python -m exo.tools.protocol"


def test_every_fixed_name_is_there_and_at_most_thirty() -> None:
    assert list(COMMANDS) == FIXED_COMMANDS and list(EVENTS) == FIXED_EVENTS
    assert max(len(COMMANDS), len(EVENTS)) <= 30


@pytest.mark.parametrize("table", [COMMANDS, EVENTS])
def test_registry_refuses_the_thirty_first_and_a_twin(
    table: dict[str, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "COMMANDS", full := dict.fromkeys(map(str, range(29)), object))

    class Body:
        pass

    schema.register(full, "thirtieth", Body)
    for name in ("one.more", "thirtieth"):
        with pytest.raises(ValueError, match="more than 30"):
            schema.register(full, name, Body)
    with pytest.raises(ValueError, match="twice"):
        schema.register(table, next(iter(table)), Body)


@pytest.mark.parametrize(
    "cls", dict.fromkeys([*COMMANDS.values(), *EVENTS.values(), *RESULTS.values()])
)
def test_every_body_round_trips_and_fits_its_schema(cls: type) -> None:
    checker = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{cls.__name__}", "$defs": DEFS})

    @settings(max_examples=5, deadline=None)
    @given(bodies(cls))
    def check(body: Any) -> None:
        data = json.loads(json.dumps(to_json(body)))
        assert from_json(cls, data, "x") == body
        checker.validate(data)

    check()


@settings(max_examples=30, deadline=None)
@given(text, st.integers(1, 2**53), st.none() | text, st.dictionaries(text, values, max_size=3))
def test_envelopes_are_one_line_of_json_that_reads_back(
    id_: str, seq: int, session: str | None, body: dict[str, Any]
) -> None:
    for envelope in (
        Command(id_, "t", body),
        Event(id_, seq, session, "notice", 1, body),
        Response(id_, True, body),
        failure(id_, "bad", id_),
    ):
        line = encode(envelope)
        assert b"\n" not in line
        assert from_json(type(envelope), json.loads(line), "x") == envelope


def test_absent_optional_fields_stay_out_of_the_wire() -> None:
    line = json.loads(encode(Response("1", True, to_json(schema.SessionRef("s")))))
    assert line == {"id": "1", "ok": True, "result": {"session": "s"}}
    assert to_json(schema.SessionCreate()) == {}
    assert json.loads(encode(Event("e1", 1, None, "notice", 5, {})))["session"] is None


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b"\xff\xfe\x00", "bad_json"),
        (b"NaN", "bad_json"),
        (b'{"id":"1","type":"config.set","body":{"key":"k","value":NaN}}', "bad_json"),
        (b'{"id":"1","type":"config.set","body":{"key":"k","value":1e999}}', "bad_json"),
        (
            b'{"id":"1","type":"config.set","body":{"key":"k","value":' + b"9" * 5000 + b"}}",
            "bad_json",
        ),
        (b'{"id":"1","id":"2","type":"hello"}', "bad_json"),
        (b'{"id":"1","type":"turn.send","body":{"session":"s","text":"\\ud800"}}', "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "bad_json"),
        (b"[]", "bad_envelope"),
        (b"null", "bad_envelope"),
        (b"{}", "bad_envelope"),
        (b'{"id":1,"type":"hello"}', "bad_envelope"),
        (b'{"id":"1","type":"hello","body":[]}', "bad_envelope"),
        (b'{"id":"1","type":"hello","body":{},"more":1}', "bad_envelope"),
        (raw("no.such", {}), "unknown_command"),
        (raw("", {}), "unknown_command"),
        (raw("hello", {"protocol": 1, "client": "x", "extra": 1}), "bad_body"),
        (raw("hello", {"client": "x"}), "bad_body"),
        (raw("hello", {"protocol": True, "client": "x"}), "bad_body"),
        (raw("hello", {"protocol": 1.0, "client": "x"}), "bad_body"),
        (raw("hello", {"protocol": "1", "client": "x"}), "bad_body"),
        (raw("hello", {"protocol": None, "client": "x"}), "bad_body"),
        (raw("turn.send", {"session": "s", "text": "t", "mode": "shout"}), "bad_body"),
        (raw("turn.send", {"session": "s", "text": "t", "mode": ["send"]}), "bad_body"),
        (raw("models.set", {"role": "main", "routes": [1]}), "bad_body"),
        (raw("models.set", {"role": "main", "routes": "a"}), "bad_body"),
        (raw("tool.run", {"session": "s", "tool": "t", "args": []}), "bad_body"),
        (raw("config.set", {"key": "k", "value": None}), "bad_body"),
        (raw("config.set", {"key": "k", "value": {}}), "bad_body"),
    ],
)
def test_malformed_commands_get_their_code(data: bytes, wanted: str) -> None:
    assert code(data) == wanted


def test_optional_fields_may_be_absent_or_null() -> None:
    for body in ({"session": "s", "text": "t"}, {"session": "s", "text": "t", "mode": None}):
        assert decode_command(raw("turn.send", body))[1].mode is None
    assert decode_command(b'{"id":"1","type":"models.list"}')[1] == schema.ModelsList()


def test_nesting_is_taken_up_to_its_limit() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + "]" * depth

    assert read_json(nested(DEPTH))
    with pytest.raises(ValueError, match="nested"):
        read_json(nested(DEPTH + 2))


def test_id_of_a_malformed_command_is_given_back_where_it_can_be() -> None:
    assert command_id(raw("no.such", {})) == "1"
    for data in (b"", b"[]", b'{"id":5}', b'{"id":"\\ud800"}', b'{"id":"a\\u0000"}', b"\xff"):
        assert command_id(data) == ""


def test_half_a_surrogate_pair_from_a_model_does_not_break_the_line() -> None:
    line = encode(Event("e1", 1, "s", "notice", 1, {"text": "a\ud83d"}))
    assert json.loads(line)["body"]["text"] == "a?"


def test_an_error_never_echoes_a_whole_request() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_command(raw("hello", {"x" * 100_000: 1}))
    assert len(encode(failure("1", caught.value.code, str(caught.value)))) < 2000


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | values.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_decode_or_are_refused_by_type(data: bytes) -> None:
    try:
        decode_command(data)
    except ProtocolError as error:
        assert error.code in ("bad_json", "bad_envelope", "unknown_command", "bad_body")
