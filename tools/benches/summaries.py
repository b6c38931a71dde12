"""How much of what was planted in long conversations survives in summaries of one, two and three levels:
with the default model and with rules alone. The rooms are those of a 4,096-token window."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from exo.core.base.home import Home
from exo.core.context import extract
from exo.core.context.builder import Limits, estimate
from exo.core.context.summary import Summariser, of_messages, of_pair
from exo.core.context.tree import LEAF
from exo.core.protocol.schema import Message
from exo.core.router.router import Router
from exo.tools.bench import Figure, Say
from exo.tools.benches.planted import LENGTH, PLANTED, Planted, conversation
from exo.tools.model import NoModel
from exo.tools.supervisor import Supervisor

LEVELS = 3
SOURCE = 1600  # tokens of conversation for one summary
KINDS = ("path", "value", "name", "open")


@dataclass
class Tally:
    """(kind, level, held out) -> how many survived; who wrote the summaries; secrets seen."""

    kept: dict[tuple[str, int, bool], int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    leaks: int = 0
    lost: list[str] = field(default_factory=list)

    def sum(self, level: int, held_out: bool | None = None, kind: str = "") -> int:
        return sum(
            count
            for (each, at, out), count in self.kept.items()
            if at == level and kind in ("", each) and held_out in (None, out)
        )


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """All conversations once (`rounds` of them when it is not 0), by rules and by the model."""
    planted = PLANTED[: rounds or len(PLANTED)]
    yield from _rows("rules", asyncio.run(_all(None, planted, say)))
    yield from _rows("rules, crowded", asyncio.run(_all(None, planted, say, crowded=True)))
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        with Supervisor(home, ["models"]) as services:
            services.wait_ready()
            yield from _rows("model", asyncio.run(_all(home, planted, say)))
            alone = asyncio.run(_all(home, planted, say, levels=1, exact=False))
            kept = alone.sum(1)
            yield Figure("model's own sentences, without the rules: survive 1 level", kept, "of 50")


def _rows(who: str, tally: Tally) -> Iterator[Figure]:
    for held_out in (False, True):
        half = "held out" if held_out else "building half"
        total = sum(len(each.facts) for each in PLANTED if each.held_out is held_out)
        for level in range(1, LEVELS + 1):
            kept = tally.sum(level, held_out)
            yield Figure(f"{who}, {half}: survive {level} levels", kept, f"of {total}")
    for kind in KINDS:
        total = sum(fact.kind == kind for each in PLANTED for fact in each.facts)
        yield Figure(
            f"{who}: {kind}s after {LEVELS} levels", tally.sum(LEVELS, None, kind), f"of {total}"
        )
    for by, count in sorted(tally.written.items()):
        yield Figure(f"{who}: summaries written by {by}", count, "")
    secrets = sum(len(each.secrets) for each in PLANTED)
    yield Figure(f"{who}: secrets in any summary", tally.leaks, f"of {secrets}", "0")


async def _all(
    home: Home | None,
    planted: tuple[Planted, ...],
    say: Say,
    *,
    crowded: bool = False,
    levels: int = LEVELS,
    exact: bool = True,
) -> Tally:
    """Summarise every conversation; without `exact` only the prose of a summary is looked at."""
    tally = Tally()
    model = Router(home.state, 120.0) if home else None
    try:
        for each in planted:
            await _one(each, conversation(each, crowded), model, tally, levels, exact)
            say(f"{each.name}: {tally.sum(levels)} kept so far")
    finally:
        if model:
            await model.close()
    if os.environ.get("EXO_BENCH_LOST"):  # never look at the held-out half with this
        say("\n".join(tally.lost))
    return tally


async def _one(
    planted: Planted,
    messages: list[Message],
    model: Router | None,
    tally: Tally,
    levels: int,
    exact: bool,
) -> None:
    """One conversation: four leaves, two parents, the root; then look for what was planted."""
    limits = Limits()
    writer = Summariser(model or NoModel(), estimate)
    row: list[str] = []
    for level in range(levels):
        room, older = limits.node(level), row
        row = []
        for place in range(LENGTH // LEAF >> level):
            if level == 0:
                source, facts = of_messages(messages[place * LEAF : (place + 1) * LEAF], SOURCE)
            else:
                source, facts = of_pair(older[2 * place], older[2 * place + 1])
            text, by = writer.rules(facts, room), "rules"
            if model:
                text, by = await writer.write(source, facts, room)
            row.append(text)
            tally.written[by] = tally.written.get(by, 0) + 1
        shown = row if exact else [extract.parse(text).prose for text in row]
        _look(planted, level + 1, shown, tally)


def _look(planted: Planted, level: int, row: list[str], tally: Tally) -> None:
    for fact in planted.facts:
        text = row[fact.at // (LEAF << (level - 1))]
        kept = all(needle in text for needle in fact.needles)
        key = fact.kind, level, planted.held_out
        tally.kept[key] = tally.kept.get(key, 0) + kept
        if not kept and not planted.held_out:
            tally.lost.append(f"level {level}, lost {fact.text!r} in {text!r}")
    tally.leaks += sum(secret in text for text in row for _, _, secret in planted.secrets)
