"""Rules: what needs no language model is caught with its arguments, and nothing else is."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from exo.core.engine.reader import Plan
from exo.tools.assistant import rules
from exo.tools.assistant.offer import asks
from exo.tools.assistant.tools import duration
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday


def plan(text: str) -> Plan:
    return rules.plan(text, NOW)


TIME: tuple[str, dict[str, Any]] = ("time", {})


def remind(at: str, text: str) -> tuple[str, dict[str, Any]]:
    return "reminder", {"at": at, "text": text}


def timer(seconds: float, label: str = "") -> tuple[str, dict[str, Any]]:
    return ("timer", {"seconds": seconds, "label": label} if label else {"seconds": seconds})


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("What time is it?", TIME),
        ("what's the time", TIME),
        ("What is the time now?", TIME),
        ("hey exo, what time is it please?", TIME),
        ("Tell me the time.", TIME),
        ("what day is it today", TIME),
        ("What’s today’s date?", TIME),
        ("Wie spät ist es?", TIME),
        ("Wie viel Uhr ist es jetzt?", TIME),
        ("Welcher Tag ist heute?", TIME),
        ("Set a timer for 5 minutes", timer(300)),
        (
            "remind me in 20 minutes to check the oven",
            remind("2026-11-30T15:20:00+00:00", "check the oven"),
        ),
        ("Remind me to call mum tomorrow at 8.", remind("2026-12-01T08:00", "call mum")),
        ("remind me at 6 p.m. to leave", remind("2026-11-30T18:00", "leave")),
        ("remind me in half an hour to stretch", remind("2026-11-30T15:30:00+00:00", "stretch")),
        ("remind me in 30 seconds to look up", timer(30, "look up")),
        (
            "erinnere mich in 20 Minuten an den Ofen",
            remind("2026-11-30T15:20:00+00:00", "den Ofen"),
        ),
        ("set a timer for five minutes", timer(300)),
        ("set a 10 minute timer", timer(600)),
        ("Set a ten-minute timer, ", timer(600)),
        ("start a timer of 90 seconds", timer(90)),
        ("timer 30 s", timer(30)),
        ("set a timer for a half hour", timer(1800)),
        ("Timer auf eine halbe Stunde", timer(1800)),
        ("please set a timer for an hour and a half", timer(5400)),
        ("set a timer for half an hour", timer(1800)),
        ("set a timer for 1 hour and 30 minutes", timer(5400)),
        ("set a timer for 2.5 minutes", timer(150)),
        ("set a timer for twenty-five minutes", timer(1500)),
        ("set a timer for 5 minutes called tea", timer(300, "tea")),
        ("set a timer for 10 minutes for the pasta", timer(600, "pasta")),
        ("Stelle einen Timer auf 5 Minuten", timer(300)),
        ("stell einen Timer für zehn Minuten", timer(600)),
        ("Timer auf eine Stunde", timer(3600)),
        ("Bitte stelle einen Timer auf 2,5 Minuten", timer(150)),
        ("Note: buy milk", ("note", {"text": "buy milk"})),
        ("note that the door is open", ("note", {"text": "the door is open"})),
        ("Take a note: call mum", ("note", {"text": "call mum"})),
        ("make a note to water the plants", ("note", {"text": "water the plants"})),
        ("write down that the code is 12", ("note", {"text": "the code is 12"})),
        ("Notiz: Milch kaufen", ("note", {"text": "Milch kaufen"})),
        ("notiere dir: Müll rausbringen", ("note", {"text": "Müll rausbringen"})),
        ("read the file list.txt", ("read_file", {"path": "list.txt"})),
        ('show me the file "my list.txt"', ("read_file", {"path": "my list.txt"})),
        ("lies die Datei einkauf.md", ("read_file", {"path": "einkauf.md"})),
    ],
)
def test_commands_are_caught_with_their_arguments(
    said: str, call: tuple[str, dict[str, Any]]
) -> None:
    assert plan(said).calls == [call]


@pytest.mark.parametrize(
    "said",
    [
        "what time is it in Tokyo?",
        "What time does the train leave?",
        "what was the time of the accident",
        "time flies",
        "the time machine is a book",
        "how does a timer work?",
        "how long is the timer still running",
        "what is a timer for?",
        "I bought an egg timer for 5 euros",
        "my timer rang 5 minutes ago",
        "the timer for 5 minutes was wrong",
        "set a timer for 0 seconds",
        "set a timer for " + "9" * 350 + " minutes",
        "notebooks are useful",
        "noteworthy that it rained",
        "play a note",
        "what is a footnote",
        "read me a story",
        "I read the file yesterday",
        "show me a picture",
        "wie spät war es gestern",
        "wie funktioniert ein Timer?",
        "der Timer von 5 Minuten war falsch",
        "wann ist Notizblock ein Wort",
        "hello",
        "",
        "?",
    ],
)
def test_what_only_looks_like_a_command_is_left_to_the_model(said: str) -> None:
    assert plan(said).calls == []


@pytest.mark.parametrize("said", ["set a timer", "set a timer for the pasta"])
def test_a_timer_without_its_span_is_asked_about(said: str) -> None:
    found = plan(said)
    assert asks(found) and found.said == "For how long?"


def test_questions_are_told_from_talk() -> None:
    assert plan("why is the sky blue").kind == plan("Warum ist der Himmel blau?").kind == "question"
    assert plan("you are nice").kind == "chat"
    assert plan("Note: is it late?").kind == "note"


def test_long_text_is_never_a_command() -> None:
    assert plan("Note: " + "word " * 200).calls == []


words = st.sampled_from(
    [
        "set",
        "a",
        "an",
        "timer",
        "for",
        "five",
        "5",
        "0",
        "99999999999",
        "minute",
        "minutes",
        "hour",
        "and",
        "half",
        "note",
        "that",
        "read",
        "the",
        "file",
        "what",
        "time",
        "is",
        "it",
        "stelle",
        "einen",
        "auf",
        "Stunde",
        "und",
        "eine",
        ",",
        ".",
        ":",
        "?",
        "-",
        "call",
        "mum",
        "٣",
        "²",
        "1.5",
        "1,5",
        '"',
        "\u200b",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(words, max_size=14).map(" ".join) | st.text(max_size=80))
def test_rules_never_fail_and_give_arguments_that_the_tools_take(said: str) -> None:
    found = plan(said)
    assert found == plan(said)
    for name, args in found.calls:
        if name == "timer":
            assert args["seconds"] >= 1 and duration(args["seconds"])
        else:
            assert all(value != "" for value in args.values())


def test_durations_in_words() -> None:
    assert duration(1) == "1 second" and duration(90) == "1 minute 30 seconds"
    assert duration(86400 * 2 + 3600) == "2 days 1 hour" and duration(0.2) == "0 seconds"


@pytest.mark.parametrize(
    ("text", "tool", "said"),
    [
        ("Remember that my sister is called Zelmira", "remember", "My sister is called Zelmira"),
        ("please remember: the shed's code is 4711", "remember", "The shed's code is 4711"),
        ("merk dir, dass ich Tee mag", "remember", "Ich mag Tee"),
        ("what do you know about my sister?", "recall", "my sister"),
        ("Was weißt du über meine Schwester?", "recall", "meine Schwester"),
        ("do you remember my name?", "", ""),
        ("remember to buy milk", "", ""),
        ("remember when we met", "", ""),
        ("remember my sister lives in Rome?", "", ""),
    ],
)
def test_what_is_to_be_remembered_and_what_is_known(text: str, tool: str, said: str) -> None:
    calls = plan(text).calls
    assert calls == ([(tool, {"text" if tool == "remember" else "query": said})] if tool else [])


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("how do I make scrambled eggs?", ""),
        ("How do I get to the station?", ""),
        ("How do I take my coffee?", "en"),
        ("how do I like my eggs?", "en"),
    ],
)
def test_how_to_do_something_is_advice_and_not_about_the_person(said: str, about: str) -> None:
    assert rules.about_person(said) == about


def test_again_after_a_turn_that_failed_says_the_last_answer(run: Any) -> None:
    from exo.core.base.errors import ModelError

    async def talk(bench: Any) -> None:
        session = await bench.session()
        assert (await bench.ask(session, "again"))["stop_reason"] == "end"
        assert (await bench.messages(session))[-1]["text"] == "I have not said anything yet."
        await bench.ask(session, "tell me of the sea")
        for _ in range(2):
            assert (await bench.ask(session, "tell me more"))["stop_reason"] == "error"
        await bench.ask(session, "say that again")
        assert (await bench.messages(session))[-1]["text"] == "It is wide."
        # what is taken back is the turn before all the same
        await bench.ask(session, "tell me even more")
        await bench.ask(session, "undo")
        assert (await bench.messages(session))[-1]["text"] == "Undone: tell me even more"

    broken = ModelError("ask", "it died")
    run(talk, ["It is wide."], [broken], [broken], [broken])


@pytest.mark.parametrize(
    "said",
    [
        "timer for one hundred and twenty minutes",
        "timer for five or ten minutes",
        "timer for 5-10 minutes",
        "timer for minus five minutes",
        "timer for 3 half hours",
        "Timer für fünf oder zehn Minuten",
        "remind me tonight at 2 to sleep",
        "Erinnere mich heute Nacht um 2 ans Fenster",
        "Erinnere mich um 20 15 ans Essen",
        "Erinnere mich jeden ersten Montag im Monat an die Miete",
        "recuérdame a las doce del mediodía comer",
        "recuérdame comer a las 7 u 8",
        "recuérdame los días 15 de cada mes pagar",
        "remind me at 9 yesterday to mow",
        "remind me last friday at 9 to mow",
        "remind me the day before christmas at 9 to mow",
        "remind me on easter at 9 to mow",
        "remind me on good friday at 9 to mow",
        "remind me on Tom's birthday at 9 to call him",
        "Erinnere mich am Tag vor Weihnachten um 9 an den Baum",
        "Erinnere mich an Karfreitag um 9 an den Fisch",
        "Erinnere mich an Omas Geburtstag um 9 anzurufen",
        "recuérdame después de Navidad a las 9 llamar",
        "recuérdame el viernes santo a las 9 llamar",
        "remind me at half past noon to eat",
        "remind me every two hours from 9 to drink",
        "remind me every two days at 9 to drink",
        "remind me every 20 seconds to blink",
        "Erinnere mich alle zwei Stunden von 9 bis 17 Uhr ans Trinken",
        "remind me at five past to mow",
        "remind me at nineteen eighty four to read",
    ],
)
def test_a_time_that_is_half_understood_is_none(said: str) -> None:
    assert not {tool for tool, _ in plan(said).calls} & {"timer", "reminder"}


@pytest.mark.parametrize("said", ["timer for 1,000 seconds", "Timer 1.000 Sekunden"])
def test_a_mark_of_thousands_is_no_decimal_point(said: str) -> None:
    assert plan(said).calls == [("timer", {"seconds": 1000})]


def test_a_number_of_four_digits_is_no_clock_and_the_weekend_is_one() -> None:
    args = {"at": "2026-12-01T09:00", "text": "pay bill 1815"}
    assert plan("remind me to pay bill 1815 tomorrow").calls == [("reminder", args)]
    args = {"at": "2026-12-05T09:00", "text": "mow"}
    assert plan("remind me at the weekend to mow").calls == [("reminder", args)]
