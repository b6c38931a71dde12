"""Which board is this? A name that was set wins, else what is found on the header, else the simulator.

Owns the choice and its reason; knows no driver. Every path and the question to the bus are passed in.
Invariant: it never fails for what is absent, and where two boards fit, it guesses neither."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from exo.board.profile import FOLDER, Profile, every, load
from exo.core.base.settings import Settings

TREE = Path("/proc/device-tree")
BUS = Path("/dev/i2c-1")
I2C_SLAVE = 0x0703  # linux/i2c-dev.h

Answers = Callable[[Iterable[int]], set[int]]


@dataclass(frozen=True)
class Choice:
    """`why` says in a few words how the board was chosen."""

    profile: Profile
    why: str

    def __str__(self) -> str:
        return f"board = {self.profile.name} ({self.why})"


def choose(
    wanted: str = "",
    source: str = "setting",
    *,
    tree: Path | None = None,
    answers: Answers | None = None,
    folder: Path = FOLDER,
) -> Choice:
    """Return the board `wanted` (said by `source`), or the one that is found. Raises BoardError when
    `wanted` is no profile."""
    if wanted:
        return Choice(load(wanted, folder), source)
    tree = tree or TREE
    model, hat = text(tree / "model"), text(tree / "hat" / "product")
    sim = load("sim", folder)
    if not model:
        return Choice(sim, "no board: this machine has no device tree")
    boards = [board for board in every(folder) if board.detect.model in model]
    if hat:
        known = [one for one in boards if one.detect.hat and one.detect.hat.lower() in hat.lower()]
        if known:
            return _only(known, f"EEPROM says {hat}", sim)
    asked = {address for board in boards for address in (*board.detect.i2c, *board.detect.absent)}
    there = (answers or on_bus)(asked)
    found = [
        board
        for board in boards
        if there & set(board.detect.i2c) and not there & set(board.detect.absent)
    ]
    if found:
        hit = there & {address for board in found for address in board.detect.i2c}
        return _only(found, f"I2C {', '.join(map(hex, sorted(hit)))} answers", sim)
    unknown = f", its EEPROM says {hat}" if hat else ""
    return Choice(sim, f"nothing known on the header of {model}{unknown}; set `board`")


def wanted(settings: Settings) -> tuple[str, str]:
    """The setting `board` and where it was set; nothing while it has its default."""
    value, origin = settings.origin("board")
    return ("", "") if origin == "default" else (str(value), origin)


def _only(found: list[Profile], why: str, sim: Profile) -> Choice:
    if len(found) == 1:
        return Choice(found[0], why)
    names = " or ".join(board.name for board in found)
    return Choice(sim, f"{why}: {names}; set `board`")


def is_board(tree: Path | None = None) -> bool:
    """Whether this machine has a header at all; a PC has none."""
    return "Raspberry Pi" in text((tree or TREE) / "model")


def text(path: Path) -> str:
    """A property of the device tree, "" when it is not there; such texts end with a zero byte."""
    try:
        return path.read_bytes().rstrip(b"\0").decode(errors="replace").strip()
    except OSError:
        return ""


def on_bus(addresses: Iterable[int], bus: Path = BUS) -> set[int]:
    """Return those of `addresses` that answer a read; no bus, no answer. One that a driver of the kernel
    holds (EBUSY) is there too."""
    try:
        handle = os.open(bus, os.O_RDWR)
    except OSError:
        return set()
    try:
        return {address for address in addresses if _there(handle, address)}
    finally:
        os.close(handle)


def _there(handle: int, address: int) -> bool:
    try:
        fcntl.ioctl(handle, I2C_SLAVE, address)
        return bool(os.read(handle, 1))
    except OSError as error:
        return error.errno == errno.EBUSY
