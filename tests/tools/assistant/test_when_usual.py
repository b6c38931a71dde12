"""Usual ways of saying a time in English (British and American), German (of Austria and Switzerland too) and Spanish, with
what each means on a Monday at three in the afternoon; and what only looks like one. The labels were written before the
grammar could read them."""

from __future__ import annotations

import datetime
from datetime import datetime as at

import pytest
from exo.tools.assistant.rules import plan
from exo.tools.assistant.when import parse

NOW = at(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday

# language | said | month-day hour:minute, or - where nothing is surely meant
SAID = """
en | saturday week at 9 | 12-12 09:00
en | on saturday week at nine | 12-12 09:00
en | a week on saturday at 9 | 12-12 09:00
en | a week from friday | 12-11 09:00
en | friday week | 12-11 09:00
en | monday week at noon | 12-07 12:00
en | tomorrow week at 8 | 12-08 08:00
en | a week tomorrow at 8 | 12-08 08:00
en | friday fortnight | 12-18 09:00
en | a fortnight on friday | 12-18 09:00
en | the friday after next at 10 | 12-11 10:00
en | tuesday next week at 10 | 12-08 10:00
en | next week on tuesday at 10 | 12-08 10:00
en | on christmas at 9 | 12-25 09:00
en | on christmas eve at 8 | 12-24 08:00
en | christmas eve at 8pm | 12-24 20:00
en | on christmas morning at 7 | 12-25 07:00
en | on boxing day | 12-26 09:00
en | on new year's eve at 11 pm | 12-31 23:00
en | at quarter past midnight | 12-01 00:15
en | tonight at half past midnight | 12-01 00:30
en | tomorrow at quarter past midnight | 12-01 00:15
en | at ten to midnight | 11-30 23:50
en | in an hour and three quarters | 11-30 16:45
de | an heiligabend um 18 uhr | 12-24 18:00
de | an weihnachten um 9 | 12-25 09:00
de | am zweiten weihnachtstag um elf | 12-26 11:00
de | an silvester um 23 uhr | 12-31 23:00
de | zu nikolaus | 12-06 09:00
de | um viertel nach mitternacht | 12-01 00:15
es | en nochebuena a las 8 de la tarde | 12-24 20:00
es | en navidad | 12-25 09:00
es | en nochevieja a las once de la noche | 12-31 23:00
es | en una hora y tres cuartos | 11-30 16:45
en | at 1745 | 11-30 17:45
en | at 0630 | 12-01 06:30
en | 1745 hours | 11-30 17:45
en | at 1800 hours | 11-30 18:00
en | at eighteen hundred hours | 11-30 18:00
en | at oh six hundred | 12-01 06:00
en | at 6.40 | 11-30 18:40
en | 6.40 | 11-30 18:40
en | at six forty | 11-30 18:40
en | at six forty-five | 11-30 18:45
en | at six forty five | 11-30 18:45
en | at six oh five | 11-30 18:05
en | at six-thirty | 11-30 18:30
en | six thirty | 11-30 18:30
en | at seven thirty-five tomorrow | 12-01 07:35
en | half six | 11-30 18:30
en | at a quarter after six | 11-30 18:15
en | at ten till five | 11-30 16:50
en | ten to five tomorrow | 12-01 16:50
en | 6.40pm | 11-30 18:40
en | at a quarter till five | 11-30 16:45
en | at five and twenty past six | 11-30 18:25
en | at five and twenty to six | 11-30 17:35
en | at 6 o'clock sharp | 11-30 18:00
en | at 6pm on the dot | 11-30 18:00
en | 7 in the morning | 12-01 07:00
en | tomorrow first thing | 12-01 09:00
en | 12/24 at 6 pm | 12-24 18:00
en | on 24/12 at 6 pm | 12-24 18:00
en | in 1h30 | 11-30 16:30
en | in a month | 12-30 15:00
en | in three months at 9 | 02-28 09:00
en | in a year | 11-30 15:00
en | a month from now | 12-30 15:00
de | in siebeneinhalb Minuten | 11-30 15:07
de | in fünfeinhalb Stunden | 11-30 20:30
de | in eineinviertel Stunden | 11-30 16:15
de | um 6.40 | 11-30 18:40
de | um 1745 | 11-30 17:45
de | um 0630 | 12-01 06:30
de | um 18h30 | 11-30 18:30
de | um 18h | 11-30 18:00
de | viertel sieben | 11-30 18:15
de | um viertel sieben | 11-30 18:15
de | dreiviertel acht | 11-30 19:45
de | um viertel ab sieben | 11-30 19:15
de | um viertel über sieben | 11-30 19:15
de | um zehn ab sieben | 11-30 19:10
de | um fünf vor dreiviertel acht | 11-30 19:40
de | um fünf nach dreiviertel acht | 11-30 19:50
de | um punkt acht | 11-30 20:00
de | Schlag acht | 11-30 20:00
de | um halber sieben | 11-30 18:30
de | so um acht | 11-30 20:00
de | um acht herum | 11-30 20:00
de | um acht Uhr fünfzehn | 11-30 20:15
de | heute in acht Tagen | 12-07 09:00
de | heute in vierzehn Tagen | 12-14 09:00
de | morgen in einer Woche um 8 | 12-08 08:00
de | Samstag in einer Woche um neun | 12-12 09:00
de | am Samstag in acht Tagen | 12-12 09:00
de | Freitag in vierzehn Tagen | 12-18 09:00
de | übernächsten Samstag um 10 | 12-12 10:00
de | nächste Woche Dienstag um 10 | 12-08 10:00
de | am Dienstag nächster Woche um 10 | 12-08 10:00
de | in einem Monat | 12-30 15:00
de | in einem Jahr | 11-30 15:00
es | las siete menos cuarto | 11-30 18:45
es | un cuarto para las siete | 11-30 18:45
es | a un cuarto para las siete | 11-30 18:45
es | diez para las ocho | 11-30 19:50
es | a las 7 am | 12-01 07:00
es | a las 7 y media p.m. | 11-30 19:30
es | a las 1745 | 11-30 17:45
es | a las 18 h | 11-30 18:00
es | sobre las siete | 11-30 19:00
es | a eso de las siete y media | 11-30 19:30
es | hacia las ocho | 11-30 20:00
es | mañana a primera hora | 12-01 09:00
es | el sábado de la semana que viene a las 9 | 12-12 09:00
es | de aquí a una semana | 12-07 15:00
es | en un mes | 12-30 15:00
es | dentro de seis meses a las 9 | 05-30 09:00
es | a las 7 y pico | -
es | a las siete y pico | -
en | at 7ish | -
en | at 6:40:30 | -
en | on 5/6 at noon | -
en | on monday in two weeks | -
de | kurz vor acht | -
"""


@pytest.mark.parametrize("row", SAID.strip().splitlines())
def test_a_usual_time_is_read(row: str) -> None:
    name, text, want = (each.strip() for each in row.split("|"))
    found = parse(text, NOW, name)
    if want == "-":
        assert found is None
        return
    assert found is not None and found.rest == "" and not found.repeat
    assert f"{found.at:%m-%d %H:%M}" == want
    assert found.at.year == (
        2027 if want < "11" or text in ("in a year", "in einem Jahr") else 2026
    )


# language | said | what of it is a time, nothing for none: durations, prices, years, amounts, scores
NO_TIMES = """
en | to play what Bach wrote in 1745
en | to pay 6.40 euros
en | to pay £6.40 for the bread
en | to send 1745 euros to Anna
en | to read about the year 1745
en | to buy six thirty litre bags
en | to read pages 6.40 of the report
en | to bake 3 quarters of the cake
en | to check version 2.30 of the app
en | to watch a week of films
en | to buy two weeks of food
en | to take 1000 steps
en | to dial 1745
en | to watch it from ten till five
en | that 6.40 is the price
en | to meet in 1745 Park Road
en | at 1500 dollars a month
en | at 2000 feet
en | to buy 10 to 15 eggs
en | to read from 5 to 6 pages
en | by 2030
en | to read chapter 12/24
en | on the 10/12 at 6
de | sechs Euro vierzig zahlen
de | 6.40 Euro zahlen
de | Musik aus dem Jahr 1745 hören
de | ein viertel Liter Milch kaufen
de | viertel Pfund Butter kaufen
de | dreiviertel Liter Milch kaufen
de | Kapitel 3.10 lesen
de | um 2000 Euro bitten
de | um 6.40 Euro bitten
de | den Monat planen
es | pagar 6.40 euros
es | leer sobre el año 1745
es | comprar un cuarto de kilo
es | comprar diez para las niñas
"""


@pytest.mark.parametrize("row", NO_TIMES.strip().splitlines())
def test_what_only_has_the_numbers_of_a_time_is_none(row: str) -> None:
    name, text = (each.strip() for each in row.split("|"))
    assert parse(text, NOW, name) is None


@pytest.mark.parametrize(
    ("said", "when", "text"),
    [
        ("wake me at 1745", "11-30 17:45", "alarm"),
        ("set an alarm for 0630", "12-01 06:30", "alarm"),
        ("remind me at 6.40 to call Anna", "11-30 18:40", "call Anna"),
        ("remind me on saturday week at three to call Oona", "12-12 15:00", "call Oona"),
        ("remind me at six forty-five to call Anna", "11-30 18:45", "call Anna"),
        ("remind me six thirty to call Anna", "11-30 18:30", "call Anna"),
        ("remind me in a month to renew the permit", "12-30 15:00", "renew the permit"),
        ("remind me at 6 to pay 6.40 euros", "11-30 18:00", "pay 6.40 euros"),
        ("remind me at 6 to send 1745 euros", "11-30 18:00", "send 1745 euros"),
        ("remind me tomorrow that in 1745 Bach wrote", "12-01 09:00", "in 1745 Bach wrote"),
        ("weck mich um viertel sieben", "12-01 06:15", "Wecker"),
        ("weck mich um dreiviertel acht", "12-01 07:45", "Wecker"),
        (
            "erinnere mich um sechs an ein viertel Liter Milch",
            "11-30 18:00",
            "ein viertel Liter Milch",
        ),
        ("despiértame a las siete menos cuarto", "12-01 06:45", "alarma"),
        ("recuérdame a las siete menos cuarto llamar a Ana", "11-30 18:45", "llamar a Ana"),
    ],
)
def test_a_reminder_has_its_time_and_keeps_its_text(said: str, when: str, text: str) -> None:
    [(tool, args)] = plan(said, NOW).calls
    assert tool == "reminder" and args["text"] == text
    assert f"{at.fromisoformat(args['at']):%m-%d %H:%M}" == when


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Timer auf siebeneinhalb Minuten", 450),
        ("stell einen Timer auf sechseinhalb Minuten", 390),
        ("set a timer for 1h30", 5400),
        ("pon un temporizador de siete minutos y medio", 450),
    ],
)
def test_a_span_with_its_half_is_one(said: str, seconds: int) -> None:
    [(tool, args)] = plan(said, NOW).calls
    assert (tool, args["seconds"]) == ("timer", seconds)


def test_the_week_of_a_day_counts_from_the_day_itself() -> None:
    saturday = at(2026, 12, 5, 18, 0, tzinfo=datetime.UTC)
    found = parse("saturday week at 9", saturday)
    assert found is not None and f"{found.at:%m-%d %H:%M}" == "12-12 09:00"
    for text, day in (("in a month", "02-28"), ("in two months", "03-31")):
        found = parse(text, at(2027, 1, 31, 9, 0, tzinfo=datetime.UTC))
        assert found is not None and f"{found.at:%m-%d}" == day
