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
_DAYS, _UNITS, _BACK, _NUMBERS, _MONTHS = (
    {word: int(number) for number, words in _TIME[name].items() for word in words.split()}
    for name in ("days", "units", "back", "numbers", "months")
)
_A_DAY, _A_UNIT, _A_BACK, _A_NUMBER, _A_MONTH = (
    f"({'|'.join(words)})" for words in (_DAYS, _UNITS, _BACK, [r"\d{1,3}", *_NUMBERS], _MONTHS)
)
_YEAR = r"((?:19|20)\d\d)"
_FORMS = [
    re.compile(rf"\b{form}\b")
    for form in (
        rf"{_YEAR} (\d\d?) (\d\d?)",
        _A_DAY,
        f"{_A_BACK} {_A_UNIT}",
        f"{_A_NUMBER} {_A_UNIT} ago",
        f"vor {_A_NUMBER} {_A_UNIT}",
        f"{_A_MONTH} {_YEAR}",
        f"(?:in|im|last|letzten|since|seit|during|of) {_A_MONTH}",
        f"(?:in|since|during|seit|of) {_YEAR}",
    )
]
_PAST = re.compile(rf"\b({_TIME['past'].replace(chr(10), '')})\b")


def moment(at: str, clock: Clock) -> int:
    """ms UTC of a time, or of the end of a date in the clock's zone. Raises ExoError."""
    start = _stamp(at, clock)
    if start is None:
        raise ExoError(f"read the time {at!r}", "it is no date and no time", "write 2026-11-30")
    if len(at.strip()) > 10:
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
    for which, form in enumerate(_FORMS):
        if found := form.search(text):
            try:
                start, days = _first(which, [*found.groups()], today)
                rest = text[: found.start()] + text[found.end() :]
                return clock.stamp(start), clock.stamp(start + timedelta(days)), rest
            except (ValueError, OverflowError):  # the 31st of February
                continue
    return None


def _first(which: int, words: list[str], today: datetime.datetime) -> tuple[datetime.datetime, int]:
    """(first day, days) of what the form number `which` found."""
    if which == 0:
        return datetime.datetime(int(words[0]), int(words[1]), int(words[2])), 1
    if which == 1:
        return today - timedelta(_DAYS[words[0]]), 1
    if which == 2:
        return _period(today, _UNITS[words[1]], _BACK[words[0]])
    if which in (3, 4):
        unit = _UNITS[words[1]]
        count = _NUMBERS.get(words[0]) or int(words[0])
        return today - timedelta(count * unit + unit // 2), unit | 1
    if which == 7:
        return _period(datetime.datetime(int(words[0]), 1, 1), 365, 0)
    month = _MONTHS[words[0]]
    year = int(words[1]) if which == 5 else today.year - (month > today.month)
    return _period(datetime.datetime(year, month, 1), 30, 0)


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
