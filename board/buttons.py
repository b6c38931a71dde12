"""Buttons on GPIO pins, through gpiozero (lgpio on a board, a mock in tests).

Owns the pins and one thread that lets their edges settle (presses.py). Invariant: while no key is down
the thread sleeps; a release that was lost is found by reading the pins again."""

from __future__ import annotations

import contextlib
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from exo.board.ports import ignore
from exo.board.presses import NEVER, TIMING, Gesture, Grammar, Presses, Timing, grammar
from exo.board.profile import Button
from exo.core.base.errors import BoardError

LOOK = 0.25  # seconds between two looks at the pins while a key is down
# labels of the chip behind the 40 pin header: its number differs between boards and kernels
CHIPS = ("pinctrl-rp1", "pinctrl-bcm2711", "pinctrl-bcm2835")


class GpioButtons:
    """The buttons of a profile, behind the port of buttons."""

    def __init__(
        self,
        buttons: Sequence[Button],
        factory: Any = None,
        timing: Timing = TIMING,
        clock: Callable[[], float] = time.monotonic,
        rules: Grammar | None = None,
    ) -> None:
        """Take the pins; a key that is down now is not heard until it comes up. `factory` is gpiozero's
        (None: lgpio on the header), `rules` what the keys can say (None: `grammar`). Raises BoardError,
        with no pin kept."""
        self._clock = clock
        self._edges: queue.SimpleQueue[tuple[float, str, bool] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pins: dict[str, Any] = {}
        self._own = factory is None
        self._factory = header() if factory is None else factory
        try:
            for button in buttons:
                if button.pin is not None:
                    self._pins[button.name] = self._open(button)
            held = {name for name, pin in self._pins.items() if pin.is_active}
        except BoardError:
            self.close()
            raise
        self.names = tuple(self._pins)
        self._presses = presses(self.names, rules, timing, held)

    def _open(self, button: Button) -> Any:
        pin = self._pin(button)
        pin.when_activated = lambda: self._edges.put((self._clock(), button.name, True))
        pin.when_deactivated = lambda: self._edges.put((self._clock(), button.name, False))
        return pin

    def _pin(self, button: Button) -> Any:
        from gpiozero import DigitalInputDevice

        pull = {"up": True, "down": False, "none": None}[button.pull]
        active = not button.active_low if pull is None else None
        try:
            # bounce_time stays unset: gpiozero's mock ignores it, so it could not be tested
            return DigitalInputDevice(
                button.pin, pull_up=pull, active_state=active, pin_factory=self._factory
            )
        except Exception as error:  # lgpio's errors have no base class but this
            raise BoardError(
                f"open button {button.name} on GPIO {button.pin}",
                str(error) or type(error).__name__,
                "`exo board check` says what else takes that pin; or change it in the profile",
            ) from error

    def listen(
        self, callback: Callable[[str, bool], None], gesture: Callable[[Gesture], None] = ignore
    ) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(callback, gesture), name="buttons", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._edges.put(None)
            self._thread.join(5)
            self._thread = None
        for pin in self._pins.values():
            pin.close()
        self._pins = {}
        if self._own and self._factory is not None:
            self._factory.close()
            self._factory = None

    def _run(
        self, callback: Callable[[str, bool], None], gesture: Callable[[Gesture], None]
    ) -> None:
        while True:
            try:
                edge = self._edges.get(timeout=self._wait())
            except queue.Empty:
                found = self._presses.tick(self._clock(), self._levels())
            else:
                if edge is None:
                    return
                found = self._presses.edge(*edge)
            tell(found, callback, gesture)

    def _wait(self) -> float | None:
        """Seconds until there is something to do; None while only an edge can be that."""
        pressed = self._presses
        busy = pressed.down or pressed.deaf
        until = min(pressed.due, self._clock() + LOOK if busy else NEVER)
        return None if until == NEVER else max(0.0, until - self._clock())

    def _levels(self) -> Mapping[str, bool]:
        """The pins as they are. What cannot be read is left as it was told last."""
        levels = {}
        for name in self._presses.down | self._presses.deaf:
            try:
                levels[name] = bool(self._pins[name].is_active)
            except Exception:  # noqa: BLE001 - lgpio's errors have no base class but this
                continue
        return levels


def presses(
    names: Sequence[str],
    rules: Grammar | None = None,
    timing: Timing = TIMING,
    held: Collection[str] = (),
) -> Presses:
    """The keys of a board under `rules` (None: `grammar` of them)."""
    rules = rules or grammar(names)
    return Presses(names, rules.repeats, rules.doubles, rules.chords, timing, held)


def tell(
    found: Sequence[Gesture],
    callback: Callable[[str, bool], None],
    gesture: Callable[[Gesture], None],
) -> None:
    """Hand changes to `callback` and their meaning to `gesture`, in turn."""
    for each in found:
        if each.kind in ("down", "up"):
            callback(each.names[0], each.kind == "down")
        else:
            gesture(each)


def header() -> Any:
    """gpiozero's factory for the header's chip, by lgpio. Raises BoardError when that cannot be."""
    # lgpio makes a pipe in the working folder, where a service cannot write; told of another one, it
    # makes that the working folder of the whole process
    here = Path.cwd()
    with contextlib.ExitStack() as back:
        os.environ.setdefault("LG_WD", back.enter_context(tempfile.TemporaryDirectory()))
        back.callback(os.chdir, here)
        return _header()


def _header() -> Any:
    try:
        import lgpio
        from gpiozero.pins.lgpio import LGPIOFactory
    except ImportError as error:
        raise BoardError(
            "use the buttons", str(error), "install the extra: pip install 'exo-companion[board]'"
        ) from error
    chip = chip_of(labels(lgpio))
    try:
        return LGPIOFactory(chip=chip)
    except Exception as error:  # lgpio's errors have no base class but this
        raise BoardError(
            "use the buttons",
            str(error) or type(error).__name__,
            "put this user into the group gpio; without a header, run it with --board sim",
        ) from error


def labels(library: Any, chips: int = 16) -> dict[int, str]:
    """The label of each GPIO chip that can be opened, by number."""
    found = {}
    for number in range(chips):
        try:
            handle = library.gpiochip_open(number)
        except Exception:  # noqa: BLE001 - no such chip, or not ours
            continue
        found[number] = str(library.gpio_get_chip_info(handle)[3])
        library.gpiochip_close(handle)
    return found


def chip_of(found: Mapping[int, str]) -> int | None:
    """The number of the header's chip; None leaves it to gpiozero."""
    return next((number for number, label in sorted(found.items()) if label in CHIPS), None)
