"""What can be kept of a conversation without a model: exact values, names and the open request, lifted
letter for letter by rules. Pure; knows no model and no tokens.

A digest is text of at most three parts: prose, a line `Exact: a; b; c`, a line `Open: request`, so that
two digests can be read back and merged."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from exo.core.context.redact import MARK, redact
from exo.core.protocol.schema import Message

EXACT, OPEN = "Exact: ", "Open: "
LONGEST = 160  # characters of one lifted thing
SCANNED = 16_000  # characters of a message that rules look at, from both ends
MOST = 100  # things lifted out of one message: more than a summary has room for

_DATA = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
_FACTS = [re.compile(pattern) for pattern in _DATA["facts"]]
_DEED = re.compile(_DATA["deed"], re.I)


@dataclass(frozen=True)
class Digest:
    """The parts of a summary."""

    prose: str = ""
    exact: tuple[str, ...] = ()
    open: str = ""

    def text(self, room: int) -> str:
        """At most about `room` characters: the open request first, then exact things, with a quarter
        kept for prose."""
        open_ = OPEN + self.open[: max(40, room // 2)] if self.open else ""
        left = room - len(open_) - len(EXACT) - min(len(self.prose), room // 4)
        kept: list[str] = []
        for each in self.exact:
            if each not in open_ and len(each) + 2 <= left:
                kept.append(each)
                left -= len(each) + 2
        exact = EXACT + "; ".join(kept) if kept else ""
        prose = _clip(self.prose, room - len(open_) - len(exact))
        return "\n".join(part for part in (prose, exact, open_) if part)


def parse(text: str) -> Digest:
    """Read a digest's text back."""
    lines = text.splitlines()
    exact = [line[len(EXACT) :] for line in lines if line.startswith(EXACT)]
    open_ = [line[len(OPEN) :] for line in lines if line.startswith(OPEN)]
    prose = [line for line in lines if not line.startswith((EXACT, OPEN))]
    things = tuple(exact[-1].split("; ")) if exact else ()
    return Digest("\n".join(prose), things, "".join(open_[-1:]))


def digest(messages: Iterable[Message]) -> Digest:
    """Of messages, by rules alone: what the person said last in prose, exact things, the open request."""
    exact: list[str] = []
    said: list[str] = []
    open_ = ""
    for message in messages:
        text = _ends(redact(plain(message)))
        exact += facts(text)
        if message.role == "user":
            said.append(_clip(" ".join(text.split()), 80))
            open_ = deed(text) or open_
    return Digest(" / ".join(said), _unique(exact), open_)


def join(older: Digest, newer: Digest) -> Digest:
    """Of two neighbours: a newer open request replaces an older one, exact things add up, prose too."""
    prose = "\n".join(part for part in (older.prose, newer.prose) if part)
    return Digest(prose, _unique([*older.exact, *newer.exact]), newer.open or older.open)


def facts(text: str) -> list[str]:
    """Paths, commands, errors, codes, numbers with their unit and names, as they stand in `text`."""
    taken: list[tuple[int, int]] = []
    for pattern in _FACTS:
        for found in pattern.finditer(text):
            start, end = found.span()
            piece = found[0].strip()
            if len(taken) == MOST:
                break
            worth = len(piece) > 1 and not piece.isalpha()
            worth = worth and MARK not in piece and "; " not in piece
            if worth and not any(a < end and start < b for a, b in taken):
                taken.append((start, end))
    return [text[a:b].strip()[:LONGEST] for a, b in sorted(taken)]


def deed(text: str) -> str:
    """The sentence that asks for a deed (also to stop or undo one), with what follows it; "" for none."""
    sentences = re.split(r"(?<=[.!?])\s+(?=\S{2})", " ".join(text.split()))
    deeds = (n for n, sentence in enumerate(sentences) if _DEED.match(sentence))
    at = next(deeds, len(sentences))
    return " ".join(sentences[at : at + 2])[: 2 * LONGEST]


def plain(message: Message) -> str:
    """What a message says, calls and results included."""
    parts = [message.text]
    for call in message.calls or []:
        parts += [call.tool, *(f"{key}={value}" for key, value in call.args.items())]
    parts += [result.text for result in message.results or []]
    return "\n".join(part for part in parts if part)


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    kept = list(dict.fromkeys(items))
    return tuple(a for a in kept if not any(a != b and a in b for b in kept))


def _ends(text: str) -> str:
    half = SCANNED // 2
    return text if len(text) <= SCANNED else f"{text[:half]}\n{text[-half:]}"


def _clip(text: str, room: int) -> str:
    if len(text) > room:
        return text[: room - 1] + "…" if room >= 24 else ""
    return text
