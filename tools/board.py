"""`exo board list | show | check`: the boards that Exo knows, one of them in full, and whether boards fit
together and this machine is set up for them. Prints; what is right and wrong is board/'s."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exo.board import detect
from exo.board.check import check as problems_of
from exo.board.profile import Panel, Profile, every, load
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.base.settings import Settings

CONFIG = Path("/boot/firmware/config.txt")
CARDS = Path("/proc/asound/cards")
COLOURS = {"1": "mono", "L": "grey", "RGB": "colour"}


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `board` with its verbs to the command line."""
    text = "the boards: list them, show one, check that parts fit together"
    group = sub.add_parser("board", help=text, description=text)
    verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, run, help_ in (
        ("list", list_, "every board: panel, buttons, sound"),
        ("show", show, "one board in full, with its pins"),
        ("check", check, "do the parts fit, is what they need turned on; exit 1 with problems"),
    ):
        verb = verbs.add_parser(name, help=help_, description=help_)
        verb.add_argument("--home", metavar="DIR", help="home folder (default: EXO_HOME, ~/.exo)")
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        if name == "show":
            verb.add_argument("name", metavar="NAME")
        if name == "check":
            verb.add_argument(
                "names", metavar="NAME", nargs="*", help="boards on one header (none: this one)"
            )
            where = "(default: this machine's, on a board)"
            verb.add_argument("--config", type=Path, metavar="FILE", help=f"config.txt {where}")
            verb.add_argument("--cards", type=Path, metavar="FILE", help=f"sound cards {where}")
        verb.set_defaults(run=run)


def list_(options: argparse.Namespace) -> int:
    """Print a row for each board."""
    rows = [
        {
            "name": board.name,
            "title": board.title,
            "panel": _panel(board.panel),
            "buttons": [button.name for button in board.buttons],
            "audio": _audio(board),
        }
        for board in every()
    ]
    if options.json:
        print(json.dumps({"boards": rows}, ensure_ascii=False))
        return 0
    for row in rows:
        print(f"{row['name']:26} {row['title']}")
        print(f"{'':26} {row['panel']}; {', '.join(row['buttons'])}; sound: {row['audio']}")
    return 0


def _panel(panel: Panel) -> str:
    if panel.driver == "none":
        return "none"
    return f"{panel.driver} {panel.size[0]}x{panel.size[1]} {COLOURS[panel.mode]}"


def _audio(board: Profile) -> str:
    audio = board.audio
    return audio.card or (
        "USB or the system's" if "pc" in (audio.microphone, audio.speaker) else "none"
    )


def show(options: argparse.Namespace) -> int:
    """Print all that the profile says."""
    board = load(options.name)
    if options.json:
        print(json.dumps(asdict(board), ensure_ascii=False))
        return 0
    print(f"{board.name}: {board.title}{f' ({board.revision})' if board.revision else ''}")
    for row in wiring(board):
        print(f"  {row}")
    return 0


def wiring(board: Profile) -> list[str]:
    """Lines of what is wired where, pins as BCM numbers."""
    panel = board.panel
    lines = [
        f"panel    {_panel(panel)}" + (f", turned by {panel.rotation}" if panel.rotation else "")
    ]
    if panel.bus == "i2c":
        lines.append(f"         I2C address {panel.address:#04x}")
    if panel.bus == "spi":
        bus, select = panel.device
        lines.append(f"         SPI{bus} chip select {select}, {panel.speed_hz / 1e6:g} MHz")
    if panel.pins:
        lines.append("         " + _pins(panel.pins, panel.active_low))
    for button in board.buttons:
        where = "" if button.pin is None else f"GPIO {button.pin}, on when "
        how = "" if button.pin is None else f"{'low' if button.active_low else 'high'}"
        lines.append(f"button   {button.name:7} {button.label:8} {where}{how}".rstrip())
    mixer = f", mixer {board.audio.mixer}" if board.audio.mixer else ""
    lines.append(f"sound    {_audio(board)}{mixer}")
    if board.led:
        lines.append(f"led      {board.led.kind} {_pins(board.led.pins)}".rstrip())
    if board.battery.kind != "none":
        lines.append(f"battery  {board.battery.kind}")
    for name, pins in board.reserved.items():
        lines.append(f"holds    {name} {', '.join(map(str, pins))}")
    wanted = [overlay.line for overlay in board.overlays]
    if board.audio.overlay:
        wanted.append(f"dtoverlay={board.audio.overlay}")
    lines += [f"config   {line}" for line in wanted]
    return lines


def _pins(pins: Any, low: tuple[str, ...] = ()) -> str:
    return ", ".join(f"{name} {pin}{' (low)' if name in low else ''}" for name, pin in pins.items())


def check(options: argparse.Namespace) -> int:
    """Print problems with what mends them; exit 1 when there are some."""
    if options.names:
        boards = [load(name) for name in options.names]
    else:
        settings = Settings.load(Home.find(options.home).settings_file)
        choice = detect.choose(*detect.wanted(settings))
        boards = [choice.profile]
        if not options.json:
            print(choice)
    here = detect.is_board()
    problems = problems_of(
        boards, _read(options.config, CONFIG, here), _read(options.cards, CARDS, here)
    )
    if options.json:
        rows = [asdict(problem) for problem in problems]
        print(json.dumps({"ok": not problems, "problems": rows}, ensure_ascii=False))
    else:
        for problem in problems:
            print(f"{problem.part}: {problem.what}; {problem.mend}")
        if not problems:
            print("fits")
    return 1 if problems else 0


def _read(path: Path | None, default: Path, here: bool) -> str | None:
    """The text to check against: a file that is named has to be there, ours only on a board."""
    if path is None and not (here and default.is_file()):
        return None
    try:
        return (path or default).read_text(errors="replace")
    except OSError as error:
        raise ExoError(f"read {path or default}", error.strerror or str(error)) from error
