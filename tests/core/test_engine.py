"""Commands, sessions, timers and notes across restarts; what a person may type."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.base.errors import ProtocolError
from exo.core.engine.sessions import spoken, title_of
from exo.core.protocol.schema import COMMANDS
from exo.tools.clock import FakeClock

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("a\0b\x07c\x1b[31md\x7fe\x85f", "abc[31mdef"),
        ("one\r\ntwo\rthree\n\tfour", "one\ntwo\nthree\n\tfour"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family"),
        ("שלום עולם", "שלום עולם"),
        ("\u202eevil\u202c", "\u202eevil\u202c"),
        ("日本語", "日本語"),
        ("e\u0301", "e\u0301"),
        (".", "."),
    ],
)
def test_text_is_kept_but_for_control_characters(text: str, clean: str) -> None:
    assert spoken(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "\u200b\u200d\ufeff",
        "\0\1\2",
        "\u00a0\u3000",
        "\u2060\u00ad",
        "\u2800",
        "\u3164",
        "\ufe0f",
        "\U000e0100",
    ],
)
def test_text_that_nobody_could_see_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        spoken(text)
    assert caught.value.code == "empty_text"


def test_a_megabyte_is_accepted_kept_whole_and_sent_cut(run: Run) -> None:
    text = "ä very long story. " * 55_000

    async def test(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, text))["stop_reason"] == "end"
        assert (await bench.messages(session))[0]["text"] == text
        sent = bench.model.requests[0].messages[-1]["content"]
        assert len(sent) < 20_000 and "characters left out" in sent
        assert sent.startswith("ä very") and sent.endswith("story. ")
        info = (await bench.call("session.list"))["sessions"][0]
        assert len(info["title"]) <= 40

    run(test)


def test_titles_are_the_first_words() -> None:
    assert title_of("  hello\n there ") == "hello there"
    assert title_of("word " * 30).endswith(" word…") and len(title_of("word " * 30)) <= 40
    assert len(title_of("x" * 1_000_000)) <= 40


@pytest.mark.parametrize(
    ("type_", "body", "code"),
    [
        ("hello", {"protocol": 2, "client": "x"}, "protocol"),
        ("session.get", {"session": "none"}, "unknown_session"),
        ("session.resume", {"session": "a\0b"}, "unknown_session"),
        ("turn.send", {"session": "none", "text": "x"}, "unknown_session"),
        ("turn.interrupt", {"session": "none"}, "unknown_session"),
        ("tool.run", {"session": "none", "tool": "time", "args": {}}, "unknown_session"),
        ("session.list", {"limit": 0}, "bad_body"),
        ("session.list", {"limit": 10**30}, "bad_body"),
        ("session.create", {"cwd": "relative"}, "bad_cwd"),
        ("session.create", {"cwd": "/no/such/folder"}, "bad_cwd"),
        ("session.create", {"cwd": "~nobody-of-that-name"}, "bad_cwd"),
        ("session.create", {"cwd": "/a\0b"}, "bad_cwd"),
        ("session.create", {"cwd": "/" + "x" * 5000}, "bad_cwd"),
        ("config.get", {"keys": ["none"]}, "bad_setting"),
        ("config.set", {"key": "none", "value": 1}, "bad_setting"),
        ("config.set", {"key": "turn.rounds", "value": 0}, "bad_setting"),
        ("config.set", {"key": "turn.rounds", "value": 10**400}, "bad_setting"),
        ("config.set", {"key": "turn.silence", "value": 10**400}, "bad_setting"),
        ("config.set", {"key": "turn.rounds", "value": 1.5}, "bad_setting"),
        ("config.set", {"key": "turn.rounds", "value": True}, "bad_setting"),
        ("config.set", {"key": "screen.language", "value": "tlh"}, "bad_setting"),
    ],
)
def test_commands_that_do_not_fit_get_their_code(
    run: Run, type_: str, body: dict[str, Any], code: str
) -> None:
    async def test(bench: Any) -> None:
        assert await bench.refused(type_, **body) == code

    run(test)


def test_every_command_has_an_answer_and_the_later_ones_say_unsupported(run: Run) -> None:
    async def test(bench: Any) -> None:
        live = set((await bench.call("hello", protocol=1, client="t"))["capabilities"])
        assert live - {"events.subscribe"} == set(bench.engine._handlers)
        rows = (await bench.call("command.list"))["commands"]  # what command.run runs
        assert [row["name"] for row in rows] == ["cancel", "decide", "plugins", "task"]
        row = rows[-2]
        assert row["name"] == "plugins"
        bodies = {
            "session.fork": {"session": "s"},
            "session.undo": {"session": "s"},
            "approval.respond": {"request": "r", "choice": "deny"},
            "question.answer": {"question": "q", "answer": "a"},
            "search": {"query": "q"},
            "models.set": {"role": "main", "routes": []},
            "command.run": {"name": "n"},
            "taste.edit": {"id": "i"},
            "memory.query": {"verb": "v", "args": {}},
            "inbox.update": {"id": "i", "status": "s"},
        }
        for name in COMMANDS.keys() - live:
            assert await bench.refused(name, **bodies.get(name, {})) == "unsupported", name

    run(test)


def test_timers_are_listed_soonest_first_and_taken_back(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        for args in ({"seconds": 900, "label": "bread"}, {"seconds": 300, "label": "tea"}):
            done = await bench.call("tool.run", session=session, tool="timer", args=args)
            assert done["ok"], done
        rows = (await bench.call("tasks.list"))["rows"]
        assert [(row["label"], row["kind"]) for row in rows] == [
            ("tea", "timer"),
            ("bread", "timer"),
        ]
        assert rows[1]["due"] - rows[0]["due"] >= 590_000
        for expected in (True, False):
            args = {"id": rows[0]["id"]}
            told = await bench.call("command.run", name="cancel", args=args)
            assert told["result"] == {"cancelled": expected}
        assert [row["label"] for row in (await bench.call("tasks.list"))["rows"]] == ["bread"]

    run(test)


def test_small_questions_about_itself(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        tools = (await bench.call("tools.list"))["tools"]
        assert {row["name"] for row in tools} >= {"time", "timer", "note", "read_file", "bash"}
        result = await bench.call("tool.run", session=session, tool="time", args={})
        assert result["ok"] and result["text"].startswith("It is ")
        result = await bench.call("tool.run", session=session, tool="none", args={})
        assert not result["ok"]
        assert (await bench.call("models.list"))["models"] == [{"id": "scripted"}]
        await bench.call("config.set", key="screen.language", value="de")
        row = (await bench.call("config.get", keys=["screen.language"]))["settings"][
            "screen.language"
        ]
        assert row["value"] == "de" and row["origin"].endswith("settings.toml")
        assert len((await bench.call("config.get"))["settings"]) > 10

    run(test)


def test_commands_need_no_model(run: Run) -> None:
    async def test(bench: Any) -> None:
        (bench.work / "a.txt").write_text("hello from a file")
        session = await bench.session()
        for text, kind, reply in (
            ("What time is it?", "command", "It is "),
            ("Set a timer for 5 minutes", "command", "Timer set: 5 minutes, until "),
            ("Note: buy milk", "note", "Noted: buy milk"),
            ("Read the file a.txt", "command", "hello from a file"),
            ("read the file b.txt", "command", "read b.txt: there is no such file"),
        ):
            end = await bench.ask(session, text)
            assert (end["stop_reason"], end["kind"], end["model_called"]) == ("end", kind, False)
            assert (await bench.messages(session))[-1]["text"].startswith(reply)
        assert bench.model.requests == []

    run(test)


def test_prefill_is_the_request_that_will_come(run: Run, gate: Any) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await bench.ask(session, "first")
        wait = gate()

        async def slow(role: str, request: Any) -> None:
            bench.model.prefills.append(request)
            await wait.wait()

        bench.model.prefill = slow
        for _ in range(5):  # an impatient finger: one is enough
            await bench.call("session.resume", session=session, prefill=True)
            await asyncio.sleep(0)
        wait.opened.set()
        [request] = bench.model.prefills
        await bench.ask(session, "second")
        sent = bench.model.requests[-1]
        assert sent.messages[: len(request.messages)] == request.messages
        assert (sent.tools, sent.cache_key) == (request.tools, request.cache_key)
        await bench.call("session.resume", session=session)
        assert len(bench.model.prefills) == 1

    run(test)


# ---- across restarts -------------------------------------------------------------------------------


def test_conversation_goes_on_after_a_restart(run: Run) -> None:
    async def first(bench: Any) -> str:
        session = await bench.session()
        await bench.ask(session, "one")
        return str(session)

    async def second(bench: Any) -> None:
        await bench.ask(session, "two")
        assert [m["text"] for m in await bench.messages(session)] == ["one", "ok", "two", "ok"]
        assert [m["content"] for m in bench.model.requests[0].messages[-3:]] == ["one", "ok", "two"]

    session = run(first)
    run(second)


def test_an_orderly_end_interrupts_and_what_was_queued_goes_on(run: Run, gate: Any) -> None:
    async def first(bench: Any) -> str:
        wait = gate()
        bench.model.replies = [["half", wait]]
        session = await bench.session()
        await bench.send(session, "x")
        await wait.reached.wait()
        await bench.send(session, "later", mode="queue")
        await bench.send(session, "steered", mode="steer")
        return str(session)

    async def second(bench: Any) -> None:
        await bench.until(
            lambda e: len(bench.events("turn.completed")) == 3 and e["seq"] == bench.hub.seq
        )
        texts = [m["text"] for m in await bench.messages(session)]
        assert texts == ["x", "half", "later", "ok", "steered", "ok"]
        ends = [e["body"]["stop_reason"] for e in bench.events("turn.completed")]
        assert ends == ["interrupted", "end", "end"]

    session = run(first)
    run(second)


def test_timers_survive_a_restart_and_ring_once(run: Run) -> None:
    clock = FakeClock()

    async def first(bench: Any) -> None:
        session = await bench.session()
        for seconds, label in ((60, "tea"), (3600, ""), (86400 * 30, "month")):
            args = {"seconds": seconds, "label": label}
            assert (await bench.call("tool.run", session=session, tool="timer", args=args))["ok"]
        assert bench.events("notice") == [] and bench.engine.busy

    async def second(bench: Any) -> None:
        rung = await bench.until(lambda e: e["type"] == "notice")
        assert rung["body"] == {"level": "info", "code": "timer", "text": "Timer: tea"}
        assert rung["session"]
        clock.advance(3600)
        bench.timers.changed.set()
        await bench.until(lambda e: e["type"] == "notice" and e["seq"] > rung["seq"])

    async def third(bench: Any) -> None:
        await asyncio.sleep(0)
        texts = [e["body"]["text"] for e in bench.events("notice")]
        assert texts == ["Timer: tea", "Your timer is done."]
        [left] = bench.timers.pending()
        assert left.label == "month"

    run(first, clock=clock)
    clock.advance(3599)
    run(second, clock=clock)
    run(third, clock=clock)


def test_a_wall_clock_that_is_set_moves_countdowns_and_leaves_reminders(run: Run) -> None:
    clock = FakeClock()

    async def test(bench: Any) -> None:
        session, timers = await bench.session(), bench.timers
        for seconds in (60, 7200):
            args = {"seconds": seconds, "label": f"{seconds}"}
            await bench.call("tool.run", session=session, tool="timer", args=args)
        due = clock.now_ms() + 1_800_000
        timers.remind(session, clock.local(due), "wall")
        clock.set(3600)  # a board without a battery clock hears the time
        timers.changed.set()
        rung = await bench.until(lambda e: e["type"] == "notice")
        assert rung["body"]["text"] == "Reminder: wall"
        assert [timer.due - clock.now_ms() for timer in timers.pending()] == [60_000, 7_200_000]
        clock.advance(61)
        clock.set(-7200)
        timers.changed.set()
        rung = await bench.until(lambda e: e["type"] == "notice" and e["seq"] > rung["seq"])
        assert rung["body"]["text"] == "Timer: 60"

    run(test, clock=clock)


def test_until_the_clock_is_set_timers_ring_and_reminders_wait(run: Run) -> None:
    clock = FakeClock()

    async def test(bench: Any) -> None:
        session, timers = await bench.session(), bench.timers
        timers.remind(session, clock.local(clock.now_ms() + 30_000), "wall")
        clock.unsure = True  # type: ignore[misc]
        await bench.call("tool.run", session=session, tool="timer", args={"seconds": 60})
        clock.advance(61)
        timers.changed.set()
        rung = await bench.until(lambda e: e["type"] == "notice")
        assert rung["body"]["code"] == "timer"
        assert [timer.label for timer in timers.pending()] == ["wall"]
        args = {"at": "in 20 minutes", "text": "oven"}
        refused = await bench.call("tool.run", session=session, tool="reminder", args=args)
        assert not refused["ok"] and "clock of this board is not set yet" in str(refused)
        clock.unsure = False  # type: ignore[misc]
        timers.changed.set()
        rung = await bench.until(lambda e: e["type"] == "notice" and e["seq"] > rung["seq"])
        assert rung["body"]["text"] == "Reminder: wall"

    run(test, clock=clock)


def test_a_timer_rings_once_though_the_disk_refuses_at_first(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        bench.timers.count_down(session, 0.001, "tea")
        for at in (1, 2, 3):
            bench.disk.arm(at)
            while bench.disk.at and bench.disk.writes < at:
                bench.timers.changed.set()
                await asyncio.sleep(0.002)
            assert bench.events("notice") == []
        bench.disk.arm(0)
        bench.timers.changed.set()
        await bench.until(lambda e: e["type"] == "notice")
        assert bench.timers.pending() == [] and len(bench.events("notice")) == 1

    run(test)


def test_notes_are_whole_files_under_their_time(run: Run) -> None:
    clock = FakeClock()

    async def test(bench: Any) -> None:
        session = await bench.session()
        for text in ("first", "zweite Notiz: Käse 🧀\n+++\nmore"):
            result = await bench.call("tool.run", session=session, tool="note", args={"text": text})
            assert result["text"] == f"Noted: {text}"
        files = sorted(bench.notes.iterdir(), key=lambda p: p.read_text())
        assert len(files) == 2 and all(f.name.startswith("2023-11-14T221320-") for f in files)
        assert all(f.stat().st_mode & 0o777 == 0o600 for f in files)
        for file in files:
            _, head, text = file.read_text().split("+++\n", 2)
            assert tomllib.loads(head)["written"].year == 2023
            assert text.strip() in ("first", "zweite Notiz: Käse 🧀\n+++\nmore")

    run(test, clock=clock)


@pytest.mark.parametrize("cut", range(0, 14))
def test_a_kill_after_any_commit_leaves_a_record_that_mends(
    run: Run, cut: int, tmp_path: Any
) -> None:
    """The database as a SIGKILL would leave it: copied after the n-th commit of a turn."""
    import shutil

    from exo.core.router.model import RawCall

    copy = tmp_path / "copy"

    async def first(bench: Any) -> None:
        session = await bench.session()
        done = 0
        real = bench.disk._count

        def count(sql: str) -> None:
            nonlocal done
            real(sql)
            if sql.startswith("BEGIN") and not copy.exists():
                done += 1
                if done > cut:
                    shutil.copytree(bench.home.root, copy, ignore=shutil.ignore_patterns("*.sock"))

        original = bench.disk.execute

        def execute(sql: str, *values: Any) -> Any:
            count(sql)
            return original(sql, *values)

        bench.disk.execute = execute
        await bench.ask(session, "the words")
        if not copy.exists():
            shutil.copytree(bench.home.root, copy)

    async def second(bench: Any) -> None:
        begun = [e["body"]["turn"] for e in bench.events("turn.started")]
        assert [e["body"]["turn"] for e in bench.events("turn.completed")] == begun
        for info in (await bench.call("session.list"))["sessions"]:
            messages = await bench.messages(info["id"])
            said = [e["body"]["message"] for e in bench.events("message.completed")]
            assert said == messages
            shown = "".join(e["body"]["text"] for e in bench.events("message.delta"))
            assert shown in "".join(m["text"] for m in messages if m["role"] == "assistant")
            assert (await bench.ask(info["id"], "again"))["stop_reason"] == "end"

    run(first, ["a ", "b ", RawCall("c", "time", "{}")], ["c ", "d"])
    run(second, root=copy)


def test_a_call_whose_end_was_told_of_is_not_made_again_after_a_kill(
    run: Run, tmp_path: Any
) -> None:
    """Killed between two calls of one round: the first has its result, the second that it was interrupted, and what
    counted once is not counted again when the conversation goes on."""
    import shutil

    from exo.core.router.model import RawCall
    from exo.core.toolbox.registry import ToolSpec

    copy, counted, waits = tmp_path / "copy", [], asyncio.Event()
    nothing: dict[str, Any] = {"type": "object", "properties": {}}

    def offer(bench: Any, last: Callable[..., Any]) -> None:
        def count(context: Any) -> str:
            counted.append(context.turn)
            return f"counted {len(counted)}"

        bench.engine.tools.register(ToolSpec("count", "Count.", nothing, count))
        bench.engine.tools.register(ToolSpec("slow", "Take long.", nothing, last))

    async def first(bench: Any) -> None:
        async def slow(context: Any) -> str:
            shutil.copytree(bench.home.root, copy, ignore=shutil.ignore_patterns("*.sock"))
            waits.set()
            return "done"

        offer(bench, slow)
        bench.model.replies = [[RawCall("a", "count", "{}"), RawCall("b", "slow", "{}")], ["ok"]]
        turn = await bench.send(await bench.session(), "count it")
        await waits.wait()
        await bench.end_of(turn)
        assert counted == [turn]

    async def second(bench: Any) -> None:
        offer(bench, lambda context: "done")
        [info] = (await bench.call("session.list"))["sessions"]
        results = [m["results"] for m in await bench.messages(info["id"]) if m["role"] == "tool"]
        assert [(row["ok"], row["text"]) for row in results[0]] == [
            (True, "counted 1"),
            (False, "interrupted before completion"),
        ]
        [end] = bench.events("turn.completed")
        assert end["body"]["error"]["code"] == "restarted"
        await bench.ask(info["id"], "go on")
        shown = [m.get("content") for m in bench.model.requests[-1].messages if m["role"] == "tool"]
        assert shown == ["counted 1", "interrupted before completion"] and len(counted) == 1

    run(first)
    run(second, root=copy)
