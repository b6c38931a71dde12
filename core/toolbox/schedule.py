"""Times as a person writes them, and times that come again. Pure; wall time without a zone, which the
clock turns into an instant, so that 9:00 stays 9:00 when summer time begins."""

from __future__ import annotations

import calendar
import datetime
import re
from datetime import timedelta
from typing import Literal

from exo.core.base.errors import ExoError

Repeat = Literal["hourly", "daily", "weekdays", "weekly", "monthly", "yearly"]
MORNING = datetime.time(9)
_DAYS = {"today": 0, "heute": 0, "tomorrow": 1, "morgen": 1, "übermorgen": 2}
_WEEK = tuple(
    words.split()
    for words in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    )
)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks", "t": "days"}
_UNIT = r"s(?:ec|ek)\w*|s|min\w*|m|h(?:ours?|rs?)?|stunden?|d(?:ays?)?|tag(?:en)?|weeks?|wochen?"
_CLOCK = re.compile(r"(?:at |um )?(\d{1,2})(?:[:.h](\d{2}))?(?:[:.](\d{2}))? ?(am|pm|uhr)?$")
_SPAN = re.compile(rf"in (\d+|an?|eine[rm]?) ?({_UNIT})$")


def read_time(text: str, now: datetime.datetime) -> datetime.datetime:
    """Return the instant that `text` names, with a zone when `text` has one, else as wall time. `now`
    is wall time with its zone. Raises ExoError for text that names none, or one that is past."""
    wall = now.replace(tzinfo=None)
    line = " ".join(text.lower().split())
    try:
        found = _iso(text.strip()) or _words(line, wall)
    except (OverflowError, ValueError) as error:
        raise ExoError(f"read the time {text!r}", str(error)) from error
    if found is None:
        do = 'write "18:30", "tomorrow 9:00", "monday 9:00", "in 20 minutes" or "2026-12-24T18:00"'
        raise ExoError(f"read the time {text!r}", "it is none that I know", do)
    if found <= (wall if found.tzinfo is None else now):
        raise ExoError(f"set it for {text!r}", f"that is past: it is {wall:%Y-%m-%d %H:%M}")
    return found


def following(
    first: datetime.datetime, repeat: str, now: datetime.datetime
) -> datetime.datetime | None:
    """The next time after `now` of something that happened first at `first` and comes again (both wall
    times); None when it does not. A day that a month lacks becomes its last one."""
    if not repeat:
        return None
    n = max(0, _passed(first, repeat, now) - 1)
    while (at := _nth(first, repeat, n)) <= now or repeat == "weekdays" and at.weekday() > 4:
        n += 1
    return at


def _passed(first: datetime.datetime, repeat: str, now: datetime.datetime) -> int:
    span = now - first
    months = (now.year - first.year) * 12 + now.month - first.month
    return {
        "hourly": span // timedelta(hours=1),
        "daily": span.days,
        "weekdays": span.days,
        "weekly": span.days // 7,
        "monthly": months,
        "yearly": now.year - first.year,
    }[repeat]


def _nth(first: datetime.datetime, repeat: str, n: int) -> datetime.datetime:
    if repeat == "hourly":
        return first + timedelta(hours=n)
    if repeat in ("daily", "weekdays", "weekly"):
        return first + timedelta(days=n * (7 if repeat == "weekly" else 1))
    months = first.month - 1 + n * (12 if repeat == "yearly" else 1)
    year, month = first.year + months // 12, months % 12 + 1
    return first.replace(
        year=year, month=month, day=min(first.day, calendar.monthrange(year, month)[1])
    )


def _iso(text: str) -> datetime.datetime | None:
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    at = datetime.datetime.fromisoformat(text)
    return datetime.datetime.combine(at.date(), MORNING) if len(text) == 10 else at


def _words(line: str, now: datetime.datetime) -> datetime.datetime | None:
    if span := _SPAN.match(line):
        count = int(span[1]) if span[1].isdigit() else 1
        unit = "hours" if span[2].startswith("stunde") else _UNITS[span[2][0]]
        return now + timedelta(**{unit: count})
    day, _, rest = line.removeprefix("on ").removeprefix("am ").removeprefix("next ").partition(" ")
    if day in _DAYS:
        ahead: int | None = _DAYS[day]
    elif names := next((names for names in _WEEK if day in names), None):
        ahead = (names.index(day) - now.weekday() - 1) % 7 + 1
    else:
        ahead, rest = None, line
    time = _time(rest) if rest or ahead is None else MORNING
    if time is None:
        return None
    at = datetime.datetime.combine(now.date() + timedelta(days=ahead or 0), time)
    return at + timedelta(days=1) if ahead is None and at <= now else at


def _time(text: str) -> datetime.time | None:
    match = _CLOCK.match(text)
    if match is None or not (match[2] or match[4]):
        return None
    hour = int(match[1])
    if match[4] in ("am", "pm"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] == "pm" else 0)
    return datetime.time(hour, int(match[2] or 0), int(match[3] or 0))
