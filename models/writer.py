"""The thread that writes with one language model. Owns the order of work: one step at a time (a piece of
a prompt, or one token), live work before aux, each request with its own sequence.

Invariant: aux work never runs a step while live work waits, and stays where it is in its own sequence
until its turn comes again; whatever a request does, the thread goes on."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from exo.core.base.errors import ContextOverflow, ExoError, ModelBusy
from exo.models.backend import CallArguments, CallOpened, ChatEvent, Finished, Scored, Text
from exo.models.grammar import Plan, plan
from exo.models.llama import BATCH, Llama
from exo.models.prefixes import Prefixes
from exo.models.replies import Usage
from exo.models.requests import Call, ChatRequest
from exo.models.sampling import Decoder, Sampler, Style
from exo.models.sequences import Sequences, Slot
from exo.models.template import Layout, call_text

QUICK = 0.08  # seconds that one piece of a prompt may take, so that a cancel is felt soon
SMALLEST = 32  # tokens of a prompt in one step at least
WORTH = 64  # tokens; a shorter prefix is not saved
DEFAULT_REPLY = 512  # tokens when the client names no limit


class Job:
    """One request under way. `emit` is called from the writer's thread with events, and at the end with
    an error or None."""

    def __init__(
        self,
        request: ChatRequest,
        emit: Callable[[ChatEvent | Scored | Exception | None], None],
        prefill: bool = False,
        options: tuple[str, ...] = (),
    ) -> None:
        """With `options` no reply is written: how likely each of them is as the reply is weighed."""
        self.request, self.emit, self.prefill, self.options = request, emit, prefill, options
        self.cancelled = threading.Event()
        self.usage = Usage()
        self.evaluated = 0  # prompt tokens computed
        self.steps: Iterator[None] | None = None
        self.slot: Slot | None = None

    def cancel(self) -> None:
        self.cancelled.set()


class Writer:
    """Runs jobs on one model. `window` is the most tokens of a live request, `aux_window` of an aux one;
    `queue` how many may wait of each kind."""

    def __init__(
        self,
        llama: Llama,
        sequences: Sequences,
        prefixes: Prefixes,
        windows: tuple[int, int],
        queue: int,
        tools: str,
    ) -> None:
        self.llama, self.layout = llama, Layout(llama)
        self.window, self.aux_window = windows
        self._sequences, self._prefixes = sequences, prefixes
        self._queue, self._tools = queue, tools
        self._waiting: dict[bool, deque[Job]] = {True: deque(), False: deque()}
        self._now: Job | None = None
        self._change = threading.Condition()
        self._stop = False
        self._piece = 64  # until it is known how fast this machine reads
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job. Raises ModelBusy when too many wait."""
        with self._change:
            line = self._waiting[job.request.live]
            if len(line) > self._queue:
                why = f"{len(line)} requests are before it"
                raise ModelBusy("ask the language model", why, "ask again in a moment")
            line.append(job)
            self._change.notify()

    def counts(self) -> dict[str, int]:
        """How many jobs run or wait."""
        live, aux = len(self._waiting[True]), len(self._waiting[False])
        return {"live": live, "aux": aux}

    def close(self) -> None:
        """End the thread; jobs that are left get an error. Then frees the model."""
        with self._change:
            self._stop = True
            self._change.notify()
        self._thread.join()
        self.llama.close()

    # Everything below runs in the writer's thread.

    def _loop(self) -> None:
        while True:
            with self._change:
                while not (self._stop or self._waiting[True] or self._waiting[False]):
                    self._change.wait()
                if self._stop:
                    break
                job = (self._waiting[True] or self._waiting[False])[0]
            if not self._step(job):
                with self._change:
                    self._waiting[job.request.live].remove(job)
        for job in (*self._waiting[True], *self._waiting[False]):
            job.emit(ExoError("write the reply", "exo-models stops"))

    def _step(self, job: Job) -> bool:
        """One step of the job; False once it is over."""
        result: Exception | None = None
        try:
            if not job.cancelled.is_set():
                job.steps = job.steps or self._run(job)
                next(job.steps)
                return True
        except StopIteration:
            pass
        except ExoError as error:
            result = error
        except Exception as error:  # noqa: BLE001 - one request's fault must not end the thread
            traceback.print_exc(file=sys.stderr)
            result = ExoError("write the reply", f"{type(error).__name__}: {error}")
            if job.slot:
                self._sequences.drop(job.slot)
        if job.steps and hasattr(job.steps, "close"):
            job.steps.close()
        job.emit(result)
        return False

    def _run(self, job: Job) -> Iterator[None]:
        request = job.request
        window = self.window if request.live else self.aux_window
        how = plan(request, self._tools)
        self._look(request, window)
        tokens, ends = self.layout.prompt(request.messages, how.offered)
        prefix = tokens[: ends[min(request.save_prefix, len(ends) - 1)]]
        if not job.prefill:
            if how.aside:
                tokens = tokens + self.layout.aside(how.aside)
            tokens = tokens + self.layout.opening(how.start)
        if len(tokens) >= window:
            raise _overflow(f"it has {len(tokens)} tokens", window)
        weighed = [self.llama.tokenize(option, False) for option in job.options]
        room = 0 if job.prefill else min(how.limit(DEFAULT_REPLY), window - len(tokens))
        slot = job.slot = self._sequences.claim(request.cache_key, request.live, tokens, room)
        slot.busy = True
        try:
            self._reload(slot, prefix)
            job.usage = Usage(prompt=len(tokens), cached=len(slot.tokens))
            job.evaluated = len(tokens) - len(slot.tokens)
            yield from self._read(slot, tokens)
            if weighed:
                job.emit(Scored(tuple(self._weigh(slot, weighed))))
            elif not job.prefill:
                yield from self._write(job, slot, how, room)
            self._keep(slot, prefix)
        finally:
            slot.busy = False

    def _look(self, request: ChatRequest, window: int) -> None:
        """Refuse a text of megabytes without tokenising it, which takes seconds that others wait for."""
        size = sum(each.size for each in request.messages)
        if size > window * 8 and size // self.llama.longest >= window:
            raise _overflow(f"it has at least {size // self.llama.longest} tokens", window)

    def _reload(self, slot: Slot, prefix: list[int]) -> None:
        """Take the prefix from disk when it is there and memory holds less of it."""
        if len(prefix) < WORTH or len(slot.tokens) >= len(prefix) - 1:
            return
        if (state := self._prefixes.load(prefix)) and not self._sequences.fill(slot, prefix, state):
            self._prefixes.forget(prefix, "llama.cpp does not take it")

    def _keep(self, slot: Slot, prefix: list[int]) -> None:
        if len(prefix) < WORTH or slot.tokens[: len(prefix)] != prefix:
            return
        if not self._prefixes.has(prefix) and (
            state := self._sequences.snapshot(slot, len(prefix))
        ):
            self._prefixes.save(prefix, state)

    def _read(self, slot: Slot, tokens: list[int]) -> Iterator[None]:
        """Compute the prompt in pieces that take about QUICK seconds each."""
        while (done := len(slot.tokens)) < len(tokens):
            piece = tokens[done : done + self._piece]
            began = time.monotonic()
            self._sequences.extend(slot, piece, done + len(piece) == len(tokens))
            if len(piece) >= SMALLEST:
                speed = len(piece) / max(1e-6, time.monotonic() - began)
                self._piece = max(SMALLEST, min(BATCH, int(speed * QUICK)))
            # the logits lie in the context until the next decode, which may be another job's: so no
            # pause between the prompt's last token and the first draw
            if len(slot.tokens) < len(tokens):
                yield

    def _weigh(self, slot: Slot, replies: list[list[int]]) -> list[float]:
        """The log-probability of each reply. One step, because the prompt's logits are read once; replies
        are the names of options, a few tokens each."""
        count, first, found = len(slot.tokens), _logs(self.llama.logits()), []
        for tokens in replies:
            total = float(first[tokens[0]]) if tokens else -1e9
            for token, after in zip(tokens, tokens[1:], strict=False):
                self._sequences.extend(slot, [token], True)
                total += float(_logs(self.llama.logits())[after])
            self._sequences.cut(slot, count)
            found.append(total)
        return found

    def _write(self, job: Job, slot: Slot, how: Plan, room: int) -> Iterator[None]:
        reply = Reply(self, job, slot, how, room)
        try:
            yield from reply.steps()
        finally:
            reply.close()

    def decode(self, slot: Slot, token: int) -> None:
        self._sequences.extend(slot, [token], True)


