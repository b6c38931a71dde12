"""The machine around the handheld: its disk, its names, and going back to how it came from the factory.

Owns what a reset deletes; does not know how the machine restarts or goes dark: `actions` is added to by
whoever knows. Invariant: a reset that was begun is finished at the next start before anything else runs,
and touches nothing outside the home."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from exo.core.base.errors import storage_error
from exo.core.base.files import ProcessLock, write_atomic
from exo.core.base.home import Home
from exo.device.locale import Texts

MARK = "reset"  # in the home's folder while a reset is not done


class System:
    """The storage page, the about page, the reset. `quit` ends the handheld after a reset was marked."""

    def __init__(self, home: Home, board: str, texts: Texts, quit: Callable[[], None]) -> None:
        self._home, self._board, self._texts, self._quit = home, board, texts, quit
        self.actions: dict[str, Callable[[], None]] = {"reset": self.reset}

    def storage(self) -> str:
        """What is free, and what the person's folders take."""
        usage = shutil.disk_usage(self._home.root)
        rows = [self._texts("storage.free", free=_size(usage.free), total=_size(usage.total))]
        for name, folder in (("store", self._home.store), ("state", self._home.state)):
            taken = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
            rows.append(self._texts(f"storage.{name}", size=_size(taken)))
        return "\n".join(rows)

    def about(self) -> str:
        try:
            number = version("exo-companion")
        except PackageNotFoundError:
            number = "?"
        return f"Exo {number}\n{self._texts('about.board', board=self._board)}\n{self._home.root}"

    def reset(self) -> None:
        """Mark the home for deletion and end: it is deleted when nothing of ours has it open. Raises
        StorageError."""
        write_atomic(self._home.root / MARK, "")
        self._quit()


def finish_reset(home: Home) -> bool:
    """Delete what a reset that was marked has to delete; whether one was. To be called before any of our
    processes runs on the home. Raises AlreadyRunning when one does, StorageError; then the mark stays."""
    mark = home.root / MARK
    if not mark.exists():
        return False
    for service in ("exod", "models"):
        ProcessLock(home.lock_file(service), service).release()
    try:
        for folder in (home.store, home.plugins, home.state):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
        mark.unlink()
    except OSError as error:
        raise storage_error(f"reset {home.root}", error) from error
    return True


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
