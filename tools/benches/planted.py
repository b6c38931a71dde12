"""Ten long conversations with 50 planted facts and 20 planted secrets: what summaries must keep, and what
they must never keep. Written by hand before any summariser was run on it (2026-11-30).

The even conversations are for building, the odd ones are held out: no rule, prompt or threshold is changed
after a look at how one of them fares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from exo.core.protocol.schema import Call, Message, ToolResult

LENGTH = 32  # messages: four leaves of eight, so that the root is the third level


@dataclass(frozen=True)
class Fact:
    """`needles` must all stand in a summary, letter for letter, for the fact to have survived. `at` is
    the message that `text` replaces; an even place is the person's, an odd one the assistant's."""

    kind: str  # path, value, name, open
    at: int
    text: str
    needles: tuple[str, ...]


@dataclass(frozen=True)
class Planted:
    """One conversation. `secrets` are (place, text, the part that must be gone)."""

    name: str
    language: str
    facts: tuple[Fact, ...]
    secrets: tuple[tuple[int, str, str], ...]

    @property
    def held_out(self) -> bool:
        return PLANTED.index(self) % 2 == 1


FILL = {
    "en": (
        ("What could I plant on a balcony that gets little sun?", "Ferns, hostas and mint do well there; keep the soil moist."),
        ("And how often do they want water?", "Twice a week in spring, every second day when it is over 25 degrees."),
        ("My knee hurts a bit after running.", "Rest it for two or three days and start again on soft ground."),
        ("Tell me something about lighthouses.", "The oldest one still working is the Tower of Hercules, in use since Roman times."),
        ("Was it rebuilt?", "Its outer shell was renewed in 1791, the core is Roman."),
        ("I did not sleep well.", "That is a pity. A short walk in daylight often helps more than coffee."),
        ("What goes well with lentils?", "Carrots, a bay leaf, a little vinegar at the end."),
        ("Could you explain what a checksum is?", "A short number computed from data: when the data changes, it changes too."),
        ("Why are there so many kinds of them?", "They differ in speed and in how hard it is to forge one."),
        ("The neighbours are loud again.", "You could ask them kindly in the morning; most people do not notice."),
        ("How far away is the moon?", "About 384,000 kilometres, a little more or less over the month."),
        ("I think I will paint the shelf green.", "Green goes well with the oak table you told me of."),
        ("What is a good length for a nap?", "Twenty minutes. After that you wake up in deep sleep."),
        ("My sister is coming next week.", "Nice. Do you want to cook for her or go out?"),
        ("Do cats see colours?", "Blue and yellow, yes; red looks grey to them."),
    ),
    "de": (
        ("Was koche ich heute Abend?", "Vielleicht eine Suppe aus Linsen und Möhren, die geht schnell."),
        ("Ich habe aber keine Möhren.", "Dann nimm Sellerie oder Kartoffeln, das passt auch."),
        ("Wie wird Brot schön knusprig?", "Mit Dampf in den ersten zehn Minuten und starker Unterhitze."),
        ("Mir ist heute alles zu viel.", "Das klingt anstrengend. Nimm dir eine Sache vor und lass den Rest liegen."),
        ("Wie alt werden Igel?", "Meist drei bis vier Jahre, in guten Gärten auch sieben."),
        ("Erzähl mir etwas über Leuchttürme.", "Der älteste, der noch leuchtet, steht in Spanien und ist römisch."),
        ("Wann blüht der Flieder?", "Je nach Lage von Ende April bis Ende Mai."),
        ("Das Wetter macht mich müde.", "Ein Gang im Tageslicht hilft oft mehr als Kaffee."),
    ),
    "fr": (
        ("Que puis-je cuisiner ce soir ?", "Une soupe de lentilles avec des carottes, c'est rapide."),
        ("Je n'ai plus de carottes.", "Du céleri ou des pommes de terre vont bien aussi."),
        ("Pourquoi le ciel est-il bleu ?", "L'air diffuse davantage la lumière bleue que la rouge."),
        ("J'ai mal dormi.", "Une promenade à la lumière du jour aide souvent plus que le café."),
        ("Combien de temps vivent les hérissons ?", "Trois ou quatre ans, parfois sept dans un bon jardin."),
        ("Parle-moi des phares.", "Le plus ancien encore en service se trouve en Espagne."),
        ("Quand fleurit le lilas ?", "De fin avril à fin mai, selon l'endroit."),
        ("Il pleut encore.", "C'est bon pour les plantes du balcon."),
    ),
}  # fmt: skip


def _joined(text: str) -> str:
    """A made-up key, written with a dot inside so that no scanner takes this file for a leak."""
    return text.replace("·", "")


PLANTED = (
    Planted(
        "server",
        "en",
        (
            Fact("path", 2, "The config I changed is /etc/nginx/sites-enabled/garden.conf, remember that.", ("/etc/nginx/sites-enabled/garden.conf",)),
            Fact("value", 5, "It now listens on port 8447 and keeps connections for 95s.", ("8447", "95s")),
            Fact("name", 12, "The person who runs the other server is Oksana Petrenko.", ("Oksana Petrenko",)),
            Fact("value", 18, "It fails with: upstream timed out (110: Connection timed out) while reading.", ("upstream timed out (110: Connection timed out)",)),
            Fact("open", 30, "Please compare garden.conf with garden.conf.orig and list what differs.", ("compare garden.conf with garden.conf.orig",)),
        ),
        ((6, "The password is: tulip-Harbor-92", "tulip-Harbor-92"), (20, _joined("export API_KEY=sk-·proj-Ab3dEf6hIj9kLmNoPqRsTuVw1234"), _joined("sk-·proj-Ab3dEf6hIj9kLmNoPqRsTuVw1234"))),
    ),
    Planted(
        "thesis",
        "en",
        (
            Fact("path", 4, "My draft is in ~/thesis/chapters/03-methods.tex now.", ("~/thesis/chapters/03-methods.tex",)),
            Fact("name", 8, "My supervisor, Dr. Ikram Belhadj, wants to read it first.", ("Ikram Belhadj",)),
            Fact("value", 14, "The mean was 42.73 with a standard deviation of 6.18.", ("42.73", "6.18")),
            Fact("path", 22, "I moved the raw data to /mnt/usb2/survey_2025.csv.gz yesterday.", ("/mnt/usb2/survey_2025.csv.gz",)),
            Fact("open", 28, "Write an abstract of at most 180 words from my methods chapter.", ("abstract of at most 180 words",)),
        ),
        ((10, _joined("my token for the repository is ghp·_16C7e42F292c6912E7710c838347Ae178B4a"), _joined("ghp·_16C7e42F292c6912E7710c838347Ae178B4a")), (24, "Use this login: postgres://ikram:Zw8rqLp2@db.local:5432/survey", "Zw8rqLp2")),
    ),
    Planted(
        "kitchen",
        "de",
        (
            Fact("value", 2, "Der Teig braucht 780 g Mehl und 11 g Salz, hydriert auf 68 %.", ("780 g", "11 g", "68 %")),
            Fact("name", 6, "Das Rezept ist von meiner Tante Gudrun Wiesenthal.", ("Gudrun Wiesenthal",)),
            Fact("path", 13, "Ich habe das Rezept unter /home/pi/rezepte/sauerteig-2.md gespeichert.", ("/home/pi/rezepte/sauerteig-2.md",)),
            Fact("value", 20, "Backen bei 235 °C für 47 Minuten, das hat am besten geklappt.", ("235 °C", "47 Minuten")),
            Fact("open", 30, "Bitte schreib mir die Einkaufsliste für zwei Laibe auf, aber ohne Hefe.", ("Einkaufsliste für zwei Laibe", "ohne Hefe")),
        ),
        ((8, "Das WLAN-Passwort: Kuchenblech!77", "Kuchenblech!77"), (22, "Die Karte ist 4539 1488 0343 6467.", "4539 1488 0343 6467")),
    ),
    Planted(
        "voyage",
        "fr",
        (
            Fact("value", 3, "Le train 6187 part à 07h52, voie 14.", ("6187", "07h52")),
            Fact("name", 10, "Nous dormons chez Solène Kervadec les deux premières nuits.", ("Solène Kervadec",)),
            Fact("path", 15, "Les billets sont dans ~/Documents/voyage/billets_mai.pdf.", ("~/Documents/voyage/billets_mai.pdf",)),
            Fact("value", 24, "Le budget est de 1 340 euros, dont 415 pour l'hôtel.", ("1 340 euros", "415")),
            Fact("open", 30, "Annule ma demande de location de voiture, je ne la veux plus.", ("Annule ma demande de location de voiture",)),
        ),
        ((6, "mot de passe : Goeland#2031", "Goeland#2031"), (18, _joined("Voici la clé AKI·AIOSFODNN7EXAMPLQ pour le dépôt."), _joined("AKI·AIOSFODNN7EXAMPLQ"))),
    ),
    Planted(
        "printer",
        "en",
        (
            Fact("value", 4, "The printer says E-0x6100004a every time I start it.", ("E-0x6100004a",)),
            Fact("path", 11, "Its driver file is /usr/share/ppd/custom/LX-310.ppd on your machine.", ("/usr/share/ppd/custom/LX-310.ppd",)),
            Fact("name", 16, "The technician is called Tomasz Wrzesniewski.", ("Tomasz Wrzesniewski",)),
            Fact("value", 21, "The spare part is number RM2-5392-000CN and costs 38.90 euros.", ("RM2-5392-000CN", "38.90")),
            Fact("open", 30, "Stop looking for another printer. I changed my mind, I will keep this one.", ("Stop looking for another printer",)),
        ),
        ((13, "The admin page takes user admin, password=Vellum_4410.", "Vellum_4410"), (26, "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.c2lnbmF0dXJlMTIzNDU2", "c2lnbmF0dXJlMTIzNDU2")),
    ),
    Planted(
        "robot",
        "en",
        (
            Fact("path", 2, "I flashed build/esp32/motor_ctrl_v7.bin to the board.", ("build/esp32/motor_ctrl_v7.bin",)),
            Fact("value", 7, "The left motor needs a gain of 0.385 and the limit is 2200 rpm.", ("0.385", "2200 rpm")),
            Fact("value", 12, "Commit 9f3c2e1b broke it.", ("9f3c2e1b",)),
            Fact("name", 20, "Ask Priyanka Deshmukh when something about the gears is unclear.", ("Priyanka Deshmukh",)),
            Fact("open", 28, "Undo the last change to motor_ctrl.c and flash version 6 again.", ("Undo the last change to motor_ctrl.c", "version 6")),
        ),
        ((9, "wifi_psk = \"maple.Syrup.3391\"", "maple.Syrup.3391"), (23, _joined("---·--BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n---·--END OPENSSH PRIVATE KEY-----"), "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ")),
    ),
    Planted(
        "garden club",
        "en",
        (
            Fact("name", 3, "The new chair of the club is Mr. Lindqvist-Moreau.", ("Lindqvist-Moreau",)),
            Fact("value", 10, "We meet on 2027-03-14 at 18:45 in room B-207.", ("2027-03-14", "18:45", "B-207")),
            Fact("path", 14, "The list of members is at https://club.example/members/2027.ods for everyone.", ("https://club.example/members/2027.ods",)),
            Fact("value", 25, "There are 137 members, and the fee is 24.50 a year.", ("137", "24.50")),
            Fact("open", 30, "Draft a short invitation to the spring meeting, and do NOT send it yet.", ("Draft a short invitation to the spring meeting", "do NOT send it")),
        ),
        ((5, "The shared mailbox has the passphrase: quiet otter under bridge", "quiet otter under bridge"), (19, _joined("xox·b-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1 is the bot's token"), "FGqddMF8t08v8N7Oq4i57vs1")),
    ),
    Planted(
        "backup",
        "en",
        (
            Fact("path", 5, "The script is /opt/backup/nightly-rsync.sh and runs at night.", ("/opt/backup/nightly-rsync.sh",)),
            Fact("value", 9, "Error: rsync exited with code 23 after 1,284 files.", ("code 23", "1,284 files")),
            Fact("path", 17, "The log went to /var/log/backup/2026-11-02.log as always.", ("/var/log/backup/2026-11-02.log",)),
            Fact("name", 22, "The disk belongs to Farid Ouahabi, so ask him before wiping it.", ("Farid Ouahabi",)),
            Fact("open", 30, "Run rsync -avn --delete /srv/photos/ nas:/photos and show me what it would do.", ("rsync -avn --delete /srv/photos/ nas:/photos",)),
        ),
        ((11, "RESTIC_PASSWORD=granite-Falcon-6021", "granite-Falcon-6021"), (26, "the PIN of the safe is 739104", "739104")),
    ),
    Planted(
        "umzug",
        "de",
        (
            Fact("name", 4, "Der Vermieter heißt Herr Thorvald Bäumer-Schütz.", ("Thorvald Bäumer-Schütz",)),
            Fact("value", 9, "Die Kaution beträgt 1.860 Euro, die Fläche 64,5 m².", ("1.860 Euro", "64,5 m²")),
            Fact("path", 14, "Der Vertrag liegt als ~/Umzug/Mietvertrag_final.pdf auf dem Rechner.", ("~/Umzug/Mietvertrag_final.pdf",)),
            Fact("value", 19, "Der Zähler stand bei 048213,7 kWh.", ("048213,7 kWh",)),
            Fact("open", 28, "Erinnere mich bitte am 17.02. um 9 Uhr an die Schlüsselübergabe.", ("am 17.02. um 9 Uhr", "Schlüsselübergabe")),
        ),
        ((11, "Kennwort: Regenbogen_58x", "Regenbogen_58x"), (24, "IBAN DE89 3704 0044 0532 0130 00", "3704 0044 0532 0130 00")),
    ),
    Planted(
        "library",
        "en",
        (
            Fact("value", 2, "The library needs version 3.14.2 of the parser, not 3.15.", ("3.14.2", "3.15")),
            Fact("path", 8, "The failing test is tests/unit/test_parser.py::test_nested_quotes.", ("tests/unit/test_parser.py::test_nested_quotes",)),
            Fact("value", 13, "It raises ValueError: unexpected token at line 88, column 17.", ("ValueError: unexpected token at line 88",)),
            Fact("name", 18, "Kaito Nakamura wrote that part, he knows it best.", ("Kaito Nakamura",)),
            Fact("open", 30, "Pin the parser to 3.14.2 in pyproject.toml and run only that one test.", ("Pin the parser to 3.14.2 in pyproject.toml",)),
        ),
        ((16, _joined("npm·_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 is what I publish with"), _joined("npm·_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")), (22, "client_secret: 'Q~7w8.vXo3~nLk'", "Q~7w8.vXo3~nLk")),
    ),
)  # fmt: skip


def conversation(planted: Planted, crowded: bool = False) -> list[Message]:
    """The LENGTH messages: filling, with the planted texts in their places. When `crowded`, every message
    of the filling names a file and two values of its own, which compete for the room."""
    fill = FILL[planted.language]
    offset = PLANTED.index(planted)
    out: list[Message] = []
    for n in range(LENGTH):
        asked, said = fill[(n // 2 + offset) % len(fill)]
        role: Literal["user", "assistant"] = "user" if n % 2 == 0 else "assistant"
        if crowded:
            asked, said = (
                f"{text} ({37 * n + 11} g, notes/{n}.txt, {n}:45)" for text in (asked, said)
            )
        out.append(Message(f"{planted.name}-{n}", role, asked if n % 2 == 0 else said))
    texts = {fact.at: fact.text for fact in planted.facts}
    texts |= {at: text for at, text, _ in planted.secrets}
    for at, text in texts.items():
        out[at] = Message(out[at].id, out[at].role, text)
    return out


def with_tools(messages: list[Message]) -> list[Message]:
    """The same talk, each assistant text as a call and its result (for the redactor's tests)."""
    out: list[Message] = []
    for each in messages:
        if each.role != "assistant":
            out.append(each)
            continue
        call = Call(f"c-{each.id}", "read_file", {"path": "talk.txt"})
        out.append(Message(f"{each.id}a", "assistant", "", [call]))
        out.append(
            Message(f"{each.id}b", "tool", "", results=[ToolResult(call.id, True, each.text)])
        )
    return out
