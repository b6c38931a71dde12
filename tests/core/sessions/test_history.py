"""Fork, undo, resume, titles, the outbox and a send that is sent again."""

from __future__ import annotations

import asyncio

import pytest
from exo.core.base.errors import ModelGone
from exo.core.engine.titles import clean
from exo.core.protocol.schema import Call, Message


def test_what_is_sent_again_after_its_undo_is_answered_and_not_said_again(run):
    async def test(bench):
        session = await bench.session()
        await bench.say(session, "hello")
        rows = bench.sessions.outbox.rows()
        [sent] = [(row.key, row.turn) for row in rows if row.kind == "utterance"]
        await bench.call("session.undo", session=session)
        bench.sessions.outbox.done(bench.sessions.outbox.rows())
        said = {"session": session, "text": "hello", "message": sent[0]}
        assert (await bench.call("turn.send", **said))["turn"] == sent[1]
        assert await bench.texts(session) == []

    run(test)


def test_fork_copies_up_to_a_message_and_names_its_parent(run):
    async def test(bench):
        session = await bench.session()
        await bench.say(session, "one", "two", "three")
        messages = (await bench.call("session.get", session=session))["messages"]
        at = messages[3]["id"]
        fork = (await bench.call("session.fork", session=session, at=at))["session"]
        again = (await bench.call("session.fork", session=fork))["session"]
        assert await bench.texts(fork) == ["one", "Yes.", "two", "Yes."]
        info = (await bench.call("session.get", session=fork))["session"]
        assert (info["parent"], info["forked_at"], info["turns"]) == (session, at, 2)
        lineage, each = [], again
        while each:
            lineage.append(each)
            each = (await bench.call("session.get", session=each))["session"].get("parent")
        assert lineage == [again, fork, session]
        await bench.say(fork, "elsewhere")
        assert "elsewhere" not in await bench.texts(session)
        assert len(await bench.hits("elsewhere")) == 1
        assert len(await bench.hits("two", session=fork)) == 1

    run(test)


@pytest.mark.parametrize("index", [1, 2])
def test_fork_never_splits_a_round_of_tools(run, index):
    async def test(bench):
        session = await bench.session()
        bench.model.replies = [[("time", {}), ("note", {"text": "x"})], "Done."]
        await bench.say(session, "please do it")
        messages = (await bench.call("session.get", session=session))["messages"]
        at = messages[index]["id"]
        fork = (await bench.call("session.fork", session=session, at=at))["session"]
        copies = (await bench.call("session.get", session=fork))["messages"]
        assert [message["role"] for message in copies] == ["user", "assistant", "tool"]
        assert [r["call"] for r in copies[2]["results"]] == [c["id"] for c in copies[1]["calls"]]

    run(test)


def test_fork_of_a_running_turn_has_whole_rounds(run):
    async def test(bench):
        session = await bench.session()
        call = Call("c1", "time", {})
        with bench.hub.commit():
            bench.sessions.add(session, "t1", Message("u1", "user", "go"))
            bench.sessions.add(session, "t1", Message("a1", "assistant", "", [call]))
        fork = (await bench.call("session.fork", session=session))["session"]
        copies = (await bench.call("session.get", session=fork))["messages"]
        assert copies[2]["results"] == [
            {"call": "c1", "ok": False, "text": "interrupted before completion"}
        ]

    run(test)


def test_fork_refuses_what_is_not_there(run, refused):
    async def test(bench):
        session, other = await bench.session(), await bench.session()
        await bench.say(other, "hello")
        strange = (await bench.call("session.get", session=other))["messages"][0]["id"]
        for at in ("nope", strange):
            with pytest.raises(refused, match="unknown_message"):
                await bench.call("session.fork", session=session, at=at)
        assert (
            await bench.texts((await bench.call("session.fork", session=session))["session"]) == []
        )
        assert len((await bench.call("session.list"))["sessions"]) == 3

    run(test)


def test_undo_takes_turns_out_of_conversation_index_and_request(run):
    async def test(bench):
        session = await bench.session()
        bench.model.replies = ["First.", [("time", {})], "Second.", "Third."]
        await bench.say(session, "alpha", "bravo please", "charlie")
        assert (await bench.call("session.undo", session=session, turns=2))["removed"] == 2
        assert await bench.texts(session) == ["alpha", "First."]
        assert await bench.hits("bravo") == await bench.hits("charlie") == []
        assert bench.events("session.updated")[-1]["body"]["turns"] == 1
        await bench.say(session, "delta")
        sent = str(bench.model.asked[-1][1].messages)
        assert "alpha" in sent and "delta" in sent and "bravo" not in sent
        assert (await bench.call("session.undo", session=session, turns=9))["removed"] == 2
        assert (await bench.call("session.undo", session=session))["removed"] == 0
        assert await bench.texts(session) == []

    run(test)


def test_undo_refuses_while_a_turn_runs(run, refused):
    async def test(bench):
        session = await bench.session()
        bench.model.hold.clear()
        await bench.call("turn.send", session=session, text="please tell a story")
        with pytest.raises(refused, match="turn_running"):
            await bench.call("session.undo", session=session)
        bench.model.hold.set()
        await bench.rest()
        for turns in (0, -1, 1001):
            with pytest.raises(refused, match="bad_body"):
                await bench.call("session.undo", session=session, turns=turns)

    run(test)


