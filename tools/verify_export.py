"""Verify an export of the ledger (`exo ledger export`) with nothing of Exo: PyNaCl and the standard library.

    python tools/verify_export.py FILE [ROOT]

ROOT is the public root key that enrolled the devices, where it is known from elsewhere. Prints how many
entries of each author are good, or the first fault; exit code 0, 1 at a fault, 2 for wrong use."""

import hashlib
import json
import sys
from collections.abc import Iterable
from typing import Any

import nacl.exceptions
import nacl.signing


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def signed(key: str, message: bytes, sig: str) -> bool:
    try:
        nacl.signing.VerifyKey(bytes.fromhex(key)).verify(message, bytes.fromhex(sig))
    except (nacl.exceptions.BadSignatureError, ValueError, TypeError):
        return False
    return sig == sig.lower() and key == key.lower()


def verify(lines: Iterable[str], root: str = "") -> dict[str, int]:
    """Author -> good entries. Raises ValueError with the first fault."""
    heads: dict[str, tuple[int, str]] = {}
    spans: dict[str, list[int]] = {}  # author -> lc of its first and its last entry
    devices: dict[str, dict[str, int]] = {"enrol": {}, "revoke": {}}
    bare: dict[str, str] = {}  # id -> where, of entries without a body
    forgotten: set[str] = set()
    for number, text in enumerate(lines, 1):
        line = json.loads(text)
        event, body = line["event"], line["body"]
        author, seq, lc, kind = event["author"], event["seq"], event["lc"], event["kind"]
        where = f"line {number}: entry {seq} of {author} ({line['id']})"
        last, chain = heads.get(author, (0, "0" * 64))
        value: Any = {} if body is None else json.loads(body)
        if kind == "device":
            root = root or value["root"]
            told = canonical({key: value[key] for key in ("action", "device", "lc", "name")})
            enrolled = value["root"] == root and signed(root, told, value["root_sig"])
            known = devices[value["action"]]
            known[value["device"]] = min(value["lc"], known.get(value["device"], value["lc"]))
        checks = {
            "a number is missing or stands twice": seq == last + 1,
            "its id is not the hash of its envelope": sha(canonical(event)) == line["id"],
            "its chain does not follow": sha((chain + line["id"]).encode()) == line["chain"],
            "its signature is not by its author": signed(
                author, line["chain"].encode(), line["sig"]
            ),
            "its body is not the one that was signed": body is None
            or sha(bytes.fromhex(line["salt"]) + body.encode()) == event["body_hash"],
            "the root key did not sign it": kind != "device" or enrolled,
            "it names entries that are not here": kind != "checkpoint"
            or all(heads.get(a, (0,))[0] >= n for a, (n, _) in value["heads"].items()),
            "its clock does not go on": lc > spans.get(author, [0, 0])[1],
        }
        for what, fine in checks.items():
            if not fine:
                raise ValueError(f"{where}: {what}")
        heads[author] = seq, line["chain"]
        spans[author] = [spans.get(author, [lc])[0], lc]
        forgotten.update(event["refs"] if kind == "forget" else [])
        bare.update({line["id"]: where} if body is None else {})
    for author, (first, last_lc) in spans.items():
        if devices["enrol"].get(author, first + 1) > first:
            raise ValueError(f"entry 1 of {author}: its key is not enrolled")
        if devices["revoke"].get(author, last_lc) < last_lc:
            raise ValueError(f"entry {heads[author][0]} of {author}: its key was revoked")
    for id_, where in bare.items():
        if id_ not in forgotten:
            raise ValueError(f"{where}: its body is missing, and was not forgotten")
    return {author: head[0] for author, head in heads.items()}


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        sys.exit(2)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - the shortest there is
            found = verify(file, *sys.argv[2:])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"FAULT {error}" if isinstance(error, ValueError) else f"FAULT {error!r}")
        sys.exit(1)
    print("\n".join(f"{author}: {count} good" for author, count in found.items()))
