"""`exo models list | get | bench`. Owns what they print; the work is done by catalog, fetch and bench."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from exo.core.base.home import models_folder
from exo.models.catalog import Catalog, Row
from exo.models.fetch import fetch

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def register(sub: Subparsers, parents: list[argparse.ArgumentParser] | None = None) -> None:
    """Add the command `models` with its three; each sets `run`, a function of the parsed arguments that
    returns the exit code."""
    models = sub.add_parser("models", help="the model files: list, get, bench")
    verbs = models.add_subparsers(dest="verb", required=True, metavar="list|get|bench")
    shared = parents or []
    each = verbs.add_parser("list", help="what there is and what is here", parents=shared)
    each.add_argument("--json", action="store_true", help="print one JSON object")
    each.set_defaults(run=run_list)
    each = verbs.add_parser("get", help="fetch a model's files, by hash", parents=shared)
    each.add_argument("names", nargs="*", metavar="NAME")
    each.add_argument("--defaults", action="store_true", help="everything that set-up installs")
    each.add_argument("--trust", action="store_true", help="take a file whose hash is not recorded")
    each.set_defaults(run=run_get)
    each = verbs.add_parser("bench", help="measure the installed models", parents=shared)
    each.add_argument("--json", action="store_true", help="print one JSON object")
    each.set_defaults(run=run_bench)


def run_list(args: argparse.Namespace) -> int:
    """Print the catalog."""
    catalog = Catalog(models_folder())
    rows = [_data(catalog, row) for row in catalog.rows]
    if args.json:
        print(json.dumps({"folder": str(catalog.folder), "models": rows}))
        return 0
    print(f"folder = {catalog.folder}")
    for row in rows:
        state = "here" if row["installed"] else ("set-up fetches it" if row["default"] else "-")
        size = f"{row['size_bytes'] / 1e6:.0f} MB" if row["size_bytes"] else "size unknown"
        roles = ", ".join(row["roles"])
        print(f"{row['name']:<22}{roles:<16}{size:>13}  {row['licence']:<24}{state}")
    return 0


def run_get(args: argparse.Namespace) -> int:
    """Fetch; progress on stdout, one line on stderr when it fails."""
    if not (args.names or args.defaults):
        print("exo models get: name a model (see `exo models list`), or say --defaults")
        return 2
    return fetch(args.names, args.defaults, args.trust)


def run_bench(args: argparse.Namespace) -> int:
    """Measure and print."""
    from exo.models.bench import bench

    rows = bench()
    if args.json:
        print(json.dumps({"rows": rows}))
        return 0
    for row in rows:
        print(f"{row['name']:<44}{row['value']:>10.3f} {row['unit']:<10}{row.get('note', '')}")
    return 0 if rows else 1


def _data(catalog: Catalog, row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": row.title,
        "roles": list(row.roles),
        "format": row.format,
        "licence": row.licence,
        "default": row.default,
        "installed": catalog.present(row),
        "size_bytes": row.size_bytes,
        "ram_mb": row.ram_mb,
        "window": row.window,
        "tools": row.tools if "main" in row.roles else None,
        "hash_known": all(file.sha256 for file in row.files),
    }
