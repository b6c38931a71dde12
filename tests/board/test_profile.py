from __future__ import annotations

from pathlib import Path

import pytest
from exo.board.profile import FOLDER, Overlay, Profile, load, names
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
        ('driver = "sim"', 'driver = "ssd1306"', "panel.bus: ssd1306 is on i2c, not ''"),
        ('mode = "1"', 'mode = "1"\nbus = "i2c"', "panel.bus: sim is on no bus"),
        ('mode = "1"', 'mode = "1"\naddress = 60', "panel.address: its bus has none"),
        ('label = "Up"', 'label = "Up"\npin = 5', "buttons.pin: a simulated board has none"),
        ('name = "up"', 'name = "talk"', "twice"),
        ('name = "talk"', 'name = "speak"', "no button 'talk'"),
        ('keys = ["Enter"]', 'keys = ["Tab"]', "Tab is both talk and ok"),
        ('keys = ["Enter"]', "keys = [3]", "no name of a key"),
        ('speaker = "pc"', 'speaker = "loud"', "audio.speaker"),
        ('speaker = "pc"', 'speaker = "pc"\nvolume = 3', "audio.volume"),
        ("[audio]", "[sound]", "sound: nobody reads it"),
        ('title = "Simulated handheld"', "", "title: it is missing"),
        ('title = "Simulated handheld"', "title = 3", "title: 3 is no str"),
        ("[audio]", "[led]\nkind = 'rgb'\n[audio]", "led.pins"),
        ("[audio]", "[battery]\nkind = 'ina219'\n[audio]", "battery.address: it is missing"),
        ("[audio]", "[detect]\ni2c = ['0x3c']\n[audio]", "detect.i2c"),
        ("[audio]", "[[overlays]]\nline = 'x'\n[audio]", "overlays.line: nobody reads it"),
        ("[audio]", "[pins]\nI2S = 18\n[audio]", "pins.I2S: 18 is no list"),
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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pin = 5", "", "buttons.pin: it is missing"),
        ("pin = 5", "pin = true", "buttons.pin: True is no int"),
        ("pin = 5", 'pin = "GPIO5"', "buttons.pin"),
        ('pull = "up"', "", "buttons.pull: it is missing"),
        ('pull = "up"', 'pull = "up"\nactive_low = false', "up holds 'talk' pressed"),
        ('pull = "up"', 'pull = "down"\nactive_low = true', "down holds 'talk' pressed"),
        ("address = 0x3C", "", "panel.address: it is missing"),
        ("address = 0x3C", "address = 0x78", "panel.address: 0x78 is not within 0x08 to 0x77"),
        ("address = 0x3C", "address = 0x3C\ndevice = [0, 0]", "panel.device: its bus has none"),
        ("address = 0x3C", "address = 0x3C\nrotation = 45", "panel.rotation: 45"),
        ("address = 0x3C", "address = 0x3C\noffset = [-1, 0]", "panel.offset"),
        ("address = 0x3C", "address = 0x3C\npins = { RESET = 4 }", "panel.pins.RESET"),
        ("address = 0x3C", 'address = 0x3C\nactive_low = ["BL"]', "panel.active_low: 'BL'"),
        ('speaker = "pc"', 'speaker = "alsa"', "audio.card: alsa needs its name"),
        ('speaker = "pc"', 'speaker = "pc"\ncard = "usb"', "audio.card"),
    ],
)
def test_a_fault_of_a_real_board(tmp_path: Path, old: str, new: str, said: str) -> None:
    name = "adafruit-oled-bonnet"
    text = (FOLDER / f"{name}.toml").read_text()
    assert old in text
    (tmp_path / f"{name}.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(BoardError) as caught:
        load(name, tmp_path)
    assert said in str(caught.value)


def test_a_button_held_by_an_outer_resistor_is_on_when_it_says_so() -> None:
    (button,) = load("pisugar-whisplay").buttons
    assert (button.pin, button.pull, button.active_low) == (17, "none", False)


def test_the_lines_of_config_txt() -> None:
    assert Overlay("spi", param=True).line == "dtparam=spi=on"
    assert Overlay("i2c_arm_baudrate", param=True, value="400000").line.endswith("=400000")
    assert Overlay("spi0-2cs", value="no_miso").line == "dtoverlay=spi0-2cs,no_miso"


@pytest.mark.parametrize("name", names())
def test_every_trap_of_a_real_board_is_told_in_its_file(name: str) -> None:
    text = (FOLDER / f"{name}.toml").read_text()
    assert name == "sim" or text.count("# Trap: ") >= 2


def wiring(board: Profile) -> str:
    """The row of a board in the wiring table of board/README.md."""
    panel = board.panel
    where = {"i2c": f"I2C {panel.address:#04x}", "spi": f"SPI0 CE{panel.device[1]}", "": ""}
    glass = f"{panel.driver} {panel.size[0]}x{panel.size[1]}"
    glass = "none" if panel.driver == "none" else f"{glass} {where[panel.bus]}".strip()
    low = [
        f"{key} {pin}{' low' if key in panel.active_low else ''}" for key, pin in panel.pins.items()
    ]
    keys = [
        f"{button.name}{'' if button.pin is None else f' {button.pin}'}{'' if button.active_low else ' high'}"
        for button in board.buttons
    ]
    led = ", ".join(f"{key} {pin}" for key, pin in board.led.pins.items()) if board.led else ""
    kept = "; ".join(f"{key} {', '.join(map(str, pins))}" for key, pins in board.reserved.items())
    sound = board.audio.card or "USB"
    cells = [f"`{board.name}`", glass, ", ".join(low), ", ".join(keys), led, sound, kept]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


@pytest.mark.parametrize("name", [name for name in names() if name != "sim"])
def test_the_wiring_table_is_what_the_profiles_say(root: Path, name: str) -> None:
    assert wiring(load(name)) in (root / "board" / "README.md").read_text().splitlines()
