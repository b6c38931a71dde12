"""JSON schemas as llama.cpp grammars, and how a request's tools and format bind its reply.

The converter is our own because what it allows must always come to an end: a small model fills an
unbounded text or list until its tokens run out, and the JSON is then cut off. Spacing is that of
json.dumps, so that a call reads back as it was written.

Invariant: every text that a grammar of `gbnf` allows parses as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from exo.core.base.errors import ContextOverflow
from exo.models.replies import BadRequest
from exo.models.requests import ChatRequest, Tool, compact
from exo.models.template import CLOSE, OPEN

TEXT, ITEMS, DEPTH = 240, 12, 3  # letters in a text, items in a list, levels of free JSON, at most
CALL_TOKENS = 768  # a call may take this many tokens whatever the reply's limit is
SIZE = 200_000  # letters of grammar at most
CHOICES = 2000  # alternatives in a grammar at most: each is looked at for every word of the model

# no \\u escapes: letters are written as they are, and half a pair is no text
_BASE = r"""char ::= [^"\\\x7F\x00-\x1F] | "\\" ["\\bfnrt]
int ::= "0" | [1-9] [0-9]{0,8}
integer ::= "-"? int
number ::= "-"? int ("." [0-9]{1,6})?
boolean ::= "true" | "false"
null ::= "null"
"""


def gbnf(schema: dict[str, Any]) -> str:
    """The grammar of a JSON schema; {} allows any object. Raises BadRequest for one that cannot be met.
    Read: type, properties, required, items, enum, const, anyOf, oneOf, allOf, $ref to the same schema,
    minLength, maxLength, minItems, maxItems, minimum and maximum of small ranges of integers (of larger
    ones the sign and the digits). Other keywords are not enforced."""
    writer = _Grammar(schema)
    try:
        name = writer.rule(schema or {"type": "object"}, "")
        text = f"root ::= {name}\n{_BASE}" + "".join(writer.lines)
        text.encode()  # half a pair of letters is none
    except BadRequest:
        raise
    except RecursionError as error:
        raise BadRequest("read the JSON schema", "it is too deep") from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        why = f"a keyword's value is of the wrong kind ({error})"
        raise BadRequest("read the JSON schema", why) from error
    return text


class _Grammar:
    def __init__(self, whole: dict[str, Any]) -> None:
        self._whole = whole
        self._size = self._choices = 0
        self.lines: list[str] = []
        self._count = 0
        self._refs: dict[str, str] = {}

    def rule(self, schema: Any, where: str) -> str:
        """Return the name of a rule for `schema`."""
        if schema is True or schema == {}:
            return self._free(DEPTH)
        if not isinstance(schema, dict):
            raise BadRequest("read the JSON schema", f"{where or 'it'} is no object")
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), where)
        if "const" in schema:
            return self._add(_literal(schema["const"]))
        if "enum" in schema:
            if not isinstance(schema["enum"], list) or not schema["enum"]:
                raise BadRequest("read the JSON schema", f"{where}: an enum without values")
            return self._add(" | ".join(_literal(each) for each in schema["enum"]))
        if parts := schema.get("anyOf") or schema.get("oneOf"):
            return self._add(" | ".join(self.rule(each, where) for each in parts))
        if parts := schema.get("allOf"):
            return self.rule(_merged(schema, parts), where)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._add(" | ".join(self.rule({**schema, "type": k}, where) for k in kind))
        return self._typed(schema, kind, where)

    def _typed(self, schema: dict[str, Any], kind: object, where: str) -> str:
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, where)
        if kind == "array" or (kind is None and "items" in schema):
            return self._array(schema, where)
        if kind == "string":
            low = _count(schema, "minLength", 0, TEXT)
            high = max(low, _count(schema, "maxLength", TEXT, 1500))
            return self._add(f'"\\"" char{{{low},{high}}} "\\""')
        if kind in ("integer", "number"):
            return self._number(schema, kind == "integer")
        if kind in ("boolean", "null"):
            return str(kind)
        if kind is None:
            return self._free(DEPTH)
        raise BadRequest("read the JSON schema", f"{where or 'it'} has the unknown type {kind!r}")

    def _number(self, schema: dict[str, Any], whole: bool) -> str:
        """A small range of integers is listed; else the sign and the digits are bounded."""
        low, high = schema.get("minimum"), schema.get("maximum")
        low = low if isinstance(low, int | float) else schema.get("exclusiveMinimum", -1)
        if whole and isinstance(low, int) and isinstance(high, int) and 0 <= high - low <= 200:
            return self._add(" | ".join(f'"{value}"' for value in range(low, high + 1)))
        digits = len(str(int(high))) if isinstance(high, int | float) and high >= 0 else 9
        if not isinstance(low, int | float) or low < 0:
            return "integer" if whole else "number"
        body = f"[1-9] [0-9]{{0,{digits - 1}}}" + ("" if low >= 1 else ' | "0"')
        return self._add(body if whole else f'({body}) ("." [0-9]{{1,6}})?')

    def _object(self, schema: dict[str, Any], where: str) -> str:
        properties = schema.get("properties") or {}
        if not isinstance(properties, dict):
            raise BadRequest("read the JSON schema", f"properties of {where or 'it'} are no object")
        if not properties:
            return self._free(DEPTH, objects=True)
        needed = set(schema.get("required") or ())
        pairs = []
        for name, each in properties.items():
            value = self.rule(each, f"{where}.{name}")
            pairs.append((f"{_quoted(json.dumps(name) + ': ')} {value}", name in needed))
        return self._add(f'"{{" {_members(pairs)} "}}"')

    def _array(self, schema: dict[str, Any], where: str) -> str:
        item = self.rule(schema.get("items", {}), f"{where}[]")
        low = _count(schema, "minItems", 0, ITEMS)
        high = max(low, _count(schema, "maxItems", ITEMS, 100))
        if high == 0:
            return self._add('"[]"')
        body = f'{item} (", " {item}){{{max(0, low - 1)},{high - 1}}}'
        return self._add(f'"[" {body} "]"' if low else f'"[" ({body})? "]"')

    def _free(self, depth: int, objects: bool = False) -> str:
        """Any JSON of at most `depth` levels."""
        text = f'"\\"" char{{0,{TEXT}}} "\\""'
        simple = f"({text} | number | boolean | null)"
        if depth <= 0:
            return self._add(simple)
        inner = self._free(depth - 1)
        pair = f'"\\"" char{{1,40}} "\\": " {inner}'
        whole = f'"{{" ({pair} (", " {pair}){{0,{ITEMS - 1}}})? "}}"'
        if objects:
            return self._add(whole)
        return self._add(f'{simple} | {whole} | "[" ({inner} (", " {inner}){{0,{ITEMS - 1}}})? "]"')

    def _reference(self, path: str, where: str) -> str:
        if path not in self._refs:
            found: Any = self._whole
            for part in path.removeprefix("#").strip("/").split("/"):
                found = found.get(part) if isinstance(found, dict) and part else found
            if not path.startswith("#") or found is None:
                raise BadRequest("read the JSON schema", f"{where}: nothing is at {path}")
            self._refs[path] = name = self._name()
            inner = self.rule(found, path)  # the name stands before: a schema may hold itself
            self._line(name, inner)
        return self._refs[path]

    def _add(self, body: str) -> str:
        name = self._name()
        self._line(name, body)
        return name

    def _line(self, name: str, body: str) -> None:
        """Refused as it grows: a schema of a few hundred letters can unfold without end."""
        self.lines.append(f"{name} ::= {body}\n")
        self._size += len(self.lines[-1])
        self._choices += body.count(" | ")
        if self._size > SIZE or self._choices > CHOICES:
            raise BadRequest("read the JSON schema", "its grammar would be too large")

    def _name(self) -> str:
        self._count += 1
        return f"r{self._count}"


def _members(pairs: list[tuple[str, bool]]) -> str:
    """Members in their order, those not needed optional, with commas only between two."""
    anchor = next((index for index, (_, needed) in enumerate(pairs) if needed), None)
    if anchor is None:
        starts = [
            " ".join([pair, *(f'(", " {rest})?' for rest, _ in pairs[index + 1 :])])
            for index, (pair, _) in enumerate(pairs)
        ]
        return f"({' | '.join(starts)})?"
    parts = [f'({pair} ", ")?' for pair, _ in pairs[:anchor]]
    parts.append(pairs[anchor][0])
    for pair, needed in pairs[anchor + 1 :]:
        parts.append(f'", " {pair}' if needed else f'(", " {pair})?')
    return " ".join(parts)


def _merged(schema: dict[str, Any], parts: list[Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"properties": {}, "required": []}
    for each in [{k: v for k, v in schema.items() if k != "allOf"}, *parts]:
        if isinstance(each, dict):
            out["properties"] |= each.get("properties", {})
            out["required"] += each.get("required", [])
            out |= {k: v for k, v in each.items() if k not in ("properties", "required")}
    return out if out["properties"] else {k: v for k, v in out.items() if v}


def _literal(value: object) -> str:
    return _quoted(compact(value))


def _quoted(text: str) -> str:
    """Text as a GBNF string."""
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{body}"'


def _count(schema: dict[str, Any], key: str, default: int, most: int) -> int:
    value = schema.get(key, default)
    return max(0, min(most, value)) if isinstance(value, int) else default


@dataclass(frozen=True)
class Plan:
    """How a reply comes about. `offered` tools stand in the prompt; `aside` is a note at its end;
    `start` are the reply's first words, put in its mouth; `grammar` binds it from there; `trigger` is
    what opens a call, `call_grammar` binds what follows; `call`: the reply is a call whatever it says."""

    limit_tokens: int | None = None
    offered: tuple[Tool, ...] = ()
    aside: str = ""
    start: str = ""
    grammar: str = ""
    trigger: str = ""
    call_grammar: str = ""
    call: bool = False

    def limit(self, default: int) -> int:
        """Tokens of the reply at most. A call is bounded by its grammar: cut off it would not parse."""
        if self.call or self.trigger:
            return max(self.limit_tokens or default, CALL_TOKENS)
        return self.limit_tokens or default

    def read_call(self, text: str) -> tuple[str, str]:
        """(name, arguments as JSON text) of what was written from the trigger on."""
        body = text.strip().removeprefix(OPEN).removesuffix(CLOSE).strip()
        if self.start.endswith('"arguments": '):
            body += "}"  # the grammar of one tool ends with its arguments
        try:
            value = json.loads(body)
        except ValueError as error:
            why = "the window ended before the arguments did"
            raise ContextOverflow(
                "write a tool call", why, "send less of the conversation"
            ) from error
        return str(value["name"]), compact(value["arguments"])


def plan(request: ChatRequest, mode: str) -> Plan:
    """`mode` is the catalog's: auto or forced. Raises BadRequest for a schema that cannot be met."""
    limit = request.max_tokens
    offered = request.tools if mode == "auto" else ()
    if request.schema is not None:
        return Plan(limit, offered, grammar=gbnf(request.schema))
    if not request.tools or request.choice == "none":
        return Plan(limit, offered)
    if request.choice == "auto":
        if mode != "auto":
            return Plan(limit)
        return Plan(limit, offered, trigger=OPEN, call_grammar=_calls(request.tools))
    wanted = tuple(tool for tool in request.tools if request.choice in ("required", tool.name))
    aside = "" if offered else _aside(wanted)
    if len(wanted) == 1:
        start = f'{OPEN}\n{{"name": {json.dumps(wanted[0].name)}, "arguments": '
        grammar = gbnf(_object_schema(wanted[0]))
        return Plan(limit, offered, aside, start, grammar, call=True)
    return Plan(limit, offered, aside, f"{OPEN}\n", _calls(wanted), call=True)


def _calls(tools: tuple[Tool, ...]) -> str:
    """The grammar of a call's object, of any of the tools."""
    options = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": _object_schema(tool)},
            "required": ["name", "arguments"],
        }
        for tool in tools
    ]
    text = gbnf({"anyOf": options})
    return text.replace("root ::= ", 'root ::= "\\n"? ', 1)


def _object_schema(tool: Tool) -> dict[str, Any]:
    schema = tool.parameters
    if schema.get("type") == "object" and not schema.get("properties"):
        return {"const": {}}  # a tool without parameters takes none
    return schema


def _aside(tools: tuple[Tool, ...]) -> str:
    lines = [
        f"{tool.name}: {tool.description} Arguments: {compact(_short(tool.parameters))}"
        for tool in tools
    ]
    return "Write the function call for the last message.\n" + "\n".join(lines)


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in the few words that a small model reads."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: each.get("description") or each.get("enum") or each.get("type") or "any"
        for name, each in properties.items()
        if isinstance(each, dict)
    }
