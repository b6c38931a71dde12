"""Times that come again. Pure; wall time without a zone, which the clock turns into an instant, so that
9:00 stays 9:00 when summer time begins."""

from __future__ import annotations

import calendar
import datetime
from datetime import timedelta
from typing import Literal

Repeat = Literal["hourly", "daily", "weekdays", "weekends", "weekly", "monthly", "yearly"]
_STEPS = {"hourly": timedelta(hours=1), "weekly": timedelta(7)}
_MONTHS = {"monthly": 1, "yearly": 12}
_WEEK = {"weekdays": range(5), "weekends": range(5, 7)}


def following(first: datetime.datetime, repeat: str, now: datetime.datetime) -> datetime.datetime:
    """The next time after `now` of something that happened first at `first` and comes again (both wall
    times). A day that a month lacks becomes its last one."""
    step, months = _STEPS.get(repeat, timedelta(1)), _MONTHS.get(repeat, 0)
    at, n = first, max(0, 0 if months else (now - first) // step)
    while at <= now or at.weekday() not in _WEEK.get(repeat, range(7)):
        n += 1
        at = _months_on(first, n * months) if months else first + n * step
    return at


def _months_on(first: datetime.datetime, n: int) -> datetime.datetime:
    year, month = first.year + (first.month - 1 + n) // 12, (first.month - 1 + n) % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return first.replace(year=year, month=month, day=min(first.day, last))
