"""bash with real processes: what it says, what it hides, and that nothing outlives it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.protocol.schema import Call
from exo.core.toolbox.registry import Context, Output, Toolbox, ToolSpec
from exo.tools.workbench import shell
from exo.tools.workbench.shell import bash, clean_environment


def run(
    tmp_path: Path, command: str, timeout: float = 20.0, said: list[str] | None = None
) -> Output:
    emit = (said if said is not None else []).append
    return asyncio.run(bash(Context("s", tmp_path, emit), command, timeout, 0.01))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def children() -> set[str]:
    text = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())], capture_output=True, text=True
    ).stdout
    return {line for line in text.splitlines() if not line.strip().endswith("ps")}


@pytest.mark.parametrize(
    ("command", "ok", "text", "end"),
    [
        ("echo hi; echo no >&2", True, "hi\nno\n", "[exit code 0]"),
        ("exit 7", False, "", "[exit code 7]"),
        ("kill -SEGV $$", False, "", "[ended by SIGSEGV]"),
        ("cat", True, "", "[exit code 0]"),
        ("read x; echo $?", True, "1\n", "[exit code 0]"),
        ("nothing_of_that_name", False, None, "[exit code 127]"),
        ("printf 'gr\\303'; sleep 0.1; printf '\\274n'", True, "grün", "[exit code 0]"),
        ("printf '\\377\\000x'", True, "\ufffd\0x", "[exit code 0]"),
        ("if", False, None, "[exit code 2]"),
        ("pwd -P", True, None, "[exit code 0]"),
    ],
)
def test_output_and_end_are_told(
    tmp_path: Path, command: str, ok: bool, text: str | None, end: str
) -> None:
    output = run(tmp_path, command)
    assert (output.ok, output.end) == (ok, end)
    assert text is None or output.text == text
    assert command != "pwd -P" or output.text.strip() == str(tmp_path.resolve())


def test_output_is_shown_while_it_runs(tmp_path: Path) -> None:
    said: list[str] = []
    run(tmp_path, "echo one; sleep 0.3; echo two", said=said)
    assert said[0] == "one\n" and "".join(said) == "one\ntwo\n"


def test_ten_megabytes_are_kept_in_part_and_shown_in_part(tmp_path: Path) -> None:
    said: list[str] = []
    output = run(tmp_path, "head -c 10000000 /dev/zero | tr '\\0' x; echo end", said=said)
    assert output.ok and len(output.text) == shell.KEEP
    assert "2000004 further characters of output were dropped" in output.end
    assert len("".join(said)) == shell.SHOW


def test_a_flood_is_stopped_in_time(tmp_path: Path) -> None:
    output = run(tmp_path, "yes", timeout=0.5)
    assert not output.ok and output.end.endswith("[stopped after 0.5 s]")


@pytest.mark.parametrize(
    "start",
    [
        "sleep 300 & echo $! > pid; wait",
        "(sleep 300 & echo $! > pid; wait)",
        "setsid sleep 300 & echo $! > pid; sleep 300",
        "setsid sh -c 'sleep 300 & echo $! > pid; exec sleep 300' & sleep 300",
        "trap '' TERM INT HUP; sleep 300 & echo $! > pid; while :; do sleep 1; done",
        "nohup env -i sleep 300 & echo $! > pid; sleep 300",
    ],
)
def test_a_time_out_ends_grandchildren_too(tmp_path: Path, start: str) -> None:
    before = children()
    output = run(tmp_path, start, timeout=0.6)
    assert not output.ok and "stopped after" in output.end
    assert not alive(int((tmp_path / "pid").read_text()))
    assert children() == before  # no zombie either


def test_what_is_left_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    output = run(tmp_path, "setsid sleep 300 & echo $! > pid; echo done")
    assert output.ok and output.text == "done\n" and "in the background" in output.end
    assert not alive(int((tmp_path / "pid").read_text()))


def test_an_interrupt_ends_everything_before_it_returns(tmp_path: Path) -> None:
    box = Toolbox()
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    box.register(ToolSpec("bash", "", schema, bash, timeout=0))

    async def test() -> None:
        args = {"command": "setsid sleep 300 & echo $! > pid; sleep 300"}
        task = asyncio.create_task(box.run(Call("c", "bash", args), Context("s", tmp_path)))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(int((tmp_path / "pid").read_text()))

    asyncio.run(test())


def test_secrets_do_not_reach_the_command(tmp_path: Path, monkeypatch: Any) -> None:
    hidden = {
        "OPENAI_API_KEY": "sk-1",
        "GH_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_ACCESS_KEY_ID": "i",
        "DB_PASSWORD": "p",
        "PGPASSWORD": "p",
        "DATABASE_URL": "postgres://me:word@host/db",
        "EXO_LIFELINE": "5",
    }
    for name, value in (hidden | {"KEYBOARD": "de", "MONKEY": "yes"}).items():
        monkeypatch.setenv(name, value)
    text = run(tmp_path, "env").text
    assert not any(name + "=" in text for name in hidden)
    assert "KEYBOARD=de" in text and "MONKEY=yes" in text and "PATH=" in text
    assert clean_environment({"SSH_AUTH_SOCK": "/x", "AUTH": "y"}) == {"SSH_AUTH_SOCK": "/x"}


@pytest.mark.parametrize("command", ["", "  \n", "echo \0"])
def test_a_command_that_is_none_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ExoError):
        run(tmp_path, command)


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExoError, match="the folder is gone"):
        run(tmp_path / "gone", "true")


def test_commands_run_side_by_side(tmp_path: Path) -> None:
    async def test() -> float:
        begun = time.monotonic()
        context = Context("s", tmp_path)
        done = await asyncio.gather(*(bash(context, "sleep 0.5; echo x") for _ in range(40)))
        assert all(output.text == "x\n" and output.ok for output in done)
        return time.monotonic() - begun

    before = children()  # of other tests, that end when they like
    assert asyncio.run(test()) < 40 * 0.5  # one after the other would take this long at least
    assert not children() - before


def test_what_a_killed_exod_left_is_ended_at_the_next_start(tmp_path: Path) -> None:
    results = tmp_path / "results"
    mark = {shell.MARK: f"{results}:1", "PATH": os.environ["PATH"]}
    left = subprocess.Popen(["sleep", "300"], env=mark, start_new_session=True)
    other = subprocess.Popen(["sleep", "300"], env=mark | {shell.MARK: "other:1"})
    try:
        while shell.marked(f"{results}:") != {left.pid}:
            time.sleep(0.01)  # between fork and exec it has our own environment
        shell.sweep(results)
        assert left.wait(20) == -9 and other.poll() is None
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def test_the_border_of_what_is_kept_cuts_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "KEEP", 20)
    command = "printf 'first line\\nkey-of-mine-0123456789\\nmore\\n'"
    output = asyncio.run(bash(Context("s", tmp_path), command, 20.0, 0.01, lines=True))
    assert output.text == "first line\n" and "dropped" in output.end
    monkeypatch.setattr(shell, "BORDER", 4)
    output = asyncio.run(bash(Context("s", tmp_path), "printf %030d 7", 20.0, 0.01, lines=True))
    assert output.text == "0" * 16
