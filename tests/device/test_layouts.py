"""Pages of colour panels and e-paper as pictures. A page that changed on purpose is drawn anew with

    EXO_GOLDEN=write python -m pytest tests/device/test_layouts.py

and looked at before it is committed; `exo-device --gallery DIR` draws all of them."""

from __future__ import annotations

import datetime
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from exo.device import gallery
from exo.device.display import Display
from exo.device.font import Fonts
from exo.device.gallery import Kind, examples, kinds
from exo.device.layouts import Layout, layout_for
from exo.device.layouts.colour import ColourPages
from exo.device.layouts.icons import SHAPES, icon
from exo.device.layouts.paper import PaperPages, still
from exo.device.layouts.sheet import fitting, tail
from exo.device.locale import Texts
from exo.device.pages import Pages, Row, View
from exo.device.strike import Face
from exo.device.terminal import TerminalPanel, cells, tinted, tints
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

GOLDEN = Path(__file__).parent / "golden" / "layouts"
WRITE = os.environ.get("EXO_GOLDEN") == "write"  # read here: no test sees a setting
FONTS = Fonts()
KINDS = {kind.name: kind for kind in kinds()}
FINE = [name for name in KINDS if not name.startswith("mono")]
NOW = datetime.datetime(2026, 11, 30, 14, 5, tzinfo=datetime.UTC)
ROUND = 20  # radius of the corners of a 240 x 280 glass
GOLDENS = {
    "colour-240x240": "idle-due listening thinking reply reply-scripts list card-held",
    "colour-320x240": "starting idle notice-timer list-values card-question entry progress",
    "colour-240x280": "idle-away notice-error list-long card-always lock lock-lost",
    "colour-240x240-large": "idle reply list card entry-long lock-wait",
    "colour-320x240-high": "idle-due thinking list card-held progress-unknown",
    "paper-250x122": "starting idle-due listening reply reply-scripts notice-timer list-long card card-always "
    "entry-long lock progress",
    "paper-250x122-large": "reply list card",
}


def layout(name: str, language: str = "en") -> Layout:
    return KINDS[name].layout(FONTS, language)


CASES = [
    (kind, page, language)
    for kind, pages in GOLDENS.items()
    for page in pages.split()
    for language in (("en", "de") if page in ("list-values", "card", "lock") else ("en",))
]


@pytest.mark.parametrize(("kind", "page", "language"), CASES)
def test_golden(kind: str, page: str, language: str) -> None:
    made = layout(kind, language)
    image = KINDS[kind].picture(made, examples(made)[page])
    path = GOLDEN / f"{kind}-{page}.{language}.png"
    if WRITE:
        GOLDEN.mkdir(exist_ok=True)
        image.save(path, optimize=True)
    with Image.open(path) as golden:
        assert golden.mode == image.mode and golden.size == image.size == KINDS[kind].size
        assert golden.tobytes() == image.tobytes(), f"{path.name} differs; see the top of this file"


def test_goldens_are_small_and_none_is_left_over() -> None:
    files = list(GOLDEN.iterdir())
    assert sum(path.stat().st_size for path in files) < 500_000
    assert {path.name for path in files} == {f"{k}-{p}.{lang}.png" for k, p, lang in CASES}


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("kind", FINE)
def test_every_page_fills_its_panel_and_tells_its_words(kind: str, language: str) -> None:
    made = layout(kind, language)
    for name, view in examples(made).items():
        drawn = made.draw(view)
        assert drawn.image.size == KINDS[kind].size, name
        assert drawn.image.mode == KINDS[kind].mode, name
        assert bool(drawn.text) == (name != "off"), name


@pytest.mark.parametrize(
    ("size", "mode", "paper", "kind"),
    [
        ((128, 64), "1", False, Pages),
        ((240, 240), "RGB", False, ColourPages),
        ((320, 240), "RGB", False, ColourPages),
        ((480, 320), "RGB", False, ColourPages),
        ((160, 80), "RGB", False, Pages),
        ((250, 122), "1", True, PaperPages),
        ((200, 200), "1", True, PaperPages),
        ((104, 48), "1", True, Pages),
    ],
)
def test_a_panel_has_its_layout(
    size: tuple[int, int], mode: str, paper: bool, kind: type[object]
) -> None:
    assert isinstance(layout_for(size, mode, paper, FONTS, Texts()), kind)


