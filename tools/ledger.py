"""`exo ledger`: verify, tail, show and export the signed record. Reads it in its own process, whether exod
runs or not, and makes no key: a question must not enrol a device."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError, HomeError, StorageError, storage_error
from exo.core.base.home import Home
from exo.core.ledger.entry import Entry
from exo.core.ledger.ledger import Ledger
from exo.tools.transcript import visible

WIDTH = 60  # letters of an entry's first words


def register(sub: Any) -> None:
    """Add `exo ledger` and what it can do."""
    group = sub.add_parser("ledger", help="the signed record: verify, look, take out")
    verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> Any:
        command = verbs.add_parser(name, help=text, description=text)
        command.add_argument(
            "--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)"
        )
        command.add_argument("--json", action="store_true", help="print one JSON object")
        command.set_defaults(run=run)
        return command

    command = add("verify", run_verify, "re-derive every hash, chain and signature")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--full", action="store_true", help="every entry (the default)")
    which.add_argument("--quick", action="store_true", help="since this device's last checkpoint")
    command = add("tail", run_tail, "the newest entries")
    command.add_argument("-n", type=_count, default=20, metavar="N", help="how many (20)")
    command = add("show", run_show, "one entry, whole")
    command.add_argument("id", metavar="ID", help="its id, or the first 8 letters or more")
    command = add("export", run_export, "every entry, one JSON object a line")
    command.add_argument("--out", metavar="FILE", help="write there (default: standard output)")


def run_verify(options: argparse.Namespace) -> int:
    """Print the report; 1 when there is a fault."""
    try:
        ledger = _open(options)
        report = ledger.verify(not options.quick, _progress("verified"))
        ok, authors, fault = report.ok, report.authors, report.fault and vars(report.fault)
        ledger.close()
    except HomeError as error:
        if isinstance(error, StorageError) or error.code == "no_ledger":
            raise
        ok, authors = False, {}
        fault = {"author": "", "seq": 0, "id": "", "what": str(error)}
    if options.json:
        print(json.dumps({"ok": ok, "authors": authors, "fault": fault}))
        return 0 if ok else 1
    for author, count in authors.items():
        print(f"{author[:16]}  {count} {'entry' if count == 1 else 'entries'} good")
    if fault:
        print(_line(f"FAULT  entry {fault['seq']} of {fault['author'] or '?'} {fault['id']}"))
        print(_line(f"       {fault['what']}"))
        print("       what to do: put back a backup of the store (exo restore FILE)")
    else:
        print("The record is whole." if not options.quick else "Whole since the last checkpoint.")
    return 0 if ok else 1


def run_tail(options: argparse.Namespace) -> int:
    """Print the newest entries, the newest last."""
    entries = _open(options).newest(options.n)
    if options.json:
        print(json.dumps({"events": [_data(entry) for entry in entries]}))
        return 0
    for entry in entries:
        print(f"{entry.id[:12]}  {_when(entry)}  {visible(entry.kind):10} {_words(entry)}".rstrip())
    return 0


def run_show(options: argparse.Namespace) -> int:
    """Print one entry with all its fields."""
    entry = _open(options).get(options.id)
    if entry is None:
        do = "see `exo ledger tail`; an id has 64 letters, the first 8 are enough"
        raise ExoError(f"show {options.id}", "there is no such entry", do)
    if options.json:
        print(json.dumps(_data(entry)))
        return 0
    for name, value in _data(entry).items():
        if name == "body":
            forgotten = "forgotten" if value is None else ""
            value = forgotten or json.dumps(value, indent=2, ensure_ascii=False)
        if name == "ts":
            value = _when(entry)
        print(
            f"{name:10} {visible(str(value) if not isinstance(value, list) else ' '.join(value))}"
        )
    return 0


def run_export(options: argparse.Namespace) -> int:
    """Write all entries; the head that leaves so is kept in device.key."""
    ledger = _open(options)
    total, step = ledger.position(), _progress("exported")

    def lines() -> Any:
        for done, line in enumerate(ledger.export(), 1):
            if done % 1000 == 0:
                step(done, total)
            yield json.dumps(line, ensure_ascii=False) + "\n"

    if not options.out:
        sys.stdout.flush()
        for text in lines():
            sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return 0
    path = Path(options.out)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            part.chmod(0o600)
            file.writelines(lines())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        if isinstance(error, ExoError):
            raise
        raise storage_error(f"write {path}", error) from error
    print(json.dumps({"entries": total, "file": str(path)}) if options.json else f"{total} entries")
    return 0


def _open(options: argparse.Namespace) -> Ledger:
    """The ledger of the home. Raises HomeError when there is none."""
    home = Home.find(options.home)
    path = home.store / "private" / "ledger.sqlite"
    if not path.exists():
        do = "it begins with the first thing that Exo is told"
        raise HomeError(f"open {path}", "there is no record in this home", do, code="no_ledger")
    return Ledger(home, SystemClock(), enrol=False)


def _data(entry: Entry) -> dict[str, Any]:
    names = ("id", "author", "seq", "lc", "ts", "scope", "kind")
    return {name: getattr(entry, name) for name in names} | {
        "refs": list(entry.refs),
        "body": entry.body,
    }


def _when(entry: Entry) -> str:
    try:
        return SystemClock().local(entry.ts).strftime("%Y-%m-%d %H:%M:%S %z")
    except (OverflowError, ValueError, OSError):
        return f"{entry.ts} ms"


def _words(entry: Entry) -> str:
    """The first words of what an entry says."""
    if entry.body is None:
        return "(forgotten)"
    named = (
        entry.body.get(key) for key in ("text", "summary", "title", "reason", "path", "action")
    )
    text = next((str(each) for each in named if each), "") or json.dumps(
        entry.body, ensure_ascii=False
    )
    text = _line(text)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _progress(verb: str) -> Callable[[int, int], None]:
    """Tell a person how far it is, on stderr; nothing where nobody looks."""

    def told(done: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done + 1000 > total else ""
            print(f"\r{verb} {done:,} of {total:,}", end=end, file=sys.stderr, flush=True)

    return told


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise argparse.ArgumentTypeError("a number from 0 on")
    return count
