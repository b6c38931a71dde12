"""The files that agent tools keep: a small space of names and texts, content-addressed, so that every state it was
ever in is a snapshot. Owns the bytes on the disk; knows no tool and no session.

Invariant: a state is one file (`head`) that names one list (name to hash); objects are written before the list
and the list before the head, so that a power cut leaves the state before or the state after, whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, HomeError
from exo.core.base.files import make_folder, write_atomic
from exo.tools.agent.package import SPACE

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,79}){0,3}")
FILES, FILE, ALL = 2_000, 256_000, 8_000_000  # at most: files, bytes of one, bytes of all
TOGETHER = 16  # changes from which on one sync of all is cheaper than one for each
KEPT = 1_000  # states of a line that can be gone back to
HELD = 64_000_000  # bytes of them all
FRESH = 16_000_000  # bytes that are written between two looks at it
LOG = 4_000_000  # bytes of a log of states, and of an object
LINE = "main"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Snapshot:
    """A state: `id` is the hash of its list; `ts` ms UTC; `label` what made it."""

    id: str
    ts: int
    label: str
    files: int


class Workspace:
    """`folder` holds objects/ and lines/; a line is a sequence of states with the present one at its end."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._objects, self._lines, self._clock = folder / "objects", folder / "lines", clock
        self._alone = threading.RLock()  # calls of tools end in threads
        self._fresh = 0  # bytes written since it was last looked how much is held

    def files(self, line: str = LINE) -> dict[str, str]:
        """The present state: name to hash. Where it cannot be read, the newest that can. Raises HomeError for none."""
        lost: HomeError | None = None
        for id_ in self._states(line):
            try:
                return self._list(id_)
            except HomeError as error:
                lost = lost or error
                print(
                    f"the space of tools, {line}: {error}; an older state is used", file=sys.stderr
                )
        if lost is None:
            return {}
        do = f"restore a backup, or remove {self._line(line)} to begin anew"
        raise HomeError(f"open the space of tools, {line}", str(lost), do)

    def _states(self, line: str) -> Iterator[str]:
        """The hash of the present state's list, then those of older ones."""
        if head := self._head(line):
            yield head
        yield from (each.id for each in reversed(self.snapshots(line)) if each.id != head)

    def _head(self, line: str) -> str:
        """The hash of the present state's list, "" where none was kept yet."""
        return _bytes(self._line(line) / "head", 1000).decode("utf-8", "replace").strip()

    def read(self, name: str, line: str = LINE) -> str:
        """A file's text. Raises ExoError for one that there is not."""
        found = self.files(line).get(name)
        if found is None:
            raise ExoError(f"read {name!r}", "the space has no such file")
        return self._object(found)

    def commit(self, changes: dict[str, str | None], label: str, line: str = LINE) -> Snapshot:
        """Set or remove (None) files, all of them or none. Raises ExoError for what cannot be kept."""
        with self._alone:
            return self._commit(changes, label, line)

    def _commit(self, changes: dict[str, str | None], label: str, line: str) -> Snapshot:
        state = self.files(line)
        for name, text in changes.items():
            if not NAME.fullmatch(name) or len((text or "").encode()) > FILE:
                do = f"names are letters, digits, . _ - and /; a file has at most {FILE} bytes"
                raise ExoError(f"write {name[:100]!r}", "its name or size is refused", do)
            state.pop(name, None)
            if text is not None:
                state[name] = self._keep(text, together=len(changes) > TOGETHER)
        if len(changes) > TOGETHER:
            os.sync()
        size = sum(map(self._size, state.values()))
        if len(state) > FILES or size > ALL:
            why = f"the space would hold {len(state)} files of {size} bytes"
            raise ExoError(f"write {', '.join(changes)[:100]}", why, f"at most {FILES} of {ALL}")
        return self._set(line, state, label)

    def mark(self, label: str, line: str = LINE) -> Snapshot:
        """Give the present state a name."""
        with self._alone:
            return self._set(line, self.files(line), " ".join(label.split())[:100], named=True)

    def snapshots(self, line: str = LINE) -> list[Snapshot]:
        """The states that can be gone back to, the newest last."""
        raw = _bytes(self._line(line) / "log.jsonl", LOG)
        return list(_read(raw.decode("utf-8", "replace").splitlines()))

    def rewind(self, id_: str, line: str = LINE) -> Snapshot:
        """Make an older state the present one; what came after it stays in the list of states. `id_` may be
        its beginning. Raises ExoError for one that is not known, or not one."""
        found = {each.id for each in self.snapshots(line) if id_ and each.id.startswith(id_)}
        if len(found) != 1:
            why = "several begin so" if found else "there is no such state"
            raise ExoError(f"go back to {id_!r}", why, "see `exo sandbox list`")
        (whole,) = found
        with self._alone:
            return self._set(line, self._list(whole), f"back to {whole[:8]}")

    def branch(self, line: str, at: int, parent: str = LINE) -> None:
        """Begin a line with the state that its parent had at `at` (ms UTC), unless it is there."""
        with self._alone:
            if self._head(line):
                return
            was = [each for each in self.snapshots(parent) if each.ts <= at]
            state = self._list(was[-1].id) if was else {}
            self._set(line, state, f"as it was in {parent}")

    def _set(self, line: str, state: dict[str, str], label: str, named: bool = False) -> Snapshot:
        id_ = self._keep(json.dumps(state, sort_keys=True))
        made = Snapshot(id_, self._clock.now_ms(), label, len(state))
        folder = make_folder(self._line(line))
        if not named and self._head(line) == id_:
            return made
        rows = [*self.snapshots(line), made][-KEPT:]
        if full := self._fresh > FRESH:
            with contextlib.suppress(OSError, ExoError):  # an old state has lost its bytes
                rows = self._affordable(rows)
        write_atomic(folder / "log.jsonl", "".join(json.dumps(vars(row)) + "\n" for row in rows))
        write_atomic(folder / "head", id_)
        if full:
            with contextlib.suppress(OSError, ExoError):
                self.collect()
            self._fresh = 0
        return made

    def _affordable(self, rows: list[Snapshot]) -> list[Snapshot]:
        """The newest states, as many as HELD holds; at least the last."""
        seen: set[str] = set()
        size = 0
        for number, row in enumerate(reversed(rows)):
            new = {row.id, *self._list(row.id).values()} - seen
            seen |= new
            size += sum(map(self._size, new))
            if number and size > HELD:
                return rows[-number:]
        return rows

    def collect(self) -> int:
        """Remove objects that no state names; returns how many. Raises HomeError, and nothing removed, where a
        state cannot be read."""
        used: set[str] = set()
        for line in self._lines.glob("*"):
            for id_ in {self._head(line.name), *(each.id for each in self.snapshots(line.name))}:
                used |= {id_, *self._list(id_).values()}
        gone = [
            path for path in self._objects.glob("*/*") if path.parent.name + path.name not in used
        ]
        for path in gone:
            path.unlink()
        return len(gone)

    def _line(self, line: str) -> Path:
        if not re.fullmatch(r"[\w-]{1,80}", line):
            raise ExoError(f"open the line {line[:80]!r}", "that is no name of one")
        return self._lines / line

    def _path(self, hash_: str) -> Path:
        if not _HASH.fullmatch(hash_):
            raise HomeError(f"read the object {hash_[:12]!r}", "that is no hash")
        return self._objects / hash_[:2] / hash_[2:]

    def _size(self, hash_: str) -> int:
        """Of an object; one that is gone takes no room."""
        with contextlib.suppress(OSError, HomeError):
            return self._path(hash_).stat().st_size
        return 0

    def _keep(self, text: str, together: bool = False) -> str:
        """Write an object; those that are written `together` are synced by the caller, before a list names
        them: a torn one is told by its hash and written anew."""
        raw = text.encode()
        hash_ = hashlib.sha256(raw).hexdigest()
        path = self._path(hash_)
        if _bytes(path, len(raw) + 1) != raw or not raw and not path.is_file():
            make_folder(path.parent)
            if together and not path.exists():
                path.write_bytes(raw)
            else:
                write_atomic(path, raw)
            self._fresh += len(raw)
        return hash_

    def _object(self, hash_: str) -> str:
        raw = _bytes(self._path(hash_), LOG)
        if hashlib.sha256(raw).hexdigest() != hash_:
            raise HomeError(f"read the object {hash_[:12]}", "its bytes are not what they were")
        return raw.decode()

    def _list(self, hash_: str) -> dict[str, str]:
        """A state. Raises HomeError."""
        return dict(json.loads(self._object(hash_)))