@pytest.mark.parametrize("kind", [name for name in FINE if "240x280" in name])
def test_round_corners_hide_nothing(kind: str) -> None:
    made = layout(kind, "de")
    width, height = KINDS[kind].size
    hidden = [
        (x, y)
        for x in range(ROUND)
        for y in range(ROUND)
        if (ROUND - x - 0.5) ** 2 + (ROUND - y - 0.5) ** 2 > ROUND**2
    ]
    for name, view in examples(made).items():
        image = made.draw(view).image
        for x, y in hidden:
            for place in (
                (x, y),
                (width - 1 - x, y),
                (x, height - 1 - y),
                (width - 1 - x, height - 1 - y),
            ):
                assert image.getpixel(place) == (0, 0, 0), f"{name} at {place}"


def changed(kind: str, one: View, other: View) -> float:
    """The part of the panel that is sent anew: the box around what differs."""
    made = layout(kind)
    images = [made.draw(view).image.convert("RGB") for view in (one, other)]
    box = ImageChops.difference(*images).getbbox()
    return (
        (box[2] - box[0]) * (box[3] - box[1]) / (images[0].width * images[0].height) if box else 0
    )


@pytest.mark.parametrize("kind", ["colour-240x240", "colour-320x240", "colour-240x280-large"])
def test_a_step_of_an_animation_changes_a_small_part(kind: str) -> None:
    views = examples(layout(kind))
    thinking, held, unknown = views["thinking"], views["card-held"], views["progress-unknown"]
    assert 0 < changed(kind, thinking, replace(thinking, frame=3)) < 0.05
    assert 0 < changed(kind, held, replace(held, progress=0.65)) < 0.05
    assert 0 < changed(kind, unknown, replace(unknown, frame=6)) < 0.1
    assert 0 < changed(kind, views["idle"], replace(views["idle"], battery=81)) < 0.05


@pytest.mark.parametrize("kind", [name for name in FINE if name.startswith("paper")])
def test_paper_is_still(kind: str) -> None:
    views = examples(layout(kind))
    for name, other in {
        "starting": {"frame": 4},
        "listening": {"levels": (0.9,) * 20, "elapsed": 8},
        "thinking": {"frame": 5, "elapsed": 13},
        "reply": {"speaking": False},
        "card": {"elapsed": 62},
        "lock-wait": {"elapsed": 119, "hint": "Wait 1:59"},
        "progress": {"progress": 0.44},
        "progress-unknown": {"frame": 6},
        "card-held": {"progress": 0.3},
    }.items():
        assert changed(kind, views[name], replace(views[name], **other)) == 0, name
    assert changed(kind, views["card"], replace(views["card"], elapsed=60)) > 0
    assert changed(kind, views["progress"], replace(views["progress"], progress=0.5)) > 0


def test_paper_shows_a_reply_by_the_line_while_it_is_written() -> None:
    made = layout("paper-250x122")
    texts = set()
    words = [
        "It",
        "lies",
        "on",
        "the",
        "Seine",
        "and",
        "has",
        "about",
        "two",
        "million",
        "people",
        "and",
        "a",
        "tower",
        "of",
        "iron",
    ]
    for count in range(1, len(words) + 1):
        lines = made.lay_out(" ".join(words[:count]))
        texts.add(made.draw(View("reply", NOW, "Paris", lines=lines, streaming=True)).text)
    assert len(texts) == len(lines)
    assert "iron" in made.draw(View("reply", NOW, "Paris", lines=lines)).text


def test_paper_draws_once_what_does_not_change() -> None:
    made = layout("paper-250x122")
    view = examples(made)["thinking"]
    assert made.draw(view) is made.draw(replace(view, frame=7, elapsed=99))
    assert still(still(view)) == still(view)


def without_colour(image: Image.Image) -> Image.Image:
    return image.convert("L").point(lambda value: 255 if value > 110 else 0)


@pytest.mark.parametrize("kind", FINE)
def test_no_meaning_is_told_by_colour_alone(kind: str) -> None:
    made = layout(kind)
    levels = [
        View("notice", NOW, "Title", level=level, lines=made.lay_out("text"))
        for level in ("info", "warning", "error", "timer")
    ]
    rows = tuple(Row(label) for label in ("one", "two", "three"))
    lists = [View("list", NOW, "List", rows=rows, chosen=chosen) for chosen in range(3)]
    marks = [
        replace(lists[0], rows=(replace(rows[0], marked=marked), *rows[1:]))
        for marked in (True, False)
    ]
    cards = [
        replace(examples(made)["card"], chosen=chosen, progress=held)
        for chosen, held in ((0, 0.0), (1, 0.0), (0, 0.5))
    ]
    for views in (levels, lists, marks, cards):
        seen = {without_colour(made.draw(view).image).tobytes() for view in views}
        assert len(seen) == len(views), views[0].page


