"""`exo console [PORT]` and `exo tui`: the client in panes, with the device at the other end of a USB cable or with
this machine's own Exo. Owns how a device is found among the serial ports."""

from __future__ import annotations

import argparse
import os

from exo.board.cable import SILENCE
from exo.core.base.errors import ServiceError
from exo.tools.link import Link, Port

IDS = ((0x1D6B, 0x0104),)  # Linux Foundation, multifunction composite gadget: board/gadget.py's
PRODUCT = "Exo"


def find() -> str:
    """The port of the one device that is plugged in. Raises ServiceError for none and for several."""
    from serial.tools import list_ports

    ports = list(list_ports.comports())
    found = [each for each in ports if each.product == PRODUCT]
    found = found or [each for each in ports if (each.vid, each.pid) in IDS]
    if len(found) == 1:
        return str(found[0].device)
    if found:
        names = ", ".join(each.device for each in found)
        raise ServiceError("find the device", f"there are several: {names}", "name one")
    others = ", ".join(each.device for each in ports) or "none at all"
    raise ServiceError(
        "find the device", f"no port is Exo's (ports: {others})", "plug it in, or name its port"
    )


def open_serial(name: str, baud: int = 115200) -> Port:
    """Open a port that nobody else uses. Raises OSError."""
    import serial

    return serial.Serial(
        name, baud, timeout=0.05, write_timeout=SILENCE, exclusive=os.name == "posix"
    )


def console(options: argparse.Namespace) -> int:
    """Find the device, ask for its PIN, open the client."""
    import getpass
    import sys

    name = options.port or ""

    def open_() -> Port:
        return open_serial(name or find(), options.baud)

    def say(text: str) -> None:
        print(f"exo: {text}", file=sys.stderr)

    link = Link(open_, lambda why: getpass.getpass(f"{why}: ").strip(), say)
    link.start(3600.0)
    from exo.tools.tui.app import run

    return run(link, options.session)


def tui(options: argparse.Namespace) -> int:
    """The same client on this machine's own exod."""
    from exo.core.base.home import Home
    from exo.tools.running import connect

    home = Home.find(options.home)
    client = connect(home)
    from exo.tools.tui.app import run

    return run(client, options.session, home)
