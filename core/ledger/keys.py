"""The two kinds of key. The root key is the person: it signs enrolments and revocations of devices and
travels with the store. The device key signs entries and never leaves `state/`, so that a copied store is
opened by a new author. Invariant: what a device key file says has left never goes back."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.core.base.errors import HomeError
from exo.core.base.files import make_folder, write_atomic
from exo.core.ledger.canonical import canonical
from nacl import pwhash
from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox


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


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` over `message` is by the key `public` (both lower-case hex)."""
    try:
        raw, key = bytes.fromhex(signature.decode()), bytes.fromhex(public.decode())
        return raw.hex().encode() == signature and crypto_sign_open(raw + message, key) == message
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
        shape = body["action"] in ("enrol", "revoke") and type(body["lc"]) is int
        signature = body["root_sig"].encode()
        return shape and body["root"] == root and signed(root.encode(), canonical(told), signature)
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
        data = _read(path, "seed", "left")
        left = data and data["left"] or {"seq": 0, "chain": ""}
        return cls(_key(path, data["seed"]), left["seq"], left["chain"]) if data else None

    def save(self, path: Path) -> None:
        left = {"seq": self.seq, "chain": self.chain} if self.seq else None
        make_folder(path.parent)
        write_atomic(path, json.dumps({"seed": self.key.seed.hex(), "left": left}))


class RootKey:
    """`store/private/keys/root.key`: the public key and the seed, bare or sealed by a passphrase."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "root.key"

    def public(self) -> str:
        """Its hex, "" when there is no root key here."""
        return str((_read(self.path, "public") or {"public": ""})["public"])

    def load(self, passphrase: str = "") -> Key:
        """Raises HomeError when it is missing, or sealed by another passphrase."""
        data = _read(self.path, "public", "seed")
        if data is None:
            why = f"{self.path} is missing"
            raise HomeError("enrol a device", why, "put the file back from a backup of the store")
        if not data.get("salt"):
            return _key(self.path, data["seed"])
        try:
            box = _box(passphrase, bytes.fromhex(data["salt"]))
            return Key(box.decrypt(bytes.fromhex(data["seed"])))
        except (CryptoError, ValueError) as error:
            why = "it is sealed by another passphrase"
            raise HomeError(f"open {self.path}", why, "give the right one") from error

    def save(self, key: Key, passphrase: str = "") -> None:
        """Write the key, sealed (Argon2id, XSalsa20-Poly1305) when there is a passphrase."""
        salt = secrets.token_bytes(pwhash.argon2id.SALTBYTES) if passphrase else b""
        seed = _box(passphrase, salt).encrypt(key.seed) if passphrase else key.seed
        make_folder(self.path.parent)
        data = {"public": key.public, "seed": seed.hex(), "salt": salt.hex()}
        write_atomic(self.path, json.dumps(data))


def _box(passphrase: str, salt: bytes) -> SecretBox:
    size, cost = SecretBox.KEY_SIZE, pwhash.argon2id
    limits = cost.OPSLIMIT_INTERACTIVE, cost.MEMLIMIT_INTERACTIVE
    return SecretBox(cost.kdf(size, passphrase.encode(), salt, *limits))


def _key(path: Path, seed: str) -> Key:
    try:
        return Key(bytes.fromhex(seed))
    except (TypeError, ValueError) as error:
        raise _broken(path) from error


def _read(path: Path, *fields: str) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes()) if path.exists() else None
        return data if data is None else {**data, **{key: data[key] for key in fields}}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _broken(path) from error


def _broken(path: Path) -> HomeError:
    return HomeError(
        f"read {path}", "it is not whole", "put it back from a backup, or move it aside"
    )
