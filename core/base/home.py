"""Where a person's things lie. Owns the names of files and folders under EXO_HOME; opens none."""

from __future__ import annotations

import os
from pathlib import Path

from exo.core.base.files import make_folder


class Home:
    """The home folder: `store/` is the person, `state/` can be lost without losing the person."""

    def __init__(self, root: Path) -> None:
        self.root, self.plugins, self.store = root, root / "plugins", root / "store"
        self.state = state = root / "state"
        self.sessions_db = state / "sessions.sqlite"
        self.exod_socket, self.models_socket = state / "exod.sock", state / "models.sock"
        self.settings_file = state / "settings.toml"
        self.token_file = state / "token"  # the bearer token of TCP clients
        self.logs, self.cache = state / "logs", state / "cache"

    @classmethod
    def find(cls, given: str | Path | None = None) -> Home:
        """Return the home named on the command line, else by EXO_HOME, else ~/.exo."""
        text = str(given or os.environ.get("EXO_HOME") or "~/.exo")
        return cls(Path(text).expanduser().absolute())

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
