"""The `exo` command: one table of sub-commands, each in a module that is imported when it is called.

Exit codes: 0 done, 1 failed with one line (what, on what, why, what to do), 2 wrong use."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError, ProtocolError, storage_error
from exo.core.retrieve.document import TRUST
from exo.tools.transcript import visible

# name -> (module, function, help, arguments); every command also takes --home and --json
Arguments = tuple[tuple[tuple[str, ...], dict[str, Any]], ...]
USAGE = "usage"  # code of an error that is wrong use
SESSION = (("--session",), {"metavar": "S", "help": "go on with this session"})
ID = (("id",), {"metavar": "ID", "help": "as recall and `exo ledger tail` show it"})
COMMANDS: dict[str, tuple[str, str, str, Arguments]] = {
    "ask": (
        "ask",
        "ask",
        "one turn, the reply on stdout; starts Exo in the background if none runs",
        ((("text",), {"metavar": "TEXT", "help": "what you say (-: read it from stdin)"}), SESSION),
    ),
    "chat": ("chat", "chat", "turns in a line terminal", (SESSION,)),
    "tui": (
        "console",
        "tui",
        "a conversation in panes: transcript, approvals, screen, logs",
        (SESSION,),
    ),
    "console": (
        "console",
        "console",
        "the same with the device at the other end of a USB cable",
        (
            (("port",), {"metavar": "PORT", "nargs": "?", "help": "its port (default: found)"}),
            (("--baud",), {"type": int, "default": 115200, "help": "speed of a real UART"}),
            SESSION,
        ),
    ),
    "serve": ("serve", "serve", "exod and exo-models in the foreground, until Ctrl-C", ()),
    "recall": (
        "memory",
        "recall",
        "what is known to a question",
        (
            (("query",), {"metavar": "QUERY", "nargs": "?", "default": ""}),
            (("--k",), {"type": int, "default": 8, "metavar": "N", "help": "hits at most"}),
            (("--at",), {"default": "", "metavar": "DATE", "help": "as it was then (its end)"}),
            (
                ("--min-trust",),
                {"default": "", "choices": ("", *TRUST), "help": "nothing less trusted than this"},
            ),
            (
                ("--stdin",),
                {"action": "store_true", "help": "JSON lines {id, query, at?} in and out"},
            ),
        ),
    ),
    "decide": (
        "decide",
        "decide",
        "a typed question: probabilities, and who answered",
        (
            (("mechanism",), {"metavar": "MECHANISM", "nargs": "?", "default": ""}),
            (("state",), {"metavar": "STATE", "nargs": "?", "default": ""}),
            (
                ("--options",),
                {"metavar": "A,B,C", "help": "to choose from; A=what A means helps"},
            ),
            (
                ("--stdin",),
                {"action": "store_true", "help": "JSON lines {id, mechanism, state, options}"},
            ),
            (("--learn",), {"action": "store_true", "help": "fit on your own labels"}),
            (
                ("--least",),
                {
                    "type": int,
                    "default": 0,
                    "metavar": "N",
                    "help": "--learn: from N new labels on",
                },
            ),
            (("--status",), {"action": "store_true", "help": "how good they were by your labels"}),
        ),
    ),
    "remember": (
        "memory",
        "remember",
        "keep a sentence",
        (
            (("text",), {"metavar": "TEXT"}),
            (("--replaces",), {"metavar": "ID", "help": "the belief that this one corrects"}),
        ),
    ),
    "rule": (
        "memory",
        "rule",
        "a standing rule in your own words",
        ((("text",), {"metavar": "TEXT"}),),
    ),
    "forget": ("memory", "forget", "forget an event, belief or item for good", (ID,)),
    "why": ("memory", "why", "where a belief comes from", (ID,)),
    "import": (
        "importers.command",
        "run",
        "bring in notes and bookmarks; the same again changes nothing",
        (
            (("source",), {"metavar": "SOURCE", "help": "markdown, bookmarks or jsonl"}),
            (("path",), {"metavar": "PATH", "help": "its file or folder"}),
            (("--dry-run",), {"action": "store_true", "help": "read and count, write nothing"}),
        ),
    ),
    "doctor": ("doctor", "doctor", "what is missing or wrong here, and what mends it", ()),
    "bench": (
        "bench",
        "bench",
        "measure, beside a peer or the bare library",
        (
            (("name",), {"metavar": "NAME", "nargs": "?", "help": "which bench (none: list them)"}),
            (
                ("--rounds",),
                {"type": int, "default": 0, "help": "repetitions (0: the bench's own)"},
            ),
            (("--data",), {"default": "", "metavar": "PATH", "help": "data that is not ours"}),
        ),
    ),
}
# modules that add their own sub-commands: register(subparsers)
GROUPS = (
    "exo.models.commands",
    "exo.tools.footprint",
    "exo.tools.ledger",
    "exo.tools.store",
    "exo.tools.items",
    "exo.tools.gate.command",
    "exo.tools.board",
    "exo.tools.agent.command",
    "exo.tools.tasks.command",
)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="exo", description="Exo, a pocket companion for one person."
    )
    sub = root.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, function, text, arguments) in COMMANDS.items():
        command = sub.add_parser(name, help=text, description=text)
        for words, extra in arguments:
            command.add_argument(*words, **extra)
        command.add_argument(
            "--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)"
        )
        command.add_argument("--json", action="store_true", help="print one JSON object")
        command.set_defaults(run=_late(module, function))
    for module in GROUPS:
        importlib.import_module(module).register(sub)
    return root


def _late(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        return int(getattr(importlib.import_module(f"exo.tools.{module}"), function)(options))

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the script `exo`."""
    _open_streams()
    root = parser()
    options = root.parse_args(arguments)
    if options.command is None:
        root.print_help(sys.stderr)
        return 2
    try:
        return int(options.run(options) or 0)
    except (
        ProtocolError
    ) as error:  # exod says what failed; the name of its command tells nobody more
        print(f"exo: {visible(error.why or str(error))}", file=sys.stderr)
        return 1
    except ExoError as error:
        print(f"exo: {visible(str(error))}", file=sys.stderr)
        return 2 if error.code == USAGE else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of our output went away (`exo ... | head`): nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # most likely of our output: a disk that is full
        print(f"exo: {storage_error(options.command, error)}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _open_streams() -> None:
    """Let standard streams that are closed lead nowhere, before another file takes their number, and
    those of a locale without umlauts replace what they cannot say."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
