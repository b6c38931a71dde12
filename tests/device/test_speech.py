"""Ear and Voice against a server on a socket, with sound that takes its time."""

from __future__ import annotations

import queue
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from exo.board.fake import FakeMicrophone, FakeSpeaker
from exo.board.pcm import samples
from exo.device.ear import Ear
from exo.device.events import Deaf, Event, Heard, Level, Mute, Spoken, Uttered
from exo.device.voice import Voice

PLUG = "Plug the {} in again."
LOUD = struct.pack("<h", 9000) * 4000


class Inbox:
    """What was posted, levels apart."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self._queue: queue.Queue[Event] = queue.Queue()

    def post(self, event: Event) -> None:
        if isinstance(event, Level):
            self.levels.append(event)
        else:
            self._queue.put(event)

    def next(self) -> Event:
        return self._queue.get(timeout=20)

    def empty(self) -> bool:
        return self._queue.empty()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def wait_for(condition: Any) -> None:
    while not condition():
        time.sleep(0.005)


def test_what_is_said_is_heard(models: Any, inbox: Inbox) -> None:
    microphone = FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post)
    ear.start(7)
    microphone.sound(LOUD)
    wait_for(lambda: any(level.value > 0.5 for level in inbox.levels))
    ear.finish()
    assert inbox.next() == Heard(7, "what is the capital of france")
    assert 9000 in samples(models.recorded[0])


def test_silence_is_no_text(models: Any, inbox: Inbox) -> None:
    ear = Ear(models.socket, FakeMicrophone(), inbox.post)
    ear.start(1)
    wait_for(lambda: inbox.levels)
    ear.finish()
    assert inbox.next() == Heard(1, "")


def test_a_cancelled_recording_says_nothing_and_hangs_up(models: Any, inbox: Inbox) -> None:
    ear = Ear(models.socket, FakeMicrophone(), inbox.post)
    ear.start(1)
    wait_for(lambda: len(inbox.levels) > 3)
    ear.cancel()
    wait_for(lambda: models.abandoned == 1)
    ear.start(2)
    ear.finish()
    assert inbox.next() == Heard(2, "")


def test_a_microphone_that_fails_is_told(models: Any, inbox: Inbox) -> None:
    microphone = FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post)
    ear.start(1)
    wait_for(lambda: inbox.levels)
    microphone.broken = "it was unplugged"
    assert inbox.next() == Deaf(1, "microphone", "it was unplugged. " + PLUG.format("microphone"))


def test_a_refusal_is_told_in_its_own_words(
    models: Any, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.refuses = "run `exo models get whisper-tiny`"
    ear = Ear(models.socket, FakeMicrophone(), inbox.post)
    ear.start(1)
    wait_for(lambda: inbox.levels)
    ear.finish()
    assert inbox.next() == Deaf(1, "models", "run `exo models get whisper-tiny`")


def test_nobody_there_is_told(
    tmp_path: Path, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exo.device.ear.COMEBACK", 0.1)
    ear = Ear(tmp_path / "no.sock", FakeMicrophone(), inbox.post)
    ear.start(1)
    ear.finish()
    event = inbox.next()
    assert isinstance(event, Deaf)
    assert event.part == "models"


def test_a_server_that_falls_and_comes_back_hears_it_all(models: Any, inbox: Inbox) -> None:
    microphone = FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post)
    ear.start(1)
    microphone.sound(LOUD)
    wait_for(lambda: len(inbox.levels) > 6)
    models.kill()
    wait_for(lambda: len(inbox.levels) > 12)
    ear.finish()
    models.start()
    assert inbox.next() == Heard(1, "what is the capital of france")
    # sound that begins while a block is being handed over is heard from the next one on
    assert list(samples(models.recorded[-1])).count(9000) > 3900


def test_sentences_are_spoken_in_order_without_a_gap(models: Any, inbox: Inbox) -> None:
    speaker = FakeSpeaker()
    voice = Voice(models.socket, speaker, inbox.post)
    ticket = voice.begin()
    voice.say(ticket, "One here.", 0)
    voice.say(ticket, "**Two** there.", 7)
    voice.say(ticket, "😀", 15)
    voice.end(ticket)
    assert [inbox.next() for _ in range(3)] == [
        Uttered(ticket, 0),
        Uttered(ticket, 7),
        Spoken(ticket),
    ]
    # an empty text first: the voice is loaded while the model still thinks
    assert models.spoken == ["", "One here.", "Two there."]
    values = list(samples(speaker.heard()))
    first = values.index(8000)
    count = (9 + 10) * 441
    assert values[first : first + count] == [8000] * count


def test_cancel_is_silence_and_the_next_text_speaks(models: Any, inbox: Inbox) -> None:
    speaker = FakeSpeaker()
    voice = Voice(models.socket, speaker, inbox.post)
    ticket = voice.begin()
    for number in range(5):
        voice.say(ticket, "A sentence that takes several seconds to be spoken.", number)
    voice.end(ticket)
    assert inbox.next() == Uttered(ticket, 0)
    wait_for(speaker.heard)
    voice.cancel()
    silent_from = len(speaker.heard())
    again = voice.begin()
    voice.say(again, "Ok.", 0)
    voice.end(again)
    assert [inbox.next(), inbox.next()] == [Uttered(again, 0), Spoken(again)]
    after = list(samples(speaker.heard()[silent_from:]))
    assert after.count(8000) <= 3 * 441 + 1024  # at most one piece that was on its way
    assert inbox.empty()


def test_a_voice_that_is_refused_is_told_once(models: Any, inbox: Inbox) -> None:
    models.refuses = "run `exo models get piper-en-joe`"
    voice = Voice(models.socket, FakeSpeaker(), inbox.post)
    ticket = voice.begin()
    for _ in range(3):
        voice.say(ticket, "A sentence.")
    voice.end(ticket)
    assert inbox.next() == Mute(ticket, "models", "run `exo models get piper-en-joe`")
    models.refuses = ""
    again = voice.begin()
    voice.say(again, "Ok.")
    voice.end(again)
    assert [inbox.next(), inbox.next()] == [Uttered(again, 0), Spoken(again)]


def test_a_speaker_that_is_gone_is_told(models: Any, inbox: Inbox) -> None:
    speaker = FakeSpeaker()
    speaker.broken = "it was unplugged"
    voice = Voice(models.socket, speaker, inbox.post)
    ticket = voice.begin()
    voice.say(ticket, "A sentence.")
    assert inbox.next() == Mute(ticket, "speaker", "it was unplugged. " + PLUG.format("speaker"))


def test_a_server_that_dies_while_it_speaks_is_told(
    models: Any, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what was received is spoken first: keep that short
    monkeypatch.setattr("exo.device.voice.AHEAD", 8)
    voice = Voice(models.socket, FakeSpeaker(), inbox.post)
    ticket = voice.begin()
    voice.say(ticket, "word " * 4000)
    assert isinstance(inbox.next(), Uttered)
    models.kill()
    event = inbox.next()
    assert isinstance(event, Mute)
    assert event.part == "models"


def test_a_voice_that_is_off_asks_nobody(models: Any, inbox: Inbox) -> None:
    voice = Voice(models.socket, FakeSpeaker(), inbox.post, "off")
    ticket = voice.begin()
    voice.say(ticket, "A sentence.")
    voice.end(ticket)
    assert inbox.next() == Spoken(ticket)
    assert models.spoken == []


def test_no_thread_is_left_by_a_recording(models: Any, inbox: Inbox) -> None:
    ear = Ear(models.socket, FakeMicrophone(), inbox.post)
    for ticket in range(5):
        ear.start(ticket)
    ear.cancel()
    wait_for(lambda: not [t for t in threading.enumerate() if t.name == "ear"])
