"""Hooks, approvals, slots and bad calls through the whole engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.plugins.hooks import Hook, approve, block
from exo.core.router.model import RawCall
from exo.core.server.lines import LineSession
from exo.core.toolbox.registry import ToolSpec

Run = Callable[..., Any]


@pytest.fixture
def run(run: Run) -> Run:
    """Without a judge, unless a test is `calm`: whatever is more than reading asks."""
    return lambda *words, **more: run(*words, **({"calm": False} | more))


def call(tool: str, args: Any = None, id_: str = "c1") -> RawCall:
    return RawCall(id_, tool, args if isinstance(args, str) else json.dumps(args or {}))


def bash(command: str) -> RawCall:
    return call("bash", {"command": command})


def asked(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "approval.requested")


async def answer(bench: Any, choice: str, since: int = 0) -> dict[str, Any]:
    event = await bench.until(asked, since)
    await bench.call("approval.respond", request=event["body"]["request"], choice=choice, by="test")
    return dict(event)


def hang(bench: Any, name: str, function: Callable[..., Any]) -> None:
    bench.engine._registry.hooks.add(Hook(name, "test", function))


def result_of(bench: Any, n: int = -1) -> dict[str, Any]:
    return dict(bench.events("tool.completed")[n]["body"])


@pytest.mark.parametrize("choice", ["allow", "deny"])
def test_a_dangerous_tool_asks_first(run: Run, choice: str) -> None:
    async def test(bench: Any) -> None:
        heard: list[Any] = []
        hang(
            bench,
            "post_approval_response",
            lambda choice, by, tool_name: heard.append((choice, by)),
        )
        session = await bench.session()
        turn = await bench.send(session, "x")
        event = await bench.until(asked)
        body = event["body"]
        assert body["summary"] == "touch made: not understood, no undo" and body["risk"] == "high"
        assert body["tool"] == "bash" and body["args"] == {"command": "touch made"}
        assert body["expires"] > event["ts"] and not (bench.work / "made").exists()
        await bench.call("approval.respond", request=body["request"], choice=choice, by="phone")
        assert (await bench.end_of(turn))["stop_reason"] == "end"
        [resolved] = bench.events("approval.resolved")
        assert resolved["body"] == {"request": body["request"], "choice": choice, "by": "phone"}
        assert (bench.work / "made").exists() == (choice == "allow")
        assert result_of(bench)["ok"] == (choice == "allow") and heard == [(choice, "phone")]
        if choice == "deny":
            assert "the person said no" in result_of(bench)["text"]
        order = [row["type"] for row in bench.events()]
        assert order.index("tool.started") < order.index("approval.requested")

    run(test, [bash("touch made")])


def test_always_holds_for_the_same_command_in_the_same_session(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        turn = await bench.send(session, "x")
        await answer(bench, "allow_always")
        await bench.end_of(turn)
        await bench.ask(session, "y")
        assert len(bench.events("approval.requested")) == 1 and result_of(bench)["ok"]
        turn = await bench.send(session, "other command")
        await answer(bench, "deny", bench.hub.seq - 1)
        await bench.end_of(turn)
        turn = await bench.send(await bench.session(), "other session")
        await answer(bench, "deny", bench.hub.seq - 1)
        await bench.end_of(turn)

    run(
        test, [bash("true")], ["ok"], [bash("true")], ["ok"], [bash("echo")], ["ok"], [bash("true")]
    )


def test_always_holds_for_what_is_sent_too(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        for n, body in enumerate(["a", "a", "b"]):
            args = {"method": "POST", "url": "http://127.0.0.1:9/", "body": body}
            task = asyncio.create_task(
                bench.call("tool.run", session=session, tool="http_request", args=args)
            )
            if n != 1:
                event = await answer(bench, "allow_always", bench.hub.seq)
                assert event["body"]["args"]["body"] == body and event["body"]["always"]
            await asyncio.wait_for(task, 10)
        assert len(bench.events("approval.requested")) == 2

    run(test, env={"EXO_TOOLS_HTTP": "true"})


def test_nobody_answers_and_that_means_no(run: Run) -> None:
    async def test(bench: Any) -> None:
        bench.engine._approvals._timeout = 0.1
        session = await bench.session()
        assert (await bench.ask(session, "x"))["stop_reason"] == "end"
        assert bench.events("approval.resolved")[0]["body"]["by"] == "timeout"
        assert "nobody answered" in result_of(bench)["text"] and not (bench.work / "a").exists()
        request = bench.events("approval.requested")[0]["body"]["request"]
        code = await bench.refused("approval.respond", request=request, choice="allow")
        assert code == "already_answered"

    run(test, [bash("touch a")])


def test_the_first_of_two_answers_counts(run: Run) -> None:
    async def test(bench: Any) -> None:
        turn = await bench.send(await bench.session(), "x")
        request = (await bench.until(asked))["body"]["request"]
        choices = ["allow", "deny", "allow_always", "deny"]
        done = await asyncio.gather(
            *(bench.respond("approval.respond", request=request, choice=c) for c in choices)
        )
        assert [row["ok"] for row in done] == [True, False, False, False]
        assert {row["error"].code for row in done[1:]} == {"already_answered"}
        await bench.end_of(turn)
        [resolved] = bench.events("approval.resolved")
        assert resolved["body"]["choice"] == "allow" and result_of(bench)["ok"]
        code = await bench.refused("approval.respond", request="none", choice="allow")
        assert code == "unknown_approval"

    run(test, [bash("true")])


def test_an_interrupt_while_it_waits_is_a_no_with_a_result(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        turn = await bench.send(session, "x")
        await bench.until(asked)
        await bench.call("turn.interrupt", session=session)
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"
        assert bench.events("approval.resolved")[0]["body"]["by"] == "interrupt"
        messages = await bench.messages(session)
        assert "interrupted" in messages[-1]["results"][0]["text"]
        assert not (bench.work / "a").exists()

    run(test, [bash("touch a")])


def test_another_session_goes_on_while_one_waits(run: Run) -> None:
    async def test(bench: Any) -> None:
        turn = await bench.send(await bench.session(), "x")
        await bench.until(asked)
        assert (await bench.ask(await bench.session(), "y"))["stop_reason"] == "end"
        await answer(bench, "allow")
        assert (await bench.end_of(turn))["stop_reason"] == "end"

    run(test, [bash("true")], ["hello"])


def test_a_question_that_a_crash_left_is_denied_at_the_next_start(run: Run, tmp_path: Path) -> None:
    async def crash(bench: Any) -> str:
        await bench.send(await bench.session(), "x")
        event = await bench.until(asked)
        bench.database.link.arm(
            1, lasting=True
        )  # from now on nothing is written, as after a SIGKILL
        return str(event["body"]["request"])

    import exo.core.engine.engine as engine

    patience, engine.PATIENCE = engine.PATIENCE, 0.1
    try:
        request = run(crash, [bash("touch a")])
    finally:
        engine.PATIENCE = patience

    async def again(bench: Any) -> None:
        [resolved] = bench.events("approval.resolved")
        assert resolved["body"] == {"request": request, "choice": "deny", "by": "restart"}
        assert await bench.refused("approval.respond", request=request, choice="allow") == (
            "already_answered"
        )
        assert not (bench.work / "a").exists()

    run(again)


def test_what_asks_is_a_setting(run: Run) -> None:
    async def quiet(bench: Any) -> None:
        await bench.ask(await bench.session(), "x")
        assert (bench.work / "a").exists() and not bench.events("approval.requested")

    async def medium(bench: Any) -> None:
        turn = await bench.send(await bench.session(), "x")
        event = await answer(bench, "allow")
        assert (
            event["body"]["summary"].startswith("write_file {")
            and event["body"]["risk"] == "medium"
        )
        await bench.end_of(turn)
        assert (bench.work / "b").exists()

    run(quiet, [bash("touch a")], calm=True)
    write = call("write_file", {"path": "b", "content": "x"})
    run(medium, [write], env={"EXO_TOOLS_ASK": "medium"}, calm=True)


def test_what_was_asked_about_is_what_runs(run: Run) -> None:
    async def test(bench: Any) -> None:
        kept: list[dict[str, Any]] = []
        got: list[Any] = []

        def bend(args: dict[str, Any], **facts: Any) -> None:
            args["to"]["name"] = "eve"
            args["more"] = "x"
            kept.append(args)

        def risk(args: dict[str, Any]) -> str:
            bend(args)
            return "high"

        def send(context: Any, to: dict[str, str]) -> str:
            got.append(to)
            return "sent"

        schema = {"type": "object", "properties": {"to": {"type": "object"}}}
        bench.engine.tools.register(ToolSpec("send", "", schema, send, risk))  # type: ignore[arg-type]
        hang(bench, "pre_tool_call", bend)
        hang(bench, "post_approval_response", bend)
        turn = await bench.send(await bench.session(), "x")
        await bench.until(asked)
        for args in list(kept):  # and once more, while the person reads
            bend(args)
        event = await answer(bench, "allow")
        await bench.end_of(turn)
        assert event["body"]["args"] == {"to": {"name": "ada"}} and got == [{"name": "ada"}]
        assert '"ada"' in event["body"]["summary"] and len(kept) > 3

    run(test, [call("send", {"to": {"name": "ada"}})])


def test_always_without_a_rule_is_once(run: Run) -> None:
    async def test(bench: Any) -> None:
        hang(bench, "pre_tool_call", lambda: approve("sure?"))
        session = await bench.session()
        for _ in range(2):
            turn = await bench.send(session, "x")
            await answer(bench, "allow_always", bench.hub.seq - 1)
            await bench.end_of(turn)
        assert len(bench.events("approval.requested")) == 2

    run(test, [bash("true")], ["ok"], [bash("true")], ["ok"])


def test_tool_run_goes_the_same_way(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        args = {"session": session, "tool": "bash", "args": {"command": "echo hi"}}
        task = asyncio.create_task(bench.call("tool.run", **args))
        await answer(bench, "allow_always")
        assert (await task)["text"] == "hi\n[exit code 0]"
        assert bench.events("tool.output")[0]["body"]["text"] == "hi\n"
        hang(bench, "pre_tool_call", lambda: block("not today"))
        assert (await bench.call("tool.run", **args))["text"] == "blocked: not today"

    run(test)


def test_tool_run_can_be_interrupted(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        args = {"tool": "bash", "args": {"command": "echo $$ > pid; sleep 300"}}
        task = asyncio.create_task(bench.call("tool.run", session=session, **args))
        while not (bench.work / "pid").exists():
            await asyncio.sleep(0.01)
        assert (await bench.call("turn.interrupt", session=session))["interrupted"]
        done = await task
        assert not done["ok"] and "interrupted" in done["text"]
        assert not Path(f"/proc/{(bench.work / 'pid').read_text().strip()}").exists()

    run(test, calm=True)


def test_a_line_client_answers_while_its_tool_waits(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        reader = asyncio.StreamReader()
        got: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        class Writer:
            def write(self, data: bytes) -> None:
                got.put_nowait(json.loads(data))

            async def drain(self) -> None: ...

        def say(id_: str, type_: str, **body: Any) -> None:
            reader.feed_data(json.dumps({"id": id_, "type": type_, "body": body}).encode() + b"\n")

        lines = asyncio.create_task(LineSession(bench.dispatcher, reader, Writer()).run())  # type: ignore[arg-type]
        say("1", "events.subscribe")
        say("2", "tool.run", session=session, tool="bash", args={"command": "echo hi"})
        while (row := await asyncio.wait_for(got.get(), 20)).get("type") != "approval.requested":
            pass
        say("3", "approval.respond", request=row["body"]["request"], choice="allow")
        while (row := await asyncio.wait_for(got.get(), 20)).get("id") != "2":
            pass
        assert row["result"]["text"] == "hi\n[exit code 0]"
        reader.feed_eof()
        await lines

    run(test)


def test_hooks_block_rewrite_and_watch(run: Run) -> None:
    async def test(bench: Any) -> None:
        seen: list[Any] = []

        def no_rm(tool_name: str, args: dict[str, Any]) -> Any:
            return block("no rm") if "rm " in str(args) else None

        async def hide(result: str) -> str:
            return result.replace("secret", "***")

        hang(bench, "pre_tool_call", no_rm)
        hang(bench, "transform_tool_result", hide)
        hang(bench, "post_tool_call", lambda **facts: seen.append(facts))
        (bench.work / "f").write_text("a secret")
        session = await bench.session()
        await bench.ask(session, "x")
        first, second = (row["body"] for row in bench.events("tool.completed"))
        assert first["text"] == "blocked: no rm" and not first["ok"]
        assert second["text"] == "a ***"
        [facts] = seen
        assert facts["tool_name"] == "read_file" and facts["result"] == "a ***" and facts["ok"]
        assert facts["session_id"] == session and facts["duration_ms"] >= 0
        assert (await bench.messages(session))[2]["results"][1]["text"] == "a ***"

    run(test, [bash("rm f"), call("read_file", {"path": "f"}, "c2")])


def test_a_hook_may_ask_about_harmless_tools_too(run: Run) -> None:
    async def test(bench: Any) -> None:
        hang(bench, "pre_tool_call", lambda tool_name: approve(f"really {tool_name}?"))
        turn = await bench.send(await bench.session(), "x")
        event = await answer(bench, "allow_always")
        assert event["body"]["summary"] == "really time?" and event["body"]["risk"] == "low"
        await answer(bench, "deny", event["seq"])  # without a rule nothing is allowed for ever
        await bench.end_of(turn)

    run(test, [call("time")], [call("time")], ["ok"])


@pytest.mark.parametrize("rule", ["r", ""])
def test_what_gate_and_hooks_ask_is_one_question(run: Run, rule: str) -> None:
    async def test(bench: Any) -> None:
        hang(bench, "pre_tool_call", lambda: approve("sure?", rule))
        session = await bench.session()
        for n in range(2):
            turn = await bench.send(session, "x")
            if n == 0 or not rule:  # always counts when each of them named a rule
                event = await answer(bench, "allow_always", bench.hub.seq - 1)
                assert event["body"]["summary"] == "true: not understood, no undo; sure?"
                assert event["body"]["always"] == bool(rule)
            await bench.end_of(turn)
        assert len(bench.events("approval.requested")) == (1 if rule else 2)

    run(test, [bash("true")], ["ok"], [bash("true")], ["ok"])


# ---- bad calls -----------------------------------------------------------------------------------


def test_fenced_and_quoted_arguments_are_mended(run: Run) -> None:
    async def test(bench: Any) -> None:
        await bench.ask(await bench.session(), "x")
        assert [row["body"]["ok"] for row in bench.events("tool.completed")] == [True] * 3
        assert bench.events("tool.started")[0]["body"]["args"] == {"text": "a"}

    run(
        test,
        [
            call("note", '```json\n{"text": "a"}\n```', "1"),
            call("note", '```\n{"text": "b"}```', "2"),
            call("note", '"{\\"text\\": \\"c\\"}"', "3"),
        ],
        calm=True,
    )


def test_ids_are_new_in_their_session_and_names_can_be_sent(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await bench.ask(session, "x")
        await bench.ask(session, "y")
        calls = [c for m in await bench.messages(session) for c in m.get("calls") or []]
        assert len({c["id"] for c in calls}) == len(calls) == 6
        assert calls[0]["id"] == "same"
        names = [c["tool"] for c in calls]
        assert names == ["time", "time", "unnamed", "a_b__", "x" * 64, "time"]

    odd = [call("", id_=" "), call("a b\n\x00", id_="i" * 80), call("x" * 90, id_="é")]
    run(
        test,
        [call("time", id_="same"), call("time", id_="same"), *odd],
        ["ok"],
        [call("time", id_="same")],
    )


def test_the_same_failing_call_three_times_ends_the_turn(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        done = await bench.ask(session, "x")
        assert done["stop_reason"] == "rounds" and len(bench.events("tool.completed")) == 4
        assert bench.events("notice")[-1]["body"]["code"] == "repeating"
        await bench.messages(session)
        assert (await bench.ask(session, "y"))["stop_reason"] == "end"

    bad = call("read_file", '{"path": "none')
    run(test, [call("read_file", {"path": "other"})], [bad], [bad], [bad], [bad])


def test_failing_calls_that_differ_go_on(run: Run) -> None:
    async def test(bench: Any) -> None:
        assert (await bench.ask(await bench.session(), "x"))["stop_reason"] == "end"

    replies = [[call("read_file", {"path": f"none{n % 2}"})] for n in range(6)]
    run(test, *replies)


# ---- plugins in the engine -----------------------------------------------------------------------


class Memory:
    def __init__(self, broken: bool = False) -> None:
        self.broken, self.said = broken, []  # type: ignore[var-annotated]

    def _maybe(self) -> None:
        if self.broken:
            raise ValueError("memory is broken")

    def pack(self, session: str) -> str:
        self._maybe()
        return "The person likes tea."

    async def recall(self, session: str, text: str) -> str:
        self._maybe()
        return f"recalled for {text}"

    def heard(self, session: str, said: str, replied: str) -> None:
        self.said.append((said, replied))
        self._maybe()


class Shaper:
    def __init__(self, made: Any) -> None:
        self.made, self.costs = made, []  # type: ignore[var-annotated]

    def reshape(self, session: str, messages: list[dict[str, Any]]) -> Any:
        return self.made(messages)

    def used(self, session: str, usage: Any) -> None:
        self.costs.append(usage.prompt_tokens)


async def settled(look: Callable[[], Any]) -> None:
    while not look():
        await asyncio.sleep(0.01)


def test_the_memory_slot_is_asked_and_told(run: Run) -> None:
    async def test(bench: Any) -> None:
        memory = bench.engine._registry.slots["memory"] = Memory()
        session = await bench.session()
        await bench.ask(session, "hullo")
        await settled(lambda: memory.said == [("hullo", "fine")])
        await bench.ask(session, "tell me more")
        first, second = bench.model.requests
        assert first.messages[0]["content"].endswith("\n\nThe person likes tea.")
        assert "recalled for hullo" in first.messages[-2]["content"]
        assert first.messages[-1]["content"] == "hullo"
        assert {
            "role": "user",
            "content": "hullo",
        } in second.messages  # what was recalled is not kept
        assert (await bench.messages(session))[0]["text"] == "hullo"

    run(test, ["fine"])


def test_broken_slots_change_nothing(run: Run) -> None:
    async def test(bench: Any) -> None:
        bench.engine._registry.slots["memory"] = memory = Memory(broken=True)
        shaper = bench.engine._registry.slots["context"] = Shaper(lambda messages: 1 / 0)
        session = await bench.session()
        for made in (
            shaper.made,
            lambda m: None,
            lambda m: [],
            lambda m: ["x"],
            lambda m: m.clear(),
        ):
            shaper.made = made
            assert (await bench.ask(session, "hullo"))["stop_reason"] == "end"
            assert bench.model.requests[-1].messages[-1] == {"role": "user", "content": "hullo"}
        await settled(lambda: len(memory.said) == len(shaper.costs) == 5)
        assert shaper.costs == [10] * 5

    run(test)


def test_a_context_engine_reshapes(run: Run) -> None:
    async def test(bench: Any) -> None:
        short = [{"role": "user", "content": "short"}]
        bench.engine._registry.slots["context"] = Shaper(lambda messages: short)
        await bench.ask(await bench.session(), "hullo")
        assert bench.model.requests[0].messages == short

    run(test)


def test_commands_skills_and_channels_of_plugins(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        send = {"session": session, "tool": "send_message", "args": {"to": "ada", "text": "hi"}}

        async def sent_to() -> Any:  # a message asks, whatever a judge says
            task = asyncio.create_task(bench.call("tool.run", **send))
            await answer(bench, "allow", bench.hub.seq)
            return await task

        refused = await sent_to()
        assert not refused["ok"] and refused["text"].startswith("[no_channel] ")
        sent: list[Any] = []
        bench.engine._registry.channels.table["post"] = lambda to, text: sent.append((to, text))
        assert (await sent_to())["text"] == "Sent to ada through post."
        assert sent == [("ada", "hi")]
        rows = (await bench.call("command.run", name="plugins"))["result"]["plugins"]
        named = {row["name"]: row["registered"] for row in rows}
        assert "tool timer" in named["assistant"] and "tool bash" in named["workbench"]
        assert await bench.refused("command.run", name="none") == "unknown_command"
        assert (await bench.call("skills.list"))["rows"] == []

    run(test, calm=True)


def test_toolsets_narrow_a_session(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = (await bench.call("session.create", toolsets=["files"]))["session"]
        await bench.ask(session, "x")
        offered = {tool["function"]["name"] for tool in bench.model.requests[0].tools}
        assert "edit_file" in offered and "bash" not in offered and "time" not in offered
        assert "there is no tool 'bash'" in result_of(bench)["text"]
        rows = (await bench.call("tools.list", session=session))["tools"]
        assert {row["toolset"] for row in rows} == {"files"}
        assert not bench.events("approval.requested")

    run(test, [bash("true")])


def test_the_network_is_off_until_a_person_says_otherwise(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        args = {"method": "GET", "url": "file:///etc/passwd"}
        ask = {"session": session, "tool": "http_request", "args": args}
        names = {row["name"] for row in (await bench.call("tools.list"))["tools"]}
        assert "http_request" not in names
        assert "are off" in (await bench.call("tool.run", **ask))["text"]
        await bench.call("config.set", key="tools.http", value=True)
        assert "only http" in (await bench.call("tool.run", **ask))["text"]

    run(test, calm=True)


def test_keys_and_state_are_closed_to_tools(processes_home: Home) -> None:
    from exo.core.base.client import Client

    client = Client(processes_home.exod_socket, timeout=30.0)
    session = client.call("session.create", cwd=str(processes_home.root))["session"]
    done = client.call(
        "tool.run", session=session, tool="read_file", args={"path": "state/sessions.sqlite"}
    )
    assert not done["ok"] and "closed to tools" in done["text"]
    rows = client.call("command.run", name="plugins")["result"]["plugins"]
    assert {row["name"]: row["state"] for row in rows} == {
        "decide": "loaded",
        "assistant": "loaded",
        "memory": "loaded",
        "gate": "loaded",
        "workbench": "loaded",
        "agent": "loaded",
        "learning": "loaded",
        "tasks": "loaded",
        "providers": "loaded",
        "good": "loaded",
        "bad": "failed",
    }
    assert client.call("tool.run", session=session, tool="hello", args={})["text"] == "hi"


@pytest.fixture
def processes_home(tmp_path: Path) -> Any:
    import subprocess
    import sys

    home = Home(tmp_path / "h").make()
    home.plugins.mkdir()
    (home.plugins / "good.py").write_text(
        "from exo.core.plugins import hook\n@hook\ndef register_actions(register):\n"
        "    register(hello)\ndef hello() -> str:\n    return 'hi'\n"
    )
    (home.plugins / "bad.py").write_text("import time\ntime.sleep(0.2)\nraise SystemExit(9)\n")
    from exo.core.base.client import Client

    exod = subprocess.Popen([sys.executable, "-m", "exo.core.server.app", "--home", str(home.root)])
    try:
        Client(home.exod_socket, timeout=30.0).wait_ready(30)
        yield home
    finally:
        exod.terminate()
        assert exod.wait(30) == 0


def test_a_plugin_tool_with_needs_asks_at_medium(run: Run) -> None:
    async def test(bench: Any) -> None:
        schema = {"type": "object", "properties": {}}
        bench.engine.tools.register(
            ToolSpec("pay", "", schema, lambda context: "paid", "high", needs="money")
        )
        turn = await bench.send(await bench.session(), "x")
        event = await answer(bench, "allow")
        assert event["body"]["summary"] == "pay {}: not understood, no undo"
        await bench.end_of(turn)
        assert result_of(bench)["text"] == "paid"

    run(test, [call("pay")])


def test_a_grant_holds_for_the_code_that_it_was_given_to(run: Run) -> None:
    """ "Always" for a tool whose code may change ends with that code, and so does an approval while it is open."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    ran: list[str] = []

    def offer(bench: Any, code: str) -> None:
        bench.engine.tools.withdraw("made")
        spec = ToolSpec("made", "", schema, lambda context: ran.append(code), code=code)
        bench.engine.tools.register(spec)

    async def test(bench: Any) -> None:
        session = await bench.session()
        given = {"session": session, "tool": "made", "args": {}}
        offer(bench, "one")
        asks = asyncio.create_task(bench.call("tool.run", **given))
        event = await answer(bench, "allow_always")
        assert event["body"]["always"] and (await asks)["ok"]
        assert (await bench.call("tool.run", **given))["ok"] and ran == ["one", "one"]
        offer(bench, "two")
        since = bench.hub.seq
        asks = asyncio.create_task(bench.call("tool.run", **given))
        event = await bench.until(asked, since)
        offer(bench, "three")  # while the person reads what two would do
        await bench.call("approval.respond", request=event["body"]["request"], choice="allow")
        said = await asks
        assert not said["ok"] and "no longer the call" in said["text"] and ran == ["one", "one"]

    run(test)


