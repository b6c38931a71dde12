"""Microphones and speakers: the fakes in real time, the PC's on a PortAudio that is not there."""

from __future__ import annotations

import struct
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
from exo.board.alsa import Card
from exo.board.fake import FakeButtons, FakeMicrophone, FakeSpeaker
from exo.board.pcaudio import PcMicrophone, PcSpeaker, find
from exo.board.pcm import samples
from exo.core.base.errors import BoardError

TONE = struct.pack("<h", 9000)


def test_the_microphone_hears_what_sounds_and_else_silence() -> None:
    microphone, stop = FakeMicrophone(), threading.Event()
    heard = b""
    for number, block in enumerate(microphone.record(stop)):
        heard += block
        if number == 1:
            microphone.sound(TONE * 1600)
        if number == 8:
            stop.set()
    values = list(samples(heard))
    assert values[:1000] == [0] * 1000
    assert values.count(9000) == 1600


def test_a_microphone_that_is_gone_says_so() -> None:
    microphone = FakeMicrophone()
    microphone.broken = "it was unplugged"
    with pytest.raises(BoardError, match="unplugged"):
        next(iter(microphone.record(threading.Event())))


def test_the_speaker_joins_what_follows_without_a_gap() -> None:
    speaker = FakeSpeaker()
    for _ in range(4):
        speaker.play(TONE * 1000, speaker.RATE)
    speaker.drain()
    assert list(samples(speaker.heard())).count(9000) == 4000
    assert samples(speaker.heard())[0:4000].count(9000) == 4000


def test_stop_cuts_what_was_not_heard_and_wakes_who_waits() -> None:
    speaker = FakeSpeaker()
    thread = threading.Thread(target=lambda: speaker.play(TONE * speaker.RATE * 20, speaker.RATE))
    thread.start()
    while not speaker.heard():
        pass
    speaker.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert len(speaker.heard()) < 2 * 20 * speaker.RATE
    speaker.drain()


def test_buttons_that_do_not_exist_are_refused() -> None:
    seen: list[tuple[str, bool]] = []
    buttons = FakeButtons()
    buttons.listen(lambda name, down: seen.append((name, down)))
    buttons.press("ok", 0)
    assert seen == [("ok", True), ("ok", False)]
    with pytest.raises(BoardError, match="no such button"):
        buttons.hold("start")
    buttons.close()
    buttons.press("ok", 0)
    assert len(seen) == 2


class PortAudioError(Exception):
    pass


class Stream:
    """A stream whose callback a test calls."""

    made: list[Stream]

    def __init__(self, samplerate: int, callback: Callable[..., None], **settings: Any) -> None:
        if samplerate in settings.get("refuse", ()) or samplerate in Sound.refuses:
            raise PortAudioError("Invalid sample rate")
        self.rate, self.callback, self.settings = samplerate, callback, settings
        self.closed, self.latency = False, 0.0
        Sound.streams.append(self)

    def start(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def pull(self, frames: int) -> bytes:
        out = bytearray(2 * frames)
        self.callback(out, frames, None, None)
        return bytes(out)


class Sound(types.ModuleType):
    streams: list[Stream]
    refuses: tuple[int, ...]


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch) -> Sound:
    """A sounddevice with one microphone and one speaker."""
    module: Any = Sound("sounddevice")
    Sound.streams, Sound.refuses = [], ()
    module.devices = [
        {"index": 0, "name": "USB Mic", "max_input_channels": 1, "max_output_channels": 0, "default_samplerate": 48000.0},
        {"index": 1, "name": "HDMI", "max_input_channels": 0, "max_output_channels": 2, "default_samplerate": 48000.0},
    ]  # fmt: skip
    module.started = 0

    def query(device: int | None = None, kind: str = "") -> Any:
        return module.devices[0] if kind else module.devices

    def initialize() -> None:
        module.started += 1

    module.query_devices, module._initialize, module._terminate = query, initialize, lambda: None
    module.PortAudioError = PortAudioError
    module.RawInputStream = module.RawOutputStream = Stream
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    monkeypatch.setattr("exo.board.pcaudio._open", set())
    return module


