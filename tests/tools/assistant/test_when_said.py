"""Times as a person says them, in three languages: by example, beside dateparser, over summer time, and for
any words."""

from __future__ import annotations

import datetime
from datetime import datetime as at
from zoneinfo import ZoneInfo

import dateparser
import pytest
from exo.tools.assistant.tongue import NAMES, fold, language
from exo.tools.assistant.when import parse
from hypothesis import example, given, settings
from hypothesis import strategies as st

NOW = at(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("name", "text", "found", "repeat", "rest"),
    [
        ("en", "half past six tomorrow", "2026-12-01T06:30", "", ""),
        ("en", "in a quarter of an hour", "2026-11-30T15:15", "", ""),
        ("en", "every weekday at 7", "2026-12-01T07:00", "weekdays", ""),
        ("en", "at 6:30 to leave", "2026-11-30T18:30", "", "to leave"),
        ("en", "at ten to five", "2026-11-30T16:50", "", ""),
        ("en", "in 1 hour 30", "2026-11-30T16:30", "", ""),
        ("en", "tomorrow to call mum at 8", "2026-12-01T08:00", "", "to call mum"),
        ("en", "to buy 2 tickets at 6", "2026-11-30T18:00", "", "to buy 2 tickets"),
        ("en", "december 24th at 6 pm", "2026-12-24T18:00", "", ""),
        ("en", "on the first of every month at 9", "2026-12-01T09:00", "monthly", ""),
        ("en", "on Fridays at 5 pm", "2026-12-04T17:00", "weekly", ""),
        ("en", "at weekends at 10", "2026-12-05T10:00", "weekends", ""),
        ("en", "every weekend at ten", "2026-12-05T10:00", "weekends", ""),
        ("en", "tonight at 8", "2026-11-30T20:00", "", ""),
        ("en", "in two weeks", "2026-12-14T15:00", "", ""),
        ("en", "in three days at 9", "2026-12-03T09:00", "", ""),
        (
            "en",
            "to say good morning to Anna at 9",
            "2026-11-30T21:00",
            "",
            "to say good morning to Anna",
        ),
        (
            "en",
            "tomorrow at 9 to book the table for 8pm on Friday",
            "2026-12-01T09:00",
            "",
            "to book the table for 8pm on Friday",
        ),
        ("en", "every other day at 7", None, "", ""),
        ("en", "every tuesday and thursday at 7", None, "", ""),
        ("en", "at a party", None, "", ""),
        ("en", "on the 31st of february", None, "", ""),
        ("de", "am Freitag um viertel vor acht", "2026-12-04T07:45", "", ""),
        ("de", "morgen früh um sieben", "2026-12-01T07:00", "", ""),
        ("de", "in einer Viertelstunde", "2026-11-30T15:15", "", ""),
        ("de", "in anderthalb Stunden", "2026-11-30T16:30", "", ""),
        ("de", "um fünf vor halb sieben", "2026-11-30T18:25", "", ""),
        ("de", "jeden Montag um 18 Uhr 30", "2026-11-30T18:30", "weekly", ""),
        ("de", "am 5.12. um 8", "2026-12-05T08:00", "", ""),
        ("de", "um ein Ticket zu kaufen", None, "", ""),
        ("es", "a las seis y media", "2026-11-30T18:30", "", ""),
        ("es", "mañana a las ocho menos cuarto", "2026-12-01T07:45", "", ""),
        ("es", "dentro de un cuarto de hora", "2026-11-30T15:15", "", ""),
        ("es", "el viernes a las 8 de la tarde", "2026-12-04T20:00", "", ""),
        ("es", "a las 12 de la noche", "2026-12-01T00:00", "", ""),
        ("es", "entre semana a las siete", "2026-12-01T07:00", "weekdays", ""),
    ],
)
def test_times_are_read_as_they_are_said(
    name: str, text: str, found: str | None, repeat: str, rest: str
) -> None:
    when = parse(text, NOW, name)
    if found is None:
        assert when is None
        return
    assert when is not None
    assert when.at.replace(tzinfo=None) == at.fromisoformat(found)
    assert (when.repeat, when.rest) == (repeat, rest)


# both understand these, and agree
SAME = [
    ("en", "tomorrow at 9:30"),
    ("en", "in 20 minutes"),
    ("en", "in 2 hours"),
    ("en", "in 3 days"),
    ("en", "on friday at 17:00"),
    ("en", "december 24 at 18:00"),
    ("en", "2026-12-24 18:00"),
    ("en", "24 december at 6 pm"),
    ("en", "tomorrow at 6pm"),
    ("de", "morgen um 9:30"),
    ("de", "in 20 Minuten"),
    ("de", "übermorgen um 18:00"),
    ("de", "24. Dezember 18:00"),
    ("es", "mañana a las 9:30"),
    ("es", "en 20 minutos"),
    ("es", "24 diciembre 18:00"),
]
# text -> what dateparser makes of it, and why ours is another
OTHER = {
    ("en", "half past six tomorrow"): "it does not know clock times in words",
    (
        "en",
        "at 6:30",
    ): "it takes the next half past six of a clock of 24 hours; a person means this evening",
    ("en", "tomorrow"): "it takes the time of now; a day alone is its morning here",
    ("en", "every weekday at 7"): "it does not know what comes again",
    ("de", "am 24. Dezember um 18:00"): "it finds no time behind such small words",
    ("es", "el 24 de diciembre a las 18:00"): "it finds no time behind such small words",
    ("de", "um halb sieben"): "it does not know clock times in words",
    ("es", "a las seis y media"): "it does not know clock times in words",
}