def test_the_clock_of_a_call_stands_while_a_person_is_asked(run: Run) -> None:
    """What asks from inside a bounded block has the time left that it had when it asked."""
    from exo.core.protocol.schema import Call
    from exo.core.toolbox.workers import bounded

    async def test(bench: Any) -> None:
        session = await bench.session()

        async def within(seconds: float) -> Any:
            async with bounded(seconds):
                return await bench.engine._loop.act(
                    session, Call("c1", "bash", {"command": "rm x"})
                )

        waits = asyncio.create_task(within(1.0))
        event = await bench.until(asked)
        await asyncio.sleep(1.3)
        await bench.call("approval.respond", request=event["body"]["request"], choice="deny")
        result = await waits
        assert not result.ok and "said no" in result.text

    run(test)


def test_an_approval_that_nobody_answers_ends_at_its_own_time(run: Run) -> None:
    from exo.core.protocol.schema import Call
    from exo.core.toolbox.workers import bounded

    async def test(bench: Any) -> None:
        async with bounded(0.5):
            session = await bench.session()
            call = Call("c1", "bash", {"command": "rm x"})
            result = await bench.engine._loop.act(session, call)
        assert "nobody answered" in result.text

    run(test, env={"EXO_APPROVAL_TIMEOUT": "1"})
