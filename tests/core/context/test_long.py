"""2,000 messages against the real local model: what the server counts, not what we believe.

The talk is scripted, so that no reply is generated; the model really tokenises and computes every
prompt, and summarises the first MODELLED messages. Then comes a restart, and rules go on alone, which
saves an hour. EXO_TEST_MESSAGES and EXO_TEST_MODELLED shorten it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import post
from exo.core.context.engine import ContextEngine
from exo.core.engine.sessions import Sessions, open_database
from exo.core.protocol.schema import Call, Message, ToolResult
from exo.core.router.router import Router
from exo.core.server.hub import Hub
from exo.tools.supervisor import Supervisor

MESSAGES = int(os.environ.get("EXO_TEST_MESSAGES", "2000"))
MODELLED = int(os.environ.get("EXO_TEST_MODELLED", "200"))
SYSTEM = "You are a small companion. Answer in one to three short, plain sentences."
OPENING = [{"role": "system", "content": SYSTEM}]
TALK = (
    ("Could you tell me again how the bread got its crust?", "With steam in the first ten minutes."),
    ("My train leaves at 07:{n:02} from platform {n}.", "I will remember platform {n}."),
    ("The file is in /home/pi/work/part-{n}.txt now.", "Good, part {n} is there."),
    ("I do not feel well today, it all went wrong at work and then it rained as well.", "That sounds hard. Take one thing at a time, and leave the rest for tomorrow."),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home").make()
    with Supervisor(made, ["models"]) as services:
        services.wait_ready()
        yield made


def script(count: int) -> Iterator[list[Message]]:
    """Turns; every fifth has a tool round."""
    n = 0
    while n < count:
        asked, said = (text.format(n=n % 60) for text in TALK[n // 2 % len(TALK)])
        turn = [Message(f"m{n + 1}", "user", f"({n + 1}) {asked}")]
        if n // 2 % 5 == 0:
            call = Call(f"c{n}", "read_file", {"path": f"notes-{n}.txt"})
            turn.append(Message(f"m{n + 2}", "assistant", "", [call]))
            result = ToolResult(f"c{n}", True, f"({n + 3}) line of the notes\n" * 30)
            turn.append(Message(f"m{n + 3}", "tool", "", results=[result]))
        place = n + len(turn) + 1
        turn.append(Message(f"m{place}", "assistant", f"({place}) {said}"))
        n += len(turn)
        yield turn


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_thousand_messages_with_the_local_model(home: Home) -> None:
    settings, clock = Settings(home.settings_file), SystemClock()
    database = open_database(home.sessions_db)
    sessions, model = Sessions(database, clock), Router(home.state, 120.0)
    with database.transaction():
        session = sessions.create("", "/")

    async def run() -> dict[str, float]:
        hub, options = Hub(database, clock), settings
        engine = ContextEngine(
            database, hub, model, lambda session, options=options: options, clock
        )
        sent = computed = most = turns = 0
        slowest = 0.0
        for turn in script(MESSAGES):
            with database.transaction():
                for message in turn[:1]:
                    sessions.add(session, "t", message)
            with engine.live():
                for n in range(1, len(turn)):
                    begun = time.perf_counter()
                    request = await engine.build(session, OPENING)
                    slowest = max(slowest, time.perf_counter() - begun)
                    status, answer = await asyncio.to_thread(
                        post, home.models_socket, "/v1/prefill",
                        {"messages": request, "prompt_cache_key": session}, timeout=120.0,
                    )  # fmt: skip
                    assert status == 200, answer
                    usage = json.loads(answer)
                    sent += usage["prompt_tokens"]
                    computed += usage["evaluated_tokens"]
                    most = max(most, usage["prompt_tokens"])
                    check(request, int(turn[n - 1].id[1:]))
                    with database.transaction():
                        sessions.add(session, "t", turn[n])
            turns += 1
            if options is settings and int(turn[-1].id[1:]) >= MODELLED:
                options = Settings(home.settings_file, {"EXO_CONTEXT_SUMMARIES": "rules"})
                await engine.close()
                engine = ContextEngine(
                    database, hub, model, lambda session, options=options: options, clock
                )
            await engine.rest(session)
            while engine.lanes.pending("live"):
                await asyncio.sleep(0.005)
        await engine.close()
        await model.close()
        return {
            "turns": turns,
            "sent": sent,
            "computed": computed,
            "most": most,
            "slowest": slowest,
        }

    figures = asyncio.run(run())
    print("figures:", figures, "computed/sent:", figures["computed"] / figures["sent"])
    rows = database.rows("SELECT made_by, level, count(*) FROM nodes GROUP BY 1, 2 ORDER BY 2, 1")
    print("nodes:", rows)
    folds = database.rows("SELECT count(*) FROM events WHERE data LIKE '%context.compacted%'")
    print("folds:", folds[0][0])
    database.close()
    assert figures["most"] <= 4096 - 200
    assert figures["computed"] / figures["sent"] < 0.3  # a bug's size; the README has the figure


def check(request: list[dict[str, object]], count: int) -> None:
    """Every message up to `count` is there: under a range, or by its own number or its round."""
    shown: set[int] = set()
    for each in request[1:]:
        text = str(each["content"])
        if text.startswith("Background"):
            for first, last in re.findall(r"\[messages (\d+)-(\d+)\]", text):
                shown |= set(range(int(first), int(last) + 1))
        if found := re.match(r"\((\d+)\)", text):
            shown.add(int(found[1]))
            if each["role"] == "tool":
                shown.add(int(found[1]) - 1)
    missing = set(range(1, count + 1)) - shown
    # a call without a result yet is the last message, and has no number of its own
    assert missing <= {count}, missing
