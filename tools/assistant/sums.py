"""Sums as they are said: "what is 17 times 23", "15 percent of 80". Pure; exact fractions, told in decimals.

Invariant: what is not wholly a sum of numbers has no answer."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from exo.tools.assistant.tongue import language

LARGEST = Fraction(10) ** 15  # beyond it, and for powers over 64, there is no answer
SHOWN = 6  # decimals
MOST = 60  # numbers and signs
_SIGNS = {  # in this order: "por ciento" holds "por"
    "percent": "%",
    "root": "√",
    "squared": "²",
    "cubed": "³",
    "plus": "+",
    "minus": "-",
    "times": "*",
    "over": "/",
    "power": "^",
}
_TOKEN = re.compile(r"\s*((?!0\d)\d{1,15}(?:\.\d{1,9})?(?![\d.])|\*\*|[-+*/^%()²³√])")


def answer(low: str, name: str, words: dict[str, Any]) -> str:
    """The answer to a folded sentence without its question mark; "" where it asks for no sum."""
    asked = re.sub(rf"^(?:(?:{words['lead']})\b[ ,]*)+", "", low)
    bare, asked = asked == low, re.sub(rf"\s+{words['tail']}$|\s*=\s*$", "", asked).strip()
    dated = re.fullmatch(r"[\d\s.,:/-]*", asked) and not re.search(r"\d +[-/] +\d", asked)
    if bare and dated:  # a date, a time, a score
        return ""
    if not bare:  # "what is two and two", but no "nine and nine"
        asked = re.sub(rf"(?<!\w)(?:{words['and']})(?!\w)", " + ", asked)
    found = _tokens(asked, name, words)
    lone = {"²", "³", "√"} & {*found}
    if sum(each[0].isdigit() for each in found) < (1 if lone else 2):
        return ""
    try:
        value, exact = _Sum(found).value()
    except ZeroDivisionError:
        return str(words["never"])
    except ValueError:
        return ""
    told = words["is" if exact and round(value, SHOWN) == value else "about"]
    shown = decimal(value, words["point"])
    return str(told.format(sum=_written(found, words), value=shown))


def decimal(value: Fraction, point: str) -> str:
    """A number as it is read, to six decimals."""
    near = round(value, SHOWN)
    whole, rest = divmod(int(abs(near) * 10**SHOWN), 10**SHOWN)
    digits = f"{whole:,}".replace(",", "\u202f") if whole > 9999 else f"{whole}"
    shown = "−" * (near < 0) + f"{digits}.{rest:0{SHOWN}d}".rstrip("0").rstrip(".")
    return shown.replace(".", point)


def _tokens(text: str, name: str, words: dict[str, Any]) -> list[str]:
    """Numbers and signs; [] where something else is said."""
    mark, point = (r"\.", ",") if words["point"] == "," else (",", ".")
    if re.search(r"(?<![\w.,])0[xob][\da-f]|%(?! ?(?:of|von|de|del)\b)", text):
        return []  # of another base, and what is left of a division
    text = re.sub(rf"(?<=\d){mark}(?=\d{{3}}\b)", "", text).replace(point, ".")
    text = re.sub(r"(?<=\d) ?x ?(?=\d)", " * ", text)
    text = text.translate({ord("×"): "*", ord("·"): "*", ord("÷"): "/", ord("−"): "-"})
    for form, sign in _SIGNS.items():
        text = re.sub(rf"(?<!\w)(?:{words[form]})(?!\w)", f" {sign} ", text)
    text = re.sub(r"% (?:of|von|de)\b", " % ", text)
    numbers = language(name).tables["minute"]  # zero to ninety-nine
    for word in sorted(numbers, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", f" {numbers[word]:.0f} ", text)
    found, place, text = list[str](), 0, text.strip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None or len(found) > MOST:
            return []
        found.append("^" if token[1] == "**" else token[1])
        place = token.end()
    return found


def _written(found: list[str], words: dict[str, Any]) -> str:
    """The sum as it is shown and spoken."""
    shown = words["shown"]
    text = " ".join(shown.get(each, each).replace(".", words["point"]) for each in found)
    return re.sub(r"(?<=\() | (?=\))|(?<=\d) (?=%)|(?<=^−) |(?<=[(]−) ", "", text)


class _Sum:
    """Reads tokens by precedence: sums, products, powers, signs. Raises ValueError for what is no sum."""

    def __init__(self, found: list[str]) -> None:
        self._left, self._exact = found[::-1], True

    def value(self) -> tuple[Fraction, bool]:
        """(value, whether it is exact)."""
        found = self._sum()
        if self._left or abs(found) > LARGEST:
            raise ValueError
        return found, self._exact

    def _next(self, wanted: str) -> str:
        return self._left.pop() if self._left and self._left[-1] in wanted else ""

    def _sum(self) -> Fraction:
        found = self._product()
        while sign := self._next("+-"):
            other = self._product()
            found = found + other if sign == "+" else found - other
        return found

    def _product(self) -> Fraction:
        found = self._power()
        while sign := self._next("*/%"):
            other = self._power()
            if sign == "%":
                other /= 100
            found = found / other if sign == "/" else found * other
        return found

    def _power(self) -> Fraction:
        signed = self._left[-1:] == ["-"]
        found = self._single()
        while sign := self._next("²³^"):
            # a tower is read from its top; "-2 squared" is said of 4 and of -4: neither
            raised = Fraction({"²": 2, "³": 3}[sign]) if sign in "²³" else self._power()
            if signed:
                raise ValueError
            if raised.denominator != 1 or abs(raised) > 64 or abs(found) > LARGEST:
                raise ValueError
            found = found**raised.numerator
        return found

    def _single(self) -> Fraction:
        if self._next("-"):
            return -self._single()
        if self._next("√"):
            under = self._single()
            if under < 0 or under > LARGEST:
                raise ValueError
            root = Fraction(float(under) ** 0.5).limit_denominator(10**9)
            self._exact = self._exact and root * root == under
            return root
        if self._next("("):
            found = self._sum()
            if not self._next(")"):
                raise ValueError
            return found
        if not self._left or not self._left[-1][0].isdigit():
            raise ValueError
        return Fraction(self._left.pop())
