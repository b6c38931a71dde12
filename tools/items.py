"""`exo items list | show | keep | drop`: what was saved and brought in, and whether the person wants it. Reads
and prints; keeping and dropping is one entry of the record, so that it can be taken back."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

from exo.core.base.errors import ExoError
from exo.tools.store import opened
from exo.tools.transcript import visible

if TYPE_CHECKING:
    from exo.core.store.replay import Item

REVIEWS = {"keep": "kept", "drop": "dropped"}
SHOWN = 50  # items that `list` prints without --all


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `items` with its verbs to the command line."""
    text = "what was saved and brought in: list it, show one, keep or drop it"
    group = sub.add_parser("items", help=text, description=text)
    verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, run, help_ in (
        ("list", listed, "the items, one a line: id, review, title"),
        ("show", show, "one item, whole"),
        ("keep", review, "say that an item is wanted"),
        ("drop", review, "say that an item is not wanted: recall finds it no more"),
    ):
        verb = verbs.add_parser(name, help=help_, description=help_)
        if name == "list":
            verb.add_argument("--review", choices=("new", "kept", "dropped"), help="these alone")
            verb.add_argument("--source", metavar="S", help="of this source alone")
            verb.add_argument("--all", action="store_true", help=f"more than {SHOWN}")
        else:
            verb.add_argument("id", metavar="ID", help="the item's id")
        verb.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)")
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.set_defaults(run=run)


def listed(options: argparse.Namespace) -> int:
    """The items that fit, by id."""
    with opened(options) as store:
        wanted = (
            item
            for item in store.items()
            if options.review in (None, item.review) and options.source in (None, item.source)
        )
        rows = list(wanted if options.all else islice(wanted, SHOWN + 1))
    shown = rows if options.all else rows[:SHOWN]
    if options.json:
        short = ("id", "kind", "source", "title", "url", "tags", "created", "review", "trust")
        print(json.dumps({"items": [{k: getattr(item, k) for k in short} for item in shown]}))
        return 0
    for item in shown:
        print(visible(f"{item.id}  {item.review:7}  {item.source:9}  {item.title}"))
    if len(rows) > len(shown):
        print("and more: --all")
    return 0


def show(options: argparse.Namespace) -> int:
    """One item with all that is known of it."""
    with opened(options) as store:
        item = _item(store.item(options.id), options.id)
    if options.json:
        print(json.dumps(asdict(item)))
        return 0
    for name, value in asdict(item).items():
        if value and name not in ("text", "entries", "hash", "ts"):
            print(visible(f"{name}: {value}"))
    print(visible(f"\n{item.text}"))
    return 0


def review(options: argparse.Namespace) -> int:
    """Keep or drop one item."""
    with opened(options) as store:
        item = store.review(_item(store.item(options.id), options.id).id, REVIEWS[options.verb])
    if options.json:
        print(json.dumps({"id": item.id, "review": item.review}))
    else:
        print(visible(f"{item.review}: {item.title}"))
    return 0


def _item(item: Item | None, id_: str) -> Item:
    if item is None:
        raise ExoError(f"item {id_}", "there is none of that id", "see `exo items list`")
    return item
