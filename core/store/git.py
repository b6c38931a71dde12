"""The history of the curated files in a local git repository, made by the `git` program where there is one.
Owns store/.git; no hook runs, no settings of the person are read, no message holds a word of a text.

Invariant: the store goes on without it; forgetting begins it anew, so that it holds no forgotten word."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from exo.core.base.files import make_folder

DEADLINE = 60.0  # seconds a call of git may take
CURATED = ("STORE.toml", "PACK.md", "INDEX.md", "nodes", "policies", "skills")
_SETTINGS = ["core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.autocrlf=false"]
_SETTINGS += ["core.fsmonitor=false", "commit.gpgSign=false", "gc.autoDetach=false"]
_WHO = {f"GIT_{a}_{b}": "exo" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


class History:
    """The repository of the store in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.git = folder, folder / ".git"

    def commit(self, message: str, at: int, left: Collection[str]) -> bool:
        """Commit what changed but for the paths `left`, dated `at` (ms UTC). False: nothing changed, or git
        is missing or failed."""
        if not self.git.exists() and not self._run("init", "-q", "-b", "main"):
            return False
        (self.git / "index.lock").unlink(missing_ok=True)  # of a commit that a power cut ended
        make_folder(self.git / "info").joinpath("exclude").write_text(".*\n*~\nprivate/\n")
        names = [name for name in CURATED if (self.folder / name).exists()]
        names += [f":(exclude,literal){path}" for path in left]
        words = ("commit", "-q", "--no-verify", "-m", message, f"--date={at // 1000} +0000")
        return self._run("add", "-A", "--", *names) and self._run(*words)

    def drop(self) -> None:
        """Let the history go; the next commit begins a new one."""
        if self.git.exists():
            shutil.rmtree(self.git)

    def _run(self, *words: str) -> bool:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {**_WHO, **_ALONE, "GIT_DIR": str(self.git), "GIT_WORK_TREE": str(self.folder)}
        command = ["git", *(word for each in _SETTINGS for word in ("-c", each)), *words]
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=env,
                capture_output=True,
                timeout=DEADLINE,
                umask=0o077,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0
