"""How a panel's controller is reached: wires below (bytes and pins), a bus above (commands and data).

Owns I2C and SPI framing; knows no controller. The real wires open their device when they are made, the
recorded ones keep every byte and every pin. Invariant: whatever fails leaves here as a BoardError."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from exo.core.base.errors import BoardError

SPI_CHUNK = 4096  # bytes of one transfer: what spidev's buffer holds (module parameter bufsiz)
I2C_CHUNK = 512  # bytes of data behind one control byte: 12 ms at 400 kHz
COMMANDS, DATA = (
    0x00,
    0x40,
)  # control bytes, SSD1306 rev 1.5, section 8.1.5; SH1106 v2.3, I2C interface
HINT = "check the cable and `exo board check`"


class Wires(Protocol):
    """Bytes out and pins, by the profile's names. A pin that is not connected is left alone."""

    def write(self, payload: bytes) -> None:
        """Send one transfer. Raises BoardError."""
        ...

    def set(self, pin: str, level: float) -> None:
        """Drive a pin: 0 low, 1 high, between them a share of time. Raises BoardError."""
        ...

    def get(self, pin: str) -> bool:
        """Read a pin; one that is not connected is low. Raises BoardError."""
        ...

    def close(self) -> None:
        """Let go of bus and pins."""
        ...


class Bus(Protocol):
    """What a driver speaks through."""

    wires: Wires

    def command(self, *codes: int) -> None:
        """Send bytes that the controller takes as commands."""
        ...

    def data(self, payload: bytes) -> None:
        """Send bytes that it takes as data."""
        ...


class I2cBus:
    """A control byte before each transfer says what the bytes are."""

    def __init__(self, wires: Wires) -> None:
        self.wires = wires

    def command(self, *codes: int) -> None:
        self.wires.write(bytes((COMMANDS, *codes)))

    def data(self, payload: bytes) -> None:
        for start in range(0, len(payload), I2C_CHUNK):
            self.wires.write(bytes((DATA,)) + payload[start : start + I2C_CHUNK])


class SpiBus:
    """The pin DC says what the bytes are: low commands, high data."""

    def __init__(self, wires: Wires) -> None:
        self.wires = wires
        self._level: int | None = None

    def command(self, *codes: int) -> None:
        self._select(0)
        self.wires.write(bytes(codes))

    def data(self, payload: bytes) -> None:
        self._select(1)
        for start in range(0, len(payload), SPI_CHUNK):
            self.wires.write(payload[start : start + SPI_CHUNK])

    def _select(self, level: int) -> None:
        if level != self._level:
            self._level = None  # unknown again if this fails
            self.wires.set("DC", level)
            self._level = level


