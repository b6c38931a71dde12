"""Questions that the calendar answers: "how many days until Christmas", "what day is next Tuesday", "how many minutes are
in three days". Pure; the words are data (talk.toml), the days those of when.py.

Invariant: what is not wholly a day or a span of time has no answer."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import Any

from exo.core.engine.reader import Plan
from exo.tools.assistant import talk
from exo.tools.assistant.sums import decimal
from exo.tools.assistant.tongue import NAMES, Language, duration, fold, language, moment, regex
from exo.tools.assistant.when import When, wholes

_DAY = 86400


def answer(line: str, now: datetime.datetime) -> Plan | None:
    """The plan for a question of dates or spans. `now` is wall time with its zone."""
    line = line.strip(" .!?¡¿")
    for name in NAMES:
        tongue, words = language(name), talk.words(name, "dates")
        bare = regex(f"^(?:{words['lead']})*").sub("", fold(line))
        for kind in ("until", "date", "unit"):
            for form in words[kind]:
                found = tongue.pattern(form).fullmatch(bare)
                if found is None:
                    continue
                if kind == "unit":
                    said = _unit(found, line[len(line) - len(bare) :], tongue, words)
                else:
                    when = _day(found["date"], tongue, now)
                    said = (_until if kind == "until" else _date)(when, tongue, words, now)
                if said:
                    return Plan("chat", said=said, language=name)
    return None


def _day(text: str, tongue: Language, now: datetime.datetime) -> When | None:
    """The time that `text` is as a whole, if it comes once."""
    found = wholes(text, now, tongue.name)
    return next((when for when in found if not when.repeat and not when.every), None)


def _until(
    when: When | None, tongue: Language, words: dict[str, Any], now: datetime.datetime
) -> str:
    if when is None:
        return ""
    at = when.at if when.at.tzinfo else when.at.replace(tzinfo=now.tzinfo)
    facts = moment(at, tongue.name)
    if when.parts <= {"date"}:
        left: float = (at.date() - now.date()).days * _DAY
    else:  # to the minute
        left = round((at - now).total_seconds() / 60) * 60
        facts["date"] = f"{facts['date']}, {facts['time']}"
    said = duration(left, tongue.name)
    return str(words["left"].format(span=said, date=facts["date"])) if left > 0 else ""


def _date(
    when: When | None, tongue: Language, words: dict[str, Any], now: datetime.datetime
) -> str:
    if when is None or not when.parts <= {"date", "span"} or when.seconds % _DAY:
        return ""
    return moment(when.at, tongue.name)["date"] + "."


def _unit(found: re.Match[str], line: str, tongue: Language, words: dict[str, Any]) -> str:
    size, seconds = tongue.value("unit", found["unit"]), tongue.seconds(found["span"])
    if not 0 < seconds < 1e12:
        return ""
    count = decimal(
        round(Fraction(seconds) / Fraction(size), 2), talk.words(tongue.name, "sums")["point"]
    )
    left, unit = (line[slice(*found.span(group))] for group in ("span", "unit"))
    return str(words["are"].format(left=left, right=f"{count} {unit}"))
