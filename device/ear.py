"""Speech in: a recording goes to exo-models while the person still speaks, so that its text is there
when the button is released. Each recording has a thread and a ticket.

Invariant: a recording that is finished posts one Heard or one Deaf within DEADLINE; one that is
cancelled posts nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exo.board.pcm import loudness
from exo.board.ports import MICROPHONE_RATE, Microphone
from exo.core.base.errors import BoardError, ServiceError
from exo.core.base.unix import post, reachable
from exo.device.events import Deaf, Event, Heard, Level
from exo.device.voice import refusal

DEADLINE = 60.0  # seconds for the text after the release: the model may have to be loaded first
COMEBACK = 8.0  # seconds in which a fallen exo-models may be started again by its supervisor


class _Cancelled(Exception):
    """The recording is not wanted any more."""


class Ear:
    """Records one thing at a time; `post` takes the reports."""

    def __init__(
        self,
        models: Path,
        microphone: Microphone,
        post_: Callable[[Event], None],
        language: str = "en",
    ) -> None:
        """`language` is the ISO 639-1 code of what is spoken."""
        self._models, self._microphone, self._post = models, microphone, post_
        self._language = language
        self._recording: _Recording | None = None

    def start(self, ticket: int) -> None:
        """Begin to record and to send."""
        self.cancel()
        self._recording = _Recording(self, ticket)
        threading.Thread(target=self._run, args=(self._recording,), name="ear", daemon=True).start()

    def finish(self) -> None:
        """The button is up: the text follows as Heard or Deaf."""
        if self._recording:
            self._recording.stop.set()

    def cancel(self) -> None:
        """Forget the recording."""
        if self._recording:
            self._recording.cancelled = True
            self._recording.stop.set()
            self._recording = None

    def _run(self, recording: _Recording) -> None:
        try:
            text = self._transcribe(recording)
        except _Cancelled:
            return
        except BoardError as error:
            self._report(recording, Deaf(recording.ticket, "microphone", error.why or str(error)))
        except ServiceError as error:
            self._report(recording, Deaf(recording.ticket, "models", error.why or str(error)))
        else:
            self._report(recording, Heard(recording.ticket, text))
        finally:
            recording.close()

    def _report(self, recording: _Recording, event: Event) -> None:
        if not recording.cancelled:
            self._post(event)

    def _transcribe(self, recording: _Recording) -> str:
        """Send while recording; if exo-models falls meanwhile, record to the end and send once more."""
        try:
            return self._send(recording.blocks())
        except ServiceError:
            recording.finish()
            end = time.monotonic() + COMEBACK
            while not reachable(self._models):
                if recording.cancelled:
                    raise _Cancelled from None
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            return self._send(iter(recording.kept))

    def _send(self, blocks: Iterator[bytes]) -> str:
        """Return the text. Raises ServiceError when exo-models is away, refuses or falls silent."""
        status, raw = post(
            self._models,
            f"/v1/audio/transcriptions?language={self._language}",
            blocks,
            content_type=f"audio/pcm;rate={MICROPHONE_RATE}",
            timeout=DEADLINE,
        )
        if status != 200:
            raise ServiceError("transcribe", refusal(raw))
        try:
            return str(json.loads(raw)["text"]).strip()
        except (ValueError, KeyError, TypeError) as error:
            raise ServiceError("transcribe", "the answer has no text") from error

    def loud(self, ticket: int, block: bytes) -> None:
        self._post(Level(ticket, loudness(block)))


class _Recording:
    """Blocks from the microphone, kept for a second try."""

    def __init__(self, ear: Ear, ticket: int) -> None:
        self._ear, self.ticket = ear, ticket
        self.stop = threading.Event()
        self.cancelled = False
        self.kept: list[bytes] = []
        self._source = ear._microphone.record(self.stop)

    def blocks(self) -> Iterator[bytes]:
        """Yield what is heard until the stop. Raises _Cancelled, BoardError."""
        for block in self._source:
            if self.cancelled:
                raise _Cancelled
            self.kept.append(block)
            self._ear.loud(self.ticket, block)
            yield block
        if self.cancelled:
            raise _Cancelled

    def close(self) -> None:
        """Give the microphone back."""
        if close := getattr(self._source, "close", None):
            close()

    def finish(self) -> None:
        """Record to the end without sending."""
        for _ in self.blocks():
            pass
