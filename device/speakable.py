"""Written text as it is said: numbers, units, money, times and dates in words, Markdown, code and
addresses as a person would read them aloud. Pure: a text and a language in, a text out.

Languages are English, German and Spanish; another is spoken by English rules for signs alone, its
numbers left to the voice. Invariant: it never raises, no mark of Markdown is left, and what holds a
letter is never empty."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exo.device.numerals import LANGUAGES, LIMIT, cardinal, digits, ordinal, year

LONGEST = 20_000  # characters that are read at most
FENCE = re.compile(r"^[ \t]*(?:```|~~~)(?!.*(?:```|~~~)).*$")
MARKS = "*_`~#|<>[]{}\\"  # none of them is said

# unit -> (one, many, gender) for en, de, es; "=" is the same word for many
_UNITS: dict[str, tuple[str, str, str]] = {
    "°C": ("degree Celsius,degrees Celsius", "Grad Celsius,=,n", "grado Celsius,grados Celsius,m"),
    "°F": ("degree Fahrenheit,degrees Fahrenheit", "Grad Fahrenheit,=,n", "grado Fahrenheit,grados Fahrenheit,m"),
    "°": ("degree,degrees", "Grad,=,n", "grado,grados,m"),
    "%": ("percent,=", "Prozent,=,n", "por ciento,=,m"),
    "km/h": ("kilometre per hour,kilometres per hour", "Kilometer pro Stunde,=,m", "kilómetro por hora,kilómetros por hora,m"),
    "m/s": ("metre per second,metres per second", "Meter pro Sekunde,=,m", "metro por segundo,metros por segundo,m"),
    "mph": ("mile per hour,miles per hour", "Meile pro Stunde,Meilen pro Stunde,f", "milla por hora,millas por hora,f"),
    "km²": ("square kilometre,square kilometres", "Quadratkilometer,=,m", "kilómetro cuadrado,kilómetros cuadrados,m"),
    "m²": ("square metre,square metres", "Quadratmeter,=,m", "metro cuadrado,metros cuadrados,m"),
    "m³": ("cubic metre,cubic metres", "Kubikmeter,=,m", "metro cúbico,metros cúbicos,m"),
    "km": ("kilometre,kilometres", "Kilometer,=,m", "kilómetro,kilómetros,m"),
    "cm": ("centimetre,centimetres", "Zentimeter,=,m", "centímetro,centímetros,m"),
    "mm": ("millimetre,millimetres", "Millimeter,=,m", "milímetro,milímetros,m"),
    "m": ("metre,metres", "Meter,=,m", "metro,metros,m"),
    "mi": ("mile,miles", "Meile,Meilen,f", "milla,millas,f"),
    "ft": ("foot,feet", "Fuß,=,m", "pie,pies,m"),
    "kg": ("kilogram,kilograms", "Kilogramm,=,n", "kilogramo,kilogramos,m"),
    "mg": ("milligram,milligrams", "Milligramm,=,n", "miligramo,miligramos,m"),
    "g": ("gram,grams", "Gramm,=,n", "gramo,gramos,m"),
    "lb": ("pound,pounds", "Pfund,=,n", "libra,libras,f"),
    "oz": ("ounce,ounces", "Unze,Unzen,f", "onza,onzas,f"),
    "ml": ("millilitre,millilitres", "Milliliter,=,m", "mililitro,mililitros,m"),
    "l": ("litre,litres", "Liter,=,m", "litro,litros,m"),
    "L": ("litre,litres", "Liter,=,m", "litro,litros,m"),
    "kB": ("kilobyte,kilobytes", "Kilobyte,=,n", "kilobyte,kilobytes,m"),
    "KB": ("kilobyte,kilobytes", "Kilobyte,=,n", "kilobyte,kilobytes,m"),
    "MB": ("megabyte,megabytes", "Megabyte,=,n", "megabyte,megabytes,m"),
    "GB": ("gigabyte,gigabytes", "Gigabyte,=,n", "gigabyte,gigabytes,m"),
    "TB": ("terabyte,terabytes", "Terabyte,=,n", "terabyte,terabytes,m"),
    "Hz": ("hertz,=", "Hertz,=,n", "hercio,hercios,m"),
    "kHz": ("kilohertz,=", "Kilohertz,=,n", "kilohercio,kilohercios,m"),
    "MHz": ("megahertz,=", "Megahertz,=,n", "megahercio,megahercios,m"),
    "GHz": ("gigahertz,=", "Gigahertz,=,n", "gigahercio,gigahercios,m"),
    "kWh": ("kilowatt hour,kilowatt hours", "Kilowattstunde,Kilowattstunden,f", "kilovatio hora,kilovatios hora,m"),
    "kW": ("kilowatt,kilowatts", "Kilowatt,=,n", "kilovatio,kilovatios,m"),
    "W": ("watt,watts", "Watt,=,n", "vatio,vatios,m"),
    "V": ("volt,volts", "Volt,=,n", "voltio,voltios,m"),
    "mA": ("milliampere,milliamperes", "Milliampere,=,n", "miliamperio,miliamperios,m"),
    "mAh": ("milliampere hour,milliampere hours", "Milliamperestunde,Milliamperestunden,f", "miliamperio hora,miliamperios hora,m"),
    "dB": ("decibel,decibels", "Dezibel,=,n", "decibelio,decibelios,m"),
    "hPa": ("hectopascal,hectopascals", "Hektopascal,=,n", "hectopascal,hectopascales,m"),
    "kcal": ("kilocalorie,kilocalories", "Kilokalorie,Kilokalorien,f", "kilocaloría,kilocalorías,f"),
    "ms": ("millisecond,milliseconds", "Millisekunde,Millisekunden,f", "milisegundo,milisegundos,m"),
    "s": ("second,seconds", "Sekunde,Sekunden,f", "segundo,segundos,m"),
    "min": ("minute,minutes", "Minute,Minuten,f", "minuto,minutos,m"),
    "h": ("hour,hours", "Stunde,Stunden,f", "hora,horas,f"),
}  # fmt: skip
_MONEY: dict[str, tuple[str, str, str]] = {
    "$": ("dollar,dollars", "Dollar,=,m", "dólar,dólares,m"),
    "€": ("euro,euros", "Euro,=,m", "euro,euros,m"),
    "£": ("pound,pounds", "Pfund,=,n", "libra,libras,f"),
    "¥": ("yen,=", "Yen,=,m", "yen,yenes,m"),
    "CHF": ("franc,francs", "Franken,=,m", "franco,francos,m"),
}
_CODES = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CHF": "CHF"}
_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
_FRACTIONS = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅛": (1, 8),
}  # fmt: skip
_PARTS = {
    "en": {(1, 2): "one half", (1, 3): "one third", (2, 3): "two thirds", (1, 4): "one quarter",
           (3, 4): "three quarters", (1, 8): "one eighth"},
    "de": {(1, 2): "einhalb", (1, 3): "ein Drittel", (2, 3): "zwei Drittel", (1, 4): "ein Viertel",
           (3, 4): "drei Viertel", (1, 8): "ein Achtel"},
    "es": {(1, 2): "un medio", (1, 3): "un tercio", (2, 3): "dos tercios", (1, 4): "un cuarto",
           (3, 4): "tres cuartos", (1, 8): "un octavo"},
}  # fmt: skip


@dataclass(frozen=True)
class _Words:
    """What signs are called in a language."""

    point: str  # of a decimal
    dot: str  # of an address
    at: str
    code: str  # {} lines
    code_one: str
    id: str  # {} its last letters
    to: str  # of a range
    about: str
    less: str
    more: str
    plus: str
    equals: str
    times: str
    over: str
    both: str  # &
    minus: str
    plus_minus: str
    thousands: str  # the separator of groups in a written number
    decimal: str  # the one before the fraction


_SIGNS = {
    "en": _Words(
        "point", "dot", "at", "code, {} lines", "code, one line", "ID ending in {}", "to", "about",
        "less than", "more than", "plus", "equals", "times", "over", "and", "minus", "plus or minus",
        ",", ".",
    ),
    "de": _Words(
        "Komma", "Punkt", "ät", "Code, {} Zeilen", "Code, eine Zeile", "Kennung, endet auf {}", "bis",
        "etwa", "weniger als", "mehr als", "plus", "gleich", "mal", "durch", "und", "minus",
        "plus minus", ".", ",",
    ),
    "es": _Words(
        "coma", "punto", "arroba", "código, {} líneas", "código, una línea", "identificador terminado en {}",
        "a", "unos", "menos que", "más que", "más", "igual a", "por", "entre", "y", "menos",
        "más menos", ".", ",",
    ),
}  # fmt: skip

_TABLE_RULE = re.compile(r"^(?=[^\n]*-)[ \t]*[|:-][ \t|:-]*$", re.M)
_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*$", re.M)
_RULE = re.compile(r"^[ \t]*([-=*_])(?:[ \t]*\1){2,}[ \t]*$", re.M)
_LEAD = re.compile(r"^[ \t]*(?:(?:>[ \t]?)+|#{1,6}[ \t]+|[-*+•][ \t]+)(?:\[[ xX]\][ \t]+)?", re.M)
_NUMBERED = re.compile(r"^[ \t]*(\d{1,3})[.)][ \t]+(?=\S)", re.M)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,1000})\](?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,200}\])")
_FOOTNOTE = re.compile(r"\[\^[^\]\n]{1,50}\]:?")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_URL = re.compile(r"\b(?:https?|ftp)://(?:[^\s/@]*@)?(?:www\.)?([^\s/?#:>)\]]+)[^\s>)\]]*", re.I)
_WWW = re.compile(r"\bwww\.([\w-]+(?:\.[\w-]+)+)[^\s>)\]]*", re.I)
_MAIL = re.compile(r"\b([\w.+-]{1,64})@([\w-]+(?:\.[\w-]+)+)")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.I)
_HASH = re.compile(
    r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{16,}\b|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}\b",
    re.I,
)
_N = r"(?<![\w.,])(?P<sign>[-−+]?)(?P<number>\d+(?:[.,'\u00a0\u202f ]\d{3})*(?:[.,]\d+)?)"
_UNIT = re.compile(
    _N + r"[ \u00a0\u202f]?(?P<unit>" + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True)) + r")(?![\w/°²³])"
)  # fmt: skip
_PRICE = re.compile(
    r"(?P<sign>[-−]?)(?P<unit>[$€£¥])[ \u00a0]?(?P<number>\d+(?:[.,]\d{3})*(?:[.,]\d+)?)(?![\w])"
)
_PRICED = re.compile(_N + r"[ \u00a0\u202f]?(?P<unit>[$€£¥]|USD|EUR|GBP|JPY|CHF)(?!\w)")
_ISO = re.compile(r"(?<![\w-])(\d{4})-(\d{2})-(\d{2})(?![\w-])")
_ISO_TIME = re.compile(r"(?<=\d)T(?=\d\d:\d\d)")
_DOTTED = re.compile(
    r"(?:(?<=\s)|^)(?P<lead>(?:am|vom|zum|dem|den|ab|seit|bis|der|die|das)\s+)?(\d{1,2})\.(\d{1,2})\.(\d{4})?(?!\d|\.\d)",
    re.I,
)
_SLASHED = re.compile(r"(?<![\w/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\w/])")
_DAY_DE = re.compile(
    r"(?P<lead>\b(?:am|vom|zum|dem|den|ab|seit|bis|der|die|das)\s+)?(?<![\w.,])(\d{1,2})\.\s+(?="
    + _MONTHS["de"].replace(" ", "|") + r")", re.I,
)  # fmt: skip
_CLOCK = re.compile(
    r"(?<![\w:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\w:])(\s*(?:Uhr\b|[ap]\.?m\b\.?))?",
    re.I,
)
_ORDINAL_EN = re.compile(r"(?<!\w)(\d{1,6})(?:st|nd|rd|th)\b")
_ORDINAL_ES = re.compile(r"(?<!\w)(\d{1,6})\.?([ºª])")
_PHONE = re.compile(
    r"(?<![\w.,/-])(?:\+\d{1,3}|\(?0\d{2,5}\)?|\d{3}(?=[-. ]\d{3}[-. ]\d{4}\b|-\d{4}\b))(?:[ /.-]?\(?\d{2,}\)?){1,6}(?![\w])"
)
_CHAIN = re.compile(r"(?<![\w.,])v?(\d+(?:\.\d+){2,})(?![\w])")
_RANGE = re.compile(r"(?<=\d)\s?[–—]\s?(?=\d)|(?<=\d)-(?=\d)")
_FRACTION = re.compile(r"(?<![\w/.,])(\d{1,2})/(\d{1,2})(?![\w/])")
_NOUN = re.compile(r" [^\W\d_]{2}")
_NUMBER = re.compile(_N + r"(?!\w)")


def speakable(text: str, language: str = "en") -> str:
    """Return a piece of a reply as it is said; "" when nothing of it is. `language` is an ISO 639-1 code."""
    known = language.split("-")[0].lower()
    signs = _SIGNS.get(known, _SIGNS["en"])
    source = text[:LONGEST].replace("\r", "\n")
    said = _code(source, signs, known if known in LANGUAGES else "en")
    said = _markup(said, signs)
    said = _addresses(said, signs)
    if known in LANGUAGES:
        said = _values(said, known, signs)
    said = _signs(said, signs)
    if not any(char.isalnum() for char in said) and any(char.isalpha() for char in source):
        said = "".join(char if char.isalnum() else " " for char in source)
    return _tidy(said)


def _code(text: str, signs: _Words, language: str) -> str:
    """Each block of code becomes how long it is; an open one reaches to the end."""
    out: list[str] = []
    block: list[str] | None = None

    def told(lines: list[str]) -> str:
        count = sum(bool(line.strip()) for line in lines)
        if not count:
            return ""
        return "\n" + (signs.code_one if count == 1 else signs.code.format(count)) + ".\n"

    for line in text.split("\n"):
        if FENCE.match(line):
            if block is not None:
                out.append(told(block))
            block = [] if block is None else None
        elif block is None:
            out.append(line)
        else:
            block.append(line)
    if block is not None:
        out.append(told(block))
    return "\n".join(out)


def _markup(text: str, signs: _Words) -> str:
    """Headings, lists, tables and emphasis as sentences with pauses."""
    text = _FOOTNOTE.sub(" ", text)
    text = _LINK.sub(r" \1 ", _LINK.sub(r" \1 ", text))  # twice: a picture may stand in a link
    text = _TABLE_RULE.sub("", text)
    text = _RULE.sub("", text)
    text = re.sub(r"<((?:https?|mailto)[^<>\s]+|[\w.+-]+@[\w.-]+)>", r" \1 ", text)
    text = html.unescape(_TAG.sub(" ", text))
    text = _LEAD.sub("", text)
    text = _NUMBERED.sub(r"\1: ", text)
    lines = []
    for line in text.split("\n"):
        if line.count("|") >= 2 or line.strip().startswith("|"):
            cells = (cell.strip() for cell in line.split("|"))
            line = ", ".join(cell for cell in cells if cell)
        # marks around words; 2*3 and snake_case are none
        line = re.sub(r"(?<!\w)(\*{1,3}|_{1,3}|~~)(?=\S)(.{1,400}?)(?<=\S)\1(?!\w)", r"\2", line)
        line = re.sub(r"\*\*(?=\S)(.{1,400}?)(?<=\S)\*\*", r"\1", line).replace("`", "")
        lines.append(line.strip())
    said = [line if line[-1] in ".!?,;:…。！？、" else f"{line}." for line in lines if line]
    if len(said) == 1 and lines:  # a sentence keeps the end that it had
        return next(line for line in lines if line)
    return " ".join(said)


def _addresses(text: str, signs: _Words) -> str:
    def host(name: str) -> str:
        return name.strip(".,;").replace(".", f" {signs.dot} ").replace("-", " ")

    text = _MAIL.sub(lambda m: f"{host(m[1].replace('_', ' '))} {signs.at} {host(m[2])}", text)
    text = _URL.sub(lambda m: host(m[1]) + _stop(m[0]), text)
    text = _WWW.sub(lambda m: host(m[1]) + _stop(m[0]), text)

    def shortened(match: re.Match[str]) -> str:
        return signs.id.format(" ".join(match[0][-4:]))

    return _HASH.sub(shortened, _UUID.sub(shortened, text))


def _stop(address: str) -> str:
    """The punctuation that ended a sentence and no address."""
    return address[-1] if address[-1] in ".,;!?" else ""


def _values(text: str, language: str, signs: _Words) -> str:
    """Dates, times, prices, units, telephone numbers, ordinals and numbers, in this order: what is more
    special first."""
    read = _Reader(language, signs)
    text = _ISO_TIME.sub(" ", text)
    for pattern, how in read.rules():
        text = pattern.sub(how, text)
    for sign, parts in _FRACTIONS.items():
        text = text.replace(sign, f" {_PARTS[language][parts]} ")
    return text


class _Reader:
    """Reads what a pattern found, in one language."""

    def __init__(self, language: str, signs: _Words) -> None:
        self._language, self._signs = language, signs
        self._months = _MONTHS[language].split()
        self._place = LANGUAGES.index(language)

    def rules(self) -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        language = self._language
        yield _ISO, lambda m: self._date(m[0], int(m[1]), int(m[2]), int(m[3]))
        if language == "de":
            yield _DOTTED, self._dotted
            yield _DAY_DE, lambda m: f"{m['lead'] or ''}{self._day_de(int(m[2]), m['lead'])} "
        yield _SLASHED, self._slashed
        yield _CLOCK, self._clock
        yield _PHONE, self._phone
        yield _PRICE, self._price
        yield _PRICED, self._price
        yield _UNIT, self._unit
        yield _CHAIN, lambda m: self._chain(m[0], m[1])
        if language == "en":
            yield _ORDINAL_EN, lambda m: ordinal(int(m[1]), "en")
        if language == "es":
            yield _ORDINAL_ES, lambda m: ordinal(int(m[1]), "es", "a" if m[2] == "ª" else "o")
        yield _RANGE, lambda m: f" {self._signs.to} "
        yield _FRACTION, self._fraction
        yield _NUMBER, self._bare

    def _sign(self, sign: str) -> str:
        return f"{self._signs.minus} " if sign in ("-", "−") and sign else ""

    def _bare(self, match: re.Match[str]) -> str:
        # a noun follows: "ein Apfel", "un libro"
        counted = "m" if match["number"] == "1" and _NOUN.match(match.string, match.end()) else ""
        return self._sign(match["sign"]) + self._number(match["number"], counted)

    def _split(self, text: str) -> tuple[str, str]:
        """(whole digits, digits of the fraction) of a written number, by the language's separators where
        they decide, else by what can only be one thing."""
        text = re.sub(r"['\u00a0\u202f ]", "", text)
        marks = [char for char in text if char in ".,"]
        if not marks:
            return text, ""
        head, last, tail = text.rpartition(marks[-1])
        grouped = all(len(part) == 3 for part in re.split("[.,]", text)[1:])
        # both kinds: the last is the decimal one; one kind in groups of three: thousands
        if len(set(marks)) == 1 and grouped and (len(marks) > 1 or last == self._signs.thousands):
            return re.sub("[.,]", "", text), ""
        return re.sub("[.,]", "", head), tail

    def _number(self, text: str, gender: str = "") -> str:
        whole, fraction = self._split(text)
        if len(whole) > 1 and whole[0] == "0":
            words = digits(whole, self._language)
        elif not fraction and not gender and len(text) == 4 and 1100 <= int(whole) < 2100:
            words = year(int(whole), self._language)
        elif len(whole) > 15 or int(whole) >= LIMIT:
            words = digits(whole, self._language)
        else:
            words = cardinal(int(whole), self._language, "" if fraction else gender)
        if fraction:
            words += f" {self._signs.point} {digits(fraction, self._language)}"
        return words

    def _counted(self, text: str, forms: str) -> str:
        """A number and what it counts."""
        one, many, gender = (*forms.split(","), "m")[:3]
        whole, fraction = self._split(text)
        single = not fraction and whole.lstrip("0") == "1"
        name = one if single or many == "=" else many
        return f"{self._number(text, gender)} {name}"

    def _unit(self, match: re.Match[str]) -> str:
        forms = _UNITS[match["unit"]][self._place]
        return self._sign(match["sign"]) + self._counted(match["number"], forms)

    def _price(self, match: re.Match[str]) -> str:
        unit = _CODES.get(match["unit"], match["unit"])
        forms = _MONEY[unit][self._place]
        whole, cents = self._split(match["number"])
        sign = self._sign(match["sign"])
        if len(cents) not in (1, 2):
            return sign + self._counted(match["number"], forms)
        words, rest = self._counted(whole, forms), int(cents.ljust(2, "0"))
        if not rest:
            return sign + words
        if self._language == "es":
            return f"{sign}{words} con {cardinal(rest, 'es')}"
        return f"{sign}{words} {cardinal(rest, self._language)}"

    def _date(self, text: str, y: int, month: int, day: int) -> str:
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return " ".join(self._number(part) for part in re.findall(r"\d+", text))
        name, language = self._months[month - 1], self._language
        if language == "en":
            return f"{name} {ordinal(day, 'en')}, {year(y, 'en')}"
        if language == "de":
            return f"{ordinal(day, 'de', 'er')} {name} {year(y, 'de')}"
        return f"{_first(day)} de {name} de {year(y, 'es')}"

    def _dotted(self, match: re.Match[str]) -> str:
        lead, day, month = match["lead"] or "", int(match[2]), int(match[3])
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return match[0]
        said = f"{lead}{self._day_de(day, lead)} {self._months[month - 1]}"
        return f"{said} {year(int(match[4]), 'de')}" if match[4] else said

    def _day_de(self, day: int, lead: str | None) -> str:
        word = (lead or "").strip().lower()
        ending = {"": "er", "der": "e", "die": "e", "das": "e"}.get(word, "en")
        return ordinal(day, "de", ending)

    def _slashed(self, match: re.Match[str]) -> str:
        one, two, y = int(match[1]), int(match[2]), int(match[3])
        # in English the month comes first, unless it cannot be one
        month, day = (one, two) if self._language == "en" and one <= 12 else (two, one)
        return self._date(match[0], y, month, day)

    def _clock(self, match: re.Match[str]) -> str:
        hour, minute, after = int(match[1]), int(match[2]), (match[4] or "").strip().lower()
        second = int(match[3]) if match[3] else 0
        language = self._language
        if language == "de":
            words = f"{cardinal(hour, 'de', 'm')} Uhr" + (
                f" {cardinal(minute, 'de')}" if minute else ""
            )
            return words + (f" und {cardinal(second, 'de', 'f')} Sekunden" if second else "")
        if language == "es":
            words = cardinal(hour, "es", "f") + (
                f" {cardinal(minute, 'es')}" if minute else " horas"
            )
            words += f" y {cardinal(second, 'es')} segundos" if second else ""
        else:
            words = cardinal(hour, "en")
            if minute:
                words += f" {'oh ' if minute < 10 else ''}{cardinal(minute, 'en')}"
            elif not after:
                words += " o'clock" if hour <= 12 else " hundred"
            words += f" and {cardinal(second, 'en')} seconds" if second else ""
        half = {"a": " a m", "p": " p m"}.get(after[:1], "")
        return words + half + ("." if after.endswith(".") and half and self._ends(match) else "")

    def _ends(self, match: re.Match[str]) -> bool:
        return not match.string[match.end() :].strip()

    def _phone(self, match: re.Match[str]) -> str:
        groups = re.findall(r"\+?\d+", match[0])
        if sum(len(group) for group in groups) < 7:
            return match[0]
        plus = f"{self._signs.plus} " if match[0].startswith("+") else ""
        return plus + ", ".join(digits(group, self._language) for group in groups)

    def _chain(self, whole: str, text: str) -> str:
        """A version or an address of a network; 1.000.000 is a number where a stop parts thousands."""
        if self._signs.thousands == "." and re.fullmatch(r"\d{1,3}(\.\d{3})+", whole):
            return whole
        between = f" {self._signs.dot} "
        return between.join(
            digits(part, self._language) if len(part) > 3 or part[0] == "0" and len(part) > 1
            else cardinal(int(part), self._language)
            for part in text.split(".")
        )  # fmt: skip

    def _fraction(self, match: re.Match[str]) -> str:
        parts = int(match[1]), int(match[2])
        if found := _PARTS[self._language].get(parts):
            return found
        return f"{match[1]} {self._signs.over} {match[2]}"


def _first(day: int) -> str:
    return "primero" if day == 1 else cardinal(day, "es")


def _signs(text: str, signs: _Words) -> str:
    """Signs between words by their names; what is left for the eye goes."""
    for sign, name in (
        ("&", signs.both),
        ("±", signs.plus_minus),
        ("≈", signs.about),
        ("×", signs.times),
        ("÷", signs.over),
        ("≤", signs.less),
        ("≥", signs.more),
        ("→", signs.to),
    ):
        text = text.replace(sign, f" {name} ")
    text = re.sub(r"~(?=\w)", f" {signs.about} ", text)
    text = re.sub(r"(?<=\s)<(?=\s)", signs.less, text)
    text = re.sub(r"(?<=\s)>(?=\s)", signs.more, text)
    text = re.sub(r"(?<=\s)=(?=\s)", signs.equals, text)
    text = re.sub(r"(?<=\s)\+(?=\s)", signs.plus, text)
    text = re.sub(r"(?<=\w)\s?\*\s?(?=\w)", f" {signs.times} ", text)
    text = re.sub(r"(?<=\s)−(?=\s)", signs.minus, text)
    return "".join(" " if _silent(char) else char for char in text)


def _silent(char: str) -> bool:
    """Emoji, arrows, boxes, selectors, marks of Markdown, invisible characters."""
    code = ord(char)
    return (
        char in MARKS
        or char == "•"
        or code < 0x20
        or 0x200B <= code <= 0x200F
        or 0x2028 <= code <= 0x202E
        or 0x2060 <= code <= 0x2064
        or 0x2190 <= code <= 0x2BFF
        or 0xD800 <= code <= 0xF8FF
        or 0xFE00 <= code <= 0xFE0F
        or code == 0xFEFF
        or code >= 0x1F000
    )


def _tidy(text: str) -> str:
    """No empty brackets, no space before a stop, no two stops where one is said."""
    text = re.sub(r"\(\s*[,.;:]*\s*\)|\"\s*\"", " ", text)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" (?=[,.;:!?…)])", "", text)
    text = re.sub(r"([,;:])(?:\s*[,;:])+", r"\1", text)
    text = re.sub(r"[,;:]+(?=\s*[.!?])", "", text)
    text = re.sub(r"(?<![.])\.(?:\s*\.)(?![.])", ".", text)
    return text.strip(" ,;")
