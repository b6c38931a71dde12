"""What goes over the wires: the data sheets' sequences, golden bytes, and every transfer that may fail.

Golden bytes that changed on purpose are written anew with EXO_GOLDEN=write and read before they are
committed."""

from __future__ import annotations

import datetime
import os
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exo.board import profile as profiles
from exo.board.bus import RecordedWires, SpiBus
from exo.board.fake import FakePanel
from exo.board.panels import DRIVERS, connected, open_panel
from exo.board.steady import Steady
from exo.core.base.errors import BoardError
from exo.device.display import Display, dots, fit, unfit
from exo.device.font import Fonts
from exo.device.locale import Texts
from exo.device.pages import Pages, View
from exo.tools.clock import FakeClock
from PIL import Image, ImageDraw

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("EXO_GOLDEN") == "write"  # read here: no test sees a setting
Make = Callable[[str], Any]
BOX = (20, 10, 40, 30)


def lines(log: list[tuple[Any, ...]]) -> list[str]:
    """A log as text: transfers in hex, runs of one byte as `00*1024`."""
    text = []
    for entry in log:
        if entry[0] == "set":
            text.append(f"{entry[1]} = {entry[2]:g}")
            continue
        runs = [(value, len(list(group))) for value, group in groupby(entry[1])]
        words = [f"{v:02x}*{n}" if n > 4 else " ".join([f"{v:02x}"] * n) for v, n in runs]
        text.append(" ".join(words))
    return text


def sent(log: list[tuple[Any, ...]]) -> list[str]:
    """The transfers of a log alone."""
    return lines([entry for entry in log if entry[0] == "write"])


def boxed(screen: Any, boxes: tuple[Any, ...] = (BOX,)) -> Image.Image:
    image = Image.new(screen.mode, screen.size)
    for left, upper, right, lower in boxes:
        ImageDraw.Draw(image).rectangle((left, upper, right - 1, lower - 1), fill="white")
    return image


# golden bytes


@pytest.mark.parametrize("name", DRIVERS)
def test_golden_bytes(rigs: Make, name: str) -> None:
    rig = rigs(name)
    text = ["# set up"]

    def act(title: str, action: Callable[[], None]) -> None:
        start = len(rig.wires.log)
        action()
        rig.clock.advance(10)
        text.extend([f"# {title}", *lines(rig.wires.log[start:])])

    driver = rig.driver()
    text += lines(rig.wires.log)
    rig.clock.advance(10)
    act("black", lambda: driver.show(Image.new(driver.mode, driver.size)))
    act(f"white box {BOX}", lambda: driver.show(boxed(driver), BOX))
    act("half as bright", lambda: driver.power(0.5))
    act("dark", lambda: driver.power(0))
    act("bright", lambda: driver.power(1))
    act("again", lambda: driver.show(boxed(driver), BOX))
    path = GOLDEN / f"{name}.txt"
    if WRITE:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text("\n".join(text) + "\n")
    assert path.read_text().splitlines() == text, f"{path.name} differs; see the top of this file"


# the data sheets' sequences


def test_ssd1306_is_set_up_as_its_sheet_says(rigs: Make) -> None:
    """SSD1306 rev 1.5, application note, figure 2 (software initialisation flow chart), then the charge
    pump (section 8.10); 00h before commands, 40h before data (section 8.1.5)."""
    rig = rigs("ssd1306")
    rig.driver()
    log = sent(rig.wires.log)
    chart = ["a8 3f", "d3 00 40", "a1 c8", "da 12", "81 ff", "a4 a6", "d5 80"]
    places = [log.index(f"00 {step}".replace("00 00", "00*2")) for step in chart]
    assert places == sorted(places), "in the order of the chart"
    assert log[0] == "00 ae"
    assert log.index("00 8d 14") < log.index("00 af") == len(log) - 1


def test_ssd1306_sends_pages_of_a_box(rigs: Make) -> None:
    """SSD1306 rev 1.5, table 9-1: 21h column start and end, 22h page start and end; 8.7: bit 0 is the top
    row. Rows 10 to 29 are pages 1 to 3: 6 rows from bit 2, 8 rows, 6 rows to bit 5."""
    rig = rigs("ssd1306")
    driver = rig.driver()
    rig.wires.log.clear()
    rig.glass._read = 0
    driver.show(boxed(driver), BOX)
    assert sent(rig.wires.log) == ["00 21 14 27", "00 22 01 03", "40 fc*20 ff*20 3f*20"]


