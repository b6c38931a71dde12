"""The languages in which a person commands: their words, forms and answers, read from language/*.toml.

Invariant: folding keeps every place of a text, so that what a form finds in the folded text is cut from
what was said."""

from __future__ import annotations

import datetime
import re
import tomllib
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

NAMES = ("en", "de", "es")
_TABLES = {"date": "ordinal", "nth": "number", "months": "number", "years": "number"}
_SLOT = re.compile(r"\{([a-z]+)(\d?)\}")


# each is made once: there are more of them than the cache of `re` holds
regex = lru_cache(maxsize=None)(re.compile)


def fold(text: str) -> str:
    """`text` in small letters without accents and with plain apostrophes, letter for letter."""
    low = "".join(unicodedata.normalize("NFD", c.lower()[:1])[:1] for c in text)
    return low.replace("’", "'")


class Language:
    """`say` holds the texts of answers; `tables` the values of words."""

    def __init__(self, name: str) -> None:
        file = Path(__file__).with_name("language") / f"{name}.toml"
        self.name, self.data = name, tomllib.loads(file.read_text(encoding="utf-8"))
        self.say: dict[str, str] = self.data["say"]
        self.tables: dict[str, dict[str, float]] = {
            table: {word: float(value) for value, text in rows.items() for word in text.split(", ")}
            for table, rows in self.data["tables"].items()
        }
        numbers = self._numbers()
        self.tables["number"] = numbers | self.tables["number"]
        self.tables["minute"] = numbers | self.tables.get("minute", {})
        self.tables["hour"] |= {word: n for word, n in numbers.items() if n <= 24}
        digits = {"number": [r"\d{1,7}(?:[.,]\d+)?"], "hour": [r"\d\d?"], "minute": [r"\d\d?"]}
        digits |= {"ordinal": [r"\d\d?(?:st|nd|rd|th)?"], "year": [r"20\d\d"]}
        self._words: dict[str, str] = {}
        for table in {*self.tables, *digits}:
            words = sorted(self.tables.get(table, ()), key=len, reverse=True)
            self._words[table] = "|".join([*digits.get(table, ()), *map(re.escape, words)])
        self._words |= {"date": self._words["ordinal"], "nth": self._words["number"]}
        self._words |= {"months": self._words["number"], "years": self._words["number"]}
        self.heads = {
            word: head for head, text in self.data["heads"].items() for word in text.split(", ")
        }
        heads = "|".join(sorted(self.heads, key=len, reverse=True))
        self.head = re.compile(rf"(?:{heads})(?!\w)")
        span = self.data["span"]
        self.span_one = self.pattern(span["one"])
        one = re.sub(r"\?P<\w+>", "?:", self.form(span["one"]))
        self._words["span"] = (
            f"{one}(?:(?:{span['join']}){one})*+"  # gives none back: else time doubles with each
        )

    def _numbers(self) -> dict[str, float]:
        ones, tens = self.data["ones"].split(), self.data["tens"].split()
        found = {word: float(n) for n, word in enumerate(ones)}
        for n, ten in enumerate(tens, 10 - len(tens)):
            found[ten] = 10.0 * n
            for digit, one in enumerate(ones[1:10], 1):
                word = self.data["compound"].format(ten=ten, one=one)
                found |= {word: 10.0 * n + digit, word.replace(" ", "-"): 10.0 * n + digit}
        return found

    def form(self, text: str) -> str:
        """A form with its tables put in, as a regular expression."""
        return _SLOT.sub(lambda slot: f"(?P<{slot[1]}{slot[2]}>{self._words[slot[1]]})", text)

    def pattern(self, text: str) -> re.Pattern[str]:
        return _pattern(self, text)

    def value(self, table: str, word: str) -> float:
        """What a word or a number in digits counts."""
        table = _TABLES.get(table, table)
        known = self.tables.get(table, {}).get(word)
        if known is not None:
            return known
        mark = "," if self.name == "en" else "."  # of thousands: "1,000 seconds"
        if re.fullmatch(rf"[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}", word):
            word = word.replace(mark, "")
        return float(re.sub(r"[^\d.]", "", word.replace(",", ".")))

    def seconds(self, text: str) -> float:
        """How long the spans of time in `text` (folded) are together."""
        total = 0.0
        for found in self.span_one.finditer(text):
            said = found.groupdict()
            table = "fraction" if said["fraction"] else "number"
            count = (
                self.value(table, said[table] or "1")
                + (bool(said["extra"]) + bool(said["half"])) / 2
            )
            count += bool(said["quarter"]) / 4
            count += 0.75 * (bool(said["quarters"]) or bool(said.get("three")))
            unit = self.value("unit", said["unit"])
            tail = self.value("number", said["tail"]) if said["tail"] else 0
            total += count * unit + tail * unit / 60
        return total


@cache
def _pattern(tongue: Language, text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{tongue.form(text)})(?!\w)")


@lru_cache
def language(name: str) -> Language:
    return Language(name)


def told(name: str, text: str, /, **facts: Any) -> str:
    """A text of an answer in this language."""
    return language(name).say[text].format(**facts)


def moment(at: datetime.datetime, language: str, repeat: str = "") -> dict[str, str]:
    """The parts of a time as a person says them; `repeat` is a word of `repeats`, or "every 45m"."""
    facts = {
        "weekday": told(language, "weekdays").split()[at.weekday()],
        "month": told(language, "months").split()[at.month - 1],
        "day": str(at.day),
        "year": str(at.year),
        "time": f"{at:%H:%M}",
        "zone": f"{at:%Z}",
        "again": "",
    }
    if repeat:
        word, _, minutes = repeat.partition(" ")
        span = duration(60 * int(minutes[:-1]), language) if minutes else ""
        repeats = told(language, "repeats", span=span).split(";")
        facts["again"] = f", {dict(each.split('=') for each in repeats)[word]}"
    return facts | {"date": told(language, "date", **facts)}


def duration(seconds: float, language: str = "en") -> str:
    """Words for a span: "1 hour 30 minutes"."""
    left, parts = round(seconds), []
    words = [each.split(",") for each in told(language, "units").split(";")]
    for (one, many), size in zip(reversed(words), (86400, 3600, 60, 1), strict=True):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {one if count == 1 else many}")
    return " ".join(parts) or f"0 {words[0][1]}"
