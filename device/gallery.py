"""Every page of the handheld as a picture. Owns the examples: typical, empty, the longest texts, German,
other scripts; draws what the layouts draw, and sheets of them.

Invariant: deterministic: the same code gives the same files."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from exo.board.panels import is_paper
from exo.board.profile import every
from exo.device.display import fit
from exo.device.font import Fonts
from exo.device.layouts import Layout, layout_for
from exo.device.layouts.brush import Brush
from exo.device.locale import Texts
from exo.device.pages import Pages, Row, View
from exo.device.strike import Face
from exo.device.text import plain
from PIL import Image

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
    german = layout.texts.language == "de"

    def texts(name: str, **parts: str) -> str:
        """Words as a board with a key called OK and one called Talk has them."""
        words = layout.texts
        return words(name, **{"ok": words("key.ok"), "talk": words("key.talk")} | parts)

    def reply(text: str, title: str, first: int = 0) -> View:
        lines = layout.lay_out(plain(text))
        first = min(first, layout.last(lines))
        scroll = sum(line.height for line in lines[:first])
        return View("reply", NOW, title, lines=lines, scroll=scroll)

    def notice(level: str, text: str, title: str = "") -> View:
        lines = layout.lay_out(text)
        name = title or texts(f"notice.{level}")
        return View("notice", NOW, name, text, level, texts("notice.hint"), lines=lines)

    def card(text: str, title: str, level: str, choices: tuple[str, ...], first: int = 0) -> View:
        lines = layout.lay_out(text)
        scroll = sum(line.height for line in lines[:first])
        return View("card", NOW, title, text, level, lines=lines, scroll=scroll, choices=choices)

    def rows(*labels: str, chosen: int, title: str, hint: str = "", marked: int = -1) -> View:
        parts = [(*label.split("|"), "", "")[:3] for label in labels]
        made = tuple(Row(a, b, c, number == marked) for number, (a, b, c) in enumerate(parts))
        return View("list", NOW, title, rows=made, chosen=chosen, hint=hint)

    def pick(english: str, deutsch: str) -> str:
        return deutsch if german else english

    long = BERLIN if german else PARIS
    asked = pick("What is the capital of France?", "Wie heißt die Hauptstadt von Deutschland?")
    allow = (texts("card.allow"), texts("card.deny"))
    later = (texts("question.type"), texts("question.later"))
    send = SENDEN if german else SEND
    ask, always = texts("card.title"), texts("card.always")
    names = ("sessions", "due", "search", "lock", "settings")
    values = ("", "2", "", "", "")
    icons = ("", "", "", "lock", "")
    menu = [
        f"{texts(f'menu.{name}')}|{value}|{icon}"
        for name, value, icon in zip(names, values, icons, strict=True)
    ]
    letters = tuple(Row(letter) for letter in "jklmnopqr")
    acts = tuple(Row(texts(f"entry.{name}")) for name in ("back", "delete", "send"))
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
            next_due=pick("14:20 Tea", "14:20 Tee"),
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
        ),
        "idle-locked": View(
            "idle", NOW, hint=texts("locked.hint"), battery=57, locked=True, pending=True
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
        "reply": replace(reply(long, asked, 2), streaming=True, speaking=True, pending=True),
        "reply-short": reply(pick("It is five past two.", "Es ist fünf nach zwei."), asked),
        "reply-known": replace(reply(long, asked, 99), known=True),
        "reply-scripts": reply(SCRIPTS, "今日の天気"),
        "notice": notice("info", texts("hint.short")),
        "notice-timer": notice("timer", pick("Tea is ready", "Der Tee ist fertig")),
        "notice-warning": notice(
            "warning", pick("The battery is at 8 %.", "Der Akku ist bei 8 %.")
        ),
        "notice-error": notice("error", 3 * texts("error.core", why="Connection refused. ")),
        "list": rows(*menu, title=texts("menu"), chosen=1),
        "list-end": rows(*menu, title=texts("menu"), chosen=4),
        "list-settings": rows(
            "English",
            "Deutsch",
            title=texts("set.screen.language"),
            chosen=1,
            marked=0,
        ),
        "list-values": rows(
            f"{texts('set.voice.backend')}|Piper",
            f"{texts('set.screen.brightness')}|75 %",
            f"{texts('set.screen.sleep')}|120 s",
            f"{texts('set.screen.text')}|{texts('value.screen.text.normal')}",
            f"{texts('set.lock.sleep')}|{texts('value.on')}",
            f"{texts('pin')}|{texts('value.off')}",
            texts("storage"),
            texts("about"),
            texts("end.restart"),
            texts("end.off"),
            texts("end.reset"),
            title=texts("menu.settings"),
            chosen=4,
        ),
        "list-long": rows(
            "Pick up the children from school and buy bread|tomorrow 15:00|bell",
            f"{seldom}|übermorgen|bell",
            "今日の天気と散歩のこと|月曜日|bell",
            "Ok",
            title=texts("menu.due"),
            chosen=1,
        ),
        "list-empty": rows(texts("due.none"), title=texts("menu.due"), chosen=0),
        "card": replace(card(send, ask, "risk", allow), elapsed=105),
        "card-held": replace(card(send, ask, "risk", allow, 2), elapsed=98, progress=0.6),
        "card-always": replace(
            card(send, ask, "risk", (*allow, always)),
            elapsed=61,
            chosen=2,
            hint=texts("card.hold"),
        ),
        "card-question": replace(
            card(
                pick("Which Ada do you mean?", "Welche Ada meinst du?"),
                texts("question.title"),
                "question",
                ("Ada Lovelace", f"Ada {seldom}", "Ada 子", *later),
            ),
            chosen=1,
        ),
        "card-reset": card(
            texts("end.reset.what"),
            texts("end.reset"),
            "risk",
            (texts("confirm.yes"), texts("confirm.no")),
        ),
        "entry": View(
            "entry",
            NOW,
            texts("menu.search"),
            "lovel",
            rows=letters,
            chosen=4,
            hint=texts("entry.hint"),
        ),
        "entry-long": View(
            "entry",
            NOW,
            texts("menu.search"),
            f"Die {seldom} 今日",
            rows=(*letters[:3], *acts, *letters[3:6]),
            chosen=4,
            hint=texts("entry.hint"),
            progress=0.5,
        ),
        "entry-empty": View("entry", NOW, texts("menu.search"), rows=letters, chosen=4),
        "lock": View("lock", NOW, texts("pin.enter"), "7", filled=2, hint=texts("pin.hint")),
        "lock-lost": View(
            "lock",
            NOW,
            texts("pin.enter"),
            texts("entry.lost"),
            filled=8,
            hint=texts("pin.wrong"),
            progress=0.4,
        ),
        "lock-wait": View(
            "lock",
            NOW,
            texts("pin.enter"),
            "0",
            hint=texts("pin.wait", seconds="1:30"),
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


@dataclass(frozen=True)
class Kind:
    """One kind of panel, a way to look at it, and the boards that have it."""

    size: tuple[int, int]
    mode: str
    paper: bool
    boards: tuple[str, ...]
    large: bool = False
    high: bool = False

    @property
    def name(self) -> str:
        kind = "paper" if self.paper else "mono" if self.mode == "1" else "colour"
        ways = "-large" * self.large + "-high" * self.high
        return f"{kind}-{self.size[0]}x{self.size[1]}{ways}"

    def layout(self, fonts: Fonts, language: str) -> Layout:
        texts = Texts(language)
        return layout_for(self.size, self.mode, self.paper, fonts, texts, self.large, self.high)

    def picture(self, layout: Layout, view: View) -> Image.Image:
        """What the panel shows."""
        image = layout.draw(view).image
        if isinstance(layout, Pages):
            image = fit(image, self.size, self.mode, self.paper)
        return image


def kinds() -> list[Kind]:
    """The panels of all boards, a square one that many hats have, and the ways to look at them."""
    found: dict[tuple[tuple[int, int], str, bool], list[str]] = {}
    for board in every():
        panel = board.panel
        key = (panel.size, panel.mode, is_paper(panel.driver))
        found.setdefault(key, []).append(board.name)
    found.setdefault(((240, 240), "RGB", False), [])
    plain_ = [Kind(*key, tuple(boards)) for key, boards in found.items()]
    ways = [replace(kind, large=True) for kind in plain_]
    ways += [replace(kind, high=True) for kind in plain_ if kind.mode == "RGB"]
    return plain_ + ways


GROUND = (58, 62, 70)  # of sheets
# the pages of the sheet of all kinds
CHOSEN = ("idle-due", "listening", "reply", "list", "card-held", "entry")


def draw(folder: Path, report: Callable[[str], None] = print) -> None:
    """Draw every example for every kind into `folder`/KIND/NAME.LANGUAGE.png, a sheet for each kind, and one
    of a few pages on all. Raises OSError."""
    fonts = Fonts()
    few: list[tuple[str, Image.Image]] = []
    for kind in kinds():
        (folder / kind.name).mkdir(parents=True, exist_ok=True)
        pictures: list[tuple[str, Image.Image]] = []
        for language in ("en", "de"):
            layout = kind.layout(fonts, language)
            for name, view in examples(layout).items():
                image = kind.picture(layout, view)
                image.save(folder / kind.name / f"{name}.{language}.png")
                pictures.append((f"{name} {language}", image))
                if language == "en" and name in CHOSEN:
                    few.append((f"{kind.name} {name}", image))
        caption = f"{kind.name}: {', '.join(kind.boards) or 'no board yet'}"
        whole = small(sheet(caption, pictures, fonts))
        whole.save(folder / f"sheet-{kind.name}.png", optimize=True)
        report(f"{folder / kind.name}: {len(pictures)} pictures")
    whole = small(sheet("All kinds of panels", few, fonts, len(CHOSEN)))
    whole.save(folder / "sheet-all.png", optimize=True)
    small(front(fonts)).save(folder / "handheld.png", optimize=True)
    report(f"{folder}: {len(kinds())} sheets, sheet-all.png and handheld.png")


def front(fonts: Fonts) -> Image.Image:
    """The picture of the project's front page: some pages of each kind of panel, rows of one width."""
    rows = (
        (Kind((320, 240), "RGB", False, ()), 1, ("idle-due", "listening", "reply", "card-held")),
        (
            Kind((250, 122), "1", True, ()),
            1,
            ("idle-due", "thinking", "list", "card", "reply-known"),
        ),
        (
            Kind((128, 64), "1", False, ()),
            2,
            ("idle", "listening", "reply", "list", "notice-timer"),
        ),
    )
    gap, wide = 8, 1320
    strips = []
    for kind, scale, names in rows:
        layout = kind.layout(fonts, "en")
        views = examples(layout)
        made = [kind.picture(layout, views[name]).convert("RGB") for name in names]
        height = scale * kind.size[1]
        strip = Image.new("RGB", (wide, height), GROUND)
        step = (wide - scale * kind.size[0]) / (len(made) - 1)
        for number, image in enumerate(made):
            strip.paste(image.resize((scale * image.width, height), 0), (round(number * step), 0))
        strips.append(strip)
    whole = (wide + 2 * gap, sum(strip.height + gap for strip in strips) + gap)
    picture, y = Image.new("RGB", whole, GROUND), gap
    for strip in strips:
        picture.paste(strip, (gap, y))
        y += strip.height + gap
    return picture


