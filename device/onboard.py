"""The handheld on a real board: its buttons on GPIO, its panel on a bus, sound by ALSA; or with screen
and buttons at the end of a cable, on any machine.

Owns putting them together and giving the pins back. Invariant: a panel that cannot be driven costs the
picture alone; voice and buttons go on."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from exo.board import detect
from exo.board.alsa import AlsaMicrophone, AlsaSpeaker
from exo.board.battery import open_gauge
from exo.board.buttons import GpioButtons, header
from exo.board.led import Beacon, open_beacon
from exo.board.panels import connected, open_panel
from exo.board.pcaudio import PcMicrophone, PcSpeaker
from exo.board.ports import Microphone, Speaker
from exo.board.profile import Profile
from exo.board.rp2040 import Cable, CableButtons, CableLight, find_port
from exo.board.steady import Steady
from exo.core.base.clock import SystemClock
from exo.core.base.errors import BoardError
from exo.core.base.home import Home
from exo.core.base.notify import Systemd
from exo.core.base.settings import Settings
from exo.device.display import tell
from exo.device.events import Sync
from exo.device.power import Ending, Run, powered
from exo.device.wifi_page import open_flow


def run(
    home: Home,
    settings: Settings,
    board: Profile,
    trace: Callable[..., None],
    stop: threading.Event,
    factory: Any = None,
    services: Callable[[bool], None] = lambda run: None,
    command: Run | None = None,
) -> int:
    """Run until `stop` is set or the handheld is off; returns an exit code. `factory` is
    gpiozero's (None: the header), `services` power.Ending's, `command` runs what switches off (None: the system does).
    Raises BoardError when the buttons cannot be had: without them it is no use."""
    from exo.device.app import build, running

    clock = SystemClock()
    brightness = settings.number("led.brightness")
    with contextlib.ExitStack() as open_:
        buttons: GpioButtons
        if board.cabled:
            cable = Cable(lambda: find_port(board.panel.port), tell)
            open_.callback(cable.close)
            buttons = CableButtons(board.buttons, cable, clock=clock.monotonic)
            screen = cable.steady(board.panel.size, tell, clock.monotonic)
            beacon: Beacon | None = Beacon(CableLight(cable), brightness)
        else:
            if factory is None:
                factory = open_.enter_context(contextlib.closing(header()))
            buttons = GpioButtons(board.buttons, factory, clock=clock.monotonic)
            screen = panel(board, factory, clock.monotonic)
            beacon = _or_none(lambda: open_beacon(board.led, brightness, factory))
        open_.callback(buttons.close)
        open_.callback(screen.finish)
        microphone, speaker = _sound(settings, board.audio.card)
        handheld = build(home, settings, screen, buttons, microphone, speaker, trace=trace)
        if shutil.which("nmcli"):
            handheld.wifi = partial(open_flow, home.state, handheld.texts)
        texts = settings.text("power.off"), settings.text("power.restart")
        ending = Ending(home, handheld.post, detect.is_board(), *texts, services, command)
        gauge = _or_none(lambda: open_gauge(board.battery))
        systemd, pause = Systemd(), 0.0
        with powered(handheld, settings, ending, gauge, beacon), running(handheld):
            while handheld.machine.state != "off" and not stop.wait(pause):
                pause = min(systemd.beat or 1.0, 1.0)
                turned = threading.Event()
                handheld.post(Sync(turned))
                if turned.wait(systemd.beat or 1.0):  # the handheld's own loop went round
                    systemd.tell("READY=1\nWATCHDOG=1")
            systemd.tell("STOPPING=1")
    return 0


def _sound(settings: Settings, card: str) -> tuple[Microphone, Speaker]:
    """A board's card by ALSA, a PC's sound as the person has set it up there."""
    names = settings.text("audio.microphone"), settings.text("audio.speaker")
    if detect.is_board():
        return AlsaMicrophone(names[0] or card), AlsaSpeaker(names[1] or card)
    return PcMicrophone(names[0]), PcSpeaker(names[1])


T = TypeVar("T")


def _or_none(make: Callable[[], T | None]) -> T | None:
    """A part that the handheld can be used without; what keeps it away is said."""
    try:
        return make()
    except BoardError as error:
        tell(str(error))
        return None


def panel(board: Profile, factory: Any = None, now: Callable[[], float] = time.monotonic) -> Steady:
    """The board's panel, opened with the first picture; one that fails is told and tried again."""
    return open_panel(board.panel, tell, now, lambda panel: connected(panel, factory))
