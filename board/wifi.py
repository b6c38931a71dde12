"""Wi-Fi through NetworkManager's nmcli: what is there, joining, forgetting, a hotspot of our own. Owns the
words that nmcli is asked with and what its answers mean; knows no screen.

Invariant: a password goes to nmcli on its standard input, never into an argument, a log or an error, and no
call is waited for longer than its deadline."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from exo.core.base.errors import BoardError

ASK = 10.0  # seconds a question may take
SCAN = 20.0
JOIN = 45.0  # association, the four-way handshake and DHCP
HIDDEN = 3  # tries: a hidden network answers only when it is called by name, and not each time
PAUSE = 4.0  # seconds between them
HOTSPOT = "exo-hotspot"  # the name of our profile
WIFI = "802-11-wireless"
PROFILES = "NAME,UUID,TYPE"

# what nmcli and NetworkManager say, in English: the locale is set so. The first that fits counts.
SIGNS = (
    (
        "wrong_password",
        ("secrets were required", "passwords or encryption keys are required", "802.1x supplicant")
        + ("psk: property is invalid", "no valid secrets"),
    ),
    (
        "not_found",
        ("no network with ssid", "no access point with", "wi-fi network could not be found"),
    ),
    ("no_radio", ("no wi-fi device found", "is not a wi-fi device", "' not found.")),
    ("no_manager", ("networkmanager is not running", "could not create nmclient")),
    ("refused", ("insufficient privileges", "not authorized")),
    ("no_address", ("ip configuration could not be reserved", "ip-config-unavailable")),
    ("too_slow", ("timeout expired", "timeout %d sec expired")),
)
MEND = {
    "wrong_password": ("the password is wrong", "enter it again"),
    "not_found": ("no such network is in reach", "go nearer, or say that it is hidden"),
    "no_radio": ("there is no Wi-Fi radio", "see `nmcli device`"),
    "no_manager": ("NetworkManager does not run", "install network-manager, or start it"),
    "refused": ("this user may not", "run `./flash.sh install` again, it sets the rule"),
    "no_address": ("the network gave no address", "try again, or restart the router"),
    "too_slow": ("it took too long", "go nearer and try again"),
}


class WifiError(BoardError):
    """`code` is wrong_password, not_found, no_radio, no_manager, refused, no_address, too_slow, bad_name,
    bad_country or wifi."""

    code = "wifi"


@dataclass(frozen=True)
class Network:
    """One name in the air. `signal` 0 to 100; `security` as nmcli has it, empty: open; `known`: its
    password is here; `company`: it wants more than a password (802.1X), which is not offered here."""

    ssid: str
    signal: int
    security: str = ""
    active: bool = False
    known: bool = False

    @property
    def company(self) -> bool:
        return "802.1X" in self.security


@dataclass(frozen=True)
class Status:
    """`device` empty: no radio; `ssid` empty: not joined; `internet` is full, portal (a page wants a click
    first), limited, none or unknown."""

    device: str = ""
    on: bool = False
    ssid: str = ""
    address: str = ""
    internet: str = "unknown"


class Wifi:
    """One radio. Every method waits for nmcli: call it from a thread. They raise WifiError."""

    def __init__(
        self,
        program: Sequence[str] = ("nmcli",),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._program, self._sleep = tuple(program), sleep

    def status(self) -> Status:
        """How it stands now; asks NetworkManager to look whether the internet answers."""
        device, state, profile = self._device()
        if not device:
            return Status()
        on = self._ask("radio", "wifi").strip() == "enabled"
        if state != "connected":
            return Status(device, on)
        internet = self._ask("networking", "connectivity", "check").strip()
        shown = self._ask("-g", "IP4.ADDRESS", "device", "show", device)
        address = (_lines(shown) or [""])[0].split("/")[0]
        ssid = self._names([profile]).get(profile, profile)
        return Status(device, on, ssid, address, internet)

    def scan(self, fresh: bool = True) -> list[Network]:
        """What is in the air, one row a name, the strongest first; hidden ones have no name and are left
        out. `fresh`: look now, else what was seen last."""
        fields = ("-t", "-f", "IN-USE,SSID,SIGNAL,SECURITY", "device", "wifi", "list")
        out = self._ask(*fields, "--rescan", "yes" if fresh else "no", wait=SCAN)
        known = set(self.known())
        found: dict[str, Network] = {}
        for line in _lines(out):
            used, ssid, signal, security = (split(line) + [""] * 4)[:4]
            active = used == "*"
            each = Network(ssid, int(signal or 0), security, active, ssid in known)
            best = found.get(ssid)
            if ssid and (best is None or (active, each.signal) > (best.active, best.signal)):
                found[ssid] = each
        return sorted(found.values(), key=lambda each: (-each.signal, each.ssid))

    def known(self) -> dict[str, str]:
        """{name in the air: id} of the networks whose password is here."""
        rows = [
            split(line) for line in _lines(self._ask("-t", "-f", PROFILES, "connection", "show"))
        ]
        ids = [row[1] for row in rows if len(row) == 3 and row[2] == WIFI and row[0] != HOTSPOT]
        return {ssid: id_ for id_, ssid in self._names(ids).items()}

    def join(self, ssid: str, password: str = "", hidden: bool = False) -> Status:
        """Join and remember a network; without a password a known or an open one. A new one that fails is
        not remembered."""
        check_name(ssid)
        secret = check_password(password) if password else ""
        id_ = self.known().get(ssid)
        what = f"join {ssid!r}"
        if id_ and not secret:
            self._ask(
                "--wait", f"{JOIN:.0f}", "connection", "up", "uuid", id_, wait=JOIN, what=what
            )
            return self.status()
        words = ["--wait", f"{JOIN:.0f}", "device", "wifi", "connect", ssid]
        words += ["hidden", "yes"] if hidden else []
        for left in reversed(range(HIDDEN if hidden else 1)):
            try:
                # --ask has it read the password from its standard input
                self._ask(
                    *(["--ask"] if secret else []), *words, wait=JOIN, what=what, secret=secret
                )
                break
            except WifiError as error:
                if error.code != "not_found" or not left:
                    self._drop(ssid, unless=id_)
                    raise
            self._sleep(PAUSE)
        return self.status()

    def forget(self, ssid: str) -> None:
        """Remove a known network with its password."""
        id_ = self.known().get(ssid)
        if not id_:
            raise WifiError(f"forget {ssid!r}", "it is not known", code="not_found")
        self._ask("connection", "delete", "uuid", id_, what=f"forget {ssid!r}")

    def radio(self, on: bool) -> None:
        """Switch the radio."""
        self._ask("radio", "wifi", "on" if on else "off")

    def hotspot(self, ssid: str, password: str) -> str:
        """Be a network of our own; returns our address there. Look around first: one radio cannot do both.
        The password is for this one time and is shown to whoever sees the screen."""
        device = self._device()[0]
        if not device:
            raise _error("raise the hotspot", "no_radio")
        self.end_hotspot()
        words = ("ifname", device, "con-name", HOTSPOT, "ssid", ssid, "password", password)
        self._ask(
            "--wait", "30", "device", "wifi", "hotspot", *words, wait=30.0, what="raise the hotspot"
        )
        shown = self._ask("-g", "IP4.ADDRESS", "device", "show", device)
        address = (_lines(shown) or [""])[0].split("/")[0]
        if not address:
            self.end_hotspot()
            raise _error("raise the hotspot", "no_address")
        return address

    def end_hotspot(self) -> None:
        """Take it down and forget it; none is fine."""
        try:
            self._ask("connection", "delete", "id", HOTSPOT)
        except WifiError as error:
            if error.code in ("no_manager", "refused"):
                raise

    # inside

    def _device(self) -> tuple[str, str, str]:
        """(device, its state, the id of its profile), all empty without a radio."""
        out = self._ask("-t", "-f", "DEVICE,TYPE,STATE,CON-UUID", "device", "status")
        for line in _lines(out):
            name, kind, state, id_ = (split(line) + [""] * 4)[:4]
            if kind == "wifi":
                return name, state, id_
        return "", "", ""

    def _names(self, ids: Sequence[str]) -> dict[str, str]:
        """{id: name in the air} of profiles: a profile's own name may be any."""
        if not any(ids):
            return {}
        out = self._ask("-g", f"{WIFI}.ssid", "connection", "show", *ids)
        names = [split(line)[0] for line in out.split("\n")[::2]]  # an empty line between two
        return dict(zip(ids, names, strict=False))

    def _drop(self, ssid: str, unless: str | None) -> None:
        """Remove what a failed join left behind."""
        left = self.known().get(ssid)
        if left and left != unless:
            self._ask("connection", "delete", "uuid", left)

    def _ask(self, *words: str, wait: float = ASK, what: str = "", secret: str = "") -> str:
        what = what or f"ask nmcli for {' '.join(word for word in words if word[:1] != '-')[:60]}"
        environ = os.environ | {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
        try:
            done = subprocess.run(
                [*self._program, "--colors", "no", *words],
                input=f"{secret}\n" if secret else "",
                env=environ,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=wait + 5.0,
                check=False,
            )
        except FileNotFoundError:
            raise _error(what, "no_manager") from None
        except subprocess.TimeoutExpired:  # not chained: it carries what nmcli was told
            raise _error(what, "too_slow") from None
        told = f"{done.stdout}\n{done.stderr}"
        # asked a second time for the password: the first one was wrong, whatever the exit code
        if done.returncode == 0 and not (secret and "keys are required" in told):
            return done.stdout
        raise _meant(what, done.returncode, told.replace(secret, "***") if secret else told)


def split(line: str) -> list[str]:
    r"""The fields of one line of `nmcli -t`, which writes `:` and `\` in a field as `\:` and `\\`."""
    fields, text, signs = [], "", iter(line)
    for sign in signs:
        if sign == ":":
            fields.append(text)
            text = ""
        else:
            text += next(signs, "") if sign == "\\" else sign
    return [*fields, text]


def check_name(ssid: str) -> None:
    """Raises WifiError for what cannot be the name of a network."""
    if not 1 <= len(ssid.encode()) <= 32 or ssid.startswith("-") or not ssid.isprintable():
        raise WifiError(f"join {ssid[:40]!r}", "a name has 1 to 32 bytes of text", code="bad_name")


def check_password(text: str) -> str:
    """Return it without line ends. Raises WifiError for what WPA does not allow (8 to 63 printable
    characters, or 64 hex digits)."""
    text = text.strip("\r\n")
    if (
        re.fullmatch("[0-9a-fA-F]{64}", text)
        or 8 <= len(text.encode()) <= 63
        and text.isprintable()
    ):
        return text
    raise WifiError(
        "join", "a password has 8 to 63 characters", "see it again", code="wrong_password"
    )


def check_country(code: str, table: Path = Path("/usr/share/zoneinfo/iso3166.tab")) -> str:
    """Return the two letters in capitals. Raises WifiError for what is no country."""
    code = code.strip().upper()
    known = re.fullmatch("[A-Z]{2}", code) is not None
    if known and table.exists():
        known = re.search(f"^{code}\t", table.read_text(errors="replace"), re.MULTILINE) is not None
    if not known:
        raise WifiError(
            f"set the country {code[:8]!r}", "it is none", "write DE", code="bad_country"
        )
    return code


def join_code(ssid: str, password: str) -> str:
    """What a phone's camera takes as "join this network", as a text for a QR code."""
    name, secret = (re.sub(r'([\\;,:"])', r"\\\1", each) for each in (ssid, password))
    return f"WIFI:T:WPA;S:{name};P:{secret};;"


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def _error(what: str, code: str) -> WifiError:
    why, do = MEND[code]
    return WifiError(what, why, do, code=code)


def _meant(what: str, returned: int, told: str) -> WifiError:
    low = told.lower()
    for code, signs in SIGNS:
        if any(sign in low for sign in signs):
            return _error(what, code)
    if returned in (3, 8, 10):
        return _error(what, {3: "too_slow", 8: "no_manager", 10: "not_found"}[returned])
    errors = [line for line in told.splitlines() if line.startswith("Error")]
    return WifiError(what, (errors or [f"nmcli ended with {returned}"])[-1][:200], "try again")
