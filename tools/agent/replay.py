"""What calls of agent tools asked and were told, and the same calls made again with nothing but that. Owns the files
state/replay/NAME.jsonl.

Invariant: the host functions of a replay are made from its record alone: it reads nothing, sends nothing, changes
nothing. A record is bounded, holds no value of a secret, and a line of it that is torn or odd costs that line;
`exo forget` takes out the lines that say what has to go (core/retrieve/forget.py)."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.base.files import make_folder, write_atomic
from exo.core.sandbox.host import HostFunction, Limits, Result, Sandbox
from exo.core.toolbox.registry import check_args
from exo.tools.agent.package import CAN, Package

KEPT = 20  # calls of a tool that are kept
LONGEST = 64_000  # bytes of one
FULL = 512_000  # bytes of a file from which on, as from twice KEPT lines on, it is shortened
BUDGET = 10.0  # seconds for all calls of a replay; what is left then is not run
EACH = Limits(seconds=5.0)
WIDTH = 120  # characters of what is shown of a result
CHANGES = ("http", "space_write", "space_remove")  # what is missed when it is asked no more


@dataclass(frozen=True)
class Asked:
    """One host function: what it was asked, whether it answered, and its answer or error (JSON)."""

    name: str
    args: dict[str, Any]
    ok: bool
    answer: Any


@dataclass(frozen=True)
class Recorded:
    """One call; `ts` (ms UTC) is the time that the guest was told, `code` the hash of the tool that it was."""

    ts: int
    turn: str
    version: int
    code: str
    args: dict[str, Any]
    asked: tuple[Asked, ...]
    ok: bool
    value: Any
    out: str
    error: str


@dataclass(frozen=True)
class Replayed:
    """`verdict` is same, different, unrecorded (it asks what was not asked then) or not run; `was` and `now` what
    the call gave, around where they part."""

    ts: int
    version: int
    args: dict[str, Any]
    verdict: str
    was: str = ""
    now: str = ""


class Recorder:
    """Listens to the host functions of one call."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._size = 0

    def over(self, can: dict[str, HostFunction]) -> dict[str, HostFunction]:
        """The same functions, listened to."""
        return {name: self._heard(name, function) for name, function in can.items()}

    @property
    def whole(self) -> bool:
        """Whether it is short enough to be kept."""
        return self._size <= LONGEST

    def _heard(self, name: str, function: HostFunction) -> HostFunction:
        async def work(**args: Any) -> Any:
            try:
                answer = await function(**args)
            except Exception as error:
                self._note(Asked(name, args, False, str(error)))
                raise
            self._note(Asked(name, args, True, answer))
            return answer

        return work

    def _note(self, asked: Asked) -> None:
        if self.whole:
            self._size += len(json.dumps(asdict(asked), default=str))
            self.asked.append(asked)


class Records:
    """`folder` holds a file for each tool; `hide` puts names in the place of secrets."""

    def __init__(self, folder: Path, hide: Callable[[str], str] = str) -> None:
        self._folder, self._hide = folder, hide
        self._alone = threading.Lock()  # calls of tools end in threads

    def keep(self, name: str, row: Recorded) -> None:
        """Add a call; one that is too long, or that cannot be written down, is not kept. A power cut may cost
        it. Raises OSError, HomeError."""
        try:
            line = self._hide(json.dumps(asdict(row), ensure_ascii=False))
            _recorded(line)  # a value that was hidden may have been a number
            raw = f"\n{line}".encode()
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if len(raw) > LONGEST:
            return
        path = make_folder(self._folder) / f"{name}.jsonl"
        with self._alone:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                os.write(handle, raw)  # after a line feed: one that was torn costs itself alone
                size = os.fstat(handle).st_size
            finally:
                os.close(handle)
            lines, kept = _lines(path), list[bytes]()
            if size > FULL or len(lines) > 2 * KEPT:
                left = FULL // 2
                while lines and (left := left - len(lines[-1])) >= 0 and len(kept) < KEPT:
                    kept.append(lines.pop())
                write_atomic(path, b"\n".join(reversed(kept)))

    def read(self, name: str, last: int = KEPT) -> tuple[list[Recorded], int]:
        """The last calls, the newest last, and how many lines could not be read."""
        rows, odd = list[Recorded](), 0
        for line in _lines(self._folder / f"{name}.jsonl"):
            try:
                rows.append(_recorded(self._hide(line.decode())))  # it may be a secret since
            except (ValueError, TypeError, KeyError, RecursionError):
                odd += 1
        return rows[-last:] if last > 0 else [], odd

    def drop(self, name: str) -> None:
        """Forget the calls of a tool."""
        with self._alone:
            (self._folder / f"{name}.jsonl").unlink(missing_ok=True)


