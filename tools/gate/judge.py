"""The seat `judge` of the core's gate: what tools and programs do, by the table and the person's own. Owns
which table and which places hold now.

Invariant: a person's table that does not fit changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from exo.core.gate.axes import Act, Judgement
from exo.core.gate.policy import read
from exo.tools.gate.classify import Facts, classify
from exo.tools.gate.files import Places
from exo.tools.gate.table import builtin


class Consequences:
    """The judge for the home `exo`, of the person whose home folder is `user`."""

    def __init__(
        self, exo: Path, user: str = "", resolve: Callable[[str], str] = os.path.realpath
    ) -> None:
        self._exo, self._user, self._resolve = str(exo), user or str(Path.home()), resolve
        self._user = resolve(self._user)
        self.table = builtin()
        self._places = lru_cache(4)(self._make_places)

    def read(self, policies: Path) -> None:
        """Take in policies/programs.toml. Raises PolicyError."""
        self.table = read(policies / "programs.toml", builtin().also)

    def judge(self, act: Act, inside: tuple[str, ...] = ()) -> Judgement:
        """Never raises."""
        folder, user = self._resolve(act.cwd), self._user
        known = {"HOME": user, "USER": Path(user).name, "TMPDIR": "/tmp", "SHELL": "/bin/bash"}
        places = self._places(inside)
        return classify(act, Facts(folder, places, self.table, known | {"PWD": folder}))

    def _make_places(self, inside: tuple[str, ...]) -> Places:
        return Places(self.table.files, self._user, self._exo, self._resolve, inside)
