"""What can be kept of a conversation without a model: exact values, names and the open request, lifted
letter for letter by rules. Pure; knows no model and no tokens.

A digest is text of at most three parts: prose, a line `Exact: a; b; c`, a line `Open: request`, so that
two digests can be read back and merged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from exo.core.context.redact import MARK, redact
from exo.core.protocol.schema import Message

EXACT, OPEN = "Exact: ", "Open: "
LONGEST = 160  # characters of one lifted thing
SCANNED = 16_000  # characters of a message that rules look at, from both ends
MOST = 100  # things lifted out of one message: more than a summary has room for

# how often each part may repeat is bounded: in a long word or line every place is a start, and without
# bounds each of them would be followed to the end
_UNIT = r"(?:\s?(?:%|°C|°F|[kMGT]i?B|[kMm]?[gWVAl]|kWh|m²|[kcm]?m|ms|s|min|h|rpm|Hz|€|\$|£)(?!\w))"
_PATTERNS = [
    r"`[^`\n]{2,160}`",
    # programs with options: the flag tells a command from a sentence
    r"(?m)\b[a-z][\w.-]{1,60} (?:[\w./:@-]{1,80} ){0,9}-{1,2}\w[^\n]*?"
    r"(?=$|[,;]| and | und | et |\.(?:\s|$))",
    r"\b\w{1,20}://[^\s<>\"')\]]+[\w/]",
    r"(?:~|\.{1,2})?(?:/[\w@.+:-]+)+[\w/]"
    r"|\b[\w@+-]{1,80}(?:/[\w@.+:-]{1,80}){0,9}\.[A-Za-z]\w{0,5}\b(?:::\w+)*",
    r"(?m)\b\w*(?:Error|Exception|Warning)\b: [^\n]{3,120}?(?=$|\.(?:\s|$)|;)",
    r"(?<=: )[a-z][^\n.:]{2,60}\([^)\n]{3,80}\)",
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?\b|\b\d{1,2}\.\d{1,2}\.(?:\d{2,4})?|\b\d{1,2}[:h]\d\d\b",
    r"\b(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[\w-]{0,80}\w{3,80}[\w-]{0,80}\b",  # part numbers, hashes, codes
    rf"\b\d+(?:[.,\s’']\d+)*(?:{_UNIT}|\s[^\W\d_]{{3,12}}\b)?",
]
_TITLE = r"(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|M|Mme|Sr|Sra|Tante|Onkel|Aunt|Uncle)\b\.?\s"
_WORD = r"[^\W\d_a-zß-öø-ÿ][^\W\d_]+(?:-[^\W\d_]+)?"
_PATTERNS.append(rf"{_TITLE}(?:{_WORD}\s?){{1,3}}|\b{_WORD}(?:\s{_WORD}){{1,2}}")
_FACTS = [re.compile(pattern) for pattern in _PATTERNS]
# words that ask for a deed (a question is answered on the spot; a deed may stay open)
_DEED = re.compile(
    r"^(?:(?:please|pls|kindly|can you|could you|would you|i want you to|bitte|kannst du|könntest du"
    r"|peux-tu|s'il te pla[iî]t|por favor|puedes)\b[\s,]*)?"
    r"(?:write|draft|run|compare|list|send|remind|pin|undo|stop|cancel|delete|remove|fix|make|create|add"
    r"|install|update|move|copy|rename|check|find|search|open|close|set|start|restart|build|test|show|call"
    r"|order|buy|book|print|save|push|commit|revert|translate|summari[sz]e|calculate|convert|record|note"
    r"|schreib\w*|erinner\w*|lösch\w*|stopp\w*|brich|mach\w*|such\w*|zeig\w*|prüf\w*|kauf\w*|bestell\w*"
    r"|such\w*|vergleich\w*|leg\w*|stell\w*|schick\w*|öffne|nimm|annul\w*|arr[êe]t\w*|écri\w*|rappel\w*"
    r"|envoi\w*|suppri\w*|cherch\w*|montr\w*|compar\w*|ajout\w*|réserv\w*|escrib\w*|cancel\w*|recuérd\w*"
    r"|borra\w*|busca\w*|envía\w*|haz|para)\b",
    re.I,
)


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
