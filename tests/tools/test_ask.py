"""`exo ask` and `exo chat` as a person runs them, on a fresh home with scripted models."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.files import read_pid
from exo.core.base.home import Home

Exo = Callable[..., "subprocess.CompletedProcess[bytes]"]
COMMAND = [sys.executable, "-m", "exo.tools.cli"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home; the Exo that a command started there in the background is ended."""
    home = Home(tmp_path / "home")
    yield home
    if pid := read_pid(home.lock_file("serve")):
        os.kill(pid, signal.SIGTERM)
        while read_pid(home.lock_file("serve")):
            time.sleep(0.01)


@pytest.fixture
def exo(home: Home) -> Exo:
    """exo(*words, input=b"...", env={...}): run the command to its end."""

    def run(*words: str, input: bytes = b"", env: dict[str, str] | None = None) -> Any:
        environment = {
            **os.environ,
            "EXO_HOME": str(home.root),
            "EXO_MODELS_FAKE": "1",
            **(env or {}),
        }
        return subprocess.run(
            [*COMMAND, *words], input=input, env=environment, capture_output=True, timeout=60
        )

    return run


def test_ask_starts_exo_answers_once_and_goes_on_with_a_session(exo: Exo) -> None:
    first = exo("ask", "hullo there")
    assert (first.returncode, first.stdout) == (0, b"You said: hullo there\n")
    assert first.stderr.startswith(b"exo: starting in the background (process ")
    second = exo("ask", "--json", "what time is it?")
    assert second.returncode == 0 and second.stderr == b""
    outcome = json.loads(second.stdout)
    assert outcome["reply"].startswith("It is ") and outcome["model_called"] is False
    assert (outcome["kind"], outcome["stop_reason"]) == ("command", "end")
    assert [(a["tool"], a["outcome"]) for a in outcome["actions"]] == [("time", "done")]
    assert set(outcome) >= {"session", "recalled", "usage", "seconds"}
    third = exo("ask", "--session", outcome["session"], "-", input="Käse 🧀\n".encode())
    assert third.stdout.decode() == "You said: Käse 🧀\n"
    # the reply that is shown is the reply that is kept, also when it comes in many pieces
    long = exo("ask", "!words 300")
    assert long.stdout.decode().split() == [f"word{n}" for n in range(200)]
    for words, text in (
        (("ask", ""), "the text is empty"),
        (("ask", "\u200b"), "the text is empty"),
        (("ask", "--session", "none", "x"), "session 'none'"),
        (("ask", "!error model_missing\nx"), "exo models get fake"),
        (("ask", "!break internal\none two three four"), "model server"),
    ):
        refused = exo(*words)
        assert refused.returncode == 1, words
        last = refused.stderr.decode().splitlines()[-1]
        assert last.startswith("exo: ") and text in last
        assert "Traceback" not in refused.stderr.decode()
    failed = exo("ask", "--json", "!error model_missing\nx")
    assert failed.returncode == 1 and json.loads(failed.stdout)["stop_reason"] == "error"
    binary = exo("ask", "-", input=b"\xff\xfe\0binary\n")
    assert binary.returncode == 0 and b"binary" in binary.stdout
    megabyte = exo("ask", "-", input=b"word " * 200_000)
    assert megabyte.returncode == 0 and megabyte.stdout.startswith(b"You said: word word")


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("ask",), ("ask", "a", "b"), ("ask", "--none", "x")]
)
def test_wrong_use_is_code_two(exo: Exo, words: tuple[str, ...]) -> None:
    result = exo(*words)
    assert result.returncode == 2 and b"usage: exo" in result.stderr and result.stdout == b""


def test_ask_says_why_exo_does_not_start(exo: Exo, home: Home) -> None:
    home.make().settings_file.write_text('"turn.rounds" = 0')
    result = exo("ask", "hullo")
    assert result.returncode == 1 and result.stdout == b""
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("exo: start exod") and "turn.rounds" in last


@pytest.mark.parametrize(
    ("shell", "code", "out", "says"),
    [
        ("{ask} <&-", 0, "You said: grün\n", ""),
        ("{ask} >&-", 0, "", ""),
        ("{ask} >/dev/full", 1, "", "the disk is full"),
        ("mkdir gone; cd gone; rmdir ../gone; {ask}", 1, "", "work in this folder: it is gone"),
        ("PYTHONIOENCODING=ascii {ask}", 0, "You said: gr?n\n", ""),
    ],
)
def test_ask_in_odd_places(
    exo: Exo, home: Home, tmp_path: Path, shell: str, code: int, out: str, says: str
) -> None:
    exo("ask", "start")
    line = shell.format(ask=f"{shlex.join(COMMAND)} ask --home {home.root} grün")
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout.decode()) == (code, out)
    assert says in done.stderr.decode() and b"Traceback" not in done.stderr


def test_ask_on_a_home_that_is_a_file_says_so(exo: Exo, home: Home) -> None:
    home.root.write_text("mine")
    result = exo("ask", "hullo")
    assert result.returncode == 1 and str(home.root) in result.stderr.decode().splitlines()[-1]
    assert home.root.read_text() == "mine"


def test_chat_takes_turns_from_a_pipe_until_it_ends(exo: Exo) -> None:
    result = exo("chat", input=b"hullo\n\nplease\\\n!error model_missing\nand now\n/quit\nnever\n")
    assert result.returncode == 0
    assert result.stdout.decode().splitlines()[0] == "You said: hullo"
    assert "You said: and now" in result.stdout.decode() and "never" not in result.stdout.decode()
    assert "exo models get fake" in result.stderr.decode()
    result = exo("chat", "--session", "none", input=b"hullo\n")
    assert result.returncode == 1 and "session 'none'" in result.stderr.decode()
