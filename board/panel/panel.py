# board: any with MicroPython; what is wired is in wiring.py
"""The front panel: draws what the host sends, tells the buttons, says when the host is gone.

Owns the protocol and the panel's own pages; knows no pin and no port. frames.py beside it is the host's
core/base/frames.py. Invariant: whatever comes over the line, `step` returns, and the buttons are told."""

import gc
import json
import struct
import time

import framebuf
import logging
from frames import Reader, frame
from micropython import const

VERSION = const(1)
_TEXT = const(0)  # kinds of frames
_LINK = const(2)
_SCREEN = const(3)
_BUTTONS = const(4)
_LOG = const(5)
_PICTURE = const(0)  # the first byte of kind 3, from the host
_BRIGHTNESS = const(1)
_LIGHT = const(2)
_HEAD = const(10)  # operation, number, left, upper, width, height
_DONE = const(0)  # how a picture went, in the answer
_REFUSED = const(1)
_BLIND = const(2)
_MISSED = const(3)  # one before it did not come whole
_WAIT = const(4)  # ms for a byte to come: buttons are read at least that often while all is quiet
_BEAT = const(1000)  # ms between signs of life
_GONE = const(3000)  # ms of silence after which the host is gone
_STALE = const(
    300
)  # ms of silence until the rest of a frame is given up: less than a beat, which fills it
_DIM = const(1)  # contrast of the panel's own pages: they may stand for days


class Lines:
    """Log lines as frames, for logging's StreamHandler."""

    def __init__(self, line):
        self._line = line

    def write(self, text):
        self._line.write(frame(_LOG, text.strip().encode()))


