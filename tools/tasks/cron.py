"""When something comes again: cron lines in a time zone, `@every SPAN`, `@at TIME`, `@daily FIRST` and its like
(repeat.py). Pure; knows no task and no clock but the one that says where the person is.
Cron lines are cronsim's matter, which does with summer time what Debian's cron does.

Invariant: a slot is an instant in ms UTC, and each comes once."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from exo.core.base.clock import Clock, SystemClock
from exo.core.base.errors import ExoError
from exo.tools.tasks import repeat

MACROS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0"}
MACROS |= {"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}
MACROS |= {"@weekdays": "0 0 * * 1-5", "@weekends": "0 0 * * 0,6"}
_SPAN = re.compile(r"@every (\d{1,6}) ?([smhd])(?: (\S+))?")  # a first time where there is one
HOUR = 3_600_000  # ms
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGAIN = re.compile(rf"@({'|'.join(get_args(repeat.Repeat))}) (.+)")
_FORMS = "@every 30m, @at 2026-12-24T18:00, @daily 2026-12-24T18:00"
_WAYS = 'write a cron line ("0 8 * * *": every day at 8), @daily, "@every 30m" or "@at 2026-12-24T18:00"'


def following(
    line: str, after: int, zone: str, since: int = 0, clock: Clock | None = None
) -> int | None:
    """The first slot after `after` (ms UTC) of a line, None when there is none. `zone` is an IANA name; "" is the
    one in which `clock` shows the time, and does for all but cron lines. `@every` counts from `since`. Raises
    ExoError for a line or a zone that cannot be read."""
    line = MACROS.get(line, line)
    place = _place(line, zone, clock or SystemClock())  # a zone that is none is told of any line
    if line.startswith("@every"):
        span = _SPAN.fullmatch(line)
        step = int(span[1]) * _UNITS[span[2]] if span else 0
        if not step:
            raise _wrong(line, f"write {_FORMS}")
        start = place.stamp(_time(line, span[3])) if span and span[3] else since
        steps = (after - start) // step + 1
        return start + (max(steps, 0) if span and span[3] else steps) * step
    if line.startswith("@at "):
        at = place.stamp(_time(line, line.removeprefix("@at ")))
        return at if at > after else None
    if again := _AGAIN.fullmatch(line):
        return _again(_time(line, again[2]), again[1], after, place)
    if line.startswith("@") or not zone:
        raise _wrong(line, f"write {_FORMS} or {', '.join(MACROS)}")
    return _cron(line, place.wall(after))


@dataclass(frozen=True)
class _Place:
    """`wall(ms)` is what a clock there shows at an instant, with a zone; `stamp(at)` the instant of what it shows."""

    wall: Callable[[int], datetime.datetime]
    stamp: Callable[[datetime.datetime], int]


def _place(line: str, zone: str, clock: Clock) -> _Place:
    if not zone:
        return _Place(clock.local, clock.stamp)
    try:
        there = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        why = f"there is no time zone {zone[:60]!r}; names are like Europe/Zurich"
        raise _wrong(line, why) from error

    def stamp(at: datetime.datetime) -> int:
        return round((at if at.tzinfo else at.replace(tzinfo=there)).timestamp() * 1000)

    return _Place(lambda ms: datetime.datetime.fromtimestamp(ms / 1000, there), stamp)


def _time(line: str, text: str) -> datetime.datetime:
    try:
        at = datetime.datetime.fromisoformat(text)
        at.timestamp()
    except (ValueError, OverflowError) as error:
        raise _wrong(line, f"write {_FORMS}") from error
    return at


def _again(first: datetime.datetime, word: str, after: int, place: _Place) -> int | None:
    """The next of a time that comes again on the wall; one that summer time skips comes an hour later."""
    if word == "hourly":  # by instants: no hour is left out, or doubled, where the clock changes
        start = place.stamp(first)
        return max(start, start + ((after - start) // HOUR + 1) * HOUR)
    try:
        if first.tzinfo:
            first = place.wall(place.stamp(first)).replace(tzinfo=None)
        at = repeat.following(first, word, place.wall(after).replace(tzinfo=None))
        while (slot := place.stamp(at)) <= after:  # in the hour that is there twice
            at = repeat.following(first, word, at)
    except (ValueError, OverflowError):  # past the last of all dates
        return None
    return slot


def _cron(line: str, after: datetime.datetime) -> int | None:
    from cronsim import CronSim, CronSimError

    if len(line.split()) != 5:
        why = "it is no cron line, which has five fields: minute hour day month weekday"
        raise ExoError(f"read the schedule {line[:80]!r}", why, _WAYS)
    try:
        found = next(CronSim(line, after))
    except (CronSimError, OverflowError, ValueError) as error:  # a number of thousands of digits
        raise ExoError(f"read the schedule {line[:80]!r}", str(error)[:200], _WAYS) from error
    except StopIteration:
        return None
    return round(found.timestamp() * 1000)


def _wrong(line: str, why: str) -> ExoError:
    return ExoError(f"read the schedule {line[:80]!r}", why)
