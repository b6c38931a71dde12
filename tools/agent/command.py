"""`exo tool`, `exo sandbox`, `exo artifact`, `exo secret`: by the commands of the running exod (one is started where none
runs), but for `exo sandbox run`, which is this process's own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import difflib
import getpass
import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError, ProtocolError, ServiceError
from exo.core.base.home import Home
from exo.tools.objects import json_object
from exo.tools.transcript import visible

WAIT = 600.0  # seconds for a tool's own limit and the approval of its calls
TRACE = "Traceback (most recent call last)"
_FRAME = re.compile(r'File "<string>", line (\d{1,9})(?:, in (\S+))?')
# command -> help, and its verbs: name -> (help, arguments)
VERBS: dict[str, tuple[str, dict[str, tuple[str, tuple[str, ...]]]]] = {
    "tool": (
        "tools that you or a model wrote: they run in the sandbox alone",
        {
            "add": ("test a tool in a file NAME.py and take it in", ("FILE",)),
            "list": ("every tool, its state and why", ()),
            "show": ("one tool: source and history", ("NAME",)),
            "run": ("call one, through gate and sandbox", ("NAME", "JSON")),
            "remove": ("let it go; its versions stay in the record", ("NAME",)),
            "replay": (
                "make its last calls again, with what was answered then and nothing else",
                ("NAME",),
            ),
        },
    ),
    "sandbox": (
        "run a file in the sandbox; the space of files that tools keep",
        {
            "run": ("run a MicroPython file; its function run(), where it has one", ("FILE",)),
            "snapshot": ("give the present state of the space a name", ("LABEL",)),
            "list": ("the states that can be gone back to", ()),
            "rewind": ("go back to a state; what came after stays in the list", ("ID",)),
        },
    ),
    "artifact": (
        "the texts that decide how Exo works, in versions",
        {
            "list": ("every artifact with its version", ()),
            "show": ("the text that holds", ("NAME",)),
            "diff": ("what the last version changed", ("NAME",)),
            "set": (
                "make a file's text (-: what is piped in) the version that holds",
                ("NAME", "FILE"),
            ),
            "use": ("bring an older version back", ("NAME", "VERSION")),
            "remove": ("end it: what is built in holds; its versions stay", ("NAME",)),
        },
    ),
    "secret": (
        "values that tools may use and nobody reads",
        {
            "add": ("keep a value, asked for here, for these hosts", ("NAME", "HOSTS")),
            "list": ("names and hosts", ()),
            "remove": ("let it go", ("NAME",)),
        },
    ),
}

EMPTY = {
    "tools": "none yet: `exo tool add FILE` takes one in",
    "snapshots": "none yet: `exo sandbox snapshot LABEL` names the present state",
    "artifacts": "none yet: what is built in holds",
    "secrets": "none yet: `exo secret add NAME HOSTS` keeps one",
}


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the four groups."""
    for name, (text, verbs) in VERBS.items():
        group = sub.add_parser(name, help=text, description=text)
        rows = group.add_subparsers(dest="verb", metavar="VERB", required=True)
        for verb, (help_, arguments) in verbs.items():
            row = rows.add_parser(verb, help=help_, description=help_)
            for argument in arguments:
                more: dict[str, Any] = {"nargs": "?", "default": "{}"} if argument == "JSON" else {}
                place = "given" if more else argument.lower()  # --json is another thing
                row.add_argument(place, metavar=argument, **more)
            if (name, verb) == ("sandbox", "run"):
                row.add_argument("--args", default="{}", metavar="JSON", help="what run() is given")
            if (name, verb) == ("tool", "replay"):
                row.add_argument("--last", type=int, metavar="N", help="calls (default: all kept)")
            row.add_argument(
                "--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)"
            )
            row.add_argument("--json", action="store_true", help="print one JSON object")
            row.set_defaults(run=run, group=name)


