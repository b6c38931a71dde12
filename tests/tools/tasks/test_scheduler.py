"""Timers, reminders and tasks by a clock that a test turns: each slot is delivered once, whatever is killed; missed ones by their policy;
quiet when there is no news; nothing while the clock is unsure."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from exo.core.base.client import Client
from exo.core.base.errors import ExoError, ProtocolError, StorageError
from exo.core.base.home import Home
from exo.tools.clock import FakeClock
from exo.tools.tasks.scheduler import Scheduler

ZURICH = "Europe/Zurich"
HOUR = 3_600_000


class Killed(BaseException):
    pass


class World:
    """What deliveries arrived at, keyed as exod keys them; `kill` is called around each."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, FakeClock()
        self.told: dict[str, str] = {}
        self.asked: list[str] = []
        self.news = ""
        self.kill: Callable[[str], None] = lambda where: None
        self.open()

    def open(self) -> None:
        self.tasks = Scheduler(self.path, self.clock, self.deliver, self.wake)

    async def deliver(self, session: str, text: str, key: str, ask: bool, bell: str) -> bool:
        self.kill("before")
        fresh = key not in self.told
        self.told.setdefault(key, text)
        if ask and fresh:
            self.asked.append(text)
        self.kill("after")
        return fresh

    async def wake(self, session: str, tool: str, args: dict[str, Any]) -> str:
        return self.news

    def fire(self) -> float:
        return asyncio.run(self.tasks.fire())

    def at(self, text: str) -> None:
        there = datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZURICH))
        self.clock.advance(there.timestamp() - self.clock.now_ms() / 1000)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "tasks.sqlite")
    made.at("2027-03-01T06:00")
    yield made
    made.tasks.close()


def test_a_task_fires_at_its_time_and_not_again(world: World) -> None:
    task = world.tasks.add("0 7 * * *", "Stretch", "s", ZURICH)
    assert world.fire() <= 30 and not world.told
    world.at("2027-03-01T07:00:30")
    world.fire()
    world.fire()
    assert list(world.told.values()) == ["Stretch"]
    world.at("2027-03-02T07:00")
    world.fire()
    assert len(world.told) == 2
    assert world.tasks.remove(task.id[:6]).id == task.id and world.tasks.every() == []


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_kill_around_a_delivery_costs_nothing_and_doubles_nothing(
    world: World, where: str
) -> None:
    world.tasks.add("@at 2027-03-01T07:00", "Now", "s", ZURICH, ask=True)
    world.at("2027-03-01T07:00")

    def kill(here: str) -> None:
        if here == where:
            raise Killed

    world.kill = kill
    with pytest.raises(Killed):
        world.fire()
    world.kill = lambda here: None
    world.tasks.close()
    world.open()
    world.fire()  # the lease of the one that died still holds
    world.clock.advance(301)
    world.fire()
    assert world.asked == ["Now"] and len(world.told) == 1
    assert [task.slot for task in world.tasks.every()] == [None]


@pytest.mark.parametrize(("missed", "count"), [("once", 1), ("skip", 0), ("all", 5)])
def test_missed_times_are_handled_as_asked(world: World, missed: str, count: int) -> None:
    world.tasks.add("0 7 * * *", "x", "s", ZURICH, missed=missed)
    world.at("2027-03-05T12:00")  # five mornings were slept through
    world.fire()
    assert len(world.told) == count
    world.at("2027-03-06T07:00:10")
    world.fire()
    assert len(world.told) == count + 1


def test_no_news_costs_nothing(world: World) -> None:
    wake = {"tool": "look", "args": {"x": 1}}
    world.tasks.add("@every 1h", "There is mail:", "s", ZURICH, ask=True, wake=wake)
    for news, asked in (("", 0), ("[]", 0), ("one letter", 1), ("one letter", 1), ("two", 2)):
        world.clock.advance(3600)
        world.news = news
        world.fire()
        assert len(world.asked) == asked, news
    assert world.asked[0] == "There is mail:\none letter"


def test_nothing_fires_while_the_clock_is_unsure(world: World) -> None:
    world.tasks.add("0 7 * * *", "x", "s", ZURICH)
    world.at("2027-03-01T08:00")
    world.clock.unsure = True  # type: ignore[attr-defined]
    world.fire()
    assert not world.told
    world.clock.unsure = False  # type: ignore[attr-defined]
    world.fire()
    assert len(world.told) == 1