class RecordedWires:
    """Wires that lead nowhere: `log` keeps ("write", bytes) and ("set", pin, level) in order.

    `fail(n)` lets the n-th transfer from now on fail, `broken` all of them; `answer` is what a pin that
    is read says."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.broken = ""
        self.answer: Callable[[str], bool] = lambda pin: False
        self.closed = False
        self._left = 0

    def fail(self, number: int) -> None:
        """Let the `number`-th transfer from now fail, once."""
        self._left = number

    def write(self, payload: bytes) -> None:
        self._left -= 1
        if self.broken or self._left == 0:
            raise BoardError("send to the panel", self.broken or "no answer", HINT)
        self.log.append(("write", payload))

    def set(self, pin: str, level: float) -> None:
        self.log.append(("set", pin, level))

    def get(self, pin: str) -> bool:
        return self.answer(pin)

    def close(self) -> None:
        self.closed = True


class Registers(Protocol):
    """A chip on I2C that is read by registers of 16 bits, the high byte first."""

    def word(self, register: int) -> int:
        """Read a register, 0 to 65535. Raises BoardError."""
        ...

    def close(self) -> None:
        """Let go of the bus."""
        ...


class RecordedRegisters:
    """Registers that a test fills; `broken` lets every read fail, `asked` keeps the numbers."""

    def __init__(self, words: Mapping[int, int]) -> None:
        self.words, self.broken, self.closed = dict(words), "", False
        self.asked: list[int] = []

    def word(self, register: int) -> int:
        self.asked.append(register)
        if self.broken or register not in self.words:
            raise BoardError(f"read register 0x{register:02X}", self.broken or "no answer", HINT)
        return self.words[register]

    def close(self) -> None:
        self.closed = True


class I2cRegisters:
    """`/dev/i2c-<number>`, a chip at `address`."""

    def __init__(self, number: int, address: int) -> None:
        self.address = address
        with _faults(f"open /dev/i2c-{number}"):
            import smbus2

            self._message, self._bus = smbus2.i2c_msg, smbus2.SMBus(number)

    def word(self, register: int) -> int:
        # the number and the answer in one transaction: nobody else's comes between (UM10204, 3.1.10)
        number = self._message.write(self.address, [register])
        answer = self._message.read(self.address, 2)
        with _faults(f"read register 0x{register:02X} at 0x{self.address:02X}"):
            self._bus.i2c_rdwr(number, answer)
        return int.from_bytes(bytes(answer), "big")

    def close(self) -> None:
        self._bus.close()


class _RealPins:
    """Pins through gpiozero: `inverted` ones are on when they are low; `factory` None is the header."""

    def __init__(self, pins: Mapping[str, int], inverted: frozenset[str], factory: Any) -> None:
        self._pins: dict[str, Any] = {}
        with _faults("open the panel's pins"):
            try:
                for name, number in pins.items():
                    if name not in ("CS", "TE"):  # the SPI device drives CS; nobody waits for TE
                        self._pins[name] = _pin(name, number, name not in inverted, factory)
            except BaseException:
                self.close_pins()
                raise

    def set(self, pin: str, level: float) -> None:
        if pin in self._pins:
            with _faults(f"set pin {pin}"):
                self._pins[pin].value = level

    def get(self, pin: str) -> bool:
        if pin not in self._pins:
            return False
        with _faults(f"read pin {pin}"):
            return bool(self._pins[pin].value)

    def close_pins(self) -> None:
        while self._pins:
            self._pins.popitem()[1].close()


class I2cWires(_RealPins):
    """`/dev/i2c-<number>`, a controller at `address`."""

    def __init__(
        self,
        number: int,
        address: int,
        pins: Mapping[str, int],
        inverted: frozenset[str] = frozenset(),
        factory: Any = None,
    ) -> None:
        super().__init__(pins, inverted, factory)
        self.address = address
        with _faults(f"open /dev/i2c-{number}"):
            try:
                import smbus2

                self._message = smbus2.i2c_msg.write
                self._bus = smbus2.SMBus(number)
            except BaseException:
                self.close_pins()
                raise

    def write(self, payload: bytes) -> None:
        with _faults(f"send to the panel at 0x{self.address:02X}"):
            self._bus.i2c_rdwr(self._message(self.address, payload))

    def close(self) -> None:
        self._bus.close()
        self.close_pins()


class SpiWires(_RealPins):
    """`/dev/spidev<bus>.<device>` in mode 0."""

    def __init__(
        self,
        bus: int,
        device: int,
        speed_hz: int,
        pins: Mapping[str, int],
        inverted: frozenset[str] = frozenset(),
        factory: Any = None,
    ) -> None:
        super().__init__(pins, inverted, factory)
        self._name = f"/dev/spidev{bus}.{device}"
        with _faults(f"open {self._name}"):
            try:
                import spidev

                self._spi = spidev.SpiDev()
                self._spi.open(bus, device)
                self._spi.max_speed_hz, self._spi.mode = speed_hz, 0
            except BaseException:
                self.close_pins()
                raise

    def write(self, payload: bytes) -> None:
        with _faults(f"send to the panel at {self._name}"):
            self._spi.writebytes2(payload)

    def close(self) -> None:
        self._spi.close()
        self.close_pins()


def _pin(name: str, number: int, high: bool, factory: Any) -> Any:
    """Open a pin as its name wants it; `high`: it is on when it is high."""
    import gpiozero

    if name == "BUSY":
        return gpiozero.DigitalInputDevice(
            number, pull_up=None, active_state=high, pin_factory=factory
        )
    if name == "BL":
        return gpiozero.PWMOutputDevice(
            number, active_high=high, frequency=200, pin_factory=factory
        )
    first = name in ("RST", "PWR")  # neither reset nor cut off while it is opened
    return gpiozero.DigitalOutputDevice(
        number, active_high=high, initial_value=first, pin_factory=factory
    )


@contextlib.contextmanager
def _faults(what: str) -> Iterator[None]:
    """Turn what the libraries raise into a BoardError that says what was done."""
    try:
        yield
    except BoardError:
        raise
    except ImportError as error:
        raise BoardError(what, str(error), "install the extra `board`") from error
    except OSError as error:
        raise BoardError(what, error.strerror or str(error), HINT) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("gpiozero", "lgpio"):
            raise  # a bug of ours
        raise BoardError(what, f"{type(error).__name__}: {error}", HINT) from error
