"""`exo task add | list | remove`: by the running exod; one is started where none runs."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from exo.core.base.home import Home
from exo.tools.objects import json_object
from exo.tools.tasks.table import MISSED
from exo.tools.transcript import visible


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `exo task`."""
    text = "what comes at its time: told to you, or asked of the model"
    group = sub.add_parser("task", help=text, description=text)
    verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, help_ in (
        ("add", "add a task"),
        ("list", "timers, reminders and tasks, each soonest first"),
        ("remove", "let one go"),
    ):
        verb = verbs.add_parser(name, help=help_, description=help_)
        if name == "add":
            lines = '"0 7 * * mon-fri", @daily, "@every 45m", "@at 2026-12-24T18:00"'
            lines += ', "@monthly 2027-01-31T09:00"'
            verb.add_argument("line", metavar="LINE", help=lines)
            verb.add_argument("text", metavar="TEXT", help="what is told, or asked")
            verb.add_argument("--ask", action="store_true", help="have the model answer it")
            verb.add_argument("--zone", default="", help="IANA time zone (default: this machine's)")
            missed = "what becomes of times that were slept through"
            verb.add_argument("--missed", choices=MISSED, default="once", help=missed)
            news = "only when this tool gives something new (costs no tokens)"
            verb.add_argument("--if", dest="wake", metavar="TOOL", default="", help=news)
            verb.add_argument(
                "--with", dest="args", metavar="JSON", default="{}", help="its arguments"
            )
        elif name == "remove":
            verb.add_argument("id", metavar="ID")
        verb.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)")
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """One verb."""
    from exo.tools.running import connect

    given: dict[str, Any] = {"action": options.verb}
    if options.verb == "add":
        given |= {
            name: getattr(options, name) for name in ("line", "text", "ask", "zone", "missed")
        }
        if options.wake:
            given["wake_if"] = {
                "tool": options.wake,
                "args": json_object(options.args, "one JSON object is wanted", "--with"),
            }
    elif options.verb == "remove":
        given["id"] = options.id
    answer = connect(Home.find(options.home)).call("command.run", name="task", args=given)["result"]
    if options.json:
        print(json.dumps(answer, ensure_ascii=False))
        return 0
    if answer.get("tasks") == []:
        print("none yet: `exo task add LINE TEXT` adds one")
    for row in answer.get("tasks", [answer]):
        at = row["due"]
        when = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(at / 1000)) if at else "over"
        if row.get("rests"):
            when = "rests"
        how = f"{row['repeat'] or row['kind']} {row.get('zone', '')}".rstrip()
        print(visible(f"{row['id']}  {when}  {how}  {row['label']}"))
        if row.get("rests"):
            print(visible(f"          {row['rests']}"))
    return 0