def test_two_at_once_share_the_work(world: World, tmp_path: Path) -> None:
    other = Scheduler(world.path, world.clock, world.deliver, world.wake)
    for n in range(10):
        world.tasks.add("0 7 * * *", f"task {n}", "s", ZURICH)
    world.at("2027-03-01T07:00")

    async def both() -> None:
        await asyncio.gather(world.tasks.fire(), other.fire())

    asyncio.run(both())
    other.close()
    assert sorted(world.told.values()) == [f"task {n}" for n in range(10)]


def test_a_clock_that_jumps_back_repeats_nothing(world: World) -> None:
    world.tasks.add("0 7 * * *", "x", "s", ZURICH)
    world.at("2027-03-01T07:00")
    world.fire()
    world.clock.advance(-7200)
    world.fire()
    world.at("2027-03-01T07:00:20")
    world.fire()
    assert len(world.told) == 1


def test_a_delivery_that_fails_costs_its_slot_alone(world: World) -> None:
    world.tasks.add("0 7 * * *", "broken", "gone", ZURICH)
    world.tasks.add("0 7 * * *", "fine", "s", ZURICH)
    whole = world.deliver

    async def deliver(session: str, *rest: Any) -> bool:
        if session == "gone":
            raise ExoError("deliver", "the session is gone")
        return await whole(session, *rest)

    world.tasks._deliver = deliver
    world.at("2027-03-01T07:00")
    world.fire()
    assert list(world.told.values()) == ["fine"]
    slots = [task.slot for task in world.tasks.every()]
    assert all(slot and slot > world.clock.now_ms() for slot in slots)


def test_what_cannot_be_a_task_is_told(world: World) -> None:
    for line, text, more in (
        *(("0 7 * * *", " ", {}), ("0 7 * * *", "x", {"missed": "never"}), ("nonsense", "x", {})),
        *(
            ("@at 2020-01-01T00:00", "x", {}),
            ("0 0 30 2 *", "x", {}),
            ("@daily", "x", {"wake": {}}),
        ),
    ):
        with pytest.raises(ExoError):
            world.tasks.add(line, text, "s", ZURICH, **more)  # type: ignore[arg-type]
    with pytest.raises(ExoError, match="none of that id"):
        world.tasks.remove("zz")
    assert world.tasks.every() == []


def test_a_simulated_year_of_many_tasks(world: World) -> None:
    """Each of 40 daily and hourly tasks comes as often as the calendar says, over both changes of the clock."""
    for n in range(20):
        world.tasks.add(f"{n} 7 * * *", f"daily {n}", "s", ZURICH, missed="all")
        world.tasks.add(f"{n} 3 * * sun", f"sunday {n}", "s", ZURICH, missed="all")
    world.at("2028-03-01T06:00")
    for _ in range(8):  # a hundred missed ones at most at once
        world.fire()
    daily = [key for key, text in world.told.items() if text == "daily 0"]
    assert 100 <= len(daily) <= 366 and len(set(world.told)) == len(world.told)


def test_a_bug_in_one_task_costs_no_other(world: World) -> None:
    """Whatever looking for news or delivering raises; the loop that fires goes on too."""
    for n, wake in enumerate(({"tool": "look", "args": {"x": 1}}, {"tool": "look"})):
        world.tasks.add("0 7 * * *", f"odd {n}", "s", ZURICH, wake=wake)
    world.tasks.add("0 7 * * *", "fine", "s", ZURICH)

    async def wake(session: str, tool: str, args: Any) -> str:
        raise AttributeError("'list' object has no attribute 'items'")

    world.tasks._wake = wake
    world.at("2027-03-01T07:00")
    world.fire()
    assert list(world.told.values()) == ["fine"]
    slots = [task.slot for task in world.tasks.every()]
    assert all(slot and slot > world.clock.now_ms() for slot in slots)

    async def lives() -> bool:
        async def breaks() -> float:
            raise RuntimeError("once")

        world.tasks.fire = breaks  # type: ignore[method-assign]
        loop = asyncio.create_task(world.tasks.run())
        await asyncio.sleep(0.05)
        alive = not loop.done()
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        return alive

    assert asyncio.run(lives())


