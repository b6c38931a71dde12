"""Looks at what the device's screen shows (device/mirror.py says how it is sent). Owns one thread that finds the
socket whenever it is there; keeps the newest picture alone."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exo.core.base.unix import connect


class Viewer:
    """Looks at a Mirror, whenever there is one: the newest picture counts."""

    def __init__(self, path: Path, wake: Callable[[], object]) -> None:
        self._path, self._wake = path, wake
        self._stop, self._newest = threading.Event(), dict[str, Any]()
        threading.Thread(target=self._run, name="viewer", daemon=True).start()

    def take(self) -> dict[str, Any] | None:
        """The newest picture's event, once."""
        newest, self._newest = self._newest, {}
        return newest or None

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(OSError), contextlib.closing(connect(self._path, 1.0)) as link:
                data = b""
                while not self._stop.is_set():
                    try:
                        piece = link.recv(65536)
                    except TimeoutError:
                        continue
                    if not piece:
                        break
                    *lines, data = (data + piece).split(b"\n")
                    if lines:
                        with contextlib.suppress(ValueError):
                            self._newest = json.loads(lines[-1])
                            self._wake()
            self._stop.wait(1.0)
