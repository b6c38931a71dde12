"""A context engine on a database in memory's place, a model that does as it is told, messages by the
hundred."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ModelGone
from exo.core.base.settings import Settings
from exo.core.context.engine import ContextEngine
from exo.core.engine.sessions import Sessions, open_database
from exo.core.protocol.schema import Call, Message, ToolResult
from exo.core.router.model import Done, ModelEvent, Request, Text
from exo.core.server.hub import Hub
from exo.tools.clock import FakeClock
from exo.tools.model import NoModel

OPENING = [{"role": "system", "content": "You are a test."}]


def settings(**changes: object) -> Settings:
    """The defaults, with `context.*` changed."""
    names = {f"EXO_CONTEXT_{name.upper()}": str(value) for name, value in changes.items()}
    return Settings(Path("none"), {"EXO_CONTEXT_WINDOW": "4096"} | names)


class FakeModel(NoModel):
    """Summarises with `reply` (a text, or a function of the request); `gone` refuses; `gate`, when set,
    is waited for. A token is a word where `tokenizer` is on."""

    def __init__(self) -> None:
        self.reply: str | Callable[[Request], str] = "They talked about the boat."
        self.gone = self.tokenizer = False
        self.gate: asyncio.Event | None = None
        self.asked: list[Request] = []
        self.running = self.most = self.counted = 0

    async def stream(self, role: str, request: Request) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(0)
            if self.gone:
                raise ModelGone("ask the fake", "it was told to be gone")
            yield Text(self.reply if isinstance(self.reply, str) else self.reply(request))
            yield Done("end")
        finally:
            self.running -= 1

    async def count(self, role: str, what: str | list[dict[str, Any]]) -> tuple[int | None, int]:
        self.counted += 1
        if not self.tokenizer:
            return None, 0
        texts = [what] if isinstance(what, str) else [each["content"] for each in what]
        return sum(len(text.split()) for text in texts), 4096


class Bench:
    """One engine with its surroundings; `session` is made."""

    def __init__(self, folder: Path) -> None:
        self.database = open_database(folder / "sessions.sqlite")
        self.clock = FakeClock()
        self.hub = Hub(self.database, self.clock)
        self.sessions = Sessions(self.database, self.clock)
        self.model = FakeModel()
        with self.database.transaction():
            self.session = self.sessions.create("", "/")
        self.alone = True
        self.count = 0
        self.open()

    def open(self, **changes: object) -> ContextEngine:
        """A fresh engine on the same database, as after a restart."""
        self.settings = settings(**changes)
        of, alone = (lambda session: self.settings), (lambda: self.alone)
        self.engine = ContextEngine(self.database, self.hub, self.model, of, self.clock, alone)
        return self.engine

    def say(self, *texts: str, tool: bool = False) -> None:
        """Append messages, person and assistant in turn (or rounds of a tool)."""
        with self.database.transaction():
            for text in texts:
                self.count += 1
                id_ = f"m{self.count}"
                role = "user" if self.count % 2 else "assistant"
                message = Message(id_, role, text)
                if tool and role == "assistant":
                    message = Message(
                        id_, "assistant", "", [Call(id_, "read_file", {"path": text})]
                    )
                elif tool:
                    result = ToolResult(f"m{self.count - 1}", True, text)
                    message = Message(id_, "tool", "", results=[result])
                self.sessions.add(self.session, "t", message)

    def talk(self, count: int, words: int = 12) -> None:
        """Append `count` messages, each with its number in it."""
        base = self.count
        self.say(*(f"message {base + n + 1} " + "word " * words for n in range(count)))

    async def build(self, **options: Any) -> list[dict[str, Any]]:
        return await self.engine.build(self.session, OPENING, **options)

    async def settled(self) -> None:
        """Let every job of the session end."""
        while self.engine.lanes.pending("live", self.session):
            await asyncio.sleep(0)

    def compactions(self) -> list[tuple[object, ...]]:
        return self.database.rows("SELECT data FROM events WHERE data LIKE '%context.compacted%'")


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    made = Bench(tmp_path)
    yield made
    made.database.close()
