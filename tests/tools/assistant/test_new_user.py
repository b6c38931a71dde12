"""What a person meets in the first hour: what is set, by kind; a clause kept as a sentence; a verdict that can be acted on."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.engine.reader import Past
from exo.tools.assistant.clause import infinitive, main
from exo.tools.assistant.pick import pick
from exo.tools.assistant.rules import plan
from exo.tools.assistant.talk import _TABLE, instead
from exo.tools.assistant.tongue import language
from exo.tools.clock import FakeClock

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday
OUT_OF_SCOPE = {_TABLE[name]["instead"]["out_of_scope"] for name in ("en", "de", "es")}
Run = Callable[..., Any]


def clock() -> FakeClock:
    return FakeClock(round(NOW.timestamp() * 1000))


async def ask(bench: Any, session: str, text: str) -> str:
    end = await bench.ask(session, text)
    assert end["stop_reason"] == "end" and not end["model_called"], text
    return str((await bench.messages(session))[-1]["text"])


def test_what_is_asked_for_is_listed_and_the_timer_can_be_set_anew_after_it(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        assert await ask(bench, session, "how long is left?") == "No timer is running."
        assert (
            await ask(bench, session, "meine Erinnerungen") == "Es ist keine Erinnerung gestellt."
        )
        await ask(bench, session, "remind me at six to call Anna")
        await ask(bench, session, "set a timer for ten minutes for the tea")
        for said in ("how long is left?", "wie lange noch?", "¿cuánto queda?", "my timers"):
            lines = (await ask(bench, session, said)).splitlines()
            assert len(lines) == 2 and lines[1].startswith("1. tea: ")
        for said in (
            "my reminders",
            "what reminders do I have",
            "welche Erinnerungen habe ich?",
            "mis recordatorios",
            "¿qué recordatorios tengo?",
        ):
            lines = (await ask(bench, session, said)).splitlines()
            assert len(lines) == 2 and lines[1].startswith("1. call Anna: ")
        assert len((await ask(bench, session, "what is set?")).splitlines()) == 3

        bench.clock.advance(571)  # 29 seconds are left, it was counted in minutes
        await ask(bench, session, "how long is left?")
        assert "20 minutes" in await ask(bench, session, "make it twenty")
        [timer, _] = bench.timers.pending()
        assert timer.due - bench.clock.now_ms() == 1_200_000 and timer.label == "tea"
        await ask(bench, session, "wie lange noch?")
        assert "1 Stunde" in await ask(bench, session, "nein, lieber eine Stunde")

    run(test, clock=clock())


# said behind "dass" | as a sentence, "" where that is not sure
CLAUSES = """
mein Fahrrad im Keller steht | mein Fahrrad steht im Keller
mein altes Fahrrad im Keller steht | mein altes Fahrrad steht im Keller
ich gegen Nüsse allergisch bin | ich bin gegen Nüsse allergisch
meine Schwester in Lissabon wohnt | meine Schwester wohnt in Lissabon
der Bruder von Anna in Köln wohnt | der Bruder von Anna wohnt in Köln
Anna und Ben in Köln wohnen | Anna und Ben wohnen in Köln
mein Vater gestern operiert wurde | mein Vater wurde gestern operiert
wir freitags schwimmen gehen | wir gehen freitags schwimmen
Anna am 5. Mai Geburtstag hat | Anna hat am 5. Mai Geburtstag
mein Code 4411 ist | mein Code ist 4411
ich mich am Montag mit Anna treffe | ich treffe mich am Montag mit Anna
ich Brot backen kann | ich kann Brot backen
der Kessel leckt | der Kessel leckt
die Schwester meiner Frau in Köln wohnt |
meine Mutter der Nachbarin hilft |
der Zug um acht abfährt |
ich um acht aufstehe |
mir schlecht ist |
sich meine Tür verklemmt |
ich allergisch bin, weil das so ist |
er hat kommen müssen |
mein fahrrad im keller steht |
ich allergisch bin gegen Nüsse |
"""


@pytest.mark.parametrize("row", CLAUSES.strip().splitlines())
def test_a_clause_is_kept_as_a_sentence_or_as_it_was_said(row: str) -> None:
    clause, _, sentence = (each.strip() for each in row.partition("|"))
    assert main(clause, language("de")) == sentence
    kept = sentence or f"dass {clause}"
    kept = kept[:1].upper() + kept[1:]
    assert plan(f"Merk dir, dass {clause}", NOW).calls == [("remember", {"text": kept})]
    # no word is added, none is lost
    assert sorted(kept.lower().replace("dass ", "").split()) == sorted(clause.lower().split())
    assert main(clause, language("en")) == ""


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("erinnere mich morgen um neun, Anna anzurufen", "Anna anrufen"),
        ("erinnere mich um acht daran, den Müll rauszubringen", "den Müll rausbringen"),
        (
            "erinner mich um sechs die Tür abzuschließen und einzukaufen",
            "die Tür abschließen und einkaufen",
        ),
        ("erinnere mich um sechs daran, den Kessel zu prüfen", "den Kessel prüfen"),
        ("erinnere mich um sechs, zu Anna zu gehen", "zu Anna gehen"),
        ("erinnere mich um sechs, das Fenster zuzumachen", "das Fenster zumachen"),
        ("erinnere mich um sechs, dass ich Anna anrufen soll", "Anna anrufen"),
        ("erinnere mich um sechs an den Kuchen", "den Kuchen"),
    ],
)
def test_what_is_to_be_done_is_noted_without_its_zu(said: str, text: str) -> None:
    [(tool, args)] = plan(said, NOW).calls
    assert (tool, args["text"]) == ("reminder", text)


def test_what_only_looks_like_such_an_infinitive_stays() -> None:
    for text in ("etwas zu essen", "den Anzug", "zu Hause", "der Zug zuletzt", "Ausgezogenen"):
        assert infinitive(text, language("de")) == text


@pytest.mark.parametrize("said", ["Merk dir das", "remember that", "recuerda eso", "merk es dir"])
def test_nothing_new_to_remember_is_said_so(said: str) -> None:
    for past in (None, Past("what time is it?", [("time", {})], "It is 15:00")):
        found = plan(said, NOW, past)
        assert found.kind == "chat" and found.said and not found.calls
    assert pick(said, "remember", 0.8, NOW) is None and pick(said, "note", 0.8, NOW) is None


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("play some music", "I cannot do that."),
        ("turn on the lights", "I cannot do that."),
        ("call my mother", "I cannot do that."),
        ("kannst du Musik spielen", "Das kann ich nicht."),
        ("spiel Musik", "Das kann ich nicht."),
        ("ruf Anna an", "Das kann ich nicht."),
        ("pon música", "Eso no puedo hacerlo."),
        ("enciende la luz", "Eso no puedo hacerlo."),
        ("put the thing there", "I did not understand"),
        ("turn off the sound over there", "I did not understand"),
    ],
)
def test_what_other_devices_do_is_not_told_to_be_not_understood(said: str, answer: str) -> None:
    found = instead(said, "command")
    assert found is not None and found.said.startswith(answer)


def test_a_verdict_offers_what_can_be_done_about_it(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await ask(bench, session, "set a timer for ten minutes")
        said = await bench_said(bench, session, "that was wrong")
        assert said.endswith("Shall I undo it?")
        assert await ask(bench, session, "yes") == "Cancelled: timer."
        assert bench.timers.pending() == []

    async def bench_said(bench: Any, session: str, text: str) -> str:
        await bench.ask(session, text)
        return str((await bench.messages(session))[-1]["text"])

    run(test, clock=clock())


@pytest.mark.parametrize(
    ("past", "said", "yes", "call"),
    [
        (
            Past(
                "I set ten", [("timer", {"seconds": 600})], "Timer set: 10 minutes, until 15:10:00."
            ),
            "that was a question",
            "yes",
            ("cancel", {"what": "timer", "which": "last", "until": "15:10:00"}),
        ),
        (
            Past("x", [("remember", {"text": "X"})], "I will remember: X [aaaaaaaa]"),
            "that was just a comment",
            "yes",
            ("forget", {"id": "aaaaaaaa"}),
        ),
        (
            Past("my sister lives where", (), "I heard you."),
            "that was a question",
            "yes",
            ("recall", {"query": "my sister lives where"}),
        ),
        (
            Past("can I set a timer for five minutes?", (), "Say: set a timer"),
            "that was a command",
            "yes please",
            ("timer", {"seconds": 300}),
        ),
        (
            Past("Kann ich den Timer löschen?", (), "Sag: ..."),
            "das war ein Befehl",
            "ja",
            ("cancel", {"what": "timer"}),
        ),
        (
            Past("mi hermana vive en Lisboa", (), "..."),
            "eso era solo un comentario",
            "sí",
            ("remember", {"text": "Mi hermana vive en Lisboa"}),
        ),
    ],
)
def test_what_was_misread_is_tried_as_what_it_was(
    past: Past, said: str, yes: str, call: tuple[str, dict[str, Any]]
) -> None:
    found = plan(said, NOW, past)
    assert [name for name, _ in found.calls] == ["verdict", "ask"]
    answered = Past(said, found.calls, f"Noted.\n{found.calls[1][1]['text']}")
    assert plan(yes, NOW, answered).calls == [call]


def test_where_nothing_can_be_done_a_verdict_is_noted_alone() -> None:
    for past in (
        Past("louder", [("device", {"action": "volume", "delta": 10})], "Louder."),
        Past("why is the sky blue?", (), "It scatters."),
    ):
        for said in ("that was wrong", "that was a command"):
            assert [name for name, _ in plan(said, NOW, past).calls] == ["verdict"]


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("d'you happen to know what time it is", "time"),
        ("which day of the week are we on", "time"),
        ("oye, ¿qué hora tienes?", "time"),
        ("what've I got you reminding me about", "timers"),
        ("reverse what you just did please", "undo"),
        ("stick another five minutes on the timer, it's still raw", "add_time"),
        ("can't hear you over the kettle, speak up a bit", "device"),
        ("1745 today remind me pick up the dry cleaning", "reminder"),
        ("mon to fri, 6.40 in the morning, remind me: packed lunch", "reminder"),
    ],
)
def test_everyday_ways_of_ordering(said: str, tool: str) -> None:
    assert [name for name, _ in plan(said, NOW).calls] == [tool]


@pytest.mark.parametrize(
    "said",
    [
        "which day of the week were we in Rome",
        "reverse what he did to the car",
        "stick another five stamps on the letter, it's still light",
        "1745 people are here today",
        "can't hear the radio, he said",
    ],
)
def test_what_is_near_to_these_is_no_order(said: str) -> None:
    assert not plan(said, NOW).calls


@pytest.mark.parametrize(
    "text, kept",
    [
        ("The code of the shed is 4411, don't forget.", "The code of the shed is 4411"),
        ("tom is allergic to nuts, never forget that", "tom is allergic to nuts"),
        ("das passwort vom gästenetz heißt blaubeere, nicht vergessen", "passwort vom gästenetz"),
        ("Der Schlüssel liegt unter dem Topf. Bitte nie vergessen!", "Schlüssel liegt unter"),
        ("La clave del portal es 4411, no lo olvides.", "clave del portal es 4411"),
        (
            "my aunt Brigitte is allergic to nuts, don't forget",
            "my aunt Brigitte is allergic to nuts",
        ),
        ("Der Code vom Schließfach ist 8822, vergiss das nicht", "Schließfach ist 8822"),
        ("Ana es alérgica a las nueces, nunca lo olvides", "alérgica a las nueces"),
    ],
)
def test_what_is_not_to_be_forgotten_is_remembered(text: str, kept: str) -> None:
    (call,) = plan(text, NOW).calls
    assert call[0] == "remember" and kept.lower() in call[1]["text"].lower()
    assert not re.search("forget|vergess|vergiss|olvid", call[1]["text"])


@pytest.mark.parametrize("text", ["call mum, don't forget", "nicht vergessen", "no lo olvides"])
def test_what_says_no_fact_is_not_kept_as_one(text: str) -> None:
    assert not plan(text, NOW).calls


@pytest.mark.parametrize(
    "text",
    ["alexa set a timer for six minutes", "ok google starte einen timer", "oye siri, más alto"],
)
def test_an_order_to_another_assistant_is_none(text: str) -> None:
    assert not plan(text, NOW).calls
    for tool in ("timer", "volume.up"):
        assert pick(text, tool, 0.99, NOW) is None


def test_a_plain_question_is_no_search() -> None:
    """What is known may answer it; a search lists what was found."""
    for text in ("where is the spare key?", "wie heißt mein Zahnarzt?", "¿qué día es el examen?"):
        assert pick(text, "recall", 0.99, NOW) is None
    for text in ("dig up what i told you of the key", "was hab ich dir vom Zahnarzt erzählt"):
        found = pick(text, "recall", 0.99, NOW)
        assert found and found.calls[0][0] == "recall"


@pytest.mark.parametrize(
    "text",
    [
        "what's the weather tomorrow?",
        "will it rain tomorrow",
        "call mom",
        "send a message to Tom that I am late",
        "Wie wird das Wetter morgen?",
        "Enciende la luz",
        "what time is sunset",
        "wann geht die Sonne unter?",
        "¿a qué hora sale el sol?",
        "¿Cómo está el tráfico? dime el pronóstico",
    ],
)
def test_what_only_the_network_or_another_device_knows_is_not_made_up(text: str) -> None:
    made = instead(text, "")
    assert made and made.said in OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("why does it rain so much in Wales?", "chat"),
        ("tell me a story about snow and a fox", "chat"),
        ("the news made me sad today", ""),
        ("how do clouds make rain", "chat"),
        ("what is snow made of", ""),
        ("book club is on friday", ""),
        ("call me Ishmael", ""),
        ("what are rain boots called in German", ""),
        ("is a score of twenty a good one?", ""),
        ("wie entsteht Regen?", "chat"),
        ("when is dinner", "chat"),
        ("¿cuándo es la fiesta?", "chat"),
    ],
)
def test_what_a_model_may_say_of_the_world_it_says(text: str, kind: str) -> None:
    made = instead(text, kind)
    assert made is None or "cannot" not in made.said and "kann ich nicht" not in made.said


@pytest.mark.parametrize(
    ("said", "text", "every", "again"),
    [
        ("remind me every 45 minutes to stand up", "stand up", 45, "every 45 minutes"),
        ("every 20 minutes remind me to blink", "blink", 20, "every 20 minutes"),
        ("remind me to drink every two hours", "drink", 120, "every 2 hours"),
        ("remind me every half hour to drink", "drink", 30, "every 30 minutes"),
        ("remind me every hour and a half to drink", "drink", 90, "every 1 hour 30 minutes"),
        ("Erinnere mich alle 45 Minuten ans Trinken", "Trinken", 45, "alle 45 Minuten"),
        ("Erinnere mich jede halbe Stunde ans Trinken", "Trinken", 30, "alle 30 Minuten"),
        ("recuérdame cada dos horas beber agua", "beber agua", 120, "cada 2 horas"),
    ],
)
def test_what_comes_again_after_so_many_minutes_rings_as_often(
    run: Run, said: str, text: str, every: int, again: str
) -> None:
    async def test(bench: Any) -> None:
        session, start = await bench.session(), bench.clock.now_ms()
        assert f"{again}: {text}" in await ask(bench, session, said)
        for nth in (1, 2, 3):
            [row] = bench.timers.pending()
            assert (row.due - start, row.repeat) == (nth * every * 60_000, f"every {every}m")
            bench.clock.advance(every * 60)
            await bench.timers.fire()
        rung = [event for event in bench.events("notice") if text in str(event)]
        assert len(rung) == 3
        listed = await ask(bench, session, "what is set?")
        assert text in listed
        await ask(bench, session, "cancel the reminder")
        assert bench.timers.pending() == []

    run(test, clock=clock())


def test_how_often_is_changed_either_way(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        await ask(bench, session, "remind me every 45 minutes to stand up")
        assert "every 30 minutes: stand up" in await ask(bench, session, "no, every half hour")
        assert "daily: stand up" in await ask(bench, session, "make it every day at nine")
        assert "every 2 hours: stand up" in await ask(bench, session, "no, every two hours")
        assert len(bench.timers.pending()) == 1

    run(test, clock=clock())


ASKED = """
what day is it next Sunday | Sunday, 6 December 2026.
how many days until christmas | 25 days until Friday, 25 December 2026.
how long is it until 6 pm | 3 hours until Monday, 30 November 2026, 18:00.
what day is the 24th of december | Thursday, 24 December 2026.
what's the date tomorrow | Tuesday, 1 December 2026.
when is boxing day this year | Saturday, 26 December 2026.
on what day does new year's eve fall | Thursday, 31 December 2026.
how many minutes are in 3 days | 3 days: 4320 minutes.
how many seconds in an hour and a half | an hour and a half: 5400 seconds.
what is 90 minutes in hours | 90 minutes: 1.5 hours.
Wie viele Tage bis Weihnachten? | Noch 25 Tage bis Freitag, 25. Dezember 2026.
auf welchen Wochentag fällt der 24. Dezember | Donnerstag, 24. Dezember 2026.
Wie viele Minuten sind 3 Tage? | 3 Tage: 4320 Minuten.
¿Cuántos días faltan para Navidad? | Faltan 25 días para: viernes, 25 de diciembre de 2026.
¿Qué día es el 24 de diciembre? | jueves, 24 de diciembre de 2026.
cuántos minutos hay en tres días | tres días: 4320 minutos.
how long until the train leaves | -
when is my dentist appointment | -
when is Ana's birthday | -
what day is good for you | -
when is the party on friday | -
how many days are in march | -
how long to boil an egg | -
how many days to go until my holiday | -
"""


@pytest.mark.parametrize("row", ASKED.strip().splitlines())
def test_the_calendar_answers_what_is_wholly_a_day_or_a_span(row: str) -> None:
    said, _, wanted = row.partition(" | ")
    found = plan(said, NOW)
    assert found.calls == [] and found.said == ("" if wanted == "-" else wanted)


def test_an_alarm_is_cancelled_by_its_time_and_all_of_them_without_reminders(run: Run) -> None:
    async def test(bench: Any) -> None:
        session = await bench.session()
        for said in (
            "remind me on boxing day at 8 to call Pat",
            "wake me at half past six",
            "wake me on sunday at 9",
            "remind me tomorrow at 10 to water the plants",
        ):
            await ask(bench, session, said)
        assert await ask(bench, session, "cancel the boxing day one") == "Cancelled: call Pat."
        assert "none to cancel" in await ask(bench, session, "cancel the halloween one")
        assert await ask(bench, session, "cancel the alarm for 9") == "Cancelled: alarm."
        await ask(bench, session, "wake me on friday at 7")
        assert await ask(bench, session, "stop all alarms") == "Cancelled: alarm, alarm."
        assert [row.label for row in bench.timers.pending()] == ["water the plants"]
        await ask(
            bench, session, "cancel all alarms"
        )  # none wakes: it is the reminder that is meant
        assert bench.timers.pending() == []

    run(test, clock=clock())


def test_two_timers_in_one_order_are_not_one() -> None:
    for said in (
        "set two timers, one for 5 minutes and one for 10",
        "give me timers of 5 minutes for eggs",
    ):
        assert not pick(said, "timer", 0.99, NOW)
    assert plan("how much is left", NOW).calls == [("timers", {"what": "timer"})]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("in 40 minutes take the cake out", "take the cake out"),
        ("In 20 minutes, check the oven!", "check the oven"),
        ("in 20 Minuten Kuchen rausholen", "Kuchen rausholen"),
    ],
)
def test_what_only_has_a_span_before_it_is_asked_about(said: str, text: str) -> None:
    [(tool, args)] = plan(said, NOW).calls
    assert (tool, args["tool"], args["args"]["text"]) == ("ask", "reminder", text)


@pytest.mark.parametrize(
    "said",
    [
        "in two hours I will leave",
        "in ten minutes the train leaves",
        "in 5 years people will live on mars",
        "in 30 seconds tell me a joke",
        "in 10 minutes dinner is ready",
        "in einer Stunde kommt Tom",
        "in zwei Tagen fahren wir weg",
        "in 20 minutes take the cake out?",
    ],
)
def test_what_tells_of_later_is_not_asked_about(said: str) -> None:
    assert plan(said, NOW).calls == []


# what was said, what was answered, what is said then, what is meant by it ("-": nothing that is known)
THEY = """
where does ana live | You told me: My sister Ana lives in Lisbon | and how old is she | and how old is Ana
where does ana live | You told me: My sister Ana lives in Lisbon | what's her number | what's Ana's number
and how old is she | I have nothing that says just that. The nearest you told me: “My sister Ana lives in Lisbon” | what is her job | what is Ana's job
when does the plumber come | You told me: the plumber comes on friday | what does he charge | what does the plumber charge
how heavy is my bike | You told me: My bike weighs 12 kilos | how much is it | how much is my bike
wo wohnt Ana | Du hast mir gesagt: Meine Schwester Ana wohnt in Köln | und wie alt ist sie | und wie alt ist Ana
wo wohnt meine Schwester | Du hast mir gesagt: Meine Schwester wohnt in Köln | was ist ihre Nummer | was ist Schwesters Nummer
dónde vive Ana | Me dijiste: Mi hermana Ana vive en Lisboa | cuántos años tiene ella | cuántos años tiene Ana
who wrote Emma | Jane Austen wrote Emma. | when was she born | -
where does ana live | You told me: My sister Ana lives in Lisbon | how is it going | -
where does ana live | You told me: My sister Ana lives in Lisbon | what time is it | -
where does ana live | You told me: My sister Ana lives in Lisbon | she is nice | -
"""


@pytest.mark.parametrize("row", THEY.strip().splitlines())
def test_a_pronoun_is_of_whom_was_asked_before(row: str) -> None:
    before, reply, said, meant = (cell.strip() for cell in row.split(" | "))
    found = plan(said, NOW, Past(before, [], reply))
    assert found.query == ("" if meant == "-" else meant)


def test_a_question_after_an_order_changes_nothing_of_it() -> None:
    """ "and how old is he" is nothing that could be remembered in place of a town."""
    past = Past(
        "remember my brother Tom lives in Bonn",
        [("remember", {"text": "My brother Tom lives in Bonn"})],
        "I will remember: My brother Tom lives in Bonn [fact-1]",
    )
    assert plan("and how old is he", NOW, past).query == "and how old is Tom"
    for said in ("and how old is Anna", "and Lisbon", "and what is the time in Rome"):
        assert not plan(said, NOW, past).calls