def test_sh1106_sends_each_page_by_itself(rigs: Make) -> None:
    """SH1106 v2.3, command table: B0h page, 0xh and 1xh column; column 20 of the glass is 22."""
    rig = rigs("sh1106")
    driver = rig.driver()
    assert sent(rig.wires.log).index("ad 8b") < sent(rig.wires.log).index("af")
    rig.wires.log.clear()
    rig.glass._read = 0
    driver.show(boxed(driver), BOX)
    pages = [("b1 06 11", "fc*20"), ("b2 06 11", "ff*20"), ("b3 06 11", "3f*20")]
    assert sent(rig.wires.log) == [text for page in pages for text in page]


def test_st7789_sends_a_window(rigs: Make) -> None:
    """ST7789V v1.3, section 9.1: CASET, RASET, RAMWR with big-endian first and last; white is FFFFh.
    The glass of 280 rows begins at row 20, from either side."""
    rig = rigs("st7789-280")
    driver = rig.driver()
    log = sent(rig.wires.log)
    order = [
        log.index(code) for code in ("01", "11", "3a", "36", "21", "13", "2a", "2b", "2c", "29")
    ]
    assert order == sorted(order)
    assert log[log.index("36") + 1] == "c0" and log[log.index("3a") + 1] == "55"
    rig.wires.log.clear()
    rig.glass._read = 0
    driver.show(boxed(driver), BOX)
    want = ["2a", "00 14 00 27", "2b", "00 1e 00 31", "2c", "ff*800"]
    assert sent(rig.wires.log) == want


def test_a_panel_that_sleeps_is_awake_at_once(rigs: Make) -> None:
    """ST7789V v1.3, SLPOUT: 5 ms until the next command; 120 ms until SLPIN, which waits for them."""
    rig = rigs("st7789")
    driver = rig.driver()
    driver.power(0)
    rig.clock.advance(1)
    start = rig.clock.monotonic()
    driver.power(1)
    assert rig.clock.monotonic() - start < 0.01
    driver.power(0)
    assert rig.clock.monotonic() - start > 0.12


def test_colours_are_565() -> None:
    """ST7789V v1.3, section 8.8: R4-R0 G5-G3 | G2-G0 B4-B0."""
    from exo.board.pixels import rgb565

    for colour in [(255, 0, 0), (0, 255, 0), (0, 0, 255), (0x12, 0x34, 0x56), (255, 254, 253)]:
        red, green, blue = colour
        value = red >> 3 << 11 | green >> 2 << 5 | blue >> 3
        assert rgb565(Image.new("RGB", (2, 1), colour)) == 2 * value.to_bytes(2, "big")


def test_transfers_hold_4096_bytes(rigs: Make) -> None:
    rig = rigs("st7789")
    driver = rig.driver()
    rig.wires.log.clear()
    rig.glass._read = 0
    driver.show(Image.new("RGB", driver.size, "red"))
    sizes = [len(entry[1]) for entry in rig.wires.log if entry[0] == "write"]
    assert max(sizes) == 4096 and sum(sizes) == 2 * 320 * 240 + 8 + 3


def test_epaper_is_set_up_as_its_sheet_says(rigs: Make) -> None:
    """SSD1680 rev 0.14, section 9 (general operation flow): reset, 12h, 01h, 11h, 3Ch, 18h; then both RAMs
    (24h, 26h) and an update of all pixels, 22h F7h 20h."""
    rig = rigs("epd2in13v4")
    driver = rig.driver()
    assert sent(rig.wires.log) == (
        ["12", "01", "f9 00 00", "11", "03", "3c", "05", "21", "00 80", "18", "80"]
    )
    driver.show(Image.new("1", driver.size, 1))
    assert sent(rig.wires.log)[-3:] == ["22", "f7", "20"]
    white = " ".join(["ff*15 c0"] * 250)  # 122 of 128 pixels of a row are on the glass
    assert sent(rig.wires.log).count(white) == 2


# e-paper


def test_epaper_drives_only_what_changed(rigs: Make) -> None:
    rig = rigs("epd2in13v4")
    driver = rig.driver()
    black = Image.new("1", driver.size)
    driver.show(black)
    before = rig.sent()
    driver.show(boxed(driver), BOX)
    assert rig.glass.driven == 20 * 20
    assert rig.sent() - before < 400
    driver.show(boxed(driver, (BOX, (100, 50, 110, 60))), (100, 50, 110, 60))
    assert rig.glass.driven == 10 * 10, "what was driven before is not driven again"
    driver.show(boxed(driver, ((100, 50, 110, 60),)), BOX)
    assert rig.glass.driven == 20 * 20
    assert rig.glass.updates == [0xF7, 0xFF, 0xFF, 0xFF]