def beside(name: str, text: str) -> at | None:
    now = NOW.replace(tzinfo=None)
    wanted = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "future", "DATE_ORDER": "DMY"}
    return dateparser.parse(text, languages=[name], settings=wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "text"), SAME)
def test_dateparser_reads_the_same(name: str, text: str) -> None:
    when = parse(text, NOW, name)
    assert when is not None and when.at.replace(tzinfo=None) == beside(name, text)


@pytest.mark.parametrize(("name", "text"), OTHER)
def test_where_dateparser_differs_is_known(name: str, text: str) -> None:
    when = parse(text, NOW, name)
    assert when is not None and when.at.replace(tzinfo=None) != beside(name, text)


@pytest.mark.parametrize(
    ("now", "text", "hours"),
    [
        ("2026-03-28T20:00", "tomorrow at 9", 12),  # an hour is skipped in the night
        ("2026-10-24T20:00", "tomorrow at 9", 14),  # and here one comes twice
        ("2026-03-28T20:00", "in 12 hours", 12),
        ("2026-10-24T20:00", "in 12 hours", 12),
    ],
)
def test_wall_times_stay_and_spans_are_counted_over_summer_time(
    now: str, text: str, hours: int
) -> None:
    start = at.fromisoformat(now).replace(tzinfo=BERLIN)
    # a clock hands out its zone as a fixed offset
    fixed = start.replace(tzinfo=datetime.timezone(start.utcoffset() or datetime.timedelta()))
    when = parse(text, fixed)
    assert when is not None
    due = when.at if when.at.tzinfo else when.at.replace(tzinfo=BERLIN)
    assert due.timestamp() - start.timestamp() == hours * 3600


WORDS = {
    name: sorted({word for table in language(name).tables.values() for word in table})
    for name in NAMES
}
MORE = [
    "at",
    "in",
    "every",
    "um",
    "am",
    "jeden",
    "a las",
    "en",
    "cada",
    "5",
    "12:30",
    "7",
    "25",
    ",",
]
MORE += [
    "of",
    "the",
    "and",
    "half past",
    "uhr",
    "y media",
    "de la",
    "31",
    "99999999",
    "pm",
    ".",
    "ß",
    "İ",
]


@st.composite
def said(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(st.sampled_from(NAMES))
    words = st.lists(st.sampled_from(WORDS[name] + MORE) | st.text(max_size=4), max_size=9)
    return name, " ".join(draw(words))


@settings(max_examples=400, deadline=None)
@given(said(), st.datetimes(at(2020, 1, 1), at(2040, 1, 1)))
@example(("en", "on the 29 february at 5"), at(2027, 3, 1))
def test_any_words_give_a_time_or_none(spoken: tuple[str, str], wall: at) -> None:
    name, text = spoken
    now = wall.replace(tzinfo=datetime.UTC)
    when = parse(text, now, name)
    assert when == parse(text, now, name)
    if when is None:
        return
    letters = sorted(when.rest.replace(" ", ""))
    assert all(letters.count(c) <= text.count(c) for c in set(letters))  # nothing is made up
    if when.seconds:
        assert when.at.replace(tzinfo=None) > wall - datetime.timedelta(days=1)
    elif not when.parts & {"date"}:
        assert when.at > wall  # the next one


@given(st.text(max_size=60))
def test_folding_keeps_every_place(text: str) -> None:
    assert len(fold(text)) == len(text)


@settings(deadline=None)
@given(st.integers(0, 23), st.integers(0, 59), st.datetimes(at(2020, 1, 1), at(2040, 1, 1)))
def test_a_time_of_the_clock_is_the_next_such_time(hour: int, minute: int, wall: at) -> None:
    now = wall.replace(tzinfo=datetime.UTC)
    when = parse(f"at {hour:02}:{minute:02}", now, "en", twelve=False)
    assert when is not None and (when.at.hour, when.at.minute) == (hour, minute)
    assert datetime.timedelta(0) < when.at - wall <= datetime.timedelta(days=1)


@pytest.mark.parametrize("name", NAMES)
def test_every_form_of_a_language_compiles_and_every_text_is_there(name: str) -> None:
    tongue, english = language(name), language("en")
    assert tongue.say.keys() == english.say.keys()
    for form in tongue.data["expects"].values():
        tongue.pattern(form)
    for group in ("clock", "part", "date", "repeat"):
        for row in tongue.data["forms"][group]:
            tongue.pattern(row if isinstance(row, str) else row[0])