class Reply:
    """One reply while it is written: tokens in, events out. However it ends, the layout then knows which
    tokens spell what the client got."""

    def __init__(self, writer: Writer, job: Job, slot: Slot, how: Plan, room: int) -> None:
        self._writer, self._job, self._slot, self._how, self._room = writer, job, slot, how, room
        self._tokens: list[int] = []
        self._said = ""
        request = job.request
        style = Style(seed=request.seed if request.seed is not None else time.time_ns())
        if request.temperature is not None:
            style = replace(style, temperature=request.temperature)
        if request.top_p is not None:
            style = replace(style, top_p=request.top_p)
        self._sampler = Sampler(writer.llama, style, how.grammar)
        stops = request.stop + ((how.trigger,) if how.trigger else ())
        self._decoder = Decoder(stops, guard=not how.grammar)
        self._calling = how.call
        self._call = how.start  # the text of a call so far

    def steps(self) -> Iterator[None]:
        """Draw, show and compute until the reply ends; a step ends before each token is computed, so that
        its logits are drawn from in the same step."""
        llama = self._writer.llama
        while len(self._tokens) < self._room:
            token = self._sampler.next()
            if llama.ends(token):
                return self._finish("stop")
            self._tokens.append(token)
            self._job.usage.completion += 1
            self._show(self._decoder.feed(llama.piece(token)))
            if self._decoder.stopped and self._decoder.stopped == self._how.trigger:
                self._bind()
            elif self._decoder.stopped:
                return self._finish("stop")
            yield
            self._writer.decode(self._slot, token)
        return self._finish("length")

    def close(self) -> None:
        """Free the samplers and remember the reply's tokens."""
        self._sampler.close()
        self._writer.layout.remember(self._said, self._tokens)

    def _show(self, text: str) -> None:
        if self._calling:
            self._call += text
        elif text:
            self._said += text
            self._job.emit(Text(text))

    def _bind(self) -> None:
        """The model wrote the trigger: what follows is bound to the grammar of calls."""
        self._calling, self._call = True, self._how.trigger
        self._sampler.bind(self._how.call_grammar)
        self._decoder = Decoder((), guard=False)

    def _finish(self, reason: str) -> None:
        self._show(self._decoder.feed(b"", last=True))
        job, layout = self._job, self._writer.layout
        if self._calling:
            name, arguments = self._how.read_call(self._call)
            job.emit(CallOpened(0, name, f"call_{time.time_ns():x}"))
            job.emit(CallArguments(0, arguments))
            start = layout.opening(self._how.start)[len(layout.opening()) :]
            written = call_text(Call(name, arguments))
            layout.remember_call(f"{self._said}\n{written}", [*start, *self._tokens], written)
            reason = "tool_calls"
        job.emit(Finished(reason, job.usage))


def _logs(logits: Any) -> Any:
    """Log-probabilities of scores, as a copy: the next decode overwrites the scores."""
    import numpy as np

    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def _overflow(what: str, window: int) -> ContextOverflow:
    why = f"{what} and the window holds {window}"
    return ContextOverflow("read the prompt", why, "send less of the conversation")
