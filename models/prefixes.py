"""Prompt prefixes on disk, so that a cold start does not compute them again. Owns the files under
state/cache/prefix: <model hash 16>-<token hash 16>.bin.

Invariant: a file is whole or not there, and is used only for the model, the tokens and the layout of
memory it was made with; what does not check is removed and computed again."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import sys
from pathlib import Path

from exo.core.base.errors import StorageError
from exo.core.base.files import make_folder, write_atomic

_HEAD = struct.Struct("<8s16s32s32sQ")  # magic, layout, sha256 of tokens, sha256 of state, its size
_MAGIC = b"EXOKV\x00\x00\x01"


class Prefixes:
    """The saved prefixes of one model. `layout` names what else the bytes depend on (version, cache
    types)."""

    def __init__(self, folder: Path, model_hash: str, layout: str, limit_mb: float) -> None:
        self._folder, self._model = folder, model_hash[:16]
        self._layout = hashlib.sha256(layout.encode()).digest()[:16]
        self._limit = limit_mb * 1e6

    def path(self, tokens: list[int]) -> Path:
        return self._folder / f"{self._model}-{_digest(tokens).hex()[:16]}.bin"

    def has(self, tokens: list[int]) -> bool:
        return self.path(tokens).exists()

    def load(self, tokens: list[int]) -> bytes:
        """The saved state, b"" when there is none that checks."""
        path = self.path(tokens)
        try:
            raw = path.read_bytes()
        except OSError:
            return b""
        state = raw[_HEAD.size :]
        head = _HEAD.pack(
            _MAGIC, self._layout, _digest(tokens), hashlib.sha256(state).digest(), len(state)
        )
        if raw[: _HEAD.size] != head:
            self.forget(tokens, "it does not check")
            return b""
        with contextlib.suppress(OSError):
            path.touch()  # so that pruning takes the least recently used
        return state

    def save(self, tokens: list[int], state: bytes) -> None:
        """Write the state and prune. A disk that refuses costs a line of log: the prefix is a cache."""
        head = _HEAD.pack(
            _MAGIC, self._layout, _digest(tokens), hashlib.sha256(state).digest(), len(state)
        )
        if _HEAD.size + len(state) > self._limit:
            return
        try:
            make_folder(self._folder)
            self._prune(_HEAD.size + len(state))
            write_atomic(self.path(tokens), head + state)
        except StorageError as error:
            print(f"exo-models: {error}", file=sys.stderr)

    def forget(self, tokens: list[int], why: str) -> None:
        path = self.path(tokens)
        print(f"exo-models: removed saved prefix {path.name}: {why}", file=sys.stderr)
        with contextlib.suppress(OSError):
            path.unlink()

    def _prune(self, need: int) -> None:
        files = [
            (each.stat().st_mtime, each.stat().st_size, each) for each in self._folder.glob("*.bin")
        ]
        left = sum(size for _, size, _ in files) + need
        for _, size, path in sorted(files):
            if left <= self._limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            left -= size


def _digest(tokens: list[int]) -> bytes:
    return hashlib.sha256(struct.pack(f"<{len(tokens)}i", *tokens)).digest()
