# board: Raspberry Pi Pico or Pico W (RP2040) with a 128x64 SSD1306 on I2C and five buttons, MicroPython 1.24 or newer
"""What is wired to which pin of the Pico (GP numbers), and the line to the host. Owns the pins; knows
nothing of the protocol. Invariant: nothing here blocks longer than it is told to."""

import select
import sys
import time

import machine
from micropython import const

WIDTH = const(128)
HEIGHT = const(64)
LINK = "usb"  # or "uart": GP0 (TX) and GP1 (RX) at 115,200 baud, 3.3 V
_TX, _RX = const(0), const(1)
_SDA, _SCL = const(4), const(5)  # I2C0; the OLED module has its own pull-ups
_ADDRESS = const(0x3C)
# each closes to ground, with the Pico's own pull-up
BUTTONS = (("talk", 15), ("up", 14), ("down", 13), ("ok", 12), ("back", 11))
_BITE = const(8000)  # ms; RP2040's watchdog counts to 8,388 at most


def screen():
    """The OLED, black. Raises OSError when it does not answer."""
    from ssd1306 import SSD1306_I2C

    wires = machine.I2C(0, sda=machine.Pin(_SDA), scl=machine.Pin(_SCL), freq=400000)
    return SSD1306_I2C(WIDTH, HEIGHT, wires, _ADDRESS)


def buttons():
    """[(name, pin)]: a pin is 0 while its button is down."""
    return [(name, machine.Pin(gp, machine.Pin.IN, machine.Pin.PULL_UP)) for name, gp in BUTTONS]


def light():
    """The LED on the Pico."""
    return machine.Pin("LED", machine.Pin.OUT, value=0)


def watchdog():
    return machine.WDT(timeout=_BITE)


def unwatch():
    """Stop the watchdog, which MicroPython cannot: bit 30 of WATCHDOG_CTRL (RP2040 data sheet 4.7.6), by
    the address that clears bits (2.1.2)."""
    machine.mem32[0x40058000 + 0x3000] = 1 << 30


def line():
    return Uart() if LINK == "uart" else Usb()


class Usb:
    """USB CDC: the stream that is also MicroPython's console."""

    console = True

    def __init__(self):
        self._poll = select.poll()
        self._poll.register(sys.stdin, select.POLLIN)
        self._one = bytearray(1)

    def read(self, into, wait):
        """Fill `into` with what has come, after `wait` ms at most; returns how many bytes."""
        count = 0
        while count < len(into) and self._poll.poll(wait):
            # one at a time: the console's read waits until it has all that it was asked for
            if not sys.stdin.buffer.readinto(self._one):
                time.sleep_ms(wait)
                break
            into[count] = self._one[0]
            count += 1
            wait = 0
        return count

    def write(self, data):
        sys.stdout.buffer.write(data)


class Uart:
    """A plain serial line."""

    console = False

    def __init__(self):
        tx, rx = machine.Pin(_TX), machine.Pin(_RX)
        self._uart = machine.UART(0, 115200, tx=tx, rx=rx, rxbuf=2048, timeout=0)

    def read(self, into, wait):
        count = self._uart.readinto(into)
        if not count:
            time.sleep_ms(wait)
        return count or 0

    def write(self, data):
        self._uart.write(data)