def test_one_that_waits_for_a_person_keeps_no_other_back(world: World) -> None:
    """`--if` with a tool that asks, and nobody is there."""
    world.tasks.add("0 7 * * *", "a asks", "s", ZURICH, wake={"tool": "bash", "args": {}})
    world.tasks.add("0 7 * * *", "b fine", "s", ZURICH)
    world.tasks.add("1 7 * * *", "c later", "s", ZURICH)
    asked: list[str] = []

    async def wake(session: str, tool: str, args: dict[str, Any]) -> str:
        asked.append(tool)
        await asyncio.Event().wait()
        raise AssertionError

    world.tasks._wake = wake

    async def work() -> None:
        world.at("2027-03-01T07:00")
        await asyncio.wait_for(world.tasks.fire(), 10)
        assert list(world.told.values()) == ["b fine"]
        world.at("2027-03-01T07:10")  # its lease has run out, but it is still asked
        await asyncio.wait_for(world.tasks.fire(), 10)
        await world.tasks.stop()

    asyncio.run(work())
    assert list(world.told.values()) == ["b fine", "c later"] and asked == ["bash"]


def test_one_that_is_taken_back_while_it_is_asked_tells_nothing(world: World) -> None:
    task = world.tasks.add("0 7 * * *", "x", "s", ZURICH, wake={"tool": "look"})

    async def wake(session: str, tool: str, args: dict[str, Any]) -> str:
        world.tasks.remove(task.id)
        return "news"

    world.tasks._wake = wake
    world.at("2027-03-01T07:00")
    world.fire()
    assert not world.told and not world.tasks.every()


def test_a_full_disk_costs_no_delivery(world: World) -> None:
    world.tasks.add("@at 2027-03-01T07:00", "take the pill", "s", ZURICH)
    whole, full = world.tasks._deliver, True

    async def deliver(*given: Any) -> bool:
        if full:
            raise StorageError("write", "no space left")
        return await whole(*given)

    world.tasks._deliver = deliver
    world.at("2027-03-01T07:00:01")
    for _ in range(3):
        assert world.fire() >= 1
    full = False
    world.clock.advance(400)
    world.fire()
    assert list(world.told.values()) == ["take the pill"]


def test_a_clock_that_was_far_ahead_loses_nothing(world: World) -> None:
    """What fired in a year that it was not comes again in the one that it is."""
    world.tasks.add("0 7 * * *", "daily", "s", ZURICH)
    world.tasks.add("@every 1h", "hourly", "s", ZURICH)
    world.at("2036-03-01T07:00")
    world.fire()
    world.at("2027-03-02T06:59")
    world.fire()
    world.told.clear()
    world.at("2027-03-02T08:00")
    world.fire()
    assert sorted(world.told.values()) == ["daily", "hourly"]


