"""The two kinds of key. The root key is the person: it signs enrolments and revocations of devices and
travels with the store. The device key signs entries and never leaves `state/`, so that a copied store is
opened by a new author. Invariant: `left` never goes back: it names the last entry that others may know."""

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
    """An Ed25519 key. `public` is its lower-case hex."""

    def __init__(self, seed: bytes) -> None:
        public, self._secret = crypto_sign_seed_keypair(seed)
        self.seed, self.public = seed, public.hex()

    @classmethod
    def new(cls) -> Key:
        return cls(secrets.token_bytes(32))

    def sign(self, message: bytes) -> str:
        """The signature, hex."""
        return crypto_sign(message, self._secret)[:64].hex()


def signed(public: bytes | str, message: bytes, signature: bytes | str) -> bool:
    """Whether `signature` (hex, lower-case) over `message` is by the key `public` (hex)."""
    text = signature if isinstance(signature, str) else signature.decode("latin-1")
    try:
        raw = bytes.fromhex(text)
        key = bytes.fromhex(public if isinstance(public, str) else public.decode("latin-1"))
        return raw.hex() == text and crypto_sign_open(raw + message, key) == message
    except (ValueError, CryptoError):
        return False


def device_body(root: Key, action: str, device: str, lc: int, name: str) -> dict[str, Any]:
    """Body of a `device` entry: `action` is enrol or revoke."""
    told = {"action": action, "device": device, "lc": lc, "name": name}
    return {**told, "root": root.public, "root_sig": root.sign(canonical(told))}


def device_fault(body: Any) -> str:
    """What is wrong with the body of a `device` entry, "" when the root key signed it."""
    try:
        told = {key: body[key] for key in ("action", "device", "lc", "name")}
        good = signed(body["root"], canonical(told), body["root_sig"])
    except (KeyError, TypeError, AttributeError, ValueError):
        return "it is no enrolment"
    if type(body["lc"]) is not int or body["action"] not in ("enrol", "revoke"):
        return "it is no enrolment"
    return "" if good else "the root key did not sign it"


@dataclass
class DeviceKey:
    """`state/device.key`: the key, and the last own entry that left this device (seq 0: none)."""

    key: Key
    seq: int = 0
    chain: str = ""

    @classmethod
    def load(cls, path: Path) -> DeviceKey | None:
        """None when there is none. Raises HomeError when it cannot be read."""
        data = _read(path, "the device enrols anew")
        if data is None:
            return None
        try:
            left = data["left"] or {"seq": 0, "chain": ""}
            return cls(Key(bytes.fromhex(data["seed"])), int(left["seq"]), str(left["chain"]))
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(path, "the device enrols anew") from error

    def save(self, path: Path) -> None:
        left = {"seq": self.seq, "chain": self.chain} if self.seq else None
        write_atomic(path, json.dumps({"seed": self.key.seed.hex(), "left": left}))


class RootKey:
    """`store/private/keys/root.key`: the public key, and the seed, bare or sealed by a passphrase."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "root.key"

    def public(self) -> str:
        """Its hex, "" when there is no root key here."""
        data = _read(self.path, "a backup has it")
        return str(data.get("public", "")) if data else ""

    def make(self) -> Key:
        make_folder(self.path.parent)
        key = Key.new()
        write_atomic(self.path, json.dumps({"public": key.public, "seed": key.seed.hex()}))
        return key

    def load(self, passphrase: str = "") -> Key:
        """Raises HomeError when it is missing, or sealed by another passphrase."""
        data = _read(self.path, "a backup has it")
        if data is None:
            do = "put the file back from a backup of the store"
            raise HomeError("sign with the root key", f"{self.path} is missing", do)
        try:
            if "seed" in data:
                return Key(bytes.fromhex(data["seed"]))
            salt, box = bytes.fromhex(data["salt"]), bytes.fromhex(data["sealed"])
            return Key(SecretBox(_stretch(passphrase, salt)).decrypt(box))
        except CryptoError as error:
            do = "give its passphrase"
            raise HomeError(
                "open the root key", "it is sealed by another passphrase", do
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(self.path, "a backup has it") from error

    def seal(self, passphrase: str, old: str = "") -> None:
        """Seal it by `passphrase` (Argon2id, XSalsa20-Poly1305); "" leaves it open."""
        key, salt = self.load(old), secrets.token_bytes(pwhash.argon2id.SALTBYTES)
        data = {"public": key.public, "seed": key.seed.hex()}
        if passphrase:
            box = SecretBox(_stretch(passphrase, salt)).encrypt(key.seed)
            data = {"public": key.public, "salt": salt.hex(), "sealed": bytes(box).hex()}
        write_atomic(self.path, json.dumps(data))


def _stretch(passphrase: str, salt: bytes) -> bytes:
    return pwhash.argon2id.kdf(
        SecretBox.KEY_SIZE,
        passphrase.encode(),
        salt,
        opslimit=pwhash.argon2id.OPSLIMIT_INTERACTIVE,
        memlimit=pwhash.argon2id.MEMLIMIT_INTERACTIVE,
    )


def _read(path: Path, hint: str) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, hint) from error
    if not isinstance(data, dict):
        raise _unreadable(path, hint)
    return data


def _unreadable(path: Path, hint: str) -> HomeError:
    return HomeError(f"read {path}", "it is not whole", f"move it aside ({hint})")
