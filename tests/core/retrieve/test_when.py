from __future__ import annotations

import datetime

import pytest
from exo.core.base.errors import ExoError
from exo.core.retrieve import when
from exo.core.retrieve.document import Document
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st


class Berlin(FakeClock):
    """One hour before UTC."""

    zone = datetime.timezone(datetime.timedelta(hours=1))

    def local(self, ms: int | None = None) -> datetime.datetime:
        return super().local(ms).astimezone(self.zone)

    def stamp(self, wall: datetime.datetime) -> int:
        return super().stamp(wall if wall.tzinfo else wall.replace(tzinfo=self.zone))


@pytest.mark.parametrize(
    ("question", "first", "days"),
    [
        ("What did I do yesterday?", "2026-11-29", 1),
        ("Was war gestern?", "2026-11-29", 1),
        ("today", "2026-11-30", 1),
        ("what happened last week", "2026-11-23", 7),
        ("Was war letzte Woche los?", "2026-11-23", 7),
        ("this week", "2026-11-30", 7),
        ("last month", "2026-10-01", 31),
        ("in March", "2026-03-01", 31),
        ("im Dezember", "2025-12-01", 31),
        ("the boiler repair of February 2024", "2024-02-01", 29),
        ("vor drei Tagen", "2026-11-27", 1),
        ("three days ago", "2026-11-27", 1),
        ("in 2024", "2024-01-01", 366),
        ("last year", "2025-01-01", 365),
        ("on 2026-02-03", "2026-02-03", 1),
    ],
)
def test_a_question_speaks_of_a_time(
    question: str, first: str, days: int, clock: FakeClock
) -> None:
    found = when.window(question, clock, clock.now_ms())
    assert found
    start, end, rest = found
    assert clock.local(start).isoformat()[:10] == first
    assert end - start == days * 86_400_000
    assert len(rest) < len(question)


@pytest.mark.parametrize("question", ["may I?", "march on", "on 2026-02-31", "week", "5 of 9", ""])
def test_other_questions_do_not(question: str, clock: FakeClock) -> None:
    assert when.window(question, clock, clock.now_ms()) is None


@given(st.text())
def test_any_text_has_a_time_or_none(text: str) -> None:
    clock = FakeClock()
    found = when.window(text, clock, clock.now_ms())
    assert found is None or found[0] < found[1]


def test_a_date_means_its_end_in_the_person_s_zone() -> None:
    clock = Berlin()
    end = when.moment("2026-03-01", clock)
    assert clock.local(end + 1).isoformat()[:16] == "2026-03-02T00:00"
    assert when.moment("2026-03-01T10:00", clock) == when.moment("2026-03-01T09:00Z", clock)
    for wrong in ("tomorrow", "", "2026-13-01"):
        with pytest.raises(ExoError, match="read the time"):
            when.moment(wrong, clock)


def test_the_day_of_valid_until_is_over() -> None:
    clock = Berlin()
    belief = Document("fact-1", "node", "t", valid_until="2026-03-02")
    assert when.holds(belief, when.moment("2026-03-01", clock), clock)
    assert not when.holds(belief, when.moment("2026-03-02T00:00", clock), clock)
    assert when.holds(Document("fact-2", "node", "t", valid_until="some day"), 0, clock)


@pytest.mark.parametrize(
    "question", ["Where did I live before?", "Wo habe ich früher gewohnt?", "my old phone"]
)
def test_questions_about_the_past(question: str) -> None:
    assert when.about_past(question)
    assert not when.about_past("Where do I live now?")