def test_a_device_is_found_by_a_part_of_its_name(sound: Any) -> None:
    assert find("usb", "input") == 0
    assert find("hdmi", "output") == 1
    assert find("", "input") is None
    with pytest.raises(BoardError, match="there is HDMI"):
        find("USB", "output")
    assert sound.started == 1  # it looked once more, for what was plugged in since


def test_without_devices_the_reason_is_said(sound: Any) -> None:
    sound.devices.clear()
    with pytest.raises(BoardError, match="open the microphone: there is none"):
        next(iter(PcMicrophone().record(threading.Event())))
    with pytest.raises(BoardError, match="open the speaker: there is none"):
        PcSpeaker().play(TONE, 22_050)


def test_without_portaudio_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(BoardError, match="libportaudio2"):
        PcSpeaker().play(TONE, 22_050)


def test_a_recording_comes_block_by_block_and_closes_the_stream(sound: Any) -> None:
    stop = threading.Event()
    blocks = PcMicrophone().record(stop)
    reader = threading.Thread(target=lambda: got.extend(blocks))
    got: list[bytes] = []
    reader.start()
    while not Sound.streams:
        pass
    stream = Sound.streams[0]
    for _ in range(3):
        stream.callback(TONE * 512, 512, None, None)
    stop.set()
    stream.callback(TONE * 512, 512, None, None)
    reader.join(5)
    assert set(got) == {TONE * 512}
    assert len(got) >= 3
    assert stream.closed


def test_a_microphone_of_another_rate_is_resampled(sound: Any) -> None:
    Sound.refuses = (16_000,)
    stop = threading.Event()
    blocks = iter(PcMicrophone().record(stop))
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(next(blocks)))
    reader.start()
    while not Sound.streams:
        pass
    assert Sound.streams[0].rate == 48_000
    Sound.streams[0].callback(TONE * 1536, 1536, None, None)
    reader.join(5)
    assert len(got[0]) == pytest.approx(1024, abs=32)


def test_the_speaker_plays_in_order_and_is_silent_at_once(sound: Any) -> None:
    speaker = PcSpeaker()
    speaker.play(TONE * 100, 22_050)
    speaker.play(TONE * 100, 22_050)
    stream = Sound.streams[0]
    assert len(Sound.streams) == 1
    assert stream.pull(150) == TONE * 150
    speaker.stop()
    assert stream.pull(100) == bytes(200)
    speaker.play(TONE * 10, 22_050)
    assert stream.pull(10) == TONE * 10
    speaker.drain()
    assert stream.closed


def test_a_speaker_that_stops_asking_is_given_up(
    sound: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exo.board.pcaudio.DEAD", 0.05)
    speaker = PcSpeaker()
    with pytest.raises(BoardError, match="stopped playing"):
        speaker.play(TONE * 22_050, 22_050)
    speaker.play(TONE, 22_050)  # and the next one opens it anew
    assert len(Sound.streams) == 2


def test_a_device_is_found_by_what_its_card_is_called(
    sound: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound.devices[0]["name"] = "USB Audio (hw:2,0)"
    monkeypatch.setattr(
        "exo.board.pcaudio.cards", lambda: [Card(1, "HDMI", ""), Card(2, "Headset", "Acme Headset")]
    )
    assert find("headset", "input") == 0
    assert find("acme", "input") == 0
    with pytest.raises(BoardError, match="none is called 'hdmi'"):
        find("hdmi", "input")


def test_portaudio_is_not_started_anew_under_an_open_stream(sound: Any) -> None:
    speaker = PcSpeaker()
    speaker.play(TONE, 22_050)
    with pytest.raises(BoardError, match="none is called 'gone'"):
        find("gone", "input")
    assert sound.started == 0 and not Sound.streams[0].closed
    assert Sound.streams[0].pull(1) == TONE
    speaker.drain()
    with pytest.raises(BoardError):
        find("gone", "input")
    assert sound.started == 1


def test_what_was_stopped_is_not_played(sound: Any) -> None:
    for speaker in (PcSpeaker(), FakeSpeaker()):
        before = speaker.stops
        speaker.stop()
        speaker.play(TONE * 100, 22_050, before)
        heard = Sound.streams[0].pull(100) if isinstance(speaker, PcSpeaker) else speaker.heard()
        assert not any(samples(heard))
