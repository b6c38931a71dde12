"""Sentence embeddings: MiniLM on onnxruntime, and larger models as GGUF on llama.cpp. Owns tokenising,
pooling and the unit length."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.models.onnx import session

BATCH = 16  # texts at a time
ROOM = 1024  # tokens at a time, padding included: bounds the memory of a batch


@dataclass
class Embedded:
    """`vectors` in the order asked; `cut` counts texts longer than the model's limit."""

    vectors: list[list[float]]
    tokens: int
    cut: int


class Embedder:
    """One loaded model of `window` tokens."""

    def __init__(self, folder: Path, model: str, window: int, threads: int) -> None:
        """Raises onnxruntime's or tokenizers' errors for files that are no model."""
        import tokenizers

        self._tokens = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokens.no_padding()
        self._tokens.no_truncation()
        self._window = window
        self._session = session(folder / model, threads)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self.embed(["warm"])

    def embed(self, texts: list[str]) -> Embedded:
        """Unit vectors of the texts; an empty list gives an empty list."""
        # a text of a megabyte is cut before it is tokenised: more than 16 letters a token is rare
        most = self._window * 16
        encoded = [
            each.ids for each in self._tokens.encode_batch([_whole(text[:most]) for text in texts])
        ]
        cut = sum(
            len(ids) > self._window or len(text) > most
            for ids, text in zip(encoded, texts, strict=True)
        )
        ids = [
            each if len(each) <= self._window else [*each[: self._window - 1], each[-1]]
            for each in encoded
        ]
        out: list[list[float]] = [[] for _ in texts]
        # by length, so that a batch holds little padding
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        for batch in _batches(order, ids):
            for index, vector in zip(batch, self._run([ids[i] for i in batch]), strict=True):
                out[index] = vector.tolist()
        return Embedded(out, sum(len(each) for each in ids), cut)

    def _run(self, ids: list[list[int]]) -> Any:
        import numpy as np

        longest = max(len(each) for each in ids)
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.int64)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            mask[row, : len(each)] = 1
        feeds = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        hidden = self._session.run(None, {k: v for k, v in feeds.items() if k in self._inputs})[0]
        weight = mask[:, :, None].astype(np.float32)
        mean = (hidden * weight).sum(1) / np.maximum(weight.sum(1), 1e-9)
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)


class GgufEmbedder:
    """A GGUF embedding model; llama.cpp pools as the file says."""

    def __init__(self, path: Path, window: int, threads: int) -> None:
        """Raises ValueError for a file that is no model."""
        import llama_cpp

        self._window = window
        # whoever asked may go away while a thread still computes: the model must outlive that thread
        self._busy = threading.Lock()
        self._model = llama_cpp.Llama(
            str(path),
            n_ctx=window,
            n_batch=window,
            n_ubatch=window,
            n_threads=threads,
            n_threads_batch=threads,
            embedding=True,
            verbose=False,
        )

    def embed(self, texts: list[str]) -> Embedded:
        """Unit vectors of the texts, one at a time."""
        import numpy as np

        vectors, total, cut = [], 0, 0
        for text in texts:
            count = len(self._model.tokenize(text.encode("utf-8", "replace"), add_bos=True))
            cut += count > self._window
            total += min(count, self._window)
            with self._busy:
                found = np.array(self._model.embed(text or " ", normalize=True, truncate=True))
            if found.ndim == 2:  # a file that names no pooling gives a vector for every token
                found = found.mean(axis=0)
                found /= max(1e-12, float(np.linalg.norm(found)))
            vectors.append(found.tolist())
        return Embedded(vectors, total, cut)

    def close(self) -> None:
        with self._busy:
            self._model.close()


def _whole(text: str) -> str:
    """The text without halves of character pairs, which tokenizers refuses."""
    return text.encode("utf-8", "replace").decode()


def _batches(order: list[int], ids: list[list[int]]) -> list[list[int]]:
    """Group indices, ascending by length, into batches within BATCH and ROOM."""
    out: list[list[int]] = []
    for index in order:
        full = out and (len(out[-1]) >= BATCH or (len(out[-1]) + 1) * len(ids[index]) > ROOM)
        if not out or full:
            out.append([])
        out[-1].append(index)
    return out
