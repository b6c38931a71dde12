"""Hooks: who may say what, and what a hook that fails, hangs or talks nonsense changes (nothing)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.plugins import approve, block, hook
from exo.core.plugins.hooks import LIVE, RESERVED, Decision, Hook, Hooks


def hooks(*functions: Callable[..., Any], name: str = "pre_tool_call") -> Hooks:
    made = Hooks(timeout=0.2)
    for n, function in enumerate(functions):
        made.add(Hook(name, f"p{n}", function))
    return made


async def deciding_block(**facts: Any) -> Decision:
    return block("no")


def raising(**facts: Any) -> None:
    raise ValueError("broken")


def exiting(**facts: Any) -> None:
    raise SystemExit(3)


async def exiting_async(**facts: Any) -> None:
    raise SystemExit(3)


class Odd(BaseException):
    """What no `except Exception` takes."""


async def odd_async(**facts: Any) -> None:
    raise Odd


def odd(**facts: Any) -> None:
    raise Odd


def hanging(**facts: Any) -> None:
    time.sleep(1)


async def hanging_async(**facts: Any) -> None:
    await asyncio.sleep(60)


def nonsense(**facts: Any) -> Any:
    return {"action": "blok"}


def a_word(**facts: Any) -> Any:
    return "block"


def wrong_arguments(a: int, b: int) -> None:
    pass


FAILING = [raising, exiting, exiting_async, odd, odd_async]
FAILING += [hanging, hanging_async, nonsense, a_word, wrong_arguments]


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("first", [True, False])
def test_a_failing_hook_is_skipped_and_a_block_still_holds(
    failing: Callable[..., Any], first: bool
) -> None:
    order = [failing, deciding_block] if first else [deciding_block, failing]
    made = hooks(*order)
    assert asyncio.run(made.decide(tool_name="t", args={})) == [block("no")]
    assert asyncio.run(hooks(failing).decide(tool_name="t", args={})) == []
    asked = hooks(failing, lambda: approve("may I?", "r"), failing)
    assert asyncio.run(asked.decide(tool_name="t", args={})) == [approve("may I?", "p1: r")]


@pytest.mark.parametrize(
    ("value", "decision"),
    [
        (None, None),
        ({}, None),
        ({"action": "allow"}, None),
        ({"action": "block", "message": "no"}, block("no")),
        ({"action": "approve", "message": "sure?", "rule": "r"}, approve("sure?", "p0: r")),
        ({"action": "approve"}, approve("the plugin p0 wants it")),
    ],
)
def test_decisions_may_be_dicts(value: Any, decision: Decision | None) -> None:
    said = [] if decision is None else [decision]
    assert asyncio.run(hooks(lambda: value).decide()) == said


def test_every_wish_to_ask_is_heard_and_a_block_stands_alone() -> None:
    def decide(*made: Decision) -> list[Decision]:
        return asyncio.run(hooks(*(lambda made=each: made for each in made)).decide())  # type: ignore[misc]

    both = [approve("a", "p0: r"), approve("b", "p1: s")]
    assert decide(approve("a", "r"), approve("b", "s")) == both
    assert decide(approve("a", "r"), approve("b")) == [both[0], approve("b")]
    assert decide(approve("a", "r"), block("no")) == [block("no")]
    assert decide(approve("a", "p1: s")) != decide(approve("a"), approve("b", "s"))[1:]


def test_a_hook_gets_what_it_takes_and_changes_nothing() -> None:
    seen: list[Any] = []

    def some(tool_name: str, args: dict[str, Any]) -> None:
        seen.append((tool_name, dict(args)))
        args["x"] = "changed"

    args = {"x": "as it was"}
    asyncio.run(hooks(some, some).decide(tool_name="t", args=args, session_id="s"))
    assert seen == [("t", args)] * 2 and args == {"x": "as it was"}


def test_results_are_rewritten_one_after_the_other() -> None:
    made = hooks(
        lambda result: result + "1",
        raising,
        lambda result: 5,
        lambda result: None,
        lambda result: result + "2",
        name="transform_tool_result",
    )
    assert asyncio.run(made.transform("r", tool_name="t")) == "r12"
    assert made.of("p1")[0].faults == made.of("p2")[0].faults == 1


def test_a_hook_that_is_always_slow_is_no_longer_called() -> None:
    calls: list[int] = []

    async def slow() -> None:
        calls.append(1)
        await asyncio.sleep(60)

    async def test() -> None:
        made = hooks(slow)
        for _ in range(5):
            assert await made.decide() == []
        assert len(calls) == 3 and "no longer called" in made.of("p0")[0].last

    asyncio.run(test())


def test_names_are_checked_and_reserved_ones_accepted() -> None:
    made = Hooks()
    for name in (*LIVE, *RESERVED):
        made.add(Hook(name, "p", raising))
    with pytest.raises(ValueError, match="pre_tool_cal'"):
        made.add(Hook("pre_tool_cal", "p", raising))
    with pytest.raises(ValueError, match="register_action'"):

        @hook
        def register_action(register: Any) -> None: ...

    @hook
    def post_tool_call(result: str) -> None: ...

    assert post_tool_call.__exo_hook__ is True  # type: ignore[attr-defined]