class Panel:
    """`line` has read(into, wait) and write(data), `opens` gives a screen like ssd1306's or raises OSError,
    `buttons` are (name, pin), `feed` keeps the watchdog quiet."""

    def __init__(self, line, opens, buttons, light, feed, width, height):
        self._line, self._opens, self._light, self._feed = line, opens, light, feed
        self._names = [name for name, _ in buttons]
        self._pins = [pin for _, pin in buttons]
        self._levels = bytearray(len(buttons))
        self._size = width, height
        self._limit = _HEAD + (width + 7) // 8 * height  # bytes of the longest payload
        self._reader = Reader(self._limit)
        self._into = bytearray(256)
        self._view = memoryview(self._into)
        self._area = bytearray((width + 7) // 8 * height)  # the picture that came, as its rows
        self._oled = None
        self._fault = ""
        self._host = False
        self._dirty = False  # drawn, not yet on the glass
        self._level, self._lit = _DIM, -1  # contrast that is to be, and that is
        self._lines = ()  # of the page that is to be seen while there is no host
        self._number, self._state = -1, _DONE  # of the frame that is to be answered; -1: none
        self._last = (
            -1
        )  # the number before; -1: whatever comes is the first, -2: something is missing
        gc.threshold(4096)  # small and often: no holes between what stays
        self._ms = 0  # since the start; ticks_ms turns over after days
        self._ticks = self._heard = self._came = self._beaten = time.ticks_ms()
        self._log = logging.getLogger("panel")
        self._log.setLevel(logging.INFO)
        handler = logging.StreamHandler(Lines(line))
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        self._log.addHandler(handler)
        self._open()
        self._page("Exo panel", "", "waits for", "its host")

    def step(self):
        """One turn; returns after some milliseconds."""
        self._feed()
        count = self._line.read(self._into, _WAIT)
        now = time.ticks_ms()
        self._ms += time.ticks_diff(now, self._ticks)
        self._ticks = now
        try:
            self._turn(now, count)
        except MemoryError:  # lost, like what a bad line loses: the host sends it again
            self._reader = None
            gc.collect()
            self._reader, self._last = Reader(self._limit), -2

    def _turn(self, now, count):
        if count:
            self._came = now
            self._take(self._reader.feed(bytes(self._view[:count])))
        else:
            if self._reader.waits and time.ticks_diff(now, self._came) > _STALE:
                self._take(self._reader.give_up())
            self._settle()
        self._scan()
        if time.ticks_diff(now, self._beaten) >= _BEAT:
            self._beaten = now
            self._beat()

    def fault(self, error):
        """Show and tell what ended the program."""
        text = f"{type(error).__name__}: {error}"
        self._page("panel failed", *[text[at : at + 16] for at in range(0, min(len(text), 80), 16)])
        self._log.error("%s", text)

    # the host

    def _take(self, found):
        for kind, payload in found:
            if kind == _TEXT:
                # mpremote begins so; a host is never there at the same time
                if b"\x03" in payload and self._line.console and not self._host:
                    raise KeyboardInterrupt
                continue
            self._heard = self._ticks
            if kind == _LINK:
                self._linked(payload)
            elif kind == _SCREEN and self._host and len(payload) > 2:
                self._drawn(payload)

    def _linked(self, payload):
        try:
            told = json.loads(payload)
            greets, pings = "version" in told, "ping" in told
        except (ValueError, TypeError):
            self._log.warning("no JSON in a frame of kind %d", _LINK)
            return
        if greets:
            self._host, self._number, self._last, self._state = True, -1, -1, _DONE
            self._hello()
        elif pings and self._host:
            self._send(_LINK, {"pong": told["ping"], "free": _free(), "down": self._down()})
        elif pings:
            self._hello()  # it takes us for somebody whom we are no more

    def _hello(self):
        width, height = self._size
        hello = {"version": VERSION, "name": "exo-panel", "width": width, "height": height}
        hello["buttons"], hello["down"] = self._names, self._down()
        hello["host"], hello["free"] = self._host, _free()
        self._send(_LINK, hello)

    def _send(self, kind, told):
        self._line.write(frame(kind, json.dumps(told).encode()))

    def _beat(self):
        gc.collect()
        if self._oled is None:
            self._open()
        if self._host and time.ticks_diff(self._ticks, self._heard) > _GONE:
            self._host, self._number = False, -1
            self._light.value(0)
            self._page("host gone", "", "plug it in, or", "start exo-device")
        if not self._host:
            self._light.value(not self._light.value())
            self._hello()

    # the screen

    def _open(self):
        try:
            self._oled = self._opens()
            self._fault, self._lit = "", -1
            if not self._host:
                self._page(*self._lines)
        except OSError as error:
            self._blind(error)

    def _blind(self, error):
        self._oled = None
        if not self._fault:
            self._fault = str(error)
            self._log.error("the screen does not answer: %s", error)

    def _drawn(self, payload):
        """One frame of kind 3."""
        number = payload[1]
        if self._last != -1 and (self._last == -2 or number != (self._last + 1) & 0xFF):
            self._state = _MISSED
        self._number = self._last = number
        if payload[0] == _PICTURE:
            self._picture(payload)
        elif payload[0] == _LIGHT:
            self._light.value(1 if payload[2] else 0)
        elif payload[0] == _BRIGHTNESS:
            self._level = payload[2]
        else:
            self._state = _REFUSED

    def _picture(self, payload):
        width, height = self._size
        if len(payload) < _HEAD:
            self._state = _REFUSED
            return
        x, y, wide, high = struct.unpack_from("<HHHH", payload, 2)
        size = (wide + 7) // 8 * high
        if not wide or x + wide > width or y + high > height or len(payload) != _HEAD + size:
            self._state = _REFUSED
            return
        self._area[:size] = memoryview(payload)[_HEAD:]
        if self._oled:
            rows = framebuf.FrameBuffer(self._area, wide, high, framebuf.MONO_HLSB)
            self._oled.blit(rows, x, y)
            self._dirty = True

    def _show(self):
        """What was drawn onto the glass, then its brightness: an old picture is not seen again."""
        if not self._oled:
            return
        try:
            if self._dirty:
                self._oled.show()
                self._dirty = False
            if self._level != self._lit:
                if self._level:
                    self._oled.contrast(self._level)
                    self._oled.poweron()
                else:
                    self._oled.poweroff()
                self._lit = self._level
        except OSError as error:
            self._blind(error)

    def _settle(self):
        """Show, and answer: once the line is quiet, for all that came."""
        self._show()
        if self._number >= 0:
            state = self._state if self._oled else _BLIND
            self._line.write(frame(_SCREEN, bytes((self._number, state))))
            self._number, self._state = -1, _DONE

    def _page(self, *lines):
        """A page of the panel's own."""
        self._level, self._lines = _DIM, lines
        if not self._oled:
            return
        self._oled.fill(0)
        top = (self._size[1] - 10 * len(lines)) // 2
        for number, text in enumerate(lines):
            left = (self._size[0] - 8 * len(text)) // 2
            self._oled.text(text, left, top + 10 * number)
        self._dirty = True
        self._show()

    # the buttons

    def _scan(self):
        for number, pin in enumerate(self._pins):
            down = 1 - pin.value()
            if down != self._levels[number]:
                self._levels[number] = down
                told = {"name": self._names[number], "level": down, "ms": self._ms}
                if self._host:
                    self._send(_BUTTONS, told)

    def _down(self):
        return [name for name, level in zip(self._names, self._levels) if level]


def _free():
    gc.collect()
    return gc.mem_free()
