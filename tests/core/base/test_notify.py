"""Signs of life: what systemd is told, by whom, and that a loop that stands still is silent."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from exo.core.base.home import Home
from exo.core.base.notify import Systemd

PATIENCE = 30.0  # seconds until a sign must have come


@pytest.fixture
def manager(short_folder: Path) -> Iterator[socket.socket]:
    """Systemd's side: the socket at $NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.bind(str(short_folder / "notify"))
        link.settimeout(PATIENCE)
        yield link


def told(link: socket.socket) -> str:
    return link.recv(1000).decode()


@pytest.mark.parametrize("words", [("exo.core.server.app",), ("exo.models.app", "--fake")])
def test_a_service_is_ready_lives_and_ends(
    home: Home, manager: socket.socket, words: tuple[str, ...]
) -> None:
    environ = os.environ | {
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "150000",
        "EXO_HOME": str(home.root),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", *words], env=environ, stderr=subprocess.DEVNULL
    )
    try:
        assert [told(manager) for _ in range(3)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
        os.kill(process.pid, signal.SIGTERM)
        while (word := told(manager)) == "WATCHDOG=1":
            pass
        assert word == "STOPPING=1"
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def test_a_loop_that_stands_still_gives_no_sign(manager: socket.socket) -> None:
    async def stuck() -> None:
        life = asyncio.create_task(
            Systemd({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "60000"}).live()
        )
        await asyncio.sleep(0)
        assert told(manager) == "READY=1"
        time.sleep(0.3)  # five beats long nothing else gets its turn
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            told(manager)
        manager.settimeout(PATIENCE)
        await asyncio.sleep(0.05)
        assert told(manager) == "WATCHDOG=1"
        life.cancel()

    asyncio.run(stuck())


def test_the_variables_are_taken_out_and_those_of_another_process_do_not_count() -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    assert Systemd(environ).beat == 1.0
    assert not environ
    environ = {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}
    assert Systemd(environ).beat == 0.0


def test_without_systemd_nothing_is_said() -> None:
    Systemd({}).tell("READY=1")
    Systemd({"NOTIFY_SOCKET": "/nowhere/at/all"}).tell("READY=1")


def test_an_abstract_address(manager: socket.socket) -> None:
    name = f"exo-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.bind("\0" + name)
        link.settimeout(PATIENCE)
        Systemd({"NOTIFY_SOCKET": "@" + name}).tell("READY=1")
        assert told(link) == "READY=1"
