"""Which models are in memory. Owns loading on first use, the memory budget, and unloading by it or after
idleness; knows no runtime: how a model is loaded and freed is handed in.

Invariant: a model that is in use is never unloaded, one load runs at a time, and what does not fit is
refused before it is loaded. A load whose client goes away is ended, kept and counted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from exo.core.base.errors import ModelBusy
from exo.models.catalog import ModelTooLarge, Row
from exo.models.memory import give_back, rss_mb

PATIENCE = 20.0  # seconds to wait for a model in use to be let go


@dataclass
class Loaded:
    """A model in memory; `users` hold it now, `used` is when it was last let go (monotonic)."""

    row: Row
    model: Any
    ram_mb: float
    seconds: float
    users: int = 0
    used: float = 0.0


class Pool:
    """All methods belong to one event loop; loads and frees run in threads beside it."""

    def __init__(
        self, budget_mb: float, idle: float, load: Callable[[Row], Any], free: Callable[[Any], None]
    ) -> None:
        self.budget_mb, self._idle = budget_mb, idle
        self._load, self._free = load, free
        self._loaded: dict[str, Loaded] = {}
        self._one = asyncio.Lock()
        self._let_go = asyncio.Event()

    def loaded(self) -> list[Loaded]:
        return list(self._loaded.values())

    def used_mb(self) -> float:
        return sum(each.ram_mb for each in self._loaded.values())

    def fits_beside(self, row: Row) -> bool:
        """Whether `row` is loaded, or can be without waiting for a model that is in use."""
        held = sum(each.ram_mb for each in self._loaded.values() if each.users)
        return row.name in self._loaded or held + row.ram_mb <= self.budget_mb

    @contextlib.asynccontextmanager
    async def lease(self, row: Row) -> AsyncIterator[Any]:
        """The model, loaded, and kept while the block runs. Raises what loading raises, ModelTooLarge,
        ModelBusy when others that are in use leave no room for PATIENCE seconds."""
        entry = await self._get(row)
        try:
            yield entry.model
        finally:
            entry.users -= 1
            entry.used = time.monotonic()
            self._let_go.set()

    async def sweep(self) -> None:
        """Unload what has been idle too long. Call now and then."""
        if not self._idle:
            return
        async with self._one:
            now = time.monotonic()
            for entry in self.loaded():
                if not entry.users and now - entry.used > self._idle:
                    await self._drop(entry)

    async def close(self) -> None:
        async with self._one:
            for entry in self.loaded():
                await self._drop(entry)

    async def _get(self, row: Row) -> Loaded:
        entry = self._loaded.get(row.name)
        if entry is None:
            async with self._one:
                entry = self._loaded.get(row.name) or await self._bring(row)
                entry.users += 1
                return entry
        entry.users += 1
        return entry

    async def _bring(self, row: Row) -> Loaded:
        await self._make_room(row)
        before, began = rss_mb(), time.monotonic()
        try:
            model, gone = await _finished(self._load, row)
        finally:
            give_back()
        took = time.monotonic() - began
        entry = Loaded(row, model, max(1.0, rss_mb() - before), took, used=time.monotonic())
        self._loaded[row.name] = entry
        if gone:
            raise gone
        return entry

    async def _make_room(self, row: Row) -> None:
        if row.ram_mb > self.budget_mb:
            raise ModelTooLarge(
                f"load model {row.name}",
                f"it takes about {row.ram_mb} MB and models may take {self.budget_mb:g}",
                "raise the setting models.ram_mb, or choose a smaller one from `exo models list`",
            )
        end = time.monotonic() + PATIENCE
        while self.used_mb() + row.ram_mb > self.budget_mb:
            free = [each for each in self.loaded() if not each.users]
            if free:
                await self._drop(min(free, key=lambda each: each.used))
                continue
            self._let_go.clear()
            try:
                await asyncio.wait_for(self._let_go.wait(), end - time.monotonic())
            except TimeoutError as error:
                names = ", ".join(each.row.name for each in self.loaded())
                raise ModelBusy(
                    f"load model {row.name}", f"{names} are in use and leave no room"
                ) from error

    async def _drop(self, entry: Loaded) -> None:
        del self._loaded[entry.row.name]
        model, entry.model = entry.model, None
        _, gone = await _finished(self._free, model)
        del model
        give_back()
        if gone:
            raise gone


async def _finished(
    work: Callable[[Any], Any], argument: Any
) -> tuple[Any, asyncio.CancelledError | None]:
    """Run `work` in a thread to its end: a thread cannot be stopped, and a model that nobody took would
    stay in memory unknown. A cancellation meanwhile is handed back, for the caller to raise."""
    task = asyncio.ensure_future(asyncio.to_thread(work, argument))
    gone: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            gone = error
    return task.result(), gone
