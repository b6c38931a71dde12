"""The secrets broker: a tool names a secret, the host of a request gets it, and nobody reads it. Owns the sealed file,
which value may go to which host, and taking values out of what comes back.

Invariant: a value leaves this module only inside a request to a host that it is for; in a prompt, a record, an
error or a result stands its name."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from exo.core.base.errors import ExoError, HomeError
from exo.core.base.files import make_folder, write_atomic
from exo.core.base.home import Home
from exo.core.toolbox.workers import in_thread, within

_MARK = re.compile(r"\{\{secret:([\w.-]{1,64})\}\}")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[?[0-9a-f:.]+\]?")
SHORTEST = 6  # characters; shorter ones would be found in any text
LONGEST = 20.0  # seconds that looking for values in a result may take
_END = r"\r|\n|\\[rn]"  # of a line, also as JSON writes it


class Secrets:
    """The file `path` sealed (XSalsa20-Poly1305, libsodium's secretbox) by a key derived from the device's:
    a copied store or card without `state/device.key` holds nothing that can be read. `seed` gives that key."""

    def __init__(self, path: Path, seed: Callable[[], bytes]) -> None:
        self._path, self._seed, self._last = path, seed, dict[str, Any]()

    def names(self) -> dict[str, list[str]]:
        """Secret to the hosts that it may go to."""
        return {name: row["hosts"] for name, row in self._load().items()}

    def put(self, name: str, value: str, hosts: list[str]) -> None:
        """Keep a value for these hosts (`*.example.com` for all below). Raises ExoError for what cannot be
        kept, HomeError."""
        sound = len(value) >= SHORTEST and value.isprintable()  # else no request could carry it
        named = hosts and all(map(_HOST.fullmatch, hosts))
        if not (sound and named and _MARK.fullmatch(f"{{{{secret:{name}}}}}")):
            do = f"a name of letters, digits, . _ -, a value of {SHORTEST} or more, and its hosts"
            raise ExoError(f"keep the secret {name[:64]!r}", "name, value or hosts are refused", do)
        self._save(self._load() | {name: {"value": value, "hosts": hosts}})

    def remove(self, name: str) -> None:
        """Let it go. Raises ExoError for one that there is not."""
        rows = self._load()
        if rows.pop(name, None) is None:
            raise ExoError(f"remove the secret {name!r}", "there is none of that name")
        self._save(rows)

    def used(self, *texts: str) -> list[str]:
        """Names of the secrets that these texts ask for."""
        return sorted({name for text in texts for name in _MARK.findall(text)})

    def fill(self, text: str, host: str, safe: str | None = None) -> str:
        """`text` with the values in place of `{{secret:NAME}}`, in an address coded but for `safe`. Raises ExoError for one that is not there or
        not for this host."""
        rows = self._load() if _MARK.search(text) else {}

        def value(found: re.Match[str]) -> str:
            row = rows.get(found[1])
            if row is None or not any(_fits(host.lower(), each) for each in row["hosts"]):
                why = f"it is not for {host}" if row else "there is none of that name"
                raise ExoError(f"use the secret {found[1]!r}", why, "a person can change that")
            return str(row["value"]) if safe is None else quote(row["value"], safe=safe)

        return _MARK.sub(value, text)

    def hide(self, text: str) -> str:
        """`text` with every value, as it is or in the codings that servers echo, also where a line ends
        in it, replaced by its name; where the values cannot be read, why `text` is not shown."""
        try:
            rows = self._load(lost=self._last)  # what could never be opened cannot have been used
        except HomeError as error:
            return f"[not shown: not searched for secrets: {error}]\n"
        joined = re.sub(_END, "", text.lower()) if rows else ""
        for name, row in rows.items():
            for form in _forms(row["value"]):
                # looking first is 20 times as fast
                if not form.isascii() or re.sub(_END, "", form.lower()) in joined:
                    pattern = f"(?:{_END})*".join(map(re.escape, form))
                    text = re.sub(pattern, f"[secret {name}]", text, flags=re.I)
        return text

    async def shown(self, text: str) -> str:
        """`hide` in a thread; where that fails or takes too long, why `text` is not shown."""
        with contextlib.suppress(Exception):  # whatever it is, nothing is shown unsearched
            return await within(LONGEST, in_thread(self.hide, text))
        return "[not shown: not searched for secrets: it failed or took too long]"

    def _load(self, lost: dict[str, Any] | None = None) -> dict[str, Any]:
        """The rows; `lost` where the file is gone, not whole or this device's key does not open it. Raises HomeError."""
        if not self._path.exists():
            return lost or {}
        do = "put it back with the device key it was made with, or remove it and add them again"
        try:
            self._last = dict(json.loads(self._box().decrypt(self._path.read_bytes())))
        except Exception as error:
            if lost is not None and not isinstance(error, OSError):
                return lost
            raise HomeError(f"open {self._path}", f"exod does not open it: {error}", do) from error
        return dict(self._last)

    def _save(self, rows: dict[str, Any]) -> None:
        make_folder(self._path.parent)
        write_atomic(self._path, bytes(self._box().encrypt(json.dumps(rows).encode())))

    def _box(self) -> Any:
        from nacl.secret import SecretBox

        key = hashlib.blake2b(key=self._seed(), person=b"exo secrets", digest_size=32)
        return SecretBox(key.digest())


def device_secrets(home: Home) -> Secrets:
    """Those of a home, under its device's key: their use raises HomeError where none was made yet."""

    def seed() -> bytes:
        from exo.core.ledger.keys import DeviceKey

        if (found := DeviceKey.load(home.state / "device.key")) is None:
            raise HomeError("open the secrets", "this device has no key yet", "run `exo ask` once")
        return found.key.seed

    return Secrets(home.state / "secrets.sealed", seed)


def _fits(host: str, pattern: str) -> bool:
    return host == pattern or pattern.startswith("*.") and host.endswith(pattern[1:])


def _forms(value: str) -> list[str]:
    raw = value.encode()
    plain = {value, value[::-1], raw.hex(), html.escape(value)}
    plain |= {quote(value, safe=""), quote(value), quote_plus(value)}
    for said in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        plain |= {said, json.dumps(said)[1:-1]}
    coded = {base64.b64encode(raw[cut:]).decode().strip("=")[:-1] for cut in range(3)}
    coded |= {each.translate({43: 45, 47: 95}) for each in coded}  # the alphabet of addresses
    return sorted(filter(lambda form: len(form) >= SHORTEST, plain | coded), key=len, reverse=True)
