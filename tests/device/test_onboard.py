"""The handheld on a real board, with mock pins and no daemon behind it."""

from __future__ import annotations

import queue
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from exo.board import detect
from exo.board.buttons import GpioButtons
from exo.board.profile import load
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device import app, onboard
from exo.device.events import Button
from exo.device.handheld import Handheld

mock = pytest.importorskip("gpiozero.pins.mock", reason="gpiozero is not installed")
PATIENCE = 20.0  # seconds until a moment must have come


@pytest.mark.parametrize(
    ("name", "pressed", "released"),
    [("adafruit-oled-bonnet", "low", "high"), ("pisugar-whisplay", "high", "low")],
)
def test_a_pin_of_the_board_reaches_the_handheld_and_is_given_back(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, pressed: str, released: str
) -> None:
    told: queue.SimpleQueue[Button] = queue.SimpleQueue()
    build, listening = app.build, threading.Event()

    def watched(*arguments: Any, **named: Any) -> Handheld:
        handheld = build(*arguments, **named)
        post = handheld.post

        def note(event: Any) -> None:
            if isinstance(event, Button):
                told.put(event)
            post(event)

        monkeypatch.setattr(handheld, "post", note)
        listening.set()
        return handheld

    monkeypatch.setattr(app, "build", watched)
    board, factory, stop = load(name), mock.MockFactory(), threading.Event()
    pin = factory.pin(board.buttons[0].pin)
    getattr(pin, f"drive_{released}")()
    settings = Settings.load(home.settings_file)
    results: list[int] = []
    thread = threading.Thread(
        target=lambda: results.append(onboard.run(home, settings, board, app.silent, stop, factory))
    )
    thread.start()
    assert listening.wait(PATIENCE)
    getattr(pin, f"drive_{pressed}")()
    assert told.get(timeout=PATIENCE) == Button("talk", True)
    getattr(pin, f"drive_{released}")()
    assert told.get(timeout=PATIENCE) == Button("talk", False)
    stop.set()
    thread.join(PATIENCE)
    assert results == [0]
    GpioButtons(board.buttons, factory).close()  # fails when the pins were not given back
    factory.close()


def test_a_board_runs_on_its_pins_and_anything_else_in_a_terminal(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(home: Home, settings: Settings, board: Any, *rest: Any, **named: Any) -> int:
        ran.append(board.name)
        return 0

    monkeypatch.setattr(onboard, "run", run)
    monkeypatch.setattr(app, "_signalled", lambda *numbers: threading.Event())
    arguments = ["--home", str(home.root), "--no-services", "--board"]
    monkeypatch.setattr(detect, "is_board", lambda: True)
    assert app.main([*arguments, "respeaker-2mic"]) == 0
    assert "board = respeaker-2mic (--board)" in capsys.readouterr().err
    assert app.main([*arguments, "sim"]) == 2  # no terminal here
    monkeypatch.setattr(detect, "is_board", lambda: False)
    assert app.main([*arguments, "respeaker-2mic"]) == 2
    assert "this is no terminal" in capsys.readouterr().err
    assert ran == ["respeaker-2mic"]


def test_systemd_hears_of_the_loop_and_of_nothing_when_it_hangs(
    home: Home, monkeypatch: pytest.MonkeyPatch, short_folder: Path
) -> None:
    step, hang, hangs = Handheld.step, threading.Event(), threading.Event()

    def stepped(handheld: Handheld, wait: float = 0.0) -> None:
        if hang.is_set():
            hangs.set()
            stop.wait(PATIENCE)  # as a driver that never comes back
        step(handheld, wait)

    monkeypatch.setattr(Handheld, "step", stepped)
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(short_folder / "notify"))
    manager.settimeout(PATIENCE)
    monkeypatch.setenv("NOTIFY_SOCKET", str(short_folder / "notify"))
    board, factory, stop = load("adafruit-oled-bonnet"), mock.MockFactory(), threading.Event()
    factory.pin(board.buttons[0].pin).drive_high()
    settings = Settings.load(home.settings_file)
    run = (home, settings, board, None, stop, factory)
    thread = threading.Thread(target=onboard.run, args=run)
    thread.start()
    try:
        assert [manager.recv(100) for _ in range(3)] == [b"READY=1\nWATCHDOG=1"] * 3
        hang.set()
        assert hangs.wait(PATIENCE)
        manager.settimeout(1.0)  # three of its deadlines
        with pytest.raises(TimeoutError):
            while True:  # what was on its way
                manager.recv(100)
    finally:
        stop.set()
        thread.join(PATIENCE)
    manager.settimeout(PATIENCE)
    while manager.recv(100) != b"STOPPING=1":
        pass
    manager.close()
    factory.close()