async def replay(sandbox: Sandbox, package: Package, rows: list[Recorded]) -> list[Replayed]:
    """Make these calls again, by `package`. Raises ExoError where there is no sandbox."""
    end, done = time.monotonic() + BUDGET, list[Replayed]()
    for row in rows:
        about = (row.ts, row.version, row.args)
        if time.monotonic() > end:
            done.append(Replayed(*about, "not run"))
        elif fault := check_args(package.parameters, row.args):
            done.append(Replayed(*about, "different", *_apart(_said(row), fault)))
        else:
            answers = Answers(row.asked)
            names = [each for can in package.can for each in CAN[can]]
            can = {name: answers.function(name) for name in names}
            result = await sandbox.run(package.source, "run", row.args, can, EACH, row.ts)
            done.append(Replayed(*about, *_verdict(row, result, answers)))
    return done


def told(name: str, done: list[Replayed]) -> str:
    """A replay in a line for each call that is not the same; "" where nothing was made again."""
    if not done:
        return ""
    counts = {each.verdict: sum(row.verdict == each.verdict for row in done) for each in done}
    lines = [f"replayed on its last calls: {', '.join(f'{n} {key}' for key, n in counts.items())}"]
    for row in done:
        if row.verdict not in ("same", "not run"):
            call = f"{name}({_clipped(json.dumps(row.args, ensure_ascii=False))})"
            lines.append(f"{row.verdict}: {call} gave {row.was}; now {row.now}")
    return "\n".join(lines)


class Answers:
    """What was answered then, once for each time that it was asked. `lacking` is the first thing that was not."""

    def __init__(self, asked: tuple[Asked, ...]) -> None:
        self._left: defaultdict[str, deque[Asked]] = defaultdict(deque)
        self.lacking = ""
        for each in asked:
            self._left[_key(each.name, each.args)].append(each)

    def function(self, name: str) -> HostFunction:
        """The host function of that name."""

        async def work(**args: Any) -> Any:
            left = self._left.get(_key(name, args))
            if not left:
                self.lacking = self.lacking or _clipped(_key(name, args))
                raise ExoError(f"replay {name}", "this was not asked when it was recorded")
            asked = left.popleft()
            if not asked.ok:
                raise RuntimeError(asked.answer)
            return asked.answer

        return work

    def missed(self) -> str:
        """The first change that was asked for then and is not now."""
        left = [key for key, rows in self._left.items() if rows and rows[0].name in CHANGES]
        return _clipped(left[0]) if left else ""


def _verdict(row: Recorded, result: Result, answers: Answers) -> tuple[str, str, str]:
    if answers.lacking:
        return "unrecorded", _clipped(_said(row)), f"it asks {answers.lacking}"
    was, now = _said(row), _said(result)
    if was == now and (missed := answers.missed()):
        return "different", _clipped(was), f"the same, but it does not ask {missed}"
    return ("same", "", "") if was == now else ("different", *_apart(was, now))


def _said(end: Recorded | Result) -> str:
    """What a call gave, in words; the lines of the code that an error went through are no part of it."""
    value = json.dumps(end.value, ensure_ascii=False, sort_keys=True)
    printed = end.out.partition("Traceback (most recent call last)")[0]
    return f"{end.out}{value}" if end.ok else f"{printed}error: {end.error}"


def _apart(was: str, now: str) -> tuple[str, str]:
    """Both from a little before where they part."""
    same = len(os.path.commonprefix([was, now]))
    begin = max(0, same - WIDTH // 4) if same > WIDTH // 2 else 0
    return _clipped(was[begin:], begin > 0), _clipped(now[begin:], begin > 0)


def _clipped(text: str, cut: bool = False) -> str:
    text = "".join(char if char.isprintable() else " " for char in text[: WIDTH + 1])
    return "…" * cut + (text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…")


def _key(name: str, args: dict[str, Any]) -> str:
    return f"{name} {json.dumps(args, ensure_ascii=False, sort_keys=True)}"


def _lines(path: Path) -> list[bytes]:
    """The last lines of a file that is no longer than it may be; [] where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            file.seek(max(0, os.fstat(handle).st_size - 2 * FULL))
            return [line for line in file.read(2 * FULL).splitlines() if line.strip()]
    except OSError:
        return []


def _recorded(line: str) -> Recorded:
    """From a line that anybody may have written. Raises ValueError, TypeError, KeyError, RecursionError."""
    if len(line) > LONGEST:
        raise ValueError("longer than one is kept")
    row = json.loads(line, parse_constant=_refuse)
    kinds = {"ts": int, "turn": str, "version": int, "code": str, "args": dict, "asked": list}
    kinds |= {"ok": bool, "out": str, "error": str}
    if any(type(row[key]) is not kind for key, kind in kinds.items()) or not 0 < row["ts"] < 2**53:
        raise TypeError("it is no call")
    asked = tuple(
        Asked(each["name"], each["args"], each["ok"], each["answer"]) for each in row["asked"]
    )
    for each in asked:
        told = each.ok is True or each.ok is False and isinstance(each.answer, str)
        if not (told and isinstance(each.name, str) and isinstance(each.args, dict)):
            raise TypeError("it is no answer")
    return Recorded(**row | {"asked": asked})


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
