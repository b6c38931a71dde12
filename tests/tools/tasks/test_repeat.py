"""Times as a person writes them, and repeats over months and summer time."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterator
from datetime import datetime as at
from typing import get_args

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError
from exo.tools.assistant.when import read_time
from exo.tools.tasks.repeat import Repeat, following
from hypothesis import given
from hypothesis import strategies as st

NOW = at(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("18:30", "2026-11-30T18:30"),
        ("9:00", "2026-12-01T09:00"),  # past today: tomorrow
        ("at 6pm", "2026-11-30T18:00"),
        ("12:15 am", "2026-12-01T00:15"),
        ("um 18 Uhr", "2026-11-30T18:00"),
        ("tomorrow 9:00", "2026-12-01T09:00"),
        ("Morgen um 9:30", "2026-12-01T09:30"),
        ("tomorrow", "2026-12-01T09:00"),
        ("übermorgen 8:00", "2026-12-02T08:00"),
        ("monday 9:00", "2026-12-07T09:00"),
        ("on friday at 7:05", "2026-12-04T07:05"),
        ("am Dienstag", "2026-12-01T09:00"),
        ("in 20 minutes", "2026-11-30T15:20+00:00"),
        ("in an hour", "2026-11-30T16:00+00:00"),
        ("in 2 Stunden", "2026-11-30T17:00+00:00"),
        ("in 3 Tagen", "2026-12-03T15:00"),
        ("2026-12-24T18:00", "2026-12-24T18:00"),
        ("2026-12-24 18:00", "2026-12-24T18:00"),
        ("2026-12-24", "2026-12-24T09:00"),
        ("2026-12-24T18:00+02:00", "2026-12-24T18:00+02:00"),
        ("2026-12-24T18:00Z", "2026-12-24T18:00+00:00"),
    ],
)
def test_times_are_read(text: str, found: str) -> None:
    assert read_time(text, NOW) == at.fromisoformat(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "25:00",
        "18:99",
        "13 pm",
        "0 pm",
        "18",
        "today 9:00",
        "2026-11-30T14:59",
        "1999-01-01",
    ]
    + [
        "2026-13-01",
        "2026-02-30T10:00",
        "in 2 centuries",
        "in 0 minutes",
        "in 99999999999 days",
        "morgen irgendwann",
    ],
)
def test_what_is_no_time_to_come_is_refused(text: str) -> None:
    with pytest.raises(ExoError):
        read_time(text, NOW)


@pytest.mark.parametrize(
    ("first", "repeat", "now", "following_"),
    [
        ("2026-01-31T09:00", "monthly", "2026-01-31T09:00", "2026-02-28T09:00"),
        ("2026-01-31T09:00", "monthly", "2026-02-28T09:00", "2026-03-31T09:00"),
        ("2026-11-27T09:00", "weekdays", "2026-11-27T09:00", "2026-11-30T09:00"),
        ("2026-11-30T09:00", "weekly", "2027-01-01T00:00", "2027-01-04T09:00"),
        ("2026-11-30T09:00", "daily", "2026-11-30T08:00", "2026-11-30T09:00"),
    ],
)
def test_what_repeats_comes_again(first: str, repeat: str, now: str, following_: str) -> None:
    found = following(at.fromisoformat(first), repeat, at.fromisoformat(now))
    assert found == at.fromisoformat(following_)


WALL = st.datetimes(at(2020, 1, 1), at(2040, 1, 1))


@given(WALL, st.sampled_from(get_args(Repeat)), WALL)
def test_the_next_time_is_later_and_not_too_late(first: at, repeat: str, now: at) -> None:
    found = following(first, repeat, now)
    assert found > now and found >= min(first, found)
    longest = {
        "hourly": 1,
        "daily": 1,
        "weekdays": 4,
        "weekends": 6,
        "weekly": 7,
        "monthly": 31,
        "yearly": 366,
    }
    assert found - max(now, first) <= datetime.timedelta(days=longest[repeat])


@pytest.fixture
def berlin() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_nine_stays_nine_when_summer_time_begins(berlin: None) -> None:
    clock = SystemClock()
    first = at(2026, 3, 28, 9, 0)
    second = following(first, "daily", first)
    hours = (clock.stamp(second) - clock.stamp(first)) / 3_600_000
    assert hours == 23 and clock.local(clock.stamp(second)).hour == 9


@pytest.mark.parametrize("text", ["9999-12-31T23:59-14:00", "9999-12-31", "in 2700000 days"])
def test_a_time_at_the_end_of_all_dates_is_refused(text: str) -> None:
    with pytest.raises(ExoError, match="that is too far off"):
        read_time(text, NOW)
