"""The panel on a cable: its firmware under MicroPython, in a heap of 60 kB whose words are twice as wide
as a Pico's, at the end of a line that is pulled, cut and noisy; and exo-device at the other end."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.board import rp2040
from exo.board.led import Beacon
from exo.board.profile import load
from exo.board.rp2040 import Cable, CableButtons, CableLight, Rp2040, find_port
from exo.core.base.errors import BoardError
from exo.core.base.frames import Reader, frame
from exo.core.base.home import Home
from exo.device.font import Fonts
from exo.device.gallery import Kind, examples
from PIL import Image, ImageDraw

GOLDEN = Path(__file__).parent / "golden"
WRITE = bool(os.environ.get("EXO_GOLDEN"))  # write them anew
PATIENCE = 20.0  # seconds until a moment must have come
BUTTONS = load("panel-rp2040").buttons


def picture(seed: int) -> Image.Image:
    """Some boxes, the same for the same seed."""
    chance = random.Random(seed)
    image = Image.new("1", (128, 64))
    draw = ImageDraw.Draw(image)
    draw.point((seed % 128, 63), 1)  # none is like another, or black
    for _ in range(chance.randrange(1, 8)):
        x, y = chance.randrange(128), chance.randrange(64)
        draw.rectangle(
            (x, y, x + chance.randrange(60), y + chance.randrange(30)), chance.randrange(2)
        )
    return image


def golden(pico: Any, name: str) -> None:
    """A page of the panel's own is the one that was looked at."""
    path = GOLDEN / f"{name}.png"
    if WRITE:
        time.sleep(4.5)
        pico.seen().save(path)
    with Image.open(path) as wanted:
        pico.await_(lambda: pico.sees(wanted.convert("1")))


class Heard:
    """What the buttons told."""

    def __init__(self, cable: Cable) -> None:
        self.changes: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()
        self.gestures: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.buttons = CableButtons(BUTTONS, cable)
        self.buttons.listen(lambda name, down: self.changes.put((name, down)), self.gestures.put)

    def next(self) -> tuple[str, bool]:
        return self.changes.get(timeout=PATIENCE)


@pytest.fixture
def heard(cabled: Any) -> Iterator[Heard]:
    made = Heard(cabled.cable)
    yield made
    made.buttons.close()


# pages


def test_it_says_what_it_is(pico: Any, cabled: Any) -> None:
    hello = cabled.cable.hello
    assert (hello["version"], hello["width"], hello["height"]) == (1, 128, 64)
    assert hello["buttons"] == [button.name for button in BUTTONS]
    assert hello["free"] > 20_000, "more than 40 kB are used"
    golden(pico, "panel-boot")


def test_every_page_of_the_handheld_is_seen_as_it_was_drawn(pico: Any, cabled: Any) -> None:
    kind = Kind((128, 64), "1", False, ())
    layout = kind.layout(Fonts(), "de")
    screen = cabled.driver()
    for name, view in examples(layout).items():
        page = kind.picture(layout, view)
        screen.show(page)
        assert cabled.shows(page), name


def test_a_host_that_is_gone_is_told(pico: Any, cabled: Any) -> None:
    cabled.driver().show(picture(1))
    cabled.cable.close()
    golden(pico, "panel-gone")


def test_what_ends_the_program_is_shown_and_it_starts_anew(pico: Any, cabled: Any) -> None:
    lines: list[str] = []
    cabled.cable._told = lines.append
    (pico.folder / "pins").unlink()
    golden(pico, "panel-failed")
    pico.await_(lambda: "reset" in pico.events())
    assert "bitten" not in pico.events()
    assert [line for line in lines if "OSError" in line]


def test_a_panel_whose_back_is_held_at_the_start_does_nothing(pico: Any) -> None:
    pico.await_(lambda: "watched" in pico.events())
    (pico.folder / "events").unlink()
    pico.hold("back")
    pico.start()
    assert pico.process.wait(PATIENCE) == 0
    assert not pico.events()


def test_mpremote_may_interrupt_it_while_there_is_no_host(pico: Any) -> None:
    pico.await_(lambda: "watched" in pico.events())
    cable = Cable(lambda: pico.port)
    assert cable.wait(PATIENCE)
    pico.say(b"\r\x03")
    screen = Rp2040(cable)
    screen.show(picture(3))
    pico.await_(screen.ready)
    cable.close()
    golden(pico, "panel-gone")
    pico.say(b"\r\x03")
    pico.process.wait(PATIENCE)
    assert "register 4005b000 40000000" in pico.events()


