"""Calls of agent tools made again from their record: the same code gives the same, another is told apart, nothing is
asked outside, whatever stands in the record. The real sandbox; the record of tools is a real one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.protocol.schema import Call, ToolResult
from exo.core.retrieve.forget import Needles, _erase_files
from exo.core.sandbox.host import Sandbox
from exo.core.substrate.artifacts import Artifacts
from exo.core.toolbox.registry import Toolbox
from exo.tools.agent import replay as program
from exo.tools.agent.package import Package, made
from exo.tools.agent.replay import KEPT, LONGEST, Asked, Recorded, Records, Replayed, replay
from exo.tools.agent.shed import Shed
from exo.tools.agent.workspace import Workspace
from exo.tools.guest import library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
COUNT = """
import exo, time
def run(text):
    if "boom" in text:
        raise ValueError("boom is not counted")
    seen = int(exo.space_read(name="seen")) if "seen" in exo.space_list() else 0
    seen += len(text.split())
    exo.space_write(name="seen", text=str(seen))
    print("at", time.time())
    return {"total": seen, "web": exo.http(method="GET", url="https://x.y/" + text)}
"""
HOST = {"space_list": [], "space_read": "0", "space_write": None, "http": "page"}
TESTS = [{"args": {"text": "a b"}, "expect": {"total": 2, "web": "page"}, "host": HOST}]


def package(source: str = COUNT, **more: Any) -> Package:
    given = {"parameters": TEXT, "can": ["space", "http"], "tests": TESTS} | more
    return made("count_words", "Count words over all calls.", source, **given)


class World:
    """A shed with a real sandbox, space and record; `asked` is what went outside."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.home = Home(folder / "home").make()
        clock = SystemClock()
        self.ledger = Ledger(self.home, clock)
        self.artifacts = Artifacts(self.ledger)
        self.space = Workspace(folder / "space", clock)
        self.asked: list[Call] = []
        self.page = "page"
        self.secrets: dict[str, str] = {}
        core: Any = SimpleNamespace(
            tools=Toolbox(),
            memory=SimpleNamespace(run=self._run),
            as_of=lambda session: 0,
            act=self._act,
            clock=clock,
        )
        self.box = Sandbox(cache, clock, library())
        self.records = Records(self.home.state / "replay", self._hide)
        self.shed = Shed(core, self.box, self.space, core.as_of, self.records)

    def _hide(self, text: str) -> str:
        for name, value in self.secrets.items():
            text = text.replace(value, f"[secret {name}]")
        return text

    async def _run(self, work: Callable[[Any], Any]) -> Any:
        return work(SimpleNamespace(artifacts=self.artifacts))

    async def _act(self, session: str, call: Call, **wrote: str) -> ToolResult:
        self.asked.append(call)
        return ToolResult(call.id, True, self.page)

    def verdicts(self, done: list[Replayed]) -> list[str]:
        return [row.verdict for row in done]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@contextlib.asynccontextmanager
async def world(folder: Path, cache: Path) -> AsyncIterator[World]:
    made = World(folder, cache)
    try:
        yield made
    finally:
        await made.box.close()
        made.ledger.close()


def test_calls_are_made_again_and_nothing_is_asked_outside(tmp_path: Path, cache: Path) -> None:
    async def work() -> None:
        async with world(tmp_path, cache) as exo:
            await exo.shed.add(package(), "model")
            for text in ("one two", "boom", "three"):
                await exo.shed.run("count_words", "s", {"text": text}, "turn")
            exo.page = "another page by now"
            before = (len(exo.asked), exo.space.snapshots(), exo.ledger.position())
            done, odd = await exo.shed.replay("count_words")
            assert exo.verdicts(done) == ["same"] * 3 and odd == 0
            assert (len(exo.asked), exo.space.snapshots(), exo.ledger.position()) == before
            rows, _ = exo.records.read("count_words")
            assert [row.ok for row in rows] == [True, False, True]
            assert {row.code for row in rows} == {package().code} and rows[0].turn == "turn"
            assert exo.verdicts((await exo.shed.replay("count_words", 1))[0]) == ["same"]

    asyncio.run(work())


