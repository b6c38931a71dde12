"""What is answered the same every time: courtesies, what Exo can do, sums."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from exo.core.engine.reader import Past
from exo.tools.assistant import sums, talk
from exo.tools.assistant.rules import plan
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)


def said(text: str) -> str:
    found = plan(text, NOW)
    assert not found.calls
    return found.said


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Hello!", "Hello!"),
        ("hey exo", "Hello!"),
        ("thanks a lot", "You are welcome."),
        ("Good night.", "Good night."),
        ("how are you doing today?", "I am here"),
        ("who are you?", "I am Exo"),
        ("Help", "I set timers"),
        ("What can you do?", "I set timers"),
        ("how do I forget something?", "Say: forget that"),
        ("how do I take a note", "Say: note:"),
        ("Danke schön!", "Gern geschehen."),
        ("wie geht's?", "Ich bin da"),
        ("Was kannst du alles?", "Ich stelle Timer"),
        ("wie stelle ich einen Wecker?", "Sag: weck mich"),
        ("muchas gracias", "De nada."),
        ("¿Qué puedes hacer?", "Pongo temporizadores"),
        ("¿cómo pongo un temporizador?", "Di: pon un"),
    ],
)
def test_courtesies_and_what_it_can_do_need_no_model(text: str, answer: str) -> None:
    assert said(text).startswith(answer)
    assert plan(text, NOW).kind == "chat"


@pytest.mark.parametrize(
    "text",
    [
        "how do I remember names better",
        "how can I sleep better?",
        "hello world in python please",
        "thanks to Anna the garden is finished",
        "what can you do about a leaking tap?",
        "who are you going to call",
        "help me write a letter",
        "good morning is what she said to me",
        "I am sorry that the tram was late",
        "danke Anna für das Buch, schreibt sie",
        "wie geht es meiner Schwester?",
        "what is 5",
        "12:30",
        "2026-12-01",
        "3-1",
        "nine and nine",
        "99 bottles of beer",
        "I have two plus ones",
        "call me at 5 - 6",
        "how much is the rent",
        "7 plus",
        "(3 + 4",
        "2 to the power of 1000",
        "2 ** 9999 ** 9999",
    ],
)
def test_what_only_begins_so_is_left_to_others(text: str) -> None:
    assert talk.answer(text) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what is 17 times 23?", "17 × 23 is 391."),
        ("15 percent of 80", "15% of 80 is 12."),
        ("what's 3 + 4 * 2", "3 + 4 × 2 is 11."),
        ("calculate (3 + 4) * 2", "(3 + 4) × 2 is 14."),
        ("how much is twelve minus twenty", "12 − 20 is −8."),
        ("what is two and two?", "2 + 2 is 4."),
        ("what is 1,250 divided by 3", "1250 ÷ 3 is about 416.666667."),
        ("the square root of 16", "the square root of 16 is 4."),
        ("what is the square root of 2?", "the square root of 2 is about 1.414214."),
        ("what is 9 squared", "9 squared is 81."),
        ("what is 12345 x 1000", "12345 × 1000 is 12\u202f345\u202f000."),
        ("what is 5 divided by 0?", "Nothing can be divided by zero."),
        ("12 / 0", "Nothing can be divided by zero."),
        ("was ist zwölf mal elf?", "12 × 11 ist 132."),
        ("Wie viel ist 1.234,5 mal 2?", "1234,5 × 2 ist 2469."),
        ("zwei hoch zehn", "2 hoch 10 ist 1024."),
        ("¿cuánto es 17 por 23?", "17 × 23 es 391."),
        ("¿Cuánto es el 15 por ciento de 80?", "15% de 80 es 12."),
        ("cuánto es 15 por ciento de 80", "15% de 80 es 12."),
    ],
)
def test_sums_are_exact_or_say_that_they_are_not(text: str, answer: str) -> None:
    assert said(text) == answer


@st.composite
def _terms(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A sum as it is written, and its value by fractions."""
    number = draw(st.decimals(min_value=0, max_value=999, places=2))
    text, value = f"{number}", Fraction(number)
    for _ in range(draw(st.integers(1, 4))):
        other = draw(st.integers(1, 99))
        sign = draw(st.sampled_from("+-*/"))
        text = f"({text}) {sign} {other}"
        value = {
            "+": value + other,
            "-": value - other,
            "*": value * other,
            "/": value / other,
        }[sign]
    return text, value


@given(_terms())
def test_any_sum_is_what_fractions_say(made: tuple[str, Fraction]) -> None:
    text, value = made
    answer = said(f"what is {text}?")
    told = answer.removesuffix(".").rpartition(" ")[2].replace("\u202f", "").replace("−", "-")
    assert abs(Fraction(told) - value) <= Fraction(1, 2 * 10**sums.SHOWN)
    assert (" is about " in answer) == (Fraction(told) != value)


