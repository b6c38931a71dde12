"""The voice under races: nothing of what was cancelled is heard. And its tones, its volume, its mute."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from exo.board.fake import FakeSpeaker
from exo.board.pcm import dbfs, samples
from exo.device import earcons
from exo.device.events import Event, Mute, Spoken, Uttered
from exo.device.voice import Voice


class Speaker:
    """Takes samples at once, and at what count of stops each came; may be slow at the worst moment."""

    def __init__(self) -> None:
        self.played: list[tuple[int, bytes]] = []
        self._lock = threading.Lock()
        self._stops = 0
        self.before = 0.0  # seconds between a call of `play` and its effect
        self.drained = 0

    @property
    def stops(self) -> int:
        return self._stops

    def play(self, pcm: bytes, rate: int, since: int | None = None) -> None:
        time.sleep(self.before)
        with self._lock:
            if since is None or since == self._stops:
                self.played.append((self._stops, pcm))

    def drain(self) -> None:
        self.drained += 1

    def stop(self) -> None:
        with self._lock:
            self._stops += 1


class Posts:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_of_a_cancelled_text_is_heard(models: Any, seed: int) -> None:
    chance, speaker, posts = random.Random(seed), Speaker(), Posts()
    speaker.before = chance.choice([0.0, 0.001, 0.01])
    voice = Voice(models.socket, speaker, posts)
    current = 0
    for _ in range(15):
        current = voice.begin()
        before = speaker.stops
        for place in range(chance.randrange(1, 4)):
            voice.say(current, "a" * chance.randrange(3, 40), place)
        voice.end(current)
        time.sleep(chance.random() * 0.03)
        voice.cancel()
        mark = len(speaker.played)
        time.sleep(chance.random() * 0.02)
        # once cancel has returned no sample of it comes any more, and none came under another count
        assert len(speaker.played) == mark
        assert all(stops <= before for stops, _ in speaker.played)
    last = voice.begin()
    voice.say(last, "and now this", 3)
    voice.end(last)
    wait_for(lambda: Spoken(last) in posts.events)
    assert Uttered(last, 3) in posts.events
    heard = [pcm for stops, pcm in speaker.played if stops == speaker.stops]
    assert sum(map(len, heard)) == 2 * len("and now this") * 441
    assert not any(isinstance(event, Mute) for event in posts.events)


def test_a_piece_that_waits_for_the_speaker_when_it_is_cancelled_is_dropped(models: Any) -> None:
    speaker = Speaker()
    speaker.before = 0.3
    voice = Voice(models.socket, speaker, Posts())
    voice.say(voice.begin(), "a sentence")
    time.sleep(0.25)  # the player stands between its look at the ticket and the speaker
    voice.cancel()
    time.sleep(0.4)
    assert speaker.played == []


def test_mute_is_at_once_and_until_it_is_taken_back(models: Any) -> None:
    speaker, posts = FakeSpeaker(), Posts()
    voice = Voice(models.socket, speaker, posts)
    ticket = voice.begin()
    voice.say(ticket, "a sentence that lasts for seconds and seconds")
    wait_for(lambda: any(samples(speaker.heard())))
    voice.mute(True)
    silent = len(speaker.heard())
    assert voice.muted and not voice.on
    ticket = voice.begin()
    voice.say(ticket, "nor this")
    voice.end(ticket)
    voice.chime("listen")
    wait_for(lambda: Spoken(ticket) in posts.events)
    assert not any(samples(speaker.heard()[silent:]))
    voice.mute(False)
    ticket = voice.begin()
    voice.say(ticket, "but this")
    voice.end(ticket)
    wait_for(lambda: Spoken(ticket) in posts.events)
    assert 8000 in samples(speaker.heard()[silent:])


@pytest.mark.parametrize(("sounds", "rings"), [(True, True), (False, False)])
def test_a_timer_rings_when_muted_if_sounds_are_on(models: Any, sounds: bool, rings: bool) -> None:
    speaker = Speaker()
    voice = Voice(models.socket, speaker, Posts())
    voice.sounds = sounds
    voice.mute(True)
    voice.chime("timer")
    time.sleep(0.1)
    assert [pcm for _, pcm in speaker.played] == ([earcons.tone("timer")] if rings else [])


def test_a_tone_comes_before_what_waits_and_takes_nothing_from_it(models: Any) -> None:
    speaker, posts = Speaker(), Posts()
    speaker.before = 0.005
    voice = Voice(models.socket, speaker, posts)
    ticket = voice.begin()
    voice.say(ticket, "a" * 30)
    voice.end(ticket)
    wait_for(lambda: speaker.played)
    voice.chime("approval")
    wait_for(lambda: Spoken(ticket) in posts.events)
    pieces = [pcm for _, pcm in speaker.played]
    place = pieces.index(earcons.tone("approval"))
    assert place < len(pieces) - 1
    del pieces[place]
    assert b"".join(pieces) == struct.pack("<h", 8000) * 441 * 30


def test_a_tone_alone_gives_the_card_back(models: Any) -> None:
    speaker = Speaker()
    Voice(models.socket, speaker, Posts()).chime("done")
    wait_for(lambda: speaker.drained)


def test_the_volume_is_of_everything(models: Any) -> None:
    speaker, posts = Speaker(), Posts()
    voice = Voice(models.socket, speaker, posts)
    voice.volume = 50
    voice.chime("listen")
    ticket = voice.begin()
    voice.say(ticket, "abc")
    voice.end(ticket)
    wait_for(lambda: Spoken(ticket) in posts.events)
    said = samples(b"".join(pcm for _, pcm in speaker.played[-2:]))
    assert set(said) == {2000}  # a quarter of 8000: 12 dB
    assert max(samples(speaker.played[0][1])) < max(samples(earcons.tone("listen"))) / 3.9


@pytest.mark.parametrize("name", earcons.TABLE)
def test_a_tone_is_short_quiet_and_does_not_click(name: str) -> None:
    values = samples(earcons.tone(name))
    assert 0.05 <= len(values) / earcons.RATE <= 2.0
    assert values[0] == values[-1] == 0
    assert max(abs(b - a) for a, b in zip(values, values[1:], strict=False)) < 4500
    assert -30 < dbfs(earcons.tone(name)) < -12


def test_no_two_tones_are_the_same() -> None:
    assert len({earcons.tone(name) for name in earcons.TABLE}) == len(earcons.TABLE)


def test_a_server_that_falls_in_a_sentence_is_told_in_words(
    models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def falls(letters: int) -> AsyncIterator[bytes]:
        yield struct.pack("<h", 8000) * 441
        raise ConnectionError

    monkeypatch.setattr(models, "_tone", falls)
    posts = Posts()
    voice = Voice(models.socket, FakeSpeaker(), posts)
    voice.say(voice.begin(), "a sentence")
    wait_for(lambda: any(isinstance(event, Mute) for event in posts.events))
    told = next(event for event in posts.events if isinstance(event, Mute))
    assert told.why == "the answer broke off"
