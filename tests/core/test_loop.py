"""Turns, with a scripted model: streaming, tools, interrupts, faults; always whole rounds and one end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.base.errors import ContextOverflow, ModelGone, ModelMissing
from exo.core.engine import engine
from exo.core.engine.deltas import Joiner
from exo.core.router.model import RawCall, Reasoning
from exo.core.toolbox.registry import Context, ToolSpec

Run = Callable[..., Any]
GONE = ModelGone("ask the model", "it is not there")


def call(name: str, arguments: str = "{}", id_: str = "c1") -> RawCall:
    return RawCall(id_, name, arguments)


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def joined(bench: Any, kind: str = "message.delta") -> dict[str, str]:
    """Message id -> its deltas in a row."""
    texts: dict[str, str] = {}
    for event in bench.events(kind):
        body = event["body"]
        texts[body["message"]] = texts.get(body["message"], "") + body["text"]
    return texts


def stalled_tool(gate: Any) -> ToolSpec:
    async def handler(context: Context) -> str:
        context.emit("working")
        await gate.wait()
        return "finished"

    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    return ToolSpec("stall", "Wait.", schema, handler)


def check_one_end(bench: Any) -> None:
    """Each started turn has exactly one turn.completed."""
    begun = [e["body"]["turn"] for e in bench.events("turn.started")]
    ended = [e["body"]["turn"] for e in bench.events("turn.completed")]
    assert sorted(begun) == sorted(ended) and len(set(ended)) == len(ended)


# ---- the plain turn ------------------------------------------------------------------------------


def test_turn_is_told_from_first_word_to_last(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        end = await bench.ask(session, "hullo there")
        assert types(bench.events()) == [
            "session.created",
            "message.completed",
            "turn.started",
            "message.delta",
            "message.delta",
            "usage.updated",
            "message.completed",
            "turn.completed",
            "session.updated",
        ]
        assert end["stop_reason"] == "end" and end["model_called"] and "error" not in end
        assert end["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 2}
        user, reply = await bench.messages(session)
        assert (user["role"], user["text"]) == ("user", "hullo there")
        assert (reply["role"], reply["text"]) == ("assistant", "Hi you")
        assert joined(bench) == {reply["id"]: "Hi you"}
        info = (await bench.call("session.list"))["sessions"][0]
        assert (info["title"], info["turns"]) == ("hullo there", 1)
        request = bench.model.requests[0]
        assert request.messages[0]["role"] == "system"
        assert request.messages[request.fixed :] == [{"role": "user", "content": "hullo there"}]
        assert request.cache_key == session
        assert {t["function"]["name"] for t in request.tools} >= {
            "time",
            "timer",
            "note",
            "read_file",
        }
        assert bench.model.open == 0

    run(test, ["Hi", " you"])


def test_deltas_of_a_busy_model_are_joined_and_lose_nothing(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await bench.ask(session, "x")
        reply = (await bench.messages(session))[-1]
        assert joined(bench) == {reply["id"]: reply["text"]}
        assert reply["text"] == "".join(f"w{n} " for n in range(200))
        deltas = bench.events("message.delta")
        assert deltas[0]["body"]["text"] == "w0 "  # the first goes out at once
        assert len(deltas) < 10

    run(test, [f"w{n} " for n in range(200)], env={"EXO_DELTAS_JOIN_MS": "5000"})


def test_joiner_saves_the_first_at_once_and_the_rest_by_its_timer() -> None:
    async def test() -> None:
        saved: list[str] = []
        second = asyncio.Event()

        def save(text: str) -> None:
            saved.append(text)
            if len(saved) == 2:
                second.set()

        joiner = Joiner(save, 0.02)
        for text in ("a", "b", "c"):
            joiner.feed(text)
        assert saved == ["a"]
        await asyncio.wait_for(second.wait(), 30)
        assert saved == ["a", "bc"]
        joiner.feed("d")
        joiner.drop()
        joiner.flush()
        assert saved == ["a", "bc"]

    asyncio.run(test())


def test_reasoning_goes_out_apart_and_is_no_part_of_the_reply(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await bench.ask(session, "x")
        reply = (await bench.messages(session))[-1]
        assert reply["text"] == "four"
        assert joined(bench, "reasoning.delta") == {reply["id"]: "two and two"}

    run(test, [Reasoning("two "), Reasoning("and two"), "four"])


def test_an_empty_and_a_cut_reply_end_well(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "end"
        assert (await bench.ask(session, "y"))["stop_reason"] == "length"
        assert [m["text"] for m in await bench.messages(session)] == ["x", "", "y", "cut"]

    run(test, [], ["cut", "!length"])


def test_half_a_character_from_the_model_reaches_the_record_as_a_mark(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "end"
        reply = (await bench.messages(session))[-1]
        assert reply["text"] == "a??b" and joined(bench) == {reply["id"]: "a??b"}

    run(test, ["a\ud83d", "\ude00b"])


# ---- tools -----------------------------------------------------------------------------------------


def test_tool_rounds_run_the_real_tools(run: Run) -> None:
    async def test(bench: Any) -> None:
        (bench.work / "list.txt").write_text("milk\nbread\n")
        session = await bench.session()
        end = await bench.ask(session, "please do it all")
        assert end["stop_reason"] == "end" and end["usage"]["prompt_tokens"] == 30
        results = {e["body"]["call"]: e["body"] for e in bench.events("tool.completed")}
        assert all(row["ok"] and row["ms"] >= 0 for row in results.values())
        assert results["a"]["text"].startswith("It is ")
        assert results["b"]["text"].startswith("Timer for tea set: 5 minutes, until ")
        assert results["c"]["text"] == "Noted: buy stamps"
        assert results["d"]["text"] == "milk\nbread"
        [note] = bench.notes.iterdir()
        assert note.read_text().endswith("+++\n\nbuy stamps\n")
        [timer] = bench.timers.pending()
        assert (timer.session, timer.label) == (session, "tea")
        started = [e["body"]["tool"] for e in bench.events("tool.started")]
        assert started == ["time", "timer", "note", "read_file"]
        roles = [m["role"] for m in await bench.messages(session)]
        assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
        sent = bench.model.requests[-1].messages
        assert [m["role"] for m in sent][-2:] == ["assistant", "tool"]
        assert sent[-1]["content"] == "milk\nbread"

    run(
        test,
        [
            "Let me look.",
            call("time", "{}", "a"),
            call("timer", '{"seconds": 300, "label": "tea"}', "b"),
            call("note", '{"text": "buy stamps"}', "c"),
        ],
        [call("read_file", '{"path": "list.txt"}', "d")],
        ["Done."],
    )


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (call("note", '{"text": "br'), "no JSON"),
        (call("note", "[1]"), "no JSON object"),
        (call("note", "null"), "is missing"),
        (call("note", '"text"'), "no JSON object"),
        (call("note", ""), "is missing"),
        (call("note", "[" * 50_000), "no JSON"),
        (call("note", '{"text": NaN}'), "no JSON"),
        (call("note", '{"text": "a", "text": "b"}'), "no JSON"),
        (call("note", '{"text": "\\ud800"}'), "no JSON"),
        (call("note", "{}"), "is missing"),
        (call("note", '{"text": 5}'), "is to be a string"),
        (call("note", '{"text": "a", "more": 1}'), "there is no argument 'more'"),
        (call("note", '{"text": "  "}'), "the text is empty"),
        (call("timer", '{"seconds": true}'), "is to be a number"),
        (call("timer", '{"seconds": "5"}'), "is to be a number"),
        (call("timer", '{"seconds": 0}'), "is to be 1 to"),
        (call("timer", '{"seconds": 1e300}'), "is to be 1 to"),
        (call("read_file", '{"path": "../../etc/passwd"}'), "outside the working folder"),
        (call("read_file", '{"path": "/etc/passwd"}'), "outside the working folder"),
        (call("read_file", '{"path": "~nobody-of-that-name/x"}'), "no usable path"),
        (call("read_file", '{"path": "a\\u0000b"}'), "no usable path"),
        (call("read_file", '{"path": "none.txt"}'), "no such file"),
        (call("read_file", '{"path": "."}'), "is a folder"),
        (call("read_file", '{"path": "' + "x" * 300 + '"}'), ""),
        (call("no_such_tool"), "there is no tool 'no_such_tool'"),
        (call(""), "names no tool"),
        (call("no\ud800name"), "there is no tool"),
    ],
)
def test_a_call_that_is_wrong_becomes_a_result_that_says_so(
    run: Run, bad: RawCall, said: str
) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "end"
        [result] = bench.events("tool.completed")
        assert not result["body"]["ok"] and said in result["body"]["text"]
        assert len(await bench.messages(session)) == 4
        assert not bench.notes.exists() and not bench.timers.pending()
        json.dumps(bench.model.requests[-1].messages).encode()

    run(test, [bad], ["never mind"])


def test_calls_under_one_id_each_find_their_result(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await bench.ask(session, "x")
        asked = (await bench.messages(session))[1]["calls"]
        assert len({each["id"] for each in asked}) == 4 and all(each["id"] for each in asked)

    run(test, [call("time"), call("time"), call("time", "{}", ""), call("time", "{}", "")])


def test_rounds_have_a_cap_that_is_told(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "rounds"
        assert len(bench.model.requests) == 24
        [notice] = [e["body"] for e in bench.events("notice")]
        assert notice["code"] == "rounds"
        await bench.messages(session)
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"

    run(test, *[[call("time")]] * 24)


def test_output_of_a_running_tool_is_shown(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.engine.tools.register(stalled_tool(wait))
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        output = await bench.until(lambda e: e["type"] == "tool.output")
        assert output["body"] == {"call": "c1", "text": "working"}
        wait.opened.set()
        await bench.end_of(turn)

    run(test, [call("stall")])


def test_a_tool_that_never_ends_is_given_up(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        bench.engine.tools.register(stalled_tool(gate()))
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "end"
        [result] = bench.events("tool.completed")
        assert result["body"]["text"] == "stall: stopped after 1 s"

    run(test, [call("stall")], env={"EXO_TOOL_TIMEOUT": "1"})


# ---- faults of the model ---------------------------------------------------------------------------


def test_retries_while_nothing_was_shown(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "end"
        assert len(bench.model.requests) == 4
        assert (await bench.messages(session))[-1]["text"] == "at last"
        end = await bench.ask(session, "y")
        assert end["stop_reason"] == "error" and end["error"]["code"] == "model_gone"
        assert len(bench.model.requests) == 8

    run(test, [GONE], [GONE], [GONE], ["at last"], [GONE], [GONE], [GONE], [GONE])


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        (["some text", GONE], "model_gone"),
        ([Reasoning("hm"), GONE], "model_gone"),
        (["some text", ContextOverflow("ask", "too long")], "context_overflow"),
        ([ModelMissing("load", "no file", "run `exo models get`")], "model_missing"),
        ([RuntimeError("a bug")], "internal"),
        (["some text", ValueError("a bug")], "internal"),
        (["some text", "!broken"], "internal"),
    ],
)
def test_other_errors_end_the_turn_at_once_and_the_next_one_works(
    run: Run, steps: list[Any], code: str
) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        end = await bench.ask(session, "x")
        assert end["stop_reason"] == "error" and end["error"]["code"] == code
        assert len(bench.model.requests) == 1 and bench.model.open == 0
        [notice] = [e["body"] for e in bench.events("notice")]
        assert (notice["level"], notice["code"]) == ("error", code)
        last = (await bench.messages(session))[-1]
        if "some text" in steps:
            assert last["text"] == "some text" and last["interrupted"]
            assert joined(bench)[last["id"]] == "some text"
        else:
            assert last["role"] == "user"
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"
        check_one_end(bench)

    run(test, steps)


def test_overflow_shrinks_the_request_until_it_fits_or_says_so(run: Run) -> None:
    over = [ContextOverflow("ask", "too long")]

    async def test(bench: Any) -> None:
        session = await bench.session()
        for n in range(8):
            await bench.ask(session, f"{n} " + "word " * 200)
        before = len(bench.model.requests)
        bench.model.replies = [over, over, ["it fits"]]
        assert (await bench.ask(session, "z"))["stop_reason"] == "end"
        sizes = [len(json.dumps(r.messages)) for r in bench.model.requests[before:]]
        assert sizes[0] > sizes[1] >= sizes[2]
        assert bench.model.requests[-1].messages[-1]["content"] == "z"
        bench.model.replies = [over] * 20
        end = await bench.ask(session, "z")
        assert end["error"]["code"] == "context_overflow" and len(bench.model.replies) > 10

    run(test)


# ---- interrupt, steer, queue -----------------------------------------------------------------------


def test_interrupt_before_the_first_step(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        turn = await bench.send(session, "x")
        assert (await bench.call("turn.interrupt", session=session))["interrupted"]
        assert (await bench.call("turn.interrupt", session=session))["interrupted"]
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"
        assert bench.model.requests == []
        assert not (await bench.call("turn.interrupt", session=session))["interrupted"]
        check_one_end(bench)

    run(test)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_interrupt_in_mid_stream_keeps_what_was_said(run: Run, gate: Any, times: int) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.model.replies = [["one ", "two ", wait, "three"]]
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        for _ in range(times):
            await bench.call("turn.interrupt", session=session)
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"
        last = (await bench.messages(session))[-1]
        assert last["text"] == "one two " and last["interrupted"]
        assert bench.model.open == 0
        check_one_end(bench)
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"

    run(test)


def test_interrupt_in_mid_tool_answers_every_call(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.engine.tools.register(stalled_tool(wait))
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        await bench.call("turn.interrupt", session=session)
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"
        results = (await bench.messages(session))[-1]["results"]
        assert [row["ok"] for row in results] == [True, False, False]
        assert results[2]["text"] == "interrupted before completion"
        check_one_end(bench)

    run(test, [call("time", "{}", "a"), call("stall", "{}", "b"), call("time", "{}", "c")])


def test_interrupt_while_waiting_for_a_retry(run: Run) -> None:
    async def test(bench: Any) -> None:
        bench.model.replies = [[GONE]] * 9
        object.__setattr__(bench.engine._loop._rules, "backoff", 3600.0)
        session = await bench.session()
        turn = await bench.send(session, "x")
        while not bench.model.requests:
            await asyncio.sleep(0)
        await bench.call("turn.interrupt", session=session)
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"

    run(test)


@pytest.mark.parametrize("steps", [*range(0, 20), *range(20, 40, 3)])
def test_interrupt_after_any_number_of_steps(run: Run, steps: int) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        turn = await bench.send(session, "x")
        for _ in range(steps):
            await asyncio.sleep(0)
        await bench.call("turn.interrupt", session=session)
        assert (await bench.end_of(turn))["stop_reason"] in ("interrupted", "end")
        await bench.messages(session)
        check_one_end(bench)
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"

    run(test, ["let ", "me ", call("note", '{"text": "n"}')], ["a ", "b ", "c"])


def test_send_while_a_turn_runs_is_refused(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.model.replies = [[wait, "one"]]
        session = await bench.session()
        turn = await bench.send(session, "x")
        for extra in ({}, {"mode": "send"}, {"mode": None}):
            assert (
                await bench.refused("turn.send", session=session, text="y", **extra)
                == "turn_running"
            )
        other = await bench.session()
        assert (await bench.ask(other, "meanwhile"))["stop_reason"] == "end"
        wait.opened.set()
        await bench.end_of(turn)
        assert [m["text"] for m in await bench.messages(session)] == ["x", "one"]

    run(test)


def test_steer_goes_in_between_rounds_and_queue_waits_for_the_end(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.model.replies = [[wait, call("time")], ["steered"], ["queued"]]
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        queued = await bench.send(session, "afterwards", mode="queue")
        assert await bench.send(session, "rather so", mode="steer") == turn
        wait.opened.set()
        await bench.end_of(turn)
        await bench.end_of(queued)
        said = [
            (m["role"], m["text"]) for m in await bench.messages(session) if m["role"] != "tool"
        ]
        assert said == [
            ("user", "x"),
            ("assistant", ""),
            ("user", "rather so"),
            ("assistant", "steered"),
            ("user", "afterwards"),
            ("assistant", "queued"),
        ]
        check_one_end(bench)

    run(test)


def test_a_steer_that_comes_too_late_is_a_turn_of_its_own(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.model.replies = [["one", wait], ["two"]]
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        await bench.send(session, "late", mode="steer")
        wait.opened.set()
        await bench.end_of(turn)
        await bench.until(lambda e: e["type"] == "turn.completed" and e["body"]["turn"] != turn)
        texts = [m["text"] for m in await bench.messages(session)]
        assert texts == ["x", "one", "late", "two"]
        check_one_end(bench)

    run(test)


def test_two_sessions_answer_at_the_same_time(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        first, second = gate(), gate()
        bench.model.replies = [["a", first], ["b", second]]
        one, two = await bench.session(), await bench.session()
        turns = [await bench.send(one, "x"), await bench.send(two, "y")]
        await first.reached.wait()
        await second.reached.wait()
        second.opened.set()
        await bench.end_of(turns[1])
        first.opened.set()
        await bench.end_of(turns[0])
        assert (await bench.messages(one))[-1]["text"] == "a"
        assert (await bench.messages(two))[-1]["text"] == "b"

    run(test)


# ---- a disk that refuses ---------------------------------------------------------------------------

SCRIPT: list[list[Any]] = [
    ["let me ", "see ", call("time"), call("note", '{"text": "n"}', "c2")],
    ["a ", "b"],
]


@pytest.mark.parametrize(
    ("at", "lasting"), [(n, False) for n in range(1, 48)] + [(n, True) for n in range(1, 48, 4)]
)
def test_a_disk_full_at_any_write_of_a_turn_never_hangs_it(
    run: Run, at: int, lasting: bool
) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        bench.disk.arm(at, lasting)
        response = await bench.respond("turn.send", session=session, text="x")
        if not response["ok"]:
            assert response["error"].code == "storage"
            assert await bench.messages(session) == [] or lasting
        else:
            if lasting:
                while bench.hub._fault is None and bench.engine._turns:
                    await asyncio.sleep(0)
                bench.disk.arm(0)  # the person made room
            end = await bench.end_of(response["result"]["turn"])
            assert end["stop_reason"] in ("end", "error")
            if end["stop_reason"] == "error":
                assert end["error"]["code"] == "storage"
        bench.disk.arm(0)
        messages = await bench.messages(session)  # whole rounds
        shown = joined(bench)
        for message in messages:
            if message["id"] in shown:  # nobody saw words that the session does not hold
                assert message["text"].startswith(shown[message["id"]])
        assert shown.keys() <= {message["id"] for message in messages}
        check_one_end(bench)
        bench.model.replies = []
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"

    run(test, *[list(each) for each in SCRIPT])


def test_interrupt_while_the_end_cannot_be_written_does_not_lose_it(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        wait = gate()
        bench.model.replies = [["one", wait]]
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        bench.disk.arm(1, lasting=True)
        for _ in range(3):
            await bench.call("turn.interrupt", session=session)
            while bench.hub._fault is None:
                await asyncio.sleep(0)
        bench.disk.arm(0)
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"
        assert (await bench.messages(session))[-1]["text"] == "one"
        check_one_end(bench)

    run(test)


def test_what_was_queued_starts_once_the_disk_takes_it(
    run: Run, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RETRY", 0.01)

    async def test(bench: Any) -> None:
        wait = gate()
        bench.model.replies = [["one", wait], ["two"]]
        session = await bench.session()
        turn = await bench.send(session, "x")
        await wait.reached.wait()
        queued = await bench.send(session, "y", mode="queue")
        real, taken = bench.engine._loop.accept, []

        def accept(*words: Any) -> None:
            if not taken:
                taken.append(1)
                bench.disk.arm(1)
            real(*words)

        bench.engine._loop.accept = accept
        wait.opened.set()
        await bench.end_of(turn)
        assert (await bench.end_of(queued))["stop_reason"] == "end"
        assert [m["text"] for m in await bench.messages(session)] == ["x", "one", "y", "two"]

    run(test)


def test_closing_on_a_full_disk_ends_and_the_next_start_writes_the_end(
    run: Run, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE", 0.05)

    async def cut(bench: Any) -> str:
        wait = gate()
        bench.model.replies = [["one ", "two", wait]]
        session = await bench.session()
        await bench.send(session, "x")
        await wait.reached.wait()
        bench.disk.arm(1, lasting=True)
        return str(session)

    async def look(bench: Any) -> None:
        [end] = bench.events("turn.completed")
        assert end["body"]["error"]["code"] == "restarted"
        assert [m["text"] for m in await bench.messages(session)] == ["x", "one two"]
        check_one_end(bench)
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"

    session = run(cut)
    run(look)
