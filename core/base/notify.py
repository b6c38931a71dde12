"""Signs of life for systemd (sd_notify(3), sd_watchdog_enabled(3)). Owns two variables of the environment,
which it takes out: what we start does not speak for us. Without systemd it says nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import MutableMapping


class Systemd:
    """`beat` is seconds between two signs of life; 0: nobody waits for them."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        wanted = environ.pop("WATCHDOG_USEC", "0")
        mine = environ.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.beat = int(wanted) / 3e6 if mine and wanted.isdigit() else 0.0

    def tell(self, text: str) -> None:
        """Send `READY=1`, `WATCHDOG=1` or `STOPPING=1`. Best effort: a full queue costs one sign."""
        if not self._address:
            return
        flags = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, flags) as link:
            link.sendto(text.encode(), self._address)

    async def live(self) -> None:
        """Say that this process is ready, then that its event loop turns, until cancelled."""
        self.tell("READY=1")
        while True:
            await asyncio.sleep(self.beat or 3600.0)
            self.tell("WATCHDOG=1")
