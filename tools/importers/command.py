"""`exo import SOURCE PATH`: one way from any source into the store. Owns the counts, the progress and the
removal of secrets, which happens here, before an item goes anywhere, for every source.

Invariant: nothing that looks like a secret reaches the store, the ledger or the screen by an import."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock, SystemClock
from exo.core.base.errors import ExoError
from exo.core.context.redact import redact
from exo.core.store.store import Counts
from exo.tools.importers import SOURCES
from exo.tools.importers.record import NewItem, Passed
from exo.tools.store import opened
from exo.tools.transcript import visible

FIRST = 10  # titles and names that are shown
EVERY = 1.0  # seconds between two lines of progress


@dataclass
class Tally:
    """What became of the records of one import: `counts` in numbers, the rest by name."""

    counts: Counts = field(default_factory=Counts)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)  # kind -> why -> how many
    names: dict[str, list[str]] = field(default_factory=dict)  # kind -> "name: why", the first
    titles: list[str] = field(default_factory=list)  # of the items, the first

    def passed(self, each: Passed) -> None:
        why = each.why.partition(":")[0]
        self.reasons.setdefault(each.kind, Counter())[why] += 1
        names = self.names.setdefault(each.kind, [])
        if len(names) < FIRST:
            names.append(redact(f"{each.name}: {each.why}"))
        if each.kind != "remark":
            self.counts.seen += 1
            setattr(self.counts, each.kind, getattr(self.counts, each.kind) + 1)


def run(options: argparse.Namespace) -> int:
    """Import, or with --dry-run only read. 1 when a record failed, though the others are in."""
    if options.source not in SOURCES:
        raise ExoError(f"import {options.source}", "no such source", f"one of {', '.join(SOURCES)}")
    path = Path(options.path).expanduser()
    module = importlib.import_module(f"exo.tools.importers.{SOURCES[options.source][0]}")
    tally = Tally()
    items = checked(module.read(path), tally, _progress(options.source, tally, SystemClock()))
    try:
        if options.dry_run:
            tally.counts.new = sum(1 for _ in items)
            tally.counts.seen += tally.counts.new
        else:
            with opened(options) as store:
                store.add_items(items, options.source, redact(str(path)), counts=tally.counts)
    except KeyboardInterrupt:
        print("stopped: what is in stays; the same command goes on", file=sys.stderr)
        raise
    show(options, path, tally)
    return 1 if tally.counts.failed else 0


def checked(
    records: Iterable[NewItem | Passed], tally: Tally, progress: Callable[[], None]
) -> Iterator[NewItem]:
    """The items without secrets, of those with one name the first (or each import would change the item
    to and fro); the rest is counted in `tally`."""
    known: set[bytes] = set()  # digests: a name may be long
    for each in records:
        progress()
        if isinstance(each, Passed):
            tally.passed(each)
            continue
        item = clean(each)
        name = hashlib.sha256(item.external.encode()).digest()[:12]
        if name not in known:
            known.add(name)
            if len(tally.titles) < FIRST:
                tally.titles.append(item.title)
            yield item
        elif item.external == each.external:
            tally.counts.seen += 1
            tally.counts.duplicate += 1
        else:
            why = "another has the same name without its secret"
            tally.passed(Passed("skipped", item.external, why))


def clean(item: NewItem) -> NewItem:
    """`item` without what looks like a secret, in any of its fields."""
    fields = {name: redact(getattr(item, name)) for name in ("external", "title", "text", "url")}
    return NewItem(**{**vars(item), **fields, "tags": tuple(map(redact, item.tags))})


def _progress(source: str, tally: Tally, clock: Clock) -> Callable[[], None]:
    """A line on stderr each second, over the last one in a terminal."""
    last = clock.monotonic()
    end = "\r" if sys.stderr.isatty() else "\n"

    def report() -> None:
        nonlocal last
        if clock.monotonic() - last >= EVERY:
            last = clock.monotonic()
            text = f"  ... {source}: {tally.counts.seen:,} seen, {tally.counts.failed:,} failed"
            print(text, end=end, file=sys.stderr, flush=True)

    return report


def show(options: argparse.Namespace, path: Path, tally: Tally) -> None:
    """The counts, by reason; one JSON object with --json."""
    report: dict[str, Any] = {
        "source": options.source,
        "path": redact(str(path)),
        "dry_run": options.dry_run,
        **vars(tally.counts),
        "reasons": {kind: dict(counter) for kind, counter in tally.reasons.items()},
        "names": tally.names,
    }
    if options.dry_run:
        report["titles"] = tally.titles
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
        return
    would = " (dry run: nothing is written)" if options.dry_run else ""
    counts = ", ".join(f"{many:,} {name}" for name, many in vars(tally.counts).items())
    lines = [f"{options.source} {report['path']}: {counts}{would}"]
    lines += [f"  {title}" for title in report.get("titles", ())]
    for kind, counter in tally.reasons.items():
        lines.append(
            f"{kind}: {', '.join(f'{many:,} {why}' for why, many in counter.most_common())}"
        )
        if kind != "skipped":
            lines += [f"  {name}" for name in tally.names[kind]]
            if counter.total() > FIRST:
                lines.append(f"  and {counter.total() - FIRST:,} more")
    print("\n".join(visible(line) for line in lines))
