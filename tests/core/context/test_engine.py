"""The context engine over its database: nothing missing, stable prefixes, jobs that come again."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from os.path import commonprefix
from typing import Any

import pytest
from exo.core.context.builder import estimate, weigh
from exo.core.context.tree import LEAF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import OPENING, Bench

RANGE = re.compile(r"\[messages (\d+)-(\d+)\]")


def seen(request: list[dict[str, Any]]) -> list[int]:
    """The numbers of the messages that a request shows, verbatim or in a summary, in order."""
    out: list[int] = []
    for each in request[1:]:
        for first, last in RANGE.findall(each["content"]):
            out += range(int(first), int(last) + 1)
        if found := re.match(r"message (\d+) ", each["content"]):
            out.append(int(found[1]))
    return out


def test_a_short_talk_is_sent_as_it_is(bench: Bench) -> None:
    bench.talk(20)
    request = asyncio.run(bench.build())
    assert [each["role"] for each in request[1:3]] == ["user", "assistant"]
    assert seen(request) == list(range(1, 21)) and not bench.compactions()


@pytest.mark.parametrize("model", [True, False])
def test_nothing_is_ever_missing_and_every_request_fits(bench: Bench, model: bool) -> None:
    bench.model.gone = not model

    async def run() -> None:
        for _ in range(60):
            bench.talk(2, words=30)
            request = await bench.build()
            assert seen(request) == list(range(1, bench.count + 1))
            assert sum(weigh(each, estimate) for each in request) < 3600
            await bench.engine.rest(bench.session)
            await bench.settled()

    asyncio.run(run())
    assert bench.compactions()


def test_requests_begin_with_the_one_before_until_the_view_changes(bench: Bench) -> None:
    async def run() -> tuple[int, int]:
        sent = computed = 0
        last = ""
        for _ in range(90):
            bench.talk(2, words=30)
            text = "\n".join(each["content"] for each in await bench.build())
            sent += len(text)
            computed += len(text) - len(commonprefix([text, last]))
            last = text
            await bench.engine.rest(bench.session)
            await bench.settled()
        return sent, computed

    sent, computed = asyncio.run(run())
    assert computed / sent < 0.15


def test_a_model_elsewhere_folds_leaf_by_leaf_and_is_waited_for(bench: Bench) -> None:
    bench.alone = False
    bench.talk(12 + 3 * LEAF)
    request = asyncio.run(bench.build())
    assert seen(request) == list(range(1, 37))
    assert len(request) == 2 + 12  # system, view, tail
    assert request[1]["content"].count("[messages ") == 3
    assert bench.model.most > 1 and len(bench.model.asked) == 3


def test_summaries_over_their_room_are_merged_oldest_first(bench: Bench) -> None:
    bench.alone = False
    bench.open(window=100_000, view=400)
    bench.model.reply = "They talked about message and word and word again. " + "word message " * 10

    async def run() -> list[dict[str, Any]]:
        for _ in range(20):
            bench.talk(LEAF)
            request = await bench.build()
        return request

    request = asyncio.run(run())
    sizes = [int(b) - int(a) + 1 for a, b in RANGE.findall(request[1]["content"])]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > LEAF
    assert seen(request) == list(range(1, bench.count + 1))


def test_settling_gives_up_after_its_time_and_sends_verbatim(bench: Bench) -> None:
    bench.alone = False
    bench.talk(40)

    async def run() -> list[dict[str, Any]]:
        bench.model.gate = asyncio.Event()
        building = asyncio.create_task(bench.build())
        await asyncio.sleep(0.12)
        assert not building.done()
        bench.clock.advance(61)
        request = await building
        await bench.engine.close()
        return request

    request = asyncio.run(run())
    assert len(request) == 41 and seen(request) == list(range(1, 41))


def test_on_one_local_model_nobody_waits_and_turns_stop_the_jobs(bench: Bench) -> None:
    bench.talk(40)

    async def run() -> None:
        bench.model.gate = asyncio.Event()
        request = await bench.build()
        assert len(request) == 41
        await asyncio.sleep(0.01)
        assert bench.model.running == 1  # one at a time
        with bench.engine.live():
            await asyncio.sleep(0.01)
            assert bench.model.running == 0
            assert bench.engine.lanes.pending("live", bench.session) == 3
        bench.model.gate.set()
        await bench.settled()
        assert bench.model.most == 1
        assert bench.model.asked[-1].priority == "aux"

    asyncio.run(run())
    assert len(bench.database.rows("SELECT 1 FROM nodes")) == 3


def test_a_failed_summary_is_made_by_rules_and_again_when_touched(bench: Bench) -> None:
    bench.model.gone = True
    bench.say(*(f"I changed /etc/app/{n}.conf on host{n}-x" for n in range(40)))

    async def run() -> None:
        bench.engine.touch(bench.session)
        await bench.settled()
        rows = bench.database.rows("SELECT made_by, text FROM nodes")
        assert [row[0] for row in rows] == ["stopgap"] * 3
        assert "/etc/app/3.conf" in str(rows[0][1])
        bench.model.gone = False
        bench.model.reply = "They changed conf files on a host."
        bench.open()  # a restart in between
        bench.engine.touch(bench.session)
        await bench.settled()

    asyncio.run(run())
    rows = bench.database.rows("SELECT made_by, text FROM nodes ORDER BY n")
    assert [row[0] for row in rows[3:]] == ["model"] * 3
    assert "They changed conf files" in str(rows[3][1]) and "/etc/app/3.conf" in str(rows[3][1])


def test_a_crash_in_the_middle_leaves_the_job_due(bench: Bench) -> None:
    bench.talk(40)

    async def run() -> None:
        bench.model.gate = asyncio.Event()
        bench.engine.touch(bench.session)
        await asyncio.sleep(0.01)
        await bench.engine.close()
        assert not bench.database.rows("SELECT 1 FROM nodes")
        bench.model.gate = None
        bench.open()
        bench.engine.touch(bench.session)
        await bench.settled()

    asyncio.run(run())
    assert len(bench.database.rows("SELECT 1 FROM nodes")) == 3


def test_imports_have_their_own_lane_and_pause(bench: Bench) -> None:
    bench.alone = False
    bench.talk(12 + 20 * LEAF)

    async def run() -> None:
        lanes = bench.engine.lanes
        bench.model.gate = asyncio.Event()
        lanes.pause("import")
        bench.engine.touch(bench.session, "import")
        await asyncio.sleep(0.01)
        assert bench.model.running == 0 and lanes.pending("import") == 20
        assert await lanes.settle(bench.session, 0)  # imports are not waited for
        lanes.resume("import")
        await asyncio.sleep(0.01)
        assert bench.model.running == 2
        bench.model.gate.set()
        while lanes.pending("import"):
            await asyncio.sleep(0)
        assert bench.model.most == 2

    asyncio.run(run())


def test_one_message_larger_than_the_window_fits(bench: Bench) -> None:
    bench.say("tell me about this: " + "x y z " * 50_000)
    request = asyncio.run(bench.build())
    assert sum(weigh(each, estimate) for each in request) < 4096 - 200
    assert request[1]["content"].startswith("tell me about this")


def test_a_turn_of_many_tool_rounds_keeps_the_request_of_the_person(bench: Bench) -> None:
    bench.say("mend the roof with the blue tiles")
    for n in range(40):
        bench.say(f"file-{n}", f"text of the file {n} " * 60, tool=True)
    request = asyncio.run(bench.build())
    assert sum(weigh(each, estimate) for each in request) < 4096 - 200
    assert any("mend the roof with the blue tiles" in each["content"] for each in request[2:])


def test_the_tokenizer_is_asked_once_in_a_turn_and_once_at_rest(bench: Bench) -> None:
    bench.model.tokenizer = True
    bench.talk(140, words=15)

    async def run() -> None:
        await bench.build()
        assert bench.model.counted == 1
        await bench.engine.rest(bench.session)
        assert bench.model.counted == 2

    asyncio.run(run())


def test_counts_of_the_tokenizer_spare_a_fold(bench: Bench) -> None:
    bench.talk(80, words=25)  # 80 x 27 words fit 4,096; a third of their bytes does not
    bench.model.tokenizer = True
    assert len(asyncio.run(bench.build())) == 81 and not bench.compactions()
    bench.model.tokenizer = False
    bench.open()
    assert len(asyncio.run(bench.build())) < 81 and len(bench.compactions()) == 1


def test_undo_forgets_what_it_must_and_no_more(bench: Bench) -> None:
    async def run() -> None:
        bench.talk(200, words=30)
        await bench.build()
        await bench.settled()
        with bench.database.transaction() as link:
            bench.engine.forget_after(bench.session, "m60")
            link.execute("DELETE FROM messages WHERE n > 60")
        bench.count = 60
        ends = [int(str(row[0])) for row in bench.database.rows("SELECT last FROM nodes")]
        assert ends and max(ends) <= 60
        bench.talk(4)
        assert seen(await bench.build()) == list(range(1, 65))
        with bench.database.transaction() as link:
            bench.engine.forget_after(bench.session, "")
            link.execute("DELETE FROM messages")
        assert len(await bench.build()) == 1

    asyncio.run(run())


def test_undo_while_the_tokenizer_counts_leaves_no_summary_of_what_is_gone(bench: Bench) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def count(role: str, what: Any) -> tuple[int, int]:
        asked.set()
        await answered.wait()
        return 4000, 4096

    async def run() -> None:
        bench.talk(4)
        await bench.build()
        bench.model.gone, bench.model.count = True, count  # type: ignore[method-assign]
        bench.talk(60, words=40)
        rest = asyncio.create_task(bench.engine.rest(bench.session))
        await asked.wait()
        with bench.database.transaction() as link:
            link.execute("DELETE FROM messages WHERE n > 10")
            bench.engine.forget_after(bench.session, "m10")
        answered.set()
        await rest
        assert bench.database.rows("SELECT * FROM nodes WHERE last > 10") == []
        assert seen(await bench.build()) == list(range(1, 11))

    asyncio.run(run())


def test_undo_stops_a_summary_of_what_is_gone(bench: Bench) -> None:
    async def run() -> None:
        bench.talk(40)
        bench.model.gate = asyncio.Event()
        bench.engine.touch(bench.session)
        await asyncio.sleep(0.01)
        with bench.database.transaction() as link:
            bench.engine.forget_after(bench.session, "m4")
            link.execute("DELETE FROM messages WHERE n > 4")
        bench.model.gate.set()
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert not bench.database.rows("SELECT 1 FROM nodes")


def test_a_fork_takes_the_summaries_along(bench: Bench) -> None:
    async def run() -> None:
        bench.talk(200, words=30)
        await bench.build()
        await bench.settled()
        with bench.database.transaction():
            fork = bench.sessions.create("", "/")
            for message in bench.sessions.messages(bench.session)[:150]:
                bench.sessions.add(fork, "t", replace(message, id=f"f{message.id}"))
            bench.engine.store.copy(bench.session, fork)
        asked = len(bench.model.asked)
        request = await bench.engine.build(fork, OPENING)
        assert seen(request) == list(range(1, 151))
        assert "[messages 1-" in request[1]["content"] and len(bench.model.asked) == asked

    asyncio.run(run())


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_course_of_events_leaves_nothing_missing(bench: Bench, data: st.DataObject) -> None:
    with bench.database.transaction() as link:
        for table in ("messages", "nodes", "views"):
            link.execute(f"DELETE FROM {table}")
    bench.count = 0
    window = data.draw(st.sampled_from([600, 1500, 4096, 30_000]))
    bench.alone = data.draw(st.booleans())
    bench.open(window=window, settle=0.0)

    async def run() -> None:
        for _ in range(data.draw(st.integers(1, 12))):
            action = data.draw(
                st.sampled_from(["talk", "rest", "settle", "restart", "gone", "undo"])
            )
            if action == "talk":
                bench.talk(data.draw(st.integers(1, 25)) * 2, words=data.draw(st.integers(0, 60)))
            elif action == "rest":
                await bench.engine.rest(bench.session)
            elif action == "settle":
                await bench.settled()
            elif action == "restart":
                await bench.engine.close()
                bench.open(window=window, settle=0.0)
            elif action == "gone":
                bench.model.gone = not bench.model.gone
            elif bench.count:
                bench.count = data.draw(st.integers(0, bench.count // 2)) * 2
                rows = bench.database.rows("SELECT n, id FROM messages ORDER BY n")[: bench.count]
                end = rows[-1] if rows else (0, "")
                with bench.database.transaction() as link:
                    bench.engine.forget_after(bench.session, str(end[1]))
                    link.execute("DELETE FROM messages WHERE n > ?", (end[0],))
            request = await bench.build()
            assert sum(weigh(each, estimate) for each in request) < window
            if window > 600:
                assert seen(request) == list(range(1, bench.count + 1))
        await bench.engine.close()

    asyncio.run(run())
