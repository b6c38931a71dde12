"""What is answered the same whoever asks: courtesies, what this device is and can do, sums; and what is said
instead of the reply of a small language model where it would make something up. Pure; the words are data
(talk.toml).

Invariant: a sentence is answered here only as a whole; a part that is not understood leaves it to the others."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from exo.core.engine.reader import Plan
from exo.tools.assistant import sums
from exo.tools.assistant.tongue import NAMES, fold, language, regex

_TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("talk.toml").read_text(encoding="utf-8")
)

# of a statement that begins like an order: "book club is on friday", "call me Anna"
_TOLD = re.compile(r"^call me\b|\b(?:is|are|was|were|has|had|will|ist|sind|war|hat|fue|son|era)\b")
_REPLIES = {row["answer"] for each in _TABLE.values() for row in each["talk"]}
_SAID = ("nothing", "nearest", "told", "told_on", "remember")
INSTEAD = frozenset(said for each in _TABLE.values() for said in each["instead"].values())


def answer(line: str) -> Plan | None:
    """The plan for a sentence that is answered the same every time; None for any other."""
    low = fold(line).strip(" .!?,¿¡")
    for name in NAMES:
        around = _TABLE[name]["around"]
        bare = regex(rf"^(?:{around}[ ,]+)+|(?:[ ,]+{around})+$").sub("", low)
        for form, said in _forms(name):
            if form.fullmatch(bare):
                return Plan("chat", said=said, language=name)
        asked = regex(_TABLE[name]["how"]).fullmatch(
            " ".join(_timeless(name).sub("", bare).split())
        )
        if asked and (said := _topic(name, asked["how"])):
            return Plan("chat", said=said, language=name)
        if said := sums.answer(bare, name, _TABLE[name]["sums"]):
            return Plan("chat", said=said, language=name)
    return None


def words(name: str, what: str) -> dict[str, Any]:
    """A table of talk.toml for a language."""
    found: dict[str, Any] = _TABLE[name][what]
    return found


def instead(text: str, kind: str) -> Plan | None:
    """What is said to a request of this kind (an answer of `request.kind`, "" for none) in place of what a small language
    model would make up; None where its reply is as good as any."""
    from exo.tools.assistant.pick import spoken  # which reads by the rules, and they by this

    names = [each.name for each in spoken(text)]
    low = fold(text).strip(" .!?¡¿")
    order = kind == "command" or not kind and not _TOLD.search(low)
    wanted = ("form",) * order + ("live",) * (kind in ("", "command", "chat"))
    others = [
        each
        for each in names
        if any(regex(_TABLE[each]["cannot"][form]).fullmatch(low) for form in wanted)
    ]
    if others:  # it is one for another device, or of what only the network knows
        return Plan("chat", said=_TABLE[others[0]]["instead"]["out_of_scope"], language=others[0])
    name = names[0]
    if "?" not in text and kind in ("", "question", "correction"):
        low = fold(text).strip(" .!¡")
        kind = "note" if regex(_TABLE[name]["states"]).fullmatch(low) else kind
    said = _TABLE[name]["instead"].get(kind)
    return Plan("chat", said=said, language=name) if said else None


def spared(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without the exchanges that were answered from the tables: a small model copies them."""
    kept: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant" and _ours(str(message.get("content", ""))):
            if kept and kept[-1]["role"] == "user":
                kept.pop()
        else:
            kept.append(message)
    return kept


def _ours(text: str) -> bool:
    opened = (language(name).say[each].split("{")[0] for name in NAMES for each in _SAID)
    return text in _REPLIES or text in INSTEAD or text.startswith(tuple(opened))


@lru_cache
def _forms(name: str) -> list[tuple[re.Pattern[str], str]]:
    rows = _TABLE[name]["talk"]
    return [(re.compile(form), row["answer"]) for row in rows for form in row["said"]]


@lru_cache
def _timeless(name: str) -> re.Pattern[str]:
    """What a question how to set a thing may name and need not: a span, a time, a day, a level."""
    before = "(?:for|at|to|of|on|in|auf|um|fur|a las|al|de|para|en) "
    value = r"{span}|{number}(?:[:.]\d\d)?(?: ?(?:%|percent|prozent|por ciento|uhr|o'clock|am|pm))?"
    return language(name).pattern(rf"(?<= )(?:{before})?(?:{value}|{{day}}|{{weekday}})(?= |$)")


def _topic(name: str, words: str) -> str:
    """How to say what `words` ask for, "" for what is nobody's topic or has more to it."""
    for form, said in _TABLE[name]["topics"].values():
        left = regex(rf"\b(?:{form})\b").sub(" ", words)
        if left != words and not regex(rf"\b(?:{_TABLE[name]['filler']})\b").sub("", left).strip():
            return str(said)
    return ""
