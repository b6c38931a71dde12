"""Every page as a picture. A page that changed on purpose is drawn anew with

    EXO_GOLDEN=write python -m pytest tests/device/test_pages.py

and looked at before it is committed."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from exo.device.display import dots, fit, unfit
from exo.device.font import Fonts
from exo.device.locale import FOLDER, Texts
from exo.device.pages import Pages, Row, View
from exo.device.settings import OPTIONS
from exo.device.text import plain
from PIL import Image

GOLDEN = Path(__file__).parent / "golden"
FONTS = Fonts()
WRITE = os.environ.get("EXO_GOLDEN") == "write"  # read here: no test sees a setting
NOW = datetime.datetime(2026, 11, 30, 14, 5, tzinfo=datetime.UTC)
LEVELS = tuple(abs(math.sin(n / 3)) * (n % 5) / 5 for n in range(40))
LONG = (
    "The capital of **France** is Paris. It lies on the Seine and has about 2.1 million people; "
    "“la Ville Lumière” is its old name — and it is well-known. Café, naïve, Ωmega, Привет 😀 ok."
)


def pages(language: str = "en", size: tuple[int, int] = (128, 64)) -> Pages:
    return Pages(size, FONTS, Texts(language))


def views(page: Pages) -> dict[str, View]:
    texts = page.texts

    def reply(text: str, title: str, first: int = 0, **more: bool) -> View:
        lines = page.lay_out(plain(text))
        scroll = sum(line.height for line in lines[:first])
        return View("reply", NOW, title, lines=lines, scroll=scroll, **more)

    def notice(level: str, text: str, first: int = 0) -> View:
        lines = page.lay_out(text)
        return View(
            "notice",
            NOW,
            texts(f"notice.{level}"),
            text,
            level,
            texts("notice.hint", ok="OK"),
            lines=lines,
            scroll=sum(line.height for line in lines[:first]),
        )

    away = texts("error.core", why="Connection refused")
    return {
        "starting": View("starting", NOW, text=texts("starting.exod"), frame=2),
        "idle": View("idle", NOW, hint=texts("idle.hint")),
        "idle-toggle": View("idle", NOW, hint=texts("idle.toggle"), pending=True),
        "idle-away": View("idle", NOW, hint=texts("idle.no_core"), core=False, voice=False),
        "listening": View(
            "listening", NOW, levels=LEVELS, elapsed=63, hint=texts("listening.hint")
        ),
        "hearing": View("thinking", NOW, texts("thinking"), texts("thinking.hearing"), frame=1),
        "thinking": View("thinking", NOW, texts("thinking"), "What is the capital of France? " * 5),
        "tool": View(
            "thinking", NOW, texts("thinking.tool", tool="read_file"), "Read it", elapsed=9
        ),
        "reply": reply(LONG, "What is the capital of France?", streaming=True, speaking=True),
        "reply-end": reply(LONG, "What is the capital of France?", 4, pending=True),
        "reply-short": reply("Paris.", "Capital?"),
        "reply-known": reply("You told me: My sister is called Zelmira", "My sister?", known=True),
        "why": notice("info", "My sister is called Zelmira\nMon 30 Nov, you said: Remember it"),
        "reply-cjk": reply("今日は天気がいいですね。散歩に行きましょう！はい。", "今日の天気"),
        "reply-scripts": reply("한국어 — ไทย\nעברית العربية\n数学 ∑∞ ✓", "Ω Ж é 你"),
        "timer": notice("timer", "Tea is ready"),
        "error": notice("error", away),
        "error-long": notice(
            "error", away + ". " + "Run `exo doctor` to see what is wrong. " * 3, 2
        ),
        "hint": notice("info", texts("hint.short")),
        "off": View("off", NOW),
        "idle-full": View(
            "idle",
            NOW,
            hint=texts("idle.hint"),
            battery=87,
            charging=True,
            next_due="15:10 Tea with Anna",
            pending=True,
        ),
        "idle-locked": View("idle", NOW, hint=texts("locked.hint"), battery=4, locked=True),
        **listed(texts),
        **asked(page),
        **entered(texts),
        "import": View("progress", NOW, "Import", "mail.mbox: 1,204 of 8,000", progress=0.15),
        "import-unknown": View("progress", NOW, "Import", "Looking through it", progress=-1),
    }


def listed(texts: Texts) -> dict[str, View]:
    menu = (
        Row("Which of the two drafts?", icon="question"),
        Row(texts("menu.sessions")),
        Row(texts("menu.due"), "2"),
        Row(texts("menu.search")),
        Row(texts("menu.lock"), icon="lock"),
        Row(texts("menu.settings")),
        Row(texts("back"), icon="back"),
    )
    talks = (
        Row(texts("sessions.new"), icon="add"),
        Row("The capital of France and what to see there", marked=True),
        Row("明日の天気"),
    )
    due = (
        Row("Tea", "4:59", "bell"),
        Row("Call the dentist about Tuesday", "17:30", "clock"),
        Row("Water the plants", "Tue 1 Dec", "clock"),
    )
    settings = (
        Row(texts("set.voice.backend"), "Piper"),
        Row(texts("set.screen.language"), texts("value.screen.language.en")),
        Row(texts("set.screen.brightness"), "100 %"),
        Row(texts("set.screen.sleep"), texts("value.screen.sleep.0")),
        Row(texts("set.lock.sleep"), texts("value.off")),
        Row(texts("storage")),
        Row(texts("end.reset")),
    )
    choice = (Row("10 %"), Row("50 %", marked=True), Row("100 %"))
    return {
        "menu": View("list", NOW, texts("menu"), rows=menu, chosen=2),
        "menu-end": View("list", NOW, texts("menu"), rows=menu, chosen=6),
        "sessions": View("list", NOW, texts("menu.sessions"), rows=talks, chosen=1),
        "due": View("list", NOW, texts("menu.due"), rows=due, chosen=1),
        "settings": View("list", NOW, texts("menu.settings"), rows=settings, chosen=1),
        "choice": View("list", NOW, texts("set.screen.brightness"), rows=choice, chosen=1),
        "list-empty": View("list", NOW, texts("menu.due"), rows=(Row(texts("due.none")),)),
    }


def asked(page: Pages) -> dict[str, View]:
    texts = page.texts
    yes, no = texts("card.allow", ok="OK"), texts("card.deny", ok="OK")
    always = texts("card.always", ok="OK")

    def card(text: str, level: str = "risk", first: int = 0, **more: Any) -> View:
        lines = page.lay_out(text)
        scroll = sum(line.height for line in lines[:first])
        title = texts("card.title" if level == "risk" else "question.title")
        return View("card", NOW, title, text, level, lines=lines, scroll=scroll, **more)

    push = (
        "git push origin main: others see it, no undo\nBy: bash\n"
        "command: git commit -am 'Fix README typo' && git push origin main"
    )
    last = page.last(page.lay_out(push), "card")
    which = "Which of the two drafts do you want to send to Anna?"
    texts_reset = texts("end.reset.what")
    return {
        "card": card(push, choices=(yes, no), elapsed=118),
        "card-held": card(push, choices=(yes, no), elapsed=100, progress=0.6),
        "card-deny": card(push, first=last, choices=(yes, no, always), chosen=1, elapsed=61),
        "card-always": card(push, first=last, choices=(yes, no, always), chosen=2, elapsed=9),
        "card-words": card(push, choices=(yes, no), elapsed=9, hint=texts("card.words")),
        "question": card(which, "question", choices=("The short one", "The long one"), chosen=1),
        "confirm": View(
            "card",
            NOW,
            texts("end.reset"),
            texts_reset,
            "risk",
            lines=page.lay_out(texts_reset),
            choices=(texts("confirm.yes", ok="OK"), texts("confirm.no")),
        ),
    }


def entered(texts: Texts) -> dict[str, View]:
    def around(*letters: str) -> tuple[Row, ...]:
        return tuple(Row(letter) for letter in letters)

    letters = around(texts("entry.send"), *"eta", "o", "i", "n", "s", "h")
    signs = around(
        "8", "9", texts("entry.back"), texts("entry.delete"), texts("entry.send"), *"etao"
    )
    entry = {"hint": texts("entry.hint", ok="OK"), "chosen": 4}
    hint = texts("pin.hint", ok="OK")
    return {
        "entry": View("entry", NOW, texts("menu.search"), "zelm", rows=letters, **entry),
        "entry-send": View(
            "entry",
            NOW,
            texts("menu.search"),
            "what did I say about the plants and the garden",
            rows=signs,
            progress=0.4,
            **entry,
        ),
        "pin": View("lock", NOW, texts("pin.enter"), "7", hint=hint, filled=3),
        "pin-delete": View(
            "lock", NOW, texts("pin.enter"), texts("entry.delete"), hint=hint, filled=5
        ),
        "pin-wait": View("lock", NOW, texts("pin.enter"), "0", hint=hint, elapsed=285),
        "pin-wrong": View("lock", NOW, texts("pin.enter"), "0", hint=texts("pin.wrong")),
    }


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", list(views(pages())))
def test_golden(name: str, language: str) -> None:
    page = pages(language)
    image = page.draw(views(page)[name]).image
    path = GOLDEN / f"{name}.{language}.png"
    if WRITE:
        GOLDEN.mkdir(exist_ok=True)
        image.save(path)
    with Image.open(path) as golden:
        assert golden.mode == image.mode == "1"
        assert golden.tobytes() == image.tobytes(), f"{path.name} differs; see the top of this file"


LARGE = (
    "reply",
    "reply-scripts",
    "thinking",
    "menu",
    "due",
    "card",
    "card-deny",
    "question",
    "error-long",
)


@pytest.mark.parametrize("name", LARGE)
def test_golden_of_large_letters(name: str) -> None:
    page = Pages((128, 64), FONTS, Texts(), large=True)
    image = page.draw(views(page)[name]).image
    path = GOLDEN / f"large-{name}.png"
    if WRITE:
        image.save(path)
    with Image.open(path) as golden:
        assert golden.tobytes() == image.tobytes(), f"{path.name} differs; see the top of this file"


@pytest.mark.parametrize(
    ("size", "paper", "page", "factor"),
    [
        ((128, 64), False, (128, 64), 1),
        ((128, 32), False, (128, 32), 1),
        ((240, 240), False, (120, 120), 2),
        ((240, 280), False, (120, 140), 2),
        ((320, 240), False, (160, 120), 2),
        ((250, 122), True, (250, 122), 1),
        ((480, 320), False, (120, 80), 4),
        ((241, 121), False, (120, 60), 2),
    ],
)
def test_a_dot_is_a_whole_number_of_pixels(
    size: tuple[int, int], paper: bool, page: tuple[int, int], factor: int
) -> None:
    assert dots(size, paper) == page
    dot = Image.new("1", page)
    dot.putpixel((0, 0), 1)
    image = fit(dot, size, "RGB", paper)
    assert image.size == size
    ink, ground = ("black", "white") if paper else ("white", "black")
    x, y = (size[0] - factor * page[0]) // 2, (size[1] - factor * page[1]) // 2
    expected = Image.new("RGB", size, ground)
    expected.paste(ink, (x, y, x + factor, y + factor))
    assert image.tobytes() == expected.tobytes()
    assert unfit(image, paper).tobytes() == dot.tobytes()


@pytest.mark.parametrize("size", [(128, 32), (128, 64), (250, 122), (240, 240)])
def test_other_panels_are_drawn_too(size: tuple[int, int]) -> None:
    page = pages(size=size)
    for view in views(page).values():
        assert page.draw(view).image.size == size


def test_what_is_drawn_can_be_read() -> None:
    page = pages()
    assert page.draw(views(page)["reply"]).text.split("\n")[:2] == [
        "What is the cap…",
        "The capital of France",
    ]
    assert "14:05" in page.draw(views(page)["idle"]).text


def test_the_title_does_not_jump_while_words_stream() -> None:
    page = pages()
    pictures = set()
    for frame in range(4):
        view = View(
            "reply",
            NOW,
            "What is the capital of France?",
            frame=frame,
            streaming=True,
            speaking=True,
        )
        pictures.add(page.draw(view).text)
    assert len(pictures) == 1


def test_languages_have_the_same_words() -> None:
    english = json.loads((FOLDER / "en.json").read_text())
    for path in FOLDER.glob("*.json"):
        words = json.loads(path.read_text())
        assert words.keys() == english.keys(), path.name
        for name, text in words.items():
            assert text.count("{") == english[name].count("{"), f"{path.name}: {name}"


@pytest.mark.parametrize("language", ["en", "de"])
def test_hints_and_titles_fit_their_line(language: str) -> None:
    from exo.device.canvas import Canvas

    canvas = Canvas((128, 64), FONTS)
    words = json.loads((FOLDER / f"{language}.json").read_text())
    for name in ("idle.hint", "idle.toggle", "idle.no_core", "idle.no_voice"):
        assert canvas.length(words[name]) <= 118, words[name]
    for name in ("listening.hint", "listening.toggle", "starting.exod", "thinking.hearing"):
        assert canvas.length(words[name]) <= 128, words[name]
    for name in ("info", "warning", "error", "timer"):
        room = 128 - 13 - canvas.length(words["notice.hint"].format(ok="OK"))
        assert canvas.length(words[f"notice.{name}"]) <= room, words[f"notice.{name}"]


ROOM = {  # pixels that a word has, by the page on which it stands
    "idle": (118, ("locked.hint",)),
    "choice": (112, ("card.allow", "card.deny", "card.always", "confirm.yes", "confirm.no",
                     "question.type", "question.later")),
    "bottom": (128, ("entry.hint", "entry.single", "pin.hint", "pin.short", "pin.wrong", "pin.differ", "pin.wait")),
    "title with a time": (128 - 13 - 24, ("card.title", "card.ask", "card.hold", "card.words")),
    "title": (128 - 13, ("pin.new", "pin.again", "pin.old", "pin.lost", "due.cancel", "question.title")),
    "title with a place": (128 - 3 - 18, ("menu", "menu.sessions", "menu.due", "menu.settings")),
    "row": (115, ("menu.last", "menu.search", "menu.lock", "back", "sessions.new", "due.none",
                  "search.none", "pin.change", "pin.remove", "end.restart", "end.off", "end.reset")),
}  # fmt: skip
PARTS = {"digits": "4", "seconds": "59:59"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_words_of_pages_fit_their_place(path: Path) -> None:
    from exo.device.canvas import Canvas

    canvas, texts = Canvas((128, 64), FONTS), Texts(path.stem)
    for place, (room, names) in ROOM.items():
        for name, key in itertools.product(names, ("key.ok", "key.talk")):
            text = texts(name, ok=texts(key), **PARTS)
            assert canvas.length(text) <= room, f"{name}, {place}: {text!r}"
    for option in OPTIONS:
        label = texts(f"set.{option.name}")
        for value in option.values:
            name = f"value.{option.name}.{value}"
            shown = texts(name) if name in texts else f"{value} {option.unit}".strip()
            assert canvas.length(label + shown) <= 120, (label, shown)


def test_an_unknown_language_is_english() -> None:
    assert Texts("xx").language == "en"
