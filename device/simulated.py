"""Puts the simulated handheld together for a script: stand-ins for every part of any board, in real time
with exod and exo-models, or fast.

Owns which parts they are. Invariant: what was started here has ended when a run returns or raises."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from exo.board.bus import I2cBus, RecordedWires, SpiBus
from exo.board.fake import (
    FakeButtons,
    FakeGauge,
    FakeLight,
    FakeMicrophone,
    FakePanel,
    FakeSpeaker,
)
from exo.board.led import Beacon
from exo.board.panels import is_paper, open_driver
from exo.board.profile import Profile
from exo.core.base.clock import Clock
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.app import bare, build, running, silent, system_of
from exo.device.display import Display
from exo.device.fast import Fast, FastClock, Stage
from exo.device.handheld import Handheld
from exo.device.launch import Services
from exo.device.pages import View
from exo.device.power import Ending, powered
from exo.device.runner import FastPace, RealPace, Runner
from exo.device.script import Step
from exo.device.world import SimClock, World

if TYPE_CHECKING:
    from exo.board.screen import Box
    from PIL.Image import Image

WAKING = 30.0  # seconds a script waits for the handheld to reach exod


def panel_of(board: Profile) -> FakePanel:
    """A stand-in for a board's panel."""
    return FakePanel(board.panel.size, board.panel.mode, is_paper(board.panel.driver))


def names_of(board: Profile) -> tuple[str, ...]:
    """The names of a board's buttons."""
    return tuple(button.name for button in board.buttons)


def beacon_of(board: Profile, settings: Settings) -> Beacon:
    """A stand-in for a board's light; a board without one has it too, so that every script runs on it."""
    single = board.led is not None and board.led.kind == "single"
    return Beacon(FakeLight(single), settings.number("led.brightness"))


class DrivenPanel(FakePanel):
    """A stand-in whose pictures also go through a board's driver, into wires that lead nowhere."""

    def __init__(self, board: Profile, now: Callable[[], float]) -> None:
        panel = board.panel
        super().__init__(panel.size, panel.mode, is_paper(panel.driver))
        self.wires = RecordedWires()
        bus = I2cBus(self.wires) if panel.bus == "i2c" else SpiBus(self.wires)
        self._driver = open_driver(panel, bus, now, lambda seconds: None)
        self.band = getattr(self._driver, "band", 0)

    def ready(self) -> bool:
        return bool(getattr(self._driver, "ready", lambda: True)())

    def show(self, image: Image, box: Box | None = None) -> None:
        super().show(image, box)
        self._driver.show(image, box)

    def take(self) -> tuple[int, int]:
        """Bytes and transfers since the last call."""
        sent = [len(entry[1]) for entry in self.wires.log if entry[0] == "write"]
        self.wires.log.clear()
        return sum(sent), len(sent)


class TracedDisplay(Display):
    """Tells the trace what each picture cost."""

    def trace(self, panel: FakePanel, trace: Callable[..., None]) -> None:
        self._panel, self._trace = panel, trace

    def show(self, view: View) -> None:
        begun, before = time.perf_counter(), self._panel.updates
        super().show(view)
        if self._panel.updates != before:
            ms = round(1000 * (time.perf_counter() - begun), 3)
            sent, transfers = self._panel.take() if isinstance(self._panel, DrivenPanel) else (0, 0)
            self._trace("frame", ms=ms, page=view.page, bytes=sent, transfers=transfers)


@dataclass
class Run:
    """A script on the stand-ins of one board. `wires`: through the board's own driver."""

    home: Home
    settings: Settings
    board: Profile
    steps: list[Step]
    shots: Path | None
    stop: threading.Event
    trace: Callable[..., None] = silent
    wires: bool = False

    def real(self, speaker: FakeSpeaker, services: Services) -> None:
        """In real time, with exod and exo-models. Raises ScriptError."""
        clock, microphone, gauge = SimClock(), FakeMicrophone(), FakeGauge()
        panel, beacon = self._panel(clock), beacon_of(self.board, self.settings)
        buttons = FakeButtons(names_of(self.board), clock.monotonic)
        handheld = build(
            *(self.home, self.settings, panel, buttons, microphone, speaker),
            trace=self.trace,
            clock=clock,
        )
        self._watch(handheld, panel)
        pace = RealPace(handheld, self.stop)
        parts = panel, buttons, microphone, speaker, gauge, beacon, clock
        world = World(*parts, services.kill, lambda seconds: _ignored(pace.sleep(seconds)))
        ending = Ending(self.home, handheld.post, False, *self._commands(), services.switch)
        lit = powered(handheld, self.settings, ending, gauge, beacon)
        with lit as world.power, running(handheld):
            _awake(handheld, self.stop)
            Runner(handheld, world, microphone, pace, self.shots).run(self.steps)

    def fast(self) -> None:
        """On the script's own clock. Raises ScriptError."""
        clock, gauge = FastClock(), FakeGauge()
        microphone, speaker = FakeMicrophone(), FakeSpeaker()
        panel, beacon = self._panel(clock), beacon_of(self.board, self.settings)
        buttons = FakeButtons(names_of(self.board), clock.monotonic, waits=False)
        handheld = bare(self.home, self.settings, panel, buttons, clock, trace=self.trace)
        self._watch(handheld, panel)
        fast = Fast(clock, buttons)
        stage = Stage(
            fast, handheld, system_of(self.home, self.settings, handheld), microphone, speaker
        )
        parts = panel, buttons, microphone, speaker, gauge, beacon, clock
        world = World(*parts, stage.kill, fast.advance)
        commands = self._commands()
        ending = Ending(
            *(self.home, handheld.post, False, *commands),
            pause=fast.advance,
            aside=lambda act: fast.later(0, act),
        )
        lit = powered(handheld, self.settings, ending, gauge, beacon, waits=False)
        with lit as power:
            world.power = fast.power = power
            pace = FastPace(fast, self.stop)
            Runner(handheld, world, microphone, pace, self.shots, stage).run(self.steps)

    def _panel(self, clock: Clock) -> FakePanel:
        if self.wires and self.board.panel.bus:
            return DrivenPanel(self.board, clock.monotonic)
        return panel_of(self.board)

    def _watch(self, handheld: Handheld, panel: FakePanel) -> None:
        display = TracedDisplay(panel, handheld.pages, handheld.clock.monotonic)
        display.trace(panel, self.trace)
        handheld.display = display

    def _commands(self) -> tuple[str, str]:
        return self.settings.text("power.off"), self.settings.text("power.restart")


def _ignored(stopped: bool) -> None:
    """The runner looks at the stop itself."""


def _awake(handheld: Handheld, stop: threading.Event) -> None:
    """Let the handheld reach exod before the first line; what keeps it from that is on its screen."""
    end = time.monotonic() + WAKING
    while handheld.snapshot().state == "starting" and time.monotonic() < end and not stop.is_set():
        time.sleep(0.02)
    handheld.snapshot(forget=True)
