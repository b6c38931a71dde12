"""Puts the simulated handheld together for a script: stand-ins for every part of any board, in real time
with exod and exo-models, or fast.

Owns which parts they are. Invariant: what was started here has ended when a run returns or raises."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from exo.board.fake import (
    FakeButtons,
    FakeGauge,
    FakeLight,
    FakeMicrophone,
    FakePanel,
    FakeSpeaker,
)
from exo.board.led import Beacon
from exo.board.panels import is_paper
from exo.board.profile import Profile
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.app import bare, build, running
from exo.device.fast import Fast, FastClock, Stage
from exo.device.handheld import Handheld
from exo.device.launch import Services
from exo.device.power import Ending, powered
from exo.device.runner import FastPace, RealPace, Runner
from exo.device.script import Step
from exo.device.world import SimClock, World

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


def run(
    home: Home,
    settings: Settings,
    board: Profile,
    steps: list[Step],
    shots: Path | None,
    stop: threading.Event,
    trace: Path | None,
    speaker: FakeSpeaker,
    services: Services,
) -> None:
    """Run a script in real time. Raises ScriptError."""
    clock, microphone, gauge = SimClock(), FakeMicrophone(), FakeGauge()
    panel, buttons = panel_of(board), FakeButtons(names_of(board), clock.monotonic)
    beacon = beacon_of(board, settings)
    handheld = build(
        *(home, settings, panel, buttons, microphone, speaker), trace=trace, clock=clock
    )
    pace = RealPace(handheld, stop)
    parts = panel, buttons, microphone, speaker, gauge, beacon, clock
    world = World(*parts, services.kill, lambda seconds: _ignored(pace.sleep(seconds)))
    texts = settings.text("power.off"), settings.text("power.restart")
    ending = Ending(home, handheld.post, False, *texts, services.switch)
    with powered(handheld, settings, ending, gauge, beacon) as world.power, running(handheld):
        _awake(handheld, stop)
        Runner(handheld, world, microphone, pace, shots).run(steps)


def run_fast(
    home: Home,
    settings: Settings,
    board: Profile,
    steps: list[Step],
    shots: Path | None,
    stop: threading.Event,
    trace: Path | None,
) -> None:
    """Run a script on its own clock. Raises ScriptError."""
    clock, microphone, speaker, gauge = FastClock(), FakeMicrophone(), FakeSpeaker(), FakeGauge()
    panel, beacon = panel_of(board), beacon_of(board, settings)
    buttons = FakeButtons(names_of(board), clock.monotonic, waits=False)
    handheld = bare(settings, panel, buttons, clock, trace=trace)
    fast = Fast(clock, buttons)
    stage = Stage(fast, handheld, microphone, speaker)
    parts = panel, buttons, microphone, speaker, gauge, beacon, clock
    world = World(*parts, stage.kill, fast.advance)
    texts = settings.text("power.off"), settings.text("power.restart")
    ending = Ending(home, handheld.post, False, *texts, pause=fast.advance)
    with powered(handheld, settings, ending, gauge, beacon, waits=False) as power:
        world.power = fast.power = power
        Runner(handheld, world, microphone, FastPace(fast, stop), shots, stage).run(steps)


def _ignored(stopped: bool) -> None:
    """The runner looks at the stop itself."""


def _awake(handheld: Handheld, stop: threading.Event) -> None:
    """Let the handheld reach exod before the first line; what keeps it from that is on its screen."""
    end = time.monotonic() + WAKING
    while handheld.snapshot().state == "starting" and time.monotonic() < end and not stop.is_set():
        time.sleep(0.02)
    handheld.snapshot(forget=True)