def test_epaper_drives_everything_now_and_then(rigs: Make) -> None:
    from exo.board.epd2in13v4 import MINUTES, PARTIALS

    rig = rigs("epd2in13v4")
    screen = rig.steady()
    for number in range(2 * PARTIALS + 4):
        screen.show(boxed(screen, ((number, 0, number + 9, 9),)))
        rig.clock.advance(2.5)
    assert rig.glass.updates.count(0xF7) == 3
    assert rig.glass.updates[1 + PARTIALS] == 0xF7
    count = len(rig.glass.updates)
    rig.clock.advance(60 * MINUTES)
    screen.show(boxed(screen))
    assert rig.glass.updates[count:] == [0xF7]


def test_epaper_that_is_busy_is_not_waited_for(rigs: Make) -> None:
    rig = rigs("epd2in13v4")
    screen = rig.steady()
    screen.show(Image.new("1", screen.size))
    start = rig.clock.monotonic()
    for number in range(50):  # an animation
        screen.show(boxed(screen, ((number, 0, number + 9, 9),)))
    assert rig.clock.monotonic() == start, "nobody waited"
    assert len(rig.glass.updates) == 1
    rig.clock.advance(2.5)
    screen.settle()
    assert len(rig.glass.updates) == 2, "the newest picture alone"
    assert rig.shows(boxed(screen, ((49, 0, 58, 9),)))


def test_busy_has_a_deadline(rigs: Make) -> None:
    rig = rigs("epd2in13v4")
    screen = rig.steady()
    screen.show(Image.new("1", screen.size))
    rig.wires.answer = lambda pin: True  # a V3, or a cable
    screen.show(boxed(screen))
    assert not rig.told
    rig.clock.advance(7)
    screen.settle()
    assert "BUSY" in rig.told[0]
    start = rig.clock.monotonic()
    rig.clock.advance(1)
    screen.settle()
    assert rig.clock.monotonic() - start < 2, "an attempt must not hold up the others"


def test_epaper_sleeps_and_wakes_by_reset(rigs: Make) -> None:
    rig = rigs("epd2in13v4")
    screen = rig.steady()
    screen.show(Image.new("1", screen.size))
    screen.power(0)
    assert not rig.glass.asleep, "it is still busy"
    rig.clock.advance(3)
    screen.settle()
    assert rig.glass.asleep
    screen.show(boxed(screen))
    assert rig.glass.asleep
    screen.power(1)
    assert not rig.glass.asleep
    assert rig.shows(boxed(screen))


# pages

