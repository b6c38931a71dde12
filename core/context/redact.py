"""Secrets out of text, by code and not by a model's good will. Owns the patterns; over-redacting a word
is cheap, a secret in a summary is not, so the patterns lean that way.

Invariant: redact(redact(x)) == redact(x)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

MARK = "[secret]"

_DATA = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
# the word, a few words between ("the PIN of the safe is"), then a sign or a verb of naming
_ASSIGNED = re.compile(
    rf"(?P<head>(?:{_DATA['named']})\b[^\s=:]{{0,12}}(?:\s+[^\s:=]+){{0,5}}?"
    r"(?:\s*(?:=>|:=|=|:|：)\s*|\s+(?:is|ist|lautet|est|es|war|was)\s+))"
    r"(?P<value>\"[^\"\n]+\"|'[^'\n]+'|\S+)",
    re.I,
)
_WHOLE = [re.compile(pattern) for pattern in _DATA["secrets"]]
_CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
_LONG = re.compile(r"[\w+/=-]{32,}")


def redact(text: str) -> str:
    """`text` with everything that looks like a secret replaced by MARK."""
    for pattern in _WHOLE:
        text = pattern.sub(MARK, text)
    text = _CARD.sub(lambda found: MARK if _luhn(found[0]) else found[0], text)
    text = "\n".join(map(_values, text.split("\n")))
    return _LONG.sub(lambda found: MARK if _random(found[0]) else found[0], text)


def _values(line: str) -> str:
    """Each value that has a name: one word, or what is quoted; after a passphrase the rest of the line.
    Not by `sub` and a recursion: a line may hold thousands."""
    parts, at = [], 0
    while found := _ASSIGNED.search(line, at):
        begin, end = found.span("value")
        if found["value"].startswith(MARK):
            end = begin + len(MARK)
        elif re.search(r"phrase", found["head"], re.I):
            end = len(line)
        parts += [line[at:begin], MARK]
        at = end
    return "".join([*parts, line[at:]])


def _luhn(number: str) -> bool:
    digits = [int(each) for each in number if each.isdigit()][::-1]
    doubled = [sum(divmod(2 * each, 10)) for each in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _random(word: str) -> bool:
    """Long, with capitals, small letters and digits mixed: a key, not a word or a path of words."""
    kinds = (str.isupper, str.islower, str.isdigit)
    changes = sum(a.isdigit() != b.isdigit() for a, b in zip(word, word[1:], strict=False))
    return all(any(map(kind, word)) for kind in kinds) and changes >= 6 and "/" not in word
