"""The contract of the screen port; every panel has to pass it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from exo.board.fake import FakePanel
from exo.board.panels import CABLE, DRIVERS
from exo.board.screen import NoPanel, Screen
from exo.board.steady import Steady
from exo.core.base.errors import BoardError
from exo.device.terminal import TerminalPanel
from PIL import Image, ImageDraw


def terminal_panel() -> Screen:
    _, writing = os.pipe()
    os.set_blocking(writing, False)
    return TerminalPanel((128, 64), "1", writing)


PANELS: dict[str, Callable[[], Screen]] = {
    "sim": FakePanel,
    "paper": lambda: FakePanel((250, 122), "1"),
    "colour": lambda: FakePanel((240, 240), "RGB"),
    "terminal": terminal_panel,
    "none": NoPanel,
    "steady": lambda: Steady.around(FakePanel()),
}
REAL = [f"{care}{name}" for care in ("", "steady ") for name in (*DRIVERS, CABLE)]


@pytest.fixture(params=[*PANELS, *REAL])
def panel(request: pytest.FixtureRequest, rigs: Callable[[str], Any]) -> Screen:
    name = request.param
    if name in PANELS:
        return PANELS[name]()
    rig = rigs(name.removeprefix("steady "))
    return rig.steady() if name.startswith("steady ") else rig.driver()


def picture(screen: Any, seed: int) -> Image.Image:
    """Some boxes and dots, the same for the same `seed`."""
    chance = random.Random(seed)
    image = Image.new(screen.mode, screen.size)
    draw = ImageDraw.Draw(image)
    width, height = screen.size
    for _ in range(12):
        colour = tuple(chance.randrange(256) for _ in range(3))
        x, y = chance.randrange(width), chance.randrange(height)
        end = (min(x + chance.randrange(40), width - 1), min(y + chance.randrange(20), height - 1))
        draw.rectangle((x, y, *end), fill=chance.randrange(2) if screen.mode == "1" else colour)
        draw.point((chance.randrange(width), chance.randrange(height)), "white")
    return image


def test_it_has_a_size_and_a_mode(panel: Screen) -> None:
    assert panel.size[0] > 0
    assert panel.size[1] > 0
    assert panel.mode in ("1", "L", "RGB")


def test_it_shows_a_whole_image_and_a_part(panel: Screen) -> None:
    panel.show(Image.new(panel.mode, panel.size))
    panel.show(Image.new(panel.mode, panel.size, "white"), (8, 8, 16, 24))


def test_an_image_that_does_not_fit_is_refused(panel: Screen) -> None:
    with pytest.raises(BoardError, match="show an image"):
        panel.show(Image.new(panel.mode, (panel.size[0] + 1, panel.size[1])))
    with pytest.raises(BoardError, match="show an image"):
        panel.show(Image.new("CMYK", panel.size))


@pytest.mark.parametrize("box", [(0, 0, 0, 4), (-1, 0, 4, 4), (0, 0, 9999, 4), (8, 8, 4, 4)])
def test_a_box_outside_is_refused(panel: Screen, box: tuple[int, int, int, int]) -> None:
    with pytest.raises(BoardError, match="box"):
        panel.show(Image.new(panel.mode, panel.size), box)


def test_brightness_is_from_0_to_1(panel: Screen) -> None:
    for level in (0.0, 0.5, 1.0):
        panel.power(level)
    for level in (-0.1, 1.1):
        with pytest.raises(BoardError, match="brightness"):
            panel.power(level)


def test_what_was_shown_is_seen(rig: Any) -> None:
    driver = rig.driver()
    for seed in range(3):
        image = picture(driver, seed)
        driver.show(image)
        assert rig.shows(image)


def test_of_an_image_the_box_is_seen(rig: Any) -> None:
    driver = rig.driver()
    seen = picture(driver, 1)
    driver.show(seen)
    chance = random.Random(2)
    width, height = driver.size
    for seed in range(12):
        changed = seen.copy()
        x, y = chance.randrange(width), chance.randrange(height)
        box = (x, y, chance.randrange(x, width) + 1, chance.randrange(y, height) + 1)
        changed.paste(picture(driver, 10 + seed).crop(box), box[:2])
        driver.show(changed, box)
        assert rig.shows(changed), box
        seen = changed


def test_a_panel_begins_black(rig: Any) -> None:
    driver = rig.driver()
    if not driver.paper:
        assert rig.shows(Image.new(driver.mode, driver.size))


def test_dark_keeps_the_image(rig: Any) -> None:
    driver = rig.driver()
    image = picture(driver, 4)
    driver.show(image)
    driver.power(0)
    if not driver.paper:
        assert rig.seen() is None
    driver.power(0.5)
    assert rig.shows(image)
    driver.power(0)
    image = picture(driver, 5)
    driver.show(image)  # while it sleeps
    driver.power(1)
    assert rig.shows(image)


def test_the_fake_takes_over_only_the_box() -> None:
    panel = FakePanel()
    white = Image.new("1", panel.size, 1)
    panel.show(white, (0, 0, 8, 8))
    assert panel.image.getpixel((7, 7))
    assert not panel.image.getpixel((8, 8))
    assert not panel.shows(white)
    panel.show(white)
    assert panel.shows(white)
    panel.power(0)
    assert not panel.shows(white)
