"""The light of a board: what the handheld does, as a colour and a rhythm, on GPIO pins through gpiozero
or on an APA102.

Owns the table of states and the one thread that blinks. Invariant: a light that fails is told nobody
and stops nothing; in the dark, and while it is steady at full brightness, it costs no time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from exo.board.bus import SpiWires
from exo.board.profile import Led
from exo.core.base.errors import BoardError

Colour = tuple[float, float, float]  # red, green, blue, 0 to 1
DARK: Colour = (0, 0, 0)
FREQUENCY = 100  # Hz of a dimmed pin, by software
SECOND = (
    0,
    1,
)  # SPI device of an APA102: it has no chip select, so the one that no panel here uses
APA102S = 3  # on a ReSpeaker


@dataclass(frozen=True)
class Look:
    """A colour of whole channels (so that full brightness needs no PWM); `rhythm` are seconds lit and
    dark in turn, () is steady. A light of one colour is told by its rhythm: `single`."""

    colour: Colour = DARK
    rhythm: tuple[float, ...] = ()
    single: tuple[float, ...] = ()


LOOKS = {
    "idle": Look(),
    "listening": Look((1, 0, 0)),
    "thinking": Look((0, 0, 1), single=(0.5, 0.5)),
    "speaking": Look((0, 1, 0), single=(0.15, 0.15)),
    "error": Look((1, 0, 0), (0.2, 0.2), (0.2, 0.2, 0.2, 1.0)),
    "low": Look((1, 0, 0), (0.1, 4.9), (0.1, 4.9)),  # seldom: the light itself drains it
}


class Light(Protocol):
    """What shines. Calls come from one thread at a time."""

    single: bool  # of one colour

    def shine(self, colour: Colour) -> None:
        """Shine in `colour`. Raises BoardError."""
        ...

    def close(self) -> None:
        """Dark, and let go."""
        ...


class Beacon:
    """Shows states on a light, blinks where the table says so."""

    def __init__(self, light: Light, brightness: float = 1.0) -> None:
        """`brightness` 0 to 1; 0 keeps it dark."""
        self.state = "idle"
        self._light, self._brightness = light, brightness
        self._rhythm: tuple[float, ...] = ()
        self._colour = DARK
        self._turn = threading.Condition()
        self._thread: threading.Thread | None = None

    def show(self, state: str) -> None:
        """Show a state of LOOKS from now on; returns at once."""
        if state == self.state:
            return
        look = LOOKS[state]
        with self._turn:
            self.state = state
            self._colour = look.colour if self._brightness > 0 else DARK
            self._rhythm = look.single if self._light.single else look.rhythm
            self._shine(True)
            if self._rhythm and self._thread is None:
                self._thread = threading.Thread(target=self._blink, name="led", daemon=True)
                self._thread.start()
            self._turn.notify_all()

    def close(self) -> None:
        """Dark, and let go of the pins."""
        with self._turn:
            self._rhythm, thread, self._thread = (), self._thread, None
            self._turn.notify_all()
        if thread:
            thread.join(5)
        with contextlib.suppress(BoardError):
            self._light.close()

    def _shine(self, lit: bool) -> None:
        red, green, blue = self._colour if lit else DARK
        share = self._brightness
        with contextlib.suppress(BoardError):  # a help, not a part that anything waits for
            self._light.shine((red * share, green * share, blue * share))

    def _blink(self) -> None:
        """Ends with the rhythm: a steady light has no thread."""
        with self._turn:
            while self._rhythm and self._thread is threading.current_thread():
                for number, seconds in enumerate(self._rhythm):
                    self._shine(number % 2 == 0)
                    if self._turn.wait(seconds):  # another state, or the end
                        break
            if self._thread is threading.current_thread():
                self._thread = None


class PinLight:
    """One pin (LED) or three (R, G, B), through gpiozero."""

    def __init__(self, led: Led, factory: Any = None) -> None:
        """`factory` is gpiozero's (None: the header). Raises BoardError, with no pin kept."""
        self.single = led.kind == "single"
        self._pins: list[Any] = []
        try:
            from gpiozero import PWMOutputDevice

            for name in ("LED",) if self.single else ("R", "G", "B"):
                self._pins.append(
                    PWMOutputDevice(
                        led.pins[name],
                        active_high=not led.active_low,
                        frequency=None,  # not before a colour needs it: it costs a thread
                        pin_factory=factory,
                    )
                )
        except Exception as error:  # lgpio's errors have no base class but this
            self.close()
            why = str(error) or type(error).__name__
            raise BoardError("open the LED", why, "see `exo board check`") from error

    def shine(self, colour: Colour) -> None:
        levels = (max(colour),) if self.single else colour
        try:
            for pin, level in zip(self._pins, levels, strict=True):
                dimmed = 0 < level < 1
                if dimmed != bool(pin.frequency):
                    pin.frequency = FREQUENCY if dimmed else None
                pin.value = level
        except Exception as error:  # as above
            raise BoardError("set the LED", str(error) or type(error).__name__) from error

    def close(self) -> None:
        for pin in self._pins:
            with contextlib.suppress(Exception):
                pin.off()
            pin.close()
        self._pins = []


class ApaLight:
    """A row of APA102 on SPI: a start of zeros, then brightness, blue, green, red for each (data sheet
    APA102C, 2014), and as many zeros as push the last one through."""

    single = False

    def __init__(self, send: Callable[[bytes], None], close: Callable[[], None]) -> None:
        self._send, self._close = send, close

    def shine(self, colour: Colour) -> None:
        # the current of all, in 31 steps, and full channels: no flicker of eight bits at low levels
        share = max(colour)
        current = min(31, max(1, round(31 * share))) if share else 0
        red, green, blue = (round(255 * each / share) if share else 0 for each in colour)
        row = bytes((0xE0 | current, blue, green, red)) * APA102S
        self._send(bytes(4) + row + bytes(4))

    def close(self) -> None:
        with contextlib.suppress(BoardError):
            self.shine(DARK)
        self._close()


def open_beacon(led: Led | None, brightness: float, factory: Any = None) -> Beacon | None:
    """The light of a profile; None when it has none. Raises BoardError when it cannot be opened."""
    if led is None:
        return None
    if led.kind != "apa102":
        return Beacon(PinLight(led, factory), brightness)
    wires = SpiWires(*SECOND, 8_000_000, {}, factory=factory)
    return Beacon(ApaLight(wires.write, wires.close), brightness)
