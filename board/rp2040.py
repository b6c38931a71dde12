"""A panel at the end of a cable: a Pico with screen and buttons (board/panel), on USB or a serial port.

Owns the line: finds it, greets, pings, and begins anew whenever it was pulled or fell silent. Knows no
pages. Invariant: after every fault the panel has the whole last picture, buttons that were held are let
go, and nobody waited for the line longer than ANSWER."""

from __future__ import annotations

import json
import math
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.board.buttons import GpioButtons
from exo.board.led import Colour
from exo.board.profile import Button
from exo.board.screen import Box, check, check_level
from exo.board.steady import Steady
from exo.core.base.errors import BoardError
from exo.core.base.frames import TEXT, Reader, frame

if TYPE_CHECKING:
    from PIL.Image import Image

IDS = ((0x2E8A, 0x0005),)  # USB vendor and product of MicroPython on RP2040
BAUD = 115_200  # of a UART; USB has none
VERSION = 1  # of the panel's protocol
LINK, SCREEN, BUTTONS, LOG = 2, 3, 4, 5  # kinds of frames
PICTURE, BRIGHTNESS, LIGHT = 0, 1, 2  # the first byte of kind 3
DONE, BLIND = 0, 2  # its answer: all is seen; the screen does not answer
LOOK = 0.25  # seconds that a read waits for a first byte
BEAT = 1.0  # seconds between pings
STALE = 0.3  # seconds of silence until the rest of a frame is given up: less than a beat, which fills it
GONE = 3.0  # seconds of silence after which the line is opened anew
ANSWER = 1.0  # seconds until a picture must have been answered
AGAIN = 0.5  # seconds between attempts to open the line
LONGEST = 2.0  # seconds between Steady's attempts: one costs next to nothing here
LIMIT = 4096  # bytes of a payload from the panel
AHEAD = 2048  # bytes that may be on their way to it: a picture and a bit

Open = Callable[[str], Any]


def find_port(named: str = "") -> str:
    """The serial port of a panel: `named` if it is there, else by USB ids; "" when there is none."""
    if named:
        return named if Path(named).exists() else ""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        return ""
    found = [port.device for port in comports() if (port.vid, port.pid) in IDS]
    return min(found, default="")


def open_port(name: str) -> Any:
    """Open a serial port for ourselves alone. Raises OSError."""
    from serial import Serial

    return Serial(name, BAUD, timeout=LOOK, write_timeout=ANSWER, exclusive=True)


class CablePin:
    """A button of the panel as `GpioButtons` wants a pin."""

    def __init__(self) -> None:
        self.is_active = False
        self.when_activated: Callable[[], None] = _nothing
        self.when_deactivated: Callable[[], None] = _nothing

    def set(self, down: bool) -> None:
        if down != self.is_active:
            self.is_active = down
            (self.when_activated if down else self.when_deactivated)()

    def close(self) -> None:
        self.when_activated = self.when_deactivated = _nothing


