"""Which models stay in memory, with models that are made of nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from exo.core.base.errors import ModelBusy, ModelMissing
from exo.models import pool as module
from exo.models.catalog import ModelTooLarge, Row
from exo.models.pool import Pool


def row(name: str, ram_mb: int) -> Row:
    return Row(name, name, (name,), "x", "MIT", ram_mb, True, "", 0, ())


A, B, C = row("a", 40), row("b", 40), row("c", 40)


class World:
    """Loads and frees, and the memory that they take."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.mb = 100.0
        self.missing = ""

    def load(self, each: Row) -> str:
        if each.name == self.missing:
            raise ModelMissing("load", "gone")
        self.events.append(f"+{each.name}")
        self.mb += each.ram_mb
        return each.name

    def free(self, model: Any) -> None:
        self.events.append(f"-{model}")
        self.mb -= 40


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    monkeypatch.setattr(module, "rss_mb", lambda: made.mb)
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    yield made


def pool(world: World, budget: float = 100, idle: float = 600) -> Pool:
    return Pool(budget, idle, world.load, world.free)


async def use(made: Pool, *rows: Row) -> None:
    for each in rows:
        async with made.lease(each) as model:
            assert model == each.name


def test_a_model_is_loaded_once_and_the_least_recently_used_gives_way(world: World) -> None:
    async def act() -> None:
        made = pool(world)
        await use(made, A, B, A, C, A)
        assert [each.row.name for each in made.loaded()] == ["a", "c"]
        assert made.used_mb() == 80

    asyncio.run(act())
    assert world.events == ["+a", "+b", "-b", "+c"]


def test_a_model_in_use_is_never_unloaded(world: World) -> None:
    async def act() -> None:
        made = pool(world)
        async with made.lease(A), made.lease(B):
            assert not made.fits_beside(C)
            with pytest.raises(ModelBusy, match="a, b are in use"):
                await use(made, C)
        await use(made, C)

    asyncio.run(act())
    assert world.events == ["+a", "+b", "-b", "+c"] or world.events == ["+a", "+b", "-a", "+c"]


def test_one_that_waits_gets_the_room_that_is_let_go(world: World) -> None:
    async def act() -> None:
        made = pool(world, budget=40)
        lease = made.lease(A)
        await lease.__aenter__()
        waiting = asyncio.create_task(use(made, B))
        await asyncio.sleep(0.01)
        await lease.__aexit__(None, None, None)
        await waiting

    asyncio.run(act())
    assert world.events == ["+a", "-a", "+b"]


def test_what_does_not_fit_alone_is_refused_before_it_is_loaded(world: World) -> None:
    with pytest.raises(ModelTooLarge, match="models.ram_mb"):
        asyncio.run(use(pool(world, budget=30), A))
    assert world.events == []


def test_two_that_ask_at_once_share_one_load(world: World) -> None:
    async def act() -> None:
        made = pool(world)
        await asyncio.gather(*(use(made, A) for _ in range(5)))

    asyncio.run(act())
    assert world.events == ["+a"]


def test_what_is_idle_too_long_is_unloaded(world: World) -> None:
    async def act() -> None:
        made = pool(world, idle=1e-9)
        async with made.lease(B):
            await use(made, A)
            await made.sweep()
            assert [each.row.name for each in made.loaded()] == ["b"]

    asyncio.run(act())


def test_a_load_that_fails_leaves_the_pool_as_it_was(world: World) -> None:
    async def act() -> None:
        made = pool(world)
        world.missing = "a"
        with contextlib.suppress(ModelMissing):
            await use(made, A)
        assert made.loaded() == []
        world.missing = ""
        await use(made, A)

    asyncio.run(act())
    assert world.events == ["+a"]


def test_a_load_whose_client_goes_away_is_kept_and_counted(world: World) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(each: Row) -> str:
        began.set()
        assert go_on.wait(10)
        return world.load(each)

    async def act() -> None:
        made = Pool(100, 600, slow, world.free)
        asked = asyncio.create_task(use(made, A))
        await asyncio.to_thread(began.wait)
        asked.cancel()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert [(each.row.name, each.users) for each in made.loaded()] == [("a", 0)]
        await use(made, A)
        await made.close()

    asyncio.run(act())
    assert world.events == ["+a", "-a"]
