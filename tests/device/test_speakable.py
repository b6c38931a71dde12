"""What is said for what is written, in three languages; and what holds for any text."""

from __future__ import annotations

import re

import pytest
from exo.device.numerals import LANGUAGES, LIMIT, cardinal, ordinal, year
from exo.device.speakable import MARKS, speakable
from hypothesis import given
from hypothesis import strategies as st

ENGLISH = [
    ("It is 21.5 °C.", "It is twenty-one point five degrees Celsius."),
    ("-5 °C; 1 km; 1 min", "minus five degrees Celsius; one kilometre; one minute"),
    ("30 km/h, 2.5kB, 50%", "thirty kilometres per hour, two point five kilobytes, fifty percent"),
    ("$5.99, €1,234.50, 20 €", "five dollars ninety-nine, one thousand two hundred and thirty-four euros fifty, twenty euros"),
    ("$1 or 3 USD", "one dollar or three dollars"),
    ("Call +49 170 1234567.", "Call plus four nine, one seven zero, one two three four five six seven."),
    ("Dial 555-123-4567 now", "Dial five five five, one two three, four five six seven now"),
    ("at 9:05 a.m. or 14:30", "at nine oh five a m or fourteen thirty"),
    ("It ends at 10:00.", "It ends at ten o'clock."),
    ("On 2026-11-30 it rained.", "On November thirtieth, twenty twenty-six it rained."),
    ("12/25/2026 and 25/12/2026", "December twenty-fifth, twenty twenty-six and December twenty-fifth, twenty twenty-six"),
    ("the 1st, 2nd, 3rd, 12th, 21st", "the first, second, third, twelfth, twenty-first"),
    ("In 1984 and 2005", "In nineteen eighty-four and two thousand and five"),
    ("1,500 of 1,000,000", "one thousand five hundred of one million"),
    ("Pi is 3.14", "Pi is three point one four"),
    ("agent 007", "agent zero zero seven"),
    ("Python 3.11.2", "Python three dot eleven dot two"),
    ("3–5 days, 3-5 days", "three to five days, three to five days"),
    ("1/2 cup, ½ cup, 7/9", "one half cup, one half cup, seven over nine"),
    ("2 * 3 = 6", "two times three equals six"),
    ("salt & pepper", "salt and pepper"),
    ("see https://www.example.com/a/b?c=1#d.", "see example dot com."),
    ("mail jo.doe@example.com!", "mail jo dot doe at example dot com!"),
    ("[the docs](https://a.example/x)", "the docs"),
    ("![a cat](cat.png) sleeps", "a cat sleeps"),
    ("**Bold**, *it*, __b__, ~~no~~, `x`", "Bold, it, b, no, x"),
    ("# Title\n\n- one\n- two", "Title. one. two."),
    ("1. First", "one: First"),
    ("- [x] done", "done"),
    ("> quoted", "quoted"),
    ("| a | b |\n|---|:-:|\n| 1 | 2 kB |", "a, b. one, two kilobytes."),
    ("```python\nx = 1\n\ny = 2\n```", "code, two lines."),
    ("```\nls\n```", "code, one line."),
    ("```\na\nb\nc", "code, three lines."),
    ("id 550e8400-e29b-41d4-a716-44665544ab12", "id ID ending in a b one two"),
    ("commit 3f2a9bc1d4e5", "commit ID ending in d four e five"),
    ("😀 ok 👍🏽", "ok"),
    ("😀", ""),
    ("A4, mp3, B2B", "A4, mp3, B2B"),
    ("<b>Hi</b> &amp; bye<br>", "Hi and bye"),
    ("snake_case_name", "snake case name"),
    ("What?! Yes...", "What?! Yes..."),
    ("Dr. Smith's well-known", "Dr. Smith's well-known"),
]  # fmt: skip
GERMAN = [
    ("Am 3. Mai um 14:30 Uhr", "Am dritten Mai um vierzehn Uhr dreißig"),
    ("Der 30.11.2026", "Der dreißigste November zweitausendsechsundzwanzig"),
    ("am 1.12.", "am ersten Dezember"),
    ("21,5 °C", "einundzwanzig Komma fünf Grad Celsius"),
    ("5,99 € und 1.234,50 EUR", "fünf Euro neunundneunzig und tausendzweihundertvierunddreißig Euro fünfzig"),
    ("1.000.000 Menschen", "eine Million Menschen"),
    ("1 Euro, 1 h, 1 m", "ein Euro, eine Stunde, ein Meter"),
    ("1984", "neunzehnhundertvierundachtzig"),
    ("um 8:00", "um acht Uhr"),
    ("https://example.de/x", "example Punkt de"),
    ("```\na\nb\n```", "Code, zwei Zeilen."),
    ("3-5 Tage", "drei bis fünf Tage"),
]  # fmt: skip
SPANISH = [
    (
        "El 2026-11-01 a las 14:30",
        "El primero de noviembre de dos mil veintiséis a las catorce treinta",
    ),
    ("5,99 €", "cinco euros con noventa y nueve"),
    ("21 km y 1 libro", "veintiún kilómetros y un libro"),
    ("la 3ª y el 1º", "la tercera y el primero"),
    ("50 %", "cincuenta por ciento"),
    ("www.ejemplo.es", "ejemplo punto es"),
]


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        (language, *row)
        for language, rows in zip(LANGUAGES, (ENGLISH, GERMAN, SPANISH), strict=True)
        for row in rows
    ],
)
def test_what_is_written_is_said(language: str, text: str, said: str) -> None:
    assert speakable(text, language) == said


