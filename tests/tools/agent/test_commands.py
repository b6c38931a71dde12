"""What `exo tool`, `exo artifact`, `exo secret` and `exo sandbox run` say to a person, against an exod that runs."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from exo.core.base.home import Home
from exo.tools.agent import command
from exo.tools.cli import main

TOOL = """# /// exo-tool
# description = "Count the words of a text."
# [parameters.text]
# type = "string"
# [[tests]]
# args = {text = "a b c"}
# expect = 3
# ///
def run(text):
    return len(text.split())
"""


class Said:
    """`exo WORDS...`: its code, and all that it printed."""

    def __init__(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        self._home, self._capsys = home, capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main([*words, "--home", str(self._home.root)])
        told = self._capsys.readouterr()
        return code, told.out + told.err


@pytest.fixture
def said(exo: Home, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(exo, capsys)


def test_a_tool_is_run_by_hand(said: Said, tmp_path: Path) -> None:
    file = tmp_path / "word_count.py"
    file.write_text(TOOL)
    assert said("tool", "run", "word_count")[0] == 1
    assert said("tool", "add", str(file))[0] == 0
    code, text = said("tool", "replay", "word_count")
    assert code == 0 and "0 calls made again; none is kept: it was not called yet" in text
    assert said("tool", "run", "word_count", '{"text": "one two"}') == (0, "2\n")
    code, text = said("tool", "run", "word_count")
    assert code == 1 and "'text' is missing" in text
    assert "no JSON" in said("tool", "run", "word_count", "{")[1]
    assert "1 calls made again" in said("tool", "replay", "word_count")[1]
    code, text = said("task", "add", "@every 1m", "words", "--if", "word_count")
    assert code == 1 and "'text' is missing; give what it needs: --with JSON" in text
    words = ["task", "add", "@every 1h", "words", "--if", "word_count", "--with", '{"text": "a"}']
    assert said(*words)[0] == 0
    assert said("tool", "remove", "word_count")[0] == 0
    assert "no agent tool has that name" in said("tool", "run", "word_count")[1]


def test_artifacts_say_what_is_the_case(said: Said, tmp_path: Path) -> None:
    name, file = "settings/context", tmp_path / "text"
    code, text = said("artifact", "show", name)
    assert code == 1 and "nothing was set yet: what is built in holds" in text
    assert "there is no such artifact" in said("artifact", "show", "nothing/here")[1]
    for n in (7, 8):
        file.write_text(f"context.tail = {n}")
        assert said("artifact", "set", name, str(file))[0] == 0
    code, text = said("artifact", "use", name, "2")
    assert code == 1 and "that text holds already" in text
    assert "version 3 holds" in said("artifact", "use", name, "1")[1]
    assert "holds already, as version 3" in said("artifact", "use", name, "1")[1]
    assert said("artifact", "remove", name)[0] == 0
    code, text = said("artifact", "remove", name)
    assert code == 1 and "it has ended already: what is built in holds" in text
    file.write_text("context.tail = 0x" + "f" * 20_000)
    assert "context.tail (line 1)" in said("artifact", "set", name, str(file))[1]


@pytest.mark.parametrize(
    ("name", "value", "hosts", "why"),
    [
        ("key", "abc", "a.b", "its value has 3 characters, 6 or more are wanted"),
        ("key", "tab\tbed-value", "a.b", "characters that no request can carry"),
        ("my key", "abcdef", "a.b", "a name has 1 to 64 letters"),
        ("key", "abcdef", "https://a.b/c", "its hosts are to be like"),
    ],
)
def test_a_secret_that_is_refused_says_which_part_it_is(
    said: Said, monkeypatch: pytest.MonkeyPatch, name: str, value: str, hosts: str, why: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{value}\n"))
    code, text = said("secret", "add", name, hosts)
    assert code == 1 and why in text and value not in text


def test_a_file_that_fails_in_the_sandbox_shows_its_own_line(said: Said, tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text('import json\nprint("begun")\ndef run():\n    x = {}\n    return x["a"]\n')
    code, text = said("sandbox", "run", str(file))
    assert code == 1 and text.startswith("begun\n") and "Traceback" not in text
    assert 'KeyError: a (line 5: return x["a"])' in text
    file.write_text("def run(:\n")
    assert "SyntaxError: invalid syntax (line 1: def run(:)" in said("sandbox", "run", str(file))[1]


def test_a_tool_whose_call_waits_for_a_person_is_waited_for(
    said: Said, exo: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "noting.py"
    can = '# can = ["space"]\n# [parameters.text]'
    file.write_text(TOOL.replace("# [parameters.text]", can))
    code, text = said("tool", "add", str(file))
    assert code == 0, text
    monkeypatch.setattr(command, "WAIT", 2.0)
    code, text = said("tool", "run", "noting", '{"text": "one two"}')
    assert code == 1 and "approval is wanted" in text and "`exo tui`" in text
    assert "waited for a person to allow" in text
