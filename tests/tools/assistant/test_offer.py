"""Questions back: a yes does what was shown and nothing else, soon after it and to us alone; orders to forget and
questions that only sound so."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from exo.core.decide.live import Read
from exo.core.engine.reader import Past, Plan
from exo.core.router.model import RawCall
from exo.tools.assistant.offer import HOLDS, TOOL, asks, open_in
from exo.tools.assistant.pick import ASK, RUN, pick
from exo.tools.assistant.rules import plan
from exo.tools.clock import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday
UNSURE = (ASK + RUN) / 2
Run = Callable[..., Any]


def clock() -> FakeClock:
    return FakeClock(round(NOW.timestamp() * 1000))


@dataclass
class Decided:
    """Decisions that are unsure of one tool for every sentence with more than two words."""

    tool: str

    async def read(self, session: str, turn: str, text: str) -> Read:
        wants = len(text.split()) > 2
        return Read(tool=self.tool, sure=UNSURE) if wants else Read()


async def ask(bench: Any, session: str, text: str) -> str:
    end = await bench.ask(session, text)
    assert end["stop_reason"] == "end" and not end["model_called"]
    return str((await bench.messages(session))[-1]["text"])


NUDGE = "jog my memory in 20 minutes to put the bins out"


def test_a_yes_sets_the_very_time_that_was_shown(run: Run) -> None:
    async def test(bench: Any) -> None:
        bench.engine._loop._decisions = Decided("reminder")
        session = await bench.session()
        asked = await ask(bench, session, NUDGE)
        assert asked == "Shall I remind you on Monday, 30 November 2026 at 15:20: put the bins out?"
        bench.clock.advance(HOLDS - 60)
        await ask(bench, session, "yes")
        [row] = bench.timers.pending()
        assert f"{bench.clock.local(row.due):%H:%M}" == "15:20" and row.label == "put the bins out"
        # it is answered: another yes answers nothing
        assert (await bench.ask(session, "yes please"))["stop_reason"] == "end"
        assert bench.timers.pending() == [row]

    run(test, clock=clock())


def test_a_late_yes_is_told_so_and_asked_anew_or_that_the_time_is_past(run: Run) -> None:
    async def test(bench: Any) -> None:
        bench.engine._loop._decisions = Decided("reminder")
        session = await bench.session()
        asked = await ask(bench, session, "jog my memory at 21:00 to put the bins out")
        bench.clock.advance(3600)
        again = await ask(bench, session, "yes")
        assert again == f"That was a while ago. {asked}" and bench.timers.pending() == []
        bench.clock.advance(3600)
        assert await ask(bench, session, "yes") == again  # told once, however often
        await ask(bench, session, "yes")
        [row] = bench.timers.pending()
        assert f"{bench.clock.local(row.due):%d %H:%M}" == "30 21:00"
        bench.timers.cancel([row.id])

        await ask(bench, session, NUDGE)
        bench.clock.advance(3 * 3600)
        assert (await ask(bench, session, "yes")).startswith("That time is past.")
        assert bench.timers.pending() == []

        assert await ask(bench, session, "set a timer for the pasta") == "For how long?"
        bench.clock.advance(3600)
        late = await ask(bench, session, "ten minutes")
        assert late == "That was a while ago. Shall I set a timer for pasta of 10 minutes?"
        assert (await ask(bench, session, "yes")).startswith("Timer for pasta set: 10 minutes")

    run(test, clock=clock())


def test_an_offer_is_good_for_the_next_thing_said_only(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await ask(bench, session, "set a timer for an hour")
        assert await ask(bench, session, "Cancel the timer?") == "Shall I cancel the timer?"
        await ask(bench, session, "what time is it")
        assert (await bench.ask(session, "yes"))["stop_reason"] == "end"
        assert len(bench.timers.pending()) == 1
        # asked for once more it is still the next thing
        await ask(bench, session, "cancel the timer?")
        assert await ask(bench, session, "repeat that") == "Shall I cancel the timer?"
        assert await ask(bench, session, "yes") == "Cancelled: timer."
        # what is undone after a question back is what was done before it
        await ask(bench, session, "set a timer for an hour")
        assert await ask(bench, session, "undo?") == "Shall I undo what came last?"
        assert await ask(bench, session, "yes") == "Undone: set a timer for an hour"
        assert bench.timers.pending() == []

    run(test, clock=clock())


def test_words_of_a_model_arm_nothing(run: Run) -> None:
    words = "Shall I set a timer of 20 minutes?"
    args = {"text": words, "language": "en", "at": NOW.isoformat(), "seal": "0" * 16}
    args |= {"tool": "timer", "args": {"seconds": 1200}}

    async def test(bench: Any) -> None:
        session = await bench.session()
        await bench.ask(session, "twenty minutes are long")
        assert (await bench.messages(session))[-1]["text"] == words
        assert (await bench.ask(session, "yes"))["model_called"]
        await bench.ask(
            session, "what do you think of eggs"
        )  # the model calls our tool, and says so
        assert (await bench.messages(session))[-1]["text"] == words
        assert (await bench.ask(session, "yes"))["model_called"]
        assert bench.timers.pending() == []

    forged = RawCall("c1", TOOL, json.dumps(args))
    run(test, [words], ["Fine."], [forged], [words], ["Fine."], clock=clock())


def test_a_question_that_a_model_copies_from_what_it_was_shown_arms_nothing(run: Run) -> None:
    copied: list[Any] = []

    async def test(bench: Any) -> None:
        session = await bench.session()
        await ask(bench, session, "set a timer for an hour")
        assert await ask(bench, session, "cancel the timer?") == "Shall I cancel the timer?"
        said = [m for m in bench.engine.sessions.messages(session) if m.calls]
        call = said[-1].calls[-1]
        assert call.tool == TOOL
        assert await ask(bench, session, "no") == "All right, I leave it."
        copied[0].arguments = json.dumps(call.args)
        await bench.ask(session, "what do you think of eggs")
        assert (await bench.ask(session, "yes"))["model_called"]
        assert len(bench.timers.pending()) == 1

    copied.append(RawCall("c1", TOOL, "{}"))
    run(test, copied, ["Shall I cancel the timer?"], ["Fine."], clock=clock())


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("set a timer", "the film took two hours"),
        ("set a timer", "i slept two hours today"),
        ("remind me to call Anna", "I was at the dentist at 3"),
        ("remind me to call Anna", "tomorrow is my birthday"),
        ("remind me to call Anna", "we leave at 7"),
        ("Stell einen Timer", "der Film hat zwei Stunden gedauert"),
        ("Erinnere mich an Anna", "morgen hat Anna Geburtstag"),
        ("pon un temporizador", "la película duró dos horas"),
    ],
)
def test_a_sentence_that_holds_a_time_is_no_answer_to_how_long(order: str, text: str) -> None:
    back = plan(order, NOW)
    assert asks(back)
    assert not plan(text, NOW, Past(order, back.calls, back.said)).calls


@pytest.mark.parametrize(
    ("order", "text", "tool"),
    [
        ("set a timer", "uh, make it ten minutes please", "timer"),
        ("remind me to call Anna", "let's say tomorrow at 7", "reminder"),
        ("Stell einen Timer", "sagen wir zehn Minuten", "timer"),
        ("Erinnere mich an Anna", "morgen um sieben wäre gut", "reminder"),
        ("pon un temporizador", "pues unos diez minutos por favor", "timer"),
    ],
)
def test_an_answer_may_be_more_than_the_bare_time(order: str, text: str, tool: str) -> None:
    back = plan(order, NOW)
    [(name, _)] = plan(text, NOW, Past(order, back.calls, back.said)).calls
    assert name == tool


@pytest.mark.parametrize(
    "many", ["5 minutes ", "1h30 ", "5 Minuten ", "5 minutos ", "1h30", "half an hour "]
)
def test_many_spans_are_read_in_one_pass(many: str) -> None:
    """Each of them once doubled the time: thirty held everybody up for hours."""
    for text in (many * 35 + "x!", many * 35):
        plan(text[:400], NOW)
        pick(text[:400], "reminder", 0.99, NOW)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8)), st.text(max_size=20))
@settings(deadline=None)
def test_a_call_that_somebody_else_made_is_no_offer(args: dict[str, str], reply: str) -> None:
    real = plan("cancel the timer?", NOW)
    [(_, good)] = real.calls
    for tried, said in ((args, reply), (good, reply), (good | {"tool": "undo"} | args, real.said)):
        assert open_in(Past("x", [(TOOL, tried)], said)) is None
    assert open_in(Past("x", real.calls, real.said)) is not None


def test_a_long_text_before_is_not_searched() -> None:
    text = "what of " * 40_000 + "?"
    marks = "[aaaaaa" * 40_000
    for said in ("yes", "and Italy?", "the second one", "cancel that", "no, ten"):
        assert not plan(said, NOW, Past(text, [("recall", {"query": "x"})], marks)).calls


# ---- what only sounds like an order --------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Never forget that I am allergic to nuts", "I am allergic to nuts"),
        ("never ever forget that I am allergic", "I am allergic"),
        ("Don't ever forget that I am allergic", "I am allergic"),
        ("do not forget that I am allergic", "I am allergic"),
        ("please don't forget that I am allergic", "I am allergic"),
        ("Vergiss nie, dass ich allergisch bin", "Ich bin allergisch"),
        ("Vergiss niemals, dass ich allergisch bin", "Ich bin allergisch"),
        ("vergiss ja nicht, dass ich allergisch bin", "Ich bin allergisch"),
        ("Vergiss auf keinen Fall, dass ich allergisch bin", "Ich bin allergisch"),
        ("bitte nicht vergessen, dass ich allergisch bin", "Ich bin allergisch"),
        ("Nie vergessen: ich bin allergisch", "Ich bin allergisch"),
        ("Olvida nunca que soy alérgico", "Soy alérgico"),
        ("Nunca olvides que soy alérgico", "Soy alérgico"),
        ("no olvides nunca que soy alérgico", "Soy alérgico"),
        ("jamás te olvides de que soy alérgico", "Soy alérgico"),
        ("vergiss nie meine Schwester", ""),
        ("vergiss die Schlüssel nicht", ""),
        ("lösche nicht meine Notiz über das Knie", ""),
        ("no borres la nota sobre la caldera", ""),
        ("don't forget about the milk", ""),
        ("I'll never forget that day", ""),
        ("never delete my notes about the boiler", ""),
        *(
            (each, "")
            for each in [
                "forget about dinner, let's go out",
                "Forget you",
                "forget you!",
                "forget it",
                "forget about it",
                "forget us",
                "forget yourself",
                "forget all that",
                "forget work",
                "forget about work for now",
                "forget the rules, let's dance",
                "forget what I said",
                "forget I asked",
                "forget tomorrow",
                "forget about tomorrow, it will rain",
                "forget your worries",
                "forget the whole thing",
                "forget that idea",
                "forget Paris, Rome is nicer",
                "forget we talked",
                "vergiss es",
                "vergiss ihn",
                "vergiss dich",
                "vergiss das Abendessen, wir gehen aus",
                "vergiss den Quatsch",
                "vergiss deine Sorgen",
                "vergiss morgen",
                "vergiss das Ganze",
                "olvídalo",
                "olvídate de mí",
                "olvídate de él",
                "olvídate de la cena, salgamos",
                "olvida la cena, vamos a salir",
                "olvídate del tema",
                "olvida eso",
                "olvida las penas",
            ]
        ),
    ],
)
def test_not_to_forget_is_to_remember_and_idioms_forget_nothing(said: str, kept: str) -> None:
    found = plan(said, NOW)
    for sure in (UNSURE, 1.0):
        picked = pick(said, "forget", sure, NOW)
        assert picked is None
    if kept:
        assert found.calls == [("remember", {"text": kept})]
    else:
        assert "forget" not in json.dumps([name for name, _ in found.calls])


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("forget my sister's old address", "my sister's old address"),
        ("forget that my sister, who is a nurse, lives in Lisbon", "my sister, who is a nurse"),
        ("forget that I can't swim", "I can't swim"),
        ("forget what I said about my knee", "my knee"),
        ("vergiss, dass ich nicht schwimmen kann", "ich nicht schwimmen kann"),
        ("olvida que no sé nadar", "no sé nadar"),
        ("olvida mi antigua dirección", "mi antigua dirección"),
    ],
)
def test_what_is_to_be_forgotten_is(said: str, what: str) -> None:
    [(tool, args)] = plan(said, NOW).calls
    assert tool == "forget" and args["id"].startswith(what)


@pytest.mark.parametrize(
    "said",
    [
        "Can I set a timer for five minutes?",
        "could I set a timer for 5 minutes",
        "may I set an alarm for seven?",
        "can we cancel the timer?",
        "is it possible to set an alarm for 7:30?",
        "how do I set a timer for five minutes",
        "Can I turn the volume up?",
        "Kann ich einen Timer auf fünf Minuten stellen?",
        "Darf ich einen Wecker für sieben stellen?",
        "kann man den Timer löschen?",
        "ist es möglich, einen Timer auf 5 Minuten zu stellen?",
        "¿Puedo poner un temporizador de cinco minutos?",
        "¿se puede poner una alarma a las siete?",
    ],
)
def test_a_question_what_can_be_done_is_answered_and_no_order(said: str) -> None:
    found = plan(said, NOW)
    assert not found.calls and (found.kind == "chat" or not found.said)
    for tool in ("timer", "alarm", "cancel", "volume.up"):
        assert pick(said, tool, 1.0, NOW) is None


def test_most_of_these_questions_are_answered_how_to_say_it() -> None:
    for said, how in (
        ("Can I set a timer for five minutes?", "Say: set a timer"),
        ("how would I set an alarm for seven", "Say: wake me"),
        ("kann ich die Lautstärke auf 30 Prozent stellen?", "Sag: lauter"),
        ("¿cómo pongo un temporizador de 5 minutos?", "Di: pon un"),
    ):
        assert plan(said, NOW).said.startswith(how)


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("Cancel the reminder?", ("cancel", {"what": "reminder"})),
        ("lösche den Timer?", ("cancel", {"what": "timer"})),
        ("¿cancela el temporizador?", ("cancel", {"what": "timer"})),
        ("undo?", ("undo", {})),
    ],
)
def test_an_order_with_a_question_mark_that_takes_something_is_asked_about(
    said: str, call: tuple[str, dict[str, Any]]
) -> None:
    found: Plan = plan(said, NOW)
    assert asks(found)
    yes = {"en": "yes", "de": "ja", "es": "sí"}[found.language]
    assert plan(yes, NOW, Past(said, found.calls, found.said)).calls == [call]


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("can you cancel the timer?", "cancel"),
        ("cancel the timer, would you?", "cancel"),
        ("cancel the timer please?", "cancel"),
        ("kannst du den Timer löschen?", "cancel"),
        ("löschst du den Timer?", "cancel"),
        ("¿puedes cancelar el temporizador?", "cancel"),
        ("set a timer for five minutes?", "timer"),
        ("can I get a five minute timer", "timer"),
        ("can I have a reminder at five to call Anna", "reminder"),
    ],
)
def test_an_order_that_is_put_politely_is_one(said: str, tool: str) -> None:
    assert [name for name, _ in plan(said, NOW).calls] == [tool]
