"""The bytes that are hashed and signed: canonical text, ids, chains. Knows no file and no key.

Invariant: two values have the same canonical text only when they are equal, and what does not read back
as it was written (floats, large integers, lone surrogates, a key twice) is refused."""

from __future__ import annotations

import functools
import json
from hashlib import sha256
from typing import Any

from exo.core.base.errors import ExoError

START = b"0" * 64  # the chain before an author's first entry
LIMIT = 2**53  # integers stay below it: beyond, other programs' numbers are not exact
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


class NotCanonical(ExoError, ValueError):
    code = "not_canonical"


def canonical(value: Any) -> bytes:
    """The one text of a JSON value, UTF-8. Raises NotCanonical."""
    try:
        _check(value)
        return _encode(value).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        why = "a half of a surrogate pair" if isinstance(error, ValueError) else "nested too deeply"
        raise NotCanonical(
            "write down a value", why, "carry what comes from outside as text"
        ) from error


def parse(text: str | bytes) -> Any:
    """The value of a JSON text that anybody may have written. Raises NotCanonical."""
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_float=_refuse, parse_constant=_refuse
        )
    except NotCanonical:
        raise
    except (ValueError, RecursionError) as error:
        raise NotCanonical("read a JSON text", str(error)) from error
    canonical(value)
    return value


def body_hash(salt: bytes, body: bytes) -> bytes:
    """`salt` 16 bytes, `body` canonical."""
    return sha256(salt + body).hexdigest().encode()


def entry_id(
    author: bytes, seq: int, lc: int, ts: int, scope: bytes, kind: bytes, refs: bytes, hash_: bytes
) -> bytes:
    """The hash of the canonical envelope; `refs` is the canonical text of the list."""
    return (
        sha256(
            b'{"author":"%b","body_hash":"%b","kind":%b,"lc":%d,"refs":%b,"scope":%b,"seq":%d,"ts":%d,"v":1}'
            % (author, hash_, _quoted(kind), lc, refs, _quoted(scope), seq, ts)
        )
        .hexdigest()
        .encode()
    )


def chained(before: bytes, id_: bytes) -> bytes:
    """The chain after `id_`, from the one before."""
    return sha256(before + id_).hexdigest().encode()


@functools.lru_cache(256)
def _quoted(text: bytes) -> bytes:
    """As a JSON string; bytes that are no UTF-8 (a damaged file) stay as they are."""
    return _encode(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _check(value: Any) -> None:
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise NotCanonical("write down a value", f"the key {key!r} is no text")
            _check(item)
    elif kind is list or kind is tuple:
        for item in value:
            _check(item)
    elif kind is int:
        if not -LIMIT < value < LIMIT:
            raise NotCanonical("write down a value", f"{value} is 2^53 or more", "carry it as text")
    elif not (kind is str or kind is bool or value is None):
        raise NotCanonical(
            "write down a value", f"{value!r} is no text, whole number, list or object"
        )


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotCanonical("read a JSON text", "a key stands twice in one object")
    return found


def _refuse(text: str) -> Any:
    raise NotCanonical("read a JSON text", f"{text} is no whole number")
