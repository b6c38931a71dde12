"""exo-console on a pseudo-terminal: a person's terminal program, a program's frames, and what cables do."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import time
import tty
from pathlib import Path

import pytest
from exo.board.cable import JSON, LINK, PART, Joiner, key, pack, proof
from exo.board.fake_cable import FakeCable
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.frames import TEXT, Reader, frame
from exo.core.base.home import Home
from exo.device import console as module
from exo.device.console_link import Answers
from exo.device.pin import Pin

PIN = "2468"
PATIENCE = 30.0


class Cable:
    """The PC's end. `port` is a link to whatever pseudo-terminal stands for the port just now."""

    def __init__(self, port: Path) -> None:
        self.port, self.master, self.raw = port, -1, b""
        self.plug()

    def plug(self) -> None:
        self.master, slave = os.openpty()
        tty.setraw(slave)
        name = os.ttyname(slave)
        beside = self.port.with_suffix(f".{secrets.token_hex(4)}")
        beside.symlink_to(name)
        beside.rename(self.port)
        self._slave = slave  # held until the console has it: a port without a host loses nothing
        self.raw = b""

    def pull(self) -> None:
        for handle in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(handle)
        self.master = self._slave = -1

    def send(self, data: bytes | str) -> None:
        os.write(self.master, data.encode() if isinstance(data, str) else data)

    def read(self, seconds: float) -> bytes:
        if select.select([self.master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                return os.read(self.master, 65536)
        return b""

    def until(self, wanted: str, patience: float = PATIENCE) -> str:
        """Everything that came, once `wanted` is in it; what is behind it waits for the next."""
        end = time.monotonic() + patience
        while wanted.encode() not in self.raw:
            assert time.monotonic() < end, f"{wanted!r} did not come: {self.raw[-2000:]!r}"
            self.raw += self.read(0.2)
        at = self.raw.index(wanted.encode()) + len(wanted.encode())
        seen, self.raw = self.raw[:at], self.raw[at:]
        return seen.decode(errors="replace")

    def quiet(self, seconds: float = 0.4) -> bytes:
        """What comes within a while."""
        end, seen = time.monotonic() + seconds, self.raw
        self.raw = b""
        while time.monotonic() < end:
            seen += self.read(0.05)
        return seen


class Program:
    """A framed client by hand, so that it can do wrong."""

    def __init__(self, cable: Cable) -> None:
        self.cable, self.reader, self.joiner = cable, Reader(), Joiner()
        self.links: list[dict] = []
        self.said: list[dict] = []
        self.text = b""

    def link(self, **words) -> None:
        self.cable.send(frame(LINK, json.dumps(words).encode()))

    def pump(self, wanted, patience: float = PATIENCE):
        """Read until `wanted()` is true; returns it."""
        end = time.monotonic() + patience
        while not (found := wanted()):
            assert time.monotonic() < end, f"{self.links} {self.said[-3:]} {self.text!r}"
            for kind, payload in self.reader.feed(self.cable.read(0.1)):
                if kind == LINK:
                    self.links.append(json.loads(payload))
                elif kind in (JSON, PART):
                    whole = payload if kind == JSON else self.joiner.take(payload)
                    if whole is not None:
                        self.said.append(json.loads(whole))
                elif kind == TEXT:
                    self.text += payload
        return found

    def word(self, name: str, patience: float = PATIENCE) -> dict:
        def look():
            return next((each for each in self.links if name in each), None)

        found = self.pump(look, patience)
        self.links.remove(found)
        return found

    def greet(self, pin: str = PIN) -> dict:
        """The whole greeting; the device's last word."""
        nonce = secrets.token_hex(16)
        self.link(hello=1, nonce=nonce)
        answer = self.pump(lambda: self.links and self.links.pop(0))
        if "hello" not in answer:
            return answer
        secret = key(pin, answer)
        self.link(proof=proof(secret, "client", answer["nonce"], nonce))
        last = self.pump(lambda: self.links and self.links.pop(0))
        if "open" in last:
            assert last["proof"] == proof(secret, "device", answer["nonce"], nonce)
        return last

    def call(self, type_: str, id_: str = "", **body) -> dict:
        id_ = id_ or secrets.token_hex(8)
        for each in pack(json.dumps({"id": id_, "type": type_, "body": body}).encode(), 1):
            self.cable.send(each)
        return self.pump(lambda: next((r for r in self.said if r.get("id") == id_), None))


@pytest.fixture(scope="module", autouse=True)
def _pin(exo):
    Pin(exo.state / "pin", SystemClock()).change(PIN)


class Shifted(SystemClock):
    """The system's clock, which a test can move on."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.fixture
def clock():
    return Shifted()


@pytest.fixture
def cable(tmp_path):
    made = Cable(tmp_path / "port")
    yield made
    made.pull()


@pytest.fixture
def console(exo, cable, clock, console_at):
    Pin(exo.state / "pin", clock).change(PIN)
    with console_at(exo, cable.port, clock) as made:
        yield made


def unlock(cable: Cable) -> None:
    cable.send("\r")
    cable.until("PIN: ")
    cable.send(f"{PIN}\r")
    cable.until("> ")


def test_a_person_unlocks_asks_and_reads(console, cable):
    unlock(cable)
    cable.send("hullo there\r")
    assert "hullo there\r\n" in cable.until("You said: hullo there\r\n")
    cable.until("> ")


def test_the_pin_is_not_echoed(console, cable):
    cable.send("\r")
    cable.until("PIN: ")
    cable.send("24\x7f468\r")
    seen = cable.until("Unlocked")
    assert "**\b \b***" in seen and "4" not in seen


def test_a_stranger_sees_nothing(console, exo, cable):
    client = Client(exo.exod_socket)
    session = client.call("session.create")["session"]
    cable.send("hullo\r\n/sessions\r/approvals\r\x03\x04AT\r")
    client.send(session, "the secret word is xylophone")
    seen = cable.quiet(1.0)
    assert b"xylophone" not in seen and b"turns" not in seen and session.encode() not in seen
    assert b"PIN: " in seen


def test_noise_at_the_prompt_is_no_guess(console, exo, cable, clock):
    for noise in ("AT+GCAP\r", "ATE0\r", "~~~~\r", "help\r", "12\r", "\x1b[A\r"):
        cable.send(noise)
    cable.quiet()
    assert not Pin(exo.state / "pin", clock).wait
    unlock(cable)


def test_three_wrong_pins_cost_time(console, exo, cable, clock):
    cable.send("\r")
    for _ in range(3):
        cable.until("PIN: ")
        cable.send("0000\r")
        cable.until("Wrong.")
    cable.until("Wait 5 s")
    cable.send(f"{PIN}\r")
    assert "Unlocked" not in cable.until("PIN: ")
    clock.ahead += 6
    cable.send(f"{PIN}\r")
    cable.until("Unlocked")


def test_without_a_pin_nobody_is_let_in(exo, cable, clock, short_folder, console_at):
    home = Home(short_folder / "none").make()
    with console_at(home, cable.port, clock):
        cable.send("\r")
        cable.until("No PIN is set")
        cable.send("\r1234\r\r")
        assert b"Unlocked" not in cable.quiet()
        program = Program(cable)
        assert program.greet() == {"refused": "no_pin"}


def test_it_locks_itself_when_nobody_types(console, cable, clock):
    unlock(cable)
    clock.ahead += 601
    console.wake()
    cable.until("Locked: nothing was typed")
    cable.send("what time is it\r")
    assert "not" not in cable.until("PIN: ")


def test_lock_and_hanging_up_lock(console, cable):
    unlock(cable)
    cable.send("/lock\r")
    cable.until("Press Enter")
    unlock(cable)
    cable.pull()
    cable.plug()
    cable.send("hullo\r")
    assert "said" not in cable.until("PIN: ")


def test_a_carrier_that_is_lost_locks(exo, cable, clock, monkeypatch, console_at):
    held = [True]
    monkeypatch.setattr(module, "carrier", lambda handle: held[0])
    Pin(exo.state / "pin", clock).change(PIN)
    with console_at(exo, cable.port, clock) as console:
        unlock(cable)
        held[0] = False
        clock.ahead += 3
        console.wake()
        time.sleep(0.5)
        cable.send("hullo\r")
        assert "said" not in cable.until("PIN: ")


def test_a_changed_pin_locks(console, exo, cable, clock):
    unlock(cable)
    Pin(exo.state / "pin", clock).change("13579")
    cable.send("hullo\r")
    cable.until("The PIN was changed")


def test_an_approval_needs_the_whole_word(console, exo, cable):
    unlock(cable)
    cable.send('!tool bash {"command": "git push origin"}\x0a')
    cable.until("asks: ")
    cable.until("allow? ")
    cable.send("y\r")
    cable.until("whole word")
    cable.until("allow? ")
    cable.send("deny\r")
    cable.until("> ")


def test_what_was_asked_before_is_asked_again(console, exo, cable):
    client = Client(exo.exod_socket)
    session = client.call("session.create")["session"]
    seq = client.call("hello", protocol=1, client="t")["seq"]
    client.send(session, '!tool bash {"command": "git push origin"}')
    asked = next(e for e in client.events(seq) if e["type"] == "approval.requested")
    unlock(cable)
    cable.until("asks: git push origin")
    cable.until("allow? ")
    client.call("approval.respond", request=asked["body"]["request"], choice="deny")
    cable.until("> ")


def test_at_9600_baud_a_person_reads_the_same(exo, tmp_path, clock, console_at):
    Pin(exo.state / "pin", clock).change(PIN)
    with FakeCable(tmp_path) as line, console_at(exo, line.device, clock):
        line.baud = 9600
        handle = os.open(line.host, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        seen, end = b"", time.monotonic() + PATIENCE
        os.write(handle, b"\r")
        for wanted, answer in (("PIN: ", f"{PIN}\r"), ("> ", "hullo\r"), ("You said: hullo", "")):
            while wanted.encode() not in seen:
                assert time.monotonic() < end, seen
                if select.select([handle], [], [], 0.2)[0]:
                    seen += os.read(handle, 4096)
            os.write(handle, answer.encode())
        os.close(handle)


def test_ctrl_c_stops_the_turn(console, exo, cable):
    unlock(cable)
    cable.send("hullo\r")
    cable.until("You said")
    cable.until("> ")
    slow = "!delay 0.2\n!words 400"
    Client(exo.exod_socket).send(console._session._session, slow)  # said elsewhere, shown here
    cable.until("word3")
    cable.send("\x03")
    cable.until("(stopped: interrupted)")
    cable.until("> ")
    cable.send("half a li\x03whole\r")
    cable.until("You said: whole\r\n")


def test_sessions_are_listed_and_gone_on_with(console, cable):
    unlock(cable)
    cable.send("hullo zebra\r")
    cable.until("You said")
    cable.until("> ")
    cable.send("/new\r/sessions\r")
    cable.until(" 1  ")
    cable.until("> ")
    cable.send("/resume 1\r")
    cable.until("Going on there")


def test_a_program_greets_calls_and_follows(console, cable):
    program = Program(cable)
    assert program.greet()["open"] == 1
    program.link(ping=7)
    assert program.word("pong")["pong"] == 7
    seq = program.call("hello", protocol=1, client="test")["result"]["seq"]
    program.link(follow=seq)
    session = program.call("session.create")["result"]["session"]
    program.call("turn.send", session=session, text="hullo")
    program.pump(lambda: any(e.get("type") == "turn.completed" for e in program.said))
    numbers = [e["seq"] for e in program.said if "seq" in e]
    assert numbers == list(range(seq + 1, seq + 1 + len(numbers)))


def test_a_gap_of_the_record_is_told(console, cable):
    program = Program(cable)
    program.greet()
    seq = program.call("hello", protocol=1, client="test")["result"]["seq"]
    program.call("session.create")
    session = console._session
    program.link(follow=seq)
    program.pump(lambda: any(e.get("seq") == seq + 1 for e in program.said))
    session._skip(seq + 2)
    session._skip(seq + 5)
    console.wake()
    assert program.word("skip") == {"skip": [seq + 2, seq + 5]}


def test_nothing_is_answered_before_the_proof(console, cable):
    program = Program(cable)
    for each in pack(b'{"id": "a", "type": "session.list", "body": {}}', 1):
        cable.send(each)
    program.link(follow=0)
    program.link(logs=True)
    program.link(hello=1, nonce="0" * 32)
    program.word("hello")
    program.link(follow=0)
    for each in pack(b'{"id": "b", "type": "session.list", "body": {}}', 1):
        cable.send(each)
    program.link(ping=1)
    assert program.word("pong") == {"pong": 1, "seq": 0}
    assert not program.said and not program.links


def test_a_wrong_proof_is_counted_like_a_wrong_pin(console, cable):
    program = Program(cable)
    answers = [program.greet("0000") for _ in range(3)]
    assert [each["refused"] for each in answers] == ["pin"] * 3
    assert answers[-1]["wait"] > 0
    assert program.greet()["refused"] == "wait"


def test_a_proof_is_of_no_use_again(console, cable):
    program = Program(cable)
    nonce = secrets.token_hex(16)
    program.link(hello=1, nonce=nonce)
    answer = program.word("hello")
    recorded = proof(key(PIN, answer), "client", answer["nonce"], nonce)
    program.link(proof=recorded)
    assert program.word("open")
    program.link(hello=1, nonce=nonce)
    program.word("hello")
    program.link(proof=recorded)
    assert program.word("refused")["refused"] == "pin"


def test_a_command_sent_twice_is_carried_out_once(console, exo, cable):
    program = Program(cable)
    program.greet()
    client = Client(exo.exod_socket)
    before = len(client.call("session.list", limit=100)["sessions"])
    first = program.call("session.create", "same-id")
    program.said.clear()
    assert program.call("session.create", "same-id") == first
    assert len(client.call("session.list", limit=100)["sessions"]) == before + 1


def test_long_messages_go_in_parts(console, cable):
    program = Program(cable)
    program.greet()
    session = program.call("session.create", title="x")["result"]["session"]
    text = "ä" * 5000
    program.link(follow=program.call("hello", protocol=1, client="t")["result"]["seq"])
    program.call("turn.send", session=session, text=text)

    def heard():
        return any(
            e.get("type") == "message.completed" and e["body"]["message"]["text"] == text
            for e in program.said
        )

    program.pump(heard)


def test_garbage_between_frames_is_passed_over(console, cable):
    program = Program(cable)
    program.greet()
    for noise in (os.urandom(300), b"\xfe\x01\xff\xff\xfe", b"AT\r\n", frame(JSON, b"[")[:-2]):
        cable.send(noise)
        time.sleep(1.1)  # what a frame that never ends costs
        assert program.call("hello", protocol=1, client="t")["ok"]
    assert not program.text


def test_the_second_client_must_show_the_pin_too(console, cable):
    unlock(cable)
    program = Program(cable)
    assert program.greet()["open"] == 1
    program.link(bye=True)
    cable.quiet(0.3)
    cable.send("hullo\r")
    cable.until("PIN: ")


def test_a_silent_client_is_gone(console, cable, clock):
    program = Program(cable)
    program.greet()
    clock.ahead += 16
    console.wake()
    time.sleep(0.3)
    cable.send("\r")
    cable.until("PIN: ")


def test_a_slow_reader_holds_up_nobody_and_loses_nothing(console, exo, cable):
    program = Program(cable)
    program.greet()
    client = Client(exo.exod_socket)
    seq = client.call("hello", protocol=1, client="t")["seq"]
    program.link(follow=seq)
    session = client.call("session.create")["session"]
    client.send(session, "!words 1500")  # far more than the port holds; nobody reads
    ended = client.events(seq, session, retry=5.0)
    last = next(e["seq"] for e in ended if e["type"] == "turn.completed")
    assert console._out.size < 40_000
    program.pump(lambda: any(e.get("seq") == last for e in program.said))
    numbers = [e["seq"] for e in program.said if "seq" in e]
    assert numbers == list(range(seq + 1, numbers[-1] + 1))


def test_logs_come_when_they_are_asked_for(console, exo, cable):
    program = Program(cable)
    program.greet()
    program.link(logs=True)
    program.call("hello", protocol=1, client="t")
    lines = []
    path = exo.logs / "test.log"
    path.write_text("a line of the log\n")
    end = time.monotonic() + PATIENCE
    while not lines and time.monotonic() < end:
        found = program.reader.feed(cable.read(0.2))
        lines = [json.loads(payload) for kind, payload in found if kind == 5]
    assert lines == [{"log": "test", "text": "a line of the log"}]


def test_a_port_that_comes_late_is_found(exo, tmp_path, clock, console_at):
    port = tmp_path / "late"
    with console_at(exo, port, clock):
        time.sleep(0.3)
        cable = Cable(port)
        unlock(cable)
        cable.pull()


def test_answers_are_kept_within_bounds():
    answers = Answers()
    for n in range(500):
        answers.begin(str(n))
        answers.end(str(n), b"x" * 100_000)
    assert len(answers._kept) <= 21
    assert answers.begin("499") == (False, b"x" * 100_000)
