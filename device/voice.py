"""Speech out: sentences in, sound from the speaker, without a gap between them. One thread has the
sentences synthesised ahead by exo-models, another plays.

Owns the queue and its order, loudness, mute and the tones; knows nothing of turns or pages. Invariant:
after `cancel` returns nothing of what was said before is played any more, and each ticket that was ended
gets one `Spoken` or `Mute`. Nothing is spoken while `muted`; what rings for a timer rings all the same."""

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

from exo.board.pcm import scaled
from exo.board.ports import Speaker
from exo.core.base.errors import BoardError, ExoError, ServiceError
from exo.core.base.unix import UnixConnection
from exo.device import earcons
from exo.device.events import Event, Mute, Spoken, Uttered
from exo.device.speakable import speakable

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
    alarm: bool = False  # a tone that sounds when muted too


class Voice:
    """Speaks. `post` takes the reports, from the threads here."""

    def __init__(
        self,
        models: Path,
        speaker: Speaker,
        post: Callable[[Event], None],
        backend: str = "piper",
        language: str = "en",
    ) -> None:
        """`backend` is piper, espeak or off; `language` that of the texts. `volume` (0 to 100) and
        `sounds` (whether tones are played) may be set at any time."""
        self._models, self._speaker, self._post, self._backend = models, speaker, post, backend
        self.language = language
        self.volume, self.sounds, self._muted = 100.0, True, False
        self._ticket = 0
        self._stops = speaker.stops  # of the speaker, when the present ticket began
        self._lock = threading.Lock()
        self._text: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._sound: queue.Queue[_Sound] = queue.Queue(AHEAD)
        self._tones: queue.SimpleQueue[_Sound] = queue.SimpleQueue()  # before what is spoken
        self._link: UnixConnection | None = None
        self._failed = 0  # the ticket whose speech failed
        for run in (self._synthesise, self._play):
            threading.Thread(target=run, name=f"voice{run.__name__}", daemon=True).start()

    @property
    def on(self) -> bool:
        """Whether anything is spoken now."""
        return self._backend != "off" and not self._muted

    @property
    def muted(self) -> bool:
        return self._muted

    def mute(self, on: bool) -> None:
        """Speak no more, at once; or again, from the next text on."""
        self._muted = on
        if on:
            self.cancel()

    def chime(self, name: str) -> None:
        """Play a tone of `earcons` before anything that waits."""
        alarm = name in earcons.ALARMS
        if self.sounds and (alarm or not self._muted):
            self._tones.put(_Sound(-1, earcons.tone(name), earcons.RATE, alarm=alarm))
            with contextlib.suppress(queue.Full):  # else the player is awake anyway
                self._sound.put_nowait(_Sound(-1, b""))

    def begin(self) -> int:
        """Silence what speaks and return the ticket of a new text; the voice is loaded meanwhile."""
        self.cancel()
        if self.on:
            self._text.put(_Item(self._ticket, ""))
        return self._ticket

    def say(self, ticket: int, sentence: str, place: int = 0) -> None:
        """Queue a sentence; `place` comes back in `Uttered` when it begins to sound."""
        spoken = speakable(sentence, self.language) if self.on else ""
        if any(char.isalnum() for char in spoken):
            self._text.put(_Item(ticket, spoken, place))

    def end(self, ticket: int) -> None:
        """Say that no sentence follows; `Spoken` is posted once all was heard."""
        self._text.put(_Item(ticket, None))

    def cancel(self) -> None:
        """Stop at once."""
        with self._lock:
            self._ticket += 1
            self._speaker.stop()
            self._stops = self._speaker.stops
            link, self._link = self._link, None
        if link is not None:
            _hang_up(link)

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
                    self._fail(item.ticket, "models", broken(error))

    def _speech(self, item: _Item) -> Iterator[tuple[int, bytes]]:
        """Yield (rate, samples) of one sentence as they are made."""
        link = UnixConnection(self._models, SILENCE)
        with self._lock:
            if item.ticket != self._ticket:
                return
            self._link = link
        try:
            body = {"input": item.text, "model": self._backend, "response_format": "pcm"}
            body["voice"] = self.language if self.language != "auto" else "en"
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
            try:
                self._ring()
                with self._lock:
                    stops, wanted = self._stops, sound.ticket == self._ticket
                if not wanted or sound.ticket == self._failed:
                    continue
                if sound.pcm is None:
                    self._speaker.drain()
                    if sound.ticket == self._ticket:
                        self._post(Spoken(sound.ticket))
                    continue
                # `stops`: a cancel between the look above and the play leaves nothing to be heard
                self._speaker.play(self._loud(sound.pcm), sound.rate, stops)
                if sound.place >= 0 and sound.ticket == self._ticket:
                    self._post(
                        Uttered(sound.ticket, sound.place)
                    )  # only what was taken has sounded
            except BoardError as error:
                self._fail(sound.ticket, "speaker", said(error))

    def _ring(self) -> None:
        """Play the tones that wait."""
        while not self._tones.empty():
            tone = self._tones.get()
            if tone.pcm and self.sounds and (tone.alarm or not self._muted):
                self._speaker.play(self._loud(tone.pcm), tone.rate)
                if self._sound.empty():
                    self._speaker.drain()

    def _loud(self, pcm: bytes) -> bytes:
        """The samples at the volume: squared, since the ear counts by ratios."""
        return scaled(pcm, (self.volume / 100) ** 2)

    def _fail(self, ticket: int, part: str, why: str) -> None:
        with self._lock:
            if self._failed == ticket:
                return
            self._failed = ticket
        self._post(Mute(ticket, part, why))


def said(error: ExoError) -> str:
    """The reason and what to do, as a notice says them."""
    why = error.why or str(error)
    return f"{why}. {error.do[:1].upper()}{error.do[1:]}." if error.do else why


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


def broken(error: Exception) -> str:
    """Why a line to exo-models failed, in words for the screen."""
    if isinstance(error, ServiceError):
        return error.why or str(error)
    if isinstance(error, OSError) and not isinstance(error, http.client.HTTPException):
        return error.strerror or str(error) or type(error).__name__
    return "the answer broke off"