def test_a_full_disk_while_the_clock_is_set_back_costs_no_year(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tasks.add("0 7 * * *", "daily", "s", ZURICH)
    world.at("2036-03-01T07:00")
    world.fire()

    def refuse(*given: Any) -> None:
        raise StorageError("write", "no space left")

    with monkeypatch.context() as full:
        full.setattr(world.tasks, "_done", refuse)
        world.at("2027-03-02T06:59")
        with pytest.raises(StorageError):
            world.fire()
    world.clock.advance(5)
    world.fire()
    world.told.clear()
    world.at("2027-03-02T07:00")
    world.fire()
    assert list(world.told.values()) == ["daily"]


@pytest.mark.parametrize("seed", [*range(8), 25, 34])
def test_no_clock_no_fault_and_no_kill_loses_or_doubles(world: World, seed: int) -> None:
    """Jumps to and fro over months and over summer time, a disk that refuses at any write, a kill around any
    delivery, rows that are added and taken back in between."""
    chance = random.Random(seed)
    world.at(chance.choice(["2027-03-27T22:00", "2027-10-30T22:00", "2028-02-28T23:00"]))
    made, gone, left = dict[str, Any](), set[str](), [0, 0]  # writes until faults begin, and end
    deaths = ["", 0]

    def kill(where: str) -> None:
        if where == deaths[0]:
            deaths[1] -= 1
            if not deaths[1]:
                raise Killed

    def refusing(tasks: Scheduler) -> None:
        whole = tasks._database.transaction

        def transaction(**how: bool) -> Any:
            left[:] = [left[0] - 1, left[1] - 1]
            if left[0] < 0 <= left[1]:
                raise StorageError("write", "no space left")
            return whole(**how)

        tasks._database.transaction = transaction  # type: ignore[method-assign]

    def add() -> None:
        kind, tasks, text = chance.random(), world.tasks, f"row {len(made)}"
        if kind < 0.4:
            row = tasks.count_down("s", chance.choice([1, 300, 5000, 90_000]), text)
        elif kind < 0.6:
            at = world.clock.local(world.clock.now_ms() + chance.choice([2000, HOUR, 72 * HOUR]))
            row = tasks.remind("s", at, text, chance.choice(["", "daily", "hourly", "weekly"]))
        else:
            lines = ["0 2 * * *", "*/5 * * * *", "@every 45m", "0 3 29 2 *", "15 2 * * 7"]
            zone = chance.choice([ZURICH, "Australia/Lord_Howe", "America/New_York"])
            missed = chance.choice(["once", "skip", "all"])
            row = tasks.add(chance.choice(lines), text, "s", zone, missed=missed)
        made[row.id] = row

    world.kill = kill
    refusing(world.tasks)
    for _ in range(12):
        add()
    for _ in range(50):
        jump = chance.choice([30, 3600, 86_400, 400 * 86_400])
        try:
            match chance.randrange(7):
                case 0 | 1:
                    world.clock.advance(chance.choice([1, 60, 3600, 86_400, 30 * 86_400]))
                case 2:
                    world.clock.set(chance.choice([-1, 1]) * jump)
                case 3:
                    left[:] = [begin := chance.randrange(12), begin + chance.choice([1, 20])]
                case 4:
                    deaths[:] = [chance.choice(["before", "after"]), chance.randint(1, 3)]
                case 5:
                    add()
                case 6:
                    id_ = chance.choice(sorted(made))
                    gone |= {id_} if world.tasks.cancel([id_]) else set()
            world.fire()
        except StorageError:
            pass
        except Killed:
            world.tasks.close()
            world.open()
            world.tasks.take_over(world.path.with_name("none"))
            refusing(world.tasks)
    left[:], deaths[:] = [0, 0], ["", 0]
    for _ in range(3):
        world.clock.advance(400)
        world.fire()
    now, rows = world.clock.now_ms(), {row.id: row for row in world.tasks.every()}
    for id_ in made.keys() - gone:
        told = [key for key in world.told if key.startswith(f"task-{id_}-")]
        row = rows.get(id_)
        if made[id_].kind == "timer" or made[id_].line.startswith("@at"):
            over = row is None or row.slot is None
            assert len(told) == over, (made[id_], told)
        else:
            assert row is not None and row.slot == world.tasks._following(row, now), row


def test_after_a_long_sleep_the_last_slot_is_the_last(world: World) -> None:
    """More slots were missed than are counted."""
    world.tasks.add("@every 1s", "tick", "s", ZURICH, missed="skip")
    world.clock.advance(30 * 86_400)
    world.fire()
    assert list(world.told) == [f"task-{world.tasks.every()[0].id}-{world.clock.now_ms()}"]


@pytest.mark.parametrize(
    "line",
    [
        *("@at 0001-01-01T00:00", "@at 9999-12-31T23:59:59-14:00", "@at 9999-12-31T23:59"),
        *("@every 0d", "@every 9999999999d", "@every " + "9" * 5000 + "s", "*/0 * * * *"),
        *(
            "1," * 500_000 + "1 * * * *",
            "9" * 10**6 + " * * * *",
            "*/" + "9" * 5000 + " * * * *",
            "0-" + "9" * 5000 + " * * * *",
            "² * * * *",
            "\0 * * * *",
            "١ ٢ * * *",
            "0 0 31 2 *",
            "@at " + "9" * 5000,
        ),
    ],
)
def test_no_line_breaks_the_reading(world: World, line: str) -> None:
    try:
        world.tasks.add(line, "x", "s", ZURICH)
    except ExoError as error:
        assert len(str(error)) < 500
    world.fire()


@pytest.mark.parametrize(
    "given",
    [
        {"wake": "bash"},
        {"wake": []},
        {"wake": {"tool": "x", "args": [1]}},
        {"text": "x" * 10**6},
        {"text": "\ud800"},
    ],
)
def test_what_is_no_task_is_refused_in_words(world: World, given: dict[str, Any]) -> None:
    rows = {"text": "x"} | given
    with pytest.raises(ExoError, match="add a task"):
        world.tasks.add("@daily", session="s", zone=ZURICH, **rows)


# ---- timers and reminders ------------------------------------------------------------------------


def test_a_timer_waits_for_one_delivery_at_most(world: World) -> None:
    """Ten tasks are due, each takes a second; somebody counts the seconds of a timer."""
    for n in range(10):
        world.tasks.add("0 7 * * *", f"task {n}", "s", ZURICH, missed="all")
    world.at("2027-03-01T07:00")
    world.tasks.count_down("s", 3, "tea")
    world.tasks.count_down("s", 60, "later")
    whole = world.deliver

    async def deliver(*given: Any) -> bool:
        world.clock.advance(1)
        return await whole(*given)

    world.tasks._deliver = deliver
    world.fire()
    assert list(world.told.values()).index("Timer: tea") == 3 and len(world.told) == 11


def test_the_next_look_is_when_the_next_one_is_due(world: World) -> None:
    world.tasks.count_down("s", 7.25, "")
    assert world.fire() == 7.25
    world.clock.advance(7.25)
    assert world.fire() == 30 and list(world.told.values()) == ["Your timer is done."]


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_timer_whose_exod_died_rings_at_the_next_start(world: World, where: str) -> None:
    """Once, at once, and also when the clock was set meanwhile: a lease of the dead holds nobody up."""
    world.tasks.count_down("s", 10, "tea")
    world.tasks.remind("s", world.clock.local(world.clock.now_ms() + 9000), "pill", "daily")
    world.clock.advance(10)

    def kill(here: str) -> None:
        if here == where:
            raise Killed

    world.kill = kill
    with pytest.raises(Killed):
        world.fire()
    world.kill = lambda here: None
    world.tasks.close()
    world.open()
    world.clock.set(3600)  # the network says what time it is
    world.tasks.take_over(world.path.with_name("none"))
    world.fire()
    world.fire()
    assert sorted(world.told.values()) == ["Reminder: pill", "Timer: tea"]
    assert [each.label for each in world.tasks.pending()] == ["pill"]


def test_a_disk_that_refuses_the_note_too_holds_nobody_up(world: World) -> None:
    """The lease is our own: what could not be delivered is tried again at the next look."""
    world.tasks.count_down("s", 10, "tea")
    world.clock.advance(10)
    whole, done = world.tasks._deliver, world.tasks._done

    async def deliver(*given: Any) -> bool:
        raise StorageError("write", "no space left")

    def refuse(*given: Any) -> None:
        raise StorageError("write", "no space left")

    world.tasks._deliver, world.tasks._done = deliver, refuse  # type: ignore[method-assign]
    assert world.fire() == 5
    world.tasks._deliver = whole
    world.fire()  # delivered, and not noted
    world.tasks._done = done  # type: ignore[method-assign]
    world.clock.set(7200)
    world.fire()
    assert list(world.told.values()) == ["Timer: tea"] and not world.tasks.pending()


def test_only_timers_are_set_while_the_clock_is_unsure(world: World) -> None:
    world.clock.unsure = True  # type: ignore[attr-defined]
    with pytest.raises(ExoError, match="clock of this board is not set yet"):
        world.tasks.add("@daily", "x", "s", ZURICH)
    with pytest.raises(ExoError, match="set a timer instead"):
        world.tasks.remind("s", world.clock.local(world.clock.now_ms() + 9000), "x")
    world.tasks.count_down("s", 5, "")
    assert [each.kind for each in world.tasks.pending()] == ["timer"]


def test_more_time_is_one_commit(world: World) -> None:
    """Nobody who kills exod in between is left without a timer."""
    old = world.tasks.count_down("s", 60, "tea")
    with pytest.raises(ExoError):
        world.tasks.count_down("s", 120, "\ud800", old.id)
    assert world.tasks.pending() == [old]
    new = world.tasks.count_down("s", 120, "tea", old.id)
    assert world.tasks.pending() == [new] == world.tasks.newest("s")


def test_what_rang_stays_known_for_a_while(world: World) -> None:
    for n in range(110):
        world.tasks.count_down("s", 1, f"{n}")
        world.clock.advance(2)
        world.fire()
    assert len(world.told) == 110 and not world.tasks.pending() and not world.tasks.rows()
    known = world.tasks.newest("s")
    assert [each.label for each in known[:2]] == ["109", "108"] and len(known) <= 102
    assert not world.tasks.cancel([known[0].id])


def test_a_file_of_format_1_opens(world: World, tmp_path: Path) -> None:
    path = tmp_path / "old" / "tasks.sqlite"
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.executescript(Path(__file__).with_name("format-1.sql").read_text())
        values = ("ab", "0 7 * * *", ZURICH, "Stretch", "s", 0, "once", "", 0, 1, "", "dead", 2**50)
        link.execute(f"INSERT INTO tasks VALUES ({', '.join('?' * len(values))})", values)
        link.commit()
    world.tasks.close()
    world.path = path
    world.open()
    world.tasks.take_over(tmp_path / "none")
    [task] = world.tasks.every()
    assert (task.kind, task.line, task.text, task.ask) == ("task", "0 7 * * *", "Stretch", False)
    world.tasks.count_down("s", 5, "")
    world.fire()
    assert list(world.told.values()) == ["Stretch"]


@pytest.mark.parametrize(("code", "where"), [("unknown_session", "deliver"), ("no_tool", "wake")])
def test_a_task_whose_session_or_tool_is_gone_rests_and_says_why(
    world: World, capsys: pytest.CaptureFixture[str], code: str, where: str
) -> None:
    task = world.tasks.add("@every 1s", "x", "s", ZURICH, wake={"tool": "look"})
    world.news = "new"

    async def gone(*args: Any) -> Any:
        raise ExoError("look at look", "it is gone", code=code)

    setattr(world.tasks, f"_{where}", gone)
    for _ in range(5):
        world.clock.advance(2)
        world.fire()
    assert capsys.readouterr().err.count("it is gone") == 1
    [row] = world.tasks.rows()
    assert (row["id"], row["slot"]) == (task.id, None) and "it is gone" in row["rests"]
    world.tasks.close()
    world.open()
    assert world.tasks.rows() == [row], "also after a start"
    assert world.tasks.remove(task.id).id == task.id


def test_a_zone_that_this_machine_knows_no_longer_holds_up_no_other_task(world: World) -> None:
    lost = [world.tasks.add(line, "lost", "s", ZURICH) for line in ("0 7 * * *", "@every 30m")]
    world.tasks.add("30 7 * * *", "Stretch", "s", ZURICH)
    world.tasks.close()
    link = sqlite3.connect(world.path)
    link.execute("UPDATE tasks SET zone = 'Europe/Atlantis' WHERE text = 'lost'")
    link.commit()
    link.close()
    world.open()
    world.at("2027-03-01T07:30")
    world.fire()
    assert list(world.told.values()) == ["Stretch"]
    rests = {row["id"]: row["rests"] for row in world.tasks.rows()}
    assert all("Europe/Atlantis" in rests[task.id] for task in lost)


def test_ids_that_begin_alike_are_named(world: World) -> None:
    ids = [world.tasks.add("@every 1h", f"Number {at}", "s", ZURICH).id for at in range(40)]
    first = next(id_[0] for id_ in ids if sum(each[0] == id_[0] for each in ids) > 1)
    with pytest.raises(ExoError, match="several begin so") as told:
        world.tasks.remove(first)
    named = [id_ for id_ in ids if id_ in str(told.value)]
    assert len(named) > 1 and all(id_.startswith(first) for id_ in named)
    assert len(world.tasks.every()) == 40


def test_what_cannot_be_looked_at_or_told_is_refused_when_it_is_added(exo: Home) -> None:
    """In a running exod: a session that is not there, a condition that is no tool, or lacks its arguments."""
    client = Client(exo.exod_socket, 60.0)

    def add(**more: Any) -> str:
        given = {"action": "add", "line": "@every 1h", "text": "x"} | more
        try:
            client.call("command.run", name="task", args=given)
        except ProtocolError as error:
            return str(error)
        return ""

    assert "there is none; create one" in add(session="nowhere")
    assert "no tool of that name" in add(wake_if={"tool": "wordcounter"})
    assert "argument 'path' is missing" in add(wake_if={"tool": "read_file"})
    assert "wake_if is {tool, args}" in add(wake_if={"tool": 5})
    said = add(line="every day at 8")
    assert all(word in said for word in ('"0 8 * * *"', "@daily", "@every 30m", "@at 20"))
    assert client.call("command.run", name="task", args={"action": "list"})["result"]["tasks"] == []
    assert add(wake_if={"tool": "time", "args": {}}) == ""
    rows = client.call("command.run", name="task", args={"action": "list"})["result"]["tasks"]
    assert [row["wake_if"]["tool"] for row in rows] == ["time"]
    client.call("command.run", name="task", args={"action": "remove", "id": rows[0]["id"]})


def test_a_file_of_format_2_opens(world: World) -> None:
    task = world.tasks.add("0 7 * * *", "Stretch", "s", ZURICH)
    world.tasks.close()
    with contextlib.closing(sqlite3.connect(world.path)) as link:
        link.executescript("ALTER TABLE tasks DROP COLUMN rests; PRAGMA user_version = 2")
    world.open()
    assert world.tasks.every() == [task]
    world.at("2027-03-01T07:00")
    world.fire()
    assert list(world.told.values()) == ["Stretch"]
