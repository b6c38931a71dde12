"""The handheld on a real board, with mock pins and no daemon behind it."""

from __future__ import annotations

import queue
import threading
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
