"""A thousand notes that answer none of the questions of tools/benches/quality: filled templates, so that a
right note has to be found among plausible ones. Owns the templates; the authored notes stay in their file.

Invariant: the same rows on every machine and Python: choices are drawn from sha256, not from a generator
whose algorithm may change. Names, subjects and figures here are kept apart from those of the questions."""

from __future__ import annotations

import datetime
import hashlib
import re
from typing import Any

COUNT = 1000
SEED = "exo-quality-1"
FIRST_DAY = datetime.date(2021, 1, 4)
DAYS = 2150

# slot -> what may stand there
SLOTS: dict[str, tuple[str, ...]] = {
    "who": tuple(
        re.findall(
            r"\w+",
            "Ansel Brigid Corvin Delphine Emeric Fenna Goran Hedda Ivo Jolanda Kasimir Liesl Matteo Nadja Odile Per "
            "Quirin Runa Stellan Thea Ulf Vesna Wim Xenia Yorick Zita",
        )
    ),
    "place": (
        "Harrowmere", "Sankt Odo", "Vellisund", "Oberlohe", "Casteldoro", "Pinewick", "Marnebourg", "Tolvik",
        "Kressbach", "Lower Findle", "Villa Serena", "Ostrava Hill", "Dunmarrow", "Quellental", "Port Amity",
    ),
    "mood": (
        "worth the evening", "too long by half", "better than its reviews", "quite forgettable",
        "I would go again", "not for everyone", "a quiet pleasure", "overrated", "charming and slow",
        "clever but cold", "left early", "talked about it for days",
    ),
    "film": (
        "The Cartographer's Wife", "Nine Empty Trams", "Salt Winter", "A House for Crows", "The Second Lantern",
        "Paper Admirals", "Low Season", "The Violin Thief", "Under the Viaduct", "Honeymoon in Grey",
        "The Last Switchboard", "Copper Sunday", "A Minor Comet", "Strangers with Umbrellas",
    ),
    "bird": (
        "a kingfisher", "two goldcrests", "a grey heron", "a flock of waxwings", "a hoopoe", "a lesser whitethroat",
        "three oystercatchers", "a nuthatch", "a pair of wrynecks", "a black redstart", "a short-eared owl",
        "some siskins", "a dipper", "a red-backed shrike",
    ),
    "spot": (
        "by the gravel pit", "near the sewage works", "on the cemetery wall", "behind the railway depot",
        "in the reeds", "over the stubble field", "at the quarry edge", "in the poplar row",
        "along the towpath", "above the motorway bridge", "at the fish ponds", "in the monastery orchard",
    ),
    "weather": (
        "drizzle and no wind", "hard frost", "sun with a cold edge", "fog until noon", "the first warm day",
        "gusts from the south", "a sky like slate", "thaw and slush", "heat haze", "a double rainbow",
        "sleet in the morning", "stars and no moon",
    ),
    "dish": (
        "lentil soup", "spinach gnocchi", "buckwheat pancakes", "leek tart", "chickpea curry", "barley risotto",
        "beetroot salad", "mushroom goulash", "cabbage rolls", "ricotta ravioli", "pepper stew", "onion tart",
        "pea fritters", "celeriac schnitzel", "polenta with sage", "okra with tomatoes",
    ),
    "spice": (
        "cumin", "smoked paprika", "star anise", "lovage", "sumac", "caraway", "tarragon", "mustard seed",
        "cardamom", "fenugreek", "marjoram", "white pepper", "allspice", "savory",
    ),
    "subject": (
        "peat bogs", "the history of zinc", "tidal mills", "the grammar of gestures", "seed banks", "deep-sea cables",
        "medieval toll roads", "wooden skyscrapers", "the price of saffron", "urban foxes", "glass blowing",
        "lichens on gravestones", "the invention of the envelope", "night buses", "sand theft", "ice harvesting",
        "shorthand systems", "the return of the beaver", "cork oaks", "early weather balloons", "public baths",
        "typewriter repair", "ghost signs", "salt marshes", "paper folding in engineering", "river dolphins",
    ),
    "medium": (
        "podcast", "radio feature", "long article", "talk in the town hall", "documentary", "lecture",
        "magazine piece", "museum leaflet", "essay", "interview",
    ),
    "insight": (
        "the turning point came from an accident", "nobody had kept the drawings", "money was the smallest problem",
        "it survives in two villages only", "the measurements were wrong for decades",
        "a widow had financed all of it", "the best part is the footnotes", "the experts disagree politely",
        "it was banned for eleven years", "the archive burned and was copied from memory",
        "it began as a joke", "most of it lies under water today",
    ),
    "game": (
        "a trading game with camels", "a card game about ghosts", "dominoes", "a cooperative game about a leaking ship",
        "charades", "a word game with wooden tiles", "backgammon", "a dice game from a flea market",
        "a map-drawing game", "mahjong",
    ),
    "tool": (
        "a try square", "wood glue", "a coping saw", "beeswax", "a bench vice", "masking tape", "a feeler gauge",
        "linseed oil", "a spokeshave", "a cable stripper", "sanding blocks", "a crimping tool",
    ),
    "thing": (
        "a stool", "a picture frame", "a nesting box", "a tray", "a toy crane", "a folding table", "a coat rack",
        "a lamp base", "a bread board", "a magazine holder", "a plant stand", "a marble run",
    ),
    "lang": ("Python", "SQL", "Bash", "Rust", "JavaScript", "Lua", "awk", "Go"),
    "bug": (
        "an off-by-one in a loop over months", "a time zone that was applied twice", "a file that was never closed",
        "a comma as decimal sign", "a cache without a limit", "two threads and one dictionary",
        "a header with a byte order mark", "rounding before summing", "a path with a space in it",
        "an index that was not used", "a retry without a pause", "a default that was a list",
    ),
    "lesson": (
        "write the test first next time", "read the message to its end", "print the types",
        "ask somebody after one hour", "the log had said it all along", "keep a smaller example",
        "upgrade one thing at a time", "delete code before adding any",
    ),
    "artist": (
        "a painter of empty rooms", "a weaver from the north", "three young photographers", "a maker of automata",
        "a sculptor in ice", "a forgotten engraver", "a collective that draws maps", "a potter of ninety",
        "a calligrapher", "a glass artist",
    ),
    "plant": (
        "sea holly", "wild garlic", "henbane", "winter aconite", "viper's bugloss", "a bee orchid", "meadow saffron",
        "butterbur", "marsh marigold", "hart's tongue fern", "dog's mercury", "cow parsley",
    ),
    "word": (
        "petrichor", "gloaming", "Fernweh", "hiraeth", "sobremesa", "Waldeinsamkeit", "apricity", "dépaysement",
        "mångata", "verschlimmbessern", "psithurism", "l'esprit de l'escalier",
    ),
    "shop": (
        "the paper shop", "the tailor", "the comic shop", "the tea counter", "the cobbler", "the button shop",
        "the second-hand record shop", "the hardware store", "the bakery by the tram stop", "the fish stall",
    ),
    "change": (
        "closes for good", "has moved round the corner", "opens on Sundays again", "has a new owner",
        "takes orders by letter only", "celebrates forty years", "gives lessons", "is painted yellow now",
    ),
    "meeting": (
        "the planning round", "the data protection hour", "the archive migration", "the canteen committee",
        "the print tender", "the summer party", "the travel expenses form", "the open data portal",
        "the metadata workshop", "the fire drill",
    ),
    "decision": (
        "postponed until the budget is known", "agreed, minutes follow", "two against, nine for",
        "we ask a second supplier", "a pilot with three people", "nobody wanted to write the minutes",
        "to be looked at again after the holidays", "a list goes round", "rejected with thanks",
    ),
    "dreamt": (
        "of a lift that went sideways", "that the sea stood in the stairwell", "of an exam in a swimming pool",
        "of a library without doors", "that all clocks were made of bread", "of a train with gardens in it",
        "of a dog that spoke in footnotes", "that I had to conduct the traffic",
    ),
    "sky": (
        "Saturn's rings edge-on", "the Pleiades through thin cloud", "a bright fireball", "a halo round the moon",
        "the space station for four minutes", "Venus in the west", "the Milky Way over the ridge",
        "Jupiter with three moons", "zodiacal light", "a faint aurora as a grey arc",
    ),
    "music": (
        "a string quartet", "a choir of dockers", "an organ marathon", "a duo with hurdy-gurdy", "a brass band",
        "a lute recital", "a jazz trio", "a gamelan group", "a children's opera", "a folk session",
    ),
    "author": (
        "a Finnish debut", "a history of lighthouses keepers' wages", "a slim book of essays", "a family saga in letters",
        "a travel book from 1934", "a graphic novel on bees", "a collection of ghost stories", "a biography of a botanist",
        "a treatise on chairs", "poems from an island", "a cookery book without pictures", "a history of zero",
    ),
    "exercise": (
        "intervals of two minutes", "an easy loop", "hill repeats", "stretching on the mat", "a slow swim",
        "rowing for half an hour", "a long walk with poles", "skipping rope", "balance on one leg", "climbing hall",
    ),
    "feel": (
        "legs like lead", "went by itself", "side stitch again", "pleasantly tired", "pulse higher than usual",
        "better than last week", "cut it short", "sang on the way home", "cold fingers", "knees fine",
    ),
    "town": (
        "The tram line is to be extended", "The old cinema becomes a market hall", "The bridge is closed for works",
        "A fountain has been found under the square", "The bus drivers are on strike",
        "The school gets a new roof", "The mayor opened a bicycle station", "The baths are heated by waste heat now",
        "The town archive shows its maps", "The chestnut avenue is to be replanted",
    ),
    "reaction": (
        "half the street is against it", "long overdue", "the paper printed the wrong picture", "a petition goes round",
        "nobody noticed", "the children are delighted", "it will cost more than they say", "we will see",
    ),
    "fix": (
        "Limescale", "Candle wax on linen", "A squeaking hinge", "Ink on wood", "A stuck zip", "Rust on scissors",
        "Burnt milk in a pot", "Chewing gum in a carpet", "A wobbling chair", "Cloudy glasses",
    ),
    "remedy": (
        "citric acid and patience", "an iron and brown paper", "graphite from a pencil", "half a lemon", "dry soap",
        "a cut potato", "baking soda overnight", "ice cubes in a bag", "a slip of veneer", "vinegar, warm",
    ),
    "num": tuple(str(number) for number in range(2, 29)),
    "adj": (
        "patient", "grumpy", "brilliant", "absent-minded", "generous", "restless", "punctual", "ironic", "gentle",
        "stubborn", "curious", "exhausted",
    ),
    "topic": (
        "bees", "sailing knots", "tax forms", "old railways", "opera", "origami", "volcanoes", "chess problems",
        "caravans", "mosaics", "kites", "mushroom dyeing", "sundials", "maps of the moon", "tango", "beekeeping law",
    ),
    "stadt": ("Oberlohe", "Quellental", "Kressbach", "Sankt Odo", "Tolvik", "Marnebourg"),
    "wetter": (
        "bei Nieselregen", "in der Mittagshitze", "bei klarem Frost", "im Nebel", "kurz nach einem Gewitter",
        "bei Föhn", "unter grauem Himmel", "im ersten Schnee",
    ),
    "gericht": (
        "Linsensalat", "Spinatknödel", "Grießauflauf", "Krautfleckerl", "Bohneneintopf", "Topfenstrudel",
        "Gemüsecurry", "Kartoffelgulasch", "Zwiebelkuchen", "Rote-Rüben-Carpaccio",
    ),
    "urteil": (
        "beim nächsten Mal weniger Salz", "alle wollten Nachschlag", "zu viel Arbeit für zu wenig",
        "am zweiten Tag besser", "sehr gelungen", "die Kinder mochten es nicht", "reicht für vier",
    ),
    "stand": ("schon stabil", "etwas schief", "ganz hübsch", "noch ohne Farbe", "zu groß geraten", "fast fertig"),
    "ding": ("einen Hocker", "ein Regal", "eine Lampe", "einen Nistkasten", "einen Rahmen", "eine Truhe"),
    "thema": (
        "Moore", "alte Handschriften", "Segelschiffe", "Wolkenformen", "Bergwerke", "Stummfilme", "Glockenguss",
        "Feldhamster", "Papiermühlen", "Seilbahnen", "Wanderheuschrecken",
    ),
}  # fmt: skip