LOOKS = {
    "ssd1306": ((128, 64), False),
    "sh1106": ((128, 64), False),
    "st7789": ((160, 120), False),
    "st7789-280": ((120, 140), False),
    "epd2in13v4": ((250, 122), True),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_page_is_seen_on_every_panel(rigs: Make, name: str) -> None:
    rig = rigs(name)
    screen = rig.steady()
    size, paper = LOOKS[name]
    assert (dots(screen.size, screen.paper), screen.paper) == (size, paper)
    display = Display(screen, Pages(size, Fonts(), Texts()))
    for minute in range(5):
        now = datetime.datetime(2026, 11, 30, 14, minute, tzinfo=datetime.UTC)
        display.show(View("idle", now, hint="Hold to talk"))
        rig.clock.advance(3)
        display.show(View("idle", now, hint="Hold to talk"))
        seen = rig.seen()
        assert seen is not None and f"14:0{minute}" in display.shown.text
        page = display.shown.image
        assert rig.shows(fit(page, screen.size, screen.mode, paper))
        assert unfit(seen, paper).tobytes() == page.tobytes()


def test_at_the_end_the_last_picture_is_kept_and_the_panel_sleeps(rig: Any) -> None:
    screen = rig.steady()
    screen.show(boxed(screen))
    screen.show(boxed(screen, ((1, 1, 9, 9),)))  # an e-paper is busy
    screen.finish(pause=rig.clock.advance)
    assert rig.wires.closed and not screen.fault
    if screen.paper:
        assert rig.glass.asleep
        assert rig.shows(boxed(screen, ((1, 1, 9, 9),)))
    else:
        assert rig.seen() is None


def test_a_panel_that_fails_does_not_hold_up_the_end(rig: Any) -> None:
    screen = rig.steady()
    screen.show(boxed(screen))
    rig.wires.broken = "no answer"
    start = rig.clock.monotonic()
    screen.finish(pause=rig.clock.advance)
    assert rig.clock.monotonic() - start < 5
    assert rig.wires.closed


# only what changed


def test_an_unchanged_image_is_not_sent(rig: Any) -> None:
    screen = rig.steady()
    screen.show(boxed(screen))
    before = rig.sent()
    for _ in range(20):
        rig.clock.advance(5)
        screen.show(boxed(screen))
        screen.settle()
        screen.power(1)
    assert rig.sent() == before


def test_of_a_change_little_is_sent(rigs: Make) -> None:
    for name, most in {"ssd1306": 80, "sh1106": 80, "st7789": 200}.items():
        rig = rigs(name)
        screen = rig.steady()
        screen.show(Image.new(screen.mode, screen.size))
        before = rig.sent()
        image = Image.new(screen.mode, screen.size)
        for x, y in ((0, 0), (screen.size[0] - 6, screen.size[1] - 6)):  # two corners
            image.paste("white", (x, y, x + 6, y + 6))
        screen.show(image)
        assert rig.shows(image)
        assert rig.sent() - before < most


def test_changes_are_seen_whatever_they_are(rig: Any) -> None:
    screen = rig.steady()
    chance = random.Random(7)
    image = Image.new(screen.mode, screen.size)
    for _ in range(25):
        draw = ImageDraw.Draw(image)
        for _ in range(chance.randrange(4)):
            x, y = (chance.randrange(side) for side in screen.size)
            end = (
                min(x + chance.randrange(30), screen.size[0] - 1),
                min(y + 9, screen.size[1] - 1),
            )
            draw.rectangle((x, y, *end), fill=chance.choice(("white", "black")))
        screen.show(image)
        rig.clock.advance(3)
        screen.settle()
        assert rig.shows(image)


# faults


@pytest.mark.parametrize("name", ["ssd1306", "ssd1306-spi", "sh1106", "st7789-small", "epd2in13v4"])
def test_whatever_transfer_fails_the_right_image_is_seen_afterwards(rigs: Make, name: str) -> None:
    number, failed = 0, True
    while failed:
        number += 1
        rig = rigs(name)
        rig.wires.fail(number)
        screen = rig.steady()
        one, two = boxed(screen, ((0, 0, 8, 9),)), boxed(screen, ((0, 0, 8, 9), (60, 20, 90, 30)))
        steps: list[Callable[[], None]] = [
            lambda: screen.show(one),  # noqa: B023
            lambda: screen.show(two),  # noqa: B023
            lambda: screen.power(0),  # noqa: B023
            lambda: screen.power(0.5),  # noqa: B023
            lambda: screen.show(one),  # noqa: B023
        ]
        for step in steps:
            step()
            rig.clock.advance(3)
            screen.settle()
        assert rig.shows(one), f"transfer {number}"
        failed = bool(rig.told)
        assert len(rig.told) == (2 if failed else 0)
        assert not failed or (rig.told[0] and rig.told[1] == "")
        assert not screen.fault
    assert number > 20, "it was the last transfer that did not fail"


def test_a_fault_is_told_once_and_tried_again_ever_more_rarely(rigs: Make) -> None:
    rig = rigs("ssd1306")
    screen = rig.steady()
    screen.show(boxed(screen))
    rig.wires.broken = "no answer at 0x3C"
    tries: list[float] = []
    write = rig.wires.write

    def counted(payload: bytes) -> None:
        tries.append(rig.clock.monotonic())
        write(payload)

    rig.wires.write = counted
    for number in range(6000):  # ten minutes
        screen.show(boxed(screen, ((number % 100, 0, number % 100 + 5, 5),)))
        rig.clock.advance(0.1)
    assert len(rig.told) == 1 and "0x3C" in rig.told[0]
    assert 20 < len(tries) < 40
    waits = [later - earlier for earlier, later in zip(tries, tries[1:], strict=False)]
    assert waits[0] < 1 and all(29 < wait < 31 for wait in waits[-5:])
    rig.wires.broken = ""
    rig.clock.advance(31)
    screen.settle()
    assert rig.told[1:] == [""]
    assert rig.shows(boxed(screen, ((99, 0, 104, 5),)))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["ssd1306", "sh1106", "st7789-small", "epd2in13v4-90"])