def run(options: argparse.Namespace) -> int:
    """One verb."""
    home = Home.find(options.home)
    if (options.group, options.verb) == ("sandbox", "run"):
        return _run_file(home, options)
    answer = _ask(home, options.group, _given(options))
    if options.json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        _print(options, answer)
    return 0 if answer.get("ok", True) else 1


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """What the command is asked."""
    given: dict[str, Any] = {"action": options.verb}
    for key in ("name", "label", "id", "version", "last"):
        if getattr(options, key, None) is not None:
            given[key] = getattr(options, key)
    if (options.group, options.verb) == ("tool", "run"):
        given["args"] = json_object(options.given, "one JSON object is wanted", "the arguments")
    elif (options.group, options.verb) == ("tool", "add"):
        from dataclasses import asdict

        from exo.tools.agent.package import from_file

        given["package"] = asdict(from_file(Path(options.file)))
    elif options.verb == "set":
        given["text"] = _text(Path(options.file))
    elif options.group == "secret" and options.verb == "add":
        given["hosts"] = options.hosts.split(",")
        asks = sys.stdin.isatty()
        given["value"] = getpass.getpass("value: ") if asks else sys.stdin.readline().rstrip("\n")
    return given


def _ask(home: Home, command: str, args: dict[str, Any]) -> dict[str, Any]:
    from exo.tools.running import connect

    client = connect(home)
    if (command, args["action"]) != ("tool", "run"):
        return dict(client.call("command.run", name=command, args=args)["result"])
    seen, stop = client.call("hello", protocol=1, client="exo")["seq"], threading.Event()
    asked = dict[str, str]()  # request to what is asked
    told = threading.Thread(target=_tell, args=(client, args["name"], seen, stop, asked))
    told.daemon = True
    told.start()
    try:
        return dict(client.patient(WAIT).call("command.run", name=command, args=args)["result"])
    except ServiceError as error:
        what = "; ".join(asked.values())
        why = f"no answer in {WAIT:g} s: "
        why += f"waited for a person to allow: {what}" if what else "the tool had not ended"
        raise ServiceError(f"run the tool {args['name']!r}", f"{why} ({error.why})") from error
    finally:
        stop.set()


def _tell(
    client: Client, name: str, since: int, stop: threading.Event, asked: dict[str, str]
) -> None:
    """Say that a call of the tool `name` wants approval, and ask for it where a person sits here."""
    from exo.tools.ask import _terminal

    with contextlib.suppress(ExoError, OSError):
        for event in client.events(since, stop=stop):
            body = event["body"]
            if event["type"] == "approval.resolved":
                asked.pop(body["request"], None)
            if event["type"] != "approval.requested" or body["tool"] != name:
                continue
            asked[body["request"]] = body["summary"]
            if approve := _terminal():
                choice = approve(body)
                with contextlib.suppress(ProtocolError):  # it was answered elsewhere
                    client.call("approval.respond", request=body["request"], choice=choice)
            else:
                where = "allow it in `exo tui`, at the console or on the device"
                print(
                    f"exo: approval is wanted: {visible(body['summary'])}; {where}", file=sys.stderr
                )


