"""Timers, reminders and tasks in a running engine: by the words of a person, over restarts, kills and upgrades."""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.tools import cli
from exo.tools.clock import FakeClock

Run = Callable[..., Any]
Start = Callable[..., subprocess.Popen[bytes]]

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday


def test_reminders_ring_repeat_and_survive_a_restart(run: Any) -> None:
    clock = FakeClock(round(NOW.timestamp() * 1000))

    async def first(bench: Any) -> None:
        session = await bench.session()

        async def remind(**args: str) -> dict[str, Any]:
            return dict(await bench.call("tool.run", session=session, tool="reminder", args=args))

        made = await remind(at="18:30", text="tea", repeat="daily")
        assert made["text"] == "Reminder set for Monday, 30 November 2026, 18:30 (UTC), daily: tea"
        assert (await remind(at="tomorrow 9:00", text="once"))["ok"]
        assert not (await remind(at="never", text="x"))["ok"]
        assert not (await remind(at="18:30", text=" "))["ok"]
        assert not (await remind(at="18:30", text="x", repeat="sometimes"))["ok"]

    run(first, clock=clock)
    clock.advance(2 * 86400)  # nothing ran for two days

    async def second(bench: Any) -> None:
        await bench.until(lambda e: e["type"] == "notice" and "once" in e["body"]["text"])
        said = [row["body"]["text"] for row in bench.events("notice")]
        assert said == ["Reminder: tea", "Reminder: once"]  # each once, however often it was missed
        assert bench.events("notice")[0]["body"]["code"] == "reminder"
        [left] = bench.timers.pending()
        assert (
            left.label == "tea" and clock.local(left.due).isoformat() == "2026-12-02T18:30:00+00:00"
        )

    run(second, clock=clock)


async def say(bench: Any, session: str, text: str) -> str:
    assert (await bench.ask(session, text))["stop_reason"] == "end"
    return str((await bench.messages(session))[-1]["text"])


def test_what_rang_cannot_be_undone_and_no_other_is_taken_for_it(run: Run) -> None:
    clock = FakeClock(round(NOW.timestamp() * 1000))

    async def test(bench: Any) -> None:
        session = await bench.session()
        await say(bench, session, "set a timer for an hour")
        await say(bench, session, "set a timer for five minutes called tea")
        clock.advance(301)
        bench.timers.changed.set()
        await bench.until(lambda e: e["type"] == "notice")
        assert await say(bench, session, "undo that") == "It rang already: tea."
        assert [each.label for each in bench.timers.pending()] == [""]
        said = [m["text"] for m in await bench.messages(session) if m["role"] == "user"]
        assert "set a timer for five minutes called tea" in said
        await say(bench, session, "set a timer for 5 minutes and another for 10 minutes")
        assert len(bench.timers.pending()) == 3
        await say(bench, session, "undo that")
        assert [each.due - clock.now_ms() for each in bench.timers.pending()] == [
            3_299_000
        ]  # the hour

    run(test, clock=clock)


def test_without_the_plugin_timers_say_that_they_are_off(run: Run) -> None:
    async def test(bench: Any) -> None:
        del bench.engine._registry.slots["schedule"]
        session = await bench.session()
        for text in (
            "set a timer for 5 minutes",
            "remind me tomorrow at 9 to call",
            "what timers do I have?",
        ):
            await bench.ask(session, text)
        told = [e["body"]["text"] for e in bench.events("tool.completed") if not e["body"]["ok"]]
        assert len(told) == 3 and all("the plugin tasks is not loaded" in each for each in told)
        assert (await bench.call("tasks.list"))["rows"] == [] and not bench.engine.busy

    run(test)


# ---- real processes ------------------------------------------------------------------------------