def test_whatever_happens_the_last_picture_is_seen(rigs: Make, name: str, seed: int) -> None:
    rig, chance = rigs(name), random.Random(seed)
    screen = rig.steady()
    image = Image.new(screen.mode, screen.size)
    level = 1.0
    for _ in range(120):
        match chance.randrange(7):
            case 0:
                level = chance.choice((0.0, 0.5, 1.0))
                screen.power(level)
            case 1:
                rig.wires.fail(chance.randrange(1, 60))
            case 2:
                rig.wires.broken = chance.choice(("", "", "no answer"))
            case 3:
                rig.clock.advance(chance.choice((0.1, 1, 5, 40)))
            case 4:
                screen.settle()
            case _:
                x, y = (chance.randrange(side) for side in screen.size)
                image.paste(chance.choice(("white", "black")), (x, y, x + 30, y + 9))
                screen.show(image)
    rig.wires.broken = ""
    rig.wires.fail(0)
    screen.power(1)
    for _ in range(3):
        rig.clock.advance(31)
        screen.settle()
    assert rig.shows(image) and not screen.fault
    assert [bool(text) for text in rig.told] == [n % 2 == 0 for n in range(len(rig.told))]


def test_what_was_unplugged_comes_back_whole(rig: Any) -> None:
    screen = rig.steady()
    image = boxed(screen)
    screen.show(image)
    rig.clock.advance(3)
    rig.wires.broken = "no answer"
    screen.show(boxed(screen, ((1, 1, 2, 2),)))
    rig.clock.advance(60)
    rig.glass.__init__(rig.spec, rig.clock)  # it lost its power, and with it everything
    rig.glass._read = len(rig.wires.log)
    rig.wires.broken = ""
    screen.show(image)
    assert rig.shows(image)


def test_a_panel_that_is_not_there_at_the_start_stops_nothing(rigs: Make) -> None:
    rig = rigs("ssd1306")
    there = False

    def bus(panel: Any) -> Any:
        if not there:
            raise BoardError("open /dev/i2c-1", "No such file or directory")
        return rig.bus()

    clock = rig.clock
    screen = open_panel(rig.spec, rig.told.append, clock.monotonic, bus, clock.advance)
    screen.show(boxed(screen))
    screen.power(0.5)
    assert len(rig.told) == 1 and "/dev/i2c-1" in screen.fault
    there = True
    clock.advance(1)
    screen.settle()
    assert rig.shows(boxed(screen))
    assert rig.glass.contrast == 128


def test_brightness_survives_a_fault(rigs: Make) -> None:
    rig = rigs("ssd1306")
    screen = rig.steady()
    screen.show(boxed(screen))
    screen.power(0.25)
    rig.wires.fail(1)
    screen.show(boxed(screen, ((1, 1, 2, 2),)))
    rig.clock.advance(1)
    screen.settle()
    assert rig.glass.contrast == 64


def test_a_wrong_image_is_the_callers_fault_not_the_panels(rigs: Make) -> None:
    screen = rigs("ssd1306").steady()
    with pytest.raises(BoardError, match="show an image"):
        screen.show(Image.new("RGB", screen.size))
    assert not screen.fault


def test_a_fake_panel_is_steady_too() -> None:
    clock, panel, told = FakeClock(), FakePanel(), []
    screen = Steady.around(panel, told.append, clock.monotonic)
    panel.broken = "unplugged"
    screen.show(boxed(screen))
    panel.broken = ""
    screen.settle()
    assert not panel.updates, "too early"
    clock.advance(1)
    screen.settle()
    assert panel.shows(boxed(screen)) and told[1:] == [""]


def test_a_fake_panel_that_failed_in_the_dark_lights_up() -> None:
    clock, panel = FakeClock(), FakePanel()
    screen = Steady.around(panel, now=clock.monotonic)
    screen.show(boxed(screen))
    screen.power(0)
    panel.broken = "unplugged"
    screen.show(boxed(screen, ((1, 1, 2, 2),)))
    screen.power(1)
    assert screen.fault
    panel.broken = ""
    clock.advance(1)
    screen.settle()
    assert panel.shows(boxed(screen, ((1, 1, 2, 2),)))


# profiles and real wires


@pytest.mark.parametrize(
    "name", [one.name for one in profiles.every() if not (one.simulated or one.cabled)]
)
def test_the_panel_of_every_board_is_driven(rigs: Make, name: str) -> None:
    panel = profiles.load(name).panel
    rig = rigs(panel.driver if panel.driver in DRIVERS else "ssd1306")
    rig.use(panel)
    screen = rig.steady()
    screen.show(boxed(screen))
    assert not screen.fault
    assert panel.driver == "none" or rig.shows(boxed(screen))


