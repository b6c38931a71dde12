"""Buttons on pins, with gpiozero's mock in the place of the header."""

from __future__ import annotations

import queue
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from exo.board.buttons import GpioButtons, chip_of, header, labels
from exo.board.fake import FakeButtons
from exo.board.ports import Buttons
from exo.board.presses import Gesture, Timing, grammar
from exo.board.profile import Button, load
from exo.core.base.errors import BoardError

mock = pytest.importorskip("gpiozero.pins.mock", reason="gpiozero is not installed")
PATIENCE = 10.0  # seconds until a change must have been told


class Told:
    """What the buttons told, in turn."""

    def __init__(self) -> None:
        self._changes: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()

    def __call__(self, name: str, down: bool) -> None:
        self._changes.put((name, down))

    def next(self) -> tuple[str, bool]:
        return self._changes.get(timeout=PATIENCE)

    @property
    def silent(self) -> bool:
        return self._changes.empty()


@pytest.fixture
def factory() -> Iterator[Any]:
    made = mock.MockFactory()
    yield made
    made.close()


@pytest.fixture
def told() -> Told:
    return Told()


def test_press_and_release_of_every_button_of_a_board(factory: Any, told: Told) -> None:
    board = load("adafruit-oled-bonnet")
    buttons = GpioButtons(board.buttons, factory)
    buttons.listen(told)
    for button in board.buttons:
        factory.pin(button.pin).drive_low()
        assert told.next() == (button.name, True)
        factory.pin(button.pin).drive_high()
        assert told.next() == (button.name, False)
    buttons.close()


def test_a_button_that_is_on_when_high(factory: Any, told: Told) -> None:
    board = load("pisugar-whisplay")  # pulled to ground by a resistor on the board
    pin = factory.pin(board.buttons[0].pin)
    pin.drive_low()
    buttons = GpioButtons(board.buttons, factory)
    buttons.listen(told)
    pin.drive_high()
    assert told.next() == ("talk", True)
    pin.drive_low()
    assert told.next() == ("talk", False)
    buttons.close()


def test_a_button_with_a_resistor_of_its_own_is_on_when_low(factory: Any, told: Told) -> None:
    factory.pin(5).drive_high()
    buttons = GpioButtons([Button("talk", "", (), 5, "none", True)], factory)
    buttons.listen(told)
    factory.pin(5).drive_low()
    assert told.next() == ("talk", True)
    buttons.close()


def test_bounce_is_told_once(factory: Any, told: Told) -> None:
    buttons = GpioButtons([Button("talk", "", pin=5), Button("ok", "", pin=6)], factory)
    buttons.listen(told)
    for _ in range(20):
        factory.pin(5).drive_low()
        factory.pin(5).drive_high()
    factory.pin(5).drive_low()
    assert told.next() == ("talk", True)
    factory.pin(6).drive_low()
    assert told.next() == ("ok", True), "the bounce of the other was told"
    buttons.close()


def test_a_button_held_at_the_start_is_heard_after_its_release(factory: Any, told: Told) -> None:
    factory.pin(5).drive_low()
    rows = [Button("talk", "", pin=5), Button("ok", "", pin=6)]
    buttons = GpioButtons(rows, factory, Timing(settle=0))
    buttons.listen(told)
    factory.pin(5).drive_high()
    factory.pin(6).drive_low()
    assert told.next() == ("ok", True)
    factory.pin(5).drive_low()
    assert told.next() == ("talk", True)
    buttons.close()


def test_a_release_that_nobody_told_is_found(factory: Any, told: Told) -> None:
    buttons = GpioButtons([Button("talk", "", pin=5)], factory)
    buttons.listen(told)
    factory.pin(5).drive_low()
    assert told.next() == ("talk", True)
    buttons._pins["talk"].when_deactivated = None  # the edge is lost
    factory.pin(5).drive_high()
    assert told.next() == ("talk", False)
    buttons.close()


def test_a_button_that_stays_down_is_let_go(factory: Any, told: Told) -> None:
    buttons = GpioButtons([Button("talk", "", pin=5)], factory, Timing(stuck=0.1))
    buttons.listen(told)
    factory.pin(5).drive_low()
    assert told.next() == ("talk", True)
    assert told.next() == ("talk", False)
    buttons.close()


def test_after_close_nothing_is_told_and_the_pins_are_free(factory: Any, told: Told) -> None:
    row = Button("talk", "", pin=5)
    buttons = GpioButtons([row], factory)
    buttons.listen(told)
    buttons.close()
    buttons.close()
    factory.pin(5).drive_low()
    assert told.silent
    factory.pin(5).drive_high()
    again = GpioButtons([row], factory)
    again.listen(told)
    factory.pin(5).drive_low()
    assert told.next() == ("talk", True)
    again.close()


