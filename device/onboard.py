"""The handheld on a real board: its buttons on GPIO, its panel on a bus, sound by ALSA.

Owns putting them together and giving the pins back. Invariant: a panel that cannot be driven costs the
picture alone; voice and buttons go on."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from exo.board.buttons import GpioButtons
from exo.board.pcaudio import PcMicrophone, PcSpeaker
from exo.board.profile import Profile
from exo.board.screen import NoPanel, Screen
from exo.core.base.home import Home
from exo.core.base.settings import Settings


def run(
    home: Home,
    settings: Settings,
    board: Profile,
    trace: Path | None,
    stop: threading.Event,
    factory: Any = None,
) -> int:
    """Run until `stop` is set or the handheld is off; returns an exit code. `factory` is gpiozero's
    (None: the header). Raises BoardError when the buttons cannot be had: without them it is no use."""
    from exo.device.app import build, running

    buttons = GpioButtons(board.buttons, factory)
    try:
        microphone = PcMicrophone(settings.text("audio.microphone"))
        speaker = PcSpeaker(settings.text("audio.speaker"))
        handheld = build(home, settings, panel(board), buttons, microphone, speaker, trace=trace)
        with running(handheld):
            while handheld.machine.state != "off" and not stop.wait(1.0):
                pass
    finally:
        buttons.close()
    return 0


def panel(board: Profile) -> Screen:
    """The board's panel; one without a driver is told once and shows nothing."""
    if board.panel.driver != "none":
        what = f"exo-device: no driver for the panel {board.panel.driver} is here; it stays dark"
        print(what, file=sys.stderr)
    return NoPanel(board.panel.size, board.panel.mode)
