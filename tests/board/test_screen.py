"""The contract of the screen port; every panel has to pass it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from exo.board.fake import FakePanel
from exo.board.screen import NoPanel, Screen
from exo.core.base.errors import BoardError
from exo.device.terminal import TerminalPanel
from PIL import Image


def terminal_panel() -> Screen:
    _, writing = os.pipe()
    os.set_blocking(writing, False)
    return TerminalPanel((128, 64), "1", writing)


PANELS: list[Callable[[], Screen]] = [
    FakePanel,
    lambda: FakePanel((250, 122), "1"),
    lambda: FakePanel((240, 240), "RGB"),
    terminal_panel,
]


@pytest.fixture(params=PANELS, ids=["sim", "paper", "colour", "terminal"])
def panel(request: pytest.FixtureRequest) -> Screen:
    return request.param()


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


def test_a_board_without_a_panel_takes_any_image() -> None:
    panel: Screen = NoPanel((128, 64), "1")
    assert (panel.size, panel.mode) == ((128, 64), "1")
    panel.show(Image.new("1", panel.size))
    panel.show(Image.new("RGB", (7, 9)), (0, 0, 1, 1))
    panel.power(0.0)
