"""A bench for the core in one process (real hub, engine and database; a scripted model), and a bench
of real processes (exod and scripted models under the supervisor)."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.engine.engine import Engine
from exo.core.engine.sessions import open_database
from exo.core.protocol.schema import Usage
from exo.core.router.model import Done, ModelEvent, RawCall, Reasoning, Request, Text
from exo.core.server.dispatcher import Dispatcher
from exo.core.server.hub import Hub
from exo.tools import supervisor as services
from exo.tools.assistant import plugin as assistant
from exo.tools.clock import FakeClock
from exo.tools.model import NoModel
from exo.tools.supervisor import Supervisor
from exo.tools.tasks import plugin as tasks
from exo.tools.tasks.plugin import schedule_of
from exo.tools.tasks.scheduler import Scheduler
from exo.tools.workbench import plugin as workbench

# a plugin whose judge finds everything harmless, for tests of other things
CALM = """
from exo.core.gate.axes import Axes, Judgement, Part
class Calm:
    def read(self, policies): pass
    def judge(self, act, inside): return Judgement((Part(Axes(), act.line, act.tool),))
def register(ctx): ctx.register_judge(Calm())
"""
PATIENCE = 30.0  # seconds before a test that waits for an event gives up


class Gate:
    """A place in a script where the model waits until the test opens it."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()


