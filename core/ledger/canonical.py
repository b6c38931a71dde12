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
LIMIT = 2**53  # integers stay below it: beyond, the numbers of other programs are not exact
_FORM = b'{"author":"%b","body_hash":"%b","kind":%b,"lc":%d,"refs":%b,"scope":%b,"seq":%d,"ts":%d,"v":1}'


class NotCanonical(ExoError, ValueError):
    code = "not_canonical"


def canonical(value: Any) -> bytes:
    """The one text of a JSON value (objects, lists, text, whole numbers, true, false, null), UTF-8.
    Raises NotCanonical."""
    try:
        text = _encode(value)
        if _decode(text) != value:
            raise ValueError("a key is no text, or a list no list")
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        do = "carry what comes from outside as text"
        raise NotCanonical("write down a value", str(error), do) from error


def parse(text: str) -> Any:
    """The value of a canonical text that anybody may have written. Raises NotCanonical."""
    try:
        value = _decode(text)
    except (ValueError, RecursionError) as error:
        raise NotCanonical("read a JSON text", str(error)) from error
    if canonical(value) != text.encode():
        raise NotCanonical("read a JSON text", "it is not in its canonical form")
    return value


def body_hash(salt: bytes, body: bytes) -> bytes:
    """`salt` 16 bytes, `body` canonical."""
    return sha256(salt + body).hexdigest().encode()


def entry_id(
    author: bytes, seq: int, lc: int, ts: int, scope: bytes, kind: bytes, refs: bytes, hashed: bytes
) -> bytes:
    """The hash of the canonical envelope; `refs` is the canonical text of the list."""
    text = _FORM % (author, hashed, _quoted(kind), lc, refs, _quoted(scope), seq, ts)
    return sha256(text).hexdigest().encode()


def chained(before: bytes, id_: bytes) -> bytes:
    """The chain after `id_`, from the one before."""
    return sha256(before + id_).hexdigest().encode()


@functools.lru_cache(256)
def _quoted(text: bytes) -> bytes:
    """As a JSON string; bytes that are no UTF-8 (a damaged file) stay as they are."""
    return _encode(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _whole(text: str) -> int:
    if len(text) > 17 or not -LIMIT < int(text) < LIMIT:
        raise ValueError(f"{text[:20]} is 2^53 or more")
    return int(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no whole number")


_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
_decode = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_refuse, parse_int=_whole, parse_constant=_refuse
).decode