@given(st.text(alphabet="0123456789+-*/^%()., xplusby²√", max_size=80))
def test_no_text_breaks_it(text: str) -> None:
    for asked in (text, f"what is {text}"):
        found = talk.answer(asked)
        assert found is None or found.said


def test_remember_that_keeps_what_was_said_before() -> None:
    for text, order in (
        ("My sister Anna moved to Lisbon", "remember that"),
        ("Meine Schwester wohnt in Lissabon", "Merk dir das bitte"),
        ("Mi hermana vive en Lisboa", "recuérdalo"),
    ):
        found = plan(order, NOW, Past(text, reply="I heard you."))
        assert found.calls == [("remember", {"text": text})]
    assert not plan("remember that", NOW).calls
    assert not plan("remember that", NOW, Past("where is Anna?")).calls
    done = Past("louder", [("device", {"action": "volume", "delta": 10})])
    assert not plan("remember that", NOW, done).calls


@pytest.mark.parametrize(
    ("text", "kind", "answer"),
    [
        ("turn on the lights", "out_of_scope", "I cannot do that."),
        ("mach das Licht in der Küche an", "out_of_scope", "Das kann ich nicht."),
        ("my sister Anna moved to Lisbon in May", "question", "I heard you."),
        ("Well, I had a long day", "", "I heard you."),
        ("mein Sohn hat heute Geburtstag", "question", "Ich habe es gehört."),
        ("mi hermana vive en Lisboa", "", "Te he oído."),
        ("I feel sad today", "small_talk", "I am listening."),
    ],
)
def test_what_a_small_model_would_make_up_is_answered_honestly(
    text: str, kind: str, answer: str
) -> None:
    found = talk.instead(text, kind)
    assert found and found.said.startswith(answer) and not found.calls


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("why is the sky blue", "chat"),
        ("where does my sister live?", "question"),
        ("my sister lives where?", "question"),
        ("I want to know how bees fly", "question"),
        ("write a poem about my cat", "chat"),
        ("the meeting was boring", ""),
    ],
)
def test_what_a_model_can_word_is_left_to_it(text: str, kind: str) -> None:
    assert talk.instead(text, kind) is None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("go to sleep now, I won't be needing you till lunch", ("device", {"action": "sleep"})),
        ("I can't see a thing, brighter please", ("device", {"action": "brightness", "delta": 10})),
        ("louder, the kids are shouting", ("device", {"action": "volume", "delta": 10})),
        ("schlaf jetzt, ich brauche dich nicht mehr", ("device", {"action": "sleep"})),
        ("más alto, no te oigo", ("device", {"action": "volume", "delta": 10})),
    ],
)
def test_an_order_may_have_its_reason_beside_it(text: str, call: tuple[str, object]) -> None:
    assert plan(text, NOW).calls == [call]


@pytest.mark.parametrize(
    "text",
    [
        "go to sleep, he said",
        "louder, she shouted, I can't hear",
        "remind me tomorrow, I have no time",
        "i lost my luggage, what now",
        "we went there, it was louder",
        "the kids are shouting, is it louder?",
    ],
)
def test_what_is_told_is_no_order_with_a_reason(text: str) -> None:
    assert not [call for call in plan(text, NOW).calls if call[0] != "reminder"]


@pytest.mark.parametrize(
    "text",
    [
        "Stell keinen Timer auf zehn Minuten",
        "Set no timer for 5 minutes",
        "sin temporizador de 5 minutos",
        "cancel no timers",
        "lösche keinen Timer",
        "Should I set a timer for ten minutes?",
    ],
)
def test_what_is_denied_or_asked_is_no_order(text: str) -> None:
    assert not plan(text, NOW).calls


@pytest.mark.parametrize(
    "text", ["no timer, I only have 5 minutes", "why do eggs take 10 minutes?"]
)
def test_an_answer_to_how_long_is_no_other_sentence(text: str) -> None:
    back = plan("set a timer", NOW)
    asked = Past("set a timer", back.calls, back.said)
    assert back.said == "For how long?"
    assert not plan(text, NOW, asked).calls
    assert plan("ten minutes", NOW, asked).calls == [("timer", {"seconds": 600})]


@pytest.mark.parametrize(
    "text", ["don't remind me tomorrow at 7", "How is the weather tomorrow at 7?"]
)
def test_an_answer_to_when_is_no_other_sentence(text: str) -> None:
    back = plan("Remind me to call Anna", NOW)
    asked = Past("Remind me to call Anna", back.calls, back.said)
    assert back.said == "When shall I remind you?"
    assert not [args for _, args in plan(text, NOW, asked).calls if "Anna" in str(args)]
    assert plan("tomorrow at 7", NOW, asked).calls
