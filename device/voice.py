"""Speech out: sentences in, sound from the speaker, without a gap between them. One thread has the
sentences synthesised ahead by exo-models, another plays.

Owns the queue and its order; knows nothing of turns or pages. Invariant: after `cancel` returns nothing
of what was said before is played any more, and each ticket that was ended gets one `Spoken` or `Mute`."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from exo.board.ports import Speaker
from exo.core.base.errors import BoardError, ServiceError
from exo.core.base.unix import UnixConnection
from exo.device.events import Event, Mute, Spoken, Uttered
from exo.device.sentences import speakable

SILENCE = 45.0  # seconds in which exo-models must say something: the voice may have to be loaded
PIECE = 2048  # bytes handed to the speaker at once: 46 ms at 22,050 Hz
AHEAD = 512  # pieces that may wait to be played: about 24 s


@dataclass(frozen=True)
class _Item:
    ticket: int
    text: (
        str | None
    )  # None: the end of a ticket; "": load the voice, so that the first sentence finds it
    place: int = 0


@dataclass(frozen=True)
class _Sound:
    ticket: int
    pcm: bytes | None  # None: the end of a ticket
    rate: int = 0
    place: int = -1  # of the sentence that begins with these samples


class Voice:
    """Speaks. `post` takes the reports, from the threads here."""

    def __init__(
        self, models: Path, speaker: Speaker, post: Callable[[Event], None], backend: str = "piper"
    ) -> None:
        """`backend` is piper, espeak or off."""
        self._models, self._speaker, self._post, self._backend = models, speaker, post, backend
        self._ticket = 0
        self._lock = threading.Lock()
        self._text: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._sound: queue.Queue[_Sound] = queue.Queue(AHEAD)
        self._link: UnixConnection | None = None
        self._failed = 0  # the ticket whose speech failed
        for run in (self._synthesise, self._play):
            threading.Thread(target=run, name=f"voice{run.__name__}", daemon=True).start()

    @property
    def on(self) -> bool:
        return self._backend != "off"

    def begin(self) -> int:
        """Silence what speaks and return the ticket of a new text; the voice is loaded meanwhile."""
        self.cancel()
        if self.on:
            self._text.put(_Item(self._ticket, ""))
        return self._ticket

    def say(self, ticket: int, sentence: str, place: int = 0) -> None:
        """Queue a sentence; `place` comes back in `Uttered` when it begins to sound."""
        spoken = speakable(sentence)
        if self.on and any(char.isalnum() for char in spoken):
            self._text.put(_Item(ticket, spoken, place))

    def end(self, ticket: int) -> None:
        """Say that no sentence follows; `Spoken` is posted once all was heard."""
        self._text.put(_Item(ticket, None))

    def cancel(self) -> None:
        """Stop at once."""
        with self._lock:
            self._ticket += 1
            link, self._link = self._link, None
        if link is not None:
            _hang_up(link)
        self._speaker.stop()

    # the thread that synthesises

    def _synthesise(self) -> None:
        while True:
            item = self._text.get()
            if item.ticket != self._ticket or item.ticket == self._failed:
                continue
            if item.text is None:
                self._queue(_Sound(item.ticket, None))
                continue
            try:
                place = item.place
                for rate, pcm in self._speech(item):
                    if not self._queue(_Sound(item.ticket, pcm, rate, place)):
                        break
                    place = -1
            except (ServiceError, OSError, http.client.HTTPException, ValueError) as error:
                if item.ticket == self._ticket and item.text:
                    self._fail(item.ticket, "models", _why(error))

    def _speech(self, item: _Item) -> Iterator[tuple[int, bytes]]:
        """Yield (rate, samples) of one sentence as they are made."""
        link = UnixConnection(self._models, SILENCE)
        with self._lock:
            if item.ticket != self._ticket:
                return
            self._link = link
        try:
            body = {"input": item.text, "model": self._backend, "response_format": "pcm"}
            headers = {"Content-Type": "application/json"}
            link.request("POST", "/v1/audio/speech", json.dumps(body), headers)
            answer = link.getresponse()
            if answer.status != 200:
                raise ServiceError("speak", refusal(answer.read()))
            rate = int(answer.headers.get("X-Sample-Rate") or 22_050)
            rest = b""
            while piece := answer.read1(PIECE):
                rest += piece
                even = len(rest) // 2 * 2
                if even:
                    yield rate, rest[:even]
                rest = rest[even:]
        finally:
            with self._lock:
                if self._link is link:
                    self._link = None
            link.close()

    def _queue(self, sound: _Sound) -> bool:
        """Hand samples to the player; False when the ticket is over."""
        while sound.ticket == self._ticket:
            with contextlib.suppress(queue.Full):
                self._sound.put(sound, timeout=0.1)
                return True
        return False

    # the thread that plays

    def _play(self) -> None:
        while True:
            sound = self._sound.get()
            if sound.ticket != self._ticket or sound.ticket == self._failed:
                continue
            try:
                if sound.pcm is None:
                    self._speaker.drain()
                    if sound.ticket == self._ticket:
                        self._post(Spoken(sound.ticket))
                    continue
                self._speaker.play(sound.pcm, sound.rate)
                if sound.place >= 0:  # only what the speaker took has sounded
                    self._post(Uttered(sound.ticket, sound.place))
                if sound.ticket != self._ticket:
                    self._speaker.stop()  # cancelled between the look above and the play
            except BoardError as error:
                self._fail(sound.ticket, "speaker", error.why or str(error))

    def _fail(self, ticket: int, part: str, why: str) -> None:
        with self._lock:
            if self._failed == ticket:
                return
            self._failed = ticket
        self._post(Mute(ticket, part, why))


def refusal(raw: bytes) -> str:
    """Return the reason in an error answer of exo-models."""
    try:
        return str(json.loads(raw)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return raw.decode(errors="replace")[:200] or "it refused without a reason"


def _hang_up(link: UnixConnection) -> None:
    """Wake the thread that reads from `link`: closing alone would let it wait on."""
    sock = link.sock
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _why(error: Exception) -> str:
    if isinstance(error, ServiceError):
        return error.why or str(error)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
