"""The `exo` command as a whole: what it says when it is used wrongly, and of what failed elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from exo.core.base.errors import ProtocolError
from exo.tools import doctor
from exo.tools.cli import main


def test_alone_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr().err
    assert "remember" in said and "what is missing or wrong here" in said


@pytest.mark.parametrize("words", [["recall"], ["decide"], ["decide", "x"], ["gate", "check"]])
def test_wrong_use_is_told_from_what_failed(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--home", str(tmp_path / "home")]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"exo: {words[0]}") and said.out == ""
    assert not (tmp_path / "home/state/serve.pid").exists()


def test_what_exod_refuses_is_told_without_the_name_of_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(options: object) -> int:
        raise ProtocolError("command.run", "find the tool 'x': there is none")

    monkeypatch.setattr(doctor, "doctor", refused)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == "exo: find the tool 'x': there is none\n"


def test_names_to_choose_from_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "show", "nope"]) == 1
    assert "adafruit-oled-bonnet, panel-rp2040, pimoroni" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.py"
    assert main(["tool", "add", str(path), "--home", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"exo: read {path}: No such file or directory\n"


def test_a_file_that_runs_alone_is_told_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "count.py"
    path.write_text("import exo\ndef run():\n    return exo.space_list()\n")
    assert main(["sandbox", "run", str(path), "--home", str(tmp_path)]) == 1
    assert "`exo tool add`" in capsys.readouterr().err
