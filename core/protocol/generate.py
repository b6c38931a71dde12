"""Writes schema.json (JSON Schema 2020-12) from the dataclasses, so that clients in other languages
agree with the server by construction. A test compares the checked-in file with what this makes."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal

from exo.core.protocol import schema

TARGET = Path(__file__).with_name("schema.json")
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def document() -> dict[str, Any]:
    """The whole schema: $defs of every class; the tables map a type's name to its body."""
    defs: dict[str, Any] = {}
    tables = {
        "commands": {name: _reference(cls, defs) for name, cls in schema.COMMANDS.items()},
        "results": {name: _reference(schema.RESULTS[name], defs) for name in schema.COMMANDS},
        "events": {name: _reference(cls, defs) for name, cls in schema.EVENTS.items()},
    }
    envelopes = [_reference(c, defs) for c in (schema.Command, schema.Response, schema.Event)]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Exo protocol {schema.VERSION}",
        "anyOf": envelopes,
        "protocol": schema.VERSION,
        **tables,
        "$defs": dict(sorted(defs.items())),
    }


def text() -> str:
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def _reference(cls: type, defs: dict[str, Any]) -> dict[str, Any]:
    if cls.__name__ not in defs:
        defs[cls.__name__] = {}  # a place-holder, for a class that refers to itself
        defs[cls.__name__] = _object(cls, defs)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _object(cls: type, defs: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    result: dict[str, Any] = {
        "type": "object",
        "properties": {item.name: _type(hints[item.name], defs) for item in fields},
        "required": [
            item.name
            for item in fields
            if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        ],
        "additionalProperties": False,
    }
    if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):
        result["description"] = " ".join(cls.__doc__.split())
    return result


def _type(hint: Any, defs: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_type(item, defs) for item in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list:
        return {"type": "array", "items": _type(args[0], defs)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(args[1], defs)}
    if hint is type(None):
        return {"type": "null"}
    if dataclasses.is_dataclass(hint):
        return _reference(typing.cast(type, hint), defs)
    return {"type": _PLAIN[hint]}


if __name__ == "__main__":
    TARGET.write_text(text())
    sys.stdout.write(f"wrote {TARGET}\n")
