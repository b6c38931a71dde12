"""The words of the screens, one JSON file a language. A language that lacks a word falls back to English."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

FOLDER = Path(__file__).parent / "locales"


def languages(folder: Path = FOLDER) -> tuple[str, ...]:
    """The languages that there are: each is one file."""
    return tuple(sorted(path.stem for path in folder.glob("*.json")))


class Texts:
    """`texts("idle.hint")`; parts in braces are filled in from keyword arguments."""

    def __init__(self, language: str = "en", folder: Path = FOLDER) -> None:
        self.language = language
        self._words: dict[str, str] = json.loads((folder / "en.json").read_text())
        try:
            self._words |= json.loads((folder / f"{language}.json").read_text())
        except FileNotFoundError:
            self.language = "en"

    def __call__(self, name: str, **parts: str) -> str:
        return self._words[name].format(**parts)

    def __contains__(self, name: object) -> bool:
        return name in self._words

    def date(self, when: datetime.datetime) -> str:
        """The day as the status line shows it, such as `Mon 30 Nov`."""
        return self._words["date"].format(
            day=self._words["days"].split()[when.weekday()],
            number=when.day,
            month=self._words["months"].split()[when.month - 1],
        )