def test_a_refused_undo_leaves_the_conversation_in_memory_right(run):
    async def test(bench):
        session = await bench.session()
        await bench.say(session, "alpha", "bravo")
        with pytest.raises(ZeroDivisionError), bench.hub.commit():
            bench.sessions.undo(session, 1)
            raise ZeroDivisionError
        assert await bench.texts(session) == ["alpha", "Yes.", "bravo", "Yes."]
        assert len(await bench.hits("bravo")) == 1

    run(test)


def test_resume_mends_half_a_round(run):
    async def test(bench):
        session = await bench.session()
        calls = [Call("c1", "time", {}), Call("c2", "note", {"text": "x"})]
        with bench.hub.commit():
            bench.sessions.add(session, "t1", Message("u1", "user", "go"))
            bench.sessions.add(session, "t1", Message("a1", "assistant", "", calls))
        for _ in range(2):
            await bench.call("session.resume", session=session)
        messages = (await bench.call("session.get", session=session))["messages"]
        assert [result["call"] for result in messages[2]["results"]] == ["c1", "c2"]
        assert len(messages) == 3
        assert bench.events("message.completed")[-1]["body"]["message"]["role"] == "tool"

    run(test)


def test_sessions_used_last_come_first(run):
    async def test(bench):
        ids = []
        for _ in range(3):
            ids.append(await bench.session())
            bench.clock.advance(1)
        await bench.say(ids[0], "hello again")
        listed = (await bench.call("session.list"))["sessions"]
        assert [row["id"] for row in listed] == [ids[0], ids[2], ids[1]]

    run(test)


def test_titles_are_worded_at_rest(run):
    async def test(bench):
        session = await bench.session()
        bench.model.titles = ['"**Plans for a very long trip through the north of Norway**."\nmore']
        await bench.say(session, "please plan a trip to Norway")
        listed = (await bench.call("session.list"))["sessions"]
        assert listed[0]["title"] == "please plan a trip to Norway"
        while not any(e["body"]["title"].startswith("Plans")
                      for e in bench.events("session.updated")):  # fmt: skip
            await asyncio.sleep(0.01)
        title = (await bench.call("session.list"))["sessions"][0]["title"]
        assert title == "Plans for a very long trip through the…" and len(title) <= 40
        assert bench.sessions.untitled() == []

    run(test, titles_idle=0.01)


def test_no_title_is_worded_while_a_turn_runs(run):
    async def test(bench):
        session = await bench.session()
        bench.model.hold.clear()
        await bench.call("turn.send", session=session, text="please tell me a story")
        await asyncio.sleep(0.1)
        assert [role for role, _ in bench.model.asked if role == "aux"] == []
        bench.model.titles = [ModelGone("ask", "away")]
        bench.model.hold.set()
        await bench.rest()
        while bench.model.titles:
            await asyncio.sleep(0.01)
        assert bench.sessions.untitled() == [session]  # a failure is tried again later
        named = (await bench.call("session.create", title="Mine"))["session"]
        await bench.say(named, "please go on")
        assert named not in bench.sessions.untitled()

    run(test, titles_idle=0.01)


@pytest.mark.parametrize(("raw", "title"), [("Title: “Trip”.", "Trip"), ("\n\n## Trip\n", "Trip"),
    ("", ""), ('"""', ""), ("日程「東京」", "日程「東京」".strip("」")), ("a\tb", "ab"),
    ("word " * 30, "word word word word word word word…")])  # fmt: skip
def test_a_title_is_one_clean_line(raw, title):
    assert clean(raw) == title


def test_outbox_holds_each_accepted_message_once(run):
    async def test(bench):
        session = await bench.session()
        bench.model.hold.clear()
        await bench.call("turn.send", session=session, text="please begin")
        await bench.call("turn.send", session=session, text="and then", mode="queue")
        await bench.call("turn.send", session=session, text="also this", mode="steer")
        bench.model.hold.set()
        await bench.rest()
        await bench.call("session.undo", session=session, turns=9)
        rows = [row for row in bench.sessions.outbox.rows() if row.kind == "utterance"]
        said = ["please begin", "and then", "also this"]
        assert [row.body["text"] for row in rows] == said
        assert [row.body["message"] for row in rows] == [row.key for row in rows]
        assert len({row.key for row in rows}) == 3
        bench.sessions.outbox.done(rows[:1])
        left = [row for row in bench.sessions.outbox.rows() if row.kind == "utterance"]
        assert left == rows[1:]
        kinds = {row.kind for row in bench.sessions.outbox.rows()}
        assert kinds == {"utterance", "outcome", "verdict"}

    run(test)


def test_what_is_sent_again_with_its_id_is_said_once(run, refused):
    async def test(bench):
        session, other = await bench.session(), await bench.session()
        bench.model.hold.clear()
        first = await bench.call("turn.send", session=session, text="please", message="a" * 16)
        assert (
            await bench.call("turn.send", session=session, text="please", message="a" * 16) == first
        )
        later = await bench.call(
            "turn.send", session=session, text="more", mode="queue", message="b" * 16
        )
        assert (
            await bench.call("turn.send", session=session, text="more", message="b" * 16) == later
        )
        bench.model.hold.set()
        await bench.rest()
        assert (
            await bench.call("turn.send", session=session, text="more", message="b" * 16) == later
        )
        assert await bench.texts(session) == ["please", "Yes.", "more", "Yes."]
        for bad, where in (("a" * 16, other), ("", session), ("a b c d e", session)):
            with pytest.raises(refused, match="bad_body"):
                await bench.call("turn.send", session=where, text="x", message=bad)

    run(test)
