"""New lines of the files in a folder of logs. Reads; owns where it has read to."""

from __future__ import annotations

from pathlib import Path

MOST = 50  # lines of a file at one look; what is more is passed over


class Tail:
    """What is written from now on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at = {path: path.stat().st_size for path in folder.glob("*.log")}

    def read(self) -> list[tuple[str, str]]:
        """(name of the log, line) of every whole line since the last look."""
        found = []
        for path in sorted(self._folder.glob("*.log")):
            try:
                at, size = self._at.get(path, 0), path.stat().st_size
                at = 0 if size < at else at  # it was begun anew
                if size == at:
                    continue
                with path.open("rb") as file:
                    file.seek(at)
                    data = file.read(1_000_000)
            except OSError:
                continue
            whole, _, _ = data.rpartition(b"\n")
            self._at[path] = at + (len(whole) + 1 if whole else 0)
            lines = whole.decode(errors="replace").splitlines()[-MOST:]
            found += [(path.stem, line) for line in lines if line.strip()]
        return found
