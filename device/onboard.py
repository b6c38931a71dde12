"""The handheld on a real board: its buttons on GPIO, its panel on a bus, sound by ALSA.

Owns putting them together and giving the pins back. Invariant: a panel that cannot be driven costs the
picture alone; voice and buttons go on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from exo.board.buttons import GpioButtons
from exo.board.panels import connected, open_panel
from exo.board.pcaudio import PcMicrophone, PcSpeaker
from exo.board.profile import Profile
from exo.board.steady import Steady
from exo.core.base.home import Home
from exo.core.base.notify import Systemd
from exo.core.base.settings import Settings
from exo.device.display import tell
from exo.device.events import Sync


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
        microphone = PcMicrophone(settings.text("audio.microphone"))
        speaker = PcSpeaker(settings.text("audio.speaker"))
        handheld = build(home, settings, screen, buttons, microphone, speaker, trace=trace)
        systemd = Systemd()
        with running(handheld):
            while handheld.machine.state != "off" and not stop.wait(min(systemd.beat or 1.0, 1.0)):
                turned = threading.Event()
                handheld.post(Sync(turned))
                if turned.wait(systemd.beat or 1.0):  # the handheld's own loop went round
                    systemd.tell("READY=1\nWATCHDOG=1")
            systemd.tell("STOPPING=1")
    finally:
        buttons.close()
        screen.finish()
    return 0


def panel(board: Profile, factory: Any = None) -> Steady:
    """The board's panel, opened with the first picture; one that fails is told and tried again."""
    return open_panel(board.panel, tell, bus=lambda panel: connected(panel, factory))
