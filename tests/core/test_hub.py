"""The hub: dense numbers, saved before shown, the same bytes for everybody, nobody slows another."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.base.errors import HomeError, ProtocolError, StorageError
from exo.core.protocol.schema import Notice
from exo.core.server.hub import Hub

Run = Callable[..., Any]


def notice(text: str) -> Notice:
    return Notice("info", "test", text)


async def take(hub: Hub, since: int, count: int, session: str | None = None) -> list[Any]:
    rows = hub.follow(since, session, 60.0)
    try:
        return [row async for row, _ in _zip(rows, count)]
    finally:
        await rows.aclose()


async def _zip(rows: Any, count: int) -> Any:
    for n in range(count):
        yield await anext(rows), n


def test_numbers_are_dense_and_go_on_after_a_restart(run: Run) -> None:
    async def first(bench: Any) -> None:
        bench.hub.publish("s", notice("a"), notice("b"))
        bench.hub.publish(None, notice("c"))

    async def second(bench: Any) -> None:
        bench.hub.publish("s", notice("d"))
        assert [e["body"]["text"] for e in bench.events()] == ["a", "b", "c", "d"]
        assert [e["id"] for e in bench.events()] == ["e1", "e2", "e3", "e4"]

    run(first)
    run(second)


def test_every_follower_gets_the_bytes_that_were_saved(run: Run) -> None:
    async def test(bench: Any) -> None:
        live = [asyncio.create_task(take(bench.hub, 0, 40)) for _ in range(3)]
        await asyncio.sleep(0)
        for n in range(40):
            bench.hub.publish("s", notice(f"é{n}"))
        late = await take(bench.hub, 0, 40)
        saved = bench.database.rows("SELECT seq, session, data FROM events ORDER BY seq")
        assert late == [(seq, session, data.encode()) for seq, session, data in saved]
        assert await asyncio.gather(*live) == [late] * 3

    run(test)


@pytest.mark.parametrize("at", range(1, 8))
def test_what_a_full_disk_refuses_is_never_shown(run: Run, at: int) -> None:
    async def test(bench: Any) -> None:
        shown: list[Any] = []

        async def watch() -> None:
            async for row in bench.hub.follow(0, None, 60.0):
                shown.append(row)

        watcher = asyncio.create_task(watch())
        await asyncio.sleep(0)
        bench.disk.arm(at)
        kept = []
        for n in range(4):
            try:
                bench.hub.publish("s", notice(f"{n}a"), notice(f"{n}b"))
                kept += [f"{n}a", f"{n}b"]
            except StorageError:
                pass
            await asyncio.sleep(0.01)
        assert [e["body"]["text"] for e in bench.events()] == kept and len(kept) == (
            6 if at < 8 else 8
        )
        assert [
            json.loads(row[2])["body"]["text"] for row in shown if isinstance(row, tuple)
        ] == kept
        assert len([row for row in shown if isinstance(row, StorageError)]) == 1
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)

    run(test)


def test_rows_and_events_of_one_commit_stand_or_fall_together(run: Run) -> None:
    async def test(bench: Any) -> None:
        with pytest.raises(RuntimeError), bench.hub.commit() as add:
            bench.engine.sessions.create("x", "/")
            add("s", notice("a"))
            raise RuntimeError
        assert bench.events() == [] and bench.engine.sessions.recent(9) == [] and bench.hub.seq == 0
        bench.hub.publish("s", notice("b"))
        assert bench.hub.seq == 1

    run(test)


def test_since_and_session_choose_what_is_replayed(run: Run) -> None:
    async def test(bench: Any) -> None:
        for n in range(6):
            bench.hub.publish("ab"[n % 2], notice(str(n)))
        assert [row[0] for row in await take(bench.hub, 4, 2)] == [5, 6]
        assert [row[0] for row in await take(bench.hub, 0, 3, "b")] == [2, 4, 6]
        waiting = asyncio.create_task(take(bench.hub, 0, 4, "b"))
        await asyncio.sleep(0)
        bench.hub.publish("a", notice("6"))
        bench.hub.publish("b", notice("7"))
        assert [row[0] for row in await waiting] == [2, 4, 6, 8]
        for since in (-1, 9, 10**30):
            with pytest.raises(ProtocolError) as caught:
                bench.hub.check_since(since)
            assert caught.value.code == "bad_since"

    run(test)


def test_pruning_removes_a_prefix_and_says_where_the_record_starts(run: Run) -> None:
    async def test(bench: Any) -> None:
        slow = bench.hub.follow(0, None, 60.0)
        for n in range(3):
            bench.hub.publish("s", notice(str(n)))
        assert [(await anext(slow))[0] for _ in range(3)] == [1, 2, 3]
        for n in range(997):
            bench.hub.publish("s", notice(str(n)))
        numbers = [int(r[0]) for r in bench.database.rows("SELECT seq FROM events ORDER BY seq")]
        assert numbers == list(range(bench.hub.first, 1001)) and 100 <= len(numbers) <= 110
        rows = await take(bench.hub, 0, 3)
        assert (
            rows[0].why == f"the record starts at {bench.hub.first}"
            and rows[1][0] == bench.hub.first
        )
        # the one who was overtaken hears of the gap, though the pruned are still in memory
        assert (await anext(slow)).why == f"the record starts at {bench.hub.first}"
        assert (await anext(slow))[0] == bench.hub.first
        await slow.aclose()

    run(test, env={"EXO_EVENTS_KEEP": "100"})


def test_start_of_the_record_is_known_after_a_restart(run: Run) -> None:
    async def fill(bench: Any) -> int:
        for n in range(150):
            bench.hub.publish("s", notice(str(n)))
        return int(bench.hub.first)

    async def look(bench: Any) -> tuple[int, int]:
        return bench.hub.first, bench.hub.seq

    keep = {"EXO_EVENTS_KEEP": "100"}
    assert run(fill, env=keep) > 1
    first, last = run(look, env=keep)
    assert first > 1 and last == 150


def test_a_follower_that_stands_still_delays_nobody_and_holds_a_bounded_piece(run: Run) -> None:
    async def test(bench: Any) -> None:
        stuck = bench.hub.follow(0, None, 60.0)
        bench.hub.publish("s", notice("first"))
        await anext(stuck)
        for n in range(3000):
            bench.hub.publish("s", notice(str(n)))
        assert len(await take(bench.hub, 0, 3001)) == 3001
        assert len(bench.hub._recent) == 512
        assert stuck.ag_frame.f_locals["rows"] is not None
        assert len(stuck.ag_frame.f_locals["rows"]) <= 512
        assert [(await anext(stuck))[0] for _ in range(3000)] == list(range(2, 3002))
        await stuck.aclose()

    run(test)


def test_followers_are_counted_while_they_follow(run: Run) -> None:
    async def test(bench: Any) -> None:
        followers = [bench.hub.follow(0, None, 60.0) for _ in range(3)]
        bench.hub.publish("s", notice("x"))
        for each in followers:
            await anext(each)
        assert bench.hub.listeners == 3
        for each in followers:
            await each.aclose()
        assert bench.hub.listeners == 0

    run(test)


def test_silence_is_broken_by_a_keep_alive_and_the_end_by_close(run: Run) -> None:
    async def test(bench: Any) -> None:
        rows = bench.hub.follow(0, None, 0.01)
        assert await anext(rows) is None
        assert await anext(rows) is None
        bench.hub.close()
        assert [row async for row in rows if row is not None] == []

    run(test)


def test_a_broken_file_is_told_as_a_fault(run: Run) -> None:
    async def test(bench: Any) -> None:
        rows = bench.hub.follow(0, None, 60.0)
        waiting = asyncio.ensure_future(anext(rows))
        await asyncio.sleep(0)
        real = bench.disk._count
        bench.disk._count = _malformed
        with pytest.raises(HomeError, match="malformed"):
            bench.hub.publish("s", notice("x"))
        assert isinstance(await waiting, HomeError)
        bench.disk._count = real
        bench.hub.publish("s", notice("y"))
        assert (await anext(rows))[0] == 1
        await rows.aclose()

    run(test)


def _malformed(sql: str) -> None:
    import sqlite3

    if sql.startswith("INSERT"):
        raise sqlite3.DatabaseError("database disk image is malformed")


def test_many_writers_of_one_loop_never_share_a_number(run: Run) -> None:
    async def test(bench: Any) -> None:
        async def write(name: str) -> None:
            for n in range(30):
                bench.hub.publish(name, *[notice(str(n))] * (n % 3))
                await asyncio.sleep(0)

        await asyncio.gather(*map(write, "abcdef"))
        counts = itertools.groupby(sorted(e["session"] for e in bench.events()))
        assert {name: len(list(rows)) for name, rows in counts} == dict.fromkeys("abcdef", 30)

    run(test)
