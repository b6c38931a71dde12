"""`exo doctor` finds planted faults and says what mends them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.tools import cli
from exo.tools.doctor import examine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("EXO_MODELS", str(tmp_path / "no-models"))
    return Home(tmp_path / "home").make()


def faults(home: Home, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    code = cli.main(["doctor", "--json", "--home", str(home.root)])
    report = json.loads(capsys.readouterr().out)
    found = {row["part"]: row for row in report["findings"] if row["state"] == "fault"}
    assert code == (1 if found else 0) and report["ok"] is (not found)
    assert all(row["mend"] for row in found.values())
    return found


def test_missing_models_are_named_with_the_command_that_fetches_them(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    models = {part: row for part, row in faults(home, capsys).items() if part.startswith("model ")}
    assert models
    for part, row in models.items():
        assert row["mend"] == f"exo models get {part.removeprefix('model ')}"


def test_bad_settings_file_is_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert "settings" not in faults(home, capsys)
    home.settings_file.write_text("= nonsense")
    row = faults(home, capsys)["settings"]
    assert str(home.settings_file) in row["what"] and str(home.settings_file) in row["mend"]


def test_home_that_cannot_be_written_is_named(
    home: Home, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    row = faults(Home(tmp_path / "file" / "home"), capsys)["home"]
    assert "cannot be" in row["what"]


def test_socket_without_an_exod_behind_it_is_told_when_one_is_to_run(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    import os

    home.lock_file("serve").write_text(f"{os.getpid()}\n")
    (home.logs / "exod.log").write_text("exod: something went wrong\n")
    row = faults(home, capsys)["exod"]
    assert "something went wrong" in row["what"]


def test_report_for_people_ends_in_a_verdict(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--home", str(home.root)]) == 1
    out = capsys.readouterr().out
    assert "FAULT" in out and "fault(s)" in out.strip().splitlines()[-1]


def test_a_broken_record_an_unknown_setting_and_keys_are_named(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(home, SystemClock())
    [entry] = ledger.append(Draft("note", {"text": "hello"}))
    ledger.close()
    monkeypatch.setenv("EXO_VOICE_BAKEND", "espeak")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    rows = {(row.part, row.state): row.what for row in examine(home)}
    assert rows["record", "ok"].startswith("2 entries")
    assert "EXO_VOICE_BAKEND" in rows["settings", "warning"]
    assert rows["providers", "ok"] == "OPENAI_API_KEY"
    with closing(sqlite3.connect(home.store / "private" / "ledger.sqlite")) as link:
        link.execute("DROP TRIGGER bodies_no_update")
        link.execute("UPDATE bodies SET body = replace(body, 'hello', 'hallo')")
        link.commit()
    [fault] = [row for row in examine(home) if row.part == "record"]
    assert fault.state == "fault" and f"entry {entry.seq} of" in fault.what
