"""The language of scripts: one action a line, no terminal needed. Owns what may stand in a line; who
carries it out is runner.py's matter. The table is in README.md.

Invariant: a script with a fault in its language does nothing at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from exo.board.led import LOOKS
from exo.board.pcm import read_wav
from exo.board.ports import MICROPHONE_RATE
from exo.core.base.errors import BoardError, ExoError
from exo.device import fast, world
from exo.device.states import TABLE


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


def parse(
    source: str,
    buttons: Sequence[str],
    folder: Path,
    name: str = "script",
    quick: bool = False,
) -> list[Step]:
    """Return the steps; `quick` knows what is said of exod and the ear too. Raises ScriptError that names
    every bad line."""
    steps, faults = [], []
    for number, raw in enumerate(source.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            steps.append(_step(number, line, buttons, folder, quick))
        except (ValueError, BoardError) as error:
            faults.append(f"line {number} `{line}`: {error}")
    if faults:
        raise ScriptError(f"read {name}", "; ".join(faults), "nothing was run")
    return steps


def _step(number: int, line: str, buttons: Sequence[str], folder: Path, quick: bool) -> Step:
    action, _, rest = line.partition(" ")
    rest = rest.strip()
    words = (action, *rest.split())
    if action in world.FINGERS or action in world.FAULTS:
        world.check(words, buttons)
        return Step(number, line, action, words)
    if action in fast.SAYINGS:
        if not quick:
            raise ValueError("only with --fast")
        fast.check(action, rest)
        return Step(number, line, action, (rest,))
    if action == "say":
        if not rest:
            raise ValueError("write `say FILE.wav`")
        return Step(number, line, action, (rest,), read_wav(_find(rest, folder), MICROPHONE_RATE))
    if action not in PLAIN:
        known = (*world.FINGERS, "say", *PLAIN, *world.FAULTS, *(fast.SAYINGS if quick else ()))
        raise ValueError(f"no such action; there are {', '.join(known)}")
    return Step(number, line, action, PLAIN[action](rest))


def _type(rest: str) -> tuple[str, ...]:
    if not rest:
        raise ValueError("write `type TEXT`")
    return (rest,)


def _wait(rest: str) -> tuple[str, ...]:
    words = tuple(rest.split())
    if len(words) != 2 or words[0] not in TABLE:
        raise ValueError(f"write `wait STATE SECONDS`; states are {', '.join(TABLE)}")
    world.number(words[1])
    return words


def _shot(rest: str) -> tuple[str, ...]:
    if not re.fullmatch(r"[\w][\w.-]*", rest):
        raise ValueError("write `shot NAME`: letters, digits, - _ .")
    return (rest,)


def _expect(rest: str) -> tuple[str, ...]:
    """`led STATE` is about the light, all else a pattern."""
    word, _, state = rest.partition(" ")
    if word == "led" and state in LOOKS:
        return (word, state)
    try:
        re.compile(rest or "(")
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"write `expect REGEX` or `expect led STATE`: {error}") from error
    return (rest,)


def _sleep(rest: str) -> tuple[str, ...]:
    words = tuple(rest.split())
    if len(words) != 1:
        raise ValueError("write `sleep SECONDS`")
    world.number(words[0])
    return words


PLAIN: dict[str, Callable[[str], tuple[str, ...]]] = {
    "type": _type,
    "wait": _wait,
    "shot": _shot,
    "expect": _expect,
    "sleep": _sleep,
}


def _find(name: str, folder: Path) -> Path:
    """A path beside the script, else from the working folder."""
    path = Path(name)
    return folder / path if (folder / path).exists() else path
