"""JSON to the schema's dataclasses and back. Strict on the way in: an unknown type, an unknown or
missing field, a wrong type each get their code. Optional fields that are None are left out."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from typing import Any, Literal, TypeVar

from exo.core.base.errors import ProtocolError
from exo.core.protocol.schema import COMMANDS, Command, Error, Event, Message, Response

T = TypeVar("T")
DEPTH = 100  # how deep objects and lists may lie in each other: far from Python's own limit


def decode_command(raw: bytes | str) -> tuple[Command, Any]:
    """Return the envelope and its decoded body. Raises ProtocolError with code bad_json,
    bad_envelope, unknown_command or bad_body; `command_id` tells the id when it could be read."""
    try:
        value = read_json(raw)
    except ValueError as error:
        raise refused("bad_json", "read a command", f"no JSON: {error}") from error
    command = from_json(Command, value, "command", code="bad_envelope")
    if command.type not in COMMANDS:
        raise refused("unknown_command", f"command {command.type!r}", "there is none of that name")
    return command, from_json(COMMANDS[command.type], command.body, command.type)


def read_json(raw: bytes | str) -> Any:
    """Return the value of `raw`, which can then be saved and sent on. Raises ValueError for what is
    no JSON, for twin keys, lone surrogates, numbers past a float's range, and nesting over DEPTH."""
    try:
        value = json.loads(raw, object_pairs_hook=_no_twins)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    level, depth = [value], 0
    while level := [child for each in level for child in _children(each)]:
        depth += 1
        if depth > DEPTH:
            raise ValueError(f"it is nested deeper than {DEPTH}")
    return value


def _children(value: Any) -> list[Any]:
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in found if isinstance(each, dict | list)]


def command_id(raw: bytes | str) -> str:
    """The id of a command that may be malformed, "" when there is none."""
    try:
        value = json.loads(raw).get("id", "")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return value if isinstance(value, str) and value.isprintable() else ""


def refused(code: str, what: str, why: str = "") -> ProtocolError:
    return ProtocolError(what, why, code=code)


def failure(id_: str, code: str, message: str) -> Response:
    """`message` may quote what the client sent, so it is cut."""
    return Response(id_, False, None, Error(code, message[:1000]))


def sendable(text: str) -> str:
    """`text` with a question mark for each lone surrogate: UTF-8, and so the wire, has none."""
    return text.encode("utf-8", "replace").decode()


def encode(envelope: Command | Response | Event) -> bytes:
    """One line of JSON, without the line's end."""
    value = to_json(envelope) if isinstance(envelope, Response) else vars(envelope)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")  # a model may send half a surrogate pair


def to_json(value: Any) -> Any:
    """Return a dataclass (and what it holds) as plain JSON values; absent optionals stay out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(item) for name, item in vars(value).items() if item is not None}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    return value


def read_message(data: str) -> Message:
    """A message as it was saved."""
    return from_json(Message, json.loads(data), "message")


def from_json(cls: type[T], value: Any, where: str, code: str = "bad_body") -> T:
    """Build `cls` from a JSON object. Raises ProtocolError `code` naming the field."""
    if not isinstance(value, dict):
        raise refused(code, where, "an object is wanted")
    hints: dict[str, Any] = _hints(typing.cast(Any, cls))
    if unknown := sorted(value.keys() - hints.keys()):
        raise refused(code, where, f"there is no field {unknown[0]!r}")
    needed = dataclasses.MISSING
    for item in dataclasses.fields(cls):  # type: ignore[arg-type]
        if item.name not in value and item.default is needed and item.default_factory is needed:
            raise refused(code, where, f"the field {item.name!r} is missing")
    made = {key: _convert(hints[key], each, f"{where}.{key}", code) for key, each in value.items()}
    return cls(**made)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _convert(hint: Any, value: Any, where: str, code: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        return _union(args, value, where, code)
    if origin is Literal and isinstance(value, str) and value in args:
        return value
    if origin is Literal:
        raise refused(code, where, f"{value!r} is none of {', '.join(args)}")
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast(type, hint), value, where, code)
    if origin is list and isinstance(value, list):
        return [_convert(args[0], item, f"{where}[{n}]", code) for n, item in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {key: _convert(args[1], each, f"{where}.{key}", code) for key, each in value.items()}
    # bool is an int to Python, not to JSON
    if origin is None and type(value) is hint or (hint is float and type(value) is int):
        return value
    kind = "list" if origin is list else "object" if origin is dict else hint.__name__
    raise refused(code, where, f"a value of type {kind} is wanted")


def _union(args: tuple[Any, ...], value: Any, where: str, code: str) -> Any:
    if value is None and type(None) in args:
        return None
    faults = []
    for each in (item for item in args if item is not type(None)):
        try:
            return _convert(each, value, where, code)
        except ProtocolError as error:
            faults.append(error)
    raise faults[0]


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key comes twice")  # readers would differ on which one counts
    return value
