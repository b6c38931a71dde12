"""Writes schema.json (JSON Schema 2020-12) and exo.ts (TypeScript types) from the dataclasses, so that
clients in other languages agree with the server by construction. A test compares the checked-in files
with what this makes."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal

from exo.core.protocol import schema

TARGET = Path(schema.__file__).with_name("schema.json")
TYPES = Path(schema.__file__).with_name("exo.ts")
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


def typescript() -> str:
    """The same as TypeScript: an interface a class; tables from a type's name to its body; AnyCommand
    and AnyEvent, whose `type` tells which body they carry."""
    schema_ = document()
    lines = [f"// {schema_['title']}. Made by exo.tools.protocol; do not edit.", ""]
    lines.append(f"export const PROTOCOL = {schema.VERSION};")
    for name, shape in schema_["$defs"].items():
        lines += ["", *([f"/** {shape['description']} */"] if "description" in shape else [])]
        lines.append(f"export interface {name} {{")
        for key, value in shape["properties"].items():
            mark = "" if key in shape["required"] else "?"
            lines.append(f"  {key}{mark}: {_ts(value)};")
        lines.append("}")
    for name in ("commands", "results", "events"):
        lines += ["", f"export interface {name.capitalize()} {{"]
        lines += [f'  "{key}": {_ts(value)};' for key, value in schema_[name].items()]
        lines.append("}")
    for name in ("Command", "Event"):
        one = f'Omit<{name}, "type" | "body"> & {{ type: K; body: {name}s[K] }}'
        lines += ["", f"export type Any{name} = {{ [K in keyof {name}s]: {one} }}[keyof {name}s];"]
    return "\n".join(lines) + "\n"


def _ts(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"]).rpartition("/")[2]
    if "anyOf" in shape:
        return " | ".join(_ts(item) for item in shape["anyOf"])
    if "enum" in shape:
        return " | ".join(json.dumps(item) for item in shape["enum"])
    kind = shape.get("type")
    if kind == "array":
        return f"Array<{_ts(shape['items'])}>"
    if kind == "object":
        return f"Record<string, {_ts(shape['additionalProperties'])}>"
    return {"integer": "number", None: "unknown"}.get(kind, str(kind))


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
    for path, made in ((TARGET, text()), (TYPES, typescript())):
        path.write_text(made)
        sys.stdout.write(f"wrote {path}\n")
