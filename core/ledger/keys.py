"""The two kinds of key. The root key is the person: it signs enrolments and revocations of devices and
travels with the store. The device key signs entries and never leaves `state/`, so that a copied store is
opened by a new author. Invariant: what a device key file says has left never goes back."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.core.base.errors import HomeError
from exo.core.base.files import make_folder, write_atomic
from exo.core.ledger.canonical import canonical
from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import CryptoError


class Key:
    """An Ed25519 key. `public` is lower-case hex."""

    def __init__(self, seed: bytes | None = None) -> None:
        """The key of a seed of 32 bytes; a new one without."""
        self.seed = seed or secrets.token_bytes(32)
        public, self._secret = crypto_sign_seed_keypair(self.seed)
        self.public = public.hex()

    def sign(self, message: bytes) -> str:
        """The signature, hex."""
        return crypto_sign(message, self._secret)[:64].hex()

    def blind(self, text: str) -> str:
        """A hash of `text`, hex, that nobody can try texts against who lacks the key."""
        raw = text.encode("utf-8", "replace")
        return hashlib.blake2b(raw, key=self.seed, person=b"text", digest_size=32).hexdigest()


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` over `message` is by the key `public` (both lower-case hex)."""
    try:
        raw = bytes.fromhex(signature.decode())
        key = bytes.fromhex(public.decode())
        if raw.hex().encode() != signature:
            return False
        return crypto_sign_open(raw + message, key) == message
    except (ValueError, CryptoError):
        return False


def device_body(root: Key, action: str, device: str, lc: int, name: str) -> dict[str, Any]:
    """Body of a `device` entry: `action` is enrol or revoke."""
    told = {"action": action, "device": device, "lc": lc, "name": name}
    return {**told, "root": root.public, "root_sig": root.sign(canonical(told))}


def device_signed(body: Any, root: str) -> bool:
    """Whether the body of a `device` entry is well-formed and signed by the root key."""
    try:
        told = {key: body[key] for key in ("action", "device", "lc", "name")}
        if body["action"] not in ("enrol", "revoke") or type(body["lc"]) is not int:
            return False
        if body["root"] != root:
            return False
        return signed(root.encode(), canonical(told), body["root_sig"].encode())
    except (KeyError, TypeError, AttributeError, ValueError):
        return False


@dataclass
class DeviceKey:
    """`state/device.key`: the key, and the last own entry that left this device (seq 0: none did)."""

    key: Key
    seq: int = 0
    chain: str = ""

    @classmethod
    def load(cls, path: Path) -> DeviceKey | None:
        """None when there is none. Raises HomeError."""
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_bytes())
            left = data.get("left") or {"seq": 0, "chain": ""}
            return cls(Key(bytes.fromhex(data["seed"])), int(left["seq"]), str(left["chain"]))
        except Exception as error:
            do = "put it back from a backup, or move it aside"
            raise HomeError(f"read {path}", "it is not whole", do) from error

    def save(self, path: Path) -> None:
        left = {"seq": self.seq, "chain": self.chain} if self.seq else None
        make_folder(path.parent)
        write_atomic(path, json.dumps({"seed": self.key.seed.hex(), "left": left}))


def load_root(path: Path) -> Key | None:
    """The root key, None when there is none. Raises HomeError."""
    found = DeviceKey.load(path)
    return found.key if found else None


def make_root(path: Path, key: Key | None = None) -> Key:
    """Write a root key, a new one when none is given."""
    key = key or Key()
    make_folder(path.parent)
    write_atomic(path, json.dumps({"seed": key.seed.hex()}))
    return key
