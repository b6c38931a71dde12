"""The scripted simulator: one action a line, no terminal needed. Owns the language of scripts and what
counts as held; acts on the handheld as a person does, by buttons, sound and the keyboard.

    hold talk             press a button and keep it down        release talk
    press NAME [ms]       press and release (50 ms)              say FILE.wav    sound, in real time
    type TEXT             a typed line                           sleep S         seconds
    wait STATE SECONDS    until the state is, or was since the last action, STATE
    shot NAME             write NAME.png, four times as large    expect REGEX    on screen or reply
    # a comment

Invariant: a script with a fault in its language does nothing at all."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exo.board.fake import FakeButtons, FakeMicrophone, FakePanel
from exo.board.pcm import read_wav
from exo.board.ports import MICROPHONE_RATE
from exo.core.base.errors import BoardError, ExoError
from exo.device.events import Sync, Typed
from exo.device.handheld import Handheld, Snapshot
from exo.device.states import TABLE

SCALE = 4  # a shot's pixels for each of the panel's
PATIENCE = 180.0  # seconds that `expect` follows a running turn at most
GRACE = 1.0  # seconds that `expect` looks on after it
PRESS_MS = 50


class ScriptError(ExoError, ValueError):
    """A script that cannot be run (before it starts), or a line that did not hold."""

    code = "script"


@dataclass(frozen=True)
class Step:
    """One line: its number from 1, its text, the action and its arguments."""

    number: int
    text: str
    action: str
    arguments: tuple[str, ...]
    pcm: bytes = b""  # of `say`


def parse(source: str, buttons: tuple[str, ...], folder: Path, name: str = "script") -> list[Step]:
    """Return the steps. Raises ScriptError that names every bad line."""
    steps, faults = [], []
    for number, raw in enumerate(source.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            steps.append(_step(number, line, buttons, folder))
        except (ValueError, BoardError) as error:
            faults.append(f"line {number} `{line}`: {error}")
    if faults:
        raise ScriptError(f"read {name}", "; ".join(faults), "nothing was run")
    return steps


def _step(number: int, line: str, buttons: tuple[str, ...], folder: Path) -> Step:
    action, _, rest = line.partition(" ")
    rest = rest.strip()
    words = tuple(rest.split())
    pcm = b""
    if action in ("hold", "release", "press"):
        if not words or len(words) > (2 if action == "press" else 1):
            raise ValueError(f"write `{action} NAME" + (" [ms]`" if action == "press" else "`"))
        if words[0] not in buttons:
            raise ValueError(f"no such button; there are {', '.join(buttons)}")
        if len(words) == 2 and not 0 < _number(words[1]) <= 60_000:
            raise ValueError("milliseconds from 1 to 60000 are wanted")
    elif action == "say":
        if not rest:
            raise ValueError("write `say FILE.wav`")
        pcm = read_wav(_find(rest, folder), MICROPHONE_RATE)
    elif action == "type":
        if not rest:
            raise ValueError("write `type TEXT`")
    elif action == "wait":
        if len(words) != 2 or words[0] not in TABLE:
            raise ValueError(f"write `wait STATE SECONDS`; states are {', '.join(TABLE)}")
        _number(words[1])
    elif action == "shot":
        if not re.fullmatch(r"[\w][\w.-]*", rest):
            raise ValueError("write `shot NAME`: letters, digits, - _ .")
    elif action == "expect":
        try:
            re.compile(rest or "(")
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"write `expect REGEX`: {error}") from error
    elif action == "sleep":
        if len(words) != 1:
            raise ValueError("write `sleep SECONDS`")
        _number(words[0])
    else:
        raise ValueError(
            "no such action; there are hold, release, press, say, type, wait, shot, expect, sleep"
        )
    arguments = words if action in ("hold", "release", "press", "wait", "sleep") else (rest,)
    return Step(number, line, action, arguments, pcm)


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{word!r} is no number") from None
    if not 0 <= value < 1e6:
        raise ValueError(f"{word} is out of range")
    return value


def _find(name: str, folder: Path) -> Path:
    """A path beside the script, else from the working folder."""
    path = Path(name)
    return folder / path if (folder / path).exists() else path


class Runner:
    """Carries out the steps on a handheld that runs in another thread."""

    def __init__(
        self,
        handheld: Handheld,
        panel: FakePanel,
        buttons: FakeButtons,
        microphone: FakeMicrophone,
        shots: Path | None,
        stop: threading.Event,
        report: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        """`shots` takes the pictures (None: the working folder); `stop` ends the run early."""
        self.handheld, self.panel, self.buttons = handheld, panel, buttons
        self.microphone, self.shots, self.stop, self.report = (
            microphone,
            shots or Path(),
            stop,
            report,
        )
        self._seen = 0  # how much of the history earlier waits have used up

    def run(self, steps: list[Step]) -> None:
        """Carry out every step. Raises ScriptError at the first that does not hold."""
        for step in steps:
            if self.stop.is_set():
                raise ScriptError(f"line {step.number} `{step.text}`", "the run was stopped")
            self.report(f"{step.number:4} {step.text}")
            getattr(self, f"_{step.action}")(step)

    # what acts

    def _hold(self, step: Step) -> None:
        self._act(lambda: self.buttons.hold(step.arguments[0]))

    def _release(self, step: Step) -> None:
        self._act(lambda: self.buttons.release(step.arguments[0]))

    def _press(self, step: Step) -> None:
        name, *ms = step.arguments
        seconds = float(ms[0] if ms else PRESS_MS) / 1000
        self._act(lambda: self.buttons.hold(name))
        self._sleep_for(step, seconds)
        self.buttons.release(name)
        self._sync()
        self._skip()

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
        end = time.monotonic() + seconds
        while True:
            now = self.handheld.snapshot()
            since = now.history[self._seen :]
            if state in since:
                self._seen += since.index(state)
                return
            if time.monotonic() > end:
                raise self._failed(step, f"{state} did not come; it is {_states(since)}", now)
            self._sleep_for(step, 0.01)

    def _expect(self, step: Step) -> None:
        pattern = re.compile(step.arguments[0])
        start = quiet = time.monotonic()
        while True:
            now = self.handheld.snapshot()
            flat = " ".join(now.screen.split())
            if any(pattern.search(text) for text in (now.screen, flat, now.reply)):
                return
            here = time.monotonic()
            quiet = here if now.busy else quiet
            if here - quiet > GRACE or here - start > PATIENCE:
                raise self._failed(step, "nothing matches", now)
            self._sleep_for(step, 0.02)

    def _shot(self, step: Step) -> None:
        self._sync()
        image = self.panel.image
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
        self._sync()
        self.handheld.snapshot(forget=True)
        action()
        self._sync()
        self._skip()

    def _skip(self) -> None:
        """The state before the action counts only when the action changed nothing."""
        self._seen = 1 if len(self.handheld.snapshot().history) > 1 else 0

    def _sync(self) -> None:
        done = threading.Event()
        self.handheld.post(Sync(done))
        done.wait(5)

    def _sleep_for(self, step: Step, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise ScriptError(f"line {step.number} `{step.text}`", "the run was stopped")

    def _failed(self, step: Step, why: str, now: Snapshot) -> ScriptError:
        seen = [f"screen: {' / '.join(now.screen.splitlines()) or 'empty'}"]
        if now.reply:
            seen.append(f"last reply: {now.reply}")
        return ScriptError(f"line {step.number} `{step.text}`", why, "; ".join(seen))


def _states(history: tuple[str, ...]) -> str:
    return history[-1] + (f" (after {', '.join(history[:-1])})" if len(history) > 1 else "")
