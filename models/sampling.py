"""Which token comes next, and when to stop. Owns llama.cpp's samplers for one reply, the grammar, the
decoding of bytes to text, stop strings, and the cutting of loops."""

from __future__ import annotations

import codecs
import ctypes
import re
from dataclasses import dataclass
from typing import Any

from exo.models.llama import Llama
from exo.models.replies import BadRequest

LAST = 128  # tokens that the penalties look back
SENTENCE = re.compile(r"[.!?\n]+[\"')\]]*(?:\s+|\Z)")
LEAST = 12  # letters a sentence must have to count as repeated


@dataclass(frozen=True)
class Style:
    """How freely a reply is drawn. Defaults suit a small model: near its best guess, no loops."""

    temperature: float = 0.1
    top_p: float = 0.9
    min_p: float = 0.05
    repeat: float = 1.0  # a penalty on single words spoils names that the question holds
    dry: float = 0.8
    seed: int = 0


class Sampler:
    """The samplers of one reply. `close` frees them."""

    def __init__(self, llama: Llama, style: Style, grammar: str = "") -> None:
        """Raises BadRequest for a grammar that llama.cpp does not take."""
        import numpy as np

        api = llama._api
        self._api, self._llama = api, llama
        self._free = api.llama_sampler_free
        self._grammar: Any = None
        if grammar:
            self.bind(grammar)
        self._chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        for each in self._parts(style, bool(grammar)):
            api.llama_sampler_chain_add(self._chain, each)
        kind = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])
        self._all: Any = np.zeros(llama.words, kind)
        self._ids = np.arange(llama.words, dtype=np.int32)

    def _parts(self, style: Style, bound: bool) -> list[Any]:
        api, vocab = self._api, self._llama.vocab
        parts = []
        if not bound:  # JSON repeats its quotes and commas: penalties would spoil it
            parts.append(
                api.llama_sampler_init_penalties(self._llama.words, LAST, style.repeat, 0.0, 0.0)
            )
            breakers = [b"\n", b":", b'"', b"*"]
            marks = (ctypes.c_char_p * len(breakers))(*breakers)
            parts.append(
                api.llama_sampler_init_dry(vocab, style.dry, 1.75, 3, LAST, marks, len(breakers))
            )
        if style.temperature <= 0:
            return [*parts, api.llama_sampler_init_greedy()]
        return [
            *parts,
            api.llama_sampler_init_top_k(40),
            api.llama_sampler_init_top_p(style.top_p, 1),
            api.llama_sampler_init_min_p(style.min_p, 1),
            api.llama_sampler_init_temp(style.temperature),
            api.llama_sampler_init_dist(style.seed & 0xFFFFFFFF),
        ]

    def bind(self, grammar: str) -> None:
        """From here on only what `grammar` (GBNF, rule root) allows is drawn."""
        self._grammar = self._api.llama_sampler_init_grammar(
            self._llama.vocab, grammar.encode(), b"root"
        )
        if not self._grammar:
            raise BadRequest("read the JSON schema", "no grammar can be made of it")

    def next(self) -> int:
        """Draw the next token from the logits of the last decode."""
        token = self._draw(False)
        # the grammar looks at the one candidate first: looking at all costs 49,152 walks
        if self._grammar and not self._allowed(token):
            token = self._draw(True)
        if self._grammar and not self._llama.ends(token):
            self._api.llama_sampler_accept(self._grammar, token)
        self._api.llama_sampler_accept(self._chain, token)
        return token

    def close(self) -> None:
        self._free(self._chain)
        if self._grammar:
            self._free(self._grammar)

    def _draw(self, bound: bool) -> int:
        self._all["id"], self._all["logit"], self._all["p"] = self._ids, self._llama.logits(), 0.0
        array = self._array(self._all)
        if bound:
            self._api.llama_sampler_apply(self._grammar, ctypes.byref(array))
        self._api.llama_sampler_apply(self._chain, ctypes.byref(array))
        return int(array.data[array.selected].id)

    def _allowed(self, token: int) -> bool:
        import numpy as np

        one: Any = np.zeros(1, self._all.dtype)
        one["id"] = token
        self._api.llama_sampler_apply(self._grammar, ctypes.byref(self._array(one)))
        return bool(np.isfinite(one["logit"][0]))

    def _array(self, data: Any) -> Any:
        pointer = data.ctypes.data_as(ctypes.POINTER(self._api.llama_token_data))
        return self._api.llama_token_data_array(
            data=pointer, size=len(data), selected=-1, sorted=False
        )


class Decoder:
    """Bytes of tokens to text, whole letters only; text that may be the start of a stop string, or of a
    sentence that was said before, is held back until it is clear."""

    def __init__(self, stops: tuple[str, ...], guard: bool) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = stops
        self._guard = Guard() if guard else None
        self._pending = ""
        self.stopped = ""  # the stop string that was met, or "loop"

    def feed(self, raw: bytes, last: bool = False) -> str:
        """Take a token's bytes; return the text that may be shown now."""
        self._pending += self._utf8.decode(raw, last)
        for stop in self._stops:
            place = self._pending.find(stop)
            if place >= 0:
                self._pending, self.stopped = self._pending[:place], stop
                last = True
        keep = (
            0 if last else max((_overlap(self._pending, stop) for stop in self._stops), default=0)
        )
        ready = self._pending[: len(self._pending) - keep]
        self._pending = self._pending[len(ready) :]
        if self._guard is None:
            return ready
        out = self._guard.feed(ready, last)
        if self._guard.looping:
            self.stopped = self.stopped or "loop"
        return out


class Guard:
    """Notices a reply that repeats itself. A sentence is held while it is the beginning of an earlier
    one, and dropped when it ends the same."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._line = ""  # the sentence under way
        self._shown = 0  # letters of it that were let through
        self.looping = False

    def feed(self, text: str, last: bool) -> str:
        out = ""
        self._line += text
        while not self.looping and (found := SENTENCE.search(self._line)):
            # a mark at the very end may go on ("3." of 3.5, "..."): wait for what follows
            if found.end() == len(self._line) and not last and "\n" not in found.group():
                break
            out += self._end(found.end())
        if self.looping:
            return out
        if last and self._line:
            return out + self._end(len(self._line))
        if not self._known(self._line) and not _stutters(self._line):
            out += self._line[self._shown :]
            self._shown = len(self._line)
        self.looping = self.looping or _stutters(self._line)
        return out

    def _end(self, size: int) -> str:
        sentence, self._line = self._line[:size], self._line[size:]
        plain = _plain(sentence)
        if len(plain) >= LEAST and plain in self._said:
            self.looping = True
            return ""
        self._said.append(plain)
        shown, self._shown = self._shown, 0
        return sentence[shown:]

    def _known(self, line: str) -> bool:
        plain = _plain(line)
        return not plain or any(each.startswith(plain) for each in self._said if len(each) >= LEAST)


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().lower()


def _stutters(line: str) -> bool:
    """Whether the end of the line is one run of words said four times over."""
    words = line.lower().split()[-48:]
    for size in range(1, 13):
        count = 4 if size > 2 else 6
        if len(words) >= size * count:
            tail = words[-size:]
            if all(words[-size * (k + 1) : len(words) - size * k] == tail for k in range(count)):
                return True
    return False


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
