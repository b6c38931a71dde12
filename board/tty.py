"""A serial port for a program that must never wait for it: open, raw, not blocking. Owns the flags (termios(3));
knows nothing of what is sent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from pathlib import Path


def open_port(path: Path, baud: int = 0) -> int:
    """Return a handle of the port. It becomes nobody's controlling terminal, waits for no carrier, and
    changes no byte. `baud` 0 leaves the speed, which USB has none of. Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with contextlib.suppress(termios.error):
            mode = termios.tcgetattr(handle)
            mode[0] = mode[1] = mode[3] = 0
            mode[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
            mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
            if baud:
                mode[4] = mode[5] = getattr(termios, f"B{baud}")
            termios.tcsetattr(handle, termios.TCSANOW, mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


def flush(handle: int) -> None:
    """Drop what waits in the kernel in both directions."""
    with contextlib.suppress(termios.error):
        termios.tcflush(handle, termios.TCIOFLUSH)


def carrier(handle: int) -> bool | None:
    """Whether the other side holds its line (its DTR is our DCD); None where a port cannot say."""
    try:
        answer = fcntl.ioctl(handle, termios.TIOCMGET, struct.pack("I", 0))
    except OSError:
        return None
    return bool(struct.unpack("I", answer)[0] & termios.TIOCM_CD)
