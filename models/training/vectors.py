"""Vectors of many short texts by the very model that serves them, kept on disk between runs. Owns the
cache (`~/.cache/exo/vectors`); a text is embedded once for each model file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from exo.core.base.home import models_folder
from exo.models.catalog import Catalog
from exo.models.embed import Embedder

STEP = 512  # texts between two words of progress


class Vectors:
    """Unit vectors of the default embedding model."""

    def __init__(self, threads: int = 1, folder: Path | None = None) -> None:
        """Raises ModelMissing, ModelCorrupt. The model itself is loaded at the first new text."""
        catalog = Catalog(models_folder())
        self.row = catalog.resolve("embedding")
        self._model, self._threads = catalog.require(self.row), threads
        self._embedder: Embedder | None = None
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._folder = folder or base / "exo" / "vectors"
        self.sha256 = self.row.files[0].sha256

    def of(self, texts: Sequence[str], name: str = "") -> Any:
        """float32 (len(texts), 384). With a `name` the answer is kept under it for the next run."""
        if not name:
            return self._embed(texts)
        digest = hashlib.sha256("\x00".join([self.sha256, *texts]).encode()).hexdigest()
        path = self._folder / f"{name}-{digest[:16]}.npy"
        if path.exists():
            return np.load(path)
        found = self._embed(texts)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, found)
        partial.replace(path)
        return found

    def _embed(self, texts: Sequence[str]) -> Any:
        if self._embedder is None:
            file = self.row.file(".onnx")
            self._embedder = Embedder(self._model, file, self.row.window, self._threads)
        rows = [
            self._embedder.embed(list(texts[at : at + STEP])).vectors
            for at in range(0, len(texts), STEP)
        ]
        return np.array([row for part in rows for row in part], np.float32).reshape(-1, 384)
