"""exod: the process that owns all state. Owns its lock, its socket and an orderly end; what it does is
the engine's matter."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from typing import Any

from exo.core.base import lifeline
from exo.core.base.clock import PROOF, SystemClock
from exo.core.base.errors import ExoError, ServiceError, StorageError
from exo.core.base.files import ProcessLock, make_folder
from exo.core.base.home import Home
from exo.core.base.httpd import HttpServer
from exo.core.base.notify import Systemd
from exo.core.base.settings import Settings
from exo.core.engine.engine import Engine
from exo.core.engine.sessions import open_database
from exo.core.protocol.schema import Notice
from exo.core.router.router import Router
from exo.core.server import tcp
from exo.core.server.dispatcher import Dispatcher
from exo.core.server.http import Routes
from exo.core.server.hub import Hub
from exo.core.server.lines import LINE_LIMIT, LineSession

SERVER = "exod 0.1.0"


async def serve(home: Home, *, stdio: bool, idle: float, listen: str, lan: bool) -> None:
    """Run until SIGTERM, SIGINT, the end of the lifeline or, with `idle`, that many seconds without a
    client, a turn or a timer. `listen` (HOST:PORT) and `lan` come before the settings of TCP. Raises
    ExoError when it cannot start."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    lifeline.watch(lambda: loop.call_soon_threadsafe(stop.set))
    settings, systemd = Settings.load(home.settings_file), Systemd()
    clock = SystemClock(os.environ.get(PROOF))
    listen, lan = listen or settings.text("tcp.listen"), lan or bool(settings.origin("tcp.lan")[0])
    address = tcp.parse_address(listen, lan) if listen else None
    token = tcp.load_token(home.token_file) if address else ""
    database = open_database(home.sessions_db)
    hub = Hub(database, clock, settings.count("events.keep"))
    model = Router(home.state, settings.number("turn.silence"), clock)
    if model.fault is not None:
        print(f"exod: {model.fault}", file=sys.stderr, flush=True)
        with contextlib.suppress(StorageError):  # a full disk is told by the hub itself
            hub.publish(None, Notice("warning", "providers", str(model.fault)))
    engine = Engine(
        database,
        hub,
        model,
        settings,
        clock,
        notes=home.store / "private" / "corpus" / "notes",
        work=make_folder(home.root / "work"),
        server=SERVER,
        plugins=home.plugins,
        closed=(home.state, home.store / "private"),
        home=home,
    )
    dispatcher = Dispatcher(engine, hub)
    routes = Routes(dispatcher, SERVER)
    server = HttpServer(routes)
    guarded = HttpServer(tcp.Guarded(routes, token), most=tcp.CONNECTIONS, wait=tcp.HEAD_WAIT)
    engine.start()
    await server.listen_unix(home.exod_socket)
    waits: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
    if stdio:
        waits.append(asyncio.create_task(_stdio(dispatcher)))
    if idle:
        waits.append(asyncio.create_task(_idle(hub, engine, idle)))
    try:
        if address:
            host, port = address[0], await guarded.listen_tcp(*address)
            where = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            print(f"{SERVER} serves {where}: {tcp.WARNING}", file=sys.stderr, flush=True)
        print(f"{SERVER} serves {home.root}", file=sys.stderr, flush=True)
        waits.append(asyncio.create_task(systemd.live()))
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        systemd.tell("STOPPING=1")
        await engine.close()
        hub.close()
        await server.close()
        await guarded.close()
        await model.close()
        home.exod_socket.unlink(missing_ok=True)
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        database.close()


def _undumpable() -> None:
    """Keep other programs of this user, a tool's shell for one, out of our memory and environment
    (/proc/PID/environ, ptrace; prctl(2), PR_SET_DUMPABLE)."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


async def _stdio(dispatcher: Dispatcher) -> None:
    """Serve the one client at stdin and stdout, until it closes stdin."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), sys.stdout
        )
    except ValueError as error:  # asyncio cannot wait for a regular file
        do = "start it as a child with two pipes, or in a terminal"
        raise ServiceError("serve stdin and stdout", "one of them is a file", do) from error
    transport.set_write_buffer_limits(0)  # a line counts as sent when the pipe has it: none is lost
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    await LineSession(dispatcher, reader, writer).run()


async def _idle(hub: Hub, engine: Engine, seconds: float) -> None:
    quiet_since = asyncio.get_running_loop().time()
    seen = hub.seq
    while True:
        await asyncio.sleep(min(1.0, seconds / 4))
        now = asyncio.get_running_loop().time()
        if hub.listeners or engine.busy or hub.seq != seen:
            quiet_since, seen = now, hub.seq
        if now - quiet_since > seconds:
            return


def main(arguments: list[str] | None = None) -> int:
    """The script `exod`: exit 0 after an orderly end, 1 with one line that says what is wrong."""
    parser = argparse.ArgumentParser(prog="exod", description="Exo's daemon: owns all state.")
    add = parser.add_argument
    add("--home", help="the home folder (default: EXO_HOME, else ~/.exo)")
    add("--stdio", action="store_true", help="serve JSON lines on stdin and stdout too")
    add("--idle", type=float, default=0, help="end after so many seconds unused")
    add("--tcp", dest="listen", metavar="HOST:PORT", default="", help="there too; wants a token")
    add("--lan", action="store_true", help="let --tcp be an address that others can reach")
    options = vars(parser.parse_args(arguments))
    try:
        home = Home.find(options.pop("home")).make()
        lock = ProcessLock(home.lock_file("exod"), "exod")
        if not os.environ.get("EXO_DUMPABLE"):  # `exo footprint` reads how memory is shared
            _undumpable()
        try:
            asyncio.run(serve(home, **options))
        finally:
            lock.release()
    except ExoError as error:
        print(f"exod: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
