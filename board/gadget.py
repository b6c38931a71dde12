"""The USB gadget that makes a board a serial port at the other end of its cable: written into configfs as the kernel
wants it (Documentation/usb/gadget_configfs.rst). Owns the ids by which `exo console` knows the device. Runs as root, once at boot.

Invariant: what is set up already is left alone, and taking it down leaves configfs as it was."""

from __future__ import annotations

import argparse
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

from exo.core.base.errors import BoardError, ExoError

VENDOR, PRODUCT = 0x1D6B, 0x0104  # Linux Foundation, multifunction composite gadget
ENGLISH = "0x409"  # USB 2.0, 9.6.7: the language of the strings


@dataclass(frozen=True)
class Gadget:
    """One gadget with one serial function (USB CDC 1.2, abstract control model)."""

    name: str = "exo"
    manufacturer: str = "Exo"
    product: str = "Exo"  # exo console looks for it
    configuration: str = "Serial"
    milliamperes: int = 250  # drawn from the bus
    function: str = "acm.usb0"  # becomes /dev/ttyGS0

    def files(self, serial: str) -> dict[str, str]:
        """Path below the gadget -> what it holds, in the order of writing."""
        return {
            "idVendor": f"0x{VENDOR:04x}",
            "idProduct": f"0x{PRODUCT:04x}",
            "bcdDevice": "0x0100",
            "bcdUSB": "0x0200",
            "bDeviceClass": "0xef",  # miscellaneous, 2, 1: an interface association (USB ECN IAD)
            "bDeviceSubClass": "0x02",
            "bDeviceProtocol": "0x01",
            f"strings/{ENGLISH}/serialnumber": serial,
            f"strings/{ENGLISH}/manufacturer": self.manufacturer,
            f"strings/{ENGLISH}/product": self.product,
            f"configs/c.1/strings/{ENGLISH}/configuration": self.configuration,
            "configs/c.1/MaxPower": str(self.milliamperes),
        }


def up(root: Path = Path("/"), gadget: Gadget | None = None) -> Path:
    """Make the gadget and bind it to the board's controller; returns its folder. Raises BoardError."""
    gadget = gadget or Gadget()
    configs = root / "sys/kernel/config/usb_gadget"
    if not configs.is_dir():
        raise BoardError(
            f"set up the USB gadget in {configs}", "the kernel offers none", "load libcomposite"
        )
    controllers = sorted(path.name for path in (root / "sys/class/udc").glob("*"))
    if not controllers:
        what = "set dtoverlay=dwc2,dr_mode=peripheral in config.txt and restart"
        raise BoardError("set up the USB gadget", "no port can be a device", what)
    folder = configs / gadget.name
    try:
        bound = folder / "UDC"
        if bound.exists() and bound.read_text().strip():
            return folder
        for name, value in gadget.files(_serial(root)).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value + "\n")
        function = folder / "functions" / gadget.function
        function.mkdir(parents=True, exist_ok=True)
        link = folder / "configs/c.1" / gadget.function
        if not link.is_symlink():
            link.symlink_to(function)
        bound.write_text(controllers[0] + "\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise BoardError(f"set up the USB gadget in {folder}", why, "run it as root") from error
    return folder


def down(root: Path = Path("/"), gadget: Gadget | None = None) -> None:
    """Take the gadget away, in the order that configfs wants. Raises BoardError."""
    gadget = gadget or Gadget()
    folder = root / "sys/kernel/config/usb_gadget" / gadget.name
    if not folder.is_dir():
        return
    try:
        with contextlib.suppress(OSError):  # it is not bound
            (folder / "UDC").write_text("\n")
        (folder / "configs/c.1" / gadget.function).unlink(missing_ok=True)
        for name in (
            f"configs/c.1/strings/{ENGLISH}",
            "configs/c.1",
            f"functions/{gadget.function}",
            f"strings/{ENGLISH}",
            "",
        ):
            if (folder / name).is_dir():
                (folder / name).rmdir()
    except OSError as error:
        why = error.strerror or str(error)
        raise BoardError(f"take down the USB gadget in {folder}", why, "run it as root") from error


def _serial(root: Path) -> str:
    """The board's own number, so that a PC tells two boards apart and gives each its port again."""
    try:
        text = (root / "proc/device-tree/serial-number").read_text()
    except OSError:
        return "0000000000000000"
    return "".join(char for char in text if char.isalnum())[:32] or "0000000000000000"


def main(arguments: list[str] | None = None) -> int:
    """`python -m exo.board.gadget up|down [--root DIR]`."""
    parser = argparse.ArgumentParser(prog="exo.board.gadget", description="The USB serial gadget.")
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="DIR")
    options = parser.parse_args(arguments)
    try:
        if options.action == "up":
            print(up(options.root))
        else:
            down(options.root)
    except ExoError as error:
        print(f"exo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