def test_a_new_version_is_told_apart_and_taken_in(tmp_path: Path, cache: Path) -> None:
    async def work() -> None:
        async with world(tmp_path, cache) as exo:
            await exo.shed.add(package(), "model")
            for text in ("one two", "boom"):
                await exo.shed.run("count_words", "s", {"text": text})
            told: dict[str, list[str]] = {}
            versions = {
                "same": COUNT + "# a comment\n",
                "repaired": COUNT.replace("raise ValueError", "return str  # "),
                "writes": COUNT.replace("text=str(seen)", "text=str(-seen)"),
                "silent": COUNT.replace("exo.space_write(", "dict("),
                "asks": COUNT.replace('"https://x.y/"', '"https://elsewhere/"'),
                "hidden": COUNT.replace(
                    "    print",
                    "    try: exo.space_read(name='diary')\n    except OSError: pass\n    print",
                ),
            }
            for name, source in versions.items():
                if name == "repaired":
                    source = source.replace('return str  # ("boom is not counted")', "return 0")
                held = await exo.shed.add(package(source), "model")
                told[name] = held.told.splitlines()
                history = exo.artifacts.history("tool/count_words")
                assert history[-1].why == held.told[:300] and held.state == "active"
            assert told["same"] == ["replayed on its last calls: 2 same"]
            assert "1 different" in told["repaired"][0] and "now 0" in told["repaired"][1]
            assert "error: ValueError: boom" in told["repaired"][1]
            assert "unrecorded" in told["writes"][0] and "space_write" in told["writes"][1]
            assert "it does not ask space_write" in told["silent"][1]
            assert "it asks http" in told["asks"][1] and "elsewhere" in told["asks"][1]
            assert "it asks space_read" in told["hidden"][1]
            assert len(exo.asked) == 1
            await exo.shed.remove("count_words", "person")
            assert exo.records.read("count_words") == ([], 0)

    asyncio.run(work())


def test_a_call_whose_parameters_are_gone_is_different(tmp_path: Path, cache: Path) -> None:
    async def work() -> None:
        async with world(tmp_path, cache) as exo:
            await exo.shed.add(package(), "model")
            await exo.shed.run("count_words", "s", {"text": "one"})
            other = made(
                "count_words",
                "Count words over all calls.",
                "def run():\n return 1\n",
                tests=[{"args": {}, "expect": 1}],
            )
            held = await exo.shed.add(other, "model")
            assert "1 different" in held.told and "no argument 'text'" in held.told

    asyncio.run(work())


def test_a_record_is_bounded_and_says_no_secret(tmp_path: Path, cache: Path) -> None:
    async def work() -> None:
        async with world(tmp_path, cache) as exo:
            exo.secrets["token"] = "s3cret-value"
            await exo.shed.add(package(), "model")
            exo.page = 'it echoes "s3cret-value"'
            await exo.shed.run("count_words", "s", {"text": "s3cret-value"})
            exo.page = "x" * (LONGEST + 1)
            await exo.shed.run("count_words", "s", {"text": "long"})
            (path,) = (exo.home.state / "replay").iterdir()
            assert path.stat().st_mode & 0o777 == 0o600
            text = path.read_text()
            assert "s3cret" not in text and "[secret token]" in text and "long" not in text
            exo.page = "a page of the day"
            await exo.shed.run("count_words", "s", {"text": "a page of the day"})
            assert "of the day" in path.read_text()
            exo.secrets["day"] = "page of the day"  # it is one from now on
            rows, odd = exo.records.read("count_words")
            assert odd == 0 and rows[-1].args == {"text": "a [secret day]"}
            assert "of the day" not in str(rows)
            del exo.secrets["day"]
            exo.page = "y" * 30_000
            for n in range(3 * KEPT):
                await exo.shed.run("count_words", "s", {"text": f"number {n}"})
                assert path.stat().st_size < program.FULL + LONGEST
            rows, odd = exo.records.read("count_words")
            assert 0 < len(rows) <= KEPT and odd == 0
            assert rows[-1].args == {"text": f"number {3 * KEPT - 1}"}

    asyncio.run(work())


def row(**more: Any) -> Recorded:
    made = Recorded(1, "t1", 1, "c", {"text": "x"}, (), True, 1, "", "")
    return replace(made, **more)


def test_what_is_forgotten_goes_out_of_the_records(tmp_path: Path) -> None:
    home = Home(tmp_path).make()
    records = Records(home.state / "replay")
    said = 'my aunt "Zenobia"\nlives in Ghent'
    stays = row(args={"text": "harmless"})
    records.keep("tool", row(args={"text": said}))
    records.keep("tool", row(value={"deep": [{"Zenobia": 1}]}))
    records.keep("tool", row(asked=(Asked("recall", {"query": "q"}, True, f"1. {said}"),)))
    records.keep("tool", row(out="ghent"))
    records.keep("tool", row(turn="gone"))
    records.keep("tool", row(value={"args": "no json of Zenobia"}))
    odd_one = row(value={"args": "no json"})
    records.keep("tool", odd_one)
    records.keep("tool", stays)
    with (home.state / "replay" / "tool.jsonl").open("a") as file:
        file.write('\n{"text": "torn')
    needles = Needles((said,), frozenset({"zenobia", "ghent"}), ("gone",))
    _erase_files(home, needles)
    rows, odd = records.read("tool")
    assert (rows, odd) == ([odd_one, stays], 0)
    records.keep("tool", stays)  # and it is still a record
    assert records.read("tool")[0] == [odd_one, stays, stays]


