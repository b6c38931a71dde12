"""The real models behind the routes. Owns which row of the catalog serves a request, how each format is
loaded, and the bridge between the event loop and the threads that compute."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError, ModelMissing
from exo.core.base.home import Home, models_folder
from exo.core.base.settings import Settings
from exo.models import ear, espeak
from exo.models.audio import from_wav, to_pcm
from exo.models.backend import ChatEvent, Finished, Listener, Scored
from exo.models.catalog import Catalog, ModelCorrupt, Row
from exo.models.decide import NAME as DECIDES
from exo.models.decide import Decider, as_prompt, shaped
from exo.models.hearing import Ear, spoken
from exo.models.memory import rss_mb
from exo.models.pool import Pool
from exo.models.questions import Asked, DecideRequest, FitRequest
from exo.models.replies import BadRequest
from exo.models.requests import ChatRequest, Message, SpeechRequest
from exo.models.writer import Job, Writer

PREFIX_LAYOUT = (
    "q8_0 q8_0 llama-cpp-python 0.3.36"  # what saved prefixes depend on beside the model
)
CHAT = ("main", "aux")
RECENT = 8  # single texts whose vector is remembered
FIT_STEP = 64  # texts of a fit embedded at once
COUNTED = 2_000_000  # letters whose tokens are counted at most, about a second


class LocalBackend:
    """Backend over the catalog's files."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home, self._settings = home, settings
        self.catalog = Catalog(models_folder())
        given = settings.count("models.threads")
        self.threads, self._fixed = given or len(os.sched_getaffinity(0)), bool(given)
        self._window = settings.count("models.window")
        self._longest = settings.number("listen.longest") * 2
        self._pool = Pool(
            settings.number("models.ram_mb"),
            settings.number("models.idle"),
            self._load,
            lambda model: model.close() if hasattr(model, "close") else None,
        )
        self._one: dict[str, asyncio.Lock] = {}
        self._recent: dict[tuple[str, str] | None, tuple[list[list[float]], int, int]] = {}
        self._decides: Decider | None = None
        self._deciding = asyncio.Lock()
        self._mute = False  # that nobody judges the end of a turn has been told
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        row = self._row(request.model, CHAT)
        async with self._pool.lease(row) as writer:
            job, events = _submit(writer, request, prefill=False)
            try:
                while True:
                    event = await events.get()
                    if isinstance(event, Exception):
                        raise event
                    if event is None or isinstance(event, Scored):
                        return
                    yield event
                    if isinstance(event, Finished):
                        return
            finally:
                job.cancel()

    async def prefill(self, request: ChatRequest) -> tuple[int, int, int]:
        async with self._pool.lease(self._row(request.model, CHAT)) as writer:
            job, events = _submit(writer, request, prefill=True)
            try:
                if isinstance(event := await events.get(), Exception):
                    raise event
            finally:
                job.cancel()
        return job.usage.prompt, job.evaluated, job.usage.cached

    async def tokenize(
        self, model: str, messages: tuple[Message, ...] | None, text: str
    ) -> tuple[int, int]:
        size = len(text) + sum(each.size for each in messages or ())
        if size > COUNTED:
            raise BadRequest("count tokens", f"{size} letters; send at most {COUNTED}")
        async with self._pool.lease(self._row(model, CHAT)) as writer:
            window = writer.aux_window if model == "aux" else writer.window
            if messages is None:
                tokens = await asyncio.to_thread(writer.llama.tokenize, text, False)
            else:
                tokens = (await asyncio.to_thread(writer.layout.prompt, messages))[0]
            return len(tokens), window

    async def embed(self, model: str, texts: list[str]) -> tuple[list[list[float]], int, int]:
        if not texts:
            return [], 0, 0
        row = self._row(model, ("embedding",))
        key = (row.name, texts[0]) if len(texts) == 1 else None
        async with self._alone(row) as embedder:
            if key in self._recent:  # a message is recalled by and decided on at once
                return self._recent[key]
            done = await asyncio.to_thread(embedder.embed, texts)
            found = done.vectors, done.tokens, done.cut
            if key is not None:
                self._recent[key] = found
                while len(self._recent) > RECENT:
                    self._recent.pop(next(iter(self._recent)))
        return found

    async def decide(self, request: DecideRequest) -> dict[str, Any]:
        if request.model in CHAT:
            found = {}
            for name, question in request.questions.items():
                found[name] = await self._weigh(request.model, request.state, question)
            return found
        async with self._deciding:  # else another's options push ours out before they are answered
            decider = await self._decider()
            state, *options = decider.wanting(request)
            vectors, _, _ = await self.embed(decider.trunk, [state])
            more, _, _ = await self.embed(decider.trunk, options)
            return decider.answer(request, vectors + more)

    async def _weigh(self, model: str, state: str, question: Asked) -> dict[str, Any]:
        """One question by a language model: how likely it is to reply with each option."""
        asked = ChatRequest((Message("user", as_prompt(state, question)),), model, live=False)
        async with self._pool.lease(self._row(model, CHAT)) as writer:
            job, events = _submit(writer, asked, prefill=False, options=question.options)
            try:
                event = await events.get()
            finally:
                job.cancel()
        if not isinstance(event, Scored):
            raise event if isinstance(event, Exception) else ExoError("weigh options", "no answer")
        top = max(event.logs)
        sure = [math.exp(each - top) for each in event.logs]
        return shaped(question, [each / sum(sure) for each in sure]) | {"by": model}

    async def fit(self, request: FitRequest) -> dict[str, Any]:
        decider = await self._decider()
        vectors: list[list[float]] = []
        texts = await asyncio.to_thread(decider.taught, request)
        for at in range(0, len(texts), FIT_STEP):  # between which others are answered
            vectors += (await self.embed(decider.trunk, texts[at : at + FIT_STEP]))[0]
        return await asyncio.to_thread(decider.fit, request, vectors)

    async def warm(self) -> None:
        with contextlib.suppress(ExoError):  # whoever asks for it is told
            trunk = (await self._decider()).trunk
            await self.embed(trunk, ["ready"])

    async def _decider(self) -> Decider:
        if self._decides is None:
            self._decides = await asyncio.to_thread(Decider, self._home.cache / "decide")
        return self._decides

    async def read_wav(self, data: bytes) -> bytes:
        return await asyncio.to_thread(lambda: to_pcm(from_wav(data, self._longest)))

    async def listen(self, language: str, words: bool) -> Listener:
        """Voice activity is held for the whole recording; Whisper only while it transcribes, but its
        file is looked for now, so that nobody speaks to a model that is not there."""
        language = language or self._settings.text("voice.language")
        language = "" if language == "auto" else language.split("-")[0].lower()
        row = self.catalog.resolve("transcription")
        if words and language and row.languages and language not in row.languages:
            hears = ", ".join("English" if each == "en" else each for each in row.languages)
            why = f"the model that is installed hears {hears} alone, not {language!r}"
            do = f"set voice.language = {row.languages[0]}, or install a larger model"
            raise BadRequest("listen", why, do)
        if words:
            await asyncio.to_thread(self.catalog.require, row)
        stack = AsyncExitStack()
        vad = await stack.enter_async_context(self._pool.lease(self.catalog.resolve("activity")))
        lease = (lambda: self._alone(row)) if words else None
        return Ear(vad, lease, language, self._longest, stack, self._complete)

    async def _complete(self, text: str, language: str) -> str:
        """Whether what was said is finished or unfinished; "" when that is not sure, or nobody can say."""
        try:
            decider = await self._decider()
            return decider.by_words("turn.end", text, language)
        except Exception as error:  # noqa: BLE001 - the usual pause is right without it
            if not self._mute:
                print(f"exo-models: judge the end of a turn: {error}; pauses stay", file=sys.stderr)
            self._mute = True
            return ""

    async def speak(self, request: SpeechRequest) -> tuple[int, AsyncIterator[bytes]]:
        # in a thread: a book takes seconds, in which others are served
        pieces = await asyncio.to_thread(lambda: list(ear.clauses(ear.clean(request.text))))
        voice = request.voice or self._settings.text("voice.language")
        row = None if request.model == "espeak" else self._voice(request.model)
        if row and request.voice and espeak.available() and not _speaks(row, request.voice):
            row = None  # a voice of another language would spell it out
        if row is None:
            say = self._by_espeak(voice)
            if pieces and not espeak.available():
                espeak.phonemes("a", voice)  # raises with what to do
            return espeak.RATE, spoken(say, pieces, request.speed)
        stack = AsyncExitStack()
        piper = await stack.enter_async_context(self._alone(row))
        return piper.rate, _Held(stack, spoken(piper.say, pieces, request.speed))

    def models(self) -> list[dict[str, Any]]:
        loaded = {each.row.name: each for each in self._pool.loaded()}
        out = []
        for row in self.catalog.rows:
            if not (self.catalog.present(row) or row.default):
                continue
            for role in row.roles:
                entry = loaded.get(row.name)
                data: dict[str, Any] = {"id": row.name, "object": "model", "role": role}
                data |= {"owned_by": "local", "title": row.title, "licence": row.licence}
                data |= {"installed": self.catalog.present(row), "loaded": entry is not None}
                data["ram_mb"] = round(entry.ram_mb) if entry else row.ram_mb
                if "main" in row.roles:
                    windows = _windows(self._window, row)
                    data |= {"context_window": windows[role == "aux"], "tools": row.tools}
                    answers = self.catalog.resolve(role) is row  # of the rows that could
                    data["small"] = answers and row.tools == "forced"
                out.append(data)
        head = {
            "object": "model",
            "owned_by": "local",
            "title": "exo-decide",
            "licence": "Apache-2.0",
        }
        loaded_too = {"installed": True, "loaded": self._decides is not None, "ram_mb": 8}
        return [*out, {"id": DECIDES, "role": "decision", **head, **loaded_too}]

    def health(self) -> dict[str, Any]:
        now = time.monotonic()
        loaded = [
            {
                "name": each.row.name,
                "role": each.row.roles[0],
                "ram_mb": round(each.ram_mb, 1),
                "load_s": round(each.seconds, 3),
                "idle_s": 0.0 if each.users else round(now - each.used, 1),
                "in_use": bool(each.users),
            }
            for each in self._pool.loaded()
        ]
        queue = {"live": 0, "aux": 0}
        for each in self._pool.loaded():
            if isinstance(each.model, Writer):
                queue = {kind: queue[kind] + count for kind, count in each.model.counts().items()}
        return {
            "rss_mb": round(rss_mb(), 1),
            "budget_mb": self._pool.budget_mb,
            "loaded": loaded,
            "queue": queue,
        }

    async def close(self) -> None:
        self._sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
        await self._pool.close()

    def _row(self, name: str, roles: tuple[str, ...]) -> Row:
        row = self.catalog.resolve(name)
        if not set(roles) & set(row.roles):
            raise BadRequest("choose the model", f"{name!r} is none for {' or '.join(roles)}")
        return row

    def _voice(self, name: str) -> Row | None:
        """The row of a voice; None where espeak-ng speaks instead: no file, or no memory for it."""
        row = self.catalog.resolve("speech" if name in ("piper", "tts-1") else name)
        if "speech" not in row.roles:
            raise BadRequest("choose the voice", f"{name!r} is none")
        if espeak.available() and not (self.catalog.present(row) and self._pool.fits_beside(row)):
            return None
        return row

    def _by_espeak(self, voice: str) -> Callable[[str, str, float], bytes]:
        return lambda words, mark, speed: espeak.pcm(words + mark, voice, speed)

    @contextlib.asynccontextmanager
    async def _alone(self, row: Row) -> AsyncIterator[Any]:
        """A lease that nobody else has at the same time: for models that compute one thing at a time."""
        async with self._pool.lease(row) as model, self._one.setdefault(row.name, asyncio.Lock()):
            yield model

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(5)
            await self._pool.sweep()

    def _load(self, row: Row) -> Any:
        """Runs in a thread. Raises ModelMissing, ModelCorrupt."""
        folder = self.catalog.require(row)
        try:
            return self._make(row, folder)
        except ExoError:
            raise
        except ImportError as error:
            raise ModelMissing(
                f"load model {row.name}",
                f"its runtime is not installed ({error})",
                "run `./flash.sh setup`",
            ) from error
        except Exception as error:
            raise ModelCorrupt(
                f"load model {row.name}",
                f"its runtime refuses {folder}: {error}",
                f"run `exo models get {row.name}`",
            ) from error

    def _make(self, row: Row, folder: Path) -> Any:
        if row.format == "gguf" and "embedding" in row.roles:
            from exo.models.embed import GgufEmbedder

            return GgufEmbedder(folder / row.file(".gguf"), row.window, self.threads)
        if row.format == "gguf":
            return self._writer(row, folder / row.file(".gguf"))
        if row.format == "ctranslate2":
            from exo.models.whisper import Whisper

            return Whisper(folder, self.threads)
        if "activity" in row.roles:
            from exo.models.vad import Vad

            return Vad(folder, row.file(".onnx"))
        if "speech" in row.roles:
            from exo.models.piper import Piper

            return Piper(folder, row.file(".onnx"), self.threads)
        if "embedding" in row.roles:
            from exo.models.embed import Embedder

            return Embedder(folder, row.file(".onnx"), row.window, self.threads)
        raise ModelMissing(f"load model {row.name}", f"nothing here runs {row.format}")

    def _writer(self, row: Row, path: Path) -> Writer:
        from exo.models.llama import Llama
        from exo.models.pace import Pace
        from exo.models.prefixes import Prefixes
        from exo.models.sequences import COUNT, Sequences

        live, aux = _windows(self._window, row)
        cells = (live, aux)
        llama = Llama(path, sum(cells), COUNT, Pace(self.threads, self._fixed))
        prefixes = Prefixes(
            self._home.cache / "prefix",
            row.files[0].sha256 or "0" * 16,
            PREFIX_LAYOUT,
            self._settings.number("models.prefix_mb"),
        )
        queue = self._settings.count("models.queue")
        return Writer(llama, Sequences(llama, *cells), prefixes, (live, aux), queue, row.tools)


def _speaks(row: Row, voice: str) -> bool:
    """Whether it speaks the language of `voice`: de, en-us, or a name of its own."""
    return not row.languages or voice.split("-")[0].split("_")[0].lower() in (
        *row.languages,
        row.name,
    )


def _windows(setting: int, row: Row) -> tuple[int, int]:
    """(live, aux) tokens of one request."""
    window = min(setting, row.window or setting)
    return window, max(512, window // 2)


def _submit(
    writer: Writer, request: ChatRequest, prefill: bool, options: tuple[str, ...] = ()
) -> tuple[Job, asyncio.Queue[ChatEvent | Scored | Exception | None]]:
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[ChatEvent | Scored | Exception | None] = asyncio.Queue()

    def emit(event: ChatEvent | Scored | Exception | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop ended: nobody listens
            loop.call_soon_threadsafe(events.put_nowait, event)

    job = Job(request, emit, prefill, options)
    writer.submit(job)
    return job, events


class _Held:
    """Pieces that need a lease: `aclose` gives it back also when not one piece was taken, which the
    `finally` of a generator does not."""

    def __init__(self, stack: AsyncExitStack, pieces: AsyncGenerator[bytes]) -> None:
        self._stack, self._pieces = stack, pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._stack.aclose()
