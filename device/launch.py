"""Starts the supervisor when nobody answers, and stops it with us. Owns one child process; the table of
services is the supervisor's. Invariant: after `stop`, or our death, nothing that was started runs on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from exo.core.base.errors import ServiceError
from exo.core.base.files import read_pid
from exo.core.base.home import Home
from exo.core.base.lifeline import VARIABLE
from exo.core.base.unix import reachable

READY = 60.0  # seconds until exod and exo-models must answer


class Services:
    """The supervisor as a child process."""

    def __init__(
        self, home: Home, report: Callable[[str], None], fake_models: bool = False
    ) -> None:
        """`report` takes progress for a person; `fake_models` runs exo-models without model files."""
        self._home, self._report, self._fake = home, report, fake_models
        self._child: subprocess.Popen[bytes] | None = None
        self._lifeline = -1

    def start(self) -> None:
        """Start what does not answer. Raises ServiceError."""
        wanted = {"exod": self._home.exod_socket, "models": self._home.models_socket}
        missing = [name for name, socket in wanted.items() if not reachable(socket)]
        if not missing:
            return
        self._home.make()
        reading, self._lifeline = os.pipe()
        environ = os.environ | {VARIABLE: str(reading)}
        command = [sys.executable, "-m", "exo.tools.supervisor", "--home", str(self._home.root)]
        environ |= {"EXO_MODELS_FAKE": "1"} if self._fake else {}
        try:
            with (self._home.logs / "supervisor.log").open("ab") as log:
                self._child = subprocess.Popen(
                    [*command, *wanted],
                    env=environ,
                    pass_fds=(reading,),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # a Ctrl-C in the terminal is ours to handle
                )
        except OSError as error:
            raise ServiceError("start the supervisor", str(error)) from error
        finally:
            os.close(reading)
        self._report(f"starting {' and '.join(missing)} for {self._home.root}")

    def wait(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Return once both answer. Raises ServiceError when they do not, or the child ends."""
        end = time.monotonic() + READY
        wanted = {"exod": self._home.exod_socket, "models": self._home.models_socket}
        while wanted and not stopped():
            for name in [name for name, socket in wanted.items() if reachable(socket)]:
                self._report(f"{name} is ready")
                del wanted[name]
            self._check()
            if time.monotonic() > end:
                what = " and ".join(wanted)
                raise ServiceError(f"start {what}", f"no answer in {READY:.0f} s", self._where())
            if wanted:
                time.sleep(0.05)

    def switch(self, run: bool) -> None:
        """Start (and wait) or stop. Raises ServiceError."""
        if run:
            self.start()
            self.wait()
        else:
            self.stop()

    def kill(self, name: str) -> None:
        """End exod or models at once, as a fault would. Raises ServiceError when it is not ours."""
        pid = read_pid(self._home.lock_file(name)) if self._child else 0
        if not pid:
            raise ServiceError(f"kill {name}", "this handheld did not start it", "")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _check(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            code = self._child.returncode
            raise ServiceError(
                "start the services", f"the supervisor ended with {code}", self._where()
            )

    def _where(self) -> str:
        return f"see {self._home.logs}"

    def stop(self) -> None:
        """Stop what was started, and wait until it is gone."""
        if self._child is None:
            return
        child, self._child = self._child, None
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