def test_the_command_shows_and_removes_whatever_comes(
    processes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def exo(*words: str) -> str:
        code = cli.main(["task", *words, "--home", str(processes.home.root)])
        told = capsys.readouterr()
        return told.out if code == 0 else told.err

    session = processes.session()
    processes.ask(session, "set a timer for 20 minutes called tea")
    processes.ask(session, "remind me every day at 9 to water the plants")
    assert "@monthly 2099-01-31T09:00 UTC  Rent" in exo(
        "add", "@monthly 2099-01-31T09:00", "Rent", "--zone", "UTC"
    )
    lines = exo("list").splitlines()
    assert [line.split("  ", 2)[2] for line in lines] == [
        "timer  tea",
        "daily  water the plants",
        "@monthly 2099-01-31T09:00 UTC  Rent",
    ]
    assert "read the schedule '@monthly soon'" in exo("add", "@monthly soon", "Rent")
    for line in lines:
        assert line.split()[0] in exo("remove", line.split()[0][:7])
    assert "none yet" in exo("list") and json.loads(exo("list", "--json")) == {"tasks": []}
    assert "there is none of that id" in exo("remove", "zz")


# a plugin of the home that kills exod after the n-th commit to its databases
KILLER = """
import contextlib, os, signal
from exo.core.base.sqlite import Database
left = int(open(os.path.join(os.path.dirname(__file__), "left")).read())
whole = Database.transaction
@contextlib.contextmanager
def transaction(self, durable=False, write=True):
    global left
    with whole(self, durable, write) as link:
        yield link
    left -= write and self.path.name in ("tasks.sqlite", "sessions.sqlite")
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Database.transaction = transaction
def register(ctx):
    pass
"""
TASKS = Path(__file__).parents[1] / "tools" / "tasks" / "format-1.sql"
OLD = """
CREATE TABLE timers (id TEXT PRIMARY KEY, session TEXT, due INTEGER NOT NULL, label TEXT NOT NULL,
  first TEXT NOT NULL DEFAULT '', repeat TEXT NOT NULL DEFAULT '') STRICT;
PRAGMA user_version = 1;
"""


class Exod:
    """A daemon of its own for one home."""

    def __init__(self, start: Start, root: Path) -> None:
        self.home, self._start = Home(root), start
        self.client = Client(self.home.exod_socket, 60.0)

    def start(self, kill_after: int = 0) -> subprocess.Popen[bytes]:
        plugin = self.home.plugins / "killer.py"
        plugin.unlink(missing_ok=True)
        if kill_after:
            self.home.plugins.mkdir(parents=True, exist_ok=True)
            (self.home.plugins / "left").write_text(str(kill_after))
            plugin.write_text(KILLER)
        # the last --home counts
        return self._start("--home", str(self.home.root), stderr=None, stdout=None)

    def told(self) -> list[str]:
        with contextlib.closing(sqlite3.connect(self.home.sessions_db)) as link:
            rows = [json.loads(row[0]) for row in link.execute("SELECT data FROM events")]
        return [row["body"]["text"] for row in rows if row["type"] == "notice"]


def before_the_upgrade(made: Exod) -> Exod:
    """A home whose timers and tasks are of format 1: four that are due, two that are to come."""
    process = made.start()
    made.client.wait_ready(60)
    session = made.client.call("session.create")["session"]
    process.terminate()
    assert process.wait(60) == 0
    now = round(time.time() * 1000)
    with contextlib.closing(sqlite3.connect(made.home.sessions_db)) as link:
        link.executescript(OLD)
        for row in (
            ("00000001", session, now - 60_000, "tea", "", ""),
            ("00000002", None, now - 50_000, "pill", "2026-01-31T09:00:00", "daily"),
            ("00000003", session, now - 40_000, "once", "2026-11-30T09:00:00", ""),
            ("00000004", session, now + 3_600_000, "cake", "", ""),
            ("00000005", session, now + 86_400_000, "call", "2099-01-01T09:00:00", "yearly"),
        ):
            link.execute("INSERT INTO timers VALUES (?, ?, ?, ?, ?, ?)", row)
        link.commit()
    tasks = made.home.state / "tasks.sqlite"
    for path in made.home.state.glob("tasks.sqlite*"):
        path.unlink()
    with contextlib.closing(sqlite3.connect(tasks)) as link:
        link.executescript(TASKS.read_text())
        task = ("0000000a", "@every 1d", "UTC", "Stretch", session, 0, "once", "", now - 10**8)
        link.execute(
            "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 'dead', ?)",
            (*task, now - 5000, now + 10**9),
        )
        link.commit()
    return made


def killed_after(commit: int, whole: Exod, world: Exod) -> bool:
    """Whether exod was killed; then it was started again. Everything rang once and nothing is lost."""
    shutil.copytree(whole.home.root, world.home.root)
    process = world.start(kill_after=commit)
    died = settled(world, process)
    if died:
        process = world.start()
        assert not settled(world, process)
    rows = world.client.call("tasks.list")["rows"]
    assert sorted(world.told()) == ["Reminder: once", "Reminder: pill", "Stretch", "Timer: tea"]
    kept = {row["label"]: row["kind"] for row in rows}
    assert kept == {"pill": "reminder", "cake": "timer", "call": "reminder", "Stretch": "task"}
    [session] = world.client.call("session.list")["sessions"]
    messages = world.client.call("session.get", session=session["id"])["messages"]
    assert [message["text"] for message in messages] == ["Stretch"]
    process.terminate()
    process.wait(60)
    with contextlib.closing(sqlite3.connect(world.home.sessions_db)) as link:
        assert link.execute("PRAGMA user_version").fetchone() == (2,)
        assert not link.execute("SELECT 1 FROM sqlite_master WHERE name = 'timers'").fetchall()
    shutil.rmtree(world.home.root)
    return died


def test_old_timers_move_and_ring_once_though_exod_is_killed(exod: Start, tmp_path: Path) -> None:
    """Between the two halves of the move, between claim and delivery, between delivery and its note."""
    whole = before_the_upgrade(Exod(exod, tmp_path / "whole"))
    for commit, where in ((3, "moved"), (5, "claimed"), (6, "delivered")):
        assert killed_after(commit, whole, Exod(exod, tmp_path / where))


@pytest.mark.slow
def test_old_timers_move_and_ring_once_wherever_exod_is_killed(exod: Start, tmp_path: Path) -> None:
    """Killed after every commit."""
    whole = before_the_upgrade(Exod(exod, tmp_path / "whole"))
    kills = 0
    while killed_after(kills + 1, whole, Exod(exod, tmp_path / f"home-{kills}")):
        kills += 1
    assert kills >= 15  # two upgrades, and four deliveries of three commits each


def settled(world: Exod, process: subprocess.Popen[bytes]) -> bool:
    """Wait until nothing is due any more; True where it was killed before."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (code := process.poll()) is not None:
            assert code == -signal.SIGKILL
            return True
        with contextlib.suppress(Exception):
            rows = world.client.call("tasks.list")["rows"]
            now = time.time() * 1000
            if len(rows) == 4 and all(row["due"] > now for row in rows):
                time.sleep(0.2)  # the note of the last delivery
                return process.poll() is not None
        time.sleep(0.02)
    raise AssertionError("something is still due")
