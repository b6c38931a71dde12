"""Speech in: a recording goes to exo-models while the person still speaks, so that its text is there
when the button is released, and what exo-models says of it comes back at the same time: that the person
has stopped speaking. Each recording has a thread and a ticket.

Invariant: a recording that is finished posts one Heard or one Deaf within DEADLINE; one that is
cancelled posts nothing. What was recorded before a microphone failed is not lost."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exo.board.pcm import level
from exo.board.ports import MICROPHONE_RATE, Microphone
from exo.core.base.errors import BoardError, ServiceError
from exo.core.base.unix import UnixConnection, reachable
from exo.device.events import Deaf, Event, Heard, Level, SpeechEnded
from exo.device.voice import broken, refusal, said

DEADLINE = 60.0  # seconds for the text after the release: the model may have to be loaded first
COMEBACK = 8.0  # seconds in which a fallen exo-models may be started again by its supervisor
NOTHING = 6.0  # seconds in which somebody must begin to speak
WORTH = 0.3  # seconds before a microphone's failure that are worth transcribing
QUIET = 0.33  # level, -40 dBFS, below which nobody speaks when there is no exo-models to judge it
UNJUDGED = (
    2  # times the pause, where the level alone says that it is silent; exo-models waits no shorter
)
SILENT = 3600.0  # seconds in which no event must come
STALL = 10.0  # seconds that exo-models may take no sound
FINAL = (400, 404, 503)  # statuses that a second try would meet again: no model, no such language


class _Cancelled(Exception):
    """The recording is not wanted any more."""


class _Refused(ServiceError):
    """exo-models is there and will not."""


class Ear:
    """Records one thing at a time; `post` takes the reports."""

    def __init__(
        self,
        models: Path,
        microphone: Microphone,
        post_: Callable[[Event], None],
        language: str = "en",
        pause: float = 0.9,
        adaptive: bool = False,
    ) -> None:
        """`language` is the ISO 639-1 code of what is spoken; `pause` seconds of silence end it, when it is
        `adaptive` fewer after words that are surely complete, more after words that surely break off."""
        self._models, self._microphone, self._post = models, microphone, post_
        self.language, self.pause, self.adaptive = language, pause, adaptive
        self._recording: _Recording | None = None

    def start(self, ticket: int) -> None:
        """Begin to record and to send."""
        self.cancel()
        self._recording = _Recording(self._microphone, ticket, self._report, self.pause)
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
        ticket = recording.ticket
        try:
            text = self._transcribe(recording)
        except _Cancelled:
            return
        except BoardError as error:
            self._report(recording, Deaf(ticket, "microphone", said(error)))
        except ServiceError as error:
            self._report(recording, Deaf(ticket, "models", said(error)))
        else:
            if recording.fault and not text:
                self._report(recording, Deaf(ticket, "microphone", recording.fault))
            else:
                self._report(recording, Heard(ticket, text, recording.fault))
        finally:
            recording.close()

    def _report(self, recording: _Recording, event: Event) -> None:
        if not recording.cancelled:
            self._post(event)

    def _transcribe(self, recording: _Recording) -> str:
        """Send while recording; if exo-models falls meanwhile, record to the end and send once more."""
        try:
            return self._send(recording, recording.blocks())
        except _Refused:
            raise
        except ServiceError:
            recording.finish()
            end = time.monotonic() + COMEBACK
            while not reachable(self._models):
                if recording.cancelled:
                    raise _Cancelled from None
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            return self._send(recording, iter(recording.kept))

    def _send(self, recording: _Recording, blocks: Iterator[bytes]) -> str:
        """Return the text. Raises ServiceError when exo-models is away, refuses or falls silent."""
        target = (
            f"/v1/audio/transcriptions?stream=true&pause={self.pause:g}&language={self.language}"
        )
        target += "&adaptive=true" * self.adaptive
        line = _Line(self._models, target, recording.told)
        try:
            for block in blocks:
                line.send(block)
            line.send(b"")
            return line.text(recording)
        finally:
            line.close()


class _Line:
    """One transcription under way: sound goes up while events come down, read by a thread of its own."""

    def __init__(self, models: Path, target: str, told: Callable[[str], None]) -> None:
        """Raises ServiceError when nobody answers."""
        self._told = told
        self._done = threading.Event()
        self._text: str | None = None
        self._error: ServiceError | None = None
        self._link = UnixConnection(models, STALL)
        try:
            self._link.putrequest("POST", target)
            self._link.putheader("Content-Type", f"audio/pcm;rate={MICROPHONE_RATE}")
            self._link.putheader("Transfer-Encoding", "chunked")
            self._link.endheaders()
            assert self._link.sock is not None  # endheaders connected it
            # a handle of our own: http.client closes its one as soon as the answer's head is read
            self._up = self._link.sock.dup()
            # nothing comes down while somebody speaks on; what bounds the waiting is `text`
            self._link.sock.settimeout(SILENT)
        except OSError as error:
            self._link.close()
            raise _away(error) from error
        threading.Thread(target=self._read, name="ear-answers", daemon=True).start()

    def send(self, block: bytes) -> None:
        """Send a block; an empty one ends the recording. Raises ServiceError."""
        if self._error:
            raise self._error
        try:
            self._up.sendall(b"%x\r\n%b\r\n" % (len(block), block))
        except OSError as error:
            # a refusal hangs up; its reason waits to be read
            self._done.wait(1.0)
            raise self._error or _away(error) from error

    def text(self, recording: _Recording) -> str:
        """Wait for the text. Raises ServiceError, _Cancelled."""
        end = time.monotonic() + DEADLINE
        while not self._done.wait(0.05):
            if recording.cancelled:
                raise _Cancelled
            if time.monotonic() > end:
                raise ServiceError("transcribe", f"no text came in {DEADLINE:g} s")
        if self._error:
            raise self._error
        return self._text or ""

    def close(self) -> None:
        """Hang up; the reader ends."""
        with contextlib.suppress(OSError):
            self._up.shutdown(socket.SHUT_RDWR)
        self._up.close()

    def _read(self) -> None:
        try:
            answer = self._link.getresponse()
            if answer.status != 200:
                kind = _Refused if answer.status in FINAL else ServiceError
                raise kind("transcribe", refusal(answer.read()))
            while line := answer.readline():
                if line.startswith(b"data: "):
                    self._event(json.loads(line[6:]))
            if self._text is None:
                raise ServiceError("transcribe", "the answer broke off")
        except ServiceError as error:
            self._error = error
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self._error = _away(error)
        finally:
            self._done.set()
            self._link.close()

    def _event(self, event: dict[str, object]) -> None:
        if error := event.get("error"):
            raise ServiceError("transcribe", refusal(json.dumps({"error": error}).encode()))
        kind = str(event.get("type", ""))
        if kind == "transcript.text.done":
            self._text = str(event.get("text", "")).strip()
        elif kind.startswith("speech."):
            self._told(kind)


class _Recording:
    """Blocks from the microphone, kept for a second try; and when the person has stopped speaking."""

    def __init__(
        self,
        microphone: Microphone,
        ticket: int,
        report: Callable[[_Recording, Event], None],
        pause: float,
    ) -> None:
        self.ticket, self._report, self._pause = ticket, report, pause
        self.stop = threading.Event()
        self.cancelled = False
        self.fault = ""  # why the microphone ended the recording
        self.kept: list[bytes] = []
        self._size = 0
        self._judged = True  # exo-models says when somebody speaks
        self._spoke = self._ended = False
        self._quiet = 0  # bytes of silence at the end, when nobody judges
        self._source = microphone.record(self.stop)

    def blocks(self) -> Iterator[bytes]:
        """Yield what is heard until the stop. Raises _Cancelled, and BoardError when the microphone
        failed before anything was worth keeping."""
        try:
            for block in self._source:
                if self.cancelled:
                    raise _Cancelled
                self.kept.append(block)
                self._hear(block)
                yield block
        except BoardError as error:
            if self._size < _bytes(WORTH):
                raise
            self.fault = said(error)
            self._report(self, SpeechEnded(self.ticket, "cut"))
        if self.cancelled:
            raise _Cancelled

    def told(self, kind: str) -> None:
        """exo-models judged: speech.started, speech.ended."""
        if kind == "speech.started":
            self._spoke = True
        else:
            self._end("pause")

    def close(self) -> None:
        """Give the microphone back."""
        if close := getattr(self._source, "close", None):
            close()

    def finish(self) -> None:
        """Record to the end without sending: nobody judges any more, so the level does."""
        self._judged = False
        for _ in self.blocks():
            pass

    def _hear(self, block: bytes) -> None:
        loud, clipped = level(block)
        self._size += len(block)
        self._quiet = self._quiet + len(block) if loud < QUIET else 0
        self._report(self, Level(self.ticket, loud, clipped))
        if not self._judged:
            # as long as exo-models waits at least for words that break off: the level knows less
            if self._quiet >= _bytes(UNJUDGED * self._pause):
                self._end("pause")
        elif not self._spoke and self._size >= _bytes(NOTHING):
            self._end("nothing")

    def _end(self, why: str) -> None:
        if not self._ended:
            self._ended = True
            self._report(self, SpeechEnded(self.ticket, why))


def _away(error: Exception) -> ServiceError:
    return ServiceError("transcribe", broken(error), "see `exo doctor`")


def _bytes(seconds: float) -> int:
    return int(2 * MICROPHONE_RATE * seconds)
