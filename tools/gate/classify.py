"""What a tool call does, on four axes. Owns the way from a tool's arguments to consequences; reads no file,
opens no connection, asks nobody.

Invariant: never raises; the judgement is the worst of all parts, and what is not understood says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from exo.core.context.redact import redact
from exo.core.gate.axes import Act, Judgement, Part
from exo.tools.gate import hosts
from exo.tools.gate.files import Places
from exo.tools.gate.lexer import TEMP
from exo.tools.gate.programs import Program
from exo.tools.gate.shell import Word, parse, uncalled
from exo.tools.gate.table import UNKNOWN, Table

DEPTH = 8  # commands in commands (bash -c 'bash -c ...')
LONG = 400_000  # characters of one call that are judged
_OVERRIDE = re.compile(r"(?i)method-override")
# nothing takes them as they stand; or they hide from the eye what is written
_BROKEN = re.compile(
    r"[\ud800-\udfff\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\u2060-\u2064\ufeff\u00ad\u180e]"
    r"|[\u115f\u1160\u3164\uffa0\U000e0000-\U000e007f]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"
)
_AMOUNT = re.compile(r"(?i)\bamount\W{0,3}(?:value\W{1,4})?[=:\s]\s*\W?(\d{1,9})(\.\d\d)?\b")
_QUIET = ("time", "recall", "why")
_TEXTS = {  # the arguments that a tool must have, as texts
    **{
        "bash": ("command",),
        "read_file": ("path",),
        "list_dir": ("path",),
        "search_files": ("pattern",),
    },
    **{
        "write_file": ("path", "content"),
        "edit_file": ("path", "old", "new"),
        "apply_patch": ("patch",),
    },
    **{"http_request": ("method", "url"), "send_message": ("to", "text"), "forget": ("id",)},
}
_NOTES = ("timer", "reminder", "note", "remember")
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:(Add|Delete|Update) File|Move to): |(?:---|\+\+\+) (?:[ab]/)?|rename (?:from|to) )([^\t\n]+)",
    re.M,
)


@dataclass(frozen=True)
class Facts:
    """What a call is judged against: the working folder, places, the table, known variables."""

    cwd: str
    places: Places
    table: Table
    known: dict[str, str] = field(default_factory=dict)


def classify(act: Act, facts: Facts) -> Judgement:
    """Judge a call. Never raises."""
    judge = Judge(facts)
    try:
        if len(json.dumps(act.args, default=str)) > LONG:
            judge.doubt("it is too long to judge")
        judge.call(act.tool, act.args, act.risk, act.needs)
    except Exception as error:  # noqa: BLE001 - a call that breaks the judge is never let through
        judge.doubt(f"the gate failed on it ({type(error).__name__})")
    return judge.judgement()


class Judge:
    """Collects the consequences of one call."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.table = facts, facts.table
        self.found: list[Part] = []
        self.doubts: list[str] = []
        self.secrets: list[str] = []
        self.names: set[str] = set()
        self.touched: set[str] = set()
        self.said: list[str] = []
        self.carried: list[str] = []  # no secret as long as it stays here
        self.written: set[str] = set()  # files that this call writes
        self.texts: dict[str, str] = {}  # what it writes there, as far as it is known
        self.fetches = False  # something comes from the network
        self.sends = False  # something leaves this machine
        self.here = frozenset[str]()  # the tool, program or host that is being judged
        self.depth = 0

    # ---- tools -------------------------------------------------------------------------------------

    def call(self, tool: str, args: dict[str, Any], risk: str, needs: str) -> None:
        self.here = frozenset({f"tool:{tool}"}) if tool != "bash" else frozenset()
        text = {
            name: str(value) for name, value in args.items() if not isinstance(value, (dict, list))
        }
        path = text.get("path", "") or "."
        odd = [
            name
            for name in (*_TEXTS.get(tool, ()), "path")
            if not isinstance(args.get(name, ""), str)
        ]
        if odd or any(not args.get(name) for name in _TEXTS.get(tool, ())[:1]):
            self.doubt("its arguments do not fit")
        if _BROKEN.search("\n".join(_strings(args))):
            self.doubt("it has characters that nothing takes as they stand, or that hide something")
        if tool == "bash":
            self.script(text.get("command", ""), [self.facts.cwd])
        elif tool in ("read_file", "list_dir", "search_files"):
            verb, _, rest = tool.partition("_")
            self.path(verb, "look" if rest == "dir" else "read", Word(path), self.facts.cwd)
        elif tool in ("write_file", "edit_file"):
            self.path(tool.partition("_")[0], "write", Word(path), self.facts.cwd)
        elif tool == "apply_patch":
            self._patch(text.get("patch", ""))
        elif tool == "http_request":
            self._request(text, args.get("headers") or {})
        elif tool == "send_message":
            self.sends = True
            self.said.append(text.get("text", ""))
            self.add(
                "message", f"send to {text.get('to')}: {text.get('text')}", f"to {text.get('to')}"
            )
        elif tool in _QUIET or tool in _NOTES:
            self.add("look" if tool in _QUIET else "keep", f"{tool} {_line(args)}", "")
        elif tool == "forget":
            self.add("lose", f"forget {text.get('id')}", "")
        elif risk not in ("low", "medium", "high"):
            self.doubt(f"the tool {tool} is not known")
        elif needs or risk == "high":
            self.add("lose", f"{tool} {_line(args)}" + (f" ({needs})" if needs else ""), "=")
        else:
            self.add("look" if risk == "low" else "undoable", f"{tool} {_line(args)}", "")
        if tool in ("http_request", "send_message") and redact(_line(args)) != _line(args):
            self.secrets.append("a secret in what is sent")

    def _patch(self, patch: str) -> None:
        rows = _PATCHED.findall(patch)
        for verb, path in rows:
            if path != "/dev/null":
                effect = "delete" if verb == "Delete" else "write"
                self.path(verb.lower() or "patch", effect, Word(path.strip()), self.facts.cwd)
        if not rows:
            self.doubt("the patch names no file")
        if "\n+++ /dev/null" in patch or "deleted file mode" in patch:
            self.add("lose", "patch that deletes a file", "delete")

    def _request(self, text: dict[str, str], headers: dict[str, Any]) -> None:
        method, url = text.get("method", "GET").upper(), text.get("url", "")
        if _OVERRIDE.search(_line(headers)):
            method = "POST"
        self.request(method, Word(url), text.get("body", ""), f"{method} {url}")

    # ---- parts that programs share -----------------------------------------------------------------

    def add(self, effect: str, what: str, shape: str) -> None:
        if effect == UNKNOWN:
            return self.doubt(what)
        row = self.table.effects[effect]
        shape = shape if shape == "=" else f"{effect} {shape}"
        self.found.append(Part(row, what, shape, self.here, row.changes))
        return None

    def doubt(self, why: str) -> None:
        self.doubts.append(why)

    def path(self, verb: str, effect: str, word: Word, *folders: str) -> None:
        """A file is looked at, read, written or deleted."""
        for cwd in folders:
            self.touch(word, cwd, names=effect == "look")
        if effect == "look":
            return self.add("look", f"{verb} {word.text}", "")
        for cwd in folders:
            marks = self.facts.places.marks(word.text, cwd, word.glob)
            full = self.facts.places.full(word.text, cwd) if "\0" not in word.text else word.text
            shape = f"{verb} in {full.rpartition('/')[0]}"
            got = place_effect(effect, marks)
            if effect == "write":
                self.written.add(full)
            if got == "secret":
                self.secrets.append(full)
            self.add(got, f"{verb} {word.text}", shape)
        return None

    def touch(self, word: Word, cwd: str, names: bool = False) -> None:
        """Note what place is reached; `names`: no more of it than what lies there."""
        if "\0" not in word.text:
            full = re.split(r"/[^/]*[*?\[]", self.facts.places.full(word.text, cwd))[0]
            self.touched.add(f"{full}/" if names else full)

    def request(self, method: str, url: Word, body: str, what: str) -> None:
        """An HTTP request; raises the doubt when the host or what is sent is not known."""
        kind, host = hosts.kind_of(url.text), hosts.host_of(url.text)
        scheme = url.text.partition(":")[0].lower() if ":/" in url.text else "http"
        if scheme == "file":
            return self.path(
                "fetch", "read", Word(url.text[5:].lstrip("/").join(["/", ""])), self.facts.cwd
            )
        if scheme in ("smtp", "smtps"):
            self.sends = True
            return self.add("message", what, f"mail by {host}")
        if scheme not in ("http", "https"):
            self.doubt(f"another way than the web: {what}")
        if _OVERRIDE.search(what):
            method = "POST"
        self.names.add(f"host:{host}")
        if kind == "odd" or not (url.sure or kind == "local"):
            self.doubt(f"where it leads is not clear: {what}")
        if kind != "local" and re.search(self.table.words["acting"], url.text, re.I):
            self.doubt(f"it may act by being asked for: {what}")
        if hosts.gives_keys(host):
            self.secrets.append("the cloud's keys")
        reads = method in ("GET", "HEAD", "OPTIONS") and not body
        self.sends = self.sends or kind != "local"
        effects = {"local": "keep", "private": "near"}
        effect = "fetch" if reads else effects.get(kind, "post")
        if not reads:
            self.said.append(body)
            if re.search(self.table.words["payments"], host):
                self.add("pay", what, f"{method} {host}")
        self.fetches = self.fetches or kind != "local"
        self.here, before = self.here | {f"host:{host}"}, self.here
        self.add(effect, what, f"{method} {host}")
        self.here = before
        return None

    # ---- shell -------------------------------------------------------------------------------------

    def script(self, text: str, folders: list[str], temps: Iterable[str] = ()) -> None:
        """Everything that a script runs; `temps` are variables that hold a name from mktemp."""
        self.depth += 1
        if self.depth > DEPTH:
            return self.doubt("it is nested too deeply")
        if len(text) > LONG:
            return self.doubt("it is too long to judge")
        script = parse(text, self.facts.known | dict.fromkeys(temps, TEMP))
        self.doubts += script.faults
        cwds = {0: folders}
        idle = uncalled(script)
        for number, command in enumerate(script.commands):
            if command.body in idle:
                continue
            here = cwds.get(command.scope) or cwds.get(script.scopes[command.scope]) or folders
            here = Program(self, script, command, here).judge()
            cwds[command.scope] = here
            if number > 2000:
                self.doubt("it is too long to judge")
                break
        self.depth -= 1
        return None

    # ---- the whole ---------------------------------------------------------------------------------

    def judgement(self) -> Judgement:
        secrets = list(dict.fromkeys([*self.secrets, *(self.carried if self.sends else ())]))
        if secrets and self.sends:
            self.add("post", f"a secret leaves this machine: {secrets[0]}", "")
        elif secrets and not any(part.axes == self.table.effects["secret"] for part in self.found):
            self.add("secret", f"secret: {secrets[0]}", "")
        return Judgement(
            parts=tuple(self.found),
            doubts=tuple(dict.fromkeys(self.doubts)),
            secrets=tuple(secrets),
            names=frozenset(self.names),
            touched=frozenset(self.touched),
            said="\n".join(self.said),
            cents=self._cents(),
        )

    def _cents(self) -> int | None:
        """What a payment costs, where one amount is named."""
        paid = [part.what for part in self.found if part.axes.cost == "money"]
        found = _AMOUNT.findall("\n".join([*paid, *self.said]))
        if len(set(found)) != 1 or len(set(paid)) != 1:
            return None
        whole, rest = found[0]
        return int(whole) * 100 + int(rest[1:]) if rest else int(whole)


def place_effect(effect: str, marks: set[str]) -> str:
    """What reading, writing or deleting means at a place with these marks."""
    if effect == "read":
        secret = "secret" in marks or "raw" in marks
        return "secret" if secret else "read"
    if "quiet" in marks:
        return "read"
    if marks & {"startup", "hooks", "store", "devices"} and "scratch" not in marks:
        return "system"
    if effect == "write":
        return "keep" if marks & {"inside", "scratch"} else "lose"
    if marks & {"whole", "root"}:
        return "lose"
    return "undoable" if "scratch" in marks or marks >= {"inside", "made"} else "lose"


def _strings(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.items() if isinstance(value, dict) else value:
            yield from _strings(list(each) if isinstance(each, tuple) else each)


def _line(args: dict[str, Any]) -> str:
    return json.dumps(args, ensure_ascii=False, default=str)
