"""What a board is to the handheld: buttons, a microphone, a speaker. The screen has its own file.

Owns the seams alone: a fake, a PC and a real board stand behind them and pass one contract suite."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from exo.board.presses import Gesture

MICROPHONE_RATE = 16_000  # samples a second, mono, signed 16 bit little-endian


def ignore(gesture: Gesture) -> None:
    """Nobody asks what the fingers mean."""


class Buttons(Protocol):
    """Buttons by the `names` of the profile. Debounced: each change is told once."""

    names: tuple[str, ...]

    def listen(
        self,
        callback: Callable[[str, bool], None],
        gesture: Callable[[Gesture], None] = ignore,
    ) -> None:
        """Call `callback(name, down)` on every change and then `gesture` with what it means (press, hold,
        double, chord, repeat, stuck), from any thread but one at a time."""
        ...

    def close(self) -> None:
        """Tell nothing any more."""
        ...


class Microphone(Protocol):
    """Sound in. Opened for each recording, so that one that was unplugged is found again."""

    def record(self, stop: threading.Event) -> Iterator[bytes]:
        """Yield blocks of about 32 ms at MICROPHONE_RATE as they are heard, until `stop` is set.
        Raises BoardError when there is no microphone or it fails."""
        ...


class Speaker(Protocol):
    """Sound out, mono s16le. One thread plays; any thread may stop."""

    @property
    def stops(self) -> int:
        """How often `stop` was called."""
        ...

    def play(self, pcm: bytes, rate: int, since: int | None = None) -> None:
        """Queue samples behind what plays now, without a gap; blocks while over about 0.3 s waits. With
        `since`, a value of `stops`: nothing when `stop` was called after it was read. Raises BoardError when there is no speaker or it fails."""
        ...

    def drain(self) -> None:
        """Return when everything queued was heard, or `stop` was called."""
        ...

    def stop(self) -> None:
        """Silence at once; what was queued is dropped. A later `play` begins anew."""
        ...
