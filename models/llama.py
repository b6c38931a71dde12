"""llama.cpp through llama-cpp-python's C binding. Owns one loaded GGUF and one context with several
sequences; knows nothing of chats, queues or HTTP.

The high-level Llama class is not used: it has one sequence, copies all logits of a prompt, and its
state saving writes the whole context. Every call here is made from one thread (the writer's), except
`tokenize` and `piece`, which only read the vocabulary."""

from __future__ import annotations

import ctypes
import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exo.core.base.errors import ModelError
from exo.models.catalog import ModelCorrupt
from exo.models.pace import Pace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 256  # tokens of a prompt computed in one call at most


class NoRoom(ModelError):
    """The context's cells are all taken."""


class Llama:
    """A model and its context. `cells` is how many tokens all sequences hold together."""

    def __init__(self, path: Path, cells: int, sequences: int, pace: Pace) -> None:
        """Raises ModelCorrupt for a file that llama.cpp cannot read."""
        import llama_cpp.llama_cpp as api

        _quiet(api)
        self._api: Any = api
        api.llama_backend_init()
        options = api.llama_model_default_params()
        options.n_gpu_layers = 0
        # repacked weights are a second copy in memory (95 MB for the default model), and the AMX
        # ones ended the process with SIGILL or SIGSEGV on a virtual machine that names AMX
        options.use_extra_bufts = False
        self._model = api.llama_model_load_from_file(str(path).encode(), options)
        if not self._model:
            raise ModelCorrupt(
                f"load model {path.parent.name}",
                f"llama.cpp cannot read {path}",
                f"run `exo models get {path.parent.name}`",
            )
        self.vocab = api.llama_model_get_vocab(self._model)
        self._pace = pace
        self._context = self._open(cells, sequences, pace.threads)
        self._memory = api.llama_get_memory(self._context)
        self._batch = api.llama_batch_init(BATCH, 0, 1)
        self.cells = cells
        self.words = api.llama_vocab_n_tokens(self.vocab)
        # whether a sequence can be shared or forgotten in part: a recurrent state cannot
        self.partial = not (
            api.llama_model_is_recurrent(self._model) or api.llama_model_is_hybrid(self._model)
        )
        self.begin = (
            [api.llama_vocab_bos(self.vocab)] if api.llama_vocab_get_add_bos(self.vocab) else []
        )
        self.template = (api.llama_model_chat_template(self._model, None) or b"").decode(
            "utf-8", "replace"
        )

    def _open(self, cells: int, sequences: int, threads: int) -> Any:
        api = self._api
        options = api.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = cells, BATCH, BATCH
        options.n_seq_max, options.kv_unified = sequences, True
        options.n_threads = options.n_threads_batch = threads
        # 8-bit keys and values: half the memory, for which all cells can be twice as many
        options.type_k = options.type_v = api.GGML_TYPE_Q8_0
        options.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_ENABLED
        options.no_perf = True
        context = api.llama_init_from_model(self._model, options)
        if not context:
            api.llama_model_free(self._model)
            raise ModelError("make a llama.cpp context", f"{cells} cells do not fit in memory")
        return context

    def close(self) -> None:
        """Free everything; the object is of no use afterwards."""
        if self._context:
            self._api.llama_batch_free(self._batch)
            self._api.llama_free(self._context)
            self._api.llama_model_free(self._model)
            self._context = self._model = None

    def tokenize(self, text: str, special: bool) -> list[int]:
        """Tokens of `text`; without `special`, text that looks like <|im_end|> is only text."""
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8
        out = (self._api.llama_token * room)()
        count = self._api.llama_tokenize(self.vocab, raw, len(raw), out, room, False, special)
        if count < 0:
            raise ModelError("tokenise the prompt", f"llama.cpp answers {count}")
        return list(out[:count])

    def piece(self, token: int) -> bytes:
        """The bytes of a token; may be part of a letter."""
        out = ctypes.create_string_buffer(256)
        size = self._api.llama_token_to_piece(self.vocab, token, out, 256, 0, True)
        return out.raw[: max(0, size)]

    @functools.cached_property
    def longest(self) -> int:
        """Bytes of the longest token: a text of n times as many bytes has at least n tokens."""
        return max(len(self.piece(token)) for token in range(self.words))

    def ends(self, token: int) -> bool:
        """Whether the token says that the turn is over."""
        return bool(self._api.llama_vocab_is_eog(self.vocab, token))

    def decode(self, sequence: int, tokens: list[int], start: int, last: bool) -> None:
        """Compute at most BATCH tokens at position `start` of a sequence; `last` keeps the logits of the
        last one. Raises NoRoom, or ModelError when llama.cpp fails; the sequence may then hold a part."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = start + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = last and index == len(tokens) - 1
        wall, own, process = time.monotonic(), time.thread_time(), time.process_time()
        code = self._api.llama_decode(self._context, batch)
        wall, own = time.monotonic() - wall, time.thread_time() - own
        if self._pace.note(wall, own, time.process_time() - process):
            self._api.llama_set_n_threads(self._context, self._pace.threads, self._pace.threads)
        if code == 1:
            raise NoRoom("compute tokens", f"all {self.cells} cells are taken")
        if code:
            raise ModelError("compute tokens", f"llama.cpp answers {code}")

    def logits(self) -> NDArray[np.float32]:
        """(words,) scores of the next token; a view that the next decode overwrites."""
        import numpy as np

        pointer = self._api.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(pointer, shape=(self.words,))

    def cut(self, sequence: int, start: int) -> bool:
        """Forget the sequence from position `start` on; False when the model's memory cannot do that
        in part (recurrent ones)."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def copy(self, source: int, target: int, count: int) -> None:
        """Let `target`, which must be empty, share the first `count` cells of `source`."""
        self._api.llama_memory_seq_cp(self._memory, source, target, 0, count)

    def held(self, sequence: int) -> int:
        """How many positions the sequence holds."""
        return int(self._api.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    def state(self, sequence: int) -> bytes:
        """The sequence's cells as bytes, for `restore`; b"" when llama.cpp declines."""
        size = self._api.llama_state_seq_get_size(self._context, sequence)
        buffer = (ctypes.c_uint8 * size)()
        done = self._api.llama_state_seq_get_data(self._context, buffer, size, sequence)
        return bytes(buffer) if done == size else b""

    def restore(self, sequence: int, state: bytes) -> bool:
        """Put saved cells into an empty sequence; False when they do not fit this context."""
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        done = self._api.llama_state_seq_set_data(self._context, buffer, len(state), sequence)
        if not done:
            self.cut(sequence, 0)
        return bool(done)


_KEPT: list[Any] = []  # ctypes callbacks must outlive their use


def _quiet(api: Any) -> None:
    """llama.cpp logs each load in a hundred lines; only errors are kept."""
    if _KEPT:
        return

    @api.llama_log_callback
    def log(level: int, text: bytes, _: object) -> None:
        if level == 4:
            import sys

            sys.stderr.write(text.decode("utf-8", "replace"))

    api.llama_log_set(log, None)
    _KEPT.append(log)