def test_a_pin_that_is_taken_names_the_button_and_frees_the_others(factory: Any) -> None:
    from gpiozero import DigitalInputDevice

    other = DigitalInputDevice(6, pull_up=True, pin_factory=factory)
    rows = [Button("talk", "", pin=5), Button("ok", "", pin=6)]
    with pytest.raises(BoardError, match="button ok on GPIO 6.*exo board check"):
        GpioButtons(rows, factory)
    other.close()
    GpioButtons(rows, factory).close()


def test_a_pin_that_is_none_names_the_button(factory: Any) -> None:
    with pytest.raises(BoardError, match="button talk on GPIO 99"):
        GpioButtons([Button("talk", "", pin=99)], factory)


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "lgpio", None)
    with pytest.raises(BoardError, match="exo-companion.board"):
        GpioButtons([Button("talk", "", pin=5)])


def test_a_header_that_cannot_be_opened_is_a_board_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def gpiochip_open(self, number: int) -> int:
            raise RuntimeError("can not open gpiochip")

        def __getattr__(self, name: str) -> Any:
            if name == "LGPIOFactory":
                return lambda chip: self.gpiochip_open(chip or 0)
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, "lgpio", Library())
    monkeypatch.setitem(sys.modules, "gpiozero.pins.lgpio", Library())
    with pytest.raises(BoardError, match="use the buttons.*gpiochip.*group gpio"):
        header()


def test_the_chip_of_the_header_is_found_by_its_label() -> None:
    class Library:
        """A Pi 5 on an older kernel: the header is chip 4."""

        chips = {0: "gpio-brcmstb@107d508500", 4: "pinctrl-rp1"}

        def gpiochip_open(self, number: int) -> int:
            if number not in self.chips:
                raise OSError("no such chip")
            return number

        def gpio_get_chip_info(self, handle: int) -> tuple[int, int, str, str]:
            return 0, 54, f"gpiochip{handle}", self.chips[handle]

        def gpiochip_close(self, handle: int) -> None:
            pass

    assert chip_of(labels(Library())) == 4
    assert chip_of({0: "pinctrl-bcm2711", 1: "raspberrypi-exp-gpio"}) == 0
    assert chip_of({0: "INTC1055:00"}) is None


def test_the_fake_and_the_pins_are_the_same_port(factory: Any, told: Told) -> None:
    fake: Buttons = FakeButtons()
    real: Buttons = GpioButtons(load("respeaker-2mic").buttons, factory)
    for buttons in (fake, real):
        buttons.listen(told)
    factory.pin(17).drive_low()
    assert told.next() == ("talk", True)
    fake.press("talk", 0)
    assert [told.next(), told.next()] == [("talk", True), ("talk", False)]
    fake.close()
    real.close()


def test_pins_and_the_fake_tell_what_fingers_mean(factory: Any) -> None:
    timing = Timing(hold=0.05, double=0.05)
    board = load("adafruit-oled-bonnet").buttons
    real = GpioButtons(board, factory, timing)
    fake = FakeButtons()
    for buttons, hold, release in (
        (real, factory.pin(4).drive_low, factory.pin(4).drive_high),
        (fake, lambda: fake.hold("ok"), lambda: fake.release("ok")),
    ):
        raw, meant = Told(), queue.SimpleQueue[Gesture]()
        buttons.listen(raw, meant.put)
        hold()
        found = meant.get(timeout=PATIENCE)
        assert (found.kind, found.names) == ("hold", ("ok",))
        release()
        assert [raw.next(), raw.next()] == [("ok", True), ("ok", False)]
        buttons.close()
        hold()
        assert raw.silent and meant.empty()


def test_the_fake_on_a_clock_of_ones_own_tells_when_it_is_asked(told: Told) -> None:
    now = 100.0
    fake, meant = FakeButtons(clock=lambda: now, waits=False), queue.SimpleQueue[Gesture]()
    fake.listen(told, meant.put)
    fake.hold("up")
    assert told.next() == ("up", True) and meant.get_nowait() == Gesture("press", ("up",), 100.0)
    assert fake.due == 100.4
    now = 100.4
    fake.tick()
    assert meant.get_nowait() == Gesture("repeat", ("up",), 100.4)
    now = 300.0
    fake.tick()
    assert told.next() == ("up", False), "it stuck and was not let go"
    fake.release("up")
    assert fake.due == float("inf") and told.silent


def test_the_grammar_of_a_board_is_of_its_keys_alone() -> None:
    rules = grammar(("talk", "up", "down", "ok"))
    assert (rules.repeats, rules.doubles, rules.chords) == (("up", "down"), ("talk",), ())
    assert grammar(("talk", "ok", "back")).chords == (frozenset({"ok", "back"}),)
