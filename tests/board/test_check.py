from __future__ import annotations

from dataclasses import replace

import pytest
from exo.board.check import Problem, check
from exo.board.config_txt import parse
from exo.board.profile import Battery, Button, Profile, every, load

CONFIG = """
# from the maker
dtparam=i2c_arm=on,i2c_arm_baudrate=400000
dtparam=spi=on   # the panel
[cm5]
dtoverlay=dwc2,dr_mode=host
[all]
"""
CARDS = """ 0 [vc4hdmi        ]: vc4-hdmi - vc4-hdmi
                      vc4-hdmi
 1 [seeed2micvoicec]: seeed-2mic-voic - seeed-2mic-voicecard
                      seeed-2mic-voicecard
"""
NO_CARDS = "--- no soundcards ---\n"


def pins(problems: list[Problem]) -> set[int | None]:
    return {problem.pin for problem in problems}


def with_button(board: Profile, pin: int) -> Profile:
    return replace(board, buttons=(*board.buttons, Button("extra", "Extra", pin=pin)))


@pytest.mark.parametrize("board", every(), ids=lambda board: board.name)
def test_every_board_alone_fits(board: Profile) -> None:
    assert check([board]) == []


@pytest.mark.parametrize(
    ("one", "other", "clashes"),
    [
        ("adafruit-oled-bonnet", "respeaker-2mic", {17}),
        ("waveshare-oled-1in3", "respeaker-2mic", {10, 13, 19, 20, 21}),
        ("waveshare-oled-1in3", "pisugar-whisplay", {4, 8, 19, 20, 21, 24, 25, None}),
        ("pimoroni-display-hat-mini", "respeaker-2mic", {10, 13, 17}),
        ("waveshare-epaper-2in13-v4", "respeaker-2mic", {10, 13, 17, 18}),
        ("pisugar-whisplay", "respeaker-2mic", {10, 17, 18, 19, 20, 21}),
    ],
)
def test_what_does_not_stack(one: str, other: str, clashes: set[int | None]) -> None:
    found = check([load(one), load(other)])
    assert pins(found) == clashes - ({4} if one.startswith("waveshare") else set())
    assert pins(check([load(other), load(one)])) == pins(found), "the order matters"


def test_a_stick_on_the_sound_pins_says_to_use_usb() -> None:
    found = check([load("waveshare-oled-1in3"), load("respeaker-2mic")])
    (problem,) = (each for each in found if each.pin == 19)
    assert "respeaker-2mic I2S" in problem.what or "respeaker-2mic I2S" in problem.part
    assert "waveshare-oled-1in3 button down" in (problem.part + problem.what)
    assert "USB sound" in problem.mend


def test_a_mend_names_pins_that_are_free_indeed() -> None:
    boards = [load("adafruit-oled-bonnet"), load("respeaker-2mic")]
    (problem,) = check(boards)
    free = [int(word) for word in problem.mend.rpartition(":")[2].split(",")]
    assert free
    for pin in free:
        assert check([replace(boards[0], buttons=boards[0].buttons[:1]), boards[1]]) == []
        moved = with_button(replace(boards[0], buttons=boards[0].buttons[:1]), pin)
        assert check([moved, boards[1]]) == []


def test_two_sound_cards() -> None:
    found = check([load("pisugar-whisplay"), load("respeaker-2mic")])
    assert all("take one of them off" in each.mend for each in found if each.pin in (18, 19, 20))


def test_two_panels_on_one_chip_select() -> None:
    found = check([load("waveshare-oled-1in3"), load("waveshare-epaper-2in13-v4")])
    assert any(each.pin == 8 and "chip select" in each.mend for each in found)
    assert any("each has a panel" in each.what for each in found)


def test_one_address_twice() -> None:
    bonnet = load("adafruit-oled-bonnet")
    found = check([replace(bonnet, battery=Battery("max17048", 0x3C))])
    assert [each.what for each in found] == ["I2C address 0x3c is also adafruit-oled-bonnet panel"]
    assert check([replace(bonnet, battery=Battery("max17048", 0x36))]) == []


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        (28, "the header has no GPIO 28"),
        (-1, "the header has no GPIO -1"),
        (0, "belongs to the EEPROM"),
        (2, "is I2C"),
        (22, "also adafruit-oled-bonnet button down"),
    ],
)
def test_a_pin_that_cannot_be(pin: int, said: str) -> None:
    found = check([with_button(load("adafruit-oled-bonnet"), pin)])
    assert any(said in each.what and each.part.endswith("button extra") for each in found)
    assert all(each.mend for each in found)


