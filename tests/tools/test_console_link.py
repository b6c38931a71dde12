"""Both ends of the cable: `exo console`'s link, exo-console and a real exod, over pseudo-terminals."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest
from exo.board.fake_cable import FakeCable
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ProtocolError, ServiceError
from exo.core.base.files import read_pid
from exo.core.base.home import Home
from exo.device.pin import Pin
from exo.tools.console import find, open_serial
from exo.tools.link import Link
from exo.tools.supervisor import Supervisor

PIN = "2468"
PATIENCE = 120.0


@pytest.fixture
def cable(exo, tmp_path, console_at):
    """A cable with exo-console at its end."""
    Pin(exo.state / "pin", SystemClock()).change(PIN)
    with FakeCable(tmp_path) as made, console_at(exo, made.device):
        yield made


@contextlib.contextmanager
def linked(cable, pin=lambda why: PIN, **more):
    link = Link(lambda: open_serial(str(cable.host)), pin, **more)
    try:
        link.start(30)
        yield link
    finally:
        link.close()


class Follower:
    """Every event that a client sees."""

    def __init__(self, client, since) -> None:
        self.seen, self._stop = [], threading.Event()
        self._events = client.events(since, stop=self._stop)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for event in self._events:
            self.seen.append(event)

    def until(self, wanted, patience=PATIENCE):
        end = time.monotonic() + patience
        while not any(map(wanted, list(self.seen))):
            assert time.monotonic() < end, [e["seq"] for e in self.seen][-5:]
            time.sleep(0.01)

    def close(self):
        self._stop.set()
        self._thread.join(5)


def seq_of(exo) -> int:
    return Client(exo.exod_socket).call("hello", protocol=1, client="t")["seq"]


def ends(turn):
    return lambda e: e["type"] == "turn.completed" and e["body"]["turn"] == turn


def same_as_the_record(exo, since, seen):
    """The events came whole, once and in order."""
    assert [e["seq"] for e in seen] == list(range(since + 1, since + 1 + len(seen)))
    stop = threading.Event()
    for mine, theirs in zip(seen, Client(exo.exod_socket).events(since, stop=stop), strict=False):
        assert mine == theirs
    stop.set()


def test_it_is_used_like_a_client(exo, cable):
    with linked(cable) as link:
        session = link.call("session.create")["session"]
        follower = Follower(link, seq_of(exo))
        turn = link.send(session, "hullo")
        follower.until(ends(turn))
        follower.close()
        with pytest.raises(ProtocolError) as caught:
            link.call("session.get", session="nothing")
        assert caught.value.code == "unknown_session"


def test_wrong_pins_are_asked_again_and_none_gives_up(exo, cable):
    given = iter(["0000", "1111", PIN])
    with linked(cable, lambda why: next(given)) as link:
        assert link.call("hello", protocol=1, client="t")
    with pytest.raises(ServiceError, match="no PIN was given"), linked(cable, lambda why: ""):
        pass


def test_a_device_without_a_pin_says_so(exo, cable):
    Pin(exo.state / "pin", SystemClock()).change("")
    with pytest.raises(ServiceError, match="no PIN"), linked(cable):
        pass


def cut_and_compare(exo, cable, cuts, seed):
    """Talk while the cable is pulled at random bytes; then compare with the record."""
    chance = random.Random(seed)
    since = seq_of(exo)
    with linked(cable) as link:
        follower = Follower(link, since)
        session = link.call("session.create")["session"]
        cable.cut_after(lambda: chance.randrange(1, 12000))
        said, n = [], 0
        end = time.monotonic() + PATIENCE + cuts
        while cable.cuts < cuts:
            assert time.monotonic() < end, f"{cable.cuts} cuts"
            text = f"number {n} " + "x" * chance.randrange(1500)
            said.append(text)
            turn = link.send(session, text, "queue", retry=60.0)
            n += 1
        cable.cut_after(None)
        follower.until(ends(turn))
        follower.close()
    same_as_the_record(exo, since, follower.seen)
    messages = Client(exo.exod_socket).call("session.get", session=session)["messages"]
    assert [m["text"] for m in messages if m["role"] == "user"] == said


def test_the_transcript_survives_cuts_at_any_byte(exo, cable):
    cut_and_compare(exo, cable, 12, 7)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_transcript_survives_two_hundred_cuts(exo, cable):
    cut_and_compare(exo, cable, 200, 11)


def test_noise_on_the_line_loses_nothing(exo, cable):
    chance, since = random.Random(3), seq_of(exo)

    def spoil(piece: bytes) -> bytes:
        if chance.random() < 0.05:
            at = chance.randrange(len(piece))
            return piece[:at] + bytes([chance.randrange(256)]) + piece[at + 1 :]
        return piece

    with linked(cable) as link:
        follower = Follower(link, since)
        session = link.call("session.create")["session"]
        cable.noise = spoil
        turns = [link.send(session, f"number {n}", "queue", retry=60.0) for n in range(15)]
        cable.noise = None
        follower.until(ends(turns[-1]))
        follower.close()
    same_as_the_record(exo, since, follower.seen)


def test_a_turn_at_9600_baud(exo, cable):
    with linked(cable) as link:
        since = seq_of(exo)
        session = link.call("session.create")["session"]
        follower = Follower(link, since)
        cable.baud = 9600
        turn = link.send(session, "!words 20")
        follower.until(ends(turn))
        follower.close()
    same_as_the_record(exo, since, follower.seen)


def test_the_console_starts_again_in_the_middle(exo, tmp_path, console_at):
    Pin(exo.state / "pin", SystemClock()).change(PIN)
    since = seq_of(exo)
    with FakeCable(tmp_path) as cable:
        with console_at(exo, cable.device):
            link = Link(lambda: open_serial(str(cable.host)), lambda why: PIN)
            link.start(30)
            follower = Follower(link, since)
            session = link.call("session.create")["session"]
        cable.pull()
        cable.plug()
        with console_at(exo, cable.device):
            turn = link.send(session, "still here?", retry=60.0)
            follower.until(ends(turn))
            follower.close()
            link.close()
    same_as_the_record(exo, since, follower.seen)


def test_exod_starts_again_in_the_middle(tmp_path, console_at):
    home = Home(tmp_path / "h").make()
    Pin(home.state / "pin", SystemClock()).change(PIN)
    with Supervisor(home, ["exod", "models"], {"models": ("--fake",)}) as services:
        services.wait_ready()
        with FakeCable(tmp_path) as cable, console_at(home, cable.device), linked(cable) as link:
            session = link.call("session.create")["session"]
            since = seq_of(home)
            follower = Follower(link, since)
            os.kill(read_pid(home.lock_file("exod")), signal.SIGKILL)
            with pytest.raises(ServiceError):
                link.call("session.list")
            services.tick()
            services.wait_ready()
            turn = link.send(session, "hullo")
            follower.until(ends(turn))
            follower.close()
        told = [event for event in follower.seen if event["seq"] == 0]
        assert {event["type"] for event in told} <= {"fault"}
        same_as_the_record(home, since, [event for event in follower.seen if event["seq"]])


def test_two_programs_cannot_hold_the_port(exo, cable):
    with linked(cable), pytest.raises(OSError):
        open_serial(str(cable.host))


def test_the_cable_and_the_socket_are_one_conversation(exo, cable):
    with linked(cable) as link:
        since = seq_of(exo)
        follower = Follower(link, since)
        client = Client(exo.exod_socket)
        session = client.call("session.create")["session"]
        turn = client.send(session, "from the other side")
        follower.until(ends(turn))
        follower.close()
    same_as_the_record(exo, since, follower.seen)


class Listed:
    def __init__(self, device, product=None, vid=None, pid=None) -> None:
        self.device, self.product, self.vid, self.pid = device, product, vid, pid


def listed(monkeypatch, *ports):
    from serial.tools import list_ports

    monkeypatch.setattr(list_ports, "comports", lambda: list(ports))


def test_the_device_is_found_by_its_name_else_by_its_ids(monkeypatch):
    modem, other = Listed("/dev/ttyS0"), Listed("/dev/ttyACM0", "Gadget", 0x1D6B, 0x0104)
    listed(monkeypatch, modem, other, Listed("/dev/ttyACM1", "Exo", 0x1D6B, 0x0104))
    assert find() == "/dev/ttyACM1"
    listed(monkeypatch, modem, other)
    assert find() == "/dev/ttyACM0"
    listed(monkeypatch, modem)
    with pytest.raises(ServiceError, match="ports: /dev/ttyS0"):
        find()
    listed(monkeypatch, Listed("a", "Exo"), Listed("b", "Exo"))
    with pytest.raises(ServiceError, match="several: a, b"):
        find()


def test_the_program_serves_a_port_until_it_is_told_to_end(exo, tmp_path):
    Pin(exo.state / "pin", SystemClock()).change(PIN)
    with FakeCable(tmp_path) as cable:
        words = [sys.executable, "-m", "exo.device.console", "--port", str(cable.device)]
        process = subprocess.Popen([*words, "--home", str(exo.root)])
        try:
            with linked(cable) as link:
                assert link.call("hello", protocol=1, client="t")["protocol"] == 1
            second = subprocess.run(
                [*words, "--home", str(exo.root)], capture_output=True, text=True, timeout=60
            )
            assert second.returncode == 1 and "another exo-console runs" in second.stderr
        finally:
            process.terminate()
            assert process.wait(20) == 0


def test_the_command_in_a_terminal(exo, cable):
    """PIN, panes, a turn, leaving; the terminal's bytes are looked at without their escape sequences."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    words = [sys.executable, "-m", "exo.tools.cli", "console", str(cable.host)]
    process = subprocess.Popen(
        [*words, "--home", str(exo.root)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    seen = b""

    def until(wanted):
        nonlocal seen
        end = time.monotonic() + PATIENCE
        while wanted not in re.sub(rb"\x1b\[[0-9;?<>=]*[A-Za-z]", b"", seen):
            assert time.monotonic() < end, seen[-1000:]
            if select.select([master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    seen += os.read(master, 65536)

    try:
        until(b"PIN of the device: ")
        os.write(master, b"2468\n")
        until(b"say something")
        os.write(master, b"hullo\r")
        until(b"You said: hullo")
        assert b"2468" not in seen
        os.write(master, b"\x03")
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    os.read(master, 65536)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait(10)
        os.close(master)
