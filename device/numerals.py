"""Numbers as words in English, German and Spanish: cardinals, ordinals, years, single digits. Pure.

Invariant: every whole number has words; above 10**15, where nobody follows, its digits are named."""

from __future__ import annotations

LANGUAGES = ("en", "de", "es")
LIMIT = 10**15


def _list(words: str) -> list[str]:
    return words.split()


_EN = _list("""zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen""")
_EN_TENS = _list("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
_EN_LARGE = ("", "thousand", "million", "billion", "trillion")
_EN_ORDINAL = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_DE = _list("""null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
    sechzehn siebzehn achtzehn neunzehn""")
_DE_TENS = _list("_ _ zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_DE_LARGE = (
    ("Million", "Millionen"),
    ("Milliarde", "Milliarden"),
    ("Billion", "Billionen"),
)
_DE_ORDINAL = {"eins": "erst", "drei": "dritt", "sieben": "siebt", "acht": "acht"}
_ES = _list("""cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis
    diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco
    veintiséis veintisiete veintiocho veintinueve""")
_ES_TENS = _list("_ _ veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa")
_ES_HUNDREDS = _list("""_ ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos
    ochocientos novecientos""")
_ES_ORDINAL = _list("_ primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo")


def cardinal(number: int, language: str, counted: str = "") -> str:
    """Return the number in words. `counted` m, f or n is the gender of what is counted: a noun follows
    ("ein", "eine", "un"); empty: the bare number."""
    if number < 0:
        return f"{_MINUS[language]} {cardinal(-number, language, counted)}"
    if number >= LIMIT:
        return digits(str(number), language)
    return _CARDINAL[language](number, counted)


def ordinal(number: int, language: str, ending: str = "") -> str:
    """Return the ordinal of a number from 0; German takes its `ending` (e, er, en), Spanish a or o."""
    if language == "en":
        head, mark, last = _cut(cardinal(number, "en"))
        if last in _EN_ORDINAL:
            return head + mark + _EN_ORDINAL[last]
        return head + mark + (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    if language == "de":
        words = cardinal(number, "de")
        rest = number % 100
        if 0 < rest < 20:
            last = _DE[rest]
            stem = words.removesuffix(last) + _DE_ORDINAL.get(last, last + "t")
            stem = stem if last != "acht" else words.removesuffix(last) + "acht"
        else:
            stem = words + "st"
        return stem + (ending or "e")
    if 0 < number < len(_ES_ORDINAL):
        word = _ES_ORDINAL[number]
        return word[:-1] + "a" if ending == "a" else word
    return cardinal(number, "es")


def year(number: int, language: str) -> str:
    """Return a year as it is said."""
    if language == "en" and (1100 <= number < 2000 or 2010 <= number < 2100):
        high, low = divmod(number, 100)
        if not low:
            return f"{cardinal(high, 'en')} hundred"
        return f"{cardinal(high, 'en')} {'oh ' if low < 10 else ''}{cardinal(low, 'en')}"
    if language == "de" and 1100 <= number < 2000:
        high, low = divmod(number, 100)
        return cardinal(high, "de") + "hundert" + (_german(low, "") if low else "")
    return cardinal(number, language)


def digits(text: str, language: str) -> str:
    """Return each digit by its name, what is no digit left out."""
    names = {"en": _EN, "de": _DE, "es": _ES}[language]
    return " ".join(names[int(char)] for char in text if char in "0123456789")


def _cut(words: str) -> tuple[str, str, str]:
    """The last word, and what stands before it."""
    place = max(words.rfind(" "), words.rfind("-"))
    return words[: max(place, 0)], words[place] if place >= 0 else "", words[place + 1 :]


def _english(number: int, counted: str) -> str:
    if number < 20:
        return _EN[number]
    if number < 100:
        tens, one = divmod(number, 10)
        return _EN_TENS[tens] + (f"-{_EN[one]}" if one else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_EN[hundreds]} hundred" + (f" and {_english(rest, '')}" if rest else "")
    power = (len(str(number)) - 1) // 3
    high, rest = divmod(number, 1000**power)
    words = f"{_english(high, '')} {_EN_LARGE[power]}"
    if not rest:
        return words
    return f"{words}{' and' if rest < 100 else ''} {_english(rest, '')}"


def _german(number: int, counted: str) -> str:
    if number == 1:
        return {"": "eins", "f": "eine"}.get(counted, "ein")
    if number < 20:
        return _DE[number]
    if number < 100:
        tens, one = divmod(number, 10)
        return (_german(one, "m") + "und" if one else "") + _DE_TENS[tens]
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        head = "hundert" if hundreds == 1 else f"{_DE[hundreds]}hundert"
        return head + (_german(rest, counted) if rest else "")
    if number < 1_000_000:
        thousands, rest = divmod(number, 1000)
        head = "tausend" if thousands == 1 else f"{_german(thousands, 'm')}tausend"
        return head + (_german(rest, counted) if rest else "")
    power = (len(str(number)) - 1) // 3
    high, rest = divmod(number, 1000**power)
    name = _DE_LARGE[power - 2][high > 1]
    words = f"{_german(high, 'f')} {name}"
    return words + (f" {_german(rest, counted)}" if rest else "")


def _spanish(number: int, counted: str) -> str:
    if number < 30:
        if number % 10 == 1 and number != 11 and counted:
            if counted == "f":
                return _ES[number][:-1] + "a"
            return "un" if number == 1 else "veintiún"
        return _ES[number]
    if number < 100:
        tens, one = divmod(number, 10)
        return _ES_TENS[tens] + (f" y {_spanish(one, counted)}" if one else "")
    if number == 100:
        return "cien"
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        head = _ES_HUNDREDS[hundreds]
        if counted == "f" and hundreds > 1:
            head = head[:-2] + "as"
        return head + (f" {_spanish(rest, counted)}" if rest else "")
    if number < 1_000_000:
        thousands, rest = divmod(number, 1000)
        head = "mil" if thousands == 1 else f"{_spanish(thousands, counted or 'm')} mil"
        return head + (f" {_spanish(rest, counted)}" if rest else "")
    power = 10**6 if number < 10**12 else 10**12
    high, rest = divmod(number, power)
    names = ("millón", "millones") if power == 10**6 else ("billón", "billones")
    words = f"{_spanish(high, 'm')} {names[high > 1]}"
    return words + (f" {_spanish(rest, counted)}" if rest else "")


_MINUS = {"en": "minus", "de": "minus", "es": "menos"}
_CARDINAL = {"en": _english, "de": _german, "es": _spanish}