class ScriptedModel(NoModel):
    """Plays one list of steps per call: text, Reasoning, RawCall, an exception, a Gate. Out of lists it
    says "ok". `requests` is what it was asked; `open` how many streams are not closed."""

    def __init__(self, *replies: list[Any]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.prefills: list[Request] = []
        self.open = 0

    async def stream(self, role: str, request: Request) -> AsyncGenerator[ModelEvent, None]:
        if role == "aux":  # summaries are not part of the script: rules make them
            yield Done("end")
            return
        self.requests.append(request)
        steps = self.replies.pop(0) if self.replies else ["ok"]
        calls: list[RawCall] = []
        reason = "end"
        self.open += 1
        try:
            for step in steps:
                if isinstance(step, Gate):
                    await step.wait()
                elif isinstance(step, BaseException):
                    raise step
                elif isinstance(step, RawCall):
                    calls.append(step)
                elif isinstance(step, Reasoning):
                    yield step
                elif step == "!length":
                    reason = "length"
                elif step == "!broken":
                    return
                else:
                    yield Text(step)
                    await asyncio.sleep(0)
            yield Done("calls" if calls else reason, calls, Usage(10, 5, 2))
        finally:
            self.open -= 1

    async def prefill(self, role: str, request: Request) -> None:
        self.prefills.append(request)

    async def models(self) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        return [{"id": "scripted"}], {"main": ["scripted"]}


class FaultyLink:
    """A SQLite connection whose disk fills up: at the n-th write, or from the n-th on."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self._link = link
        self.writes, self.at, self.lasting = 0, 0, False

    def _count(self, sql: str) -> None:
        if sql.split()[0] not in ("INSERT", "UPDATE", "DELETE", "COMMIT"):
            return
        self.writes += 1
        if self.at and (self.writes == self.at or self.lasting and self.writes > self.at):
            raise sqlite3.OperationalError("database or disk is full")

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._count(sql)
        return self._link.execute(sql, *values)

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._count(sql)
        return self._link.executemany(sql, *values)

    @property
    def in_transaction(self) -> bool:
        return self._link.in_transaction

    def close(self) -> None:
        self._link.close()

    def arm(self, at: int, lasting: bool = False) -> None:
        """Fail the `at`-th write from now (0: never again)."""
        self.writes, self.at, self.lasting = 0, at, lasting


class Bench:
    """The core without its process. `async with bench:` starts and stops it; it can be started again
    on the same folder."""

    def __init__(
        self, root: Path, model: ScriptedModel, env: dict[str, str], calm: bool = False
    ) -> None:
        self.home, self.model, self.calm = Home(root).make(), model, calm
        self.env = {"EXO_DELTAS_JOIN_MS": "0", **env}
        self.clock: Any = SystemClock()
        self.backoff = 0.0
        self._ids = itertools.count(1)

    async def __aenter__(self) -> Bench:
        self.database = open_database(self.home.sessions_db)
        self.disk = FaultyLink(self.database.link)
        self.database.link = self.disk  # type: ignore[assignment]
        settings = Settings.load(self.home.settings_file, self.env)
        self.hub = Hub(self.database, self.clock, settings.count("events.keep"))
        self.work = self.home.root / "work"
        self.work.mkdir(exist_ok=True)
        self.notes = self.home.root / "notes"
        self.engine = Engine(
            self.database,
            self.hub,
            self.model,
            settings,
            self.clock,
            notes=self.notes,
            work=self.work,
            server="bench",
        )
        self.engine.plugins.builtin("tasks", partial(tasks.register, root=self.home.root))
        self.engine.plugins.builtin("workbench", workbench.register)
        self.engine.plugins.builtin("assistant", assistant.register)
        object.__setattr__(self.engine._loop._rules, "backoff", self.backoff)
        if self.calm:
            names: dict[str, Any] = {}
            exec(CALM, names)
            self.engine._registry.slots["judge"] = names["Calm"]()
        self.dispatcher = Dispatcher(self.engine, self.hub)
        self.engine.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.engine.close()
        self.hub.close()
        self.database.close()

    @property
    def timers(self) -> Scheduler:
        assert self.engine.plugins.core is not None
        return schedule_of(self.engine.plugins.core)

    async def respond(self, type_: str, /, **body: Any) -> dict[str, Any]:
        """The whole response to one command, as JSON."""
        command = {"id": f"c{next(self._ids)}", "type": type_, "body": body}
        response = await self.dispatcher.respond(json.dumps(command).encode())
        return {"ok": response.ok, "result": response.result, "error": response.error}

    async def call(self, type_: str, /, **body: Any) -> dict[str, Any]:
        response = await self.respond(type_, **body)
        assert response["ok"], response
        return response["result"]

    async def refused(self, type_: str, /, **body: Any) -> str:
        """The code of the error that the command gets."""
        response = await self.respond(type_, **body)
        assert not response["ok"], response
        return str(response["error"].code)

    async def session(self) -> str:
        return str((await self.call("session.create"))["session"])

    async def send(self, session: str, text: str, **extra: Any) -> str:
        return str((await self.call("turn.send", session=session, text=text, **extra))["turn"])

    async def until(
        self, found: Callable[[dict[str, Any]], bool], since: int = 0
    ) -> dict[str, Any]:
        """The first event after `since` for which `found` holds, now or later."""

        async def look() -> dict[str, Any]:
            async for row in self.hub.follow(since):
                if isinstance(row, tuple) and found(event := json.loads(row[2])):
                    return event
            raise AssertionError("the stream ended")

        return await asyncio.wait_for(look(), PATIENCE)

    async def end_of(self, turn: str) -> dict[str, Any]:
        event = await self.until(
            lambda e: e["type"] == "turn.completed" and e["body"]["turn"] == turn
        )
        return dict(event["body"])

    async def ask(self, session: str, text: str) -> dict[str, Any]:
        """Send, and return the body of turn.completed."""
        return await self.end_of(await self.send(session, text))

    def events(self, type_: str = "") -> list[dict[str, Any]]:
        rows = [
            json.loads(str(r[0]))
            for r in self.database.rows("SELECT data FROM events ORDER BY seq")
        ]
        assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
        return [row for row in rows if type_ in ("", row["type"])]

    async def messages(self, session: str) -> list[dict[str, Any]]:
        found = list((await self.call("session.get", session=session))["messages"])
        check_rounds(found)
        return found


def check_rounds(messages: list[dict[str, Any]]) -> None:
    """Every assistant message with calls is followed by one tool message that answers each of them."""
    asked: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert [result["call"] for result in message["results"]] == asked
            asked = []
        else:
            assert not asked, f"calls without results before {message}"
            asked = [call["id"] for call in message.get("calls") or []]
    assert not asked


@pytest.fixture
def gate() -> type[Gate]:
    return Gate


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    """run(test, *replies, env=..., clock=..., calm=...): run an async function with a started Bench."""

    def start(
        test: Callable[[Bench], Awaitable[Any]],
        *replies: list[Any],
        env: dict[str, str] | None = None,
        clock: FakeClock | None = None,
        root: Path | None = None,
        calm: bool = True,
    ) -> Any:
        async def body() -> Any:
            bench = Bench(root or tmp_path / "home", ScriptedModel(*replies), env or {}, calm)
            bench.clock = clock or bench.clock
            async with bench:
                return await test(bench)

        return asyncio.run(body())

    return start


# ---- real processes ------------------------------------------------------------------------------


class Processes:
    """exod and scripted models of one home, under a supervisor that a thread ticks."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.client = Client(self.home.exod_socket, timeout=30.0)
        self.said: list[str] = []
        self.supervisor = Supervisor(
            self.home, ("exod", "models"), {"models": ("--fake",)}, self.said.append
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="supervisor")
        self._lock = threading.Lock()

    def __enter__(self) -> Processes:
        self.supervisor.__enter__()
        try:
            self.supervisor.wait_ready()
        except BaseException:
            self.supervisor.close()
            raise
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self.supervisor.close()

    def _tick(self) -> None:
        while not self._stop.wait(0.02):
            with self._lock:
                self.supervisor.tick()

    def pid(self, name: str) -> int:
        with self._lock:
            return self.supervisor.pids()[name]

    def kill(self, name: str) -> int:
        """SIGKILL; returns the pid that died."""
        with (
            self._lock
        ):  # so that the supervisor has not reaped it, and its number is still its own
            pid = self.supervisor.pids()[name]
            os.kill(pid, signal.SIGKILL)
        return pid

    def session(self) -> str:
        return str(self.client.call("session.create")["session"])

    def follow(self, since: int = 0, session: str | None = None) -> Iterator[dict[str, Any]]:
        return self.client.events(since, session)

    def end_of(self, turn: str, since: int = 0) -> dict[str, Any]:
        for event in self.follow(since):
            if event["type"] == "turn.completed" and event["body"]["turn"] == turn:
                return dict(event["body"])
        raise AssertionError("the stream ended")

    def ask(self, session: str, text: str) -> dict[str, Any]:
        return self.end_of(str(self.client.call("turn.send", session=session, text=text)["turn"]))


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    monkeypatch.setattr(services, "BACKOFF", (0.05, 0.05))
    with Processes(tmp_path / "home") as running:
        yield running


@pytest.fixture
def exod(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """exod(*words, **Popen's): start a bare exod as a child; what still runs at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **more: Any) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "exo.core.server.app",
            "--home",
            str(tmp_path / "home"),
            *words,
        ]
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, **{**options, **more}))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