def test_a_wrong_profile_is_named(rigs: Make) -> None:
    spec = rigs("ssd1306").spec
    with pytest.raises(BoardError, match="no such driver"):
        open_panel(replace(spec, driver="ssd9999"))
    with pytest.raises(BoardError, match="its mode is 1"):
        open_panel(replace(spec, mode="RGB"))
    wrong = {
        "ssd1306": {"rotation": 90},
        "sh1106": {"size": (200, 64)},
        "st7789": {"offset": (0, 90)},
        "epd2in13v4": {"rotation": 0},
    }
    for name, change in wrong.items():
        rig = rigs(name)
        rig.use(replace(rig.spec, **change))
        screen = rig.steady()
        screen.show(Image.new(screen.mode, screen.size))
        assert "profile" in rig.told[0]
        assert rig.wires.closed


def test_no_panel_is_a_panel(rigs: Make) -> None:
    spec = replace(rigs("ssd1306").spec, driver="none", bus="")
    screen = open_panel(spec)
    screen.show(boxed(screen))
    screen.power(0)
    assert not screen.fault


def test_a_pin_that_fails_to_say_what_bytes_are_is_set_again() -> None:
    wires = RecordedWires()
    bus = SpiBus(wires)
    bus.command(1)
    wires.fail(1)
    with pytest.raises(BoardError):
        bus.data(b"x")
    bus.data(b"y")
    assert wires.log == [("set", "DC", 0), ("write", b"\x01"), ("set", "DC", 1), ("write", b"y")]


@pytest.fixture
def pins() -> Any:
    """gpiozero on its mock pins."""
    pytest.importorskip("gpiozero", reason="the extra `board` is not installed")
    from gpiozero.pins.mock import MockFactory, MockPWMPin

    factory = MockFactory(pin_class=MockPWMPin)
    yield factory
    factory.reset()


class Spi:
    """spidev's, as far as it is used."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.opened: tuple[int, int] | None = None
        self.max_speed_hz, self.mode = 0, 3

    def open(self, bus: int, device: int) -> None:
        self.opened = (bus, device)

    def writebytes2(self, payload: bytes) -> None:
        self.sent.append(bytes(payload))

    def close(self) -> None:
        self.opened = None


def test_real_wires_drive_pins_and_spi(
    rigs: Make, pins: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spi = Spi()
    monkeypatch.setitem(sys.modules, "spidev", SimpleNamespace(SpiDev=lambda: spi))
    spec = replace(
        rigs("st7789-280").spec,
        pins={"DC": 27, "RST": 4, "BL": 22, "CS": 8},
        active_low=("BL",),
        device=(0, 1),
        speed_hz=50_000_000,
    )
    bus = connected(spec, pins)
    assert (spi.opened, spi.max_speed_hz, spi.mode) == ((0, 1), 50_000_000, 0)
    bus.command(0x2C)
    assert pins.pin(27).state == 0
    bus.data(b"ab")
    assert pins.pin(27).state == 1 and spi.sent == [b"\x2c", b"ab"]
    bus.wires.set("BL", 1)
    assert pins.pin(22).state == 0, "on when low"
    bus.wires.set("BL", 0.25)
    assert pins.pin(22).state == 0.75
    bus.wires.set("PWR", 1)  # not connected
    assert not bus.wires.get("BUSY")
    bus.wires.close()
    assert spi.opened is None
    connected(spec, pins).wires.close()  # its pins were let go


def test_real_wires_say_what_fails(rigs: Make, pins: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(bus: int, device: int) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    spi = Spi()
    spi.open = absent  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "spidev", SimpleNamespace(SpiDev=lambda: spi))
    spec = rigs("ssd1306").spec
    with pytest.raises(BoardError, match="/dev/i2c-1"):
        connected(spec, pins)  # no such bus on a PC
    spec = replace(spec, bus="spi", device=(7, 7), pins={"DC": 24})
    for _ in range(2):  # the pin was let go, else the second complaint is another
        with pytest.raises(BoardError, match="/dev/spidev7.7"):
            connected(spec, pins)


def test_without_its_libraries_a_board_says_what_to_install(
    rigs: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gpiozero", None)
    with pytest.raises(BoardError, match="extra `board`"):
        connected(rigs("st7789").spec)
