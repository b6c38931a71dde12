"""What every test stands on: a home of its own, an environment without the person's settings, no network
but loopback, and no process that outlives the module that started it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.tools.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[1]
MARK = "PYTEST_RUN_MARK"  # environment variable by which the processes of this run are known
GRACE = 3.0  # seconds a process may take to end after the test that stopped it


def pytest_configure() -> None:
    """A runner started in the background ignores Ctrl-C; what the tests start must not inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a short path: the address of a Unix socket holds 107 bytes (unix(7))."""
    folder = Path(tempfile.mkdtemp(prefix="exo-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(short_folder: Path) -> Home:
    """A fresh home with its folders made."""
    return Home(short_folder / "h").make()


@pytest.fixture(scope="module")
def exo(tmp_path_factory: Any) -> Iterator[Home]:
    """A running Exo with scripted models; its home."""
    found = Home(tmp_path_factory.mktemp("exo") / "h").make()
    with Supervisor(found, ["exod", "models"], {"models": ("--fake",)}) as services:
        services.wait_ready()
        yield found


@pytest.fixture(scope="session")
def console_at() -> Any:
    """exo-console on a port: `with console_at(home, port, clock?, pin?) as console`."""

    @contextlib.contextmanager
    def serve(home: Home, port: str, clock: Any = None, pin: Any = None) -> Iterator[Any]:
        from exo.device.console import Console
        from exo.device.pin import Pin

        clock = clock or SystemClock()
        console = Console(port, home, pin or Pin(home.state / "pin", clock), clock)
        stop = threading.Event()
        thread = threading.Thread(target=console.run, args=(stop,))
        thread.start()
        try:
            yield console
        finally:
            stop.set()
            console.wake()
            thread.join(10)
            assert not thread.is_alive()

    return serve


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """No setting of the person reaches a test, and no test reaches the person's home."""
    for name in list(os.environ):
        if name.startswith("EXO_") and name != "EXO_MODELS":
            monkeypatch.delenv(name)
    unused = Path(tempfile.gettempdir()) / f"exo-unused-{secrets.token_hex(4)}"
    monkeypatch.setenv("EXO_HOME", str(unused))


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that would leave the machine fails the test that makes it."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def check(link: socket.socket, address: Any) -> None:
        if link.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])
            if not (host.startswith("127.") or host in ("::1", "localhost", "0.0.0.0", "")):
                raise AssertionError(f"a test connects to {host}: tests stay on loopback")

    def guarded(link: socket.socket, address: Any) -> None:
        check(link, address)
        connect(link, address)

    def guarded_ex(link: socket.socket, address: Any) -> int:
        check(link, address)
        return connect_ex(link, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)


@pytest.fixture(scope="session")
def shared_processes() -> set[int]:
    """Ids of processes that a session-wide fixture keeps: added by it, left alone by the check below."""
    return set()


@pytest.fixture(scope="session", autouse=True)
def _run_mark() -> Iterator[str]:
    mark = secrets.token_hex(8)
    os.environ[MARK] = mark
    yield mark
    del os.environ[MARK]


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_running(_run_mark: str, shared_processes: set[int]) -> Iterator[None]:
    """Fail the module whose processes still run after it, and end them."""
    before = set(_marked_processes(_run_mark))
    yield
    end = time.monotonic() + GRACE
    while left := _left(_run_mark, before | shared_processes):
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    assert not left, f"still running after this module's tests: {left}"


def _left(mark: str, known: set[int]) -> dict[int, str]:
    """{pid: command line} of this run's processes that nobody vouches for."""
    return {pid: words for pid, words in _marked_processes(mark).items() if pid not in known}


def _marked_processes(mark: str) -> dict[int, str]:
    found = {}
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended just now, or belongs to somebody else
        if words and "resource_tracker" not in words:  # a zombie has no command line
            found[int(entry.name)] = words.strip()
    return found
