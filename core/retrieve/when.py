"""Time in a question and in a belief. Owns what "last week" and "in March" mean and when a belief holds;
knows the clock it is given and no other."""

from __future__ import annotations

import datetime
import re
from calendar import monthrange
from datetime import timedelta

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.retrieve.document import Document
from exo.core.retrieve.words import DATA, plain

Span = tuple[int, int, str]  # ms UTC, the end excluded; the question without the time
_TIME = DATA["time"]
_TABLES = ("days", "units", "back", "numbers", "months")
_VALUES = {
    name: {word: int(number) for number, words in _TIME[name].items() for word in words.split()}
    for name in _TABLES
}
_WORDS = {name: f"(?P<{name}>{'|'.join(words)})" for name, words in _VALUES.items()}
_WORDS |= {"year": r"(?P<year>(?:19|20)\d\d)", "count": r"(?P<numbers>\d{1,3})"}
_FORMS = [re.compile(rf"\b{form.format(**_WORDS)}\b") for form in _TIME["forms"]]
_PAST = re.compile(rf"\b({_TIME['past'].replace(chr(10), '')})\b")


def moment(at: str, clock: Clock) -> int:
    """ms UTC of a time, or of the end of a date in the clock's zone. Raises ExoError."""
    start = _stamp(at, clock)
    if start is None:
        raise ExoError(f"read the time {at!r}", "it is no date and no time", "write 2026-11-30")
    if len(at.strip()) > 10 or "9999-12-31" in at:  # after which there is no day
        return start
    return clock.stamp(clock.local(start).replace(tzinfo=None) + timedelta(1)) - 1


def holds(document: Document, at: int, clock: Clock) -> bool:
    """Whether it is not over at `at`; the day of `valid_until` itself is over."""
    until = _stamp(document.valid_until, clock)
    return until is None or at < until


def begun(document: Document, clock: Clock) -> int:
    """ms UTC from which it holds; of what has no such day, when it was captured."""
    start = _stamp(document.valid_from, clock)
    return document.ts if start is None else start


def about_past(query: str) -> bool:
    """Whether the question asks how things were."""
    return bool(_PAST.search(" ".join(plain(query[:2000]))))


def window(query: str, clock: Clock, now: int) -> Span | None:
    """The time that the question speaks of, if it does."""
    text = " ".join(plain(query[:2000]))
    today = clock.local(now).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    for form in _FORMS:
        if found := form.search(text):
            words = found.groupdict()
            try:
                told = {k: int(_VALUES.get(k, {}).get(word, word)) for k, word in words.items()}
                start, days = _first(told, today)
                rest = text[: found.start()] + text[found.end() :]
                return clock.stamp(start), clock.stamp(start + timedelta(days)), rest
            except (ValueError, OverflowError):  # the 31st of February
                continue
    return None


def _first(told: dict[str, int], today: datetime.datetime) -> tuple[datetime.datetime, int]:
    """(first day, days) of the numbers that a form has found."""
    month = told.get("months", 1)
    year = told.get("year")
    unit = told.get("units", 1)
    if "numbers" in told:
        return today - timedelta(told["numbers"] * unit + unit // 2), unit | 1
    if not year and "months" not in told:
        return _period(today, unit, told.get("back", told.get("days", 0)))
    day = datetime.datetime(year or today.year - (month > today.month), month, told.get("date", 1))
    return _period(day, 1 if "date" in told else 30 if "months" in told else 365, 0)


def _period(day: datetime.datetime, unit: int, back: int) -> tuple[datetime.datetime, int]:
    """The day, week, month or year of `day`, or the one before."""
    if unit == 365:
        return day.replace(day.year - back, 1, 1), 366 - bool((day.year - back) % 4)
    if unit == 30:
        start = (day.replace(day=1) - timedelta(back)).replace(day=1)
        return start, monthrange(start.year, start.month)[1]
    return day - timedelta((day.weekday() if unit == 7 else 0) + unit * back), unit


def _stamp(text: str, clock: Clock) -> int | None:
    try:
        return clock.stamp(datetime.datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None
