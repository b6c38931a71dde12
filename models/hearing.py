"""A recording while it arrives: voice activity as it comes, the words guessed at every pause. Owns the
guess: at the end it is taken when nothing was voiced after it, so that the text is there at once; and how long
a silence ends what is said, by whether the words so far are complete.

Invariant: a judgement that is missing, unsure or late changes nothing, and the end of speech, once told, stays
told until somebody speaks again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING

from exo.models.audio import RATE, BadAudio, from_pcm
from exo.models.backend import Heard
from exo.models.requests import Pauses
from exo.models.vad import Activity, Vad
from exo.models.whisper import Whisper

if TYPE_CHECKING:
    from exo.models.audio import Samples

PAUSE = 0.35  # seconds of silence after which the words so far are guessed
LEAST = 0.4  # seconds of speech that are worth a guess
LEAST_SAID = 0.2  # seconds of speech after which somebody has begun to speak: "no" takes 0.25

Lease = Callable[[], AbstractAsyncContextManager[Whisper]]
Judge = Callable[[str, str], Awaitable[str]]  # (text, language) -> finished, unfinished or ""


class Ear:
    """One recording. `whisper` None: voice activity alone; `judge` None: every pause is the usual one."""

    def __init__(
        self,
        vad: Vad,
        whisper: Lease | None,
        language: str,
        longest: float,
        stack: AsyncExitStack,
        judge: Judge | None = None,
    ) -> None:
        self._activity: Activity = vad.begin()
        self._whisper, self._language, self._longest = whisper, language, longest
        self._stack, self._judge = stack, judge
        self._parts: list[Samples] = []
        self._count = 0
        self._odd = b""
        self._guess: asyncio.Task[tuple[str, str]] | None = None
        self._guessed_to = 0  # the guess holds speech up to this sample
        self._said: tuple[int, str] = (-1, "")  # speech up to this sample was judged to be this
        self._over = -1  # the end of speech was told of speech up to this sample

    async def feed(self, pcm: bytes) -> None:
        raw = self._odd + pcm
        whole = len(raw) // 2 * 2
        self._odd = raw[whole:]
        samples = from_pcm(raw[:whole])
        self._count += len(samples)
        if self._count > self._longest * RATE:
            raise BadAudio("listen", f"the recording is longer than {self._longest:g} s")
        self._parts.append(samples)
        # a minute in one piece is judged in half a second: not in the loop that serves everybody
        for place in range(0, len(samples), RATE * 2):
            await asyncio.to_thread(self._activity.feed, samples[place : place + RATE * 2])
        self._think_ahead()

    def speaking(self, pauses: Pauses) -> bool:
        until = self._activity.voiced_until()
        spoken = sum(end - start for start, end in self._activity.spans())
        if spoken < LEAST_SAID or until == self._over:
            return False
        if self._activity.silence < pauses.after(self.judged):
            return True
        self._over = until
        return False

    @property
    def judged(self) -> str | None:
        """Whether the words so far are finished or unfinished; "" when that is not sure, None while nobody
        knows."""
        return self._said[1] if self._said[0] == self._activity.voiced_until() else None

    async def thought(self) -> None:
        """Wait until the guess under way, if any, is made and judged."""
        if self._guess is not None:
            await self._guess

    async def finish(self) -> Heard:
        await asyncio.to_thread(self._activity.finish)
        spans, duration = self._activity.spans(), self._count / RATE
        if self._whisper is None or not spans:
            return Heard("", self._language or "en", duration, spans)
        if self._guess is None or self._guessed_to != self._activity.voiced_until():
            await self._forget()
            self._begin()
        assert self._guess is not None  # _begin made it
        text, language = await self._guess
        return Heard(text, language, duration, spans)

    async def close(self) -> None:
        await self._forget()
        await self._stack.aclose()

    def _think_ahead(self) -> None:
        until = self._activity.voiced_until()
        spoken = sum(end - start for start, end in self._activity.spans())
        if self._whisper is None or spoken < LEAST or self._activity.silence < PAUSE:
            return
        if self._guessed_to == until or (self._guess and not self._guess.done()):
            return
        self._begin()

    def _begin(self) -> None:
        import numpy as np

        samples = np.concatenate(self._parts)
        self._parts = [samples]
        self._guessed_to = self._activity.voiced_until()
        spans, until = self._activity.spans(), self._guessed_to
        self._guess = asyncio.create_task(self._transcribe(samples, spans, until))

    async def _transcribe(
        self, samples: Samples, spans: list[tuple[float, float]], until: int
    ) -> tuple[str, str]:
        assert self._whisper is not None  # only asked for words with one
        async with self._whisper() as model:
            found = await asyncio.to_thread(model.transcribe, samples, spans, self._language)
        if self._judge is not None and found[0]:
            self._said = until, await self._judge(*found)
        return found

    async def _forget(self) -> None:
        """Let a guess under way go; a thread cannot be stopped, so its end is waited for by nobody."""
        if self._guess is not None:
            self._guess.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._guess
            self._guess = None


async def spoken(
    say: Callable[[str, str, float], bytes], pieces: list[tuple[str, str]], speed: float
) -> AsyncGenerator[bytes]:
    """Each clause as raw PCM, synthesised in a thread while the one before is being sent."""
    ahead: asyncio.Task[bytes] | None = None
    try:
        for index, _ in enumerate(pieces):
            ahead = ahead or asyncio.create_task(asyncio.to_thread(say, *pieces[index], speed))
            ready = await ahead
            follows = index + 1 < len(pieces)
            ahead = (
                asyncio.create_task(asyncio.to_thread(say, *pieces[index + 1], speed))
                if follows
                else None
            )
            if ready:
                yield ready
    finally:
        if ahead is not None:
            ahead.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await ahead
