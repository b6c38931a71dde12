"""When lines come: zones, summer time, lists, spans, and lines that are none."""

from __future__ import annotations

import datetime
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from exo.core.base.errors import ExoError
from exo.tools.clock import FakeClock
from exo.tools.tasks.cron import following
from exo.tools.tasks.plugin import local_zone
from exo.tools.tasks.repeat import Repeat
from hypothesis import given, settings
from hypothesis import strategies as st

ZURICH = "Europe/Zurich"


def ms(text: str, zone: str = ZURICH) -> int:
    return round(
        datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000
    )


def wall(at: int | None, zone: str = ZURICH) -> str:
    assert at is not None
    return datetime.datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M %a")


def slots(line: str, since: str, count: int, zone: str = ZURICH) -> list[str]:
    at, found = ms(since, zone), []
    for _ in range(count):
        at = following(line, at, zone) or 0
        found.append(wall(at, zone))
    return found


@pytest.mark.parametrize(
    ("line", "first", "second"),
    [
        ("0 7 * * *", "2026-03-05 07:00 Thu", "2026-03-06 07:00 Fri"),
        ("*/20 10 * * *", "2026-03-04 10:40 Wed", "2026-03-05 10:00 Thu"),
        ("30 6 * * mon-fri", "2026-03-05 06:30 Thu", "2026-03-06 06:30 Fri"),
        ("0 9 1 * *", "2026-04-01 09:00 Wed", "2026-05-01 09:00 Fri"),
        ("0 0 31 * *", "2026-03-31 00:00 Tue", "2026-05-31 00:00 Sun"),
        ("0 12 13 * 5", "2026-03-06 12:00 Fri", "2026-03-13 12:00 Fri"),
        ("15 10,22 * * 0,7", "2026-03-08 10:15 Sun", "2026-03-08 22:15 Sun"),
        ("0 0 29 2 *", "2028-02-29 00:00 Tue", "2032-02-29 00:00 Sun"),
        ("5/25 8 * jul sat", "2026-07-04 08:05 Sat", "2026-07-04 08:30 Sat"),
        ("@hourly", "2026-03-04 11:00 Wed", "2026-03-04 12:00 Wed"),
        ("@monthly", "2026-04-01 00:00 Wed", "2026-05-01 00:00 Fri"),
    ],
)
def test_a_line_comes_when_it_says(line: str, first: str, second: str) -> None:
    assert slots(line, "2026-03-04T10:20", 2) == [first, second]


def test_summer_time_skips_no_day_and_doubles_none() -> None:
    # 02:30 does not exist on 29 March 2026, and is there twice on 25 October
    spring = slots("30 2 * * *", "2026-03-28T12:00", 2)
    assert spring == ["2026-03-29 03:00 Sun", "2026-03-30 02:30 Mon"]
    autumn = slots("30 2 * * *", "2026-10-24T12:00", 2)
    assert autumn == ["2026-10-25 02:30 Sun", "2026-10-26 02:30 Mon"]
    hours = slots("0 * * * *", "2026-03-29T00:30", 3)
    assert hours == ["2026-03-29 01:00 Sun", "2026-03-29 03:00 Sun", "2026-03-29 04:00 Sun"]


def test_every_and_at() -> None:
    since = ms("2026-03-04T10:00")
    assert following("@every 45m", ms("2026-03-04T10:50"), ZURICH, since) == ms("2026-03-04T11:30")
    assert following("@every 45m", since, ZURICH, since) == ms("2026-03-04T10:45")
    assert following("@at 2026-12-24T18:00", since, ZURICH) == ms("2026-12-24T18:00")
    assert following("@at 2026-12-24T18:00+00:00", since, ZURICH) == ms("2026-12-24T19:00")
    assert following("@at 2020-01-01T00:00", since, ZURICH) is None


@pytest.mark.parametrize(
    ("line", "since", "found"),
    [
        ("@daily 2026-03-04T09:00", "2026-03-04T10:20", ["2026-03-05 09:00 Thu"]),
        ("@daily 2026-05-04T09:00", "2026-03-04T10:20", ["2026-05-04 09:00 Mon"]),
        (  # 9:00 stays 9:00 over both changes of the clock
            "@weekly 2026-03-22T09:00",
            "2026-03-22T09:00",
            ["2026-03-29 09:00 Sun", "2026-04-05 09:00 Sun"],
        ),
        ("@daily 2026-10-24T02:30", "2026-10-25T02:30", ["2026-10-26 02:30 Mon"]),
        (  # it is not there on 29 March
            "@daily 2026-03-01T02:30",
            "2026-03-28T02:30",
            ["2026-03-29 03:30 Sun", "2026-03-30 02:30 Mon"],
        ),
        (
            "@monthly 2026-01-31T09:00",
            "2026-02-01T00:00",
            ["2026-02-28 09:00 Sat", "2026-03-31 09:00 Tue", "2026-04-30 09:00 Thu"],
        ),
        ("@yearly 2024-02-29T09:00", "2026-03-01T00:00", ["2027-02-28 09:00 Sun"]),
        ("@weekdays 2026-03-07T09:00", "2026-03-04T10:20", ["2026-03-09 09:00 Mon"]),
        (
            "@weekends 2026-03-07T09:00",
            "2026-03-04T10:20",
            ["2026-03-07 09:00 Sat", "2026-03-08 09:00 Sun", "2026-03-14 09:00 Sat"],
        ),
        (  # by instants: each hour once, whatever the wall says
            "@hourly 2026-10-25T00:30",
            "2026-10-25T00:30",
            ["2026-10-25 01:30 Sun", "2026-10-25 02:30 Sun", "2026-10-25 02:30 Sun"],
        ),
        (
            "@hourly 2026-03-29T00:30",
            "2026-03-29T00:30",
            ["2026-03-29 01:30 Sun", "2026-03-29 03:30 Sun", "2026-03-29 04:30 Sun"],
        ),
        ("@daily 2026-03-04T09:00+00:00", "2026-03-04T10:20", ["2026-03-05 10:00 Thu"]),
    ],
)
def test_what_began_once_comes_again(line: str, since: str, found: list[str]) -> None:
    assert slots(line, since, len(found)) == found


