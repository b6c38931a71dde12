"""exo-device: puts the handheld together from a board profile and runs it, in a terminal or by a script.

Owns start, stop and exit codes: 0 done, 1 failed (the line says why), 2 wrong use. Invariant: however
it ends, the terminal is as it was and what was started is stopped."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from exo.board import detect
from exo.board.fake import FakeSpeaker
from exo.board.pcm import write_wav
from exo.board.ports import Buttons, Microphone, Speaker
from exo.board.profile import Profile
from exo.board.screen import Screen
from exo.core.base.clock import Clock, SystemClock
from exo.core.base.errors import ExoError, storage_error
from exo.core.base.files import ProcessLock
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.events import Quit
from exo.device.launch import Services
from exo.device.system import finish_reset

if TYPE_CHECKING:
    from exo.device.handheld import Handheld
    from exo.device.layouts import Layout
    from exo.device.system import System


def main(arguments: list[str] | None = None) -> int:
    """Run until the person quits or the script ends; returns an exit code."""
    options = _parse(arguments)
    home = Home.find(options.home)
    try:
        if options.fast and not options.script:
            raise ExoError("run fast", "there is no script", "use --script FILE", code="bad_use")
        if options.audio_out and not options.audio_out.absolute().parent.is_dir():
            what = f"write {options.audio_out}"
            raise ExoError(what, "its folder does not exist", "make it first", code="bad_use")
        if options.gallery:
            return _gallery(options.gallery)
        if options.script:
            return _scripted(home, options)
        return _interactive(home, options)
    except ExoError as error:
        print(f"exo-device: {error}", file=sys.stderr)
        return 2 if error.code in ("script", "bad_use") else 1
    except KeyboardInterrupt:
        return 130


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="exo-device", description="The handheld: screen, buttons and voice of Exo."
    )
    parser.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME or ~/.exo)")
    parser.add_argument(
        "--board", metavar="NAME", help="board profile (default: the setting board, else detection)"
    )
    parser.add_argument(
        "--port", metavar="PORT", help="serial port of a panel on a cable (default: by its USB id)"
    )
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="run actions from FILE, no terminal"
    )
    parser.add_argument(
        "--shots", type=Path, metavar="DIR", help="folder for the script's pictures"
    )
    parser.add_argument(
        "--audio-out", type=Path, metavar="FILE", help="write what was heard as WAV"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="append the moments of each turn as JSON lines"
    )
    parser.add_argument(
        "--gallery", type=Path, metavar="DIR", help="draw every page on every panel, and leave"
    )
    parser.add_argument(
        "--no-services", action="store_true", help="start neither exod nor exo-models"
    )
    parser.add_argument(
        "--fast", action="store_true", help="a clock of the script's own, and exod as it says"
    )
    parser.add_argument(
        "--wires",
        action="store_true",
        help="a script's panel is the board's own driver, unconnected",
    )
    parser.add_argument(
        "--models-fake", action="store_true", help="start exo-models without model files (tests)"
    )
    return parser.parse_args(arguments)


def silent(moment: str, **more: object) -> None:
    """Nobody measures."""


def _gallery(folder: Path) -> int:
    from exo.device.gallery import draw

    try:
        draw(folder)
    except OSError as error:
        raise storage_error(f"write {folder}", error) from error
    return 0


def build(
    home: Home,
    settings: Settings,
    screen: Screen,
    buttons: Buttons,
    microphone: Microphone,
    speaker: Speaker,
    toggles: bool = False,
    trace: Callable[..., None] = silent,
    clock: Clock | None = None,
) -> Handheld:
    """Put a handheld together; its link runs, its loop does not yet."""
    from exo.device.ear import Ear
    from exo.device.link import Exod
    from exo.device.mirror import Mirror
    from exo.device.voice import Voice

    handheld = bare(home, settings, screen, buttons, clock or SystemClock(), toggles, trace)
    try:
        handheld.display.mirror = Mirror(home.state / "screen.sock").show
    except ExoError as error:  # the person's own screen goes on
        print(f"exo-device: {error}", file=sys.stderr)
    models = home.models_socket
    link = Exod(home.exod_socket, models, home.state / "device.json", handheld.post)
    language = settings.text("voice.language")
    pause, adaptive = settings.number("listen.pause"), bool(settings.origin("listen.adaptive")[0])
    ear = Ear(models, microphone, handheld.post, language, pause, adaptive)
    voice = Voice(models, speaker, handheld.post, settings.text("voice.backend"), language)
    handheld.attach(ear, voice, link, system_of(home, settings, handheld))
    link.start()
    return handheld


def system_of(home: Home, settings: Settings, handheld: Handheld) -> System:
    """The machine around a handheld."""
    from exo.device.system import System

    board = settings.text("board")
    return System(home, board, handheld.texts, lambda: handheld.post(Quit()))


def bare(
    home: Home,
    settings: Settings,
    screen: Screen,
    buttons: Buttons,
    clock: Clock,
    toggles: bool = False,
    trace: Callable[..., None] = silent,
) -> Handheld:
    """A handheld with screen and buttons, to which ear, voice and link are attached."""
    from exo.device.events import Button, Gesture
    from exo.device.font import Fonts
    from exo.device.handheld import Handheld
    from exo.device.layouts import layout_for
    from exo.device.locale import Texts
    from exo.device.pin import Pin
    from exo.device.settings import OFFERED
    from exo.device.states import DEADLINES, Machine

    paper = bool(getattr(screen, "paper", False))
    fonts = Fonts()

    def lay_out(options: Mapping[str, object]) -> Layout:
        large, high = options["screen.text"] == "large", options["screen.contrast"] == "high"
        texts = Texts(str(options["screen.language"]))
        return layout_for(screen.size, screen.mode, paper, fonts, texts, large, high)

    options = {name: settings.origin(name)[0] for name in OFFERED}
    machine = Machine(clock, DEADLINES | {"listening": settings.number("listen.longest")})
    handheld = Handheld(
        screen,
        lay_out(options),
        clock,
        machine,
        settings.number("screen.linger"),
        toggles,
        trace,
        buttons.names,
        options,
        Pin(home.state / "pin", clock),
    )
    handheld.lay_out = lay_out

    def press(name: str, down: bool) -> None:
        trace("edge", name=name, down=down)
        handheld.post(Button(name, down))

    buttons.listen(
        press,
        lambda made: handheld.post(Gesture(made.kind, "+".join(made.names), made.at)),
    )
    return handheld


def tracer(path: Path | None) -> Callable[..., None]:
    """Write `{"t": seconds, "moment": ...}` and what else is told for each moment; t is the system's
    monotonic clock."""
    if path is None:
        return silent
    try:
        file = path.open("a", buffering=1)
    except OSError as error:
        raise storage_error(f"write {path}", error) from error

    def write(moment: str, **more: object) -> None:
        print(json.dumps({"t": time.monotonic(), "moment": moment} | more), file=file)

    return write


@contextlib.contextmanager
def running(handheld: Handheld) -> Iterator[None]:
    """Run the handheld's loop in a thread; quit it at the end."""
    thread = threading.Thread(target=handheld.run, name="handheld", daemon=True)
    thread.start()
    try:
        yield
    finally:
        handheld.post(Quit())
        thread.join(5)


