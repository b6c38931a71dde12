"""Which keys are down and what their presses are still good for. Pure: knows a clock, no page.

A press is void when it woke the screen, or was down already when the page appeared: it means nothing until
the key is let go. Invariant: a press that was void or has had its meaning has no other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from exo.core.base.clock import Clock

HOLD = 0.8  # seconds
DOUBLE = 0.3  # from a tap's end to the next press
REPEAT = (0.4, 0.12)  # until a held arrow repeats, and between repeats
ARROWS = ("up", "down", "left", "right")


@dataclass
class _Press:
    at: float
    next: float  # when it repeats
    spent: bool = False
    second: bool = False  # of a double: no first of another


class Fingers:
    """The keys of one board."""

    def __init__(self, clock: Clock, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._clock = clock
        self._down: dict[str, _Press] = {}
        self._tapped: dict[str, float] = {}  # when a tap of it ended

    @property
    def ok(self) -> str:
        """The key that chooses."""
        return "ok" if "ok" in self.names else "talk"

    @property
    def lone(self) -> bool:
        """Whether there is nothing to go up and down with: what goes on, goes round."""
        return not {"up", "down"} & self.names

    @property
    def single(self) -> bool:
        """Whether talk is all there is: tapped it goes on, held it chooses."""
        return self.lone and self.ok == "talk"

    @property
    def any(self) -> bool:
        return bool(self._down)

    def press(self, name: str) -> bool:
        """A key goes down; False when it was down already."""
        if name in self._down:
            return False
        now = self._clock.monotonic()
        self._down[name] = _Press(now, now + REPEAT[0])
        self._tapped = {each: at for each, at in self._tapped.items() if each == name}
        return True

    def doubled(self, name: str) -> bool:
        """Whether the press that is under way follows a tap closely; asked once."""
        press, tapped = self._down.get(name), self._tapped.pop(name, None)
        if press is None or tapped is None or press.at - tapped > DOUBLE:
            return False
        press.second = True
        return True

    def release(self, name: str) -> float | None:
        """A key comes up: the seconds it was down, None when its press is void or spent."""
        press = self._down.pop(name, None)
        if press is None or press.spent:
            return None
        now = self._clock.monotonic()
        if now - press.at < HOLD and not press.second:
            self._tapped[name] = now
        return now - press.at

    def spend(self, name: str) -> bool:
        """The press has its meaning now; False when it is void, spent, or not down."""
        press = self._down.get(name)
        if press is None or press.spent:
            return False
        press.spent = True
        return True

    def void(self) -> None:
        """What is down means nothing until it is let go."""
        for press in self._down.values():
            press.spent = True
        self._tapped.clear()

    def held(self, name: str) -> float:
        """Seconds that a press which is still good for something lasts, 0 without one."""
        press = self._down.get(name)
        return 0.0 if press is None or press.spent else self._clock.monotonic() - press.at

    def repeats(self) -> list[str]:
        """The arrows that repeat now."""
        now, due = self._clock.monotonic(), []
        for name, press in self._down.items():
            if name in ARROWS and now >= press.next and not press.spent:
                press.next = now + REPEAT[1]
                due.append(name)
        return due