def test_another_language_keeps_its_numbers_for_the_voice() -> None:
    assert speakable("Il fait **21** °C", "fr") == "Il fait 21 °C"


PIECES = st.sampled_from(
    [*MARKS, "**", "```", "~~~", "\n", "\n\n", "|", "---", "- ", "1. ", "# ", "> ", "[", "](", ")", "http://", "a@b.c",
     "1", "23", "4,5", "6.7", "°C", "€", "$", ":", "12:30", "2026-11-30", "3.5.2026", "0170", "é", "字", "😀", "ª",
     " ", "word", "½", "-", "–", "&lt;", "<a>", "0x1f", "deadbeef12", "\u200b", "\ud800", "١٢", "²"]
)  # fmt: skip


@given(
    st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=200),
    st.sampled_from([*LANGUAGES, "fr", ""]),
)
def test_any_text_can_be_said(text: str, language: str) -> None:
    said = speakable(text, language)
    assert not set(said) & set(MARKS)
    assert "\n" not in said
    if any(char.isalpha() for char in text):
        assert any(char.isalnum() for char in said)


@given(st.text(alphabet="abc *_`[]()#\n", max_size=60))
def test_no_letter_of_a_plain_text_is_lost(text: str) -> None:
    letters = re.sub(r"\([^()]*\)|[^abc]", "", text)
    said = re.sub(r"[^abc]", "", speakable(text, "en")) if "```" not in text else letters
    assert len(said) >= len(letters)


@given(st.integers(0, 10**16), st.sampled_from(LANGUAGES))
def test_every_number_has_words_and_no_two_the_same(number: int, language: str) -> None:
    words = cardinal(number, language)
    assert words and not re.search(r"\d", words)
    assert words != cardinal(number + 1, language)
    assert cardinal(-number - 1, language) != cardinal(number + 1, language)
    if number < LIMIT:
        assert ordinal(number % 1000, language)
    assert year(1100 + number % 1000, language)


@pytest.mark.parametrize(
    ("number", "english", "german", "spanish"),
    [
        (0, "zero", "null", "cero"),
        (16, "sixteen", "sechzehn", "dieciséis"),
        (21, "twenty-one", "einundzwanzig", "veintiuno"),
        (100, "one hundred", "hundert", "cien"),
        (101, "one hundred and one", "hunderteins", "ciento uno"),
        (21_000, "twenty-one thousand", "einundzwanzigtausend", "veintiún mil"),
        (101_000, "one hundred and one thousand", "hunderteintausend", "ciento un mil"),
        (1_000_001, "one million and one", "eine Million eins", "un millón uno"),
        (10**9, "one billion", "eine Milliarde", "mil millones"),
        (10**12, "one trillion", "eine Billion", "un billón"),
    ],
)
def test_numbers(number: int, english: str, german: str, spanish: str) -> None:
    assert [cardinal(number, each) for each in LANGUAGES] == [english, german, spanish]
