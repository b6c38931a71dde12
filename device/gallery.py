"""Every page of the handheld as a picture. Owns the examples: typical, empty, the longest texts, German,
other scripts; draws what the layouts draw, and sheets of them.

Invariant: deterministic: the same code gives the same files."""

from __future__ import annotations

import datetime
import math

from exo.device.layouts import Layout
from exo.device.pages import Row, View
from exo.device.text import plain

NOW = datetime.datetime(2026, 11, 30, 14, 5, tzinfo=datetime.UTC)
LEVELS = tuple(abs(math.sin(n / 3)) * (n % 5 + 1) / 5 for n in range(64))
PARIS = (
    "The capital of **France** is Paris. It lies on the Seine and has about 2.1 million people; "
    "“la Ville Lumière” is its old name — and it is well-known."
)
BERLIN = (
    "Die Hauptstadt ist Berlin. Die Donaudampfschifffahrtsgesellschaft fährt dort nicht, wohl aber das "
    "Geschwindigkeitsbegrenzungsüberwachungsboot auf der Spree – gemütlich, grün und über Brücken."
)
SCRIPTS = "今日は天気がいいですね。散歩に行きましょう！한국어 Ωmega Привет עברית ไทย 😀 🎉 ✓ → ½"
SEND = (
    "Send an e-mail to Ada Lovelace\nSubject: Tuesday\nSeen by: Ada and her mail server\n"
    "It cannot be undone."
)
SENDEN = (
    "Eine E-Mail an die Donaudampfschifffahrtsgesellschaft senden\nBetreff: Fahrplanänderungsbenachrichtigung\n"
    "Sehen können es: Empfänger und Mailserver\nDas lässt sich nicht rückgängig machen."
)


