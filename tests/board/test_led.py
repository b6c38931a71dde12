"""The light: pins of gpiozero's mock, an APA102's bytes, and the rhythm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from exo.board.fake import FakeLight
from exo.board.led import DARK, LOOKS, ApaLight, Beacon, PinLight, open_beacon
from exo.board.profile import Led, load
from exo.core.base.errors import BoardError

mock = pytest.importorskip("gpiozero.pins.mock", reason="gpiozero is not installed")
PATIENCE = 10.0  # seconds until a change must have been seen


@pytest.fixture
def factory() -> Iterator[Any]:
    made = mock.MockFactory(pin_class=mock.MockPWMPin)
    yield made
    made.close()


def levels(factory: Any, led: Led) -> list[float]:
    return [factory.pin(pin).state for pin in led.pins.values()]


@pytest.mark.parametrize("name", ["pimoroni-display-hat-mini", "pisugar-whisplay"])
def test_the_light_of_a_board_shows_what_it_does(factory: Any, name: str) -> None:
    led = load(name).led
    assert led and led.active_low
    beacon = open_beacon(led, 1.0, factory)
    assert beacon
    assert levels(factory, led) == [1, 1, 1]
    for state, lit in (("listening", [0, 1, 1]), ("thinking", [1, 1, 0]), ("speaking", [1, 0, 1])):
        beacon.show(state)
        assert levels(factory, led) == lit
        assert all(factory.pin(pin).frequency is None for pin in led.pins.values())
    beacon.show("idle")
    assert levels(factory, led) == [1, 1, 1]
    beacon.close()
    PinLight(led, factory).close()  # fails when the pins were not given back


def test_a_dimmed_light_has_pwm_only_while_it_shines(factory: Any) -> None:
    led = Led("rgb", {"R": 5, "G": 6, "B": 13})
    beacon = Beacon(PinLight(led, factory), 0.25)
    beacon.show("listening")
    assert levels(factory, led) == [0.25, 0, 0] and factory.pin(5).frequency == 100
    beacon.show("idle")
    assert levels(factory, led) == [0, 0, 0] and factory.pin(5).frequency is None
    beacon.close()
    dark = Beacon(PinLight(led, factory), 0.0)
    dark.show("speaking")
    assert levels(factory, led) == [0, 0, 0]
    dark.close()


def test_a_single_light_tells_states_apart_by_rhythm(factory: Any) -> None:
    rhythms = [LOOKS[state].single for state in LOOKS if state not in ("idle", "listening")]
    assert len(set(rhythms)) == len(rhythms) and all(rhythms)
    light = FakeLight(single=True)
    beacon = Beacon(light)
    beacon.show("speaking")
    with light.changed:
        assert light.changed.wait_for(lambda: light.shown.count(DARK) >= 2, PATIENCE)
    beacon.show("listening")
    assert light.shown[-1] == (1, 0, 0)
    beacon.close()
    assert light.shown[-1] == DARK
    led = Led("single", {"LED": 5})
    steady = Beacon(PinLight(led, factory))
    steady.show("listening")
    assert levels(factory, led) == [1]
    steady.close()


def test_a_light_that_fails_stops_nothing(factory: Any) -> None:
    light = FakeLight()
    light.broken = "the wire broke"
    beacon = Beacon(light)
    for state in LOOKS:
        beacon.show(state)
        assert beacon.state == state
    light.broken = ""
    beacon.show("speaking")
    assert light.shown[-1] == (0, 1, 0)
    beacon.close()
    with pytest.raises(BoardError, match="open the LED"):
        PinLight(Led("rgb", {"R": 5, "G": 5, "B": 6}), factory)
    PinLight(Led("rgb", {"R": 5, "G": 6, "B": 7}), factory).close()
    assert open_beacon(None, 1.0) is None


def test_the_bytes_of_an_apa102() -> None:
    sent: list[bytes] = []
    light = ApaLight(sent.append, lambda: sent.append(b"closed"))
    light.shine((1, 0, 0))
    light.shine((0, 0.5, 0))
    light.close()
    one, half, dark = (bytes(4) + row * 3 + bytes(4) for row in (
        b"\xff\x00\x00\xff", b"\xf0\x00\xff\x00", b"\xe0\x00\x00\x00",
    ))  # fmt: skip
    assert sent == [one, half, dark, b"closed"]