def test_without_a_zone_the_clock_says_where_the_person_is() -> None:
    noon = ms("2026-03-28T12:00", "UTC")
    assert following("@daily 2026-03-28T12:00", noon, "", 0, FakeClock(noon)) == noon + 86_400_000
    with pytest.raises(ExoError, match="read the schedule"):
        following("0 7 * * *", noon, "", 0, FakeClock(noon))


@pytest.mark.parametrize(
    "line",
    [
        *("@daily soon", "@daily  ", "@hourly 2026-13-01T00:00", "@sometimes 2026-03-01T09:00"),
        *("", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8"),
        *(
            "a * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "1- * * * *",
            "@never",
            "@every 0m",
            "@every 5x",
        ),
        *("0 0 30 2 *", "@at tomorrow", "1,,2 * * * *", "* * * * * *", "-1 * * * *"),
    ],
)
def test_what_is_no_line_is_told(line: str) -> None:
    with pytest.raises(ExoError, match="read the schedule"):
        following(line, 0, ZURICH)


def test_a_span_counts_from_its_first_time_where_one_is_given() -> None:
    first = ms("2026-03-28T23:50")  # the clock is put forward in that night
    line = f"@every 45m {datetime.datetime.fromtimestamp(first / 1000, ZoneInfo(ZURICH)):%Y-%m-%dT%H:%M}"
    slots, at = [], first - 5 * 86_400_000
    for _ in range(5):
        found = following(line, at, ZURICH)
        assert found is not None
        slots.append(at := found)
    assert slots == [first + nth * 45 * 60_000 for nth in range(5)]
    for wrong in ("@every 45m soon", "@every 45m  ", "@every 0m 2026-03-28T23:50"):
        with pytest.raises(ExoError, match="read the schedule"):
            following(wrong, 0, ZURICH)


def test_a_zone_that_there_is_not_is_told() -> None:
    for zone in ("a" * 5000, "../../etc/passwd", "Europe", "\0", "\ud800", "zone.tab", "UTC\n"):
        with pytest.raises(ExoError, match="no time zone") as told:
            following("0 7 * * *", 0, zone)
        assert len(str(told.value)) < 300
    for zone in ("Europe/Nowhere", "../etc/passwd", "\0"):
        with pytest.raises(ExoError, match="time zone"):
            following("0 7 * * *", 0, zone)
        for line in ("@every 45m", "@daily", "@at 2027-01-01T09:00"):
            with pytest.raises(ExoError, match="time zone"):
                following(line, 0, zone)


def test_a_rule_in_place_of_a_zone_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wanted in (("Asia/Kathmandu", True), (":Asia/Kathmandu", True), ("CET-1CEST", False)):
        monkeypatch.setenv("TZ", name)
        assert (local_zone() == "Asia/Kathmandu") is wanted
        assert following("@every 45m", 0, local_zone())


FIELD = st.sampled_from(["*", "*/7", "3", "1-5", "2,4"])
LINE = st.tuples(FIELD, FIELD, st.sampled_from(["*", "15", "1-7"]), FIELD, FIELD).map(" ".join)
ZONES = st.sampled_from(
    [ZURICH, "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"]
)


@settings(max_examples=60, deadline=None)
@given(LINE, st.integers(ms("2026-01-01T00:00"), ms("2027-12-31T00:00")), ZONES)
def test_slots_rise_and_fit_their_line(line: str, after: int, zone: str) -> None:
    first = following(line, after, zone)
    assert first is not None and first > after
    again = following(line, first - 1, zone)
    assert again == first
    second = following(line, first, zone)
    assert second is not None and second > first
    there = datetime.datetime.fromtimestamp(first / 1000, ZoneInfo(zone))
    month = line.split()[3]
    assert (
        month == "*"
        or there.month in {"*/7": {1, 8}, "3": {3}, "1-5": set(range(1, 6)), "2,4": {2, 4}}[month]
    )


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(get_args(Repeat)),
    st.datetimes(datetime.datetime(2024, 1, 1), datetime.datetime(2026, 12, 31)),
    st.integers(ms("2026-01-01T00:00"), ms("2027-12-31T00:00")),
    ZONES,
)
def test_repeats_rise_and_keep_their_time_of_day(
    word: str, first: datetime.datetime, after: int, zone: str
) -> None:
    line = f"@{word} {first.isoformat()}"
    slot = following(line, after, zone)
    assert slot is not None and slot > after and following(line, slot - 1, zone) == slot
    again = following(line, slot, zone)
    assert again is not None and again > slot
    there = datetime.datetime.fromtimestamp(slot / 1000, ZoneInfo(zone)).replace(tzinfo=None)
    off = abs(there - datetime.datetime.combine(there.date(), first.time()))
    moved = datetime.timedelta(hours=1) if word != "hourly" else datetime.timedelta(days=1)
    assert off <= moved + datetime.timedelta(milliseconds=1)
    if word != "hourly":
        real = datetime.datetime.combine(there.date(), first.time(), ZoneInfo(zone))
        back = datetime.datetime.fromtimestamp(real.timestamp(), ZoneInfo(zone))
        exists = back.replace(tzinfo=None) == real.replace(tzinfo=None)
        assert off <= datetime.timedelta(milliseconds=1) or not exists
