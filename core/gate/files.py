"""What kind of place a path is: inside the working folder, scratch, a secret, a start file, the store.
Owns the resolving of paths; reads no file.

Invariant: links are followed before anything is compared, and a pattern counts as what it may match."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

Resolve = Callable[[str], str]
_GLOB = re.compile(r"[*?\[]")


class Places:
    """Judges paths for a person's home folder and Exo's; `patterns` is the table's [files]."""

    def __init__(
        self,
        patterns: Mapping[str, list[str]],
        home: str,
        exo: str,
        resolve: Resolve,
        also: Sequence[str] = (),
    ) -> None:
        self._also = [resolve(re.sub(r"^~(?=/|$)", home, folder)) for folder in also]
        self._home, self._exo, self.resolve = home, exo, resolve
        self._lists = {
            name: [re.sub(r"^~(?=/|$)", home, row) for row in rows]
            for name, rows in patterns.items()
        }
        self._lists["store"] = [f"{exo}/{row}" for row in patterns.get("store", ())] + [exo]

    def full(self, path: str, cwd: str) -> str:
        """The path from the root with links followed; of a pattern, its folder's links."""
        joined = os.path.normpath(
            f"{cwd}/{path}" if not path.startswith("/") else f"/{path.lstrip('/')}"
        )
        found = _GLOB.search(joined)
        if found is None:
            return self.resolve(joined)
        head = joined[: found.start()].rpartition("/")[0]
        return self.resolve(head or "/").rstrip("/") + joined[len(head) :]

    def marks(self, path: str, cwd: str, glob: bool = False) -> set[str]:
        """Of inside, scratch, quiet, made, device, startup, hook, store, secret, whole."""
        if "\0" in path:
            return {"secret", "whole"}
        named = os.path.normpath(f"{cwd}/{path}" if not path.startswith("/") else path)
        full = self.full(path, cwd) if path else cwd
        marks = {name for name in ("quiet", "startup", "store") if self._any(name, full, glob)}
        root = self.resolve(cwd)
        if full == root or full.startswith(root.rstrip("/") + "/"):
            marks.add("inside")
            inner = full[len(root) :].strip("/")
            if any(_may(f"/{inner}", f"*/{row}", glob) for row in self._lists.get("hooks", ())):
                marks.add("hook")
        elif any(full.startswith(folder + "/") for folder in self._also):
            marks.add("inside")
        if re.search(r"/\.git(/hooks|/config|$)|/\.husky/", full):
            marks.add("hook")
        if any(self._secret(each, glob) for each in {full, named}):
            marks.add("secret")
        if self._any("devices", full, glob) and "quiet" not in marks:
            marks.add("device")
        for folder in self._lists.get("scratch", ()):
            if full.startswith(folder + "/") or full.startswith(self.resolve(folder) + "/"):
                marks.add("scratch")
        parts = PurePosixPath(full[len(root) :] if "inside" in marks else full).parts
        if any(fnmatchcase(part, row) for part in parts for row in self._lists.get("made", ())):
            marks.add("made")
        trunk = re.sub(r"/\*+$", "", full) or "/"
        if any(f"{each}/".startswith(trunk.rstrip("/") + "/") for each in (self._home, self._exo)):
            marks.add("whole")
        if f"{root}/".startswith(trunk.rstrip("/") + "/"):
            marks.add("root")
        return marks

    def _any(self, name: str, path: str, glob: bool) -> bool:
        return any(_may(path, row, glob) for row in self._lists.get(name, ()))

    def _secret(self, path: str, glob: bool) -> bool:
        name = path.rpartition("/")[2]
        if self._any("secrets", path, glob) and not name.endswith((".pub", "known_hosts")):
            return True
        if path.startswith((f"{self._exo}/store/private", f"{self._exo}/state/token")):
            return True
        if any(fnmatchcase(name, row) for row in self._lists.get("not_secret", ())):
            return False
        glob = glob and not re.fullmatch(r"\*+(\.\w+)?", name)
        return any(
            _may(name.lower(), row.lower(), glob) for row in self._lists.get("secret_names", ())
        )


def _may(path: str, row: str, glob: bool) -> bool:
    """Whether `path`, itself a pattern when `glob`, may be what `row` stands for."""
    return fnmatchcase(path, row) or glob and fnmatchcase(row.replace("*", "x"), path)
