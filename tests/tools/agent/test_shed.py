"""The shed by itself: names that are taken, a tool that is changed while it runs, what a package says that no schema
may say. The sandbox is a stand-in that a test holds up; the record is a real one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.protocol.schema import Call, ToolResult
from exo.core.sandbox.host import ENDED, Result
from exo.core.substrate.artifacts import Artifacts
from exo.core.toolbox.registry import HIDDEN, Context, Toolbox, ToolSpec
from exo.tools.agent.package import made
from exo.tools.agent.replay import Records
from exo.tools.agent.shed import STRIKES, Shed
from exo.tools.agent.workspace import FILE, Draft, Workspace
from exo.tools.clock import FakeClock

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


class Box:
    """A sandbox whose calls give `result`, once `gate` is open."""

    def __init__(self) -> None:
        self.result: Callable[[str], Result] = lambda source: Result(True, 1)
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, source: str, *rest: Any, now: int = 0) -> Result:
        await self.gate.wait()
        return self.result(source)


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.ledger = Ledger(Home(folder / "home").make(), self.clock)
        self.artifacts, self.tools, self.box = Artifacts(self.ledger), Toolbox(), Box()
        self.space = Workspace(folder / "space", self.clock)
        self.asked: list[Call] = []
        memory = SimpleNamespace(run=self._run)
        core: Any = SimpleNamespace(
            tools=self.tools,
            memory=memory,
            as_of=lambda session: 0,
            act=self._act,
            clock=self.clock,
        )
        box: Any = self.box
        self.records = Records(folder / "replay")
        self.core, self.shed = core, Shed(core, box, self.space, core.as_of, self.records)

    async def _run(self, work: Callable[[Any], Any]) -> Any:
        await asyncio.sleep(0)
        return work(SimpleNamespace(artifacts=self.artifacts))

    async def _act(self, session: str, call: Call, **wrote: str) -> ToolResult:
        self.asked.append(call)
        return ToolResult(call.id, True, "fine")


def package(name: str = "count_it", body: str = "return 1", **more: Any) -> Any:
    given = {"tests": [{"args": {}, "expect": 1}]} | more
    return made(name, "Count something for a test.", f"def run():\n    {body}\n", **given)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.ledger.close()


def spec(name: str, **more: Any) -> ToolSpec:
    return ToolSpec(name, "Of Exo's own.", NOTHING, lambda context: "own", **more)


@pytest.mark.parametrize("more", [{}, {"available": lambda: "off"}, {"toolset": HIDDEN}])
def test_no_tool_takes_a_name_that_is_there_though_no_model_sees_it(
    world: World, more: dict[str, Any]
) -> None:
    world.tools.register(spec("undo", **more))
    with pytest.raises(ExoError, match="Exo's own"):
        asyncio.run(world.shed.add(package("undo"), "model"))
    assert world.tools._tools["undo"].description == "Of Exo's own."


def test_a_plugin_that_brings_the_name_of_an_agent_tool_keeps_it(world: World) -> None:
    asyncio.run(world.shed.add(package(), "model"))
    tools = Toolbox()
    tools.register(spec("count_it"))
    world.core.tools = tools
    box: Any = world.box
    again = Shed(world.core, box, world.space, world.core.as_of, world.records)
    asyncio.run(again.load())
    assert tools._tools["count_it"].description == "Of Exo's own."
    assert again.get("count_it").state == "quarantined"
    asyncio.run(again.remove("count_it", "person"))
    assert tools._tools["count_it"].description == "Of Exo's own."


@pytest.mark.parametrize("ends", ["well", "badly", "at a limit"])
def test_what_runs_still_changes_nothing_of_what_came_meanwhile(world: World, ends: str) -> None:
    results = {
        "well": Result(True, 1),
        "badly": Result(False, error="ValueError"),
        "at a limit": Result(False, error="fuel for 1 steps is used up"),
    }

    async def work(change: Callable[[], Any]) -> None:
        await world.shed.add(package(), "model")
        world.box.gate = held_up = asyncio.Event()
        running = asyncio.create_task(world.shed.run("count_it", "s", {}))
        await asyncio.sleep(0.05)
        await change()
        world.box.result = lambda source: results[ends]
        held_up.set()
        await running
        world.box.result = lambda source: Result(True, 1)

    async def newer() -> None:
        held = world.shed.get("count_it")
        fresh = package(body="return 1 # newer")
        await world.shed._keep(replace(held, package=fresh, version=2), "person")

    async def gone() -> None:
        await world.shed.remove("count_it", "person")

    asyncio.run(work(newer))
    held = world.shed.get("count_it")
    assert "newer" in held.package.source and held.state == "active"
    asyncio.run(world.shed.remove("count_it", "person"))
    asyncio.run(work(gone))
    assert world.shed.list() == [] and world.artifacts.get("tool/count_it") is None
    assert not world.tools.specs()


def test_two_that_are_added_at_once_are_two_versions(world: World) -> None:
    async def both() -> None:
        one, two = (package(body=f"return 1 # {n}") for n in range(2))
        await asyncio.gather(world.shed.add(one, "model"), world.shed.add(two, "model"))
        await asyncio.gather(
            world.shed.remove("count_it", "a"),
            world.shed.remove("count_it", "b"),
            return_exceptions=True,
        )

    asyncio.run(both())
    assert len(world.artifacts.history("tool/count_it")) == 3
    assert world.shed.list() == [] and not world.tools.specs()
    texts = [each.text or "" for each in world.artifacts.history("tool/count_it")]
    assert ['"version": 1' in texts[0], '"version": 2' in texts[1]] == [True, True]


def test_a_tool_that_is_too_large_to_be_noted_is_offered_no_longer(world: World) -> None:
    """Its error and its package are as long as they can be: quarantine holds all the same."""
    held = asyncio.run(world.shed.add(package(), "model"))
    world.box.result = lambda source: Result(False, error="fuel " + "x\x1b[2J" * 60_000)
    asyncio.run(world.shed.run("count_it", "s", {}))
    assert world.shed.get("count_it").state == "quarantined" and not world.tools.specs()
    why = world.shed.get("count_it").why
    assert len(why) <= 500 and why.isprintable(), held
    text = world.artifacts.get("tool/count_it")
    assert text is not None and "quarantined" in (text.text or "")


def test_a_person_who_thinks_is_not_the_tools_fault(world: World) -> None:
    """A host function that waits for an answer when time is up costs the call, not the tool."""
    web = package(can=["http"], tests=[{"args": {}, "expect": 1}])
    asyncio.run(world.shed.add(web, "model"))

    async def waits(source: str, entry: str, args: Any, can: Any, now: int = 0) -> Result:
        try:
            await asyncio.wait_for(can["http"](method="GET", url="https://x.y"), 0.05)
        except TimeoutError:
            return Result(False, error="more than 10 s")
        return Result(True, 1)

    async def never(session: str, call: Call, **wrote: str) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    world.box.run = waits  # type: ignore[assignment]
    world.core.act = never
    for _ in range(4):
        output = asyncio.run(world.shed.run("count_it", "s", {}))
        assert not output.ok and world.shed.get("count_it").state == "active"


BAD: list[dict[str, Any]] = [
    {"parameters": {"type": "object", "properties": {"x": {"type": "integer", "minimum": "a"}}}},
    {"parameters": {"type": "object", "properties": {"x": {"type": "integer", "maximum": [1]}}}},
    {
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "number", "default": float("nan")}},
        }
    },
    {
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "number", "minimum": float("inf")}},
        }
    },
    {
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "string", "enum": ["a\x1b[2J"]}},
        }
    },
    {"parameters": {"type": "object", "properties": {"x": {"type": "string", "enum": ["\ud800"]}}}},
    {
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "string", "enum": ["y" * 2000]}},
        }
    },
    {"parameters": {"type": "object", "properties": {"x": {"type": "string", "enum": [{}]}}}},
    {
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "string", "default": "z" * 999}},
        }
    },
    {"parameters": {"type": "object", "properties": {"x": {"type": "string", "description": 7}}}},
    {"parameters": {"type": "object", "properties": {}, "required": [[]]}},
    {"parameters": {"type": "object", "properties": {}, "required": 3}},
    {"parameters": []},
    {"can": [{}]},
    {"can": "no json"},
    {"can": 5},
    {"tests": [{"args": [], "expect": 1}]},
    {"tests": [{"args": {}, "expect": 1, "host": [1]}]},
    {"tests": [{"args": {}, "expect": 1}] * 100},
    {"tests": [{"args": {}, "expect": "y" * 200_000}]},
    {"tests": [{"args": {}, "expect": "\ud800"}]},
    {"tests": "[" * 100_000},
    {"source": 5},
]


@pytest.mark.parametrize("more", BAD, ids=range(len(BAD)))
def test_what_no_package_may_say_is_refused_in_words(more: dict[str, Any]) -> None:
    rows = (more.get("parameters") or {}) if isinstance(more.get("parameters"), dict) else {}
    taken = ", ".join(rows.get("properties", {}))
    given: dict[str, Any] = {
        "name": "count_it",
        "description": "Count something for a test.",
        "source": f"def run({taken}):\n    return 1\n",
        "tests": [{"args": {"x": 1} if taken else {}, "expect": 1}],
    }
    with pytest.raises(ExoError, match="count_it"):
        made(**(given | more))


def test_what_a_call_writes_before_it_ends_is_bounded(world: World) -> None:
    draft = Draft(world.space, "main")

    async def flood() -> None:
        for n in range(3_000):
            await draft.space_write(f"f{n}", str(n) * (FILE // 8))

    with pytest.raises(ExoError):
        asyncio.run(draft.space_write("one", "x" * (FILE + 1)))
    with pytest.raises(ExoError, match="write"):
        asyncio.run(draft.space_write("half", "\ud800"))
    with pytest.raises(ExoError):
        asyncio.run(flood())
    assert sum(len(text or "") for text in draft.changes.values()) <= 8_000_000


def test_calls_that_end_at_once_lose_nothing_of_each_other(world: World) -> None:
    async def many() -> None:
        await asyncio.gather(
            *(
                asyncio.to_thread(world.space.commit, {f"f{n}": str(n)}, f"call {n}")
                for n in range(24)
            )
        )

    asyncio.run(many())
    assert len(world.space.files()) == 24
    assert len(world.space.snapshots()) == 24


def test_what_a_tool_gives_can_always_be_kept(world: World) -> None:
    asyncio.run(world.shed.add(package(), "model"))
    world.box.result = lambda source: Result(True, "half \ud800 a character")
    output = asyncio.run(world.shed.run("count_it", "s", {}))
    output.text.encode()


def test_arguments_are_checked_whatever_a_schema_says(world: World) -> None:
    rule = {"type": "object", "properties": {"x": {"type": "integer", "minimum": "a"}}}
    world.tools.register(ToolSpec("odd", "Odd.", rule, lambda context, x: "ok"))
    assert "check" in world.tools.fault(Call("1", "odd", {"x": 1}), Context("s", Path()))


def test_a_call_reads_what_the_one_before_it_wrote(world: World) -> None:
    asyncio.run(world.shed.add(package(can=["space"]), "model"))
    one = asyncio.Lock()

    async def counts(source: str, entry: str, args: Any, can: Any, now: int = 0) -> Result:
        async with one:  # as the sandbox does
            seen = int(await can["space_read"](name="seen")) if await can["space_list"]() else 0
            await can["space_write"](name="seen", text=str(seen + 1))
            return Result(True, seen + 1)

    world.box.run = counts  # type: ignore[assignment]

    async def many() -> None:
        await asyncio.gather(*(world.shed.run("count_it", "s", {}) for _ in range(20)))

    asyncio.run(many())
    assert world.space.read("seen") == "20"


def test_a_turn_that_ended_meanwhile_takes_in_no_tool(world: World) -> None:
    async def drain() -> None: ...

    world.core.memory.drain = drain
    asyncio.run(world.shed.add(package(), "model", "one", "c" * 64))
    held = world.artifacts.get("tool/count_it")
    assert held and (held.by, held.code) == ("model", "c" * 64)
    world.artifacts._over = lambda turn: turn == "one"
    for name in ("count_it", "another"):
        with pytest.raises(ExoError, match="is over"):
            asyncio.run(world.shed.add(package(name, "return 2 - 1"), "model", "one"))
    assert len(world.artifacts.history("tool/count_it")) == 1
    assert [each.package.name for each in world.shed.list()] == ["count_it"]


def test_a_worker_that_somebody_killed_is_no_failure_of_the_tool(world: World) -> None:
    asyncio.run(world.shed.add(package(), "model"))
    world.box.result = lambda source: Result(False, error=ENDED)
    for _ in range(2 * STRIKES):
        told = asyncio.run(world.shed.run("count_it", "s", {}))
        assert not told.ok and told.text == f"count_it: {ENDED}"
    held = world.shed.get("count_it")
    assert (held.state, held.strikes) == ("active", 0)
    world.box.result = lambda source: Result(False, error="the worker died of it")
    asyncio.run(world.shed.run("count_it", "s", {}))
    assert world.shed.get("count_it").state == "quarantined"


def test_what_the_world_refuses_is_not_the_tools_fault(world: World) -> None:
    """No network, a person who says no, a disk that fails: the tool stays. What it asks wrongly, and its own errors, count."""
    asks = {"type": "object", "properties": {"url": {"type": "string"}}}
    world.tools.register(ToolSpec("http_request", "Ask.", asks, lambda context: ""))
    refused = "http_request: GET x: the network\nis not there"

    async def act(session: str, call: Call, **wrote: str) -> ToolResult:
        return ToolResult(call.id, False, refused)

    def asking(error: str, **args: Any) -> Callable[..., Any]:
        async def run(source: str, entry: str, given: Any, can: Any, **more: Any) -> Result:
            with contextlib.suppress(ExoError):
                await can["http"](**args)
            return Result(False, error=error)

        return run

    async def states(error: str, **args: Any) -> list[str]:
        await world.shed.add(package(can=["http"]), "model")
        world.box.run = asking(error, **args)  # type: ignore[method-assign]
        found = []
        for _ in range(4):
            await world.shed.run("count_it", "s", {})
            found.append(world.shed.get("count_it").state)
        del world.box.run  # the class's own again
        return found

    world.core.act = act
    usual = "OSError: is not there"  # the last line that a guest prints
    counted = ["active", "active", "quarantined", "quarantined"]
    assert asyncio.run(states(usual, url="x")) == ["active"] * 4
    assert asyncio.run(states(usual, uri="x")) == counted  # asked wrongly
    assert asyncio.run(states("ValueError: of its own", url="x")) == counted


def test_a_space_that_cannot_be_read_is_not_the_tools_fault(world: World) -> None:
    async def run(source: str, entry: str, given: Any, can: Any, **more: Any) -> Result:
        try:
            return Result(True, await can["space_read"](name="kept"))
        except Exception as error:  # noqa: BLE001 - as the sandbox's host does
            return Result(False, error=f"OSError: {error}")

    async def test() -> None:
        await world.shed.add(package(can=["space"]), "model")
        world.space.commit({"kept": "hello"}, "x")
        world.space._path(world.space.files()["kept"]).unlink()
        world.box.run = run  # type: ignore[method-assign]
        for _ in range(4):
            output = await world.shed.run("count_it", "s", {})
            assert not output.ok and "not what they were" in output.text
        assert world.shed.get("count_it").state == "active"

    asyncio.run(test())


def test_a_parameter_may_have_any_name(world: World) -> None:
    """Of a call, the names of ours are not the tool's."""
    names = ("context", "function", "self", "args", "kwargs", "name", "session", "handler", "turn")
    rule = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    source = f"def run({', '.join(names)}):\n    return 1\n"
    given = dict.fromkeys(names, "x")
    tests = [{"args": given, "expect": 1}]
    tool = made("any_name", "Take anything.", source, parameters=rule, tests=tests)

    async def test() -> ToolResult:
        await world.shed.add(tool, "model")
        return await world.tools.run(Call("c", "any_name", given), Context("s", Path()))

    result = asyncio.run(test())
    assert result.ok and result.text == "1", result.text


def test_a_test_answers_for_nothing_that_is_not_declared(world: World) -> None:
    """Such a tool would pass its tests and fail at every call."""
    for can, host in (([], "recall"), (["recall"], "bash"), (["space"], "http")):
        tests = [{"args": {}, "expect": 1, "host": {host: 1}}]
        with pytest.raises(ExoError, match=f"answers for '{host}'"):
            package(can=can, tests=tests)
    for can, host in (("recall", "recall"), ("http", "http"), ("space", "space_remove")):
        package(can=[can], tests=[{"args": {}, "expect": 1, "host": {host: 1}}])
