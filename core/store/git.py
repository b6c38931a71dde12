"""The history of the curated files in a local git repository, made by the `git` program where there is one.
Owns store/.git; no hook runs, no settings of the person are read, no message holds a word of a text.

Invariant: what `rewrite` was told to drop is in no object afterwards; where that cannot be done the whole
history goes, and begins anew."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from exo.core.store.views import Views

DEADLINE = 60.0  # seconds a call of git may take
CURATED = ("STORE.toml", "PACK.md", "INDEX.md", "nodes", "policies", "skills")
_FLAGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "gc.autoDetach=false"),
    *(
        "-c",
        "core.autocrlf=false",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.attributesFile=/dev/null",
    ),
)


class History:
    """The repository of the store in `folder`; every call fails soft: False, and the store goes on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.git = folder, folder / ".git"
        self._new, self._old = folder / ".git.new", folder / ".git.old"
        self._unfinished = folder / "private" / "history.unfinished"

    def commit(self, views: Views, message: str, at: int) -> bool:
        """Commit what changed, dated `at` (ms UTC). False: nothing changed, or git is missing or failed."""
        if shutil.which("git") is None:
            return False
        self._mend()
        if not self.git.exists() and self._run("init", "-q", "-b", "main") is None:
            return False
        # the repository holds no more than this names, whatever lies beside it
        (self.git / "info").mkdir(exist_ok=True)
        (self.git / "info" / "exclude").write_text(".*\n*~\nprivate/\n")
        left = [f":(exclude,literal){path}" for path in views.named]
        names = [name for name in CURATED if (self.folder / name).exists()]
        if not names or self._run("add", "-A", "--", *names, *left) is None:
            return False
        return self._run("commit", "-q", "--no-verify", "-m", message, at=at) is not None

    def rewrite(self, paths: Collection[str], dropped: Callable[[str], bool]) -> None:
        """Make the history again without the bytes of `paths` and without lines that are `dropped`."""
        if not self.git.exists():
            return
        self._unfinished.touch(0o600)
        shutil.rmtree(self._new, ignore_errors=True)
        if not self._copied(paths, dropped):
            shutil.rmtree(self.git)
        else:
            self.git.rename(self._old)
            self._new.rename(self.git)
        shutil.rmtree(self._old, ignore_errors=True)
        self._unfinished.unlink()

    def _mend(self) -> None:
        """After a rewrite that was cut off: what it had to drop is no longer known."""
        if self._unfinished.exists():
            for path in (self.git, self._new, self._old):
                shutil.rmtree(path, ignore_errors=True)
            self._unfinished.unlink()

    def _copied(self, paths: Collection[str], dropped: Callable[[str], bool]) -> bool:
        listed = self._run("rev-list", "--objects", "--all")
        if listed is None or self._run("init", "-q", "-b", "main", where=self._new) is None:
            return False
        named = (line.split(" ", 1) for line in listed.decode(errors="replace").splitlines())
        gone = {words[0].encode() for words in named if len(words) > 1 and words[1] in paths}
        export = ("fast-export", "--all", "--show-original-ids", "--signed-tags=strip")
        stream = self.folder / "private" / "history.stream"
        try:
            with stream.open("w+b") as file:
                if self._run(*export, out=file) is None:
                    return False
                file.seek(0)
                with stream.with_suffix(".kept").open("w+b") as kept:
                    kept.writelines(_filtered(file, gone, dropped))
                    kept.seek(0)
                    done = self._run("fast-import", "--quiet", where=self._new, into=kept)
            return done is not None
        finally:
            for path in (stream, stream.with_suffix(".kept")):
                path.unlink(missing_ok=True)

    def _run(
        self,
        *words: str,
        at: int = 0,
        where: Path | None = None,
        out: IO[bytes] | None = None,
        into: IO[bytes] | None = None,
    ) -> bytes | None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        own = {"GIT_DIR": str(where or self.git), "GIT_WORK_TREE": str(self.folder), "LC_ALL": "C"}
        own |= {
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        for role in ("AUTHOR", "COMMITTER"):
            own |= {f"GIT_{role}_NAME": "exo", f"GIT_{role}_EMAIL": "exo"}
            own |= {f"GIT_{role}_DATE": f"{at // 1000} +0000"} if at else {}
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                ["git", *_FLAGS, *words],
                cwd=self.folder,
                env={**kept, **own},
                stdin=into or subprocess.DEVNULL,
                stdout=out or subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=DEADLINE,
                check=True,
            )
            return done.stdout or b""
        return None


def _filtered(
    stream: IO[bytes], gone: Collection[bytes], dropped: Callable[[str], bool]
) -> Iterator[bytes]:
    """A fast-export stream (git-fast-import(1)) with its blobs filtered line by line."""
    blob = empty = False
    for line in stream:
        if line.startswith((b"blob", b"commit ", b"tag ", b"reset ")):
            blob, empty = line == b"blob\n", False
        if line.startswith(b"original-oid "):
            empty = line.split()[1] in gone
        elif not line.startswith(b"data "):
            yield line
        else:
            data = stream.read(int(line.split()[1]))
            if blob:
                rows = [] if empty else data.splitlines(keepends=True)
                data = b"".join(row for row in rows if not dropped(row.decode(errors="replace")))
            yield b"data %d\n" % len(data) + data
