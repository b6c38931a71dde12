"""Learning on its own: when it is due, the process that does it, and that it ends with exod. Real processes, scripted models
where a real one is not the point."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.files import write_atomic
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.tools.cli import main
from exo.tools.clock import FakeClock
from exo.tools.learning.plugin import IDLE, LEAST, Nightly
from exo.tools.supervisor import Supervisor

NOON = 1_700_049_600_000  # 2023-11-15 12:00 UTC
HOUR = 3600.0


def nightly(home: Home, clock: FakeClock, **environ: str) -> Nightly:
    return Nightly(home, Settings(home.settings_file, environ), clock)


def tried(home: Home, ms: int) -> None:
    (home.cache / "decide").mkdir(parents=True, exist_ok=True)
    write_atomic(home.cache / "decide" / "night.json", json.dumps({"tried": ms, "how": ""}))


def test_it_is_due_once_a_night_and_only_when_nobody_speaks(home: Home) -> None:
    clock = FakeClock(NOON)
    tried(home, clock.now_ms())
    learns = nightly(home, clock)
    clock.advance(15 * HOUR)  # 03:00
    assert not learns.due()
    asyncio.run(learns.on_turn_end())
    clock.advance(IDLE - 1)
    clock.set(0.5 * HOUR)  # past the time, and somebody spoke just now
    assert not learns.due()
    clock.advance(2)
    assert learns.due()
    tried(home, clock.now_ms())
    clock.advance(20 * HOUR)
    assert not learns.due(), "once a night"
    clock.advance(3 * 24 * HOUR)  # switched off over three nights
    assert learns.due(), "a night that was missed is made up for"
    assert not nightly(home, clock).due(), "not while it starts"
    off = nightly(home, clock, EXO_DECIDE_LEARN="off")
    clock.advance(IDLE + 1)
    assert not off.due() and learns.due()
    clock.unsure = True
    assert not learns.due(), "nobody knows whether it is night"
    clock.unsure = False
    tried(home, clock.now_ms() + 10**10)  # the clock was far ahead once
    assert learns.due()


def judged(home: Home, count: int) -> None:
    """A record of so many decisions of which the person said what they were."""
    ledger = Ledger(home, FakeClock())
    sure = {"question": 700_000, "note": 300_000}
    drafts: list[Draft] = []
    for n in range(count):
        about, at = {"session": "s", "turn": f"t{n}"}, len(drafts)
        answer = ("question", "note")[n % 2]
        told = {
            "mechanism": "request.kind",
            "probabilities": sure,
            "raw": sure,
            "provider": "local",
        }
        drafts += [
            Draft("utterance", {**about, "text": f"secret number {n}", "channel": "typed"}),
            Draft("decision", {**about, **told, "answer": "question"}, (at,)),
            Draft("verdict", {**about, "verdict": "should_have_been", "mechanism": "request.kind",
                              "answer": answer, "strength": 800_000}, (at + 1, at)),
        ]  # fmt: skip
    ledger.append(*drafts)
    ledger.close()


@pytest.fixture
def models(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    with Supervisor(home, ("models",), {"models": ("--fake",)}) as running:
        running.wait_ready()
        yield running


def learnt(home: Home) -> Any:
    path = home.cache / "decide" / "learnt.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_a_night_learns_from_new_labels_alone(home: Home, models: Supervisor) -> None:
    async def night() -> bool:
        clock = FakeClock(NOON)
        learns = nightly(home, clock)
        clock.advance(IDLE + 1)
        return await learns.look()

    judged(home, LEAST - 1)
    assert asyncio.run(night()) and learnt(home) is None, "too few labels"
    tried(home, 0)
    judged(home, 2)
    assert asyncio.run(night())
    first = learnt(home)
    assert first["labels"] == LEAST + 1 and first["heads"]["request.kind"]["kept"] == "shipped"
    tried(home, 0)
    assert asyncio.run(night()) and learnt(home) == first, "nothing new"
    assert not asyncio.run(night()), "and not twice a night"
    assert "secret" not in json.dumps(first)


def test_without_models_it_waits_and_starts_none(home: Home) -> None:
    clock = FakeClock(NOON)
    learns = nightly(home, clock)
    clock.advance(IDLE + 1)
    assert learns.due() and not asyncio.run(learns.look()) and learns.due()


@pytest.fixture
def silent(home: Home) -> Iterator[threading.Event]:
    """Models that take a question and never answer; set once one has come."""
    asked, links = threading.Event(), []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(home.models_socket))
    server.listen()

    def serve() -> None:
        while True:
            try:
                link, _ = server.accept()
            except OSError:
                return
            links.append(link)
            if link.recv(1):  # the first only looks whether somebody is there
                asked.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield asked
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)
    for link in links:
        link.close()


def learners(home: Home) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                dead = "\nState:\tZ" in (entry / "status").read_text()
            except OSError:
                continue
            if b"--learn" in words and str(home.root).encode() in words and not dead:
                found.append(int(entry.name))
    return found


def gone(home: Home) -> bool:
    end = time.monotonic() + 20
    while learners(home) and time.monotonic() < end:
        threading.Event().wait(0.05)
    return not learners(home)


def test_it_ends_with_exod_in_the_middle(home: Home, silent: threading.Event) -> None:
    judged(home, LEAST)

    async def night() -> None:
        clock = FakeClock(NOON)
        learns = nightly(home, clock)
        clock.advance(IDLE + 1)
        await learns.start()
        assert await asyncio.to_thread(silent.wait, 60)
        [pid] = learners(home)
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        await learns.stop()
        assert not learners(home)
        assert learns.due(), "it was not done, and is done at the next start"

    asyncio.run(night())


def test_it_ends_when_exod_is_killed(home: Home, silent: threading.Event) -> None:
    judged(home, LEAST)
    words = """if True:
        import asyncio, sys
        from pathlib import Path
        from exo.core.base.home import Home
        from exo.core.base.settings import Settings
        from exo.tools.clock import FakeClock
        from exo.tools.learning.plugin import Nightly
        home, clock = Home(Path(sys.argv[1])), FakeClock()
        learns = Nightly(home, Settings(home.settings_file, {}), clock)
        clock.advance(1000)
        asyncio.run(learns.look())
    """
    exod = subprocess.Popen([sys.executable, "-c", words, str(home.root)])
    try:
        assert silent.wait(60) and learners(home)
    finally:
        exod.send_signal(signal.SIGKILL)
        exod.wait()
    assert gone(home)


def test_the_state_of_learning_is_shown(
    home: Home, models: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--home", str(home.root)]
    assert main(["decide", "--status", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "0 decisions, 0 of them judged by you",
        "",
        "nothing was learnt yet",
    ]
    judged(home, 20)
    assert main(["decide", "--learn", *words]) == 0
    capsys.readouterr()
    assert main(["decide", "--status", "--json", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    [row] = told["rows"]
    assert (row["mechanism"], row["provider"], row["decisions"], row["labels"]) == (
        *("request.kind", "local", 20, 20),
    )
    # sure by 0.7 of what is right half the time
    assert row["accuracy"] == row["answered"] == 0.5 and row["coverage"] == 1.0
    assert row["ece"] == pytest.approx(0.2) and row["brier"] == pytest.approx((0.09 + 0.49) / 2)
    assert len(row["curve"]) == 10 and told["learnt"]["labels"] == 20
    assert main(["decide", "--status", *words]) == 0
    text = capsys.readouterr().out
    assert "request.kind     local      20     20" in text and "0.50" in text
    assert "learnt" in text and "secret" not in text


def test_a_running_exod_has_it(home: Home) -> None:
    with Supervisor(home, ("exod",)) as running:
        running.wait_ready()
        from exo.core.base.client import Client

        client = Client(home.exod_socket, 30.0)
        rows = client.call("command.run", name="plugins", args={})["result"]["plugins"]
    [row] = [each for each in rows if each["name"] == "learning"]
    assert row["state"] == "loaded" and sorted(row["registered"]) == [
        "hook on_turn_end",
        "life learning",
    ]
