"""The handheld on a real board: its buttons on GPIO, its panel on a bus, sound by ALSA.

Owns putting them together and giving the pins back. Invariant: a panel that cannot be driven costs the
picture alone; voice and buttons go on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from exo.board.alsa import AlsaMicrophone, AlsaSpeaker
from exo.board.buttons import GpioButtons
from exo.board.panels import connected, open_panel
from exo.board.profile import Profile
from exo.board.steady import Steady
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.display import tell


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

    buttons, screen = GpioButtons(board.buttons, factory), panel(board, factory)
    try:
        card = board.audio.card
        microphone = AlsaMicrophone(settings.text("audio.microphone") or card)
        speaker = AlsaSpeaker(settings.text("audio.speaker") or card)
        handheld = build(home, settings, screen, buttons, microphone, speaker, trace=trace)
        with running(handheld):
            while handheld.machine.state != "off" and not stop.wait(1.0):
                pass
    finally:
        buttons.close()
        screen.finish()
    return 0


def panel(board: Profile, factory: Any = None) -> Steady:
    """The board's panel, opened with the first picture; one that fails is told and tried again."""
    return open_panel(board.panel, tell, bus=lambda panel: connected(panel, factory))
