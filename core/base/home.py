"""Where a person's things lie. Owns the names of files and folders under EXO_HOME; opens none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from exo.core.base.files import make_folder


@dataclass(frozen=True)
class Home:
    """The home folder: `store/` is the person, `state/` can be lost without losing the person."""

    root: Path

    @classmethod
    def find(cls, given: str | Path | None = None) -> Home:
        """Return the home named on the command line, else by EXO_HOME, else ~/.exo."""
        text = str(given or os.environ.get("EXO_HOME") or "~/.exo")
        return cls(Path(text).expanduser().absolute())

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def sessions_db(self) -> Path:
        return self.state / "sessions.sqlite"

    @property
    def exod_socket(self) -> Path:
        return self.state / "exod.sock"

    @property
    def models_socket(self) -> Path:
        return self.state / "models.sock"

    @property
    def settings_file(self) -> Path:
        return self.state / "settings.toml"

    @property
    def token_file(self) -> Path:
        """The bearer token of TCP clients."""
        return self.state / "token"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def cache(self) -> Path:
        return self.state / "cache"

    @property
    def results(self) -> Path:
        """Where results of tools that are too long for a model are kept."""
        return self.state / "results"

    @property
    def plugins(self) -> Path:
        return self.root / "plugins"

    def lock_file(self, service: str) -> Path:
        """The pid file of a service (`exod`, `models`, `serve`, `device`)."""
        return self.state / f"{service}.pid"

    def make(self) -> Home:
        """Make the folders that every process needs (mode 0700). Raises StorageError."""
        for folder in (self.root, self.state, self.logs, self.cache):
            make_folder(folder)
        return self


def models_folder() -> Path:
    """The folder of model files, shared by all homes of a user (EXO_MODELS)."""
    return Path(os.environ.get("EXO_MODELS") or "~/.cache/exo/models").expanduser().absolute()