def examples(layout: Layout) -> dict[str, View]:
    """Views by name, `KIND` or `KIND-VARIANT`, whose texts are in the layout's language."""
    texts, german = layout.texts, layout.texts.language == "de"

    def reply(text: str, title: str, first: int = 0, **more: bool) -> View:
        lines = layout.lay_out(plain(text))
        first = min(first, layout.last(lines))
        scroll = sum(line.height for line in lines[:first])
        return View("reply", NOW, title, lines=lines, scroll=scroll, **more)

    def notice(level: str, text: str, title: str = "") -> View:
        lines = layout.lay_out(text)
        name = title or texts(f"notice.{level}")
        return View("notice", NOW, name, text, level, texts("notice.hint"), lines=lines)

    def card(text: str, title: str, level: str, choices: tuple[str, ...], **more: float) -> View:
        lines = layout.lay_out(text)
        scroll = sum(line.height for line in lines[: int(more.pop("first", 0))])
        view = View("card", NOW, title, text, level, lines=lines, scroll=scroll, choices=choices)
        return _with(view, **more)

    def rows(*labels: str, chosen: int = 0, title: str = "", hint: str = "") -> View:
        made = tuple(Row(*label.split("|")) for label in labels)
        return View("list", NOW, title, rows=made, chosen=chosen, hint=hint)

    def pick(english: str, deutsch: str) -> str:
        return deutsch if german else english

    long = BERLIN if german else PARIS
    asked = pick("What is the capital of France?", "Wie heißt die Hauptstadt von Deutschland?")
    allow = (
        pick("Hold OK: allow", "OK halten: erlauben"),
        pick("Back: deny", "Zurück: ablehnen"),
    )
    ask = pick("Allow?", "Erlauben?")
    menu = pick(
        "Conversations||chat;Reminders|2|bell;Search||search;What I know||book;Settings||gear;Power||power",
        "Gespräche||chat;Erinnerungen|2|bell;Suche||search;Was ich weiß||book;Einstellungen||gear;Ausschalten||power",
    ).split(";")
    letters = tuple(Row(letter) for letter in "jklmnopqr")
    digits = pick("Up/Down: digit, OK: next", "Hoch/Runter: Ziffer, OK: weiter")
    seldom = "Donaudampfschifffahrtsgesellschaftskapitän"
    return {
        "starting": View("starting", NOW, text=texts("starting.exod"), frame=3),
        "idle": View("idle", NOW, hint=texts("idle.hint"), battery=82),
        "idle-due": View(
            "idle",
            NOW,
            hint=texts("idle.hint"),
            battery=100,
            charging=True,
            next_due=pick("Tea 14:20", "Tee 14:20"),
            pending=True,
        ),
        "idle-away": View(
            "idle",
            NOW,
            hint=texts("idle.no_core"),
            core=False,
            voice=False,
            battery=4,
            muted=True,
            locked=True,
        ),
        "listening": View("listening", NOW, hint=texts("listening.hint"), elapsed=7, levels=LEVELS),
        "listening-silent": View("listening", NOW, hint=texts("listening.toggle"), elapsed=59),
        "thinking": View("thinking", NOW, texts("thinking"), asked, elapsed=12, frame=2),
        "thinking-long": View(
            "thinking",
            NOW,
            texts("thinking.tool", tool="calendar"),
            4 * plain(long),
            elapsed=83,
            frame=6,
        ),
        "reply": reply(long, asked, 2, streaming=True, speaking=True, pending=True),
        "reply-short": reply(pick("It is five past two.", "Es ist fünf nach zwei."), asked),
        "reply-known": reply(long, asked, 99, known=True),
        "reply-scripts": reply(SCRIPTS, "今日の天気"),
        "notice": notice("info", texts("hint.short")),
        "notice-timer": notice("timer", pick("Tea is ready", "Der Tee ist fertig")),
        "notice-warning": notice(
            "warning", pick("The battery is at 8 %.", "Der Akku ist bei 8 %.")
        ),
        "notice-error": notice("error", 3 * texts("error.core", why="Connection refused. ")),
        "list": rows(*menu, title=pick("Menu", "Menü"), chosen=1),
        "list-end": rows(*menu, title=pick("Menu", "Menü"), chosen=5),
        "list-settings": _marked(
            rows(
                pick("English", "Englisch"),
                "Deutsch",
                title=pick("Language", "Sprache"),
                chosen=1,
                hint=pick("OK: choose", "OK: wählen"),
            ),
            0,
        ),
        "list-values": rows(
            pick("Brightness|80 %", "Helligkeit|80 %"),
            pick("Sleep after|2 minutes", "Ausschalten nach|2 Minuten"),
            pick("Text|normal", "Schriftgröße|normal"),
            pick("Sounds|on", "Töne|an"),
            pick("Storage|12.4 GB free", "Speicherplatz|12,4 GB frei"),
            title=pick("Settings", "Einstellungen"),
            chosen=4,
        ),
        "list-long": rows(
            "Pick up the children from school and buy bread|tomorrow 15:00|bell",
            f"{seldom}|übermorgen|bell",
            "今日の天気と散歩のこと|月曜日|bell",
            "Ok",
            title=pick(
                "Reminders for this week and the next", "Erinnerungen dieser und nächster Woche"
            ),
            chosen=1,
        ),
        "list-empty": View(
            "list",
            NOW,
            pick("Reminders", "Erinnerungen"),
            hint=pick("Nothing here. Back: leave", "Nichts hier. Zurück"),
        ),
        "card": card(SENDEN if german else SEND, ask, "risk", allow, elapsed=105, chosen=0),
        "card-held": card(
            SENDEN if german else SEND,
            ask,
            "risk",
            allow,
            elapsed=98,
            chosen=0,
            progress=0.6,
            first=2,
        ),
        "card-question": card(
            pick("Which Ada do you mean?", "Welche Ada meinst du?"),
            pick("A question", "Eine Frage"),
            "question",
            ("Ada Lovelace", f"Ada {seldom}", "Ada 子"),
            chosen=1,
        ),
        "entry": View(
            "entry",
            NOW,
            pick("Search", "Suche"),
            "lovel",
            rows=letters,
            chosen=4,
            hint=pick("OK: letter, hold: search", "OK: Buchstabe, halten: suchen"),
        ),
        "entry-long": View(
            "entry",
            NOW,
            pick("Search", "Suche"),
            f"Die {seldom} 今日",
            rows=(Row("x"), Row("y"), Row("z"), Row("␣"), Row("⌫"), Row("OK")),
            chosen=5,
        ),
        "entry-empty": View("entry", NOW, pick("Search", "Suche"), rows=letters[:5], chosen=0),
        "lock": View("lock", NOW, pick("PIN", "PIN"), "7", filled=2, hint=digits),
        "lock-wait": View(
            "lock",
            NOW,
            pick("Wrong PIN", "Falsche PIN"),
            hint=pick("Try again later", "Später nochmal versuchen"),
            elapsed=90,
        ),
        "progress": View(
            "progress",
            NOW,
            pick("Import", "Import"),
            pick("Notes of a folder: 420 of 1,000", "Notizen eines Ordners: 420 von 1000"),
            progress=0.42,
        ),
        "progress-unknown": View(
            "progress",
            NOW,
            pick("Restart", "Neustart"),
            pick("Saving", "Speichert"),
            progress=-1,
            frame=5,
        ),
        "off": View("off", NOW),
    }


def _with(view: View, **more: float) -> View:
    from dataclasses import replace

    whole = {name: int(value) for name, value in more.items() if name != "progress"}
    return replace(view, progress=more.get("progress", 0.0), **whole)


def _marked(view: View, number: int) -> View:
    from dataclasses import replace

    rows = tuple(replace(row, marked=at == number) for at, row in enumerate(view.rows))
    return replace(view, rows=rows)
