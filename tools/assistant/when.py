"""When a person means: one small grammar of times for all languages, whose words are data (tongue.py).
Pure: knows the clock that it is given.

A sentence is read as chains of pieces that stand side by side (a day, a time, a part of the day, a repeat,
a span); the chain at its head or at its end is the time, one in the middle only where no other is.

Invariant: what is only half understood is no time at all."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache

from exo.core.base.errors import ExoError
from exo.tools.assistant.tongue import NAMES, Language, fold, language
from exo.tools.tasks.repeat import following

FAR = 9000  # the last year; past 9999 there are no dates to count on with
MORNING = 9 * 60  # minutes of the day that a mere date means
DAY = 1440
EARLY = 6 * 60  # nobody means an hour before this one without saying so
_GAP = re.compile(r"[ ,]*")
_WORD = re.compile(r"(?<!\w)\w")


@dataclass(frozen=True)
class When:
    """`at` is wall time, or an instant with a zone where a span of hours or less was said (`seconds` of
    any span); `repeat` as `repeat.following` takes it, or `every` so many minutes; `rest` is the sentence without the time, `parts`
    which of its pieces were said."""

    at: datetime.datetime
    repeat: str
    rest: str
    parts: frozenset[str]
    seconds: float = 0.0
    every: int = 0


@dataclass
class _Chain:
    """Pieces that stand side by side: what was said of each table, the numbers of the clock's form (`plus`,
    `sign`), and `vague`, whether it was an hour of twelve."""

    start: int
    end: int
    kinds: set[str] = field(default_factory=set)
    values: dict[str, float] = field(default_factory=dict)
    repeat: str = ""


_Form = tuple[str, re.Pattern[str], int | str, int, bool]  # kind, form, numbers, goes on only


@lru_cache
def _forms(tongue: Language) -> list[_Form]:
    span, forms = tongue.data["span"], tongue.data["forms"]
    found: list[_Form] = [
        (
            "span",
            tongue.pattern(f"{span['start']}{{span}}{span['tail']}|{{span2}}{span['end']}"),
            0,
            0,
            False,
        )
    ]
    for name, rows in forms.items():
        kind, more = name.removeprefix("more_"), name.startswith("more_")
        for row in rows:
            form, plus, sign = (row, 0, 0) if isinstance(row, str) else (*row, 0)[:3]
            found.append((kind, tongue.pattern(form), plus, sign, more))
    return found


def parse(text: str, now: datetime.datetime, name: str = "en", twelve: bool = True) -> When | None:
    """The time that `text` names in the language `name`: the next one that it fits; None where there is
    none, or one of several that cannot be told apart. `now` is wall time with its zone. An hour up to 12
    without more is the next one of both halves of the day, or with `twelve` False that of the morning."""
    tongue, line = language(name), fold(text)
    if tongue.pattern(tongue.data["never"]["text"]).search(line):
        return None
    chains = _chains(line, tongue)
    chosen = _choose(chains, line)
    if not chosen:
        return None
    whole = chosen[0]
    for other in chosen[1:]:
        whole.kinds |= other.kinds
        whole.values |= other.values
        whole.repeat = whole.repeat or other.repeat
    rest, place = "", 0
    for each in sorted(chosen, key=lambda chain: chain.start):
        rest, place = f"{rest}{text[place : each.start]} ", each.end
    rest = " ".join((rest + text[place:]).split())
    try:
        at = _resolve(whole, now, twelve)
    except (ValueError, OverflowError):  # the 31st of February, 25:00
        return None
    span, again = whole.values.get("span", 0.0), whole.repeat
    every = round(span / 60) if again == "every" else 0
    return When(at, "" if every else again, rest, frozenset(whole.kinds), span, every)


def wholes(text: str, now: datetime.datetime, name: str, twelve: bool = True) -> Iterator[When]:
    """What `text` is as nothing but a time, as it stands and behind what a language may put before it ("on", "at")."""
    for lead in ("", *language(name).data["follow"]["leads"]):
        found = parse(lead + text, now, name, twelve)
        if found and not found.rest.strip(" ,"):
            yield found


def named(text: str, name: str) -> bool:
    """Whether anything of `text` speaks of a time, understood or not."""
    return bool(_chains(fold(text), language(name)))


def _chains(line: str, tongue: Language) -> list[_Chain]:
    chains: list[_Chain] = []
    end = 0
    for place in (found.start() for found in _WORD.finditer(line)):
        if place < end:
            continue
        gap = _GAP.match(line, chains[-1].end) if chains else None
        goes_on = gap is not None and gap.end() == place
        chain = chains[-1] if goes_on else _Chain(place, place)
        best: tuple[re.Match[str], _Form] | None = None
        for form in _forms(tongue):
            if form[0] in chain.kinds or form[4] and not chain.kinds:
                continue
            found = form[1].match(line, place)
            if found and (best is None or found.end() > best[0].end()):
                best = found, form
        if best is None:
            continue
        _take(chain, *best, tongue)
        end = chain.end
        if not goes_on:
            chains.append(chain)
    return chains


def _take(chain: _Chain, found: re.Match[str], form: _Form, tongue: Language) -> None:
    kind, _, plus, sign, _ = form
    chain.end = found.end()
    if kind == "exact":  # "sharp" adds nothing
        return
    chain.kinds.add(kind)
    for group, word in found.groupdict().items():
        name = group.rstrip("0123456789")
        if word is None:
            continue
        if name == "span":
            chain.values["span"] = tongue.seconds(word)
            continue
        if name == "holiday":
            month, day = divmod(int(tongue.value(name, word)), 100)
            chain.values |= {"month": month, "date": day}
            continue
        chain.values["date" if name == "nth" else name] = tongue.value(name, word)
        chain.kinds |= {name} & {"part"}
        if name == "hour":
            chain.values["vague"] = not word.startswith(("0", "oh ", "zero "))
    if kind == "repeat":
        chain.repeat = str(plus)
    elif kind == "clock":
        chain.values |= {"plus": float(plus), "sign": sign}


def _choose(chains: list[_Chain], line: str) -> list[_Chain]:
    """The chain that is the time, and one that completes it."""
    strong = [each for each in chains if each.kinds != {"part"} or not each.start] or chains[-1:]
    if not strong:
        return []
    at_end = not line[strong[-1].end :].strip(" .!?,")
    first = strong[0] if strong[0].start == 0 or not at_end else strong[-1]
    if first.start and not at_end and len(strong) > 1:
        return []
    other = strong[-1] if first is strong[0] else strong[0]
    days = [chain.kinds <= {"date", "repeat"} for chain in (first, other)]
    clocks = [chain.kinds <= {"clock", "part"} for chain in (first, other)]
    halves = days == [True, False] and clocks[1] or clocks == [True, False] and days[1]
    return [first, other] if halves and (other.start == 0 or at_end) else [first]


def _resolve(chain: _Chain, now: datetime.datetime, twelve: bool) -> datetime.datetime:
    said, wall = chain.values, now.replace(tzinfo=None)
    span = said.get("span", 0.0)
    if "span" in said and (span % 86400 or not span):
        again = chain.repeat == "every" and span < 60  # or it is a time of the day
        if len(chain.kinds) > 1 or not span or again:
            raise ValueError
        return now + timedelta(seconds=span)
    if span and (chain.repeat or said.keys() & {"weekday", "date", "day"}):
        raise ValueError  # "on Monday in two weeks"
    minutes, vague = _minutes(chain)
    vague = vague and twelve
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    if span:
        days = midnight + timedelta(seconds=span)
        return days + (wall - midnight if minutes is None else timedelta(minutes=minutes))
    if further := int(said.get("months", 0) + 12 * said.get("years", 0)):
        year, month = divmod(wall.year * 12 + wall.month - 1 + further, 12)
        last = calendar.monthrange(year, month + 1)[1]
        then = midnight.replace(year=year, month=month + 1, day=min(wall.day, last))
        return then + (wall - midnight if minutes is None else timedelta(minutes=minutes))
    other = bool(chain.repeat or said.get("day")) or bool(said.keys() & {"weekday", "date"})
    if vague and other and minutes is not None and minutes < EARLY:
        minutes += 720  # "on Friday at two"
    clock = timedelta(minutes=MORNING if minutes is None else minutes)
    if chain.repeat and said.keys() & {"date", "month", "weekday", "day"} == set():
        return following(midnight + clock - timedelta(1), chain.repeat, wall)
    if "day" in said and (said["day"] or not vague):
        return midnight + timedelta(said["day"]) + clock
    if "weekday" in said and said.keys() & {"later", "weeks"}:
        off = said["weekday"] - wall.weekday()  # of this week, or the next to come
        off = off + 7 if "weeks" in said else off % 7 + said["later"]
        return midnight + timedelta(off) + clock
    if "weekday" in said and "date" not in said:
        at = midnight + timedelta((said["weekday"] - wall.weekday()) % 7) + clock
        return at if at > wall else at + timedelta(7)
    if "date" in said:  # the next day to come that has all that was said of it
        for ahead in range(8 * 366):
            day = midnight + timedelta(ahead)
            told = {"date": day.day, "month": day.month, "year": day.year}
            if day + clock > wall and all(said.get(k, v) == v for k, v in told.items()):
                return day + clock
        raise ValueError
    step = timedelta(minutes=720 if vague else DAY)
    at = midnight + (clock % step)
    while at <= wall:
        at += step
    if "day" in said and at - midnight >= timedelta(1):
        return midnight + clock  # it is over for today
    return at


def _minutes(chain: _Chain) -> tuple[float | None, bool]:
    """(minutes after midnight, whether they may count from noon)."""
    said = chain.values
    part, half = said.get("part"), said.get("half")
    if "clock" not in chain.kinds:
        return (None if part is None else part * 60), False
    hour, minute = said.get("hour", 0), said.get("minute", 0)
    more = said["plus"] + said["sign"] * minute
    if hour > 24 or minute > 59 or half is not None and not 1 <= hour <= 12:
        raise ValueError
    if hour == 24 and more and part is None:  # "quarter past midnight" begins that day
        hour = 0
    if half is not None or part is not None and hour <= 12:
        late = half == 12 or (part or 0) >= 12
        hour = hour % 12 + (24 if hour == 12 and (part or 0) >= 21 else 12 * late)
        return hour * 60 + more, False
    return hour * 60 + more, bool(said.get("vague")) and 1 <= hour <= 12


def read_time(text: str, now: datetime.datetime) -> datetime.datetime:
    """The instant that a written time names, with a zone when `text` has one, else as wall time. `now` is
    wall time with its zone. Raises ExoError for text that names none, or one that is past."""
    line, wall = " ".join(text.split()), now.replace(tzinfo=None)
    try:
        found = _written(line, now)
        if found.year > FAR:
            raise ValueError("that is too far off")
    except (OverflowError, ValueError) as error:
        do = 'write "18:30", "tomorrow 9:00", "monday 9:00", "in 20 minutes" or "2026-12-24T18:00"'
        raise ExoError(f"read the time {text!r}", str(error), do) from error
    if found <= (wall if found.tzinfo is None else now):
        raise ExoError(f"set it for {text!r}", f"that is past: it is {wall:%Y-%m-%d %H:%M}")
    return found


def _written(line: str, now: datetime.datetime) -> datetime.datetime:
    """Raises ValueError for text that names no time, OverflowError for one out of all bounds."""
    if re.match(r"\d{4}-", line):
        at = datetime.datetime.fromisoformat(line)
        return at + timedelta(minutes=MORNING) if len(line) == 10 else at
    for name in NAMES:
        found = parse(line, now, name, twelve=False)
        if found and not found.rest.strip(" .!,"):
            return found.at
    raise ValueError("it is none that I know")
