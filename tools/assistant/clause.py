"""What was said in a subordinate clause, as a sentence of its own: "dass mein Rad im Keller steht" is "mein Rad steht im Keller",
"Anna anzurufen" is "Anna anrufen". Pure; which words are a subject and a verb is data (`[clause]` of a language; one
without it has none to change).

Invariant: what is not wholly clear stays as it was said; no word is added."""

from __future__ import annotations

import re
from typing import Any

from exo.tools.assistant.tongue import Language, fold, regex

_CONNECTED = re.compile(r"[,;:?!()\"]")


def statement(line: str, start: int, tongue: Language) -> str:
    """`line` from `start` on, as a main clause where it followed on the conjunction of one; with that conjunction where it
    is not clear which words are its subject and its verb."""
    text, words = line[start:].strip(), tongue.data.get("clause")
    before = words and regex(words["that"]).search(fold(line[:start]))
    return (main(text, tongue) or f"{line[before.start() : start]}{text}") if before else text


def main(text: str, tongue: Language) -> str:
    """The clause `text`, without its conjunction, as a main clause; "" where it is not clear."""
    words = tongue.data.get("clause")
    return _moved(text.rstrip(" .!").split(), words) if words else ""


def _moved(said: list[str], words: dict[str, Any]) -> str:
    """The words with their last, the verb, behind the subject; "" where either is not clear."""
    count, person = _subject(said, words)
    *middle, verb = said[count:] or [""]
    if not person or _CONNECTED.search(" ".join(said)):
        return ""
    low = fold(verb)
    if verb != verb.lower() or not regex(words[person]).fullmatch(low):
        return ""
    if regex(words["parts"]).match(low) and not regex(words["known"]).fullmatch(low):
        return ""  # "abfährt" stands in two parts
    if middle and regex(words["splits"]).fullmatch(fold(middle[0])):
        return ""  # "die Schwester meiner Frau": where the subject ends is not clear
    return " ".join([*said[:count], verb, *middle])


def _subject(said: list[str], words: dict[str, Any]) -> tuple[int, str]:
    """(how many words the subject has, its key in the table of verbs); (0, "") where it is not clear."""
    low = [fold(each) for each in said]
    if not said:
        return 0, ""
    for person in ("first", "second", "plural", "third"):
        if regex(words[f"{person}_subject"]).fullmatch(low[0]):
            return 1, person
    count, many = _named(said, low, words)
    while 0 < count < len(said) - 1 and low[count] in words["joins"].split():
        more, _ = _named(said[count + 1 :], low[count + 1 :], words)
        if not more:
            return 0, ""
        many = many or low[count] == words["and"]
        count += 1 + more
    if not count:
        return 0, ""
    return count, "either" if not many else "plural"


def _named(said: list[str], low: list[str], words: dict[str, Any]) -> tuple[int, bool]:
    """(words of a name or of a noun with what stands before it, whether it is sure to be several)."""
    count = 0
    if low and regex(words["article"]).fullmatch(low[0]):
        count = 1
        while (
            count < len(said)
            and said[count].islower()
            and regex(words["adjective"]).search(low[count])
        ):
            count += 1
    first = count
    while count < len(said) and said[count][:1].isupper() and said[count][1:].islower():
        count += 1
    if count == first or first and count > first + 1:
        return 0, False  # no noun, or two: "meine Mutter Anna"
    return count, False


def infinitive(text: str, tongue: Language) -> str:
    """What is to be done, as it is noted down: without what an infinitive in a sentence has before it, or within."""
    words = tongue.data.get("clause")
    if not words:
        return text
    low = fold(text)
    for form in (words["within"], words["before"]):
        for found in reversed([*regex(form).finditer(low)]):
            start, end = found.span("to")
            text = text[:start] + text[end:]
        low = fold(text)
    return re.sub(words["has_to"], "", text, flags=re.IGNORECASE)
