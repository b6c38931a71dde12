"""What a source yields, and the reading of bytes that nobody has checked. Owns the limits.

Invariant: nothing of a record is a guess: a date that is not understood is unknown, a text that is cut says so."""

from __future__ import annotations

import codecs
import datetime
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from exo.core.base.errors import ExoError
from exo.core.store.store import NewItem

__all__ = ["NewItem", "Passed"]

LONGEST = 262_144  # bytes of one text; what is longer is cut
_LATEST = 4_102_444_800  # seconds: the year 2100
_1601 = 11_644_473_600  # seconds from the epoch of Chromium to that of Unix
_MARKS = (  # the longer first: that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Passed:
    """What became no item (skipped, failed), or a word on one that did (remark). `name` says which."""

    kind: Literal["skipped", "failed", "remark"]
    name: str
    why: str


def read_bytes(path: Path, most: int) -> bytes:
    """At most `most` bytes of a plain file. Raises OSError, for what is no plain file too; never waits for
    a writer and never follows a link at the end of the path."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError("not a plain file")
        return file.read(most)


def whole_file(path: Path) -> Path:
    """`path` if it is a file that can be read. Raises ExoError."""
    try:
        if not path.is_file():  # asked first: opening a pipe would wait for a writer
            raise OSError("not a plain file" if path.exists() else "there is none")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise ExoError(f"read {path}", error.strerror or str(error), "name a file") from error
    return path


def decode(data: bytes) -> tuple[str, str]:
    """(text, encoding) with line ends as "\\n" and without NUL. What is not UTF-8 and has no byte order
    mark is taken for Windows-1252, which holds every Latin-1 text. Raises ValueError for what is no text."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            text = data.decode(name, "replace").removeprefix("\ufeff")
            break
    else:
        try:
            text, name = data.decode("utf-8"), "utf-8"
        except UnicodeDecodeError as error:
            if error.start >= len(data) - 3 and error.reason == "unexpected end of data":
                text, name = data[: error.start].decode("utf-8"), "utf-8"  # cut within a letter
            else:
                text, name = data.decode("cp1252", "replace"), "cp1252"
    strange = sum(text.count(chr(code)) for code in range(32) if chr(code) not in "\t\n\r\f\x1b")
    if strange > len(text) // 10 + 8:
        raise ValueError("not text")
    return plain(text), name


def plain(text: str) -> str:
    """`text` with "\\n" as line end, without NUL and without halves of surrogate pairs."""
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace").decode()


def cut(text: str, most: int = LONGEST) -> str:
    """`text`, at most `most` characters of it, ended at a line or else at a word."""
    if len(text) <= most:
        return text
    head = text[:most]
    end = max(head.rfind("\n", most // 2), head.rfind(" ", most // 2))
    return head[: end if end > 0 else most]


def one_line(text: str, most: int = 300) -> str:
    """`text` for a title: spaces folded, no control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())[:most]


def day(text: str) -> str:
    """The date that a file name is or begins with (2026-11-30, 20261130, 30.11.2026): its noon as `moment` gives it."""
    for pattern, order in (
        (r"(\d{4})-(\d\d)-(\d\d)(?!\d)", (1, 2, 3)),
        (r"(\d{4})(\d\d)(\d\d)(?!\d)", (1, 2, 3)),
        (r"(\d\d)\.(\d\d)\.(\d{4})(?!\d)", (3, 2, 1)),
    ):
        if found := re.match(pattern, text):
            return moment("-".join(found[number] for number in order))
    return ""


def moment(text: str) -> str:
    """An ISO date (its noon, which is that day nearly everywhere) or time (UTC unless it names a zone) as
    "2026-11-30T12:00:00Z"; "" when it is none, or lies before 1970 or after 2100."""
    try:
        at = datetime.datetime.fromisoformat(text.strip())
        if len(text.strip()) <= 10:
            at = at.replace(hour=12)
        if at.tzinfo is None:
            at = at.replace(tzinfo=datetime.UTC)
        return _stamp(at.timestamp())
    except (ValueError, OverflowError):
        return ""


def number(value: float) -> str:
    """The moment of a number of seconds, ms or µs since 1970, or µs since 1601: whichever it can be; "" none."""
    if not abs(value) < 1e18:  # NaN too
        return ""
    if value >= 1e16:
        return _stamp(value / 1e6 - _1601)
    return _stamp(value / (1e6 if value >= 1e14 else 1e3 if value >= 1e11 else 1))


def _stamp(seconds: float) -> str:
    if not 0 < seconds < _LATEST:
        return ""
    at = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return at.isoformat().replace("+00:00", "Z")
