"""The line client, in a pipe and in a terminal of 80 by 24, against real processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from exo.core.base.client import Client
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.tools.attach import attach, paths
from exo.tools.supervisor import Supervisor
from exo.tools.transcript import Transcript, fold, visible

PATIENCE = 60.0  # seconds
CHAT = [sys.executable, "-m", "exo.tools.cli", "chat", "--home"]


@pytest.fixture
def exo(tmp_path):
    """A running Exo with scripted models; its home."""
    home = Home(tmp_path / "h").make()
    with Supervisor(home, ["exod", "models"], {"models": ("--fake",)}) as services:
        services.wait_ready()
        yield home, services


@pytest.fixture
def folder(tmp_path):
    """The folder in which the client is started."""
    path = tmp_path / "here"
    path.mkdir()
    (path / "hello.txt").write_text("one\ntwo\nthree\n")
    return path


def pipe(home, folder, text, *words):
    return subprocess.run(
        [*CHAT, str(home.root), *words],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=PATIENCE,
    )


class Terminal:
    """`exo chat` on a pseudo-terminal; `seen` is all it wrote, without escape sequences."""

    def __init__(self, home, folder, *words, term="xterm-256color"):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*CHAT, str(home.root), *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=os.environ | {"TERM": term},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._raw = b""

    @property
    def seen(self):
        text = re.sub(
            r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|.)", "", self._raw.decode(errors="replace")
        )
        return text.replace("\r", "")

    def type(self, text):
        os.write(self._master, text.encode())

    def wait(self, wanted, count=1):
        """Until `wanted` was written `count` times."""
        end = time.monotonic() + PATIENCE
        while self.seen.count(wanted) < count:
            assert time.monotonic() < end, f"no {wanted!r} in:\n{self.seen[-3000:]}"
            self._read()

    def ends(self):
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self._read()
        return self.process.poll()

    def _read(self):
        if select.select([self._master], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                piece = os.read(self._master, 65536)
                self._raw += piece
                if b"\x1b[6n" in piece:  # where is the cursor?
                    os.write(self._master, b"\x1b[1;1R")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(folder):
    opened = []

    def open_(home, *words, **more):
        opened.append(Terminal(home, folder, *words, **more))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def test_a_pipe_gets_the_replies_and_nothing_else(exo, folder):
    home, _ = exo
    text = (
        "please\\\n!say First answer.\n/nope\nplease\\\n!tool time {}\nlook at @hello.txt:2-3 now\n"
    )
    result = pipe(home, folder, text)
    assert result.returncode == 0
    first, second, third = result.stdout.splitlines()
    assert first == "First answer."
    assert second.startswith("Done: It is ")
    assert (
        third
        == "You said: look at @hello.txt:2-3 now File hello.txt lines 2 to 3: ``` two three ```"
    )
    assert "+ time: 1 line (/output 1)" in result.stderr
    assert "there is no /nope" in result.stderr


def test_commands_in_a_pipe(exo, folder):
    home, _ = exo
    text = (
        "please say apples\nplease say pears\n/undo\n/search pears\n/search apples\n/fork\n/history\n"
        "/new Other\n/sessions\n/resume 2\n/models\n/tools\n/help\n/output 9\n/quit\nnever said\n"
    )
    result = pipe(home, folder, text)
    assert result.returncode == 0
    for line in ("1 turn removed; files stay as they are", "nothing was found", "/resume N goes there",
                 "main: local:main", "there is no such output"):  # fmt: skip
        assert line in result.stdout.splitlines()
    assert "«apples»" in result.stdout and "Other" in result.stdout
    assert "never said" not in result.stdout
    session = re.findall(r"session (\w+)", result.stdout)[0]
    assert Client(home.exod_socket).call("session.get", session=session)["session"]["parent"]


def test_a_shell_command_goes_through_the_core(exo, folder):
    home, _ = exo
    tools = {row["name"] for row in Client(home.exod_socket).call("tools.list")["tools"]}
    result = pipe(home, folder, "!echo from the shell\n")
    if "bash" in tools:
        assert "from the shell" in result.stdout
    else:
        assert "there is no tool 'bash'" in result.stderr


def test_streaming_commands_and_leaving_at_80_by_24(exo, terminal):
    home, _ = exo
    screen = terminal(home)
    screen.wait(">")
    screen.type("please go on\r")
    screen.wait("You said: please go on")
    screen.type("/he\r")  # so much of a name as tells it apart
    screen.wait("what can be typed")
    screen.type("read @hel")
    screen.wait("hello.txt")  # the menu
    screen.type("\t")
    screen.wait("lo.txt", 2)
    screen.type("\r")
    screen.wait("File hello.txt: ``` one two three ```")
    words = " ".join(f"w{n}" for n in range(100))
    screen.type(f"{words}\r")  # wider than the screen: broken at words, nothing lost
    screen.wait("You said: w0")
    screen.wait("w39", 3)
    screen.type("\x04")
    assert screen.ends() == 0


def test_typing_while_a_turn_runs_queues_and_ctrl_c_stops(exo, terminal):
    home, _ = exo
    session = Client(home.exod_socket).call("session.create")["session"]
    screen = terminal(home, "--session", session)
    screen.wait(">")
    client = Client(home.exod_socket)
    client.call("turn.send", session=session, text="please\n!words 150\n!delay 0.2")
    screen.wait("answers")
    screen.wait("word2")
    screen.type("and this after\r")
    screen.wait("> and this after")
    screen.type("\x03")
    screen.wait("stopped: interrupted")
    screen.wait("You said: and this after")
    screen.type("\x04")  # Ctrl-C would stop the second turn if it still runs
    assert screen.ends() == 0
    texts = [m["text"] for m in client.call("session.get", session=session)["messages"]]
    assert texts.count("and this after") == 1


def test_a_restart_of_exod_loses_nothing(exo, terminal):
    home, services = exo
    screen = terminal(home)
    screen.wait(">")
    screen.type("please say one\r")
    screen.wait("You said: please say one")
    os.kill(services.pids()["exod"], signal.SIGKILL)
    screen.type("please say two\r")  # nobody answers now: it is sent until somebody does
    time.sleep(0.3)
    services.tick()
    services.wait_ready()
    screen.wait("You said: please say two")
    session = Client(home.exod_socket).call("session.list")["sessions"][0]["id"]
    messages = Client(home.exod_socket).call("session.get", session=session)["messages"]
    assert [m["text"] for m in messages if m["role"] == "user"] == [
        "please say one",
        "please say two",
    ]
    screen.type("/quit\r")
    assert screen.ends() == 0


def test_a_plain_terminal_works_too(exo, terminal):
    home, _ = exo
    screen = terminal(home, term="dumb")
    screen.wait(">")
    screen.type("please go on\n")
    screen.wait("You said: please go on")
    screen.wait(">", 2)
    screen.type("please\\\n")
    screen.type("!words 150\\\n!delay 0.2\n")
    screen.wait("word2")
    screen.type("\x03")
    screen.wait("stopped: interrupted")
    screen.type("/quit\n")
    assert screen.ends() == 0


def test_timers_ring_in_the_chat(exo, terminal):
    home, _ = exo
    screen = terminal(home)
    screen.wait(">")
    screen.type("set a timer for 1 second\r")
    screen.wait("Your timer is done.")


# ---- without processes ---------------------------------------------------------------------------


class Paper:
    def __init__(self):
        self.shown = []

    def text(self, piece):
        self.shown.append(piece)

    def line(self, text, kind):
        self.shown.append(f"{kind}: {text}")

    def end(self):
        pass


def event(seq, kind, session="s", **body):
    return {"seq": seq, "session": session, "type": kind, "body": body}


def test_transcript_shows_text_once_and_folds_tools():
    paper = Paper()
    script = Transcript(paper, "s", quiet_until=1)
    said = {"id": "m", "role": "assistant", "text": "Hello there."}
    for each in (
        event(1, "message.delta", turn="t", message="old", text="from before"),
        event(2, "turn.started", turn="t"),
        event(3, "message.delta", turn="t", message="m", text="Hello"),
        event(4, "message.completed", turn="t", message=said),
        event(
            5,
            "tool.started",
            turn="t",
            call="c",
            tool="bash",
            args={"command": "x" * 99},
            risk="high",
        ),
        event(6, "tool.completed", call="c", ok=True, text="a\x1b[2Jb\nc", ms=1500),
        event(7, "message.delta", "other", turn="u", message="n", text="not here"),
        event(8, "turn.completed", turn="t", stop_reason="end", usage={}),
    ):
        script.take(each)
    assert "".join(paper.shown[:2]) == "Hello there."
    assert paper.shown[2] == f"tool: + bash {'x' * 43}…: 2 lines, 1.5 s (/output 1)"
    assert script.outputs == [("bash " + "x" * 43 + "…", "a[2Jb\nc")]
    assert len(paper.shown) == 3 and script.running == {} and script.ended == {"t": "end"}


def test_transcript_knows_open_approvals_from_before():
    script = Transcript(Paper(), "s", quiet_until=5)
    asks = {"summary": "push", "risk": "high", "tool": "bash", "args": {"command": "git push"}}
    script.take(event(1, "approval.requested", request="r", expires=0, **asks))
    script.take(event(2, "approval.requested", "other", request="q", expires=0, **asks))
    assert script.approval()["request"] == "r"
    script.take(event(6, "approval.resolved", request="r", choice="allow", by="device"))
    assert script.approval() is None and "q" in script.asked


def test_what_a_terminal_would_obey_is_not_shown():
    assert visible("a\x1b]0;x\x07b\x9bc\x7f\td") == "a]0;xbc    d"
    assert visible("rm x\u202e txt.a\u2066 שלום\u200f") == "rm x txt.a שלום\u200f"
    assert fold({"a": 1, "b": "é\n"}) == '{"a": 1, "b": "é\\n"}'


def test_attached_files_have_limits(tmp_path):
    (tmp_path / "big.txt").write_text("x" * 100_000)
    (tmp_path / "a b.txt").write_text("spaced")
    (tmp_path / "raw").write_bytes(b"\0\1")
    assert len(attach("see @big.txt @big.txt @big.txt", tmp_path)) < 65_000
    assert "spaced" in attach('see @"a b.txt", please', tmp_path)
    assert attach("mail me@big.txt or @nobody or @", tmp_path) == "mail me@big.txt or @nobody or @"
    for none in ("@~nobody-here/x", "@" + "x" * 300, "@x\0y"):
        assert attach(none, tmp_path) == none
    assert paths("~nobody-here/x", tmp_path) == []
    with pytest.raises(ExoError, match="no text file"):
        attach("@raw", tmp_path)
    assert paths("a", tmp_path) == ["a b.txt"] and paths("nope/", tmp_path) == []
    assert f"{tmp_path}/big.txt" in paths(f"{tmp_path}/b", Path("/"))
