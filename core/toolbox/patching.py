"""The tool apply_patch: all files of a patch change, or none."""

from __future__ import annotations

import contextlib
from pathlib import Path

from exo.core.base.errors import ExoError, storage_error
from exo.core.toolbox.patch import apply
from exo.core.toolbox.paths import read_text, resolve, save_text
from exo.core.toolbox.registry import Context


def apply_patch(context: Context, patch: str) -> str:
    """Change the files of the working folder that the patch names; what was written before a failure
    is put back."""
    root = context.cwd.resolve()

    def name(path: str) -> str:
        return str(resolve(path, context).relative_to(root))

    def load(path: str) -> str | None:
        full = root / path
        return read_text(full) if full.exists() else None

    made = apply(patch, load, name)
    before = {path: load(path) for path in made}
    done: list[str] = []
    try:
        for path, text in made.items():
            done.append(path)
            _put(root / path, text)
    except ExoError:
        for path in done:
            with contextlib.suppress(ExoError):  # the disk refuses: told by the first error
                _put(root / path, before[path])
        raise
    return "\n".join(f"{_verb(before[path], text)} {path}" for path, text in made.items())


def _put(path: Path, text: str | None) -> None:
    if text is not None:
        save_text(path, text)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(f"delete {path}", error) from error


def _verb(before: str | None, after: str | None) -> str:
    return "added" if before is None else "deleted" if after is None else "changed"
