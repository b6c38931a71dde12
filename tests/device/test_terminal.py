"""The handheld in a real pseudo-terminal."""

from __future__ import annotations

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
from collections.abc import Iterator
from pathlib import Path

import pytest
from exo.core.base.errors import ExoError
from exo.core.base.unix import reachable
from exo.device.terminal import TerminalPanel, cells, check
from PIL import Image


def test_cells_are_the_pixels() -> None:
    image = Image.new("1", (4, 4))
    image.putpixel((0, 0), 1)
    image.putpixel((3, 3), 1)
    assert cells(image, braille=True) == ["\u2801\u2880"]
    assert cells(image, braille=False) == ["▘ ", " ▗"]
    assert cells(Image.new("1", (128, 64), 1), braille=True) == ["\u28ff" * 64] * 16
    assert len(cells(Image.new("1", (250, 122)), braille=True)) == 31


def test_a_colour_panel_is_drawn_in_dots() -> None:
    _, writing = os.pipe()
    os.set_blocking(writing, False)
    panel = TerminalPanel((8, 8), "RGB", writing)
    image = Image.new("RGB", (8, 8), (10, 20, 30))
    image.paste((250, 240, 200), (0, 0, 2, 4))
    panel.show(image)
    assert cells(panel.frame, braille=True) == ["\u28ff\u2800\u2800\u2800", "\u2800" * 4]


def test_a_closed_stream_is_no_terminal() -> None:
    with pytest.raises(ExoError, match="no terminal"):
        check(None, sys.stdout)


class Screen:
    """exo-device on a pseudo-terminal."""

    def __init__(self, folder: Path, columns: int = 80, rows: int = 24) -> None:
        self.home, self.output = folder / "home", b""
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        command = [
            sys.executable,
            "-m",
            "exo.device.app",
            "--home",
            str(self.home),
            "--models-fake",
        ]
        environ = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, pattern: str, seconds: float = 60) -> str:
        """Read on until what was written since the last call matches."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text(), re.S):
            assert time.monotonic() < end, self.text()[-3000:]
            if select.select([self.master], [], [], 0.2)[0]:
                self.output += os.read(self.master, 65536)
        seen, self.output = self.text(), b""
        return seen

    def text(self) -> str:
        return self.output.decode(errors="replace")

    def end(self) -> int:
        while self.process.poll() is None:
            if select.select([self.master], [], [], 0.2)[0]:
                self.output += os.read(self.master, 65536)
        return self.process.returncode


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    made = Screen(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.terminate()
        made.end()
    for handle in (made.master, made.slave):
        os.close(handle)


def test_it_draws_types_answers_and_leaves_the_terminal_as_it_was(screen: Screen) -> None:
    # the clock has full cells; it may come with the frame or after it
    screen.until(r"\A(?=.*\u28ff).*╭─ Simulated handheld .*Quit")
    screen.type("héllo 日本\x7f\x7f")
    screen.until("> héllo")
    screen.type("\r")
    screen.until("[\u2801-\u28ff].*[\u2801-\u28ff]")
    screen.type("\x1b[200~/say nothere.wav\x1b[201~\r")
    screen.until(r"nothere\.wav: .*No such file")
    screen.type("/say ~nobodyhere/a.wav\r")
    screen.until(r"nobodyhere/a\.wav: .*No such file")
    screen.type(f"\x1b[200~/say {'x' * 50_000}\x1b[201~\r")  # a message far wider than the screen
    screen.until("read xxxx")
    screen.resize(60, 20)
    os.killpg(screen.process.pid, signal.SIGWINCH)
    screen.until("needs 70x21")
    screen.resize(100, 30)
    os.killpg(screen.process.pid, signal.SIGWINCH)
    screen.until("╭─ Simulated handheld")
    screen.type("\x03")
    assert screen.end() == 0
    assert screen.text().rstrip().endswith("\x1b[?1049l")
    assert termios.tcgetattr(screen.slave) == screen.before
    assert not reachable(screen.home / "state" / "exod.sock")


def test_sigterm_gives_the_terminal_back(screen: Screen) -> None:
    screen.until("╭─ Simulated handheld")
    screen.process.terminate()
    assert screen.end() == 0
    assert "\x1b[?1049l" in screen.text()
    assert termios.tcgetattr(screen.slave) == screen.before


def test_faults_and_fingers_happen_in_the_terminal_too(screen: Screen) -> None:
    screen.until("╭─ Simulated handheld .*Quit")
    screen.type("/unplug mouse\r")
    screen.until(r"write .unplug mic\|speaker\|panel.")
    screen.type("/battery 9\r")
    screen.until("●")  # the light of a low battery, in the frame of its notice or a later one
    screen.type("/battery charging\r")
    screen.until("battery charging")
    screen.type("/double ok\r")
    screen.until("double ok")
    screen.type("\x03")
    assert screen.end() == 0
