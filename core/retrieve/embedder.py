"""Vectors from exo-models: asks its socket, remembers the last questions. Knows nothing of the index."""

from __future__ import annotations

import json
from pathlib import Path

from exo.core.base.errors import ModelError, ModelMissing, ServiceError
from exo.core.base.unix import get, post

KEPT = 64  # questions whose vector is remembered
_ASK = "ask for embeddings"


class SocketEmbedder:
    """An Embedder behind the models' socket. Requests name the model itself, not its role, so that a
    vector is always of the model that `name` says."""

    def __init__(self, models_socket: Path, timeout: float = 10.0) -> None:
        """`timeout` is seconds of silence before ServiceError."""
        self._socket = models_socket
        self._timeout = timeout
        self._name = ""
        self._kept: dict[str, list[float]] = {}
        self.width = 0

    @property
    def name(self) -> str:
        """The embedding model that is installed; one added by a person stands after the default. Raises
        ModelMissing, ServiceError."""
        if not self._name:
            rows = get(self._socket, "/v1/models", self._timeout).get("data") or []
            there = (row for row in rows if row.get("installed", True))
            names = [str(row["id"]) for row in there if row.get("role") == "embedding"]
            if not names:
                raise ModelMissing(_ASK, "no model is installed", "run `exo models get`")
            self._name = names[-1]
        return self._name

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Raises ModelError (the model refuses: not retryable), ServiceError."""
        if len(texts) == 1 and texts[0] in self._kept:
            return [self._kept[texts[0]]]
        body = {"model": self.name, "input": [text or " " for text in texts]}
        status, answer = post(self._socket, "/v1/embeddings", body, timeout=self._timeout)
        if status == 404:  # another model has been installed since
            self._name = ""
            self._kept.clear()
            raise ModelMissing(_ASK, f"{body['model']} is gone")
        if status in (408, 425, 429) or status >= 500:
            raise ServiceError(_ASK, f"status {status}")
        try:
            value = json.loads(answer)
            if status != 200:
                raise ModelError(_ASK, str(value["error"]["message"]))
            vectors = [[float(x) for x in row["embedding"]] for row in value["data"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceError(_ASK, f"status {status}, and no embeddings in the answer") from error
        self.width = len(vectors[0]) if vectors else self.width
        if len(texts) == 1 == len(vectors):
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[texts[0]] = vectors[0]
        return vectors
