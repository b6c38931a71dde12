from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from exo.board.detect import choose, is_board, on_bus, text, wanted
from exo.core.base.errors import BoardError
from exo.core.base.home import Home
from exo.core.base.settings import Settings

PI = "Raspberry Pi Zero 2 W Rev 1.0"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A device tree of a Pi with nothing on its header."""
    (tmp_path / "model").write_bytes(PI.encode() + b"\0")
    return tmp_path


def with_hat(tree: Path, product: str) -> Path:
    (tree / "hat").mkdir()
    (tree / "hat" / "product").write_bytes(product.encode() + b"\0")
    return tree


class Bus:
    """An I2C bus; `asked` are the addresses that were tried."""

    def __init__(self, *there: int) -> None:
        self.there, self.asked = set(there), set[int]()

    def __call__(self, addresses: Iterable[int]) -> set[int]:
        self.asked |= set(addresses)
        return self.there & set(addresses)


def test_what_was_set_wins_and_is_not_looked_for(tree: Path) -> None:
    bus = Bus(0x3C)
    choice = choose("waveshare-oled-1in3", "--board", tree=tree, answers=bus)
    assert str(choice) == "board = waveshare-oled-1in3 (--board)"
    assert not bus.asked


def test_a_name_that_is_no_board_is_an_error(tree: Path) -> None:
    with pytest.raises(BoardError, match="no such profile"):
        choose("nosuch", "--board", tree=tree)


def test_a_pc_is_the_simulator(tmp_path: Path) -> None:
    bus = Bus(0x3C)
    choice = choose(tree=tmp_path / "absent", answers=bus)
    assert choice.profile.name == "sim"
    assert "no device tree" in choice.why
    assert not bus.asked, "somebody's own I2C was touched"
    assert not is_board(tmp_path)


@pytest.mark.parametrize(
    ("there", "name", "why"),
    [
        ([0x3C], "adafruit-oled-bonnet", "I2C 0x3c answers"),
        ([0x18], "respeaker-2mic", "I2C 0x18 answers"),
        ([0x1A], "respeaker-2mic", "I2C 0x1a answers"),
        ([0x1A, 0x35], "sim", "nothing known on the header of " + PI),
        ([], "sim", "set `board`"),
        ([0x3C, 0x18], "sim", "adafruit-oled-bonnet or respeaker-2mic; set `board`"),
    ],
)
def test_a_board_is_known_by_what_answers(
    tree: Path, there: list[int], name: str, why: str
) -> None:
    choice = choose(tree=tree, answers=Bus(*there))
    assert choice.profile.name == name
    assert why in choice.why
    assert is_board(tree)


def test_the_eeprom_comes_first(tree: Path) -> None:
    bus = Bus(0x1A)
    choice = choose(tree=with_hat(tree, "PiSugar Whisplay HAT"), answers=bus)
    assert str(choice) == "board = pisugar-whisplay (EEPROM says PiSugar Whisplay HAT)"
    assert not bus.asked


def test_an_eeprom_that_is_not_known_leaves_the_bus_to_tell(tree: Path) -> None:
    with_hat(tree, "Somebody's Relay Board")
    assert choose(tree=tree, answers=Bus(0x3C)).profile.name == "adafruit-oled-bonnet"
    choice = choose(tree=tree, answers=Bus())
    assert choice.profile.name == "sim"
    assert "Somebody's Relay Board" in choice.why


def test_another_machine_with_a_device_tree_is_the_simulator(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"Pine64 Rock64\0")
    assert choose(tree=tmp_path, answers=Bus(0x3C)).profile.name == "sim"
    assert not is_board(tmp_path)


def test_texts_of_the_device_tree(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"\xff\0")
    assert text(tmp_path / "broken")
    assert text(tmp_path) == text(tmp_path / "absent") == ""


def test_no_bus_no_answer(tmp_path: Path) -> None:
    (tmp_path / "i2c-1").write_bytes(b"no bus")
    assert on_bus([0x3C], tmp_path / "absent") == set()
    assert on_bus([0x3C], tmp_path / "i2c-1") == set()


def test_the_setting_says_where_it_stands(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wanted(Settings.load(home.settings_file)) == ("", "")
    home.settings_file.write_text('board = "sim"\n')
    assert wanted(Settings.load(home.settings_file)) == ("sim", str(home.settings_file))
    monkeypatch.setenv("EXO_BOARD", "respeaker-2mic")
    assert wanted(Settings.load(home.settings_file)) == ("respeaker-2mic", "EXO_BOARD")
