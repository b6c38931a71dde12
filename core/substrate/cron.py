"""When something comes again: cron lines in a time zone, `@every SPAN`, `@at TIME`. Pure; knows no task and no clock.

Why our own: croniter and APScheduler bring dateutil or tzlocal into core, which has two dependencies; this is a
table of five sets. Decided 2026-11-30.

Invariant: a slot is an instant in ms UTC, and each comes once: an hour that a zone skips is moved on to the next
time that exists, one that it has twice counts the first time."""

from __future__ import annotations

import datetime
import re
from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from exo.core.base.errors import ExoError

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_MACROS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0"}
_MACROS |= {"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}
_SPAN = re.compile(r"@every (\d{1,6}) ?([smhd])")
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
YEARS = 5  # a line that does not come within so many years never comes (30 February)


def following(line: str, after: int, zone: str, since: int = 0) -> int | None:
    """The first slot after `after` (ms UTC) of a line, None when there is none; `zone` "" is the machine's.
    `@every` counts from `since`. Raises ExoError for a line or a zone that cannot be read."""
    line = _MACROS.get(line, line)
    if line.startswith("@at "):
        at = _at(line, zone)
        return at if at > after else None
    if line.startswith("@"):
        span = _SPAN.fullmatch(line)
        step = int(span[1]) * _UNITS[span[2]] if span else 0
        if not step:
            raise _wrong(line, "write @every 30m, @hourly, @daily, @weekly, @monthly or @yearly")
        return since + ((after - since) // step + 1) * step
    sets, either = _read(line)
    return _next(sets, either, after, _zone(zone, line))


def _next(sets: list[set[int]], either: bool, after: int, zone: ZoneInfo | None) -> int | None:
    minutes, hours, days, months, weekdays = sets
    day = datetime.datetime.fromtimestamp(after / 1000, zone).date()
    last = day + timedelta(days=366 * YEARS)
    while day <= last:
        in_month, in_week = day.day in days, day.isoweekday() % 7 in weekdays
        if day.month in months and (in_month or in_week if either else in_month and in_week):
            times = (datetime.time(hour, minute) for hour in hours for minute in minutes)
            slots = (_stamp(datetime.datetime.combine(day, time), zone) for time in times)
            if found := min((at for at in slots if at > after), default=0):
                return found
        day += timedelta(days=1)
    return None


def _stamp(wall: datetime.datetime, zone: ZoneInfo | None) -> int:
    """ms UTC. What a zone skips is as much later as the clock is put forward (PEP 495, fold 0)."""
    return round(wall.replace(tzinfo=zone).timestamp() * 1000)


def _read(line: str) -> tuple[list[set[int]], bool]:
    """The five sets, and whether day and weekday are alternatives (both are restricted), as in POSIX."""
    parts = line.lower().split()
    if len(parts) != len(_FIELDS):
        raise _wrong(line, "a line has five fields: minute hour day month weekday")
    sets = [_set(line, part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
    sets[4] = {day % 7 for day in sets[4]}
    return sets, not parts[2].startswith("*") and not parts[4].startswith("*")


def _set(line: str, part: str, name: str, low: int, high: int) -> set[int]:
    made: set[int] = set()
    for each in part.split(","):
        span, _, step = each.partition("/")
        first, dash, last = span.partition("-")
        try:
            begin = low if span == "*" else _number(first, name)
            end = (
                high if span == "*" or step and not dash else _number(last if dash else first, name)
            )
            by = int(step) if step else 1
        except ValueError as error:
            raise _wrong(line, f"{each!r} is no {name}") from error
        if not (low <= begin <= end <= high and by > 0):
            raise _wrong(line, f"{each!r} is no {name}: {low} to {high}")
        made.update(range(begin, end + 1, by))
    return made


def _number(text: str, name: str) -> int:
    names = {"month": _NAMES, "weekday": _DAYS}.get(name, [])
    if text in names:
        return names.index(text) + (name == "month")
    return int(text)


def _at(line: str, zone: str) -> int:
    try:
        at = datetime.datetime.fromisoformat(line.removeprefix("@at "))
    except ValueError as error:
        raise _wrong(line, "write @at 2026-12-24T18:00") from error
    return _stamp(at, _zone(zone, line)) if at.tzinfo is None else round(at.timestamp() * 1000)


def _zone(name: str, line: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _wrong(
            line, f"there is no time zone {name!r}; names are like Europe/Zurich"
        ) from error


def _wrong(line: str, why: str) -> ExoError:
    return ExoError(f"read the schedule {line!r}", why)