@pytest.mark.parametrize("kind", FINE)
def test_the_end_of_a_card_can_be_read(kind: str) -> None:
    made = layout(kind)
    for choices in (("Hold OK: allow", "Deny"), ("Hold OK: allow", "Deny", "Hold OK: always")):
        lines = made.lay_out("One thing is asked. " * 12 + "The end")
        view = View("card", NOW, "Allow?", level="risk", lines=lines, choices=choices)
        first = made.draw(view).text
        assert "The end" not in first
        scroll = sum(line.height for line in lines[: made.last(lines, "card")])
        assert str(lines[-1]) in made.draw(replace(view, scroll=scroll)).text.split("\n")


@pytest.mark.parametrize("kind", FINE)
def test_both_choices_of_an_approval_are_in_sight(kind: str) -> None:
    for language in ("en", "de"):
        made = layout(kind, language)
        view = examples(made)["card"]
        text = made.draw(view).text.split("\n")
        assert set(view.choices) <= set(text), f"{kind} {language}"


@pytest.mark.parametrize("kind", FINE)
def test_what_is_chosen_is_in_sight(kind: str) -> None:
    made = layout(kind)
    rows = tuple(Row(f"row {number}", "value", "bell" * (number % 2)) for number in range(30))
    choices = tuple(f"choice {number}" for number in range(9))
    for chosen in range(30):
        text = made.draw(View("list", NOW, "List", rows=rows, chosen=chosen)).text.split("\n")
        assert f"row {chosen}" in text
        assert f"{chosen + 1}/30" in text
    for chosen in range(9):
        lines = made.lay_out("Which?")
        view = View("card", NOW, "?", level="question", lines=lines, choices=choices, chosen=chosen)
        assert f"choice {chosen}" in made.draw(view).text.split("\n")


@pytest.mark.parametrize("kind", ["colour-240x240", "colour-240x280-large", "paper-250x122"])
def test_every_line_of_a_reply_can_be_scrolled_to(kind: str) -> None:
    made = layout(kind)
    lines = made.lay_out("\n\n".join(f"Paragraph {n} with a few words in it." for n in range(12)))
    seen: set[str] = set()
    for first in range(made.last(lines) + 1):
        scroll = sum(line.height for line in lines[:first])
        seen |= set(made.draw(View("reply", NOW, "t", lines=lines, scroll=scroll)).text.split("\n"))
    assert {str(line) for line in lines if line.clusters} <= seen


def test_unknown_battery_is_not_drawn_as_empty() -> None:
    for kind in ("colour-240x240", "paper-250x122"):
        made = layout(kind)
        text = made.draw(View("idle", NOW, hint="Hold to talk")).text
        assert "0%" not in text.split("\n")
        assert "0%" in made.draw(View("idle", NOW, hint="Hold to talk", battery=0)).text.split("\n")


def test_a_terminal_shows_a_colour_panel_in_its_colours() -> None:
    made = layout("colour-240x240")
    reading, writing = os.pipe()
    panel = TerminalPanel((240, 240), "RGB", writing)
    panel.show(made.draw(examples(made)["notice-warning"]).image)
    rows = cells(panel.frame, braille=True)
    assert (len(rows[0]), len(rows)) == (60, 30)
    assert panel.colours is not None
    colours = tints(panel.colours, 60, 30)
    amber, white = 16 + 36 * 5 + 6 * 4 + 1, 231
    assert colours[1][30] == amber
    assert white in {colour for row in colours[10:20] for colour in row}
    shown = tinted(rows[1], colours[1])
    assert f"\x1b[38;5;{amber}m" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == rows[1]
    for end in (reading, writing):
        os.close(end)


