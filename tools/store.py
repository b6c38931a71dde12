"""`exo store init | lint | rebuild | show`: make the store with a few questions, look at it, make its views
again. Reads and prints; what it does to a store is core's."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.store.nodes import Node, table_of
from exo.tools.transcript import visible

if TYPE_CHECKING:  # libsodium and more: loaded when a verb is run
    from exo.core.store.replay import Item
    from exo.core.store.store import Store
    from exo.core.store.views import Finding

# key of the answer -> (question, what it is when --yes is given or nothing is said)
QUESTIONS = {
    "name": ("What may I call you?", ""),
    "languages": ("Which languages do you speak with me?", ""),
    "about": ("What should I know about you, in a sentence or two?", ""),
    "style": ("How should answers be?", "Short; the result first, then the reasons."),
    "ask": (
        "What must never happen without asking you?",
        "Sending, publishing, paying, deleting for good.",
    ),
}
SHOWN = 10  # newest beliefs that `show` prints


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `store` with its verbs to the command line."""
    text = "what is known of you: make it, check it, make it again from the record, show it"
    group = sub.add_parser("store", help=text, description=text)
    verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, run, help_ in (
        ("init", init, "make the store, with a few questions; each may be skipped"),
        ("lint", check, "what is wrong in its files, and what may be; exit 1 with errors"),
        (
            "rebuild",
            rebuild,
            "make every view again from the ledger, after hand edits are recorded",
        ),
        ("show", show, "the pack, numbers and the newest beliefs; or one node or item"),
    ):
        verb = verbs.add_parser(name, help=help_, description=help_)
        verb.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)")
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        if name == "init":
            verb.add_argument("--yes", action="store_true", help="ask nothing, take the defaults")
        if name == "show":
            verb.add_argument("id", metavar="ID", nargs="?", help="a node or an item")
        verb.set_defaults(run=run)


@contextmanager
def opened(options: argparse.Namespace) -> Any:
    """The store of the home that is named, closed afterwards."""
    from exo.core.ledger.ledger import Ledger
    from exo.core.store.store import Store

    home, clock = Home.find(options.home).make(), SystemClock()
    ledger = Ledger(home, clock)
    store = Store(home, ledger, clock)
    try:
        yield store
        store.close()
    finally:
        ledger.close()


def init(options: argparse.Namespace) -> int:
    """Ask what is not answered by --yes, and make the store."""
    with opened(options) as store:
        answers = {key: default for key, (_, default) in QUESTIONS.items() if default}
        if not options.yes:
            answers = interview(sys.stdin.isatty())
        store.init(answers)
        if options.json:
            print(json.dumps({"store": str(store.folder), "answers": answers}, ensure_ascii=False))
        else:
            print(f"Your store: {visible(str(store.folder))}")
            print(
                "Change PACK.md by hand whenever you like; `exo store show` prints what is known."
            )
    return 0


def interview(terminal: bool) -> dict[str, str]:
    """The answers of a person; input that ends early answers no more."""
    answers: dict[str, str] = {}
    print("A few questions; press Enter to skip one.", file=sys.stderr)
    for key, (question, default) in QUESTIONS.items():
        print(
            f"{question}{f' [{default}]' if default else ''} ", end="", file=sys.stderr, flush=True
        )
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            line = "\n"
        if not line:
            print(file=sys.stderr)
            break
        if not terminal:
            print(file=sys.stderr)
        if answer := line.strip() or default:
            answers[key] = answer
    return answers


def check(options: argparse.Namespace) -> int:
    """Print errors and warnings; exit 1 with errors."""
    from exo.tools.store_lint import lint

    with opened(options) as store:
        store.sync()
        errors, warnings = lint(store)
    if options.json:
        found = {
            "errors": [asdict(row) for row in errors],
            "warnings": [asdict(row) for row in warnings],
        }
        print(json.dumps(found, ensure_ascii=False))
    else:
        _findings("error", errors)
        _findings("warning", warnings)
        print(f"{len(errors)} error(s), {len(warnings)} warning(s)")
    return 1 if errors else 0


def rebuild(options: argparse.Namespace) -> int:
    """Rebuild with progress on stderr; exit 1 when something does not parse, naming it."""
    progress: Callable[[int, int], None] | None = None
    if sys.stderr.isatty() and not options.json:
        progress = _progress
    with opened(options) as store:
        done = store.rebuild(progress)
    if progress:
        print("\r\x1b[K", end="", file=sys.stderr)
    if options.json:
        print(json.dumps(asdict(done), ensure_ascii=False))
    else:
        print(
            f"{done.entries} entries, {done.files} files ({len(done.written)} written), {done.items} items"
        )
        _findings("does not parse", done.faults)
    return 1 if done.faults else 0


def show(options: argparse.Namespace) -> int:
    """Print the whole in short, or one node or item."""
    with opened(options) as store:
        store.sync()
        if options.id:
            return _one(store, options.id, options.json)
        nodes = sorted(store.nodes(), key=lambda node: (node.ts, node.id))
        kinds: dict[str, int] = {}
        for node in nodes:
            kinds[node.type] = kinds.get(node.type, 0) + 1
        items = sum(1 for _ in store.items())
        newest, pack = nodes[-SHOWN:][::-1], store.pack()
    if options.json:
        rows = [{**table_of(node), "trust": node.trust} for node in newest]
        print(
            json.dumps(
                {"pack": pack, "nodes": kinds, "items": items, "newest": rows}, ensure_ascii=False
            )
        )
        return 0
    print(visible(pack) or "The pack is empty: `exo store init`, or write into PACK.md.")
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"\nBeliefs: {counts or 'none'}\nItems: {items}")
    for node in newest:
        print(f"  {_plain(node.id)}  {_plain(node.title)}{_until(node)}")
    return 0


def _one(store: Store, id_: str, as_json: bool) -> int:
    found: Node | Item | None = store.node(id_) or store.item(id_)
    if found is None:
        raise ExoError(f"show {id_}", "no node and no item has that id", "see `exo store show`")
    if isinstance(found, Node):
        table = {**table_of(found), "trust": found.trust, "path": found.path, "text": found.text}
    else:
        table = asdict(found)
    table["entries"] = store.entry_of(id_)
    if as_json:
        print(json.dumps(table, ensure_ascii=False))
        return 0
    for key, value in table.items():
        if value and key != "text":
            said = value if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False)
            print(f"{key + ':':13}{_plain(str(said))}")
    print(f"\n{visible(found.text).rstrip()}")
    return 0


def _findings(label: str, rows: list[Finding]) -> None:
    for row in rows:
        line = f":{row.line}" if row.line else ""
        print(f"{label}: {_plain(row.path)}{line}: {_plain(row.what)}")


def _progress(done: int, total: int) -> None:
    print(f"\r{done} of {total} entries", end="", file=sys.stderr, flush=True)


def _until(node: Node) -> str:
    return f" (until {_plain(node.valid_until)})" if node.valid_until else ""


def _plain(text: str) -> str:
    return " ".join(visible(text).split())