def test_a_torn_line_costs_itself_alone(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.keep("tool", row())
    path = tmp_path / "tool.jsonl"
    path.write_bytes(path.read_bytes() + b'\n{"ts": 5, "tu\xc3')
    records.keep("tool", row(ts=2))
    rows, odd = records.read("tool")
    assert ([each.ts for each in rows], odd) == ([1, 2], 1)


HOSTILE_LINES = [
    b"", b"null", b"[]", b"5", b"\xff\xfe", b"{" * 5000, b"[" * 100_000, b'{"ts": 1}', b"1" * 70_000,
    *(
        json.dumps(asdict(row()) | change).encode()
        for change in (
            {"ts": -1}, {"ts": 2**60}, {"ts": "1"}, {"ts": True}, {"args": []}, {"args": None}, {"asked": {}},
            {"asked": [5]}, {"asked": [{"name": 5, "args": {}, "ok": True, "answer": 1}]},
            {"asked": [{"name": "http", "args": [], "ok": True, "answer": 1}]},
            {"asked": [{"name": "http", "args": {}, "ok": "yes", "answer": 1}]},
            {"asked": [{"name": "http", "args": {}, "ok": False, "answer": {}}]},
            {"ok": 1}, {"out": None}, {"error": []}, {"more": 1}, {"value": float("nan")}, {"version": "v"},
        )
    ),
]  # fmt: skip


def test_a_hostile_record_is_passed_over(tmp_path: Path) -> None:
    records = Records(tmp_path)
    path = tmp_path / "tool.jsonl"
    path.write_bytes(b"\n".join(HOSTILE_LINES))
    rows, odd = records.read("tool")
    assert rows == [] and odd == len([each for each in HOSTILE_LINES if each])
    records.keep("tool", row())
    assert records.read("tool")[0] == [row()]
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert records.read("tool") == ([], 0)
    with pytest.raises(OSError):
        records.keep("tool", row())
    path.unlink()
    os.mkfifo(path)
    assert records.read("tool") == ([], 0)


NAMES = st.sampled_from(
    [
        "http",
        "recall",
        "space_read",
        "space_write",
        "space_list",
        "task",
        "value",
        "rest",
        "__class__",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=20),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3)
    ),
    max_leaves=6,
)
ARGS = st.dictionaries(
    st.sampled_from(["url", "method", "name", "text", "query", "self", "é"]), JSON, max_size=3
)
ASKS = st.builds(Asked, NAMES, ARGS, st.just(True), JSON) | st.builds(
    Asked, NAMES, ARGS, st.just(False), st.text(max_size=20)
)
EVERY = """
import exo, json
def run(text):
    asks = json.loads(text)
    got = []
    for name, args in asks:
        try:
            got.append(getattr(exo, name)(**args) if hasattr(exo, name) else 0)
        except (OSError, TypeError) as error:
            got.append(str(type(error)))
    return len(got)
"""


def test_no_replay_asks_anything_outside(tmp_path: Path, cache: Path) -> None:
    """Property: whatever the record says was answered, and whatever the tool asks, a replay ends in a verdict, and
    what was asked and not recorded is told."""
    tool = package(
        EVERY, can=["space", "http", "recall"], tests=[{"args": {"text": "[]"}, "expect": 0}]
    )
    loop = asyncio.new_event_loop()
    box = Sandbox(cache, SystemClock(), library())

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(ASKS, max_size=5), st.lists(st.tuples(NAMES, ARGS), max_size=4))
    def holds(recorded: list[Asked], asks: list[tuple[str, dict[str, Any]]]) -> None:
        wanted = [(each.name, each.args) for each in recorded] + asks
        made = row(args={"text": json.dumps(wanted)}, asked=tuple(recorded), value=len(wanted))
        (done,) = loop.run_until_complete(replay(box, tool, [made]))
        real = ("http", "recall", "space_read", "space_write", "space_list")
        extra = [name for name, _ in asks if name in real]
        # an extra ask may be one that was recorded twice: then it is answered in its place
        assert done.verdict == ("unrecorded" if extra else "same"), (done, wanted)

    try:
        before = sorted(tmp_path.rglob("*"))
        holds()
        assert sorted(tmp_path.rglob("*")) == before
    finally:
        loop.run_until_complete(box.close())
        loop.close()


def test_a_replay_ends_though_every_call_takes_for_ever(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "BUDGET", 1.0)
    spins = package(
        "def run(text):\n while 1: pass\n", can=[], tests=[{"args": {"text": ""}, "expect": 0}]
    )

    async def work() -> list[Replayed]:
        box = Sandbox(cache, SystemClock())
        try:
            return await replay(box, spins, [row()] * KEPT)
        finally:
            await box.close()

    verdicts = [each.verdict for each in asyncio.run(work())]
    assert verdicts[0] == "different" and verdicts[-1] == "not run" and len(verdicts) == KEPT
