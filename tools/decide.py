"""`exo decide`: one typed question, or many by lines; and learning from what became of them. Through the exod
that runs, else in this process, with an exo-models of its own where none runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from typing import Any

from exo.core.base import lifeline
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError, ProtocolError, ServiceError
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import reachable
from exo.core.decide.question import Decision
from exo.core.protocol.codec import sendable
from exo.tools.objects import json_object
from exo.tools.transcript import visible

Ask = Callable[[str, str, dict[str, str] | None], dict[str, Any]]
KEPT = {"new": "a new head of your own", "before": "your own head as before"}
KEPT |= {"shipped": "the head that came along"}
PATIENCE = 30.0  # seconds for a model that must be loaded first: nobody waits to be answered


def decide(options: argparse.Namespace) -> int:
    """Answer, or with --stdin each line its own answer or error, or with --learn fit on the labels, or with --status
    say how good the decisions were by them."""
    home = Home.find(options.home).make()
    if options.learn or options.status:
        return (
            _learn(home, options.least, options.json)
            if options.learn
            else _status(home, options.json)
        )
    if not options.stdin and not (options.mechanism and options.state):
        do = "give both, or use --stdin"
        raise ExoError("decide", "a mechanism and a state are wanted", do, code="usage")
    with asking(home) as ask:
        if not options.stdin:
            given = meanings(options.options) if options.options is not None else None
            found = ask(options.mechanism, options.state, given)
            _show(found, options.json)
            return 0
        return _lines(ask)


def meanings(text: str) -> dict[str, str]:
    """{option: what it means ""} of `A,B=what B means`. Raises ExoError for an option that comes twice."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, said = (each.strip() for each in part.partition("="))
        if name in found:
            raise ExoError("read --options", f"{name!r} comes twice", "name each option once")
        found[name] = said
    return found


def _lines(ask: Ask) -> int:
    failed = 0
    for line in filter(bytes.strip, sys.stdin.buffer):
        asked: dict[str, Any] = {}
        try:
            asked = json_object(line, "one JSON object a line is wanted")
            found = ask(*_checked(asked))
        except ExoError as error:
            found, failed = {"error": str(error)}, 1
        answer = json.dumps({"id": asked.get("id"), **found}, ensure_ascii=False)
        print(sendable(answer), flush=True)
    return failed


def _checked(asked: dict[str, Any]) -> tuple[str, str, dict[str, str] | None]:
    """(mechanism, state, options) of {id, mechanism, state, options}; options as a list, a map with
    meanings, or a text with commas."""
    what = f"read line {asked.get('id')!r}"
    mechanism, state, options = (asked.get(name) for name in ("mechanism", "state", "options"))
    if not isinstance(mechanism, str) or not isinstance(state, str):
        raise ExoError(what, "mechanism and state are to be texts")
    if isinstance(options, str):
        options = meanings(options)
    elif isinstance(options, list):
        if not all(isinstance(each, str) for each in options) or len(set(options)) < len(options):
            raise ExoError(what, "its options are no texts, or one comes twice")
        options = dict.fromkeys(options, "")
    elif isinstance(options, dict):
        options = {key: each if each is not None else "" for key, each in options.items()}
    elif options is not None:
        raise ExoError(what, "its options are no list, map or text")
    return mechanism, state, options


@contextlib.contextmanager
def asking(home: Home) -> Iterator[Ask]:
    """How to ask for a decision in this home. Raises ExoError."""
    with models(home):
        if reachable(home.exod_socket):
            yield _through(Client(home.exod_socket, 120.0))
        else:
            yield _here(home)


def _through(client: Client) -> Ask:
    def ask(mechanism: str, state: str, options: dict[str, str] | None) -> dict[str, Any]:
        args = {"mechanism": mechanism, "state": state, "patience": PATIENCE}
        args |= {} if options is None else {"options": options}
        try:
            return dict(client.call("command.run", name="decide", args=args)["result"])
        except ProtocolError as error:
            raise ExoError(error.why or str(error)) from error

    return ask


def _here(home: Home) -> Ask:
    from exo.core.decide.calibration import Calibration
    from exo.core.decide.decider import Decider
    from exo.core.decide.providers import providers
    from exo.core.decide.question import asked
    from exo.core.engine.outbox import Row
    from exo.core.ledger.ledger import Ledger
    from exo.core.ledger.mirror import Mirror
    from exo.core.substrate.artifacts import Artifacts

    clock, settings = SystemClock(), Settings.load(home.settings_file)
    ledger = Ledger(home, clock)
    mirror = Mirror(ledger)

    def record(facts: dict[str, Any]) -> None:
        id_ = secrets.token_hex(8)
        body = {"session": "", "turn": "", "asked": id_} | facts
        mirror.write([Row(id_, "decision", "", "", clock.now_ms(), body)])

    async def tuned(session: str) -> Settings:
        return settings.under(Artifacts(ledger).all())

    decider = Decider(
        lambda: providers(settings, home.models_socket),
        Calibration(home.cache / "decide"),
        record,
        tuned,
    )

    def ask(mechanism: str, state: str, options: dict[str, str] | None) -> dict[str, Any]:
        question = asked(mechanism, options)
        if not state.strip():
            raise ExoError(f"decide {mechanism}", "there is no state", "give a short text")
        found: Decision = asyncio.run(decider.decide(question, state, patience=PATIENCE))
        return found.shown()

    return ask


