"""Deaths of the sandbox's processes at any point, and what is left after many calls: no process, no zombie, no file
descriptor. Real processes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError
from exo.core.sandbox import host, worker
from exo.core.sandbox.host import ENDED, Limits, Result, Sandbox
from exo.core.toolbox.workers import standing

GOOD = "import exo\ndef run(n):\n return exo.twice(n=n)\n"
SPIN = "while 1: pass"
FOREVER = Limits(fuel=10**15, seconds=30.0)


async def twice(n: int) -> int:
    await asyncio.sleep(0.002)
    return 2 * n


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@contextlib.asynccontextmanager
async def box(folder: Path) -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(folder, SystemClock())
    try:
        yield sandbox
    finally:
        await sandbox.close()


def children(pid: int) -> list[int]:
    """Those that are no zombies, with theirs."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *children(child)]
    return [each for each in found if state(each) not in ("", "Z")]


def state(pid: int) -> str:
    """As ps shows it; "" for none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def zombies(pid: int) -> int:
    rows = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return sum(state(int(each)) == "Z" for row in rows for each in row)


def handles() -> int:
    gc.collect()  # what tests before left open is closed by then, not in the middle
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(true: object, what: str) -> None:
    assert callable(true)
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


def test_two_hundred_calls_leave_no_process_and_no_file_behind(cache: Path) -> None:
    async def work() -> None:
        async with box(cache) as sandbox:
            assert (await sandbox.run(GOOD, "run", {"n": 1}, {"twice": twice})).value == 2
            (server, _), before = children(os.getpid()), handles()
            for n in range(50):
                runs = [sandbox.run(GOOD, "run", {"n": n}, {"twice": twice}) for _ in range(2)]
                late = sandbox.run(SPIN, limits=Limits(fuel=10**15, seconds=0.05))
                crash = sandbox.run("import uctypes\nuctypes.bytes_at(2 ** 31 - 16, 64)")
                *good, slow, broken = await asyncio.gather(*runs, late, crash)
                assert [each.value for each in good] == [2 * n, 2 * n]
                assert "more than" in slow.error and "broke" in broken.error
            await until(lambda: zombies(server) == 0, "a worker is not reaped")
            assert children(os.getpid())[0] == server
            assert (
                len(children(server)) <= 4 and handles() <= before + 6
            )  # the free ones, with a socket each
        assert children(os.getpid()) == []

    before = handles()
    asyncio.run(work())
    assert handles() == before


@pytest.fixture(autouse=True)
def no_end_is_lost(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whoever waits for a process is told of its end: asyncio complains where somebody else took it."""
    yield
    assert "child process" not in caplog.text


@pytest.mark.parametrize("seed", range(4))
def test_a_death_at_any_moment_costs_one_call_at_most(cache: Path, seed: int) -> None:
    """Server and workers are killed at random while calls start, fork, run and ask: every call ends in a result or
    an error in words, and what comes after is as good as ever."""
    chance = random.Random(seed)
    killed: list[int] = []  # with their workers, which end after them

    async def killer() -> None:
        while True:
            await asyncio.sleep(chance.choice((0.0, 0.003, 0.02, 0.1, 0.3)))
            if found := children(os.getpid()):
                pid = chance.choice(found)
                killed.extend([pid, *children(pid)])
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def work() -> None:
        async with box(cache) as sandbox:
            ends: list[Result | BaseException] = []
            kills = asyncio.create_task(killer())
            for n in range(12):
                calls = [sandbox.run(GOOD, "run", {"n": n}, {"twice": twice}) for _ in range(3)]
                ends += await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 120)
            kills.cancel()
            for pid in killed:  # a call may still begin on one that is about to go
                await until(lambda pid=pid: state(pid) in ("", "Z"), "what was killed is there")
            for end in ends:
                if isinstance(end, Result):
                    assert end.ok or end.error == ENDED, end  # no guest is to blame
                else:
                    assert isinstance(end, ExoError), end
            after = await sandbox.run(GOOD, "run", {"n": 21}, {"twice": twice})
            assert after.value == 42, after
        assert children(os.getpid()) == []

    before = handles()
    asyncio.run(work())
    assert handles() == before


