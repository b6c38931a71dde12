"""The parts of README.md that are written from the code: the file tree (from what each module says of
itself) and the table of settings. `python -m exo.tools.readme` writes them anew; a test says when they
are stale."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from exo.core.base.settings import TABLE

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 96  # letters of a phrase
FOLDERS = {
    ".ci": "what the build machine runs",
    "core": "the engine: one daemon, budgeted, standard library + PyNaCl + httpx",
    "core/base": "open to every room: errors, files, clock, settings, sockets",
    "core/protocol": "commands in, events out",
    "core/server": "numbers, saves, sends",
    "core/engine": "sessions and turns",
    "core/context": "what a model gets to read",
    "core/router": "which model answers, and how it is spoken to",
    "core/toolbox": "tools and how they run",
    "core/plugins": "hooks, slots and what others add",
    "core/decide": "typed questions, answered with probabilities",
    "core/gate": "what may be done without asking: axes, policies, the floor",
    "core/ledger": "the signed record",
    "core/store": "what is known: beliefs, rules, items",
    "core/retrieve": "finding it again",
    "core/substrate": "what no model can change: artifacts, secrets",
    "core/sandbox": "code that a model wrote, inside WebAssembly",
    "tools/workbench": "a plugin: the tools on the machine (files, shell, web)",
    "tools/gate": "safety by consequence: what a call does, and who is asked",
    "models": "every local model behind one socket",
    "models/training": "how exo-decide is made, and what from",
    "board": "what the hardware is: profiles, ports, fakes",
    "board/os": "a board's system: units, user, rules, and what installs them",
    "board/panel": "MicroPython: the firmware of a Pico with screen and buttons",
    "device": "the handheld: states, pages, buttons, voice",
    "device/layouts": "pages of finer panels: colour, e-paper",
    "tools": "programs for a PC: the exo command and the benches",
    "tools/benches": "one module a bench",
    "tools/benches/gate": "labelled tool calls for the gate, and their reader",
    "tools/benches/quality": "the authored retrieval set and what asks it",
    "tools/assistant": "a plugin: what is understood without a model, in three languages",
    "tools/assistant/language": "words, forms and answers of commands, a file a language",
    "tools/providers": "a plugin: ways to speak to models beyond the usual one",
    "tools/tui": "the client in panes, on a socket or at the end of a cable",
    "tools/agent": "a plugin: tools that are written while Exo runs",
    "tools/learning": "learning from the person's verdicts at night, as a plugin",
    "tools/tasks": "a plugin: what comes at its time",
    "tools/guest": "MicroPython: modules that code in the sandbox may import",
    "tools/benches/useful": "authored requests, an invented person, questions, and what asks them",
    "tools/importers": "one module a source of notes",
    "tests": "mirrors the rooms; test_tiny.py tells the whole product",
}
FILES = {
    ".ci/run": "./flash.sh test",
    "board/os/install.sh": "./flash.sh install and uninstall",
    "flash.sh": "set-up, run, test, install on a board",
    "pyproject.toml": "packages, extras with their reasons, style and types",
    "models/models.toml": "every model file: size, hash, licence, where it comes from",
    "core/decide/mechanisms.toml": "the questions that the product asks itself",
    "core/router/catalog.toml": "providers of models and the roles they play",
    "core/engine/sessions.sql": "the tables of sessions.sqlite",
    "core/ledger/schema.sql": "the tables and triggers of ledger.sqlite, format 1",
    "core/protocol/schema.json": "the protocol as JSON Schema, generated",
    "tests/test_tiny.py": "the whole product in one file, in seconds",
}


def tree() -> str:
    """The block's lines: folders first read, then their files, two spaces a level."""
    paths = {ROOT / name for name in FILES if (ROOT / name).exists()}
    for room in ("core", "models", "board", "device", "tools"):
        paths |= {path for path in (ROOT / room).rglob("*.py") if path.read_text().strip()}
    lines: list[str] = []
    told: set[str] = set()
    for path in sorted(paths, key=_order):
        name = path.relative_to(ROOT).as_posix()
        parts = name.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in told:
                told.add(folder)
                lines.append(_line(depth - 1, f"{parts[depth - 1]}/", FOLDERS[folder]))
        lines.append(_line(len(parts) - 1, parts[-1], FILES.get(name) or phrase(path)))
    return "\n".join(lines) + "\n"


def phrase(path: Path) -> str:
    """The first sentence of a module's docstring, cut at a clause when it is long."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    first = re.split(r"(?<=[^.])\.(?: |$)", text, maxsplit=1)[0]
    if len(first) > WIDTH:
        first = first.partition(": ")[0]
    while len(first) > WIDTH:
        head = re.split(r"[,;(](?=[^,;(]*$)", first, maxsplit=1)[0].rstrip()
        first = head if head != first else first[:WIDTH].rsplit(" ", 1)[0] + " ..."
    return first


def settings() -> str:
    """The table of settings."""
    lines = ["| setting | default | what it is |", "|---|---|---|"]
    for row in TABLE:
        unit = f" {row.unit}" if row.unit else ""
        choices = f" ({', '.join(row.choices)})" if row.choices else ""
        lines.append(f"| `{row.name}` | {row.default}{unit} | {row.meaning}{choices} |")
    return "\n".join(lines) + "\n"


def rewrite(page: str) -> str:
    """Return `page` with the generated blocks made anew. Raises ValueError when a marker is missing."""
    parts = {"tree": f"```text\n{tree()}```\n", "settings": settings()}
    for name, text in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        found = re.search(pattern, page, re.DOTALL)
        if found is None:
            raise ValueError(f"README.md has no <!-- {name} --> ... <!-- /{name} --> block")
        page = page[: found.end(1)] + text + page[found.start(2) :]
    return page


def _order(path: Path) -> tuple[list[tuple[bool, str]], str]:
    """Files of a folder before its folders."""
    parts = path.relative_to(ROOT).parts
    return [(depth < len(parts) - 1, part) for depth, part in enumerate(parts)], path.name


def _line(depth: int, name: str, text: str) -> str:
    return f"{'  ' * depth}{name:{30 - 2 * depth}} {text}"


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(rewrite(page.read_text()))
    sys.stdout.write(f"wrote {page}\n")