class Draft:
    """What one call of a tool does to a line: seen by that call at once, kept by `commit` when it went well, gone
    when it did not."""

    def __init__(self, workspace: Workspace, line: str) -> None:
        self._workspace, self._line = workspace, line
        self.changes: dict[str, str | None] = {}

    async def space_read(self, name: str) -> str:
        """A file's text."""
        changed = self.changes.get(name, "")
        if name in self.changes and changed is not None:
            return changed
        if name in self.changes:
            raise ExoError(f"read {name!r}", "it was removed just now")
        return self._workspace.read(name, self._line)

    async def space_write(self, name: str, text: str) -> None:
        """Set a file's text."""
        if not isinstance(text, str) or not NAME.fullmatch(name):
            raise ExoError(f"write {str(name)[:80]!r}", "a name and a text are wanted")
        others = [each or "" for key, each in self.changes.items() if key != name]
        size = len(text.encode("utf-8", "surrogatepass"))
        whole = text.isascii() or text == text.encode("utf-8", "replace").decode()
        if not whole or size > FILE or len(others) >= FILES or size + sum(map(len, others)) > ALL:
            do = f"at most {FILES} files, {FILE} bytes in one, {ALL} in all"
            raise ExoError(f"write {name!r}", "it is too much, or has half a character", do)
        self.changes[name] = text

    async def space_remove(self, name: str) -> None:
        """Remove a file."""
        await self.space_read(name)
        self.changes[name] = None

    async def space_list(self) -> list[str]:
        """The names there are."""
        names = {**self._workspace.files(self._line), **self.changes}
        return sorted(name for name in names if self.changes.get(name, "") is not None)

    def commit(self, label: str) -> None:
        if self.changes:
            self._workspace.commit(self.changes, label, self._line)

    def host(self) -> dict[str, Callable[..., object]]:
        """The four as host functions."""
        return {name: getattr(self, name) for name in SPACE}


def _read(rows: list[str]) -> Iterator[Snapshot]:
    """The states that these lines name; a line that names none is passed over."""
    for row in rows:
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            found = Snapshot(**json.loads(row))
            if _HASH.fullmatch(found.id) and type(found.ts) is type(found.files) is int:
                yield Snapshot(found.id, found.ts, str(found.label), found.files)


def _bytes(path: Path, most: int) -> bytes:
    """The bytes of a file of ours, b"" for what is none (a folder, a pipe, a link). Raises OSError for a disk that fails."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO):
            return b""
        raise