@contextlib.contextmanager
def models(home: Home) -> Iterator[None]:
    """exo-models, for as long as it is wanted: the one that runs, else one of our own. One that does not
    start is told of; decisions are then the safe ones."""
    from exo.tools.supervisor import FAKE, Supervisor

    if reachable(home.models_socket):
        yield
        return
    words: dict[str, tuple[str, ...]] = {}
    if os.environ.get(FAKE) == "1":
        words = {"models": ("--fake",)}
    with Supervisor(home, ("models",), words) as supervisor:
        try:
            supervisor.wait_ready()
        except ServiceError as error:
            print(f"exo: {visible(str(error))}", file=sys.stderr)
        yield


def _learn(home: Home, least: int, as_json: bool) -> int:
    from exo.tools.decisions import learn

    lifeline.watch(lambda: os._exit(1))  # of the exod that had this done
    with models(home):
        told = learn(home, least)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return 0
    if told.get("skipped"):
        print(f"fewer than {least} new labels: nothing to learn from")
        return 0
    print(f"{told['labels']} labels")
    for mechanism, kept in told["heads"].items():
        print(f"  {mechanism}: {kept['kept']}")
    return 0


def _status(home: Home, as_json: bool) -> int:
    from exo.tools.decisions import status

    told = status(home)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return 0
    print("\n".join(_table(told)))
    return 0


def _table(told: dict[str, Any]) -> list[str]:
    """The state of learning for a person's eyes."""
    lines = [f"{told['decisions']} decisions, {told['labels']} of them judged by you"]
    if told["idle"]:
        lines.append(
            f"{told['idle']} more verdicts were of an answer, or of a decision that is gone"
        )
    if told["rows"]:
        lines += [
            "",
            f"{'mechanism':<16} {'by':<7} {'made':>5} {'judged':>6}  right  sure     right  ECE   Brier",
        ]
    for row in told["rows"]:
        line = (
            f"{row['mechanism']:<16} {row['provider']:<7} {row['decisions']:>5} {row['labels']:>6}"
        )
        if row["labels"]:
            shown = [row[name] for name in ("accuracy", "coverage", "answered", "ece", "brier")]
            told_ = ["   - " if each is None else f"{each:.2f} " for each in shown]
            line += f"  {told_[0]:<6} {told_[1]:<8} {told_[2]:<6} {told_[3]:<5} {told_[4]}"
        lines.append(visible(line.rstrip()))
    lines += ["", *_learnt(told["learnt"])]
    if told["labels"]:
        lines += [
            "",
            "right: of all that you judged; sure: the part that was sure enough to count, and how often that was right.",
        ]
        lines += [
            "What went wrong is judged more often than what went well: as a whole they are likely better."
        ]
    return lines


def _learnt(told: dict[str, Any]) -> list[str]:
    """What the last learning came to, before and after."""
    if not told:
        return ["nothing was learnt yet"]
    when = SystemClock().local(told["at"])
    lines = [f"learnt {when:%Y-%m-%d %H:%M} from {told['labels']} labels"]
    for mechanism, row in told["heads"].items():
        measures = row.get("measures", {})
        new, old = measures.get("new", {}), measures.get("before") or measures.get("shipped", {})
        line = f"  {mechanism}: {KEPT.get(row['kept'], row['kept'])}"
        if row.get("back"):
            line += ", your own of before was gone back from"
        both = [
            name for name in ("accuracy", "coverage", "ece", "brier") if name in {*new} & {*old}
        ]
        if both:
            line += (
                f"; {row.get('rows', 0)} labels, on {row.get('held', 0)} held out before -> new: "
            )
            line += ", ".join(f"{name} {old[name]:.2f} -> {new[name]:.2f}" for name in both)
        elif "rows" in row:
            line += f"; {row['rows']} labels, too few to try one of your own"
        lines.append(visible(line))
    return lines


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    print(visible(found["answer"] or "nothing for certain"))
    for option, sure in sorted(found["probabilities"].items(), key=lambda each: -each[1]):
        print(f"  {sure:.3f}  {visible(option)}")
    said = "abstained, " if found["abstained"] else ""
    print(f"  {said}{found['provider']}, {found['ms']} ms", file=sys.stderr)
