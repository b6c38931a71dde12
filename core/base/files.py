"""Files that are whole or not there. Owns atomic replacement and the one-process lock.

Invariant: a reader of `write_atomic`'s target sees the old bytes or the new bytes, never a mixture,
also after a power cut (temp file, fsync, rename, fsync of the folder; POSIX rename(2))."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from exo.core.base.errors import AlreadyRunning, storage_error


def make_folder(path: Path, mode: int = 0o700) -> Path:
    """Make `path` with its parents, `mode` on what is made. Raises StorageError."""
    try:
        missing = [each for each in reversed(path.parents) if not each.is_dir()]
        for each in (*missing, path):  # mkdir's own way gives its mode to the last alone
            each.mkdir(mode, exist_ok=True)
    except OSError as error:
        raise storage_error(f"make folder {path}", error) from error
    return path


def write_atomic(
    path: Path, data: bytes | str, mode: int = 0o600, check: Callable[[], None] | None = None
) -> None:
    """Replace `path` by `data` in one step that survives power loss; `check` is called just before that
    step and stops it by raising. Raises StorageError."""
    raw = data.encode() if isinstance(data, str) else data
    temp = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            if check is not None:
                check()
            temp.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temp.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error(f"write {path}", error) from error


def sync_folder(path: Path) -> None:
    """Make the folder's entries durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class ProcessLock:
    """A pid file held by flock(2) for the life of the process: the kernel drops it on any death,
    so a stale file never blocks and a living holder is never pushed aside."""

    def __init__(self, path: Path, name: str) -> None:
        """Take the lock. Raises AlreadyRunning with the holder's pid, StorageError."""
        make_folder(path.parent)
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(f"open {path}", error) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = read_pid(path)
            os.close(self._handle)
            raise AlreadyRunning(
                f"start {name} on {path.parent.parent}",
                f"another {name} runs there as process {pid}",
                f"use that one, or stop it with `kill {pid}`",
            ) from error
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._handle)
            raise storage_error(f"write {path}", error) from error

    def release(self) -> None:
        """Give the lock back; the file stays, empty, so that no other holder is unlinked."""
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1


def read_pid(path: Path) -> int:
    """Return the process id written in `path`, 0 when there is none."""
    try:
        return int(path.read_text().strip() or 0)
    except (OSError, ValueError):
        return 0
