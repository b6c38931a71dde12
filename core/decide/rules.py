"""What a request is, by rules alone: commands that need no language model are recognised here, with
their arguments. Pure; English and German. Anything not recognised for certain is left to the model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["command", "note", "question", "chat"]


@dataclass(frozen=True)
class Plan:
    """`calls` are tools to run before, and instead of, asking a language model."""

    kind: Kind
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_EINS = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn"
    " sechzehn siebzehn achtzehn neunzehn"
)
_ZEHN = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_NUMBERS: dict[str, float] = {
    word: n for words in (_ONES, _EINS) for n, word in enumerate(words.split())
}
_NUMBERS |= {word: 20 + 10 * n for words in (_TENS, _ZEHN) for n, word in enumerate(words.split())}
_NUMBERS |= {"a": 1, "an": 1, "eine": 1, "einer": 1, "einen": 1, "half": 0.5, "halbe": 0.5}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "t": 86400}
_UNIT = r"(?P<unit>s(?:ec(?:ond)?s?|ekunden?)?|m(?:in(?:ute)?[sn]?)?|h(?:ours?)?|stunden?|days?|tagen?)\b"
_WORD = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_NUMBER = rf"(?P<number>\d+(?:[.,]\d+)?|(?:{_WORD})(?:[ -](?:{_WORD}))?)"
_SPAN = re.compile(
    rf"(?:\b(?:for|of|in|auf|von|über|and|und)\s+)?\b{_NUMBER}(?:\s+an?)?[\s-]*{_UNIT}"
    r"(?P<half>\s+and\s+a\s+half)?",
    re.I,
)
_LABEL = re.compile(
    r"\b(?:called|named|label(?:led)?|for (?:the |my )?|für (?:den |die |das )?|namens)\s*(?P<label>[^,.!?]+)",
    re.I,
)
_DAYS = r"today|tomorrow|(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WHEN = (
    rf"(?P<when>(?:in\s+.+?{_UNIT.replace('?P<unit>', '?:')}(?:\s+and\s+a\s+half)?)|(?:(?:{_DAYS})\b\s*)?(?:(?:at|um)\s+)?"
    rf"\d{{1,2}}(?::\d\d)?\s*(?:[ap]\.?m\.?|uhr)?|(?:{_DAYS})\b)"
)
# tool, and how it is asked for after polite words; a group is an argument of the tool
_SAID = {
    "time": r"(?:what(?:'s|’s| is)?(?: the)? (?:time|date)(?: is it)?|what (?:time|day)(?: is it| is"
    r" today)|what(?:'s|’s| is) today(?:'s|’s) date|(?:tell me|say|do you (?:know|have)) (?:the|what) time"
    r"(?: it is)?|time|wie (?:spät|viel uhr) ist es|welcher tag ist(?: heute)?|welches datum (?:ist|haben"
    r" wir)(?: heute)?)(?: (?:now|right now|today|please|jetzt|heute))*[?.! ]*$",
    "timer": r"(?:(?:set|start|make|give me|stelle?|starte)\s+(?:me\s+)?(?:an?\s+|einen\s+|the\s+)?)?"
    r"(?P<before>(?:[\w,.-]+ ){0,4}?)\b(?:timer|countdown|wecker)\b(?P<after>.*)$",
    "reminder": rf"(?:remind me|erinnere? mich)\s+(?:{_WHEN}\s+(?:to|that|about|of|an|daran,?)\s+(?P<text>\S.*)"
    rf"|(?:to|about|of|an)\s+(?P<text2>\S.*?)\s+{_WHEN.replace('?P<when>', '?P<when2>')})[?.! ]*$",
    "note": r"(?:(?:take|make|write(?: down)?|add)\s+(?:an?\s+)?note(?:\s+that|\s+to|\s*:|\s*,)?|note(?:\s+that|\s+"
    r"down|\s*:|\s*,)|write down(?:\s+that|\s*:)?|notier(?:e|)(?:\s+dir)?(?:\s*:|\s*,)?|notiz\s*:|schreib(?:e)?"
    r"(?:\s+dir)? auf(?:\s*:|\s*,)?)\s+(?P<text>\S.*)$",
    "read_file": r"(?:read|show|open|lies|zeig(?:e)?)\s+(?:me\s+|mir\s+)?(?:the\s+file\s+|file\s+|die\s+datei\s+|datei\s+)"
    r"[\"'“]?(?P<path>[^\"'”?]+?)[\"'”]?[?. ]*$",
    "remember": r"(?:remember|keep in mind|don(?:'|’)?t forget|merk(?:e|) dir|denk(?:e|) daran|vergiss nicht)"
    r"(?:\s+that|[:,]?\s+dass|\s*[:,])?\s+(?!to\b|when\b|how\b)(?P<text>\S.*\s\S.*)(?<!\?)$",
    "recall": r"(?:what do you (?:know|remember) about|what did i (?:say|tell you|note)(?: down)? about|was weißt du (?:über|von)"
    r"|was habe ich (?:dir )?(?:über|von|zu)(?= .*(?:gesagt|erzählt|notiert)))\s+(?P<query>\S.*?)"
    r"(?:\s+(?:gesagt|erzählt|notiert))?[?.! ]*$",
}
_POLITE = r"^(?:(?:hey|ok(?:ay)?|please|bitte|can you|could you|kannst du|exo)[ ,]+)*"
_RULES = {tool: re.compile(_POLITE + said, re.I) for tool, said in _SAID.items()}
_KINDS: dict[str, Kind] = {"note": "note", "recall": "question"}  # others are commands
_TALK = re.compile(
    r"^\W*(?:how|what|why|when|who|which|is|was|does|did|do|i|he|she|we|they|my|the|wie|was|warum|wann"
    r"|ich|er|sie|wir|mein|der|die|das)\b",
    re.I,
)
_QUESTION = re.compile(
    r"\?\s*$|^\W*(?:who|what|when|where|why|how|which|is|are|do|does|did|can|could|wer|was|wann|wo|warum|wie"
    r"|welche[rs]?)\b",
    re.I,
)


def plan(text: str) -> Plan:
    """Return what `text` asks for; no calls when a language model has to word the answer."""
    line = " ".join(text.split())
    if len(line) > 400:
        return Plan("chat")
    for tool, said in _RULES.items():
        if (match := said.match(line)) and (call := _call(tool, match)):
            return Plan(_KINDS.get(tool, "command"), [call])
    return Plan("question" if _QUESTION.search(line) else "chat")


def _call(tool: str, match: re.Match[str]) -> tuple[str, dict[str, Any]] | None:
    """The call of a tool, None when what was said is no call of it after all."""
    if tool == "timer":
        args = _timer(f"{match['before']} {match['after']}")
        return (tool, args) if args and not _TALK.match(match.string) else None
    if tool == "reminder":
        return _reminder(match["when"] or match["when2"], match["text"] or match["text2"])
    args = {name: value.strip() for name, value in match.groupdict().items()}
    if tool == "remember":  # a sentence of its own
        args["text"] = args["text"][:1].upper() + args["text"][1:]
    return tool, args


def _timer(said: str) -> dict[str, Any] | None:
    """The timer's arguments, None when no span of time was said."""
    seconds, found = 0.0, None
    for found in _SPAN.finditer(said):
        number = _number(found["number"])
        if number is None:
            return None
        unit = found["unit"].lower()
        size = _UNITS["h" if unit.startswith("stund") else unit[0]]
        seconds += (number + (0.5 if found["half"] else 0)) * size
    if found is None or not 1 <= seconds < 1e9:
        return None
    args: dict[str, Any] = {"seconds": int(seconds) if seconds == int(seconds) else seconds}
    label = _LABEL.search(_SPAN.sub(" ", said))
    if label and (name := label["label"].strip()):
        args["label"] = name
    return args


def _reminder(when: str, text: str) -> tuple[str, dict[str, Any]] | None:
    """A reminder's call; a span under a minute is a timer's. None when no time was said."""
    text = text.rstrip("?.! ")
    if when.lower().startswith("in"):
        if not (found := _timer(when)):
            return None
        if found["seconds"] < 60:
            return "timer", {"seconds": found["seconds"], "label": text}
        return "reminder", {"at": f"in {round(found['seconds'] / 60)} minutes", "text": text}
    at = re.sub(r"\b(?:at|um|on|uhr)\b|\.", "", when.lower())
    at = " ".join(re.sub(r"(\d)\s*([ap]m)", r"\1 \2", at).split())
    if re.search(r"(?:^| )\d{1,2}$", at):
        at += ":00"
    return "reminder", {"at": at, "text": text}


def _number(text: str) -> float | None:
    text = text.lower().replace(",", ".")
    if text[0].isdigit():
        return float(text)
    parts = [_NUMBERS.get(word) for word in re.split(r"[ -]", text)]
    if 0.5 in parts:
        return 0.5  # half an hour, a half hour, eine halbe Stunde
    return None if None in parts else sum(part for part in parts if part is not None)
