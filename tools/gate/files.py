"""What kind of place a path is: inside the working folder, scratch, a secret, a start file, the store.
Owns the resolving of paths; reads no file.

Invariant: links are followed before anything is compared, and a pattern counts as what it may match."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase, translate

Resolve = Callable[[str], str]
_GLOB = re.compile(r"[*?\[]")
_CALM = ("quiet", "scratch")  # what a pattern only may be does not calm
_PUBLIC = (".pub", "known_hosts", "known_hosts.old", "/.ssh/config", "/.ssh/authorized_keys")
_WHOLE = ("whole", "root")  # a folder that holds the person's home, or the working folder


class Places:
    """Judges paths for a person's home folder and Exo's; `patterns` is the table's [files], `also` are
    folders that count as the working folder."""

    def __init__(
        self,
        patterns: Mapping[str, Sequence[str]],
        home: str,
        exo: str,
        resolve: Resolve,
        also: Sequence[str] = (),
    ) -> None:
        self._home, self._exo, self.resolve = home, exo, resolve
        self._also = [resolve(self._person(folder)) for folder in also]
        rows = {name: [self._person(row) for row in rows] for name, rows in patterns.items()}
        rows["hooks"] = [f"*/{row}" for row in rows["hooks"]]
        rows["store"] = [exo, *(f"{exo}/{row}" for row in rows["store"])]
        rows["secrets"] += [f"{exo}/store/private*", f"{exo}/state/token"]
        rows["scratch"] = [f"{each}/*" for row in rows["scratch"] for each in (row, resolve(row))]
        self._lists = rows
        self._match = {name: re.compile("|".join(map(translate, rows[name]))) for name in rows}

    def full(self, path: str, cwd: str) -> str:
        """The path from the root with links followed; of a pattern, its folder's links."""
        joined = self._joined(path, cwd)
        found = _GLOB.search(joined)
        if found is None:
            return self.resolve(joined)
        head = joined[: found.start()].rpartition("/")[0]
        return self.resolve(head or "/").rstrip("/") + joined[len(head) :]

    def marks(self, path: str, cwd: str, glob: bool = False) -> set[str]:
        """Of inside, scratch, quiet, made, devices, startup, hooks, store, secret, whole, root."""
        if "\0" in path:
            return {"secret", *_WHOLE}
        full, root = self.full(path, cwd), self.resolve(cwd)
        names = ("quiet", "startup", "store", "hooks", "scratch", "devices", "raw")
        marks = {name for name in names if self._is(name, full, glob)}
        inside = _within(full, root)
        if inside or any(_within(full, folder) for folder in self._also):
            marks.add("inside")
        if any(self._secret(each, glob) for each in {full, self._joined(path, cwd)}):
            marks.add("secret")
        if "quiet" in marks:
            marks -= {"devices", "raw"}
        parts = (full[len(root) :] if inside else full).split("/")
        if any(self._match["made"].match(part) for part in parts):
            marks.add("made")
        trunk = re.sub(r"/\*+$", "", full)
        held = (any(_within(each, trunk) for each in (self._home, self._exo)), _within(root, trunk))
        return marks | {name for name, holds in zip(_WHOLE, held, strict=True) if holds}

    def _joined(self, path: str, cwd: str) -> str:
        path = self._person(path)
        return os.path.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else f"{cwd}/{path}")

    def _person(self, path: str) -> str:
        return re.sub(r"^~(?=/|$)", lambda _: self._home, path)

    def _is(self, name: str, path: str, glob: bool) -> bool:
        """Whether `path`, itself a pattern when `glob`, may be one of a list."""
        if self._match[name].match(path):
            return True
        return (
            glob
            and name not in _CALM
            and any(fnmatchcase(row.replace("*", "x"), path) for row in self._lists[name])
        )

    def _secret(self, path: str, glob: bool) -> bool:
        name = path.rpartition("/")[2]
        if self._is("secrets", path, glob) and not path.endswith(_PUBLIC):
            return True
        if self._match["not_secret"].match(name):
            return False
        if re.search(r"/(\.?secrets|\.ssh|\.gnupg|\.aws|private[-_]keys?)/", path):
            return True
        return self._is("secret_names", name, glob and not re.fullmatch(r"\*+(\.\w+)?", name))


def _within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")
