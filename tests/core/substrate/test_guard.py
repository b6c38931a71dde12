"""After three starts that did not hold, what held last is used, and the person is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exo.core.base.client import Client
from exo.core.base.errors import StorageError
from exo.core.base.home import Home
from exo.core.base.unix import reachable
from exo.core.substrate import guard
from exo.core.substrate.guard import Good, Guard
from exo.tools import doctor
from exo.tools.clock import FakeClock


def test_starts_count_until_one_holds(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "starts.json"
    assert Guard(path, clock).begin() is None
    Guard(path, clock).held(["gate"])
    good = Good(clock.now_ms(), ["gate"])
    clock.advance(1000)
    assert [Guard(path, clock).begin() for _ in range(5)] == [None, None, None, good, good]
    Guard(path, clock).held(["gate", "new"])
    assert Guard(path, clock).begin() is None


def test_a_file_that_is_not_whole_is_no_reason_to_fail(tmp_path: Path) -> None:
    path = tmp_path / "starts.json"
    for text in ("", "{", "[]", '{"failed": "x"}', '{"failed": 9, "good": {"ts": 1}}'):
        path.write_text(text)
        assert Guard(path, FakeClock()).begin() is None


@pytest.mark.parametrize("kind", ["fifo", "folder", "endless", "huge"])
def test_what_is_no_file_of_ours_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "starts.json"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "endless":
            path.symlink_to("/dev/zero")
        case "huge":
            path.touch()
            os.truncate(path, 3 * 10**9)
    assert Guard(path, FakeClock()).begin() is None


def test_a_start_that_ended_before_its_plugins_were_there_says_nothing(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "starts.json"
    Guard(path, clock).held(["gate", "tasks"])
    good = Good(clock.now_ms(), ["gate", "tasks"])
    for _ in range(5):  # however often that is
        cut = Guard(path, clock)
        assert cut.begin() is None
        cut.held(None)
    assert [Guard(path, clock).begin() for _ in range(4)] == [None, None, None, good]


def start(home: Home) -> subprocess.Popen[bytes]:
    env = {**os.environ, "EXO_MODELS_FAKE": "1"}
    words = [sys.executable, "-m", "exo.core.server.app", "--home", str(home.root)]
    return subprocess.Popen(words, env=env)


def test_a_plugin_that_kills_exod_cannot_brick_it(home: Home) -> None:
    home.plugins.mkdir()
    (home.plugins / "good.py").write_text(
        "def register(ctx):\n    ctx.register_action(hello)\ndef hello() -> str:\n    return 'hi'\n"
    )
    exod = start(home)
    client = Client(home.exod_socket, timeout=30.0)
    client.wait_ready(30)
    client.call("command.run", name="plugins")
    exod.terminate()
    assert exod.wait(30) == 0

    killer = "import os, signal, time\ndef register(ctx):\n    time.sleep(0.2)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    (home.plugins / "killer.py").write_text(killer)
    ends = []
    for _ in range(3):
        exod = start(home)
        ends.append(exod.wait(30))
    assert ends == [-signal.SIGKILL] * 3

    exod = start(home)
    client.wait_ready(30)
    rows = client.call("command.run", name="plugins")["result"]["plugins"]
    state = {row["name"]: row["state"] for row in rows}
    assert (state["good"], state["killer"]) == ("loaded", "off")
    told = [row for row in doctor._plugins(home) if row.state == "warning"]
    assert [row.part for row in told] == ["plugin killer"]
    assert "not in the last start that held" in told[0].what and "killer.py" in told[0].mend
    notices = []
    for event in client.events(0):
        if event["type"] == "notice" and event["body"]["code"] == "guard":
            notices.append(event["body"]["text"])
            break
    assert "3 starts failed" in notices[0]
    exod.terminate()
    assert exod.wait(30) == 0
    end = time.monotonic() + 10
    while reachable(home.exod_socket) and time.monotonic() < end:
        time.sleep(0.02)


def test_a_start_that_was_helped_makes_nothing_good_that_was_not(tmp_path: Path) -> None:
    """It held with what was there before; what came since is still what broke the starts."""
    clock, path = FakeClock(), tmp_path / "starts.json"
    Guard(path, clock).held(["gate"])
    good = Good(clock.now_ms(), ["gate"])
    for _ in range(3):
        clock.advance(1000)  # a bad artifact came meanwhile
        for expected in (None, None, None, good):
            start = Guard(path, clock)
            assert start.begin() == expected
        start.held(["gate"])


def test_no_start_fails_for_its_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "starts.json"
    kept = ['{"failed": 1e999, "good": null}', '{"failed": 9, "good": {"ts": "x", "plugins": 5}}']
    kept += ['{"failed": 9, "good": {"ts": 1e999, "plugins": []}}', "[" * 100_000, "\ufeff{}"]
    kept += ['{"failed": 9, "good": {"ts": 99999999999999999, "plugins": ["a"]}}']
    for text in kept:
        path.write_text(text)
        assert Guard(path, FakeClock()).begin() is None, text
    good = Good(1_600_000_000_000, ["gate"])
    path.write_text(json.dumps({"failed": 3, "good": vars(good)}))

    def full(*given: object) -> None:
        raise StorageError("write", "no space left on the device")

    monkeypatch.setattr(guard, "write_atomic", full)
    assert Guard(path, FakeClock()).begin() == good


def test_context_settings_and_thresholds_are_those_that_held(home: Home) -> None:
    def begin() -> subprocess.Popen[bytes]:
        exod = start(home)
        client.wait_ready(30)
        return exod

    def keep(**texts: str) -> None:
        for name, text in texts.items():
            args = {"action": "set", "name": name.replace("__", "/"), "text": text}
            client.call("command.run", name="artifact", args=args)

    def held() -> list[tuple[object, str]]:
        keys = ["context.tail", "threshold.request.kind", "context.view"]
        rows = client.call("config.get", keys=keys)["settings"]
        return [(rows[key]["value"], rows[key]["origin"].partition(" ")[0]) for key in keys]

    client = Client(home.exod_socket, timeout=30.0)
    kind = "threshold__request.kind"
    exod = begin()
    keep(settings__context="context.tail = 20", **{kind: "0.7"})
    exod.terminate()
    assert exod.wait(30) == 0
    for _ in range(3):
        exod = begin()
        keep(settings__context="context.tail = 2\ncontext.view = 64", **{kind: "0.2"})
        exod.kill()
        exod.wait(30)
    exod = begin()
    assert held() == [(20, "artifact"), (0.7, "artifact"), (6000, "default")]
    for event in client.events(0):
        if event["type"] == "notice" and event["body"]["code"] == "guard":
            assert "context settings are those of" in event["body"]["text"]
            break
    exod.terminate()
    assert exod.wait(30) == 0
    exod = begin()  # that start held: from now on the newest count again
    assert held() == [(2, "artifact"), (0.2, "artifact"), (64, "artifact")]
    exod.terminate()
    assert exod.wait(30) == 0


def test_an_end_in_the_first_moment_makes_no_empty_start_the_good_one(home: Home) -> None:
    """Whoever turns it off at once finds all plugins after three failed starts."""
    home.plugins.mkdir()
    slow = "import time\ndef register(ctx):\n    time.sleep(3)\n"
    (home.plugins / "slow.py").write_text(slow)
    client = Client(home.exod_socket, timeout=30.0)
    exod = start(home)
    client.wait_ready(30)
    client.call("command.run", name="plugins")  # waits for them
    exod.terminate()
    assert exod.wait(30) == 0
    before = json.loads((home.state / "starts.json").read_text())
    assert {"slow", "tasks", "gate"} <= set(before["good"]["plugins"])
    exod = start(home)
    client.wait_ready(30)
    exod.terminate()  # while they load
    assert exod.wait(30) == 0
    assert json.loads((home.state / "starts.json").read_text()) == before
