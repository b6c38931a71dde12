"""`exo gate check`: the verdict on a tool call, with its four axes. Runs nothing."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.gate.axes import Act, Axes
from exo.core.gate.decide import Verdict
from exo.core.gate.gate import Gate
from exo.core.protocol.codec import sendable
from exo.tools.gate.judge import Consequences
from exo.tools.objects import json_object
from exo.tools.transcript import visible


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `exo gate`."""
    group = sub.add_parser("gate", help="what Exo would ask about, and why")
    verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)
    text = "the verdict on a tool call, with its four axes; runs nothing"
    check = verbs.add_parser("check", help=text, description=text)
    check.add_argument("tool", metavar="TOOL", nargs="?", default="", help="bash, write_file, ...")
    check.add_argument("args", metavar="JSON", nargs="?", default="", help="its arguments")
    check.add_argument(
        "--cwd", metavar="DIR", default="", help="working folder (default: this one)"
    )
    check.add_argument(
        "--stdin", action="store_true", help="JSON lines {id, tool, args, cwd?} in and out"
    )
    check.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """One call, or with --stdin one a line."""
    if not options.stdin and not options.tool:
        do = "see `exo gate check -h`"
        raise ExoError("gate check", "a tool and its arguments are wanted", do, code="usage")
    home = Home.find(options.home)
    gate = open_gate(home)
    cwd = options.cwd or str(Path.cwd())
    failed = 0
    if options.stdin:
        failed = _lines(gate, cwd)
    else:
        row = {
            "tool": options.tool,
            "args": json_object(options.args, "the arguments are one JSON object"),
        }
        verdict = gate.check(_act(row, cwd))
        if options.json:
            print(json.dumps(shape(verdict), ensure_ascii=False))
        else:
            print("\n".join(human(verdict)))
    if gate.fault:
        print(f"exo: {visible(gate.fault)}", file=sys.stderr)
    return failed


def _lines(gate: Gate, cwd: str) -> int:
    """Answer each line with its verdict, or with what is wrong with it; 1 when one was wrong."""
    failed = 0
    for line in filter(bytes.strip, sys.stdin.buffer):
        row: dict[str, Any] = {}
        try:
            row = json_object(line, "one JSON object a line is wanted")
            found = shape(gate.check(_act(row, cwd)))
        except ExoError as error:
            found, failed = {"error": str(error)}, 1
        answer = json.dumps({"id": row.get("id"), **found}, ensure_ascii=False)
        print(sendable(answer), flush=True)
    return failed


def shape(verdict: Verdict) -> dict[str, Any]:
    """The fixed shape of `--json`."""
    return {
        "outcome": verdict.outcome,
        "axes": asdict(verdict.axes),
        "summary": verdict.summary,
        "rule": verdict.rule,
    }


def human(verdict: Verdict) -> list[str]:
    """The same for a person's eyes."""
    axes: Axes = verdict.axes
    others = "concerns others" if axes.third_party else "concerns nobody else"
    cost = "costs money" if axes.cost == "money" else "costs nothing"
    return [
        f"{verdict.outcome}  {verdict.summary}",
        f"  {axes.reversibility}, {axes.exposure}, {cost}, {others}",
        f"  by: {verdict.rule}",
    ]


def open_gate(home: Home) -> Gate:
    """The gate of a home, as a running exod has it."""
    return Gate(home.store / "policies", SystemClock(), {"judge": Consequences(home.root)})


def _act(row: dict[str, Any], cwd: str) -> Act:
    tool, args = row.get("tool"), row.get("args", {})
    if not isinstance(tool, str) or not tool or not isinstance(args, dict):
        raise ExoError(
            "check a call", "a tool and its arguments are wanted", "see `exo gate check -h`"
        )
    return Act(tool, args, str(row.get("cwd") or cwd))
