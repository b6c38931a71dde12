"""A scripted stand-in for every model: `exo-models --fake`. It answers on the same socket, through the
same routes, in milliseconds, so that other rooms can be tested without model files.

What it replies: "You said: " and the last user message's first 40 words; after a tool message, "Done: "
and its text. A line of the last user message that begins with `!` directs it:

  !say TEXT          reply with TEXT
  !system            reply with what the system message says
  !words N           reply with N numbered words
  !delay SECONDS     wait that long before every word
  !tool NAME JSON    call the tool NAME with these arguments
  !error CODE        refuse: busy, context_overflow, model_missing, model_corrupt, internal
  !break CODE        the same after three words
  !die               end the process after three words, as a native crash would

Environment: EXO_FAKE_REPLY (a fixed reply), EXO_FAKE_DELAY (seconds a word), EXO_FAKE_HEARD (what every
recording that is not silent says; default "what time is it"), EXO_FAKE_WINDOW (tokens, default 4096).
A token is a word here, and a message costs 4 more. Vectors are hashed bags of words: same words, same
vector. Speech is a quiet tone, 40 ms a letter."""

from __future__ import annotations

import array
import asyncio
import hashlib
import io
import math
import os
import secrets
import wave
from collections.abc import AsyncIterator, Callable
from typing import Any

from exo.core.base.errors import ContextOverflow, ExoError, ModelBusy, ModelMissing
from exo.models.audio import BadAudio
from exo.models.backend import CallArguments, CallOpened, ChatEvent, Finished, Heard, Text
from exo.models.catalog import ModelCorrupt
from exo.models.questions import DecideRequest, FitRequest
from exo.models.replies import Usage
from exo.models.requests import ChatRequest, Message, Pauses, SpeechRequest

RATE = 22050
ERRORS: dict[str, Callable[[], ExoError]] = {
    "busy": lambda: ModelBusy("ask the fake model", "it was told to be busy"),
    "context_overflow": lambda: ContextOverflow("ask the fake model", "told to overflow"),
    "model_missing": lambda: ModelMissing(
        "load model fake", "told so", "run `exo models get fake`"
    ),
    "model_corrupt": lambda: ModelCorrupt(
        "load model fake", "told so", "run `exo models get fake`"
    ),
    "internal": lambda: ExoError("ask the fake model", "it was told to fail"),
}


class FakeBackend:
    """Backend without a model. Deterministic but for the ids of calls."""

    def __init__(self) -> None:
        self.window = int(os.environ.get("EXO_FAKE_WINDOW", "4096"))
        self._seen: dict[str, list[str]] = {}
        self.running = 0

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        usage = self._prompt(request)
        orders = _orders(request.messages)
        if "error" in orders:
            raise ERRORS.get(orders["error"], ERRORS["internal"])()
        self.running += 1
        try:
            calls = [] if request.choice == "none" else self._calls(request, orders)
            for index, (name, arguments) in enumerate(calls):
                yield CallOpened(index, name, f"call_{secrets.token_hex(8)}")
                yield CallArguments(index, arguments)
                usage.completion += len(arguments.split())
            if calls:
                yield Finished("tool_calls", usage)
                return
            words = _reply(request.messages, orders).split(" ")
            limit = min(request.max_tokens or self.window, self.window - usage.prompt)
            delay = float(orders.get("delay") or os.environ.get("EXO_FAKE_DELAY", "0"))
            for index, word in enumerate(words[:limit]):
                await asyncio.sleep(delay)
                if index == 3:
                    _misbehave(orders)
                usage.completion += 1
                yield Text(word if index == 0 else " " + word)
            if len(words) <= 3:
                _misbehave(orders)
            self._seen.setdefault(request.cache_key, []).extend(words[:limit])
            yield Finished("stop" if len(words) <= limit else "length", usage)
        finally:
            self.running -= 1

    async def prefill(self, request: ChatRequest) -> tuple[int, int, int]:
        usage = self._prompt(request)
        return usage.prompt, usage.prompt - usage.cached, usage.cached

    async def tokenize(
        self, model: str, messages: tuple[Message, ...] | None, text: str
    ) -> tuple[int, int]:
        words = _tokens(messages) if messages is not None else text.split()
        return len(words), self.window

    async def embed(self, model: str, texts: list[str]) -> tuple[list[list[float]], int, int]:
        return [_vector(text) for text in texts], sum(len(text.split()) for text in texts), 0

    async def decide(self, request: DecideRequest) -> dict[str, Any]:
        """Sure (0.9) of the option that stands in the state word for word, else of none; of a tool behind an
        exclamation mark ("!timer"), since words like "time" stand in many sentences."""
        out: dict[str, Any] = {}
        for name, each in request.questions.items():
            mark = "!" if each.mechanism == "request.tool" else ""
            said = [option for option in each.options if mark + option in request.state]
            count = len(each.options)
            sure = {
                option: (0.9 if option == said[0] else 0.1 / (count - 1)) if said else 1 / count
                for option in each.options
            }
            out[name] = {"type": each.kind, "by": "fake", "probabilities": sure}
            if each.kind == "noul":
                out[name]["noul"] = sure["yes"]
        return out

    async def fit(self, request: FitRequest) -> dict[str, Any]:
        return {"kept": "shipped", "rows": len(request.labels)}

    async def read_wav(self, data: bytes) -> bytes:
        try:
            with wave.open(io.BytesIO(data)) as file:
                if file.getsampwidth() != 2:
                    raise BadAudio("read the WAV", "the fake reads 16 bits alone")
                raw = array.array("h", file.readframes(file.getnframes()))
                rate, channels = file.getframerate(), file.getnchannels()
        except (wave.Error, EOFError, ValueError) as error:
            raise BadAudio("read the WAV", str(error) or "it is cut off") from error
        count = int(len(raw) / channels * 16000 / rate)
        return array.array(
            "h", (raw[int(i * rate / 16000) * channels] for i in range(count))
        ).tobytes()

    async def listen(self, language: str, words: bool) -> _Listener:
        return _Listener(language or "en", words)

    async def speak(self, request: SpeechRequest) -> tuple[int, AsyncIterator[bytes]]:
        return RATE, _tone(request.text)

    async def warm(self) -> None:
        pass

    def models(self) -> list[dict[str, Any]]:
        roles = ("main", "aux", "embedding", "transcription", "activity", "speech")
        head = {"object": "model", "loaded": True, "ram_mb": 0}
        return [
            {
                "id": f"fake-{role}",
                "role": role,
                **head,
                "context_window": self.window,
                "tools": "auto",
            }
            for role in roles
        ]

    def health(self) -> dict[str, Any]:
        return {
            "rss_mb": 0,
            "loaded": [],
            "queue": {"running": self.running, "waiting": 0},
            "fake": True,
        }

    async def close(self) -> None:
        self._seen.clear()

    def _prompt(self, request: ChatRequest) -> Usage:
        tokens = _tokens(request.messages)
        if len(tokens) >= self.window:
            why = f"it has {len(tokens)} tokens and the window holds {self.window}"
            raise ContextOverflow("read the prompt", why, "send less of the conversation")
        before = self._seen.get(request.cache_key, [])
        same = 0
        while same < min(len(before), len(tokens) - 1) and before[same] == tokens[same]:
            same += 1
        self._seen[request.cache_key] = tokens
        return Usage(prompt=len(tokens), cached=same)

    def _calls(self, request: ChatRequest, orders: dict[str, str]) -> list[tuple[str, str]]:
        names = [tool.name for tool in request.tools]
        name, _, arguments = orders.get("tool", "").partition(" ")
        if name in names:
            return [(name, arguments.strip() or "{}")]
        if request.choice in names:
            return [(request.choice, "{}")]
        return [(names[0], "{}")] if request.choice == "required" and names else []


