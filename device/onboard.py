"""The handheld on a real board: its buttons on GPIO, its panel on a bus, sound by ALSA.

Owns putting them together and giving the pins back. Invariant: a panel that cannot be driven costs the
picture alone; voice and buttons go on."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from exo.board.buttons import GpioButtons
from exo.board.panels import open_panel
from exo.board.pcaudio import PcMicrophone, PcSpeaker
from exo.board.profile import Profile
from exo.board.steady import Steady
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.display import tell


def run(home: Home, settings: Settings, board: Profile, trace: Path | None) -> int:
    """Run until a signal ends it; returns an exit code."""
    from exo.device.app import build, running

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    buttons, screen = GpioButtons(board.buttons), panel(board)
    try:
        microphone = PcMicrophone(settings.text("audio.microphone"))
        speaker = PcSpeaker(settings.text("audio.speaker"))
        handheld = build(home, settings, screen, buttons, microphone, speaker, trace=trace)
        with running(handheld):
            while handheld.machine.state != "off" and not stop.wait(1.0):
                pass
    finally:
        buttons.close()
        screen.finish()
    return 0


def panel(board: Profile) -> Steady:
    """The board's panel, opened with the first picture; one that fails is told and tried again."""
    return open_panel(board.panel, tell)
