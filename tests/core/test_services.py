"""The supervisor: ready or a reason, restarts, an end that takes its children along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.errors import ServiceError
from exo.core.base.files import read_pid
from exo.core.base.home import Home
from exo.core.base.unix import get, reachable
from exo.tools import supervisor as services
from exo.tools.supervisor import Supervisor

FAKE = {"models": ("--fake",)}


def wait(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """A zombie is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `python -m exo.tools.supervisor` on the home; killed at the end if it still runs."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "exo.tools.supervisor",
            "--home",
            str(tmp_path / "home"),
            *words,
        ]
        environment = {**os.environ, "EXO_MODELS_FAKE": "1"}
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=30)


def ready(home: Home) -> None:
    wait(lambda: reachable(home.exod_socket) and reachable(home.models_socket))


def test_supervisor_killed_takes_its_services_along(supervisor: Any, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    process = supervisor()
    ready(home)
    assert get(home.models_socket, "/health")["fake"]
    pids = [read_pid(home.lock_file(name)) for name in ("exod", "models")]
    assert all(map(alive, pids))
    process.kill()
    wait(lambda: not any(map(alive, pids)))
    assert not home.exod_socket.exists()


def test_supervisor_ends_in_order_on_sigterm_and_a_second_is_refused(
    supervisor: Any, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    first = supervisor()
    ready(home)
    second = supervisor()
    _, err = second.communicate(timeout=60)
    assert second.returncode == 1 and f"process {first.pid}" in err.decode()
    pids = [read_pid(home.lock_file(name)) for name in ("exod", "models")]
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 0
    assert not any(map(alive, pids)) and not home.exod_socket.exists()


def test_supervisor_with_idle_ends_when_exod_does(supervisor: Any, tmp_path: Path) -> None:
    process = supervisor("--idle", "0.5")
    ready(Home(tmp_path / "home"))
    assert process.wait(60) == 0


def test_where_systemd_runs_them_nobody_starts_a_second(supervisor: Any, tmp_path: Path) -> None:
    home = Home(tmp_path / "home").make()
    (home.state / "systemd").touch()
    with pytest.raises(ServiceError, match="systemd runs them; see `systemctl status exod"):
        services.run(home, ["exod"])


def test_unknown_service_is_wrong_use(supervisor: Any) -> None:
    process = supervisor("nonsense")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and b"nonsense" in err


def test_crashed_service_is_started_again_with_back_off(processes: Any) -> None:
    for name in ("models", "exod"):
        dead = processes.kill(name)
        wait(lambda name=name, dead=dead: processes.supervisor.pids().get(name, dead) != dead)
    processes.client.wait_ready(60)
    processes.supervisor.wait_ready()
    assert processes.ask(processes.session(), "hello")["stop_reason"] == "end"
    crashes = [line for line in processes.said if "ended (signal 9); starting again" in line]
    assert [line.split()[0] for line in crashes] == ["models", "exod"]


def test_what_somebody_else_runs_is_left_alone(exod: Any, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    other = exod()
    Client(home.exod_socket).wait_ready(60)
    with Supervisor(home, ("exod",)) as supervisor:
        supervisor.wait_ready()
        supervisor.tick()
        assert supervisor.pids() == {}
    assert other.poll() is None


def test_service_that_cannot_start_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "BACKOFF", (0.01, 0.01))
    home = Home(tmp_path / "home").make()
    home.settings_file.write_text('"turn.rounds" = 0')
    with Supervisor(home, ("exod",)) as supervisor, pytest.raises(ServiceError) as caught:
        supervisor.wait_ready()
    assert "start exod: exod: setting turn.rounds" in str(caught.value)
    assert "exod.log" in str(caught.value)


def test_logs_are_private_and_do_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "LOG_LIMIT", 10)
    home = Home(tmp_path / "home").make()
    log = home.logs / "exod.log"
    log.write_text("x" * 100)
    log.chmod(0o600)
    with Supervisor(home, ("exod",)) as supervisor:
        supervisor.wait_ready()
        assert log.with_suffix(".log.1").read_text() == "x" * 100
        assert log.stat().st_mode & 0o777 == 0o600
