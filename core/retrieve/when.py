"""Time in a question and in a belief. Owns what "last week" and "in March" mean and when a belief holds;
knows the clock it is given and no other."""

from __future__ import annotations

import datetime
import re
from datetime import timedelta

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError
from exo.core.retrieve.document import Document
from exo.core.retrieve.words import plain

Span = tuple[int, int]  # ms UTC, the end excluded
_DAYS = {
    "today": 0,
    "heute": 0,
    "yesterday": 1,
    "gestern": 1,
    "ayer": 1,
    "hier": 1,
    "vorgestern": 2,
}
_UNITS = {
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen"), 1),
    **dict.fromkeys(("week", "weeks", "weekend", "woche", "wochen", "wochenende"), 7),
    **dict.fromkeys(("month", "months", "monat", "monate", "monaten"), 30),
    **dict.fromkeys(("year", "years", "jahr", "jahre", "jahren"), 365),
}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "funf": 5, "sechs": 6}
_MONTHS = (
    "january january januar janner,february februar feber,march marz,april april,may mai,june juni,"
    "july juli,august august,september september,october oktober,november november,december dezember"
)
_MONTH = {name: i for i, names in enumerate(_MONTHS.split(","), 1) for name in names.split()}
_UNIT, _NAME = "|".join(_UNITS), "|".join(_MONTH)
_DAY = re.compile(rf"\b({'|'.join(_DAYS)})\b")
_DATE = re.compile(r"\b((?:19|20)\d\d) (\d\d?) (\d\d?)\b")
_LAST = re.compile(rf"\b(last|past|letzte[nrsm]?|vorige[nrsm]?|this|diese[nrsm]?) ({_UNIT})\b")
_AGO = re.compile(rf"\b(?:vor )?(\d+|{'|'.join(_NUMBERS)}) ({_UNIT})\b( ago)?")
_IN = re.compile(rf"\b(?:in|im|last|letzten|since|seit|during|of) ({_NAME})\b(?: ((?:19|20)\d\d))?")
_MONTH_YEAR = re.compile(rf"\b({_NAME}) ((?:19|20)\d\d)\b")
_YEAR = re.compile(r"\b(?:in|since|during|seit|of) ((?:19|20)\d\d)\b")
_PAST = re.compile(
    r"\b(used to|previous(ly)?|former(ly)?|back then|at (the|that) time|in the past|earlier|originally|no longer"
    r"|any ?more|before (i|we|that)|old|history|fruher(e[nrs]?)?|damals|vorher|ehemalig\w*|bisher|nicht mehr)\b"
)


def moment(at: str, clock: Clock) -> int:
    """ms UTC of a time, or of the end of a date in the clock's zone. Raises ExoError."""
    start = _stamp(at, clock)
    if start is None:
        raise ExoError(f"read the time {at!r}", "it is no date and no time", "write 2026-11-30")
    if len(at.strip()) > 10:
        return start
    return _ms(clock.local(start).replace(tzinfo=None) + timedelta(days=1), clock) - 1


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
    try:
        span = _window(text, today)
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return span and (_ms(span[0], clock), _ms(span[1], clock))


def _window(
    text: str, today: datetime.datetime
) -> tuple[datetime.datetime, datetime.datetime] | None:
    if found := _DATE.search(text):
        day = datetime.datetime(int(found[1]), int(found[2]), int(found[3]))
        return day, day + timedelta(days=1)
    if found := _DAY.search(text):
        day = today - timedelta(days=_DAYS[found[1]])
        return day, day + timedelta(days=1)
    if found := _LAST.search(text):
        return _period(today, _UNITS[found[2]], 0 if found[1].startswith(("this", "dies")) else 1)
    found = _AGO.search(text)
    if found and (found[3] or found[0].startswith("vor ")):
        count, unit = int(_NUMBERS.get(found[1], 0) or found[1]), _UNITS[found[2]]
        day, slack = today - timedelta(days=count * unit), timedelta(days=unit // 2)
        return day - slack, day + slack + timedelta(days=1)
    if found := _MONTH_YEAR.search(text) or _IN.search(text):
        month = _MONTH[found[1]]
        year = int(found[2] or today.year - (month > today.month))
        start = datetime.datetime(year, month, 1)
        return start, (start + timedelta(days=31)).replace(day=1)
    if found := _YEAR.search(text):
        return datetime.datetime(int(found[1]), 1, 1), datetime.datetime(int(found[1]) + 1, 1, 1)
    return None


def _period(
    today: datetime.datetime, unit: int, back: int
) -> tuple[datetime.datetime, datetime.datetime]:
    """This day, week, month or year, or the one before."""
    if unit == 365:
        return today.replace(today.year - back, 1, 1), today.replace(today.year - back + 1, 1, 1)
    if unit == 30:
        start = today.replace(day=1)
        start = (start - timedelta(days=back)).replace(day=1)
        return start, (start + timedelta(days=31)).replace(day=1)
    start = (
        today - timedelta(days=today.weekday() if unit == 7 else 0) - timedelta(days=unit * back)
    )
    return start, start + timedelta(days=unit)


def _stamp(text: str, clock: Clock) -> int | None:
    try:
        return _ms(datetime.datetime.fromisoformat(text.strip()), clock)
    except (ValueError, OverflowError):
        return None


def _ms(wall: datetime.datetime, clock: Clock) -> int:
    return clock.stamp(wall)
