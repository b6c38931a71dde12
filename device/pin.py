"""The PIN: four to eight digits that stand between a stranger and what the device shows. Owns its file and
the growing delay; knows no page.

The serial console asks for it too, from a process of its own: the file is read again when it has changed.
A guess costs scrypt (RFC 7914) with 16 MB, and after each wrong one the next waits longer; the count is
on the disk before a guess is judged, so that pulling the plug gains none. Invariant: nothing tells how
close a wrong PIN was, and no file that cannot be read counts as no PIN."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import storage_error
from exo.core.base.files import write_atomic

COST = {"n": 2**14, "r": 8, "p": 1}  # 16 MB; about 60 ms on x86-64, 0.3 s on a Pi Zero 2
FREE = 3  # wrong guesses without a delay
DELAYS = (5, 15, 30, 60, 300, 900, 3600)  # seconds before the next, the last for all that follow
DIGITS = (4, 8)


class Pin:
    """The PIN of one home, kept at `path` (0600). A delay runs by the monotonic clock; after a restart it
    begins again, whole."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._mark = self._stat()
        self._saved: dict[str, Any] | None = self._read()
        self._from = clock.monotonic()  # when the present delay began

    @property
    def set(self) -> bool:
        """Whether there is one."""
        self._look()
        return self._saved is not None

    @property
    def _wrong(self) -> int:
        """Wrong guesses since the last right one."""
        wrong = (self._saved or {}).get("wrong", 0)
        return wrong if isinstance(wrong, int) else FREE + len(DELAYS)

    @property
    def wait(self) -> float:
        """Seconds until a guess is taken; 0: now."""
        self._look()
        if self._wrong < FREE:
            return 0.0
        delay = DELAYS[min(self._wrong - FREE, len(DELAYS) - 1)]
        return max(0.0, self._from + delay - self._clock.monotonic())

    def matches(self, digits: str) -> bool:
        """Whether it is this one. False at once while `wait` is not over. Raises StorageError when the
        guess cannot be written down: then it is not judged either."""
        return self._judge(lambda salt, kept: hmac.compare_digest(_hash(digits, salt), kept))

    def challenge(self) -> dict[str, Any]:
        """What one needs beside the digits to make the kept hash: salt (hex), n, r, p; {}: no PIN, or a torn file."""
        self._look()
        salt = (self._saved or {}).get("salt")
        return {"salt": salt, **COST} if isinstance(salt, str) else {}

    def proves(self, check: Callable[[bytes], bool]) -> bool:
        """`matches` for somebody who shows by other means that they know the hash, which `check` is given:
        counted and delayed alike."""
        return self._judge(lambda _, kept: check(kept))

    def _judge(self, check: Callable[[bytes, bytes], bool]) -> bool:
        if self.wait or self._saved is None:
            return False
        self._write({**self._saved, "wrong": self._wrong + 1})
        self._from = self._clock.monotonic()
        try:
            salt, kept = bytes.fromhex(self._saved["salt"]), bytes.fromhex(self._saved["hash"])
        except (KeyError, ValueError, TypeError):
            return False  # a torn file: only the factory reset leads on
        if not kept or not check(salt, kept):
            return False
        self._write({**self._saved, "wrong": 0})
        return True

    def change(self, digits: str) -> None:
        """Set it; "" takes it away. Raises StorageError, ValueError for what is no PIN."""
        if not digits:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(f"remove {self._path}", error) from error
            self._saved, self._mark = None, self._stat()
            return
        if not (digits.isascii() and digits.isdigit() and DIGITS[0] <= len(digits) <= DIGITS[1]):
            raise ValueError(f"a PIN is {DIGITS[0]} to {DIGITS[1]} digits")
        salt = os.urandom(16)
        self._write({"salt": salt.hex(), "hash": _hash(digits, salt).hex(), "wrong": 0})

    def _write(self, saved: dict[str, Any]) -> None:
        write_atomic(self._path, json.dumps(saved), 0o600)
        self._saved, self._mark = saved, self._stat()

    def _look(self) -> None:
        """Read it again if another process has written it; a wrong guess there begins the delay here."""
        if (mark := self._stat()) != self._mark:
            wrong = self._wrong
            self._mark, self._saved = mark, self._read()
            if self._wrong > wrong:
                self._from = self._clock.monotonic()

    def _stat(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            return {}  # there was one: locked
        return found if isinstance(found, dict) else {}


def _hash(digits: str, salt: bytes) -> bytes:
    return hashlib.scrypt(digits.encode(), salt=salt, dklen=32, maxmem=32 * 2**20, **COST)
