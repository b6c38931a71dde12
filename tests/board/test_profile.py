from __future__ import annotations

from pathlib import Path

import pytest
from exo.board.profile import FOLDER, load, names
from exo.core.base.errors import BoardError


def test_every_shipped_profile_loads() -> None:
    assert "sim" in names()
    for name in names():
        assert load(name).name == name


def test_the_simulated_handheld() -> None:
    board = load("sim")
    assert board.panel.size == (128, 64)
    assert board.panel.mode == "1"
    assert [button.name for button in board.buttons] == ["talk", "up", "down", "ok", "back"]


@pytest.mark.parametrize("name", ["nosuch", "../sim", "", "a/b", "sim.toml"])
def test_an_unknown_board_names_the_known_ones(name: str) -> None:
    with pytest.raises(BoardError, match="sim"):
        load(name)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "sim"', 'name = "other"', "name: it differs"),
        ("size = [128, 64]", "size = [128]", "panel.size"),
        ("size = [128, 64]", "size = [128, true]", "panel.size"),
        ("size = [128, 64]", "size = [0, 64]", "panel.size"),
        ('mode = "1"', 'mode = "2"', "panel.mode"),
        ('driver = "sim"', 'driver = "oled9"', "panel.driver"),
        ('name = "up"', 'name = "talk"', "twice"),
        ('name = "talk"', 'name = "speak"', "no button 'talk'"),
        ('keys = ["Enter"]', 'keys = ["Tab"]', "Tab is both talk and ok"),
        ('keys = ["Enter"]', "keys = [3]", "no name of a key"),
        ('speaker = "pc"', 'speaker = "loud"', "audio.speaker"),
        ('speaker = "pc"', 'speaker = "pc"\nvolume = 3', "audio.volume"),
        ("[audio]", "[sound]", "sound: nobody reads it"),
        ('title = "Simulated handheld"', "", "title: it is missing"),
        ('title = "Simulated handheld"', "title = 3", "title: 3 is no str"),
        ("[panel]", "[panel", "line"),
    ],
)
def test_a_fault_names_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (FOLDER / "sim.toml").read_text()
    assert old in text
    (tmp_path / "sim.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(BoardError) as caught:
        load("sim", tmp_path)
    assert "sim.toml" in str(caught.value)
    assert said in str(caught.value)
