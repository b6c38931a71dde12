"""The supervisor that keeps the services of a home running where no systemd does.

Invariant: a service that dies is started again (with back-off), one that somebody else runs is left
alone, and what was started here ends with the supervisor, however the supervisor ends (lifeline)."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from exo.core.base import lifeline
from exo.core.base.errors import ExoError, ServiceError, storage_error
from exo.core.base.files import ProcessLock
from exo.core.base.home import Home
from exo.core.base.unix import reachable
from exo.core.services import BY_NAME, Service

BACKOFF = (0.2, 10.0)  # seconds before a restart: first, most (doubling)
STEADY = 30.0  # seconds of life after which a crash counts as the first again
GRACE = 5.0  # seconds between SIGTERM and SIGKILL
FAKE = "EXO_MODELS_FAKE"  # environment, for trials: 1 starts scripted models
LOG_LIMIT = 1024 * 1024  # bytes; an older log is kept once


@dataclass
class _Child:
    service: Service
    options: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    delay: float = BACKOFF[0]
    not_before: float = 0.0
    restarts: int = -1


class Supervisor:
    """Keeps services of one home running. Use as a context manager."""

    def __init__(
        self,
        home: Home,
        names: Sequence[str],
        options: dict[str, tuple[str, ...]] | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`options` adds command-line words to a service; `say` hears of starts and crashes."""
        self.home, self._say = home, say
        self._children = [_Child(BY_NAME[n], (options or {}).get(n, ())) for n in names]
        self._pipe: tuple[int, ...] = ()

    def __enter__(self) -> Supervisor:
        self.home.make()
        self._pipe = os.pipe()
        try:
            self.tick()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def tick(self) -> None:
        """Look once: start what is not running and whose time has come. Call it often."""
        now = time.monotonic()
        for child in self._children:
            if child.process is not None and child.process.poll() is None:
                continue
            self._note_death(child, now)
            if now < child.not_before:
                continue
            child.not_before = now + 1.0  # where somebody else runs it: look again later
            if not reachable(self._socket(child)):
                self._start(child, now)

    def wait_ready(self, deadline: float = 60.0) -> None:
        """Return once every service answers. Raises ServiceError naming the one that does not, with
        the last line of its log."""
        end = time.monotonic() + deadline
        for child in self._children:
            while not reachable(self._socket(child)):
                self.tick()
                if time.monotonic() > end or child.restarts >= 3:
                    raise self._not_ready(child)
                time.sleep(0.02)

    def pids(self) -> dict[str, int]:
        """Process ids of the services that were started here."""
        started = [(child.service.name, child.process) for child in self._children]
        return {name: each.pid for name, each in started if each and each.poll() is None}

    def ended_well(self, name: str) -> bool:
        """Whether a service that was started here has ended with exit 0."""
        started = [c.process for c in self._children if c.service.name == name]
        return any(process is not None and process.poll() == 0 for process in started)

    def close(self) -> None:
        """SIGTERM to what was started here, the last first; SIGKILL after a grace."""
        running = [c.process for c in reversed(self._children) if c.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        end = time.monotonic() + GRACE
        for process in running:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for handle in self._pipe:
            os.close(handle)
        self._pipe = ()

    def _socket(self, child: _Child) -> Path:
        return self.home.state / child.service.socket

    def _start(self, child: _Child, now: float) -> None:
        row, reading = child.service, self._pipe[0]
        command = [sys.executable, "-m", row.module, "--home", str(self.home.root), *child.options]
        with self._log(row.name).open("ab") as log:
            child.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, lifeline.VARIABLE: str(reading)},
                pass_fds=(reading,),
                start_new_session=True,  # Ctrl-C is for the supervisor, which ends it in order
            )
        child.started, child.restarts = now, child.restarts + 1
        self._say(f"{row.name} started (process {child.process.pid})")

    def _note_death(self, child: _Child, now: float) -> None:
        if child.process is None:
            return
        code = child.process.returncode
        if now - child.started > STEADY:
            child.delay = BACKOFF[0]
        child.process, child.not_before = None, now + child.delay
        child.delay = min(child.delay * 2, BACKOFF[1])
        end = f"signal {-code}" if code < 0 else f"exit {code}"
        self._say(f"{child.service.name} ended ({end}); starting again")

    def _log(self, name: str) -> Path:
        path = self.home.logs / f"{name}.log"
        try:
            if path.exists() and path.stat().st_size > LOG_LIMIT:
                path.replace(path.with_suffix(".log.1"))
            path.touch(0o600)
        except OSError as error:
            raise storage_error(f"write {path}", error) from error
        return path

    def _not_ready(self, child: _Child) -> ServiceError:
        path = self.home.logs / f"{child.service.name}.log"
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        why = lines[-1] if lines else "it does not answer"
        return ServiceError(f"start {child.service.name}", why, f"see {path}")


def run(home: Home, names: Sequence[str], idle: float = 0.0) -> None:
    """The supervisor in the foreground, until SIGTERM, SIGINT or the end of its own lifeline; with
    `idle`, until exod has ended by itself after that many seconds unused. Raises ExoError."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    lifeline.watch(stop.set)
    if (home.state / "systemd").exists():  # `flash.sh install` writes it
        do = "see `systemctl status exod exo-models`"
        raise ServiceError(f"start the services of {home.root}", "systemd runs them", do)
    lock = ProcessLock(home.lock_file("serve"), "supervisor")
    options: dict[str, tuple[str, ...]] = {"exod": ("--idle", str(idle)) if idle else ()}
    if os.environ.get(FAKE) == "1":
        options["models"] = ("--fake",)
    try:
        with Supervisor(home, names, options, _say) as supervisor:
            # exod that ends of its own will is the idle end, a crash is not
            while not (stop.wait(0.05) or idle and supervisor.ended_well("exod")):
                supervisor.tick()
    finally:
        lock.release()


def _say(text: str) -> None:
    print(f"exo: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """`python -m exo.tools.supervisor`: exit 0 after an orderly end, 1 with one line."""
    parser = argparse.ArgumentParser(prog="exo.tools.supervisor", description=__doc__)
    parser.add_argument("--home")
    parser.add_argument("--idle", type=float, default=0)
    parser.add_argument("names", nargs="*", help=f"some of: {' '.join(BY_NAME)} (default: all)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BY_NAME]:
        parser.error(f"there is no service {unknown[0]!r}")
    try:
        run(Home.find(options.home).make(), options.names or list(BY_NAME), options.idle)
    except ExoError as error:
        print(f"exo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