# (kind, tags, title, body)
TEMPLATES: tuple[tuple[str, str, str, str], ...] = (
    ("note", "film", "Film: {film}", "Saw {film} with {who} in {place}. {Mood}. The part with {artist} was the best of it."),
    ("note", "birds", "Seen {spot}", "Saw {bird} {spot}, {weather}. {who} had the better binoculars and saw {bird2} as well."),
    ("item", "food,recipes", "{Dish} with {spice}", "{Dish} with {spice}, from {who}: brown the onions, add {num} spoons of stock, simmer, finish with {spice2}. {Mood}."),
    ("item", "articles", "{Medium} on {subject}", "A {medium} on {subject}. What stays with me: {insight}."),
    ("note", "games", "Games evening with {who}", "We played {game} at {who}'s, {num} rounds. {who2} won, {mood}."),
    ("note", "craft", "Making {thing}", "Worked on {thing} today; {tool} was what I lacked, so I borrowed it from {who}. Glue has to set for {num} hours."),
    ("item", "tech,code", "{lang}: {bug}", "The fault in the {lang} script was {bug}. {Lesson}."),
    ("note", "art", "Exhibition in {place}", "Exhibition in {place}: {artist}. {Mood}; {who} bought a postcard for {num} of us."),
    ("note", "plants", "Found {plant}", "Found {plant} {spot}, {num} of them, in {weather}. Took a photograph for {who}."),
    ("item", "words", "A word: {word}", "Learned the word \"{word}\" from {who}. It fits what we felt in {place}, {weather}."),
    ("note", "town", "News of {shop}", "{Shop} in {place} {change}. {who} says {reaction}."),
    ("note", "work,meetings", "Minutes: {meeting}", "{Meeting}: {decision}. {who} keeps the list, {who2} was {adj}. Next round in {num} days."),
    ("note", "dreams", "Dream", "Dreamt {dreamt}. {who} was in it too, quite {adj}. Woke up to {weather}."),
    ("note", "astronomy", "Sky over {place}", "Saw {sky} from {place}, {weather}. {who} counted to {num} before clouds came."),
    ("note", "music", "Heard {music}", "Heard {music} in {place}. {Mood}. The encore came after {num} minutes of clapping."),
    ("item", "books", "Reading {author}", "Reading {author}, lent by {who}. A sentence on {subject} made me laugh; {insight}."),
    ("note", "sport", "Training: {exercise}", "{Exercise} in {place}, {weather}; {feel}. {num} repetitions."),
    ("item", "town", "Town paper", "{Town}, according to the town paper of {place}: {reaction}."),
    ("item", "household", "{Fix}", "{Fix}: {remedy}. {who} swears by it; with me it took {num} tries."),
    ("node", "people", "{who} from {place}", "{who} from {place} is {adj}, knows everything on {topic} and has {num} cousins."),
    ("node", "people", "{who} and {topic}", "{who} has taken up {topic}; do not ask about {topic2} at table."),
    ("note", "travel", "A day in {place}", "A day in {place} with {who}: {weather}, {music} in the square, then {dish}. {Mood}."),
    ("item", "ideas", "Idea: {subject}", "Could one write a small piece on {subject} and {topic}? {who} would help; {insight}."),
    ("item", "links", "Link: {subject}", "Saved a page on {subject}. Somebody at {shop} had mentioned it. {Insight}."),
    ("note", "letters", "Letter to {who}", "Wrote to {who} in {place} about {topic} and {weather}. Enclosed a drawing of {thing}."),
    ("note", "market", "At the market", "At the market in {place}: {who} sold {spice} and talked of {topic}; {num} euro for a bunch is too much. {Weather}."),
    ("node", "taste", "On {topic}", "I could listen to {who} on {topic} for hours, though {subject} bores me."),
    ("note", "work", "Colleague story", "{who} told at lunch how {insight}; it was about {subject}. {who2} did not believe it."),
    ("note", "film", "Kino", "Mit {who} in {stadt} einen Film über {thema} gesehen, {wetter} nach Hause gegangen."),
    ("item", "food,recipes", "{gericht}", "{gericht} nach {who}: {num} Löffel mehr Brühe als im Heft, {urteil}."),
    ("note", "craft", "Werkstatt", "Habe {ding} gebaut, {who} hat geholfen. Noch {num} Schrauben fehlen, aber es ist {stand}."),
    ("item", "articles", "Sendung über {thema}", "Eine Sendung über {thema} gehört, während ich {gericht} gekocht habe. {who} kannte den Sprecher."),
    ("note", "travel", "Ausflug nach {stadt}", "Ausflug nach {stadt} mit {who}, {wetter}. Im Heimatmuseum ging es um {thema}."),
)  # fmt: skip
LONG_EVERY = 29  # each such row is a log of many entries, so that length alone tells nothing
URL_TAGS = ("links", "articles")