# the screen


def test_a_panel_of_another_size_is_refused(cabled: Any) -> None:
    with pytest.raises(BoardError, match="128x64, not 128x32"):
        Rp2040(cabled.cable, (128, 32))


def test_no_panel_is_an_error_and_the_next_one_is_taken(pico: Any) -> None:
    there = ""
    cable = Cable(lambda: there)
    with pytest.raises(BoardError, match="no panel is plugged in"):
        Rp2040(cable)
    told: list[str] = []
    screen = cable.steady((128, 64), told.append)
    screen.show(picture(1))
    assert len(told) == 1 and "plug it in" in told[0]
    there = pico.port
    pico.await_(lambda: screen.settle() or pico.sees(picture(1)))
    assert told[1:] == [""]
    cable.close()


def test_a_pulled_cable_stops_nothing_and_the_picture_comes_back(pico: Any, cabled: Any) -> None:
    told: list[str] = []
    screen = cabled.cable.steady((128, 64), told.append)
    screen.show(picture(1))
    screen.power(0.4)
    pico.await_(lambda: screen.settle() or pico.sees(picture(1)))
    for seed in (2, 3):
        pico.pull()
        pico.await_(lambda: not cabled.cable.hello)
        screen.show(picture(seed))
        assert screen.fault
        pico.plug()
        pico.await_(lambda seed=seed: screen.settle() or pico.sees(picture(seed)))
        pico.await_(lambda: not screen.fault)
    assert pico.glass.contrast == round(0.4 * 255)
    assert [bool(fault) for fault in told] == [True, False, True, False]


def test_what_was_pulled_while_nothing_changed_is_whole_again(pico: Any, cabled: Any) -> None:
    cabled.driver().show(picture(5))
    assert cabled.shows(picture(5))
    pico.pull()
    golden(pico, "panel-gone")
    pico.plug()
    pico.await_(lambda: pico.sees(picture(5)))


def test_a_panel_that_started_anew_gets_everything(pico: Any, cabled: Any) -> None:
    screen = cabled.driver()
    screen.show(picture(6))
    screen.power(0.5)
    assert cabled.shows(picture(6))
    pico.start()
    pico.await_(lambda: pico.sees(picture(6)) and pico.glass.contrast == 128)


def test_a_screen_that_came_off_is_told_and_the_buttons_go_on(
    pico: Any, cabled: Any, heard: Heard
) -> None:
    told: list[str] = []
    logged: list[str] = []
    cabled.cable._told = logged.append
    screen = cabled.cable.steady((128, 64), told.append)
    screen.show(picture(1))
    pico.await_(lambda: screen.settle() or pico.sees(picture(1)))
    (pico.folder / "unplugged").touch()
    screen.show(picture(3))
    pico.await_(lambda: logged)
    assert "the screen does not answer" in logged[0]
    screen.show(picture(2))
    pico.await_(lambda: screen.settle() or told)
    assert "its screen does not answer" in told[0]
    pico.hold("ok")
    assert heard.next() == ("ok", True)
    pico.hold()
    assert heard.next() == ("ok", False)
    (pico.folder / "unplugged").unlink()
    pico.await_(lambda: screen.settle() or pico.sees(picture(2)))
    pico.await_(lambda: screen.settle() or not screen.fault)
    assert told[1:] == [""]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_line_does_the_last_picture_is_seen(pico: Any, cabled: Any, seed: int) -> None:
    """Bytes are lost, changed and added, both ways, in half of all pieces; then the line is well."""
    chance = random.Random(seed)
    broken = True

    def damage(to_panel: bool, data: bytes) -> bytes:
        if not broken or chance.random() < 0.5:
            return data
        at = chance.randrange(len(data))
        what = chance.randrange(4)
        if what == 0:
            return data[:at]
        if what == 1:
            return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        if what == 2:
            return data[:at] + chance.randbytes(chance.randrange(300)) + data[at:]
        return data[at:]

    screen = cabled.cable.steady((128, 64))
    pico.damage = damage
    for number in range(60):
        screen.show(picture(100 * seed + number))
        time.sleep(0.02)
    broken = False
    last = picture(100 * seed + 59)
    pico.await_(lambda: screen.settle() or pico.sees(last), 30)
    assert "bitten" not in pico.events()
    assert not pico.errors()