class _Listener:
    def __init__(self, language: str, words: bool) -> None:
        self.language, self.words = language, words
        self.samples, self.loud = 0, False
        self.last = 0  # sample after the last loud piece

    async def feed(self, pcm: bytes) -> None:
        sound = array.array("h", pcm[: len(pcm) // 2 * 2])
        self.samples += len(sound)
        if any(abs(value) > 500 for value in sound):
            self.loud, self.last = True, self.samples

    def speaking(self, pauses: Pauses) -> bool:
        return self.loud and self.samples - self.last < pauses.usual * 16000

    async def finish(self) -> Heard:
        seconds = self.samples / 16000
        text = os.environ.get("EXO_FAKE_HEARD", "what time is it")
        spans = [(0.0, seconds)] if self.loud else []
        return Heard(text if self.loud and self.words else "", self.language, seconds, spans)

    async def close(self) -> None:
        return


def _orders(messages: tuple[Message, ...]) -> dict[str, str]:
    last = messages[-1]
    if last.role == "tool":
        return {}
    lines = [line[1:] for line in last.text.splitlines() if line.startswith("!")]
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}


def _reply(messages: tuple[Message, ...], orders: dict[str, str]) -> str:
    if "system" in orders:
        return " ".join(each.text for each in messages if each.role == "system")
    if fixed := orders.get("say") or os.environ.get("EXO_FAKE_REPLY"):
        return fixed
    if "words" in orders:
        return " ".join(f"word{index}" for index in range(int(orders["words"] or 1)))
    last = messages[-1]
    lead = "Done:" if last.role == "tool" else "You said:"
    plain = [line for line in last.text.splitlines() if not line.startswith("!")]
    return " ".join([lead, *" ".join(plain).split()[:40]])


def _misbehave(orders: dict[str, str]) -> None:
    if "break" in orders:
        raise ERRORS.get(orders["break"], ERRORS["internal"])()
    if "die" in orders:
        os._exit(70)


def _tokens(messages: tuple[Message, ...]) -> list[str]:
    out: list[str] = []
    for each in messages:
        out += ["<", each.role, *each.text.split()]
        for call in each.calls:
            out += [call.name, *call.arguments.split()]
        out += [">", "\n"]
    return out


def _vector(text: str) -> list[float]:
    total = [0.0] * 384
    for word in text.lower().split() or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        for index in range(0, 32, 4):
            place = int.from_bytes(digest[index : index + 4], "big")
            total[place % 384] += 1.0 if place & 1024 else -1.0
    length = math.sqrt(sum(value * value for value in total)) or 1.0
    return [value / length for value in total]


async def _tone(text: str) -> AsyncIterator[bytes]:
    for _ in range(0, len(text.strip()), 10):
        count = int(RATE * 0.4)
        yield array.array(
            "h", (int(2000 * math.sin(2 * math.pi * 440 * i / RATE)) for i in range(count))
        ).tobytes()
        await asyncio.sleep(0)
