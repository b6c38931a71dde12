"""Carries out a script on a handheld, as a person and misfortune do: by buttons, sound, the keyboard and
faults. Owns what counts as held; the language is script.py's.

Invariant: a run ends at the first line that does not hold, which says what was seen instead."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from exo.board.fake import FakeMicrophone
from exo.core.base.errors import ExoError
from exo.device.events import Sync, Typed
from exo.device.fast import SAYINGS, Fast, Stage
from exo.device.handheld import Handheld, Snapshot
from exo.device.script import ScriptError, Step
from exo.device.world import FAULTS, FINGERS, World

SCALE = 4  # a shot's pixels for each of the panel's
PATIENCE = 180.0  # seconds that `expect` follows a running turn at most
GRACE = 1.0  # seconds that `expect` looks on after it


class Pace(Protocol):
    """How time passes in a run."""

    look: float  # seconds between two looks at the handheld

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def sleep(self, seconds: float) -> bool:
        """Let seconds pass; whether the run is to end."""
        ...

    def settle(self) -> None:
        """Return once what was posted is on the screen."""
        ...


class RealPace:
    """The handheld runs in a thread of its own, in real time."""

    look = 0.01

    def __init__(self, handheld: Handheld, stop: threading.Event) -> None:
        self._handheld, self._stop = handheld, stop

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> bool:
        return self._stop.wait(seconds)

    def settle(self) -> None:
        done = threading.Event()
        self._handheld.post(Sync(done))
        end = time.monotonic() + 5
        # one that has gone dark takes nothing any more
        while self._handheld.machine.state != "off" and time.monotonic() < end:
            if done.wait(0.2):
                return


class FastPace:
    """The handheld goes on as far as time is moved."""

    look = 0.2

    def __init__(self, fast: Fast, stop: threading.Event) -> None:
        self._fast, self._stop = fast, stop

    def now(self) -> float:
        return self._fast.clock.monotonic()

    def sleep(self, seconds: float) -> bool:
        self._fast.advance(seconds)
        return self._stop.is_set()

    def settle(self) -> None:
        self._fast.settle()


class Runner:
    """One run."""

    def __init__(
        self,
        handheld: Handheld,
        world: World,
        microphone: FakeMicrophone,
        pace: Pace,
        shots: Path | None = None,
        stage: Stage | None = None,
        report: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        """`shots` takes the pictures (None: the working folder); `stage` is what a fast run says of exod."""
        self.handheld, self.world, self.pace = handheld, world, pace
        self.microphone, self.shots, self.stage = microphone, shots or Path(), stage
        self.report = report
        self._seen = 0  # how much of the history earlier waits have used up

    def run(self, steps: list[Step]) -> None:
        """Carry out every step. Raises ScriptError at the first that does not hold."""
        for step in steps:
            self._sleep_for(step, 0)
            self.report(f"{step.number:4} {step.text}")
            try:
                self._do(step)
            except ScriptError:
                raise
            except ExoError as error:
                raise self._failed(step, str(error), self.handheld.snapshot()) from error

    def _do(self, step: Step) -> None:
        if step.action in FINGERS or step.action in FAULTS:
            self._act(lambda: self.world.act(step.arguments))
        elif step.action in SAYINGS and self.stage:
            self.stage.act(step.action, step.arguments[0])
            self.pace.settle()
        else:
            getattr(self, f"_{step.action}")(step)

    # what acts

    def _say(self, step: Step) -> None:
        self._act(lambda: None)
        self._sleep_for(step, self.microphone.sound(step.pcm))

    def _type(self, step: Step) -> None:
        self._act(lambda: self.handheld.post(Typed(step.arguments[0])))

    def _sleep(self, step: Step) -> None:
        self._sleep_for(step, float(step.arguments[0]))

    # what looks

    def _wait(self, step: Step) -> None:
        state, seconds = step.arguments[0], float(step.arguments[1])
        end = self.pace.now() + seconds
        while True:
            now = self.handheld.snapshot()
            since = now.history[self._seen :]
            if state in since:
                self._seen += since.index(state)
                return
            if self.pace.now() > end:
                raise self._failed(step, f"{state} did not come; it is {_states(since)}", now)
            self._sleep_for(step, self.pace.look)

    def _expect(self, step: Step) -> None:
        if step.arguments[0] == "led" and len(step.arguments) == 2:
            self._until(step, lambda now: self.world.beacon.state == step.arguments[1], "led")
            return
        pattern = re.compile(step.arguments[0])

        def matches(now: Snapshot) -> bool:
            flat = " ".join(now.screen.split())
            return any(pattern.search(text) for text in (now.screen, flat, now.reply))

        self._until(step, matches, "screen")

    def _until(self, step: Step, holds: Callable[[Snapshot], bool], what: str) -> None:
        start = quiet = self.pace.now()
        while True:
            now = self.handheld.snapshot()
            if holds(now):
                return
            here = self.pace.now()
            quiet = here if now.busy else quiet
            if here - quiet > GRACE or here - start > PATIENCE:
                led = f"the led shows {self.world.beacon.state}"
                raise self._failed(step, led if what == "led" else "nothing matches", now)
            self._sleep_for(step, 2 * self.pace.look)

    def _shot(self, step: Step) -> None:
        self.pace.settle()
        image = self.world.panel.image
        large = image.resize((image.width * SCALE, image.height * SCALE), resample=0)
        path = self.shots / f"{step.arguments[0].removesuffix('.png')}.png"
        try:
            self.shots.mkdir(parents=True, exist_ok=True)
            large.save(path)
        except OSError as error:
            why = error.strerror or str(error)
            raise ScriptError(
                f"line {step.number} `{step.text}`", f"write {path}: {why}"
            ) from error

    # parts

    def _act(self, action: Callable[[], None]) -> None:
        """Act, and let the history begin with what comes of it."""
        self.pace.settle()
        self.handheld.snapshot(forget=True)
        action()
        self.pace.settle()
        # the state before the action counts only when the action changed nothing
        self._seen = 1 if len(self.handheld.snapshot().history) > 1 else 0

    def _sleep_for(self, step: Step, seconds: float) -> None:
        if self.pace.sleep(seconds):
            raise ScriptError(f"line {step.number} `{step.text}`", "the run was stopped")

    def _failed(self, step: Step, why: str, now: Snapshot) -> ScriptError:
        seen = [f"screen: {' / '.join(now.screen.splitlines()) or 'empty'}"]
        if now.reply:
            seen.append(f"last reply: {now.reply}")
        return ScriptError(f"line {step.number} `{step.text}`", why, "; ".join(seen))


def _states(history: tuple[str, ...]) -> str:
    return history[-1] + (f" (after {', '.join(history[:-1])})" if len(history) > 1 else "")