def _board(options: argparse.Namespace, settings: Settings) -> Profile:
    """The board, chosen once; the reason is printed."""
    wanted = (options.board, "--board") if options.board else detect.wanted(settings)
    choice = detect.choose(*wanted)
    print(f"exo-device: {choice}", file=sys.stderr, flush=True)
    if options.port:
        return replace(choice.profile, panel=replace(choice.profile.panel, port=options.port))
    return choice.profile


def _plugged(board: Profile) -> bool:
    """Whether the panel is there; says so when it is not, and is drawn in the terminal."""
    from exo.board.rp2040 import find_port

    port = find_port(board.panel.port)
    where = f"on {port}" if port else "not plugged in, drawn here (or name its port: --port PORT)"
    print(f"exo-device: panel = {where}", file=sys.stderr, flush=True)
    return bool(port)


def _scripted(home: Home, options: argparse.Namespace) -> int:
    from exo.device import simulated
    from exo.device.script import ScriptError, parse

    settings = Settings.load(home.settings_file)
    board = _board(options, settings)
    try:
        source = options.script.read_text("utf-8-sig")  # editors on Windows put a mark first
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ExoError(f"read {options.script}", why, code="bad_use") from error
    names = tuple(button.name for button in board.buttons)
    steps = parse(source, names, options.script.parent, str(options.script), options.fast)

    stop = _signalled(signal.SIGTERM, signal.SIGHUP)
    speaker, trace = FakeSpeaker(), tracer(options.trace)
    run = simulated.Run(home, settings, board, steps, options.shots, stop, trace, options.wires)
    try:
        with _alone(home):
            if options.fast:
                run.fast()
            else:
                with _services(home, options, stop) as services:
                    run.real(speaker, services)
    except ScriptError as error:
        print(f"exo-device: {options.script}, {error}", file=sys.stderr)
        return 1
    finally:
        if options.audio_out:
            write_wav(options.audio_out, speaker.heard(), FakeSpeaker.RATE)
    return 0


def _signalled(*numbers: signal.Signals) -> threading.Event:
    """An event that any of the signals sets."""
    stop = threading.Event()
    for number in numbers:
        signal.signal(number, lambda *_: stop.set())
    return stop


def _interactive(home: Home, options: argparse.Namespace) -> int:
    from exo.device import onboard, terminal

    settings = Settings.load(home.settings_file)
    board = _board(options, settings)
    if detect.is_board() and not board.simulated or board.cabled and _plugged(board):
        stop = _signalled(signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
        with _alone(home), _services(home, options, stop) as services:
            switch = (lambda run: None) if options.no_services else services.switch
            return onboard.run(home, settings, board, tracer(options.trace), stop, services=switch)
    terminal.check(sys.stdin, sys.stdout)
    with _alone(home), _services(home, options, None) as services:
        trace = tracer(options.trace)
        return terminal.run(home, settings, board, options.audio_out, trace, services)


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One handheld a home: two would answer the same question."""
    home.make()
    if finish_reset(home):
        home.make()
    lock = ProcessLock(home.lock_file("device"), "exo-device")
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _services(
    home: Home, options: argparse.Namespace, stop: threading.Event | None
) -> Iterator[Services]:
    """exod and exo-models while we run; yields what starts and stops them."""

    def report(text: str) -> None:
        print(f"exo-device: {text}", file=sys.stderr, flush=True)

    services = Services(home, report, options.models_fake)
    try:
        if not options.no_services:
            services.start()
            services.wait(stop.is_set if stop else lambda: False)
        yield services
    finally:
        services.stop()


if __name__ == "__main__":
    sys.exit(main())