def test_a_frame_that_was_cut_does_not_swallow_what_comes_each_second(pico: Any) -> None:
    longest = frame(rp2040.SCREEN, bytes(1034))
    pico.await_(lambda: "watched" in pico.events())
    pico.say(longest[:6])
    cable = Cable(lambda: pico.port)
    assert cable.wait(PATIENCE / 2)
    cut = threading.Event()

    def cut_one(to_panel: bool, data: bytes) -> bytes:
        if to_panel or cut.is_set():
            return data
        cut.set()
        return frame(rp2040.LOG, bytes(4000))[:6]

    pico.damage = cut_one
    pico.await_(cut.is_set)
    button = cable.pin("ok")
    pico.hold("ok")
    pico.await_(lambda: button.is_active, PATIENCE / 2)
    cable.close()


def test_a_slow_line_is_never_flooded(pico: Any, cabled: Any) -> None:
    """115,200 baud: what was sent and is not answered stays below a picture and a bit."""
    most, ahead, reader = 0, 0, Reader()

    def pace(to_panel: bool, data: bytes) -> bytes:
        nonlocal most, ahead
        if to_panel:
            ahead += len(data)
            most = max(most, ahead)
            time.sleep(len(data) / 11_520)
        elif any(kind == rp2040.SCREEN for kind, _ in reader.feed(data)):
            ahead = 0
        return data

    screen = cabled.cable.steady((128, 64))
    screen.show(picture(0))
    pico.await_(lambda: screen.settle() or pico.sees(picture(0)))
    pico.damage = pace
    for number in range(100):
        screen.show(picture(number))
        time.sleep(0.005)
    pico.await_(lambda: screen.settle() or pico.sees(picture(99)))
    assert 0 < most < 2 * rp2040.AHEAD


def test_small_changes_are_small_on_the_line(pico: Any, cabled: Any) -> None:
    sent = 0

    def count(to_panel: bool, data: bytes) -> bytes:
        nonlocal sent
        sent += len(data) if to_panel else 0
        return data

    screen = cabled.cable.steady((128, 64))
    screen.show(picture(1))
    pico.await_(lambda: screen.settle() or pico.sees(picture(1)))
    pico.damage, changed = count, picture(1)
    ImageDraw.Draw(changed).rectangle((120, 2, 124, 6), fill=1)
    ImageDraw.Draw(changed).rectangle((1, 60, 2, 61), fill=1)
    screen.show(changed)
    pico.await_(lambda: screen.settle() or pico.sees(changed))
    assert 0 < sent < 150


def test_nonsense_in_whole_frames_stops_nothing(pico: Any, cabled: Any) -> None:
    driver = cabled.driver()
    for payload in (b"", b"{", b"[]", b"7", b'"x"', b"\xff", b'{"ping"', b"{}", b"\0" * 1000):
        for kind in (1, 2, 3, 4, 5, 200):
            pico.say(frame(kind, payload))
    for payload in (b"\0\1", b"\0\2\0\0\0\0\0\0\0\0", b"\0\3" + b"\xff" * 30, b"\7\7\7"):
        pico.say(frame(rp2040.SCREEN, payload))
    driver.show(picture(4))
    pico.await_(lambda: pico.sees(picture(4)))
    assert not pico.errors()


def test_nonsense_of_a_panel_stops_nothing() -> None:
    cable = Cable(lambda: "")
    for payload in (b"", b"{", b"[]", b"7", b'"x"', b"\xff", b'{"down": 3}', b'{"name": []}'):
        for kind in range(1, 8):
            cable._take(kind, payload)
    assert not cable.hello
    cable.close()


def test_the_light_is_the_panel_s(pico: Any, cabled: Any) -> None:
    cabled.driver()
    beacon = Beacon(CableLight(cabled.cable))
    beacon.show("listening")
    pico.await_(lambda: pico.events()[-1] == "pin LED 1")
    beacon.show("idle")
    pico.await_(lambda: pico.events()[-1] == "pin LED 0")
    beacon.close()