class Cable:
    """The line to the panel, served by one thread from the first moment to `close`."""

    def __init__(
        self,
        find: Callable[[], str] = find_port,
        told: Callable[[str], None] = lambda text: None,
        opened: Open = open_port,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`find` gives the port ("" for none) before each attempt, `told` hears the panel's log."""
        self.hello: dict[str, Any] = {}  # what the panel said of itself; empty: it is not there
        self.why = "no panel is plugged in"  # it is not there
        self.screen: Rp2040 | None = None  # who draws on it
        self._find, self._told, self._opened, self.now = find, told, opened, now
        self._pins: dict[str, CablePin] = {}
        self._port: Any = None
        self._writing = threading.Lock()
        self._there, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="panel", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until the panel is there; returns whether it is."""
        return self._there.wait(seconds)

    def pin(self, name: str) -> CablePin:
        """The button `name`; it is up while the panel is not there."""
        return self._pins.setdefault(name, CablePin())

    def send(self, kind: int, payload: bytes) -> None:
        """Send a frame. Raises BoardError when the panel is not there."""
        with self._writing:
            port = self._port if self.hello else None
            if port is None:
                raise self.absent()
            try:
                port.write(frame(kind, payload))
            except Exception as error:  # pyserial's, termios's and the system's have no common base
                raise BoardError("reach the panel", str(error), "see to its cable") from error

    def absent(self) -> BoardError:
        """The error of a panel that is not there."""
        return BoardError("reach the panel", self.why, "plug it in, or name its port: --port PORT")

    def steady(
        self,
        size: tuple[int, int],
        told: Callable[[str], None] = lambda fault: None,
        now: Callable[[], float] = time.monotonic,
    ) -> Steady:
        """Its screen, with the care of `Steady`."""
        return Steady(lambda: Rp2040(self, size), size, "1", told, now, longest=LONGEST)

    def close(self) -> None:
        """Let go of the line."""
        self._done.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._done.is_set():
            try:
                self._session()
            except Exception as error:  # noqa: BLE001 - whatever a pulled cable raises: it is tried again
                self.why = str(error) or type(error).__name__
            with self._writing:
                self._port, self.hello = None, {}
            self._there.clear()
            for pin in list(self._pins.values()):
                pin.set(False)
            self._done.wait(AGAIN)

    def _session(self) -> None:
        """From opening the line to the first fault."""
        name = self._find()
        if not name:
            self.why = "no panel is plugged in"
            return
        reader = Reader(LIMIT)
        with self._opened(name) as port:
            with self._writing:
                self._port = port
            heard = came = self.now()
            beat = heard - BEAT
            while not self._done.is_set():
                now = self.now()
                if now - beat >= BEAT:
                    beat = now
                    self._call({"ping": 0} if self.hello else {"version": VERSION, "name": "exo"})
                if self.screen:
                    self.screen.tick()
                data = port.read(port.in_waiting or 1)
                now = self.now()
                if data:
                    came, found = now, reader.feed(data)
                elif reader.waits and now - came > STALE:
                    found = reader.give_up()
                else:
                    found = []
                for kind, payload in found:
                    if kind != TEXT:
                        heard = now
                        self._take(kind, payload)
                if now - heard > GONE:
                    raise OSError(f"{name} says nothing")

    def _call(self, told: dict[str, Any]) -> None:
        with self._writing:
            self._port.write(frame(LINK, json.dumps(told).encode()))

    def _take(self, kind: int, payload: bytes) -> None:
        """One frame of the panel; what makes no sense is passed over."""
        if kind == LOG:
            self._told(f"panel: {payload.decode(errors='replace')}")
        elif kind == SCREEN and len(payload) == 2 and self.screen:
            self.screen.answered(payload[0], payload[1])
        elif kind in (LINK, BUTTONS):
            try:
                told = json.loads(payload)
            except ValueError:
                return
            if not isinstance(told, dict):
                return
            if kind == BUTTONS:
                self.pin(str(told.get("name"))).set(bool(told.get("level")))
            elif "version" in told:
                self._greeted(told)
            self._levels(told.get("down"))

    def _greeted(self, hello: dict[str, Any]) -> None:
        if not hello.get("host"):  # it started anew, or lost us
            self.hello = {}
            self._call({"version": VERSION, "name": "exo"})
            return
        self.hello = hello
        self._there.set()
        if self.screen:
            self.screen.whole()

    def _levels(self, down: Any) -> None:
        """The keys as they are: a change whose frame was lost is found here."""
        if isinstance(down, list):
            for name, pin in list(self._pins.items()):
                pin.set(name in down)


class Rp2040:
    """The panel's screen, behind the screen port."""

    mode, paper = "1", False
    band = 16  # rows that Steady sends by themselves

    def __init__(self, cable: Cable, size: tuple[int, int] = (128, 64)) -> None:
        """Begins black. Raises BoardError when the panel is not there, or of another size."""
        from PIL import Image

        self.size, self.level = size, 1.0
        self._cable, self._lock = cable, threading.RLock()
        self._image = Image.new("1", size)
        self._number = 0  # of the next frame
        self._waits, self._since = (
            -1,
            0.0,
        )  # the frame whose answer is awaited (-1: none), since when
        self._ahead = 0  # bytes that were not answered
        self._fault = ""
        hello = cable.hello
        if not hello:
            raise cable.absent()
        if (hello.get("width"), hello.get("height")) != size:
            what = f"it is {hello.get('width')}x{hello.get('height')}, not {size[0]}x{size[1]}"
            raise BoardError("use the panel", what, "correct the profile")
        cable.screen = self
        try:
            self.whole()
            self._settled()
        except BoardError:
            self.close()
            raise

    def show(self, image: Image, box: Box | None = None) -> None:
        check(self, image, box)
        box = box or (0, 0, *self.size)
        if self._ahead + (box[2] - box[0] + 7) // 8 * (box[3] - box[1]) > AHEAD:
            self._settled()
        with self._lock:
            self._image.paste(image.crop(box), box[:2])
            self._draw(box)

    def power(self, level: float) -> None:
        check_level(level)
        with self._lock:
            self.level = level
            self._shine()

    def light(self, lit: bool) -> None:
        """Switch the LED. Raises BoardError."""
        self._send(LIGHT, bytes((lit,)))

    def ready(self) -> bool:
        """Whether all that was sent is seen. Raises BoardError when the panel is gone or blind."""
        if self._fault:
            raise BoardError("draw on the panel", self._fault, "see to its wires")
        if not self._cable.hello:
            raise self._cable.absent()
        return self._waits < 0

    def close(self) -> None:
        """Draw no more; the cable stays."""
        if self._cable.screen is self:
            self._cable.screen = None

    # what the cable's thread calls

    def answered(self, number: int, state: int) -> None:
        """All frames up to `number` are on the glass, or not."""
        with self._lock:
            if number != self._waits:
                return
            self._fault = "its screen does not answer" if state == BLIND else ""
            if state == DONE:
                self._waits, self._ahead = -1, 0
            elif state != BLIND:  # something was lost: send it with the next tick
                self._since = -math.inf

    def tick(self) -> None:
        """Send everything again when an answer is late: a frame was lost, or its answer, or its screen."""
        with self._lock:
            if self._waits >= 0 and self._cable.now() - self._since > ANSWER:
                self.whole()

    def whole(self) -> None:
        """Send everything, as to a panel that knows nothing."""
        with self._lock:
            self._waits, self._ahead = -1, 0
            self._draw((0, 0, *self.size))
            self._shine()

    def _draw(self, box: Box) -> None:
        left, upper, right, lower = box
        head = struct.pack("<HHHH", left, upper, right - left, lower - upper)
        self._send(PICTURE, head + self._image.crop(box).tobytes())

    def _shine(self) -> None:
        self._send(BRIGHTNESS, bytes((max(1, round(255 * self.level)) if self.level else 0,)))

    def _send(self, operation: int, rest: bytes) -> None:
        with self._lock:
            if self._waits < 0:
                self._since = self._cable.now()
            self._waits, self._number = self._number, (self._number + 1) & 0xFF
            self._ahead += len(rest)
            self._cable.send(SCREEN, bytes((operation, self._waits)) + rest)

    def _settled(self) -> None:
        """Wait for the answer. Raises BoardError."""
        end = self._cable.now() + ANSWER
        while not self.ready():
            if self._cable.now() > end:
                raise BoardError("draw on the panel", "it does not answer", "see to its cable")
            time.sleep(0.002)


class CableButtons(GpioButtons):
    """The panel's buttons, behind the port of buttons."""

    def __init__(self, buttons: Sequence[Button], cable: Cable, **more: Any) -> None:
        rows = [replace(button, pin=number) for number, button in enumerate(buttons)]
        super().__init__(rows, cable, **more)

    def _pin(self, button: Button) -> Any:
        return self._factory.pin(button.name)


class CableLight:
    """The panel's LED, behind the port of lights."""

    single = True

    def __init__(self, cable: Cable) -> None:
        self._cable = cable

    def shine(self, colour: Colour) -> None:
        screen = self._cable.screen
        if screen:
            screen.light(any(colour))

    def close(self) -> None:
        """It goes out when the panel misses us."""


def _nothing() -> None:
    """Nobody listens."""