def distractors(count: int = COUNT) -> list[dict[str, Any]]:
    """`count` rows with the fields of notes.jsonl, ids "d0001" on, no two with the same text."""
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    number = 0
    while len(rows) < count:
        number += 1
        template = TEMPLATES[_draw(number, "template", len(TEMPLATES))]
        row = _row(f"d{len(rows) + 1:04}", number, template)
        if row["body"] not in seen:
            seen.add(row["body"])
            rows.append(row)
    return rows


def _row(id_: str, number: int, template: tuple[str, str, str, str]) -> dict[str, Any]:
    kind, tags, title, body = template
    day = FIRST_DAY + datetime.timedelta(days=_draw(number, "day", DAYS))
    text = _fill(body, f"{number}")
    if number % LONG_EVERY == 0:
        kind, tags, title = "note", "log", f"Log of {day:%B %Y}"
        several = [TEMPLATES[_draw(number, f"t{n}", len(TEMPLATES))][3] for n in range(60)]
        text = "\n".join(_fill(each, f"{number}.{n}") for n, each in enumerate(several))
    row: dict[str, Any] = {"id": id_, "kind": kind, "title": _fill(title, f"{number}")}
    if kind == "node":
        row["summary"] = text.split(";")[0].split(",")[0]
        row["valid_from"] = day.isoformat()
    row |= {"tags": tags, "body": text, "trust": "self", "ts": milliseconds(day)}
    if tags in URL_TAGS:
        row |= {"url": f"https://example.org/{number}", "trust": "third_party"}
    return row


def milliseconds(day: datetime.date) -> int:
    """Noon of `day`, UTC, in ms."""
    noon = datetime.datetime(day.year, day.month, day.day, 12, tzinfo=datetime.UTC)
    return int(noon.timestamp()) * 1000


def _fill(pattern: str, key: str) -> str:
    """Slots replaced; `{who2}` is another `who` than `{who}`, `{Mood}` is `{mood}` with a capital."""

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        options = SLOTS[name.rstrip("2").lower()]
        at = _draw(key, name.rstrip("2").lower(), len(options))
        word = (
            options[(at + 1 + _draw(key, name, len(options) - 1)) % len(options)]
            if name[-1] == "2"
            else options[at]
        )
        return word[:1].upper() + word[1:] if name[0].isupper() else word

    return re.sub(r"\{(\w+)\}", replace, pattern)


def _draw(key: object, name: str, below: int) -> int:
    digest = hashlib.sha256(f"{SEED}:{key}:{name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") % below
