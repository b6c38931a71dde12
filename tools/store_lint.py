"""What is wrong in the curated files of a store, and what may be: `exo store lint`. Owns the checks; changes
nothing.

Invariant: the empty template has no findings; every finding names its file, and its line where there is one."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from exo.core.context.redact import redact
from exo.core.store.nodes import KEYS, LISTS, TYPES, BadNode, front, text_of
from exo.core.store.store import Store
from exo.core.store.views import FRAME, Finding

PAGE = 8000  # characters that PACK.md may have: it is read on every request
LINKS = (
    *("part-of", "explains", "evidence-for", "contradicts", "supersedes", "applies-to"),
    *("instance-of", "see-also", "derived-from"),
)
_CHOICES = {
    "type": TYPES,
    "confidence": ("high", "medium", "low"),
    "stability": ("core", "durable", "volatile"),
}
_OPTIONAL = ("valid_until", "tags")
_DATE = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\S+)?)?")
_ENTRY = re.compile(r"[0-9a-f]{64}")
_ROUTE = re.compile(r"(?:->|→)\s*\[{0,2}([\w.:/-]+)")
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+\d[\d ()/-]{7,17}\d|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}|0\d{2,4}[ /-]\d{5,9})(?![\w-])"
)
_NAMING = re.compile(r"\s(?:is|ist|lautet|est|es|war|was)\s")


def lint(store: Store) -> tuple[list[Finding], list[Finding]]:
    """(errors, warnings) of the files as they lie there now."""
    views = store.views
    errors, warnings = set(views.faults()), set[Finding]()
    errors |= {
        Finding(name, 0, "it is missing") for name in FRAME if not (views.folder / name).exists()
    }
    tables: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for path, _ in list(views.walk()):
        with suppress(OSError):
            data = (views.folder / path).read_bytes()
            try:
                texts[path] = text_of(path, data)
                if path.startswith("nodes/"):
                    tables[path] = front(path, data)[0]
            except BadNode as error:
                errors.add(Finding(path, error.line, error.why))
    errors |= {Finding(path, 0, what) for path, what in views.named.items()}
    ids = {str(table.get("id", PurePosixPath(path).stem)) for path, table in tables.items()}
    for path, table in tables.items():
        lines = texts[path].splitlines()
        for key, what in _keys(path, table):
            errors.add(Finding(path, _line(lines, key), what))
        for link in table.get("links", ()):
            to = str(link.get("to", "")) if isinstance(link, dict) else ""
            if to and to not in ids:
                other = warnings if ":" in to else errors
                other.add(
                    Finding(
                        path, _line(lines, "links"), f"its link leads to {to}, which is not here"
                    )
                )
        for source in table.get("sources", ()):
            if _ENTRY.fullmatch(str(source)) and not store.entry_of(str(source)):
                what = f"its source {str(source)[:12]} is not in the ledger"
                warnings.add(Finding(path, _line(lines, "sources"), what))
    for path, text in texts.items():
        if path == "PACK.md" and len(text) > PAGE:
            warnings.add(Finding(path, 0, f"it has {len(text)} characters; one page is {PAGE}"))
        for number, line in enumerate(text.splitlines(), 1):
            for to in (
                _ROUTE.findall(line) if path == "INDEX.md" and line.startswith(("-", "*")) else ()
            ):
                if to not in ids:
                    (warnings if ":" in to else errors).add(
                        Finding(path, number, f"it names the unknown node {to}")
                    )
            if _PHONE.search(line):
                errors.add(Finding(path, number, "it holds what looks like a phone number"))
            if redact(line) != line:
                plain = _NAMING.sub(" ", line)  # "the token is short" names no secret for sure
                where = errors if redact(plain) != plain else warnings
                where.add(
                    Finding(path, number, "it holds what looks like a password, key or token")
                )
    return _sorted(errors), _sorted(warnings)


def _keys(path: str, table: dict[str, Any]) -> list[tuple[str, str]]:
    """(key, what is wrong with it) in the front matter of a node."""
    found = [
        (key, f"the key {key} is missing")
        for key in KEYS
        if key not in table and key not in _OPTIONAL
    ]
    for key, value in table.items():
        kind = list if key in LISTS else str
        if key not in KEYS:
            found.append((key, f"the key {key} is not known"))
        elif not isinstance(value, kind):
            found.append((key, f"the key {key} wants a {'list' if kind is list else 'text'}"))
        elif key in _CHOICES and value not in _CHOICES[key]:
            found.append((key, f"{key} is one of {', '.join(_CHOICES[key])}"))
        elif key.startswith("valid_") and not _DATE.fullmatch(str(value)):
            found.append((key, f"{key} is a date like 2026-11-30, or empty"))
        elif key == "links" and not all(
            isinstance(each, dict) and each.get("type") in LINKS and each.get("to")
            for each in value
        ):
            found.append((key, f"a link is {{type, to}}, its type one of {', '.join(LINKS)}"))
    for key, wanted in (
        ("id", PurePosixPath(path).stem),
        ("domain", PurePosixPath(path).parent.name),
    ):
        if table.get(key, wanted) != wanted:
            found.append((key, f"{key} does not match the path: {wanted} is wanted"))
    if len(PurePosixPath(path).parts) != 3 or not path.endswith(".md"):
        found.append(("", "a node lies at nodes/DOMAIN/ID.md"))
    return found


def _line(lines: list[str], key: str) -> int:
    return next(
        (n for n, line in enumerate(lines, 1) if re.match(rf"{re.escape(key)}\s*=", line)), 1
    )


def _sorted(found: set[Finding]) -> list[Finding]:
    return sorted(found, key=lambda each: (each.path, each.line, each.what))
