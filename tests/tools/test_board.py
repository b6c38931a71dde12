"""`exo board`: the shapes of its JSON, its exit codes, what it says to people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exo.board import detect
from exo.board.profile import names
from exo.tools import board, cli


@pytest.fixture(autouse=True)
def on_a_pc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the tests run."""
    monkeypatch.setattr(detect, "TREE", tmp_path / "no-tree")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.main(["board", *words])
    return code, capsys.readouterr().out


def test_the_list_has_its_shape(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "list", "--json")
    rows = json.loads(out)["boards"]
    assert code == 0
    assert [row["name"] for row in rows] == names()
    assert {tuple(row) for row in rows} == {("name", "title", "panel", "buttons", "audio")}
    (row,) = (row for row in rows if row["name"] == "pisugar-whisplay")
    assert row["panel"] == "st7789 240x280 colour"
    assert (row["buttons"], row["audio"]) == (["talk"], "whisplaysound")


def test_the_list_names_every_board(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "list")
    assert code == 0
    assert all(name in out for name in names())


@pytest.mark.parametrize("name", names())
def test_a_board_is_shown(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out = run(capsys, "show", name, "--json")
    assert code == 0
    assert json.loads(out)["name"] == name
    code, out = run(capsys, "show", name)
    assert code == 0
    assert "button   talk" in out


def test_the_pins_of_a_board_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "show", "pisugar-whisplay")[1]
    assert "DC 27, RST 4, BL 22 (low)" in out
    assert "GPIO 17, on when high" in out
    assert "I2S 18, 19, 20, 21" in out
    assert "config   dtparam=spi=on" in out


def test_a_name_that_is_none_fails_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["board", "show", "nosuch"]) == 1
    assert "no such profile" in capsys.readouterr().err


def test_boards_that_clash(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("check", "adafruit-oled-bonnet", "respeaker-2mic")
    code, out = run(capsys, *words, "--json")
    found = json.loads(out)
    assert code == 1
    assert list(found) == ["ok", "problems"]
    assert found["ok"] is False
    (problem,) = found["problems"]
    assert list(problem) == ["part", "pin", "what", "mend"]
    assert problem["pin"] == 17
    code, out = run(capsys, *words)
    assert code == 1
    assert "GPIO 17" in out


def test_a_board_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "check", "pisugar-whisplay") == (0, "fits\n")
    code, out = run(capsys, "check", "pisugar-whisplay", "--json")
    assert (code, json.loads(out)) == (0, {"ok": True, "problems": []})


def test_without_a_name_the_chosen_board_is_checked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out = run(capsys, "check")
    assert code == 0
    assert out.startswith("board = sim (no board")
    monkeypatch.setenv("EXO_BOARD", "waveshare-oled-1in3")
    assert run(capsys, "check")[1].startswith("board = waveshare-oled-1in3 (EXO_BOARD)")


def test_files_that_are_named_are_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config, cards = tmp_path / "config.txt", tmp_path / "cards"
    config.write_text("dtparam=spi=on\n")
    cards.write_text("--- no soundcards ---\n")
    words = ("check", "pisugar-whisplay", "--config", str(config), "--cards", str(cards))
    code, out = run(capsys, *words)
    assert code == 1
    assert "config.txt lacks dtparam=i2c_arm=on" in out
    assert "no sound card whisplaysound" in out
    config.unlink()
    assert cli.main(["board", *words]) == 1
    assert str(config) in capsys.readouterr().err


def test_on_a_board_its_own_files_are_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.txt").write_text("")
    monkeypatch.setattr(board, "CONFIG", tmp_path / "config.txt")
    monkeypatch.setattr(board, "CARDS", tmp_path / "absent")
    assert run(capsys, "check", "waveshare-oled-1in3")[0] == 0
    (tmp_path / "model").write_bytes(b"Raspberry Pi 5 Model B Rev 1.0\0")
    monkeypatch.setattr(detect, "TREE", tmp_path)
    code, out = run(capsys, "check", "waveshare-oled-1in3")
    assert code == 1
    assert "config.txt lacks dtparam=spi=on" in out
