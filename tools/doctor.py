"""`exo doctor`: looks at everything a person may have to mend, and says how. Changes nothing."""

from __future__ import annotations

import argparse
import contextlib
import ctypes.util
import importlib.util
import json
import os
import platform
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from exo.core.base.client import Client
from exo.core.base.errors import ExoError
from exo.core.base.files import read_pid
from exo.core.base.home import Home, models_folder
from exo.core.base.settings import TABLE, Settings
from exo.core.base.unix import get, reachable
from exo.core.router import catalog as router

VARIABLES = {"EXO_HOME", "EXO_MODELS", "EXO_MODELS_FAKE", "EXO_DUMPABLE"}  # beside the settings
PROVIDERS = Path(router.__file__).with_name("catalog.toml")
FREE_MB = 200  # below this a card is nearly full


@dataclass(frozen=True)
class Finding:
    """`state` is ok, warning or fault; `mend` is a command or an action, "" when all is well."""

    part: str
    state: str
    what: str
    mend: str = ""


def doctor(options: argparse.Namespace) -> int:
    """Print the findings; exit 1 when one of them is a fault."""
    findings = list(examine(Home.find(options.home)))
    faults = [row for row in findings if row.state == "fault"]
    if options.json:
        print(json.dumps({"ok": not faults, "findings": [asdict(row) for row in findings]}))
        return 1 if faults else 0
    marks = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  "}
    for row in findings:
        mend = f" -> {row.mend}" if row.mend else ""
        print(f"{marks[row.state]} {row.part}: {row.what}{mend}")
    warnings = sum(row.state == "warning" for row in findings)
    count = f"{warnings} warning{'s' if warnings != 1 else ''}"
    ending = "Nothing is in the way." if not warnings else f"Nothing is in the way; {count}."
    print(f"{len(faults)} fault(s), {count}" if faults else ending)
    return 1 if faults else 0


def examine(home: Home) -> Iterator[Finding]:
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.machine()}")
    yield from _memory()
    yield from _folders(home)
    yield from _settings(home)
    yield from _programs()
    yield from _models()
    for name, socket in (("exod", home.exod_socket), ("models", home.models_socket)):
        yield _service(home, name, socket)
    yield from _plugins(home)
    yield _policies(home)
    yield from _record(home)
    yield from _providers()


def _memory() -> Iterator[Finding]:
    facts = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        facts[name] = int(rest.split()[0]) // 1024
    total, free = facts["MemTotal"], facts.get("MemAvailable", 0)
    text = f"{total} MB, {free} MB free"
    if total < 900:
        mend = "expect one model at a time; set EXO_MODELS_RAM_MB=300 and EXO_MODELS_WINDOW=2048"
        yield Finding("memory", "warning", text, mend)
    else:
        yield Finding("memory", "ok", text)
    if facts.get("CmaTotal", 0) * 3 > total:
        mend = "put dtoverlay=vc4-kms-v3d,cma-64 into /boot/firmware/config.txt"
        what = f"{facts['CmaTotal']} MB are reserved for graphics (CMA)"
        yield Finding("memory", "warning", what, mend)


def _folders(home: Home) -> Iterator[Finding]:
    for part, path in (("home", home.root), ("models", models_folder())):
        there = path
        while not there.exists():
            there = there.parent
        free = shutil.disk_usage(there).free // 1_000_000
        if not there.is_dir() or not os.access(there, os.W_OK):
            mend = "give this user the folder, or name another one (EXO_HOME, EXO_MODELS)"
            yield Finding(part, "fault", f"{path} cannot be written", mend)
        elif free < FREE_MB:
            yield Finding(part, "fault", f"{path}: only {free} MB are free", "free some space")
        else:
            yield Finding(part, "ok", f"{path}, {free} MB free")


def _settings(home: Home) -> Iterator[Finding]:
    try:
        settings = _with_artifacts(home, Settings.load(home.settings_file))
        rows = [(row.name, *settings.origin(row.name)) for row in TABLE]
    except ExoError as error:
        yield Finding("settings", "fault", str(error), f"edit {home.settings_file}")
        return
    known = {"EXO_" + name.upper().replace(".", "_") for name, _, _ in rows} | VARIABLES
    for name in sorted(set(filter(lambda each: each.startswith("EXO_"), os.environ)) - known):
        yield Finding("settings", "warning", f"{name} is no setting of ours", f"unset {name}")
    own = [f"{name} = {value} ({origin})" for name, value, origin in rows if origin != "default"]
    yield Finding("settings", "ok", "; ".join(own) or f"all {len(TABLE)} at their defaults")


def _with_artifacts(home: Home, settings: Settings) -> Settings:
    """What the artifacts of the record make of them; a record that cannot be read is told of elsewhere."""
    from exo.core.base.clock import SystemClock
    from exo.core.ledger.ledger import Ledger
    from exo.core.substrate.artifacts import Artifacts

    if not (home.store / "private" / "ledger.sqlite").exists():
        return settings
    with contextlib.suppress(ExoError):
        ledger = Ledger(home, SystemClock(), enrol=False)
        with contextlib.closing(ledger):
            return settings.under(Artifacts(ledger).all())
    return settings


