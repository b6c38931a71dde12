"""Wi-Fi from a file on the boot partition, which any PC can write: exo-wifi.toml (or .txt) with `ssid`,
`password`, `hidden`, `country`. Run as root by exo-wifi.service; also sets the country that the handheld
asked for.

Invariant: the file is removed once its network was joined, and stays, with the reason beside it in
exo-wifi.log, while it was not; its password is written nowhere else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from exo.board.wifi import Wifi, WifiError, check_country, check_name, check_password
from exo.core.base.errors import ExoError
from exo.core.base.files import sync_folder, write_atomic
from exo.core.base.home import Home

FOLDERS = (Path("/boot/firmware"), Path("/boot"))
NAMES = ("exo-wifi.toml", "exo-wifi.txt")
LOG = "exo-wifi.log"
REQUEST = "wifi-country"  # in state/: what the handheld, which may not, wants to be set
KEYS: dict[str, type] = {"ssid": str, "password": str, "hidden": bool, "country": str}

FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

Run = Callable[[Sequence[str]], int]  # a program's exit code; 127: there is none


def read(path: Path) -> dict[str, Any]:
    """The file's values, checked. Raises WifiError naming the key, never its value."""
    what = f"read {path.name}"
    try:
        # as an editor on any system leaves it: a mark at its start, line ends of two signs
        found = tomllib.loads(path.read_text(encoding="utf-8-sig").replace("\r\n", "\n"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise WifiError(what, why, "write it again") from None
    except tomllib.TOMLDecodeError as error:
        do = 'write lines like ssid = "My network"'
        raise WifiError(what, str(error).split("\n")[0][:80], do) from None
    for name, value in found.items():
        if name not in KEYS or not isinstance(value, KEYS[name]):
            kind = KEYS[name].__name__ if name in KEYS else "known key"
            raise WifiError(what, f"{name[:40]!r} is no {kind}", f"use {', '.join(KEYS)}")
    check_name(found.get("ssid", ""))
    if found.get("password"):
        found["password"] = check_password(found["password"])
    if found.get("country"):
        found["country"] = check_country(found["country"])
    return found


def set_country(code: str, run: Run) -> None:
    """Say in which country the radio is: until then Raspberry Pi OS keeps it off. Raises WifiError."""
    code = check_country(code)
    # raspi-config also writes it down for the next start
    for command in (
        ("raspi-config", "nonint", "do_wifi_country", code),
        ("iw", "reg", "set", code),
    ):
        if run(command) == 0:
            return
    do = "set it with `sudo raspi-config`"
    raise WifiError(f"set the country {code}", "neither raspi-config nor iw did it", do)


def apply(wifi: Wifi, folder: Path, run: Run) -> str:
    """Take the file in `folder` if there is one; returns what was done, empty: nothing. Raises WifiError,
    whose text is in the log beside the file."""
    path = next((folder / name for name in NAMES if (folder / name).is_file()), None)
    if path is None:
        return ""
    log = folder / LOG
    try:
        found = read(path)
        if found.get("country"):
            set_country(found["country"], run)
        wifi.radio(True)
        status = wifi.join(found["ssid"], found.get("password", ""), found.get("hidden", False))
    except WifiError as error:
        with contextlib.suppress(ExoError, OSError):
            write_atomic(log, f"{error}\n")
        raise
    path.unlink()
    log.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # FAT knows no such sync on some kernels
        sync_folder(folder)
    return f"joined {status.ssid!r}, address {status.address}, internet {status.internet}"


def ask_country(state: Path, code: str) -> None:
    """Leave the wish where exo-wifi.path finds it; for those who may not set it. Raises WifiError,
    StorageError."""
    write_atomic(state / REQUEST, check_country(code) + "\n")


def grant(state: Path, run: Run) -> str:
    """Fulfil that wish; returns what was done. Raises WifiError."""
    path = state / REQUEST
    try:
        handle = os.open(path, FLAGS)  # the folder is another user's
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()
        return ""
    with os.fdopen(handle, "rb") as file:
        code = file.read(8).decode(errors="replace")
    path.unlink(missing_ok=True)
    set_country(code, run)
    return f"the radio is in {check_country(code)}"


def program(command: Sequence[str]) -> int:
    """Run it, at most a minute."""
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 127


def main() -> int:
    """`python -m exo.board.wifi_boot`: exit 1 with one line for each thing that failed."""
    wifi, failed = Wifi(), 0
    jobs: list[Callable[[], str]] = [partial(grant, Home.find().state, program)]
    jobs += [partial(apply, wifi, folder, program) for folder in FOLDERS]
    for job in jobs:
        try:
            if told := job():
                print(f"exo-wifi: {told}", file=sys.stderr)
        except ExoError as error:
            failed = 1
            print(f"exo-wifi: {error}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
