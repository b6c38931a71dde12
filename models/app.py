"""The program exo-models: one process, one home, one socket. Owns start, the lock and the end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from exo.core.base import lifeline
from exo.core.base.errors import ExoError
from exo.core.base.files import ProcessLock
from exo.core.base.home import Home
from exo.core.base.httpd import HttpServer
from exo.core.base.notify import Systemd
from exo.core.base.settings import Settings
from exo.models.backend import Backend
from exo.models.memory import thrifty
from exo.models.server import BODY_LIMIT, Routes


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, SIGINT or the end of the supervisor. 1: refused, with one line why."""
    parser = argparse.ArgumentParser(prog="exo-models", description="the local model server")
    parser.add_argument("--home", help="home folder (default: EXO_HOME, else ~/.exo)")
    parser.add_argument("--fake", action="store_true", help="scripted replies, no models")
    args = parser.parse_args(argv)
    thrifty()
    # two threads of numpy on two busy cores took 10 s for a head that one fits in 0.4 s (2026-12-01, x86-64)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        home = Home.find(args.home).make()
        lock = ProcessLock(home.lock_file("models"), "exo-models")
        try:
            asyncio.run(_serve(home, args.fake))
        finally:
            lock.release()
    except ExoError as error:
        print(f"exo-models: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


async def _serve(home: Home, fake: bool) -> None:
    loop, stop, systemd = asyncio.get_running_loop(), asyncio.Event(), Systemd()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)

    def orphaned() -> None:
        with contextlib.suppress(RuntimeError):  # the loop ended by itself
            loop.call_soon_threadsafe(stop.set)

    lifeline.watch(orphaned)
    backend = _backend(home, fake)
    server = HttpServer(Routes(backend), BODY_LIMIT)
    try:
        await server.listen_unix(home.models_socket)
        print(
            f"exo-models: serving on {home.models_socket}, process {os.getpid()}", file=sys.stderr
        )
        life = asyncio.create_task(systemd.live())
        ready = asyncio.create_task(backend.warm())  # else the first decisions come too late
        await stop.wait()
        life.cancel()
        ready.cancel()
        await asyncio.gather(ready, return_exceptions=True)
    finally:
        systemd.tell("STOPPING=1")
        await server.close()
        await backend.close()
        with contextlib.suppress(OSError):
            home.models_socket.unlink()


def _backend(home: Home, fake: bool) -> Backend:
    if fake:
        from exo.models.fake import FakeBackend

        return FakeBackend()
    from exo.models.local import LocalBackend

    return LocalBackend(home, Settings.load(home.settings_file))


if __name__ == "__main__":
    sys.exit(main())
