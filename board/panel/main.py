# board: Raspberry Pi Pico or Pico W (RP2040), MicroPython 1.24 or newer
"""Runs the front panel from power on. Owns start and end. Invariant: a panel that hangs or fails starts
anew by itself; one whose button back is held at the start, or that mpremote interrupts, does nothing."""

import time

import machine
import micropython
import wiring
from panel import Panel


def run():
    buttons = wiring.buttons()
    if not dict(buttons)["back"].value():
        return
    micropython.kbd_intr(-1)  # a frame may hold 0x03; Panel listens for it between frames
    dog = wiring.watchdog()
    parts = wiring.screen, buttons, wiring.light(), dog.feed, wiring.WIDTH, wiring.HEIGHT
    panel = Panel(wiring.line(), *parts)
    try:
        while True:
            panel.step()
    except KeyboardInterrupt:
        wiring.unwatch()
        micropython.kbd_intr(3)
        raise
    except Exception as error:  # noqa: BLE001 - shown, told, and begun anew
        panel.fault(error)
        time.sleep_ms(5000)  # to be read; the watchdog has 8 s
        machine.reset()


run()