def _policies(home: Home) -> Finding:
    from exo.tools.gate.command import open_gate

    gate = open_gate(home)
    gate.policy()
    if gate.fault:
        return Finding("policies", "fault", gate.fault, f"edit the file in {home.store}/policies")
    return Finding("policies", "ok", "as they stand in store/policies, or the defaults")


def _record(home: Home) -> Iterator[Finding]:
    from exo.core.base.clock import SystemClock
    from exo.core.ledger.ledger import Ledger

    if not (home.store / "private" / "ledger.sqlite").exists():
        yield Finding("record", "ok", "empty: nothing was said yet")
        return
    try:
        ledger = Ledger(home, SystemClock(), enrol=False)
        report, count = ledger.verify(full=False), ledger.position()
        ledger.close()
    except ExoError as error:
        yield Finding("record", "fault", str(error), error.do or "restore a backup")
        return
    if (fault := report.fault) is not None:
        what = f"entry {fault.seq} of {fault.author[:12]}: {fault.what}"
        yield Finding("record", "fault", what, "run `exo ledger verify`, restore a backup")
    else:
        yield Finding("record", "ok", f"{count} entries, whole since the last checkpoint")


def _providers() -> Iterator[Finding]:
    """Keys of remote providers that are in the environment; without one, the local model alone answers."""
    rows = tomllib.loads(PROVIDERS.read_text())["providers"].values()
    found = [key for row in rows for key in row.get("keys", ()) if os.environ.get(key)]
    yield Finding("providers", "ok", ", ".join(found) or "no key is set: the local model alone")


def _programs() -> Iterator[Finding]:
    if found := shutil.which("espeak-ng"):
        yield Finding("voice", "ok", found)
    else:
        yield Finding("voice", "fault", "no espeak-ng: no speech", "sudo apt-get install espeak-ng")
    if ctypes.util.find_library("portaudio"):
        yield Finding("audio", "ok", "PortAudio is there")
    else:
        mend = "sudo apt-get install libportaudio2"
        yield Finding("audio", "warning", "no PortAudio: no microphone or loudspeaker", mend)
    for module, extra in (("llama_cpp", "models"), ("onnxruntime", "models"), ("PIL", "board")):
        if importlib.util.find_spec(module) is None:
            mend = (
                f"./flash.sh setup (or: {sys.executable} -m pip install 'exo-companion[{extra}]')"
            )
            yield Finding("python", "fault", f"the module {module} is missing", mend)


def _models() -> Iterator[Finding]:
    try:
        from exo.models import catalog
    except ImportError as error:
        yield Finding("models", "fault", str(error), "./flash.sh setup")
        return
    table = catalog.Catalog(models_folder())
    for row in (row for row in table.rows if row.default):
        try:
            table.require(row)
        except ExoError as error:
            yield Finding(f"model {row.name}", "fault", str(error), f"exo models get {row.name}")
        else:
            size = f"{row.size_bytes / 1e6:.0f} MB"
            yield Finding(f"model {row.name}", "ok", f"{row.title}, {size}, whole")


def _plugins(home: Home) -> Iterator[Finding]:
    """What the running exod made of its plugins; one that does not run has loaded none."""
    if not reachable(home.exod_socket):
        return
    try:
        rows = Client(home.exod_socket).call("command.run", name="plugins")["result"]["plugins"]
    except (ExoError, KeyError) as error:
        yield Finding("plugins", "warning", str(error))
        return
    for row in rows:
        part, what = f"plugin {row['name']}", f"{row['state']}, {len(row['registered'])} parts"
        if row["state"] == "off" and "last start" in row["error"]:  # the start guard's
            do = f"mend or remove {row['source']}, then start exod again"
            yield Finding(part, "warning", f"off: {row['error']}", do)
        elif row["state"] == "off":
            yield Finding(part, "ok", f"off: {row['error'] or 'by plugins.off'}")
        elif row["error"]:
            yield Finding(part, "warning", row["error"], f"mend or remove {row['source']}")
        elif row["faults"]:
            what = f"{row['faults']} failures of its hooks, the last: {row['last_fault']}"
            yield Finding(part, "warning", what, f"mend {row['source']}")
        else:
            yield Finding(part, "ok", what)


def _service(home: Home, name: str, socket: Path) -> Finding:
    pid = read_pid(home.lock_file(name))
    if reachable(socket):
        try:
            facts = get(socket, "/health", 5.0)
        except ExoError as error:
            return Finding(name, "fault", f"process {pid} does not answer: {error}", f"kill {pid}")
        return Finding(name, "ok", f"process {pid} answers ({facts.get('status', '?')})")
    log = home.logs / f"{name}.log"
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    last = f"; its last words: {lines[-1][:160]}" if lines else ""
    if read_pid(home.lock_file("serve")):
        mend = f"read {log}"
        return Finding(name, "fault", f"is to run but does not answer{last}", mend)
    return Finding(name, "ok", f"does not run; `exo ask` or ./flash.sh run starts it{last}")
