"""Everyday commands in three languages: caught with their arguments, carried out through the engine, answered
in the language of the request; follow-ups; what only looks like one."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.engine.reader import Past
from exo.tools.assistant.offer import asks
from exo.tools.assistant.rules import about_person, plan
from exo.tools.clock import FakeClock

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday
Run = Callable[..., Any]


def device(action: str, **data: int) -> tuple[str, dict[str, Any]]:
    return "device", {"action": action, **data}


def remind(at: str, text: str, repeat: str = "") -> tuple[str, dict[str, Any]]:
    return "reminder", {"at": at, "text": text} | ({"repeat": repeat} if repeat else {})


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("remind me at half past six tomorrow to feed the cat", remind("2026-12-01T06:30", "feed the cat")),
        ("every weekday at 7 remind me to take my pills", remind("2026-12-01T07:00", "take my pills", "weekdays")),
        ("don't let me forget the train at ten past five", remind("2026-11-30T17:10", "the train")),
        ("wake me at 7", remind("2026-12-01T07:00", "alarm")),
        ("set an alarm for 6:30 tomorrow morning", remind("2026-12-01T06:30", "alarm")),
        ("ring in two hours", ("timer", {"seconds": 7200})),
        ("set a pasta timer for 10 minutes", ("timer", {"seconds": 600, "label": "pasta"})),
        ("add five minutes to the timer", ("add_time", {"seconds": 300})),
        ("cancel the tea timer", ("cancel", {"label": "tea", "what": "timer"})),
        ("cancel all reminders", ("cancel", {"which": "all", "what": "reminder"})),
        ("what timers do I have?", ("timers", {"what": "timer"})),
        ("how long is left on the timer?", ("timers", {"what": "timer"})),
        ("louder", device("volume", delta=10)),
        ("turn the volume down a bit", device("volume", delta=-10)),
        ("set the volume to 7", device("volume", value=70)),
        ("volume forty percent please", device("volume", value=40)),
        ("full brightness", device("brightness", value=100)),
        ("mute", device("mute", value=1)),
        ("go to sleep", device("sleep")),
        ("how much battery is left?", device("battery")),
        ("undo that", ("undo", {})),
        ("stop", ("stop", {})),
        ("say that again", ("repeat", {})),
        ("what did I say about the boiler?", ("recall", {"query": "the boiler"})),
        ("forget my sister's name", ("forget", {"id": "my sister's name"})),
        ("Erinnere mich am Freitag um viertel vor acht daran, Mama anzurufen", remind("2026-12-04T07:45", "Mama anrufen")),
        ("in einer Dreiviertelstunde an die Wäsche erinnern", remind("2026-11-30T15:45:00+00:00", "die Wäsche")),
        ("Stell den Wecker auf halb sieben", remind("2026-12-01T06:30", "Wecker")),
        ("Lösche den Timer", ("cancel", {"what": "timer"})),
        ("Wie lange läuft der Timer noch?", ("timers", {"what": "timer"})),
        ("mach mal leiser", device("volume", delta=-10)),
        ("Lautstärke auf sechzig Prozent", device("volume", value=60)),
        ("Wiederhol das bitte noch mal", ("repeat", {})),
        ("Wie voll ist der Akku?", device("battery")),
        ("recuérdame a las seis y media comprar pan", remind("2026-11-30T18:30", "comprar pan")),
        ("pon un temporizador de diez minutos", ("timer", {"seconds": 600})),
        ("sube el volumen", device("volume", delta=10)),
        ("repítelo, por favor", ("repeat", {})),
        ("cancela el temporizador", ("cancel", {"what": "timer"})),
        ("¿qué hora es?", ("time", {})),
    ],
)  # fmt: skip
def test_commands_are_caught(said: str, call: tuple[str, dict[str, Any]]) -> None:
    assert plan(said, NOW).calls == [call]


@pytest.mark.parametrize(
    "said",
    [
        "stop the car", "the battery of my phone is flat", "what is a battery made of?", "volume of a sphere",
        "I could not sleep", "how do I cancel a subscription?", "forget it", "I forget names", "remind me why we left",
        "he told me to remind him at six", "tell me a story about midnight", "tell me about the weather tomorrow",
        "repeat after me: hello", "louder than a bomb is an album", "at six the fox came again", "good night",
        "undo is a word", "what is the brightness of the sun?", "the alarm at the factory went off at five",
        "der Akku vom Rad ist leer", "Ich schlafe schlecht", "mach das Licht heller", "Was ist eine Erinnerung?",
        "Um sieben kam der Bus", "la batería de mi hermano suena", "¿qué es el volumen?", "buenas noches",
        "remind me every other day to water the plants", "set a timer for 5 minutes and tell me a joke",
    ],
)  # fmt: skip
def test_what_looks_like_a_command_is_left_alone(said: str) -> None:
    found = plan(said, NOW)
    assert not found.calls and (not found.said or found.kind == "chat")


@pytest.mark.parametrize(
    ("before", "calls", "said", "then"),
    [
        ("x", [("timer", {"seconds": 600})], "no, make it twenty", [("cancel", {"what": "timer", "which": "last"}), ("timer", {"seconds": 1200})]),
        ("x", [("timer", {"seconds": 300, "label": "tea"})], "make it ten minutes", [("cancel", {"what": "timer", "which": "last"}), ("timer", {"seconds": 600, "label": "tea"})]),
        ("x", [remind("2026-12-01T09:00", "call")], "no, at 8", [("cancel", {"what": "reminder", "which": "last"}), remind("2026-12-01T08:00", "call")]),
        ("x", [remind("2026-11-30T19:00", "call")], "no, tomorrow", [("cancel", {"what": "reminder", "which": "last"}), remind("2026-12-01T19:00", "call")]),
        ("x", [remind("2026-12-01T08:00", "Bad")], "nein, lieber um neun", [("cancel", {"what": "reminder", "which": "last"}), remind("2026-12-01T09:00", "Bad")]),
        ("x", [remind("2026-12-01T08:00", "pan")], "no, mejor a las nueve", [("cancel", {"what": "reminder", "which": "last"}), remind("2026-12-01T09:00", "pan")]),
        ("x", [("timer", {"seconds": 300})], "cancel that", [("cancel", {"what": "timer", "which": "last"})]),
        ("x", [("timer", {"seconds": 300})], "and another for 10 minutes", [("timer", {"seconds": 600})]),
        ("what do you know about my sister?", [("recall", {"query": "my sister"})], "and my brother?", [("recall", {"query": "my brother"})]),
        ("x", [("timer", {"seconds": 300})], "thanks", []),
        ("x", [], "make it ten minutes", []),
    ],
)  # fmt: skip
def test_what_goes_on_from_the_turn_before(
    before: str, calls: list[Any], said: str, then: list[Any]
) -> None:
    assert plan(said, NOW, Past(before, calls, "done")).calls == then


@pytest.mark.parametrize(
    ("before", "said", "meant"),
    [
        ("What is the capital of France?", "and Italy?", "What is the capital of Italy?"),
        ("What is my sister's name?", "and my brother's?", "What is my brother's name?"),
        ("When is my dentist appointment?", "and the haircut?", "When is the haircut?"),
        ("Wie heißt die Hauptstadt von Frankreich?", "und von Italien?", "Wie heißt die Hauptstadt von Italien?"),
        ("hello", "and you?", ""),
    ],
)  # fmt: skip
def test_a_question_is_asked_again_of_something_else(before: str, said: str, meant: str) -> None:
    assert plan(said, NOW, Past(before)).query == meant


def test_an_open_question_and_a_list_are_answered_by_what_comes_next() -> None:
    asked = plan("set a timer for the pasta", NOW)
    assert asked.said == "For how long?" and asks(asked)
    past = Past("set a timer for the pasta", asked.calls, asked.said)
    assert plan("ten minutes", NOW, past).calls == [("timer", {"seconds": 600, "label": "pasta"})]
    lines = "Which one do you mean?\n1. tea\n2. pasta"
    past = Past("cancel the timer", [("cancel", {"what": "timer"})], lines)
    assert plan("the second one", NOW, past).calls == [("cancel", {"what": "timer", "number": 2})]
    assert plan("the fifth one", NOW, past).calls == []
    past = Past("forget it", [("forget", {"id": "it"})], "Which?\n[aaaaaa] one\n[bbbbbb] two")
    assert plan("the last one", NOW, past).calls == [("forget", {"id": "bbbbbb"})]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("what is my sister's name?", "en"),
        ("where did I put the key", "en"),
        ("Wann habe ich Geburtstag?", "de"),
        ("¿dónde dejé mi llave?", "es"),
        ("how can I improve my sleep?", ""),
        ("what should I cook?", ""),
        ("what is the capital of France?", ""),
        ("my sister is nice", ""),
    ],
)
def test_questions_about_the_person_are_told_from_others(text: str, name: str) -> None:
    assert about_person(text) == name


# ---- through the engine --------------------------------------------------------------------------


async def ask(bench: Any, session: str, text: str) -> str:
    end = await bench.ask(session, text)
    assert end["stop_reason"] == "end" and not end["model_called"]
    return str((await bench.messages(session))[-1]["text"])


def test_commands_are_carried_out_and_answered_in_the_language_of_the_request(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        said = await ask(bench, session, "Stell einen Timer auf 5 Minuten für den Tee")
        assert said == "Timer für Tee gestellt: 5 Minuten, bis 15:05:00 Uhr."
        said = await ask(bench, session, "recuérdame mañana a las ocho llamar a Ana")
        want = "Recordatorio para el martes, 1 de diciembre de 2026, 08:00 (UTC): llamar a Ana"
        assert said == want
        lines = (await ask(bench, session, "what is set?")).splitlines()
        assert lines[0] == "2 set:" and lines[1] == "1. Tee: 5 minutes left"
        await ask(bench, session, "add five minutes to the timer")
        [timer, reminder] = bench.timers.pending()
        assert timer.due - bench.clock.now_ms() == 600_000
        assert await ask(bench, session, "lösche die Erinnerung") == "Gelöscht: llamar a Ana."
        assert bench.timers.pending() == [timer]
        assert await ask(bench, session, "cancel the reminder") == "There is none to cancel."
        await ask(bench, session, "set a timer for 1 hour")
        asked = await ask(bench, session, "cancel the timer")
        assert asked.startswith("Which one do you mean?\n1. Tee")
        assert await ask(bench, session, "the second one") == "Cancelled: timer."
        assert [each.label for each in bench.timers.pending()] == ["Tee"]

    run(test, clock=FakeClock(round(NOW.timestamp() * 1000)))


def test_what_has_rung_is_not_taken_back_and_nothing_else_is(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await ask(bench, session, "set a timer for an hour")
        await ask(bench, session, "set a timer for five minutes")
        said = await ask(bench, session, "make it ten minutes")
        assert said.splitlines()[0] == "Cancelled: timer."
        [soon, late] = bench.timers.pending()
        bench.timers.cancel([soon.id])  # it has rung
        said = await ask(bench, session, "make it twenty minutes")
        assert said.splitlines()[0] == "There is none to cancel."
        assert late in bench.timers.pending()
        [new] = [each for each in bench.timers.pending() if each != late]
        assert new.due - bench.clock.now_ms() == 1_200_000
        bench.timers.cancel([new.id])
        assert await ask(bench, session, "cancel that") == "There is none to cancel."
        assert bench.timers.pending() == [late]

    run(test, clock=FakeClock(round(NOW.timestamp() * 1000)))


def test_the_device_is_told_what_only_it_can_do(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert await ask(bench, session, "louder") == "Louder."
        assert await ask(bench, session, "Lautstärke auf 30 Prozent") == "Lautstärke: 30"
        assert await ask(bench, session, "unmute") == "Sound is on."
        await ask(bench, session, "battery")
        told = [event["body"] for event in bench.events("ui.panel")]
        assert {(each["panel"], each["kind"]) for each in told} == {("device", "command")}
        assert [(each["action"], each["data"]) for each in told] == [
            ("volume", {"delta": 10}),
            ("volume", {"value": 30}),
            ("mute", {"value": 0}),
            ("battery", {}),
        ]
        tools = {row["name"] for row in (await bench.call("tools.list"))["tools"]}
        assert not tools & {"device", "undo", "cancel", "timers"}  # no model is shown them

    run(test)


def test_undo_takes_the_turn_before_back_and_what_it_set(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert await ask(bench, session, "undo") == "There is nothing to undo."
        await ask(bench, session, "what time is it")
        await ask(bench, session, "set a timer for 5 minutes")
        assert await ask(bench, session, "undo that") == "Undone: set a timer for 5 minutes"
        assert bench.timers.pending() == []
        texts = [m["text"] for m in await bench.messages(session) if m["role"] == "user"]
        assert texts == ["undo", "what time is it", "undo that"]
        last = (await bench.messages(session))[-1]["text"]
        assert await ask(bench, session, "repeat that") == last

    run(test)


def test_stop_ends_the_turn_that_runs(run: Run, gate: Any) -> None:
    wait = gate()

    async def test(bench: Any) -> None:
        session = await bench.session()
        turn = await bench.send(session, "tell me a long story")
        await wait.reached.wait()
        stop = await bench.send(session, "stop")
        assert (await bench.end_of(turn))["stop_reason"] == "interrupted"
        assert (await bench.end_of(stop))["stop_reason"] == "end"
        assert (await bench.messages(session))[-1]["text"] == "Stopped."

    run(test, ["Once", wait])
