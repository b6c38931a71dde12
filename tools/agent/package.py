"""A tool that a model or a person wrote, as data, and what can be said of it without running it. Pure.

Invariant: what `checked` lets through has a name that is free to be used, a flat schema, an entry that takes what the
schema says, imports that the sandbox has, capabilities that there are, and tests."""

from __future__ import annotations

import ast
import hashlib
import json
import keyword
import re
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError
from exo.tools.guest import library

NAME = re.compile(r"[a-z][a-z0-9_]{2,39}")
SPACE = ("space_read", "space_write", "space_remove", "space_list")
CAN = {"recall": ("recall",), "http": ("http",), "space": SPACE}  # capability to host functions
BUILTIN = (
    "array",
    "binascii",
    "collections",
    "hashlib",
    "heapq",
    "json",
    "math",
    "re",
    "struct",
    "time",
)
TYPES = ("string", "integer", "number", "boolean")
LONGEST = 32_000  # characters of source
WHOLE = 100_000  # characters of all that is kept of a tool
TESTS = 20
MARK = "# /// exo-tool"
_KEYS = {"type", "description", "enum", "minimum", "maximum", "default"}


@dataclass(frozen=True)
class Package:
    """`parameters` is a JSON Schema object; `can` capabilities; each of `tests` {args, expect, host?: {function:
    answer}}."""

    name: str
    description: str
    source: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    can: tuple[str, ...] = ()
    tests: tuple[dict[str, Any], ...] = ()

    def text(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @property
    def code(self) -> str:
        """sha256 of it: an approval or a grant holds for this code alone."""
        return hashlib.sha256(self.text().encode()).hexdigest()


def read_package(text: str) -> Package:
    """From what `text` gave. Raises ExoError."""
    try:
        row = json.loads(text)
        return made(**row)
    except (ValueError, TypeError) as error:
        raise ExoError("read a tool", f"its package is not whole: {error}") from error


def made(name: str, description: str, source: str, **more: Any) -> Package:
    """A package of untrusted values; `can` and `tests` may be lists or JSON. Raises ExoError."""
    try:
        return _made(str(name), description, source, more)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _refused(str(name), f"what it says of itself is not whole: {error}") from error


def _made(name: str, description: str, source: str, more: dict[str, Any]) -> Package:
    values = {
        key: json.loads(each) if isinstance(each, str) else each for key, each in more.items()
    }
    unknown = set(values) - {"parameters", "can", "tests"}
    if unknown:
        raise _refused(name, f"there is no {', '.join(sorted(unknown))} in a tool")
    for key in ("can", "tests"):
        rows = values.get(key) or ()
        if not isinstance(rows, list | tuple):
            raise _refused(name, f"{key} is to be a list")
        values[key] = tuple(rows)
    return checked(Package(name, " ".join(str(description).split()), str(source), **values))


def from_file(path: Path) -> Package:
    """A tool in a file NAME.py: a block of comments `# /// exo-tool` to `# ///` holds description, can,
    parameters and tests as TOML (the form of PEP 723). Raises ExoError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ExoError(f"read {path}", getattr(error, "strerror", None) or str(error)) from error
    head, mark, rest = text.partition(f"{MARK}\n")
    lines = rest.splitlines()
    end = next((n for n, line in enumerate(lines) if line.strip() == "# ///"), None)
    if not mark or end is None:
        do = f"begin it with `{MARK}`, lines of TOML after `# `, and `# ///`"
        raise ExoError(f"read {path}", "it has no block about the tool", do)
    try:
        table = tomllib.loads(
            "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:end])
        )
    except tomllib.TOMLDecodeError as error:
        raise ExoError(f"read {path}", f"its block is no TOML: {error}") from error
    rows = table.get("parameters")
    if isinstance(rows, dict) and "properties" not in rows:
        needed = [name for name, rule in rows.items() if "default" not in dict(rule)]
        table["parameters"] = {"type": "object", "properties": rows, "required": needed}
    source = head + "\n".join(lines[end + 1 :]) + "\n"
    return made(**{"description": "", **table, "name": path.stem, "source": source})


def checked(package: Package) -> Package:
    """The package. Raises ExoError for what is wrong with it."""
    name = package.name
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise _refused(
            name, "a name has 3 to 40 small letters, digits and _, and begins with a letter"
        )
    if not 10 <= len(package.description) <= 400 or not package.description.isprintable():
        raise _refused(name, "its description is to have 10 to 400 printable characters")
    if wrong := set(package.can) - set(CAN):
        raise _refused(name, f"it wants {', '.join(map(str, wrong))}; there are {', '.join(CAN)}")
    _schema(package)
    _source(package)
    if not package.tests:
        raise _refused(name, "it has no test; give at least one: {args, expect}")
    if len(package.tests) > TESTS:
        raise _refused(name, f"it has more than {TESTS} tests")
    text = package.text()
    text.encode()  # raises for half a character
    json.dumps(asdict(package), allow_nan=False)  # and for what is no JSON
    if len(text) > WHOLE:
        raise _refused(name, f"it has more than {WHOLE} characters in all")
    for test in package.tests:
        if not isinstance(test, dict) or not {"args", "expect"} <= test.keys() <= {
            "args",
            "expect",
            "host",
        }:
            raise _refused(name, "a test is {args, expect} and may have {host: {function: answer}}")
        host = test.get("host") or {}
        if not isinstance(test["args"], dict) or not isinstance(host, dict):
            raise _refused(name, "args and host of a test are objects")
        if wrong := set(host) - {each for can in package.can for each in CAN[can]}:
            why = f"a test answers for {min(wrong)[:40]!r}, which it may not call: `can` does not name it"
            raise _refused(name, why)
    return package


def _schema(package: Package) -> None:
    schema, name = package.parameters, package.name
    rows = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(rows, dict) or schema.get("type") != "object" or len(rows) > 16:
        raise _refused(
            name, "its parameters are to be a JSON Schema object of at most 16 properties"
        )
    if set(schema) - {"type", "properties", "required", "additionalProperties"}:
        raise _refused(name, "its schema has keys that are not understood")
    for key, rule in rows.items():
        plain = isinstance(rule, dict) and rule.get("type") in TYPES and set(rule) <= _KEYS
        if not plain or not key.isidentifier() or keyword.iskeyword(key) or len(key) > 40:
            raise _refused(name, f"the parameter {key[:40]!r} is to be one of {', '.join(TYPES)}")
        enum = rule.get("enum", [])
        said = [rule.get("description", ""), rule.get("default", 0)]
        bounds = [rule[each] for each in ("minimum", "maximum") if each in rule]
        fits = isinstance(said[0], str) and isinstance(enum, list) and len(enum) <= 32
        fits = fits and not any(isinstance(each, str) for each in bounds)
        if not fits or not all(map(_short, [*said, *bounds, *enum])):
            raise _refused(name, f"what it says of the parameter {key!r} is refused")
    if not set(schema.get("required", [])) <= rows.keys():
        raise _refused(name, "it requires a parameter that it does not have")


def _short(value: Any) -> bool:
    """A number, a truth value, or a text that a model and a person may be shown."""
    if isinstance(value, str):
        return len(value) <= 200 and value.isprintable()
    return isinstance(value, int | float)


def _source(package: Package) -> None:
    name, source = package.name, package.source
    if len(source) > LONGEST or "\0" in source:
        raise _refused(name, f"its source is to have at most {LONGEST} characters and no NUL")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(name, f"its source does not parse: {error}") from error
    known = {*BUILTIN, *library(), "exo"}
    for node in ast.walk(tree):
        names = [row.name for row in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        if wrong := [each for each in names if each not in known]:
            there = ", ".join(sorted(known))
            raise _refused(name, f"it imports {wrong[0]}, which is not there; there are {there}")
    entry = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
    if len(entry) != 1:
        raise _refused(name, "it needs one function run(...) at its top")
    args = entry[0].args
    taken = [row.arg for row in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    given = list(package.parameters["properties"])
    if args.vararg or args.kwarg or args.posonlyargs or sorted(taken) != sorted(given):
        why = f"run({', '.join(taken)}) does not take what its schema says: {', '.join(given) or 'nothing'}"
        raise _refused(name, why)


def _refused(name: str, why: str) -> ExoError:
    return ExoError(f"take in the tool {name[:60]!r}", why)
