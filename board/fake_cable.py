"""A USB serial cable of two pseudo-terminals, for tests and benches: it can be slow, noisy, pulled in the middle of
a frame and plugged in again. Owns its two ports, which are links to whatever pseudo-terminals stand there now."""

from __future__ import annotations

import contextlib
import os
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
        self.cut: Callable[[], int] | None = None
        self.noise: Callable[[bytes], bytes] | None = None  # what becomes of a piece on its way
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._ends: tuple[int, int] | None = None
        self._slaves: list[int] = []
        self._left, self._held = 0, [b"", b""]
        self._thread = threading.Thread(target=self._run, name="cable", daemon=True)

    def __enter__(self) -> FakeCable:
        self.plug()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(5)
        self.pull()

    def cut_after(self, cut: Callable[[], int] | None) -> None:
        """From now on pull the cable after as many bytes as `cut` says at each plugging in; None: no more."""
        with self._lock:
            self.cut, self._left = cut, cut() if cut else 0

    def plug(self) -> None:
        """Two new pseudo-terminals, unless it is plugged in."""
        with self._lock:
            if self._ends is not None:
                return
            pairs = [os.openpty() for _ in range(2)]
            for port, (master, slave) in zip((self.device, self.host), pairs, strict=True):
                tty.setraw(slave)
                os.set_blocking(master, False)
                port.symlink_to(os.ttyname(slave))
            ends, self._slaves = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            self._left = self.cut() if self.cut else 0
            self._ends = (ends[0], ends[1])

    def pull(self) -> None:
        """Both ends see a hang-up."""
        with self._lock:
            # first: the numbers of pseudo-terminals are given out again
            self.device.unlink(missing_ok=True)
            self.host.unlink(missing_ok=True)
            for handle in [*(self._ends or ()), *self._slaves]:
                os.close(handle)
            self._ends, self._slaves, self._held = None, [], [b"", b""]

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
            # neither direction waits for the other: what does not fit is held
            wanted = [end for n, end in enumerate(ends) if not self._held[n]]
            ready, _, _ = select.select(wanted, [], [], 0.01)
            for n in (0, 1):
                if ends[n] in ready:
                    piece = os.read(ends[n], max(1, min(step, self._left)) if self.cut else step)
                    self.carried += len(piece)
                    self._left -= len(piece)
                    self._held[n] = self.noise(piece) if self.noise else piece
                if self._held[n]:
                    with contextlib.suppress(BlockingIOError):
                        self._held[n] = self._held[n][os.write(ends[1 - n], self._held[n]) :]
            over = self.cut is not None and self._left <= 0
        if over:
            self.pull()
            self.cuts += 1
            time.sleep(self.away)
            self.plug()
        elif self.baud and ready:
            time.sleep(step * 10 / self.baud)
