"""Times as a person writes them, and times that come again. Pure; wall time without a zone, which the
clock turns into an instant, so that 9:00 stays 9:00 when summer time begins."""

from __future__ import annotations

import calendar
import datetime
import re
from datetime import timedelta
from typing import Literal

from exo.core.base.errors import ExoError

Repeat = Literal["daily", "weekdays", "weekly", "monthly"]
MORNING = datetime.time(9)
FAR = 9000  # the last year; past 9999 there are no dates to count on with
_DAYS = {"today": 0, "heute": 0, "tomorrow": 1, "morgen": 1, "übermorgen": 2}
_ENGLISH = "monday tuesday wednesday thursday friday saturday sunday"
_GERMAN = "montag dienstag mittwoch donnerstag freitag samstag sonntag"
_WEEK = {name: n % 7 for n, name in enumerate(f"{_ENGLISH} {_GERMAN}".split())}
_UNITS = dict.fromkeys(("sec", "sek"), "seconds") | {"min": "minutes"}
_UNITS |= dict.fromkeys(("hour", "stunde"), "hours") | dict.fromkeys(("day", "tag"), "days")
_UNITS |= dict.fromkeys(("week", "woche"), "weeks")
_SPAN = re.compile(rf"in (\d+|an?|eine[rm]?) ?({'|'.join(_UNITS)})[a-z]*$")
_DAY = re.compile(rf"(?:on |am |next )*({'|'.join([*_DAYS, *_WEEK])})\b ?")
_CLOCK = re.compile(r"(?:at |um )?(\d{1,2})(?::(\d{2}))?(?::(\d{2}))? ?(am|pm|uhr)?$")


def read_time(text: str, now: datetime.datetime) -> datetime.datetime:
    """Return the instant that `text` names, with a zone when `text` has one, else as wall time. `now`
    is wall time with its zone. Raises ExoError for text that names none, or one that is past."""
    wall = now.replace(tzinfo=None)
    try:
        found = _read(" ".join(text.split()), wall)
        if found.year > FAR:
            raise ValueError("that is too far off")
    except (OverflowError, ValueError) as error:
        do = 'write "18:30", "tomorrow 9:00", "monday 9:00", "in 20 minutes" or "2026-12-24T18:00"'
        raise ExoError(f"read the time {text!r}", str(error), do) from error
    if found <= (wall if found.tzinfo is None else now):
        raise ExoError(f"set it for {text!r}", f"that is past: it is {wall:%Y-%m-%d %H:%M}")
    return found


def following(first: datetime.datetime, repeat: str, now: datetime.datetime) -> datetime.datetime:
    """The next time after `now` of something that happened first at `first` and comes again (both wall
    times). A day that a month lacks becomes its last one."""
    at, n = first, 0
    while at <= now or repeat == "weekdays" and at.weekday() > 4:
        n += 1
        days = timedelta(days=7 * n if repeat == "weekly" else n)
        at = _months_on(first, n) if repeat == "monthly" else first + days
    return at


def _months_on(first: datetime.datetime, n: int) -> datetime.datetime:
    year, month = first.year + (first.month - 1 + n) // 12, (first.month - 1 + n) % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return first.replace(year=year, month=month, day=min(first.day, last))


def _read(text: str, now: datetime.datetime) -> datetime.datetime:
    """Raises ValueError for text that names no time, OverflowError for one out of all bounds."""
    line = text.lower()
    if re.match(r"\d{4}-", line):
        at = datetime.datetime.fromisoformat(text)
        return datetime.datetime.combine(at, MORNING) if len(text) == 10 else at
    if span := _SPAN.match(line):
        count = int(span[1]) if span[1].isdigit() else 1
        return now + timedelta(**{_UNITS[span[2]]: count})
    day = _DAY.match(line)
    if day is None:
        at = datetime.datetime.combine(now, _clock(line))
        return at if at > now else at + timedelta(days=1)
    name, rest = day[1], line[day.end() :]
    ahead = _DAYS[name] if name in _DAYS else (_WEEK[name] - now.weekday() - 1) % 7 + 1
    time = _clock(rest) if rest else MORNING
    return datetime.datetime.combine(now + timedelta(days=ahead), time)


def _clock(text: str) -> datetime.time:
    match = _CLOCK.match(text)
    if match is None or not (match[2] or match[4]):
        raise ValueError("it is none that I know")
    hour = int(match[1])
    if match[4] in ("am", "pm"):
        if not 1 <= hour <= 12:
            raise ValueError("am and pm count to 12")
        hour = hour % 12 + (12 if match[4] == "pm" else 0)
    return datetime.time(hour, int(match[2] or 0), int(match[3] or 0))
