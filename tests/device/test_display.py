"""Pages on the panels of every board."""

from __future__ import annotations

import datetime

import pytest
from exo.board.fake import FakePanel
from exo.board.profile import Profile, every
from exo.device.display import Display
from exo.device.font import Fonts
from exo.device.locale import Texts
from exo.device.pages import Pages, View

NOW = datetime.datetime(2026, 11, 30, 9, 41)


@pytest.mark.parametrize("board", every(), ids=lambda board: board.name)
def test_a_page_is_shown_on_the_panel_of_every_board(board: Profile) -> None:
    panel = FakePanel(board.panel.size, board.panel.mode)
    display = Display(panel, Pages(panel.size, Fonts(), Texts("en")))
    display.show(View("idle", NOW, hint="Hold to talk"))
    assert not display.fault
    assert panel.updates == 1
    assert panel.image.getbbox(), "the panel is black"
