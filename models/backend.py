"""The seam between the HTTP routes and what computes: the real models (`local.py`) or the scripted
fake (`fake.py`). Owns the words they exchange; imports no runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from exo.models.questions import DecideRequest, FitRequest
from exo.models.replies import Usage
from exo.models.requests import ChatRequest, Message, Pauses, SpeechRequest


@dataclass(frozen=True)
class Text:
    """More of the reply's text."""

    text: str


@dataclass(frozen=True)
class CallOpened:
    """The model began to call a tool."""

    index: int
    name: str
    id: str


@dataclass(frozen=True)
class CallArguments:
    """More of a call's arguments, as JSON text."""

    index: int
    text: str


@dataclass(frozen=True)
class Finished:
    """The last event of a reply. `reason` is stop, length or tool_calls."""

    reason: str
    usage: Usage


@dataclass(frozen=True)
class Scored:
    """Log-probabilities of the replies that a job was to weigh, in their order."""

    logs: tuple[float, ...]


ChatEvent = Text | CallOpened | CallArguments | Finished


@dataclass
class Heard:
    """What was said in a recording: `speech` are (start, end) in seconds."""

    text: str
    language: str
    duration: float
    speech: list[tuple[float, float]] = field(default_factory=list)


class Listener(Protocol):
    """One recording while it arrives, as raw signed 16-bit mono at 16 kHz."""

    async def feed(self, pcm: bytes) -> None:
        """Take more sound. Raises BadAudio when the recording is longer than allowed."""
        ...

    def speaking(self, pauses: Pauses) -> bool:
        """Whether somebody has begun to speak and has not been silent since for as long as `pauses` say of
        the words so far. Once it said no, only new speech makes it yes."""
        ...

    async def finish(self) -> Heard:
        """The recording is over: say what it held."""
        ...

    async def close(self) -> None:
        """Let go of the models; harmless after `finish`, needed after anything else."""
        ...


class Backend(Protocol):
    """What the routes need. Every method raises the errors that replies.py knows."""

    def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """The reply as it is written; closing the iterator stops the model."""
        ...

    async def prefill(self, request: ChatRequest) -> tuple[int, int, int]:
        """Compute the prompt's state ahead: (tokens, of them evaluated now, of them cached)."""
        ...

    async def tokenize(
        self, model: str, messages: tuple[Message, ...] | None, text: str
    ) -> tuple[int, int]:
        """(tokens, window) of messages in the model's layout, or of a bare text."""
        ...

    async def embed(self, model: str, texts: list[str]) -> tuple[list[list[float]], int, int]:
        """(unit vectors, tokens, texts that were cut at the model's limit)."""
        ...

    async def decide(self, request: DecideRequest) -> dict[str, Any]:
        """One answer a question, in the shapes of /v1/systemone."""
        ...

    async def fit(self, request: FitRequest) -> dict[str, Any]:
        """Learn from the person's labels: what was kept, and the losses on the held-out part."""
        ...

    async def read_wav(self, data: bytes) -> bytes:
        """Any WAV as raw signed 16-bit mono at 16 kHz. Raises BadAudio."""
        ...

    async def listen(self, language: str, words: bool) -> Listener:
        """Begin a recording; `words` False asks for voice activity alone."""
        ...

    async def speak(self, request: SpeechRequest) -> tuple[int, AsyncIterator[bytes]]:
        """(samples a second, raw signed 16-bit mono piece by piece)."""
        ...

    async def warm(self) -> None:
        """Load what each message needs, once, before it is asked for; what fails is told to who asks."""
        ...

    def models(self) -> list[dict[str, Any]]:
        """The rows of GET /v1/models."""
        ...

    def health(self) -> dict[str, Any]:
        """What GET /health adds to status and pid: rss_mb, loaded, queue."""
        ...

    async def close(self) -> None:
        """Stop all work and unload."""
        ...
