"""Tools that are written while Exo runs, as a plugin: make_tool for a model, the commands `tool` and `sandbox` for a
person. Owns their words; the shed does the work."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from dataclasses import asdict
from typing import Any

from exo.core.base.errors import ExoError, HomeError, ProtocolError, SettingError
from exo.core.base.home import Home
from exo.core.base.settings import changes
from exo.core.ledger.canonical import canonical
from exo.core.ledger.entry import Draft
from exo.core.plugins import Context, PluginContext, ToolSpec
from exo.core.protocol.schema import Call
from exo.core.sandbox.host import Sandbox
from exo.core.substrate.artifacts import Artifacts, Version
from exo.core.substrate.secrets import SHORTEST
from exo.tools.agent.package import made, read_package
from exo.tools.agent.replay import KEPT, Records
from exo.tools.agent.shed import PREFIX, Held, Shed
from exo.tools.agent.workspace import Workspace
from exo.tools.guest import library

MAKE = """Write a tool of your own in MicroPython and use it from then on. `source` has a function run(...) that takes
the parameters; its result is JSON. It has no files, network or clock; by `can` it may get functions of the module exo:
recall(query), http(method, url, headers, body), space_read(name), space_write(name, text), space_list(). Every
test {args, expect} has to hold."""
PARAMETERS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "small letters, digits and _"},
        "description": {"type": "string"},
        "parameters": {"type": "object", "description": "JSON Schema object, flat"},
        "source": {"type": "string"},
        "tests": {"type": "array"},
        "can": {"type": "array", "description": "of recall, http, space"},
    },
    "required": ["name", "description", "source", "tests"],
    "additionalProperties": False,
}

READ = "prompt/system, text/TOOL, settings/context, threshold/MECHANISM"
_READ = re.compile(r"prompt/system|settings/context|(text|threshold)/.+")


def register(ctx: PluginContext) -> None:
    """Offer make_tool and the commands; the tools themselves are read once they are wanted."""
    core = ctx.core
    if core is None or ctx.home is None or core.memory is None:
        raise ValueError("agent tools need a running exod with a record")
    home, clock, record = Home(ctx.home), core.clock, core.memory
    workspace = Workspace(home.state / "workspace", clock)
    box = Sandbox(home.cache / "sandbox", clock, library())
    hand = list[str]()  # sessions
    records = Records(home.state / "replay", core.secrets.hide if core.secrets else str)
    shed = Shed(core, box, workspace, core.as_of, records)

    async def make_tool(context: Context, **given: Any) -> str:
        at = core.as_of(context.session)
        held_then = await record.run(lambda memory: memory.artifacts.all(at))
        # a model writes as the artifacts tell it to: they are the code that wrote
        code = hashlib.sha256(canonical(held_then)).hexdigest()
        held = await shed.add(made(**given), "model", context.turn, code)
        there = f"The tool {held.package.name} is there (version {held.version}); call it now."
        return f"{there}\n{held.told}".strip()

    def place() -> str:
        """The session of what is run by hand."""
        with contextlib.suppress(ProtocolError, IndexError):  # it was deleted, or there is none yet
            core.known(hand[-1])
            return hand[-1]
        hand.append(core.new_session("Tools by hand"))
        return hand[-1]

    async def tool(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """add {package}, list, show {name}, run {name, args}, remove {name}, replay {name, last}."""
        await shed.load()
        match args.get("action"):
            case "add":
                return _row(await shed.add(read_package(json.dumps(args.get("package"))), "person"))
            case "list":
                return {"tools": [_row(held) for held in shed.list()]}
            case "show":
                name = str(args.get("name", ""))
                versions = await record.run(lambda memory: memory.artifacts.history(f"tool/{name}"))
                held = shed.get(name)
                rows = _history(versions)
                return _row(held) | {"source": held.package.source, "history": rows}
            case "run":
                name, given = str(args.get("name", "")), args.get("args") or {}
                if not isinstance(given, dict):
                    raise ExoError(f"run the tool {name!r}", "its arguments are to be an object")
                held = shed.get(name)
                if held.state != "active":
                    do = "mend it and `exo tool add` it"
                    raise ExoError(f"run the tool {name!r}", f"in quarantine: {held.why}", do)
                ended = await core.act(session or place(), Call(f"run-{name}", name, given))
                return {"name": name, "ok": ended.ok, "text": ended.text}
            case "remove":
                await shed.remove(str(args.get("name", "")), "person")
                return {"removed": args.get("name")}
            case "replay":
                name, last = str(args.get("name", "")), args.get("last", KEPT)
                if type(last) is not int or not 0 < last <= KEPT:
                    raise ExoError("exo tool replay", f"the last 1 to {KEPT} calls are wanted")
                done, odd = await shed.replay(name, last)
                calls = [asdict(row) for row in done]
                return {"name": name, "calls": calls, "unreadable": odd}
        raise ExoError("exo tool", "there are add, list, show, run, remove and replay")

    async def sandbox(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """snapshot {label}, list, rewind {id}."""
        match args.get("action"):
            case "snapshot":
                label = str(args.get("label") or "snapshot")
                state = await asyncio.to_thread(workspace.mark, label)
                await noted("snapshot", state.id, state.label)
                return vars(state)
            case "list":
                states = await asyncio.to_thread(workspace.snapshots)
                return {"snapshots": [vars(state) for state in states]}
            case "rewind":
                state = await asyncio.to_thread(workspace.rewind, str(args.get("id", "")))
                await noted("rewind", state.id, state.label)
                return vars(state)
        raise ExoError("exo sandbox", "there are snapshot, list and rewind")

    async def artifact(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """list, show {name}, diff {name}, set {name, text}, use {name, version}, remove {name}."""
        action, name = args.get("action"), str(args.get("name", ""))
        if action == "list":
            return {"artifacts": await record.run(lambda memory: _artifacts(memory.artifacts))}
        if action not in ("show", "diff", "set", "use", "remove"):
            raise ExoError("exo artifact", "there are list, show, diff, set, use and remove")
        versions = await record.run(lambda memory: memory.artifacts.history(name))
        if not versions and action != "set":
            what = f"{action} {name[:80]!r}"
            if _READ.fullmatch(name):
                raise ExoError(what, "nothing was set yet: what is built in holds")
            raise ExoError(what, "there is no such artifact", "see `exo artifact list`")
        if action == "set":
            if not _READ.fullmatch(name):
                why = "nothing reads an artifact of that name"
                do = f"there are {READ}; tools: `exo tool add`"
                raise ExoError(f"set {name[:80]!r}", why, do)
            await _put(name, str(args.get("text", "")))
        elif action == "remove" and versions[-1].text is None:
            why = "it has ended already: " + (
                "its versions stay" if PREFIX in name else "what is built in holds"
            )
            raise ExoError(f"remove {name!r}", why, "`exo artifact use` brings a version back")
        elif action == "remove" and name.startswith(PREFIX):
            await shed.remove(name.removeprefix(PREFIX), "person")
        elif action == "remove":
            await record.run(
                lambda memory: memory.artifacts.put(name, None, "person", "", "removed")
            )
        elif action == "use":
            said = str(args.get("version"))
            number = int(said) if re.fullmatch(r"[0-9]{1,9}", said) else 0
            if not 0 < number <= len(versions):
                do = f"it has versions 1 to {len(versions)}"
                raise ExoError(f"use version {number} of {name}", "there is no such version", do)
            text, why = versions[number - 1].text, f"version {number} again"
            if text is not None and text == versions[-1].text:
                same = "" if number == len(versions) else f", as version {len(versions)}"
                raise ExoError(f"use version {number} of {name}", f"that text holds already{same}")
            if name.startswith(PREFIX) and text is not None:  # through its tests, as at first
                await shed.load()
                package = read_package(json.dumps(json.loads(text)["package"]))
                await shed.add(package, "person")
            else:
                await record.run(lambda memory: memory.artifacts.put(name, text, "person", why=why))
        versions = await record.run(lambda memory: memory.artifacts.history(name))
        now, told = versions[-1], {"name": name, "history": _history(versions)}
        before = versions[-2].text if len(versions) > 1 else ""
        return told | {"text": now.text, "before": before, "fault": _fault(now)}

    async def _put(name: str, text: str) -> None:
        try:
            await record.run(lambda memory: memory.artifacts.put(name, text, "person"))
        except SettingError as error:  # it knows which setting, the text knows where that stands
            where = line_of(text, error.what.removeprefix("setting "))
            what = f"{error.what} (line {where})" if where else error.what
            raise SettingError(what, error.why, error.do) from error

    async def secret(args: dict[str, Any], session: str | None) -> dict[str, Any]:
        """add {name, value, hosts}, list, remove {name}."""
        kept, name = core.secrets, str(args.get("name", ""))
        if kept is None:
            raise ExoError("exo secret", "this exod has no home")
        await record.run(lambda memory: memory.ledger.author)  # makes the device's key
        match args.get("action"):
            case "add":
                hosts = args.get("hosts")
                hosts = [str(host) for host in hosts] if isinstance(hosts, list) else []
                value = str(args.get("value", ""))
                try:
                    kept.put(name, value, hosts)
                except HomeError:
                    raise
                except ExoError as error:
                    raise ExoError(error.what, _unfit(name, value)) from error
                return {"name": name}
            case "list":
                return {"secrets": kept.names()}
            case "remove":
                kept.remove(name)
                return {"removed": name}
        raise ExoError("exo secret", "there are add, list and remove")

    async def noted(action: str, id_: str, label: str) -> None:
        draft = Draft("snapshot", {"action": action, "state": id_, "label": label})
        await record.run(lambda memory: memory.ledger.append(draft))

    spec = ToolSpec(
        "make_tool", " ".join(MAKE.split()), PARAMETERS, make_tool, "medium", "agent", timeout=60
    )
    ctx.register_tool(spec)
    ctx.register_command("tool", tool, "Agent tools: add, list, show, run, remove, replay.")
    ctx.register_command("sandbox", sandbox, "The space of agent tools: snapshot, list, rewind.")
    about = "Prompts, texts of tools, context settings and thresholds, in versions."
    ctx.register_command("artifact", artifact, about)
    ctx.register_command("secret", secret, "Values that tools may use and nobody reads.")
    ctx.register_life(shed.load, box.close)


def _unfit(name: str, value: str) -> str:
    """All that keeps a secret from being kept."""
    why = list[str]()
    if len(value) < SHORTEST:
        why.append(f"its value has {len(value)} characters, {SHORTEST} or more are wanted")
    if not value.isprintable():
        why.append("its value has characters that no request can carry")
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        why.append("a name has 1 to 64 letters, digits, . _ -")
    return "; ".join(why) or "its hosts are to be like api.example.com,*.example.org"


def _row(held: Held) -> dict[str, Any]:
    package = held.package
    return {
        "name": package.name,
        "description": package.description,
        "can": list(package.can),
        "code": package.code,
        "state": held.state,
        "why": held.why,
        "by": held.by,
        "version": held.version,
        "told": held.told,
    }


def _history(versions: list[Version]) -> list[dict[str, Any]]:
    return [
        {"version": row.number, "by": row.by, "code": row.code, "why": row.why, "ts": row.ts}
        for row in versions
    ]


def line_of(text: str, setting: str) -> int:
    """The line of a TOML text that sets `setting` (a whole name), 0 where none is seen to."""
    last, found = re.escape(setting.rpartition(".")[2]), 0
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(rf"^[^#]*(?<![\w-]){last}[\"']?\s*=", line):
            found = number
    return found


def _fault(version: Version) -> str:
    """Why what holds is not followed, "" when it is."""
    try:
        changes(version.name, version.text) if version.text is not None else None
    except SettingError as error:
        return str(error)
    return ""


def _artifacts(artifacts: Artifacts) -> list[dict[str, Any]]:
    rows = [artifacts.history(name)[-1] for name in artifacts.names()]
    return [
        {"name": row.name, "version": row.number, "by": row.by, "holds": row.text is not None}
        for row in rows
    ]
