"""Joins pieces of text before they are saved: the first at once, then one every `interval`. A card
wears by commits, and nobody reads faster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from exo.core.base.errors import StorageError


class Joiner:
    """Collects `feed`s and hands them to `save`, never later than `interval` seconds."""

    def __init__(self, save: Callable[[str], None], interval: float) -> None:
        self._save, self._interval = save, interval
        self._text = ""
        self._last = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._fault: StorageError | None = None

    def feed(self, text: str) -> None:
        """Add text. Raises StorageError when it, or text before it, could not be saved."""
        if self._fault is not None:
            raise self._fault
        self._text += text
        loop = asyncio.get_running_loop()
        wait = self._last + self._interval - loop.time()
        if wait <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(wait, self._late)

    def flush(self) -> None:
        """Save what waits, now. Raises StorageError."""
        if text := self.drop():
            self._last = asyncio.get_running_loop().time()
            self._save(text)

    def drop(self) -> str:
        """Take what waits; it is not saved."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text, self._text = self._text, ""
        return text

    def _late(self) -> None:
        try:
            self.flush()
        except StorageError as error:
            self._fault = error  # told by the next feed: a timer has nobody to raise to
