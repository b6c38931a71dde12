from __future__ import annotations

import sqlite3

import pytest
from exo.core.retrieve.words import expression, near, plain, sought, stem, terms, tongue
from hypothesis import example, given
from hypothesis import strategies as st


def fts() -> sqlite3.Connection:
    link = sqlite3.connect(":memory:")
    link.execute("CREATE VIRTUAL TABLE t USING fts5 (body, content = '', tokenize = 'ascii')")
    return link


@given(st.text())
def test_no_text_is_a_query_that_fts5_refuses(text: str) -> None:
    match = expression(sought(text))
    if match:
        fts().execute("SELECT rowid FROM t WHERE t MATCH ?", (match,)).fetchall()


@example("0", "", "\u0e47")  # a vowel sign of Thai with nothing to stand on
@given(st.text(min_size=1), st.text(), st.text())
def test_what_is_sought_of_a_text_is_found_in_it(text: str, before: str, after: str) -> None:
    wanted = sought(text)
    having = terms(plain(f"{before} {text} {after}"))
    for term in wanted:
        assert any(each.startswith(term) if len(term) == 1 else each == term for each in having)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Müller wohnt in Zürich", "muller ZURICH"),
        ("Ёлка стоит", "елка"),
        ("crème brûlée", "creme brulee"),
        ("Straße", "strasse"),
        ("ＦＵＬＬ　ＷＩＤＴＨ", "full width"),
        ("黒猫が好きです", "猫"),
        ("東京都に住む", "東京"),
        ("แมวชอบปลา", "ปลา"),
        ("고양이를 좋아한다", "고양이"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("שָׁלוֹם", "שלום"),
        ("السَّلَام", "السلام"),
        ("John's bikes", "john bike"),
        ("baking", "bake"),
        ("batteries", "battery"),
    ],
)
def test_case_accents_scripts_and_endings_do_not_part_words(written: str, asked: str) -> None:
    link = fts()
    link.execute("INSERT INTO t (rowid, body) VALUES (1, ?)", (" ".join(terms(plain(written))),))
    for term in sought(asked):
        match = expression([term])
        assert link.execute("SELECT rowid FROM t WHERE t MATCH ?", (match,)).fetchall(), (
            term,
            match,
        )
    assert sought(asked)


def test_stop_words_of_the_question_s_own_language_are_left_out() -> None:
    assert sought("What is the name of my son?") == [
        stem("name"),
        "son",
    ]  # "son" is a stop word in French
    assert sought("Wie heißt die Katze von meinem Nachbarn?") == [
        stem("heisst"),
        stem("katze"),
        stem("nachbarn"),
    ]
    assert tongue(plain("Wo ist mein Schlüssel und wer hat ihn?")) == "de"
    assert tongue(plain("xyzzy")) == ""


def test_operators_are_words() -> None:
    assert (
        expression(sought('do NOT push* "col:x" -y NEAR(')) == '"not" OR "push" OR "col" OR "near"'
    )


@pytest.mark.parametrize(
    ("slip", "right", "most"),
    [
        ("hambrug", "hamburg", 1),
        ("recepie", "recipe", 2),
        ("tomatos", "tomatoes", 1),
        ("wether", "weather", 1),
    ],
)
def test_a_slip_is_near_its_word(slip: str, right: str, most: int) -> None:
    assert near(slip, ["unrelated", right, "hamster"], most)[0] == right


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", min_size=1, max_size=6))
def test_near_is_symmetric(one: str, other: str) -> None:
    for most in (0, 1, 2):
        assert bool(near(one, [other], most)) == bool(near(other, [one], most))
    assert near(one, [one], 0) == [one]
    assert bool(near(one, [other], 0)) == (one == other)