def small(picture: Image.Image) -> Image.Image:
    """In 128 colours: a third of the file, and no difference that is seen."""
    return picture.quantize(128, dither=Image.Dither.NONE)


def sheet(
    caption: str, pictures: list[tuple[str, Image.Image]], fonts: Fonts, columns: int = 0
) -> Image.Image:
    """The pictures in rows with their names; small ones twice as large."""
    ink, gap = (230, 232, 236), 12
    bold, medium = Face("bold-21", fonts), Face("medium-18", fonts)
    drawn = [
        (name, image.convert("RGB").resize((scale * image.width, scale * image.height), 0))
        for name, image in pictures
        for scale in (2 if image.width < 200 else 1,)
    ]
    wide = max(image.width for _, image in drawn)
    columns = columns or max(1, 1600 // (wide + gap))
    rows = [drawn[start : start + columns] for start in range(0, len(drawn), columns)]
    heights = [max(image.height for _, image in row) + medium.height + gap for row in rows]
    size = (columns * (wide + gap) + gap, sum(heights) + bold.height + 2 * gap)
    brush = Brush(size, "RGB", GROUND)
    brush.text(gap, gap // 2, caption, bold, ink, size[0] - 2 * gap)
    y = bold.height + gap
    for row, height in zip(rows, heights, strict=True):
        for number, (name, image) in enumerate(row):
            x = gap + number * (wide + gap)
            brush.image.paste(image, (x, y))
            brush.text(x, y + image.height, name, medium, ink, wide)
        y += height
    return brush.image
