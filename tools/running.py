"""A running Exo for a command that needs one: the one that runs, else one started in the background,
which ends by itself when nobody has used it for a while."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from exo.core.base.client import Client
from exo.core.base.errors import ExoError, ServiceError
from exo.core.base.files import read_pid
from exo.core.base.home import Home
from exo.core.base.unix import reachable

IDLE = 600.0  # seconds a background Exo stays without a client, a turn or a timer
START = 60.0  # seconds it may take to answer


def here() -> Path:
    """The folder in which the command was started. Raises ExoError when it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ExoError("work in this folder", "it is gone", "go to one that is there") from error


def connect(home: Home) -> Client:
    """Return a client of this home's exod, with exo-models beside it. Raises ServiceError, HomeError."""
    home.make()
    client = Client(home.exod_socket)
    if reachable(home.exod_socket) and reachable(home.models_socket):
        return client
    log = home.logs / "serve.log"
    with log.open("ab") as file:
        start = file.tell()
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "exo.tools.supervisor",
                "--home",
                str(home.root),
                "--idle",
                str(IDLE),
            ],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,  # it outlives this command: timers ring, models stay warm
        )
    print(f"exo: starting in the background (process {process.pid})", file=sys.stderr)
    end = time.monotonic() + START
    while not (reachable(home.exod_socket) and reachable(home.models_socket)):
        failed = _crashes(log, start) >= 3
        # a second supervisor is refused by the first one's lock: then that one is waited for
        ended = process.poll() is not None and not read_pid(home.lock_file("serve"))
        if failed or ended or time.monotonic() > end:
            if not reachable(home.exod_socket):
                raise _not_started(home, "exod", log, start)
            # without models, rules and other routes still answer
            print(f"exo: {_not_started(home, 'models', log, start)}", file=sys.stderr)
            return client
        time.sleep(0.02)
    return client


def _crashes(log: Path, start: int) -> int:
    return log.read_bytes()[start:].count(b" ended (")


def _not_started(home: Home, service: str, log: Path, start: int) -> ServiceError:
    """The error with the last words of the service, else of its supervisor."""
    own = home.logs / f"{service}.log"
    for text in (own.read_bytes() if own.exists() else b"", log.read_bytes()[start:]):
        if lines := text.decode(errors="replace").strip().splitlines():
            why = lines[-1].removeprefix("exo: ")
            return ServiceError(f"start {service} in {home.root}", why, f"see {home.logs}")
    return ServiceError(f"start {service} in {home.root}", "it does not answer", f"see {home.logs}")
