"""A USB serial cable of two pseudo-terminals, for tests and benches: it can be slow, noisy, pulled in the middle of
a frame and plugged in again. Owns its two ports, which are links to whatever pseudo-terminals stand there now."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path


class FakeCable:
    """`device` and `host` are its ports. Use as a context manager."""

    def __init__(self, folder: Path, baud: int = 0, away: float = 0.05) -> None:
        """`baud` paces both directions (ten bits a byte; 0: as fast as it goes); `away` seconds pass between
        pulling by `cut` and plugging in."""
        self.device, self.host = folder / "device", folder / "host"
        self.baud, self.away = baud, away
        self.cuts = 0
        self.carried = 0  # bytes, of both directions
        self.cut: Callable[[], int] | None = (
            None  # bytes until the next cut, asked for at each plugging in
        )
        self.noise: Callable[[bytes], bytes] | None = None  # what becomes of a piece on its way
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._ends: tuple[int, int] | None = None
        self._slaves: list[int] = []
        self._left = 0
        self._thread = threading.Thread(target=self._run, name="cable", daemon=True)

    def __enter__(self) -> FakeCable:
        self.plug()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(5)
        self.pull()

    def plug(self) -> None:
        """Two new pseudo-terminals."""
        with self._lock:
            ends = []
            for port in (self.device, self.host):
                master, slave = os.openpty()
                tty.setraw(slave)
                os.set_blocking(master, False)
                beside = port.with_name(f"{port.name}.{secrets.token_hex(4)}")
                beside.symlink_to(os.ttyname(slave))
                beside.rename(port)
                self._slaves.append(slave)
                ends.append(master)
            self._left = self.cut() if self.cut else 0
            self._ends = (ends[0], ends[1])

    def pull(self) -> None:
        """Both ends see a hang-up."""
        with self._lock:
            for handle in [*(self._ends or ()), *self._slaves]:
                os.close(handle)
            self._ends, self._slaves = None, []

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._ends is None:
                self._stop.wait(0.005)
                continue
            with contextlib.suppress(OSError, ValueError):
                self._carry()

    def _carry(self) -> None:
        with self._lock:
            if self._ends is None:
                return
            ends = self._ends
            step = max(1, self.baud // 10 // 50) if self.baud else 4096
            ready, _, _ = select.select(ends, [], [], 0.01)
            for end in ready:
                other = ends[1 - ends.index(end)]
                if not select.select([], [other], [], 0)[1]:
                    continue
                piece = os.read(end, min(step, self._left) if self.cut else step)
                self.carried += len(piece)
                self._left -= len(piece)
                piece = self.noise(piece) if self.noise else piece
                while piece:
                    with contextlib.suppress(BlockingIOError):
                        piece = piece[os.write(other, piece) :]
                if self.cut and self._left <= 0:
                    break
        if self.cut and self._left <= 0:
            self.pull()
            self.cuts += 1
            time.sleep(self.away)
            self.plug()
        elif self.baud and ready:
            time.sleep(step * 10 / self.baud)
