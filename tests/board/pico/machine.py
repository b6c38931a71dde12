"""MicroPython's `machine` for a Pico that is not there: pins, bus and watchdog as files in the working
folder. `pins` holds the numbers of the pins that are pulled down, `wires` what came over I2C (two bytes of
length, then the transfer), `events` a line for all else; while `unplugged` exists, I2C does not answer."""

import os
import select
import sys
import time


def note(text):
    with open("events", "a") as file:
        file.write(text + "\n")


def there(name):
    try:
        os.stat(name)
    except OSError:
        return False
    return True


class Pin:
    IN, OUT, PULL_UP = 0, 1, 2
    _looked, _low = 0, ()

    def __init__(self, number, mode=IN, pull=None, value=None):
        self._number, self._mode, self._level = number, mode, value

    def value(self, level=None):
        if level is not None:
            if level != self._level:
                note("pin %s %d" % (self._number, level))
            self._level = level
            return None
        if self._mode == Pin.OUT:
            return self._level
        now = time.ticks_ms()
        if now != Pin._looked:
            with open("pins") as file:
                Pin._looked, Pin._low = now, file.read().split()
        return 0 if str(self._number) in Pin._low else 1


class I2C:
    def __init__(self, number, sda, scl, freq):
        self._file = open("wires", "ab")
        self._all = bytearray(2100)

    def writeto(self, address, data):
        self.writevto(address, (data,))

    def writevto(self, address, parts):
        if there("unplugged") or address != 0x3C:
            raise OSError(5)
        at = 2
        for part in parts:
            self._all[at : at + len(part)] = part
            at += len(part)
        self._all[0], self._all[1] = (at - 2) & 0xFF, (at - 2) >> 8
        self._file.write(memoryview(self._all)[:at])


class UART:
    """A line without a console: standard input and output, which nothing waits for."""

    def __init__(self, number, baudrate, tx, rx, rxbuf, timeout):
        self._poll = select.poll()
        self._poll.register(sys.stdin, select.POLLIN)
        self._one = bytearray(1)
        note("uart %d %d" % (number, baudrate))

    def readinto(self, into):
        count = 0
        while count < len(into) and self._poll.poll(0) and sys.stdin.buffer.readinto(self._one):
            into[count] = self._one[0]
            count += 1
        return count or None

    def write(self, data):
        return sys.stdout.buffer.write(data)


class WDT:
    def __init__(self, timeout):
        self._timeout, self._fed = timeout, time.ticks_ms()
        note("watched")

    def feed(self):
        now = time.ticks_ms()
        if time.ticks_diff(now, self._fed) > self._timeout:
            note("bitten")
        self._fed = now


class Registers:
    def __setitem__(self, address, value):
        note("register %x %x" % (address, value))


mem32 = Registers()


def reset():
    note("reset")
    sys.exit(3)