@pytest.mark.parametrize(
    ("by", "told"),
    [
        (signal.SIGKILL, ENDED),  # the kernel without memory, a person
        (signal.SIGTERM, ENDED),
        (signal.SIGHUP, ENDED),
        (signal.SIGSEGV, "the worker died of it"),
        (signal.SIGABRT, "the worker died of it"),
        (signal.SIGBUS, "the worker died of it"),
    ],
)
def test_only_a_worker_that_breaks_is_the_fault_of_its_guest(
    cache: Path, by: signal.Signals, told: str
) -> None:
    """In the middle of its run; while it waits for a host function it runs nothing that could break it."""
    if signal.getsignal(by) is signal.SIG_IGN:
        pytest.skip(f"{by.name} is ignored where the tests were started (nohup)")

    async def work() -> None:
        async with box(cache) as sandbox:
            await sandbox.run("1")

            async def hit() -> None:
                workers = children(children(os.getpid())[0])  # the free ones too
                for pid in workers:
                    os.kill(pid, by)
                for pid in workers:
                    await until(lambda pid=pid: state(pid) in ("", "Z"), "it lives on")
                await asyncio.sleep(0.2)

            ask = "import exo\nexo.hit()\n"
            assert (await sandbox.run(ask, can={"hit": hit}, limits=FOREVER)).error == ENDED
            assert (await sandbox.run("1")).ok
            spins = asyncio.create_task(sandbox.run(SPIN, limits=FOREVER))
            await asyncio.sleep(0.3)
            await hit()
            assert (await spins).error == told
            assert (await sandbox.run(GOOD, "run", {"n": 2}, {"twice": twice})).value == 4

    asyncio.run(work())


def test_what_a_worker_breaks_with_is_no_line_of_its_guest(tmp_path: Path) -> None:
    """A worker whose Python fails tells so; one of which half a line came was killed."""
    program = Path(worker.__file__).read_text()
    head = "        put(replies, machine.run(json.loads(line), ask))"
    assert head in program

    def broken(how: str) -> list[Result]:
        (tmp_path / "worker.py").write_text(program.replace(head, f"        {how}"))

        async def work() -> list[Result]:
            async with box(tmp_path) as sandbox:
                return [await sandbox.run("1") for _ in range(2)]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host, "__file__", str(tmp_path / "host.py"))
            return asyncio.run(work())

    half = """replies.write('{"op": "do'); replies.flush(); os.kill(os.getpid(), 9)"""
    assert [each.error for each in broken("raise MemoryError")] == ["the worker died of it"] * 2
    assert [each.error for each in broken("put(replies, [1])")] == ["the worker died of it"] * 2
    assert [each.error for each in broken(half)] == [ENDED] * 2