def test_what_config_txt_lacks_is_named_with_its_line() -> None:
    board = load("adafruit-oled-bonnet")
    assert check([board], CONFIG) == []
    found = check([board], CONFIG.replace(",i2c_arm_baudrate=400000", ""))
    assert [each.what for each in found] == ["config.txt lacks dtparam=i2c_arm_baudrate=400000"]
    assert "`dtparam=i2c_arm_baudrate=400000`" in found[0].mend
    assert len(check([board], "")) == 2


def test_an_overlay_and_its_parameter_are_needed_both() -> None:
    board = load("pimoroni-display-hat-mini")
    assert check([board], "dtoverlay=spi0-2cs,no_miso") == []
    for text in ("dtparam=spi=on", "dtoverlay=spi0-2cs", "#dtoverlay=spi0-2cs,no_miso"):
        assert [each.what for each in check([board], text)] == [
            "config.txt lacks dtoverlay=spi0-2cs,no_miso"
        ]


def test_the_sound_cards_overlay_is_wanted_too() -> None:
    found = check([load("respeaker-2mic")], CONFIG)
    assert [each.what for each in found] == ["config.txt lacks dtoverlay=respeaker-2mic-v2_0"]
    assert check([load("respeaker-2mic")], CONFIG + "dtoverlay=respeaker-2mic-v2_0\n") == []


def test_a_card_that_is_there_needs_no_overlay() -> None:
    """Version 1 of the board has a driver of its own, under another name."""
    assert check([load("respeaker-2mic")], CONFIG, CARDS) == []
    assert len(check([load("respeaker-2mic")], CONFIG, NO_CARDS)) == 2


def test_a_line_that_takes_our_pin() -> None:
    board = load("adafruit-oled-bonnet")
    (problem,) = check([board], CONFIG + "dtoverlay=w1-gpio\n")
    assert (problem.pin, problem.part) == (4, "adafruit-oled-bonnet button ok")
    assert "dtoverlay=w1-gpio" in problem.what
    assert check([board], CONFIG + "dtoverlay=w1-gpio,gpiopin=16\n") == []
    assert pins(check([board], CONFIG + "dtoverlay=w1-gpio,gpiopin=5\n")) == {5}


def test_the_serial_console_and_the_chip_selects_are_taken() -> None:
    board = load("adafruit-oled-bonnet")
    assert pins(check([with_button(board, 15)], CONFIG + "enable_uart=1")) == {15}
    assert check([with_button(board, 15)], CONFIG + "enable_uart=0") == []
    assert pins(check([with_button(board, 7)], CONFIG)) == {7}
    assert check([with_button(board, 7)], CONFIG.replace("dtparam=spi=on", "")) == []


def test_a_sound_overlay_takes_the_sticks_pins() -> None:
    found = check([load("waveshare-oled-1in3")], CONFIG + "dtoverlay=hifiberry-dac")
    assert pins(found) == {19, 20, 21}


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("dtparam=spi=on", True),
        ("dtparam=spi", True),
        (" dtparam = spi=on ", True),
        ("dtparam=i2c_arm=on,spi=on", True),
        ("dtparam=spi=off", False),
        ("dtparam=spi=on\ndtparam=spi=off", False),
        ("[none]\ndtparam=spi=on", False),
        ("[cm4]\ndtparam=spi=on\n[all]\n", False),
        ("[pi5]\ndtparam=spi=on", True),
        ("[cm4]\n[all]\ndtparam=spi=on", True),
        ("#dtparam=spi=on", False),
        ("dtparam", False),
        ("\0=\n[\n]=,,=", False),
    ],
)
def test_config_txt_is_read_as_the_firmware_does(text: str, on: bool) -> None:
    assert parse(text).has("spi", True, "") is on


def test_a_card_is_known_by_a_part_of_its_name() -> None:
    board = load("respeaker-2mic")
    assert check([board], None, CARDS) == []
    (problem,) = check([board], None, CARDS.partition(" 1 [")[0])
    assert "no sound card seeed2micvoicec, there is vc4hdmi" in problem.what
    assert "dtoverlay=respeaker-2mic-v2_0" in problem.mend
    (problem,) = check([load("pisugar-whisplay")], None, NO_CARDS)
    assert "there is none at all" in problem.what


def test_a_board_without_sound_wants_a_card() -> None:
    board = load("waveshare-oled-1in3")
    assert "USB" in check([board], None, NO_CARDS)[0].mend
    assert check([board], None, CARDS) == []
