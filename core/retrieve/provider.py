"""The memory of a running exod: the slot `memory`, the commands `memory.query`, and the drain from the
outbox into the record. Owns the one thread in which record, store and index are used.

Invariant: nothing here makes a turn fail: a record that cannot be opened is told of once and tried again."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.engine.outbox import Outbox
from exo.core.engine.reader import Reader
from exo.core.plugins.registry import PluginContext, spec_of
from exo.core.plugins.slots import Remembered
from exo.core.retrieve.forget import Needles, forget, resume
from exo.core.toolbox.registry import Context, ToolSpec

if TYPE_CHECKING:
    from exo.core.retrieve.memory import Memory
    from exo.core.retrieve.pack import Hit

T = TypeVar("T")
EMBEDDED = 16  # texts embedded at once, between which a recall may come
KNOWN, NEAR = 0.5, 0.1  # score of what words may mean; what is as close is asked about
DEEP = 16  # hits where an overview is asked for
PAUSE = 30.0  # seconds until a model that does not embed is asked again


class Provider:
    """`opens` makes the memory, in its thread; `said` is what a session's person said last; `quiet` is
    whether nobody waits for a model; `tell` shows a warning; `erased` takes what is forgotten out of the
    conversations; `lines` is how many beliefs an answer shows."""

    def __init__(
        self,
        home: Home,
        opens: Callable[[], Memory],
        outbox: Outbox,
        said: Callable[[str], str],
        quiet: Callable[[], bool],
        tell: Callable[[str, str], None],
        erased: Callable[[Needles], Coroutine[Any, Any, None]],
        lines: int = 3,
        reader: Callable[[], Reader] = Reader,
    ) -> None:
        self._home = home
        self._opens = opens
        self._outbox = outbox
        self._said = said
        self._erased = erased
        self._lines = lines
        self._reader = reader
        self._quiet = quiet
        self._tell = tell
        self._thread = ThreadPoolExecutor(1, "memory")
        self._memory: Memory | None = None
        self._fault = ""
        self._draining = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None

    def register(self, ctx: PluginContext) -> None:
        ctx.register_memory_provider(self)

    async def run(self, work: Callable[[Memory], T]) -> T:
        """Do `work` with the memory, in its thread. Raises what it raises, and what keeps the memory
        from opening."""

        loop = asyncio.get_running_loop()

        def job() -> T:
            if self._memory is None:
                self._memory = self._opens()
                if said := self._memory.check():
                    loop.call_soon_threadsafe(self._tell, "record", said)
            return work(self._memory)

        try:
            value = await loop.run_in_executor(self._thread, job)
        except ExoError as error:
            if self._memory is None and str(error) != self._fault:
                self._fault = str(error)
                self._tell("memory", self._fault)
            raise
        self._fault = ""
        return value

    async def close(self) -> None:
        """Hand on what waits, then close the files."""
        if self._reading is not None:
            self._reading.cancel()
        with contextlib.suppress(ExoError):
            await self.drain()
        if self._memory is not None:
            await self.run(lambda memory: memory.close())
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def go_on(self) -> None:
        """At the start and after a turn: open it, take in what was said, go on with what a crash or the turn
        left of a forgetting. Never raises: the fault was told of."""
        erase = self._erase()
        with contextlib.suppress(ExoError):  # the rows stay, and the next turn tries again
            await self.drain()
            self.read()
            await self.run(lambda memory: resume(memory, self._home, erase))

    async def query(self, verb: str, args: dict[str, Any]) -> dict[str, Any]:
        """Answer memory.query. Raises ExoError."""
        await self.drain()
        if verb != "forget":
            return await self.run(lambda memory: memory.query(verb, args))
        id_ = str(args.get("id", ""))
        session = args.get("session", "")
        erase = self._erase()

        def work(memory: Memory) -> list[str]:
            return forget(memory, self._home, id_, erase, memory.mirror.last(session))

        gone = await self.run(work)
        return {"forgotten": gone}

    def _erase(self) -> Callable[[Needles], bool]:
        """For the memory's thread: has the loop erase, waits for it, and says whether a turn runs."""
        loop = asyncio.get_running_loop()

        def erase(needles: Needles) -> bool:
            asyncio.run_coroutine_threadsafe(self._erased(needles), loop).result()
            return not self._quiet()

        return erase

    async def drain(self) -> None:
        """Take the outbox into the record. Raises StorageError; the rows stay then."""
        async with self._draining:
            while rows := self._outbox.rows():
                await self.run(lambda memory, rows=rows: memory.write(rows))  # type: ignore[misc]
                self._outbox.done(rows)

    def read(self) -> None:
        """Let the embedding model read what is new, in the background."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        left = 1
        while left:
            while not self._quiet():
                await asyncio.sleep(1.0)
            try:
                left, done = await self.run(_embed_some)
            except ExoError as error:
                print(f"memory: {error}", file=sys.stderr)
                done = 0
            await asyncio.sleep(0.02 if done or not left else PAUSE)

    # ---- the slot ----------------------------------------------------------------------------------

    async def pack(self, session: str) -> str:
        def work(memory: Memory) -> str:
            memory.refresh()  # a rule of another process counts from the next turn on
            return memory.store.pack()

        return await self.run(work)

    async def artifacts(self, session: str, at: int) -> dict[str, str]:
        return await self.run(lambda memory: memory.artifacts.all(at))

    async def recall_deep(self, session: str, text: str) -> Remembered:
        return await self.recall(session, text, k=DEEP, budget=DEEP * 60)

    async def recall(self, session: str, text: str, **more: Any) -> Remembered:
        reader = self._reader()
        more |= {"reader": reader}
        found = await self.run(lambda memory: memory.recall(text, **more))
        name = reader.about_person(text, bool(found.ours or found.answer))
        ids = tuple(hit.id for hit in found.hits)
        if found.answer and name:
            quoted = reader.quoted(name, found.answer.text, found.answer.ts)
            return Remembered(found.block, (found.answer.id,), quoted)
        nothing, near = reader.nothing(text, name, found.hits)
        block, ids = (found.block, ids) if found.hits and not found.abstain else ("", ())
        return Remembered(block, ids, nothing=nothing, ours=bool(name), near=near)

    def tools(self) -> list[ToolSpec]:
        offers = (self.tool_recall, self.tool_remember, self.tool_why, self.tool_forget)
        named = {function.__name__.removeprefix("tool_"): function for function in offers}
        return [
            spec_of(function, name, toolset="memory", risk="high" if name == "forget" else "low")
            for name, function in named.items()
        ]

    async def tool_recall(self, context: Context, query: str) -> str:
        """Search what is known about the person and what they saved."""
        found = await self.run(lambda memory: memory.recall(query, k=self._lines))
        return found.block or self._reader().told(context.language, "none_known")

    async def tool_remember(self, context: Context, text: str) -> str:
        """Remember something that the person said about themselves."""
        said = self._said(context.session)
        # a model's own words are no words of the person, and may come from what it has read
        channel = "typed" if f" {_plain(text)} " in f" {_plain(said)} " else "unknown"
        await self.drain()

        def work(memory: Memory) -> dict[str, Any]:
            source = memory.mirror.last(context.session)
            return memory.remember(text, channel, [source] if source else [])

        kept = await self.run(work)
        return self._reader().told(context.language, "remember", text=text.strip(), id=kept["id"])

    async def tool_forget(self, context: Context, id: str) -> str:
        """Forget something for good, by its id, or by words that only one belief fits."""

        def meant(memory: Memory) -> list[Hit]:
            if memory.store.entry_of(id):
                return []
            nodes = [h for h in memory.recall(id).hits if h.kind == "node" and h.score >= KNOWN]
            close = [h for h in nodes if h.score > nodes[0].score - NEAR]
            if not nodes:
                raise ExoError(
                    f"forget {id!r}", self._reader().told(context.language, "none_known")
                )
            return close[: self._lines]

        found = await self.run(meant)
        if len(found) > 1:
            lines = [
                self._reader().told(context.language, "which"),
                *(f"[{h.id}] {h.text}" for h in found),
            ]
            return "\n".join(lines)
        wanted = {"id": found[0].id if found else id, "session": context.session}
        gone = (await self.query("forget", wanted))["forgotten"]
        return self._reader().told(context.language, "forgotten", count=len(gone))

    async def tool_why(self, id: str) -> str:
        """Say where a belief comes from."""
        found = await self.run(lambda memory: memory.why(id))
        lines = [f"{each['kind']} {each['id'][:12]}: {each['text']}" for each in found["evidence"]]
        return "\n".join([found["title"] or id, *lines])


def _embed_some(memory: Memory) -> tuple[int, int]:
    """Embed a few texts: (how many are left, how many got their vector); then there is time to commit the
    files to their history."""
    memory.refresh()
    left = memory.index.pending()
    done = 0
    if left and memory.embedder is not None:
        done = memory.index.embed_some(memory.embedder, EMBEDDED)
        left = memory.index.pending()
    if not left or not done:
        memory.store.commit()
    return left, done


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
