"""The history of the curated files in a local git repository, made by the `git` program where there is one.
Owns store/.git; no hook runs, no settings of the person are read, no message holds a word of a text.

Invariant: what `rewrite` was told to drop is in no object afterwards; where that cannot be done the whole
history goes, and begins anew."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO

from exo.core.base.files import make_folder

DEADLINE = 60.0  # seconds a call of git may take
CURATED = ("STORE.toml", "PACK.md", "INDEX.md", "nodes", "policies", "skills")
_SETTINGS = ["core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.autocrlf=false"]
_SETTINGS += ["core.fsmonitor=false", "commit.gpgSign=false", "gc.autoDetach=false"]
_WHO = {f"GIT_{a}_{b}": "exo" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


class History:
    """The repository of the store in `folder`; every call fails soft: the store goes on without."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.git, self._new = folder, folder / ".git", folder / ".git.new"
        self._unfinished = folder / "private" / "history.unfinished"

    def commit(self, message: str, at: int, left: Collection[str]) -> bool:
        """Commit what changed but for the paths `left`, dated `at` (ms UTC). False: nothing changed, or git
        is missing or failed."""
        if self._unfinished.exists():  # what a rewrite had to drop is no longer known
            self._drop()
        if not self.git.exists() and self._run("init", "-q", "-b", "main") is None:
            return False
        (self.git / "index.lock").unlink(missing_ok=True)  # of a commit that a power cut ended
        make_folder(self.git / "info").joinpath("exclude").write_text(".*\n*~\nprivate/\n")
        names = [name for name in CURATED if (self.folder / name).exists()]
        names += [f":(exclude,literal){path}" for path in left]
        words = ("commit", "-q", "--no-verify", "-m", message, f"--date={at // 1000} +0000")
        return self._run("add", "-A", "--", *names) is not None and self._run(*words) is not None

    def promise(self) -> None:
        """Before a rewrite: should it not be completed, the next commit begins a new history."""
        if self.git.exists():
            self._unfinished.touch(0o600)

    def rewrite(self, paths: Collection[str], dropped: Callable[[str], bool]) -> None:
        """Make the history again without the bytes of `paths` and without lines that are `dropped`."""
        if not self.git.exists():
            return
        shutil.rmtree(self._new, ignore_errors=True)
        if not self._copied(paths, dropped):
            self._drop()
            return
        shutil.rmtree(self.git)
        self._new.rename(self.git)
        self._unfinished.unlink(missing_ok=True)

    def _drop(self) -> None:
        for path in (self.git, self._new):
            shutil.rmtree(path, ignore_errors=True)
        self._unfinished.unlink(missing_ok=True)

    def _copied(self, paths: Collection[str], dropped: Callable[[str], bool]) -> bool:
        listed = self._run("rev-list", "--objects", "--all")
        stream = self._run("fast-export", "--all", "--show-original-ids")
        if not listed or not stream or self._run("init", "-q", "-b", "main", at=self._new) is None:
            return False
        named = (line.partition(" ") for line in listed.decode(errors="replace").splitlines())
        gone = {oid.encode() for oid, _, path in named if path in paths}
        kept = b"".join(_filtered(io.BytesIO(stream), gone, dropped))
        return self._run("fast-import", "--quiet", at=self._new, into=kept) is not None

    def _run(self, *words: str, at: Path | None = None, into: bytes = b"") -> bytes | None:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {**_WHO, **_ALONE, "GIT_DIR": str(at or self.git), "GIT_WORK_TREE": str(self.folder)}
        command = ["git", *(word for each in _SETTINGS for word in ("-c", each)), *words]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=env, input=into, capture_output=True, timeout=DEADLINE
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None


def _filtered(
    stream: IO[bytes], gone: Collection[bytes], dropped: Callable[[str], bool]
) -> Iterator[bytes]:
    """A fast-export stream (git-fast-import(1)) with its blobs filtered line by line."""
    blob = empty = False
    for line in stream:
        if line.startswith((b"blob", b"commit ", b"tag ", b"reset ")):
            blob, empty = line == b"blob\n", False
        elif line.startswith(b"original-oid "):
            empty = line.split()[1] in gone
            continue
        if not line.startswith(b"data "):
            yield line
            continue
        data = stream.read(int(line.split()[1]))
        if blob:
            rows = [] if empty else data.splitlines(keepends=True)
            data = b"".join(row for row in rows if not dropped(row.decode(errors="replace")))
        yield b"data %d\n" % len(data) + data
