"""How long the core takes to build a request, by the length of the conversation: right after a start, and
from turn to turn. Rules make the summaries, so that no model's time is in the figures; and how much of a
request repeats the one before it, as characters in common at its beginning."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from os.path import commonprefix
from pathlib import Path

from exo.core.base.clock import SystemClock
from exo.core.base.settings import Settings
from exo.core.context.engine import ContextEngine
from exo.core.engine.sessions import Sessions, open_database
from exo.core.protocol.schema import Message
from exo.core.server.hub import Hub
from exo.tools.bench import Figure, Say
from exo.tools.model import NoModel

SIZES = (10, 1_000, 10_000)
TURNS = 30
WORDS = "we spoke about the garden, the boat and what to cook on the day after tomorrow " * 2
OPENING = [{"role": "system", "content": "You are a companion. " * 20}]


class _Talk:
    """A session that grows."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        clock = SystemClock()
        self.database = open_database(folder / "sessions.sqlite")
        self.sessions = Sessions(self.database, clock)
        self.hub, self.settings, self.clock = Hub(self.database, clock), settings, clock
        with self.database.transaction():
            self.session = self.sessions.create("", "/")
        self.count = 0

    def say(self, count: int) -> None:
        with self.database.transaction():
            for _ in range(count):
                self.count += 1
                role = "user" if self.count % 2 else "assistant"
                text = f"{self.count}: {WORDS}"
                self.sessions.add(self.session, "t", Message(f"m{self.count}", role, text))  # type: ignore[arg-type]

    def engine(self) -> ContextEngine:
        model = NoModel()
        return ContextEngine(
            self.database, self.hub, model, lambda session: self.settings, self.clock
        )


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` further turns at each length (default 30)."""
    settings = Settings(Path("none"), {"EXO_CONTEXT_SUMMARIES": "rules"})
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
            talk = _Talk(Path(folder), settings)
            say(f"{size} messages")
            yield from asyncio.run(_size(talk, size, rounds or TURNS))
            talk.database.close()


async def _size(talk: _Talk, size: int, turns: int) -> Iterator[Figure]:
    engine = talk.engine()
    while talk.count < size:  # as it grows in life: a turn, then the rest after it
        talk.say(2)
        if talk.count % 50 == 0 or size < 50:
            await _timed(engine, talk)
            await _idle(engine, talk)
    await engine.close()
    engine = talk.engine()
    cold = await _timed(engine, talk)
    times, sent, computed, last = [], 0, 0, ""
    for _ in range(turns):
        talk.say(2)
        times.append(await _timed(engine, talk))
        request = await engine.build(talk.session, OPENING)
        text = "\n".join(each["content"] for each in request)
        sent += len(text)
        computed += len(text) - len(commonprefix([text, last]))
        last = text
        await _idle(engine, talk)
    await engine.close()
    return iter(
        [
            Figure(f"{size} messages: first request after a start", cold, "ms"),
            Figure(f"{size} messages: a turn, p50", statistics.median(times), "ms"),
            Figure(f"{size} messages: a turn, longest", max(times), "ms"),
            Figure(f"{size} messages: characters new / sent", computed / sent, "", "< 0.15"),
        ]
    )


async def _timed(engine: ContextEngine, talk: _Talk) -> float:
    begun = time.perf_counter()
    await engine.build(talk.session, OPENING)
    return (time.perf_counter() - begun) * 1000


async def _idle(engine: ContextEngine, talk: _Talk) -> None:
    await engine.rest(talk.session)
    while engine.lanes.pending("live"):
        await asyncio.sleep(0)