WORDS = st.text(max_size=60)
VIEWS = st.builds(
    View,
    page=st.sampled_from(
        [
            "starting",
            "idle",
            "listening",
            "thinking",
            "reply",
            "notice",
            "list",
            "card",
            "entry",
            "lock",
            "progress",
            "off",
        ]
    ),
    now=st.just(NOW),
    title=WORDS,
    text=WORDS,
    level=st.sampled_from(["info", "warning", "error", "timer", "risk", "question", "odd"]),
    hint=WORDS,
    elapsed=st.integers(0, 10**6),
    frame=st.integers(0, 10**6),
    levels=st.lists(st.floats(-1, 2), max_size=80).map(tuple),
    scroll=st.integers(0, 2000),
    streaming=st.booleans(),
    speaking=st.booleans(),
    pending=st.booleans(),
    known=st.booleans(),
    core=st.booleans(),
    voice=st.booleans(),
    rows=st.lists(
        st.builds(Row, WORDS, WORDS, st.sampled_from(["", "bell", "odd"]), st.booleans()),
        max_size=12,
    ).map(tuple),
    chosen=st.integers(-1, 14),
    choices=st.lists(WORDS, max_size=6).map(tuple),
    progress=st.floats(-1, 2),
    filled=st.integers(0, 12),
    battery=st.none() | st.integers(0, 100),
    charging=st.booleans(),
    locked=st.booleans(),
    muted=st.booleans(),
    next_due=WORDS,
)
LAYOUTS = [layout(name) for name in FINE]


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(view=VIEWS, number=st.integers(0, len(LAYOUTS) - 1))
def test_any_view_is_drawn(view: View, number: int) -> None:
    made = LAYOUTS[number]
    if view.page in ("reply", "notice", "card"):
        view = replace(view, lines=made.lay_out(view.text))
    first, second = made.draw(view), made.draw(view)
    assert first.image.tobytes() == second.image.tobytes()
    assert first.text == second.text
    assert made.draw(replace(view, page="off")).text == ""


def test_a_display_shows_a_layout_as_it_is() -> None:
    from exo.board.fake import FakePanel

    panel = FakePanel((250, 122), "1", paper=True)
    made = layout("paper-250x122")
    display = Display(panel, made)
    display.show(examples(made)["idle"])
    assert panel.shows(made.draw(examples(made)["idle"]).image)
    assert panel.image.getpixel((0, 60)) == 255  # paper is white


def test_parts_that_pages_share() -> None:
    face, small = Face("medium-26", FONTS), Face("medium-18", FONTS)
    assert fitting("short", 200, face, small) is face
    assert fitting("much longer than that", 180, face, small) is small
    assert tail("short", 200, face) == "short"
    assert tail("a long line of text", 80, face).startswith("…")
    assert tail("a long line of text", 80, face).endswith("text")


def test_every_icon_has_a_form_of_its_own() -> None:
    for size, sharp in ((18, True), (22, False)):
        forms = {name: icon(name, size, sharp).tobytes() for name in SHAPES}
        assert len(set(forms.values())) == len(forms)
    assert icon("no such icon", 22).tobytes() == icon("dot", 22).tobytes()


def test_the_gallery_is_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [Kind((128, 64), "1", False, ("sim",)), Kind((240, 240), "RGB", False, ())]
    monkeypatch.setattr(gallery, "kinds", lambda: few)
    for name in ("one", "two"):
        gallery.draw(tmp_path / name, lambda text: None)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.png"))
    assert {"sheet-all.png", "sheet-mono-128x64.png", "sheet-colour-240x240.png"} <= {
        str(path) for path in files
    }
    assert len(files) == 4 + 2 * 2 * len(examples(layout("colour-240x240")))
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_letters_and_contrast_are_followed_at_once(tmp_path: Path) -> None:
    from exo.board.fake import FakeButtons, FakeMicrophone, FakePanel, FakeSpeaker
    from exo.core.base.home import Home
    from exo.core.base.settings import Settings
    from exo.device.app import build

    home = Home(tmp_path)
    home.make()
    panel = FakePanel((240, 240), "RGB")
    parts = FakeButtons(), FakeMicrophone(), FakeSpeaker()
    handheld = build(home, Settings.load(home.settings_file), panel, *parts)
    handheld.step()
    seen = [panel.image.tobytes()]
    for name, value in (
        ("screen.text", "large"),
        ("screen.contrast", "high"),
        ("screen.language", "de"),
        ("screen.text", "normal"),
    ):
        handheld.apply(name, value)
        handheld.step()
        seen.append(panel.image.tobytes())
    handheld.link.close()  # type: ignore[attr-defined]
    assert len(set(seen)) == 5
    assert handheld.display.shown and "Warte" in handheld.display.shown.text
