"""An engine on a bench: real database, hub and loop; a model that says what the test scripts."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.settings import Settings
from exo.core.engine.engine import Engine
from exo.core.engine.sessions import open_database
from exo.core.gate.axes import Act, Axes, Judgement, Part
from exo.core.router.model import Done, ModelEvent, RawCall, Request, Text
from exo.core.server.dispatcher import Dispatcher
from exo.core.server.hub import Hub
from exo.tools.assistant import plugin as assistant
from exo.tools.clock import FakeClock
from exo.tools.model import NoModel
from exo.tools.workbench import plugin as workbench


class Calm:
    """A judge that finds everything harmless: tools are not what is tested here."""

    def read(self, policies: Path) -> None:
        pass

    def judge(self, act: Act, inside: tuple[str, ...]) -> Judgement:
        return Judgement((Part(Axes(), act.line, act.tool),))


class ScriptedModel(NoModel):
    """Replies with `replies`, one a call (then "Yes."); a list of pairs is a round of tool calls.
    `hold` stops every answer of the main role until it is set again."""

    def __init__(self) -> None:
        self.replies: list[str | list[tuple[str, dict[str, Any]]]] = []
        self.titles: list[str | Exception] = []
        self.asked: list[tuple[str, Request]] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def stream(self, role: str, request: Request) -> AsyncIterator[ModelEvent]:
        self.asked.append((role, request))
        if role == "aux":
            title = self.titles.pop(0) if self.titles else "A title"
            if isinstance(title, Exception):
                raise title
            yield Text(title)
            yield Done("end")
            return
        await self.hold.wait()
        reply = self.replies.pop(0) if self.replies else "Yes."
        if isinstance(reply, str):
            yield Text(reply)
            yield Done("end")
            return
        calls = [RawCall(secrets.token_hex(4), name, json.dumps(args)) for name, args in reply]
        yield Done("calls", calls)

    async def prefill(self, role: str, request: Request) -> None:
        self.asked.append(("prefill", request))

    async def close(self) -> None:
        return


class Bench:
    """`await call(type, **body)` gives the result or raises; `await say(...)` runs whole turns."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.database = open_database(folder / "state" / "sessions.sqlite")
        self.clock = FakeClock()
        self.hub = Hub(self.database, self.clock)
        self.model = ScriptedModel()
        environ = {"EXO_DELTAS_JOIN_MS": "0", "EXO_TITLES_IDLE": "0"}
        environ |= {f"EXO_{key.upper()}": str(value) for key, value in settings.items()}
        work = folder / "work"
        work.mkdir(exist_ok=True)
        self.engine = Engine(
            self.database,
            self.hub,
            self.model,
            Settings(folder / "settings.toml", environ),
            self.clock,
            notes=folder / "notes",
            work=work,
            server="bench",
        )
        self.engine.plugins.builtin("workbench", workbench.register)
        self.engine.plugins.builtin("assistant", assistant.register)
        self.engine._registry.slots["judge"] = Calm()
        self.work = work
        self.sessions = self.engine.sessions
        self._dispatcher = Dispatcher(self.engine, self.hub)
        self.engine.start()

    async def call(self, type_: str, **body: Any) -> dict[str, Any]:
        raw = json.dumps({"id": "c", "type": type_, "body": body}).encode()
        response = await self._dispatcher.respond(raw)
        if not response.ok:
            assert response.error is not None
            raise Refused(response.error.code)
        return dict(response.result or {})

    async def session(self) -> str:
        return str((await self.call("session.create"))["session"])

    async def say(self, session: str, *texts: str) -> None:
        for text in texts:
            await self.call("turn.send", session=session, text=text)
            await self.rest()

    async def rest(self) -> None:
        """Until no turn runs."""
        while self.engine._turns:
            await asyncio.sleep(0)

    async def hits(self, query: str, **more: Any) -> list[dict[str, Any]]:
        return list((await self.call("search", query=query, **more))["hits"])

    async def texts(self, session: str) -> list[str]:
        messages = (await self.call("session.get", session=session))["messages"]
        return [message["text"] for message in messages]

    def events(self, kind: str) -> list[dict[str, Any]]:
        rows = self.database.rows("SELECT data FROM events ORDER BY seq")
        events = [json.loads(str(row[0])) for row in rows]
        return [event for event in events if event["type"] == kind]


class Refused(Exception):
    """The code of a refused command."""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """Run a test's coroutine with a Bench; `settings` as in Bench."""

    def run_(test: Callable[[Bench], Any], **settings: Any) -> None:
        async def main() -> None:
            bench = Bench(tmp_path, **settings)
            try:
                await asyncio.wait_for(test(bench), 20)
            finally:
                await bench.engine.close()
                bench.database.close()

        asyncio.run(main())

    return run_


@pytest.fixture
def refused() -> type[Exception]:
    return Refused
