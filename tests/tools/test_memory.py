"""The commands on the files themselves, without exod."""

from __future__ import annotations

import argparse
import io
import json
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.engine.sessions import Sessions, Waiting, open_database
from exo.core.ledger.ledger import Ledger
from exo.core.retrieve.memory import Memory
from exo.tools import cli
from exo.tools import memory as commands


def kept(home: Home, *texts: str) -> list[str]:
    memory = Memory(home, SystemClock())
    ids = [memory.remember(text)["id"] for text in texts]
    memory.close()
    return ids


def forget(home: Home, id_: str) -> int:
    return commands.forget(argparse.Namespace(home=str(home.root), id=id_, json=True))


def test_what_waits_for_the_record_is_taken_in_before_anything_is_forgotten(tmp_path: Path) -> None:
    home = Home(tmp_path / "h").make()
    [id_] = kept(home, "my aunt is called Quexmoor")
    with closing(open_database(home.sessions_db)) as database, database.transaction():
        said = {"message": "m1234567", "channel": "typed", "text": "Quexmoor is a town too"}
        Sessions(database, SystemClock()).outbox.put("utterance", "m1234567", "s", "t", **said)
    assert forget(home, id_) == 0
    with closing(Ledger(home, SystemClock(), enrol=False)) as ledger:
        bodies = [entry.body or {} for entry in ledger.entries(kinds=("utterance",))]
    assert [body["text"] for body in bodies] == ["Quexmoor is a town too"]


def test_the_turn_of_a_queued_message_that_is_forgotten_ends(tmp_path: Path) -> None:
    home = Home(tmp_path / "h").make()
    with closing(open_database(home.sessions_db)) as database:
        sessions = Sessions(database, SystemClock())
        with database.transaction():
            session = sessions.create("", tmp_path, None)
            text = "my aunt is called Quexmoor"
            sessions.wait(session, Waiting("t1", "m1234567", text, "queue"), "typed")
        memory = Memory(home, SystemClock())
        memory.write(sessions.outbox.rows())
        [said] = memory.ledger.entries(kinds=("utterance",))
        memory.close()
        assert forget(home, said.id) == 0
        assert sessions.waiting(session) == [] and sessions.sent(session, "m1234567") == "t1"
        [[data]] = database.rows("SELECT data FROM events WHERE session = ?", session)
    event = json.loads(data)
    assert event["type"] == "turn.completed" and event["body"]["turn"] == "t1"


def test_a_line_that_is_no_question_is_answered_and_the_next_ones_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path / "h").make()
    kept(home, "my cat is called Plum")
    good = b'{"id": 1, "query": "my cat"}'
    bad = [b"my cat", b"[1]", b"\xff", b"[" * 100_000, b'{"id": 2, "query": 5}', b'{"at": "never"}']
    bad += [rb'{"id": "\ud800", "query": null}']

    def asked(*lines: bytes) -> tuple[int, list[dict[str, Any]]]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines))))
        code = cli.main(["recall", "--stdin", "--home", str(home.root)])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    code, found = asked(*bad, b"", good)
    assert code == 1 and [set(each) for each in found[:-1]] == [{"id", "error"}] * len(bad)
    assert [each["id"] for each in found] == [None, None, None, None, 2, None, "?", 1]
    assert found[-1]["hits"]
    assert asked(good)[0] == 0


def test_two_that_forget_at_once_wait_for_each_other(tmp_path: Path) -> None:
    home = Home(tmp_path / "h").make()
    ids = kept(home, "my cat is called Plum", "my dog is called Quince", "my cow is called Fig")
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda id_=id_: codes.append(forget(home, id_)))  # type: ignore[misc]
        for id_ in ids
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0, 0]
