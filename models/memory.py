"""What the process's memory is. Linux only: reads /proc, and tells glibc to give back what it hoards."""

from __future__ import annotations

import ctypes
from pathlib import Path

_ROLLUP = Path("/proc/self/smaps_rollup")
_M_ARENA_MAX, _M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -8, -3, -1  # malloc.h


def rss_mb() -> float:
    """Megabytes (1e6) resident, shared pages in full."""
    return _field("Rss:")


def _field(name: str) -> float:
    try:
        for line in _ROLLUP.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass  # a kernel without the file: the budget then rests on the catalog's figures
    return 0.0


def thrifty() -> None:
    """Keep glibc from hoarding: one heap for each thread fragments, and its threshold for blocks of their
    own grows with use until the tensors of one long text stay resident for ever (230 MB, measured)."""
    _libc("mallopt", _M_ARENA_MAX, 2)
    _libc("mallopt", _M_MMAP_THRESHOLD, 1 << 20)
    _libc("mallopt", _M_TRIM_THRESHOLD, 2 << 20)


def give_back() -> None:
    """Return freed heap to the kernel, after a load or an unload."""
    _libc("malloc_trim", 0)


def _libc(function: str, *args: int) -> None:
    try:
        getattr(ctypes.CDLL(None), function)(*args)
    except (AttributeError, OSError):
        return  # another libc