def test_a_server_that_is_killed_as_it_starts_is_started_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one that lacks its packages asks for them."""

    async def work(kills: int, folder: Path) -> Result:
        async with box(folder) as sandbox:
            asked = asyncio.create_task(sandbox.run(GOOD, "run", {"n": 3}, {"twice": twice}))
            for _ in range(kills):
                await until(lambda: children(os.getpid()), "it does not start")
                before = children(os.getpid())[0]
                os.kill(before, signal.SIGKILL)
                await until(
                    lambda before=before: before not in children(os.getpid()), "it does not end"
                )
            return await asked

    assert asyncio.run(work(host.TRIES - 1, tmp_path)).value == 6  # the machine is to be compiled
    assert asyncio.run(work(host.TRIES - 1, cache)).value == 6
    with pytest.raises(ExoError, match="start the sandbox: its processes die") as told:
        asyncio.run(work(host.TRIES, cache))
    assert "install" not in str(told.value)
    monkeypatch.setattr(host.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ExoError, match=r"wasmtime.*install exo-companion\[sandbox\]") as told:
        asyncio.run(work(0, cache))
    assert told.value.code == "no_sandbox"


def test_a_worker_that_died_while_it_was_free_costs_nothing(cache: Path) -> None:
    async def work() -> list[Result]:
        async with box(cache) as sandbox:
            runs = [sandbox.run(GOOD, "run", {"n": 1}, {"twice": twice}) for _ in range(4)]
            await asyncio.gather(*runs)
            server, *workers = children(os.getpid())
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            first = await sandbox.run(GOOD, "run", {"n": 2}, {"twice": twice})
            os.kill(server, signal.SIGKILL)
            return [first, await sandbox.run(GOOD, "run", {"n": 3}, {"twice": twice})]

    first, second = asyncio.run(work())
    assert first.value == 4
    assert (
        second.value == 6 or second.error == ENDED
    )  # it may have begun when its server was not yet gone


def test_all_end_with_whoever_started_them(cache: Path) -> None:
    """Killed in the middle of a call, it leaves neither server nor worker."""
    text = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from exo.core.base.clock import SystemClock\nfrom exo.core.sandbox.host import Limits, Sandbox\n"
        "box = Sandbox(Path(sys.argv[1]), SystemClock())\n"
        "asyncio.run(box.run('while 1: pass', limits=Limits(fuel=10**15, seconds=60)))\n"
    )
    process = subprocess.Popen([sys.executable, "-P", "-c", text, str(cache)])
    try:
        end = time.monotonic() + 60
        while len(found := children(process.pid)) < 2:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    end = time.monotonic() + 20
    while any(state(pid) not in ("", "Z") for pid in found):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_worker_can_open_nothing_and_write_nothing(cache: Path) -> None:
    async def work() -> dict[str, str]:
        async with box(cache) as sandbox:
            await sandbox.run("1")
            pid = children(os.getpid())[-1]
            rows = Path(f"/proc/{pid}/limits").read_text().splitlines()
            return {row[:26].strip(): row[26:47].strip() for row in rows}

    held = asyncio.run(work())
    limits = [held[name] for name in ("Max open files", "Max file size", "Max core file size")]
    assert limits == ["0", "0", "0"]
    assert held["Max data size"] == str(worker.MOST["DATA"])


def test_the_clock_stands_while_a_person_is_asked(cache: Path) -> None:
    """A guest that has one second, and asks somebody who takes longer, has what is left of it afterwards."""

    async def asks() -> str:
        with standing():
            await asyncio.sleep(1.5)
        return "yes"

    async def slow() -> str:
        await asyncio.sleep(1.5)
        return "late"

    source = "import exo\ndef run():\n return exo.asks()\n"
    after = "import exo\nexo.asks()\nwhile 1: pass\n"

    async def work() -> list[Result]:
        async with box(cache) as sandbox:
            await sandbox.run("1")
            short = Limits(fuel=10**15, seconds=1.0)
            return [
                await sandbox.run(source, "run", {}, {"asks": asks}, short),
                await sandbox.run(source, "run", {}, {"asks": slow}, short),
                await sandbox.run(after, "", {}, {"asks": asks}, short),
            ]

    asked, late, spins = asyncio.run(work())
    assert asked.value == "yes"
    assert "more than 1 s" in late.error and "more than 1 s" in spins.error


def test_whoever_is_asked_holds_up_nobody_else(cache: Path) -> None:
    async def work() -> Result:
        async with box(cache) as sandbox:
            answered = asyncio.Event()

            async def asks() -> str:
                with standing():
                    await answered.wait()
                return "yes"

            held = sandbox.run(
                "import exo\ndef run():\n return exo.asks()\n", "run", {}, {"asks": asks}
            )
            waits = asyncio.create_task(held)
            other = await sandbox.run(GOOD, "run", {"n": 4}, {"twice": twice})
            assert not waits.done()
            answered.set()
            assert (await waits).value == "yes"
            return other

    assert asyncio.run(work()).value == 8


def test_workers_and_server_rest_by_themselves(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the program whose rest is a second: both are gone after it, and the next call starts them."""
    program = Path(worker.__file__).read_text()
    assert f"REST = {worker.REST} " in program
    copy = cache / "quick"
    copy.mkdir()
    (copy / "worker.py").write_text(program.replace(f"REST = {worker.REST} ", "REST = 1 "))
    monkeypatch.setattr(host, "__file__", str(copy / "host.py"))

    async def work() -> Result:
        async with box(cache) as sandbox:
            await sandbox.run(GOOD, "run", {"n": 1}, {"twice": twice})
            assert len(children(os.getpid())) == 2
            await until(lambda: not children(os.getpid()), "they do not rest")
            return await sandbox.run(GOOD, "run", {"n": 5}, {"twice": twice})

    assert asyncio.run(work()).value == 10
