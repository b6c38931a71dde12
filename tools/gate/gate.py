"""The gate: judges a call and decides on it by the policies as they stand. Owns their reloading; runs
nothing, asks nobody, knows no engine.

Invariant: `check` never raises; policies with an error leave the last good ones in force."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.home import Home
from exo.tools.gate.classify import Facts, classify
from exo.tools.gate.decide import Verdict, decide
from exo.tools.gate.files import Places
from exo.tools.gate.policy import Policy, PolicyError, load

LOOK = 1.0  # seconds between two looks at the policies


class Gate:
    """`folder` holds the policies, `home` is Exo's; `fault` says what is wrong with the policies."""

    def __init__(self, folder: Path, home: Home, clock: Clock) -> None:
        self._folder, self._home, self._clock = folder, home, clock
        self._seen: object = None
        self._looked = -LOOK
        user = os.path.realpath(Path.home())
        self._use(Policy())
        self._known = {
            "HOME": user,
            "USER": Path(user).name,
            "TMPDIR": "/tmp",
            "SHELL": "/bin/bash",
        }

    def check(
        self,
        tool: str,
        args: dict[str, Any],
        cwd: str | Path,
        risk: str = "",
        needs: str = "",
        granted: Collection[str] = (),
    ) -> Verdict:
        """The verdict on a call. `risk` and `needs` are what a plugin's tool says of itself."""
        policy, folder = self.policy(), os.path.realpath(cwd)
        facts = Facts(folder, self._places, policy.table, self._known | {"PWD": folder})
        return decide(classify(tool, args, facts, risk, needs), policy, granted)

    def policy(self) -> Policy:
        """The policies, read again when a file has changed."""
        now = self._clock.monotonic()
        if now - self._looked < LOOK:
            return self._policy
        self._looked = now
        seen = _stamps(self._folder)
        if seen != self._seen:
            self._seen = seen
            try:
                self._use(load(self._folder))
            except PolicyError as error:
                self.fault = str(error)
        return self._policy

    def _use(self, policy: Policy) -> None:
        self._policy, self.fault = policy, ""
        user, exo = os.path.realpath(Path.home()), str(self._home.root)
        self._places = Places(policy.table.files, user, exo, os.path.realpath, policy.folders)


def digest(tool: str, args: dict[str, Any]) -> str:
    """sha256 of exactly what is shown and run: an approval holds for this and nothing else."""
    text = json.dumps([tool, args], ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    try:
        rows = [(path.name, path.stat()) for path in sorted(folder.glob("*.toml"))]
        return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in rows]
    except OSError:
        return []
