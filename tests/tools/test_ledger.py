"""`exo ledger` as a person and as a program meet it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.keys import DeviceKey
from exo.core.ledger.ledger import Ledger
from exo.tools import cli, verify_export
from exo.tools.clock import FakeClock


@pytest.fixture
def exo(home: Home, capsys: pytest.CaptureFixture[str]) -> Any:
    """exo(*words): exit code, stdout, stderr of `exo ledger ...`."""

    def run(*words: str) -> tuple[int, str, str]:
        try:
            code = cli.main(["ledger", *words, "--home", str(home.root)])
        except SystemExit as error:
            code = int(str(error.code))
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def ids(home: Home) -> list[str]:
    """Ids of a device, an utterance, a rule that names it, a forgotten note and its forget entry."""
    ledger = Ledger(home, FakeClock())
    (said,) = ledger.append(
        Draft("utterance", {"text": "Hello \x1b[31mred\u202e\nworld", "channel": "typed"})
    )
    rule, note = ledger.append(
        Draft("rule", {"text": "x" * 200}, (said.id,)), Draft("note", {"text": "gone"})
    )
    ledger.forget([note.id], "asked")
    found = [entry.id for entry in ledger.entries()]
    ledger.close()
    return found


def test_without_a_record_it_says_so_and_makes_none(exo: Any, home: Home) -> None:
    for words in (["verify"], ["tail"], ["show", "12345678"], ["export"]):
        code, out, err = exo(*words)
        assert code == 1 and out == "" and "no record" in err
    assert not home.store.exists() and set(home.state.iterdir()) == {home.logs, home.cache}


def test_tail(exo: Any, ids: list[str]) -> None:
    code, out, _ = exo("tail", "--json")
    events = json.loads(out)["events"]
    assert code == 0 and [event["id"] for event in events] == ids
    keys = ["id", "author", "seq", "lc", "ts", "scope", "kind", "refs", "body"]
    assert all(list(event) == keys for event in events)
    assert events[2]["refs"] == [ids[1]] and events[3]["body"] is None
    assert [
        event["id"] for event in json.loads(exo("tail", "-n", "2", "--json")[1])["events"]
    ] == ids[-2:]
    assert json.loads(exo("tail", "-n", "0", "--json")[1]) == {"events": []}
    code, out, _ = exo("tail")
    assert len(out.splitlines()) == 5 and "\x1b" not in out and "\u202e" not in out
    assert "+0000  utterance  Hello [31mred world" in out and "(forgotten)" in out and "…" in out
    assert exo("tail", "-n", "-1")[0] == exo("tail", "-n", "x")[0] == 2


def test_show(exo: Any, ids: list[str]) -> None:
    code, out, _ = exo("show", ids[1][:8], "--json")
    assert code == 0 and json.loads(out)["id"] == ids[1]
    code, out, _ = exo("show", ids[1])
    assert code == 0 and "utterance" in out and "\x1b" not in out
    assert "forgotten" in exo("show", ids[3])[1]
    code, out, err = exo("show", "nothing")
    assert code == 1 and "no such entry" in err and out == ""


def test_verify(exo: Any, ids: list[str], home: Home) -> None:
    code, out, _ = exo("verify", "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"] and report["fault"] is None
    ((author, count),) = report["authors"].items()
    assert count == 5 and exo("verify", "--quick", "--json")[0] == 0
    assert "5 entries good" in exo("verify")[1] and exo("verify", "--full", "--quick")[0] == 2
    link = sqlite3.connect(home.store / "private" / "ledger.sqlite")
    link.execute("DROP TRIGGER events_no_update")
    link.execute("UPDATE events SET kind = 'note' WHERE seq = 3")
    link.commit()
    link.close()
    code, out, _ = exo("verify", "--json")
    fault = json.loads(out)["fault"]
    assert code == 1 and fault["what"] and not json.loads(out)["ok"]
    assert (fault["author"], fault["seq"], fault["id"]) == (author, 3, ids[2])
    code, out, _ = exo("verify")
    assert code == 1 and f"entry 3 of {author} {ids[2]}" in out


def test_a_file_that_is_no_database_is_a_fault(exo: Any, ids: list[str], home: Home) -> None:
    path = home.store / "private" / "ledger.sqlite"
    path.write_bytes(b"nothing of the kind" * 1000)
    code, out, _ = exo("verify", "--json")
    report = json.loads(out)
    assert code == 1 and not report["ok"] and "not a database" in report["fault"]["what"]


def test_export(exo: Any, ids: list[str], home: Home, tmp_path: Path) -> None:
    code, out, _ = exo("export")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [line["id"] for line in lines] == ids
    assert all(list(line) == ["event", "id", "chain", "sig", "salt", "body"] for line in lines)
    assert lines[3]["salt"] is None and lines[3]["body"] is None
    key = DeviceKey.load(home.state / "device.key")
    assert key and (key.seq, key.chain) == (5, lines[-1]["chain"])
    path = tmp_path / "out.jsonl"
    code, told, _ = exo("export", "--out", str(path), "--json")
    assert code == 0 and json.loads(told) == {"entries": 5, "file": str(path)}
    assert path.read_text() == out and path.stat().st_mode & 0o777 == 0o600
    assert verify_export.verify(path.read_text().splitlines()) == {key.key.public: 5}
    code, _, err = exo("export", "--out", str(tmp_path / "none" / "x"))
    assert code == 1 and str(tmp_path / "none") in err


def test_what_another_process_appends_is_seen(exo: Any, ids: list[str], home: Home) -> None:
    ledger = Ledger(home, FakeClock())
    new = ledger.append(Draft("note", {"text": "now"}), durable=False)[0]
    assert json.loads(exo("tail", "-n", "1", "--json")[1])["events"][0]["id"] == new.id
    ledger.close()