def _print(options: argparse.Namespace, answer: dict[str, Any]) -> None:
    for what in EMPTY.keys() & answer.keys():
        if not answer[what]:
            print(EMPTY[what])
    for row in answer.get("tools", []):
        state = f"  {row['state']}: {row['why']}" if row["state"] != "active" else ""
        print(
            visible(
                f"{row['name']:24} v{row['version']} by {row['by']}  {row['description']}{state}"
            )
        )
    for row in answer.get("snapshots", []):
        print(
            visible(f"{row['id'][:12]}  {_when(row['ts'])}  {row['files']:4} files  {row['label']}")
        )
    for row in answer.get("artifacts", []):
        held = "" if row["holds"] else "  (holds no longer)"
        print(visible(f"{row['name']:32} v{row['version']} by {row['by']}{held}"))
    for name, hosts in answer.get("secrets", {}).items():
        print(visible(f"{name:24} {', '.join(hosts)}"))
    for row in answer.get("calls", []):
        args = json.dumps(row["args"], ensure_ascii=False)
        ends = f": gave {row['was']}; now {row['now']}" if row["was"] or row["now"] else ""
        print(visible(f"{_when(row['ts'])}  v{row['version']}  {row['verdict']:10} {args}{ends}"))
    if options.verb == "replay":
        odd = f"; {answer['unreadable']} could not be read" if answer["unreadable"] else ""
        if not answer["calls"] and not odd:
            odd = "; none is kept: it was not called yet, or its calls were too long or ran out of time"
        print(f"{len(answer['calls'])} calls made again{odd}")
    if options.verb == "run":
        print(visible(answer["text"]))
    if options.verb == "diff":
        before, after = (str(answer[key] or "").splitlines() for key in ("before", "text"))
        lines = difflib.unified_diff(before, after, "before", "now", lineterm="")
        print(visible("\n".join(lines)))
    elif options.verb == "show":
        if "source" in answer:
            state = f" ({answer['why']})" if answer["why"] else ""
            print(visible(f"{answer['name']}: {answer['description']}\n{answer['state']}{state}\n"))
            print(visible(answer["source"]))
        for row in answer["history"]:
            why = f"  {row['why']}" if row["why"] else ""
            print(visible(f"v{row['version']}  {_when(row['ts'])}  by {row['by']}{why}"))
        if answer.get("text") is not None:
            print(visible(f"\n{answer['text']}"))
        elif "text" in answer:
            print("\nIt has ended: what is built in holds.")
        if answer.get("fault"):
            print(visible(f"\nnot followed: {answer['fault']}"))
    elif options.group == "artifact" and options.verb in ("set", "use", "remove"):
        now = f"version {len(answer['history'])} holds"
        if answer["text"] is None:
            now = "ended, what is built in holds"
        print(visible(f"{answer['name']}: {now} from the next turn on"))
    elif options.verb in ("add", "remove", "snapshot", "rewind"):
        told = answer.get("name") or answer.get("removed") or f"{answer.get('id', '')[:12]}"
        print(visible(f"{options.verb}: {told}"))
        if answer.get("told"):
            print("\n".join(map(visible, answer["told"].splitlines())))


def _run_file(home: Home, options: argparse.Namespace) -> int:
    """Run a file by itself: what it prints, then what run() gave."""
    from exo.core.sandbox.host import Result, Sandbox
    from exo.tools.guest import library

    source = _text(Path(options.file))
    args = json_object(options.args, "one JSON object is wanted", "--args")
    sandbox = Sandbox(home.cache / "sandbox", SystemClock(), library())

    async def work() -> Result:
        try:
            return await sandbox.run(source, "run" if "def run(" in source else "", args)
        finally:
            await sandbox.close()

    result = asyncio.run(work())
    if options.json:
        print(json.dumps(vars(result), ensure_ascii=False))
    else:
        trace = TRACE in result.out and not result.ok
        told = result.out[: result.out.rindex(TRACE)] if trace else result.out
        print(visible(told), end="")
        if result.ok and result.value is not None:
            value = result.value
            print(
                visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            )
    if not result.ok:
        lacks = "'_Module'" in result.error  # the guest's module exo, empty here
        do = "what `can` names is there for tools: `exo tool add` it" if lacks else ""
        raise ExoError(f"run {options.file}", result.error + _where(source, result.out), do)
    return 0


def _where(source: str, out: str) -> str:
    """The line of the file at which it failed, "" where that is not told."""
    lines, found = source.splitlines(), ""
    for number, name in _FRAME.findall(out.rpartition(TRACE)[2]):
        own = not name or name == "<module>" or f"def {name}(" in source  # else a module's
        if own and 0 < int(number) <= len(lines):
            found = f" (line {number}: {lines[int(number) - 1].strip()[:120]})"
    return found


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ExoError(f"read {path}", getattr(error, "strerror", None) or str(error)) from error


def _when(ts: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(ts / 1000))