@pytest.mark.parametrize("pico", ["uart"], indirect=True)
def test_a_uart_does_as_well(pico: Any, cabled: Any, heard: Heard) -> None:
    screen = cabled.driver()
    for seed in range(10):
        screen.show(picture(seed))
    assert cabled.shows(picture(9))
    pico.hold("up")
    assert heard.next() == ("up", True)
    cabled.cable.close()
    golden(pico, "panel-gone")
    pico.say(b"\r\x03")  # noise, where there is no console
    cable = Cable(lambda: pico.port)
    assert cable.wait(PATIENCE)
    cable.close()
    assert pico.events()[0] == "watched" and "uart 0 115200" in pico.events()


# the buttons


def test_presses_are_told_and_mean_something(pico: Any, heard: Heard) -> None:
    for button in BUTTONS:
        pico.hold(button.name)
        assert heard.next() == (button.name, True)
        pico.hold()
        assert heard.next() == (button.name, False)
        assert heard.gestures.get(timeout=PATIENCE).names == (button.name,)


def test_a_key_that_is_held_when_the_cable_is_pulled_is_let_go(pico: Any, heard: Heard) -> None:
    pico.hold("talk")
    assert heard.next() == ("talk", True)
    pico.pull()
    assert heard.next() == ("talk", False)
    pico.plug()
    assert heard.next() == ("talk", True)  # it is still held
    pico.hold()
    assert heard.next() == ("talk", False)


def test_a_release_that_was_lost_is_found(pico: Any, heard: Heard) -> None:
    pico.hold("talk")
    assert heard.next() == ("talk", True)
    deaf = threading.Event()

    def lose(to_panel: bool, data: bytes) -> bytes:
        if not to_panel and b'"level"' in data and not deaf.is_set():
            deaf.set()
            return data[:-1]
        return data

    pico.damage = lose
    pico.hold()
    assert deaf.wait(PATIENCE)
    assert heard.next() == ("talk", False)


# the port


def test_the_port_is_found_by_its_usb_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ports = pytest.importorskip("serial.tools.list_ports", reason="pyserial is not installed")

    class Port:
        def __init__(self, device: str, vid: int | None, pid: int | None) -> None:
            self.device, self.vid, self.pid = device, vid, pid

    rows = [Port("/dev/ttyS0", None, None), Port("/dev/ttyACM1", 0x1209, 1)]
    monkeypatch.setattr(ports, "comports", lambda: rows)
    assert find_port() == ""
    rows.append(Port("/dev/ttyACM0", *rp2040.IDS[0]))
    assert find_port() == "/dev/ttyACM0"
    assert find_port(str(tmp_path / "nothing")) == ""
    assert find_port(str(tmp_path)) == str(tmp_path)


# exo-device


@pytest.fixture
def device(pico: Any, home: Home) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "exo.device.app", "--home", str(home.root)]
        command += ["--board", "panel-rp2040", *words]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def rests(pico: Any) -> bytes:
    """The page, once it stays as it is: what exo-device shows while it starts moves."""
    before = b""
    end = time.monotonic() + 3 * PATIENCE
    while time.monotonic() < end:
        seen = pico.seen()
        now = seen.tobytes() if seen else b""
        if now and now == before and pico.glass.contrast == 255:
            return now
        before = now
        time.sleep(1.5)
    raise AssertionError("it does not come to rest")


def test_exo_device_is_the_companion_on_the_panel(pico: Any, device: Callable[..., Any]) -> None:
    golden(pico, "panel-boot")
    port = pico.folder / "port"
    port.symlink_to(pico.port)
    process = device("--port", str(port), "--models-fake")
    pages = [rests(pico)]
    for name in ("down", "down", "ok"):  # the menu, its second row, what is behind it
        pico.hold(name)
        time.sleep(0.2)
        pico.hold()
        pico.await_(lambda: pico.seen().tobytes() != pages[-1])
        pages.append(rests(pico))
    assert len(set(pages)) == 4, "its pages do not follow the buttons"
    pico.pull()
    port.unlink()
    golden(pico, "panel-gone")
    pico.plug()
    port.symlink_to(pico.port)
    pico.await_(lambda: pico.seen().tobytes() == pages[-1])
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, said
    assert f"panel = on {port}" in said
    golden(pico, "panel-gone")


def test_a_panel_that_is_not_there_is_said(pico: Any, device: Callable[..., Any]) -> None:
    process = device("--no-services", "--port", "/dev/nothing")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2  # no terminal here either
    assert "panel = not plugged in" in said
