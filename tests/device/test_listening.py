"""What ends a recording: the release, the person's silence, a second tap, nobody there, a fault."""

from __future__ import annotations

import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exo.board.fake import FakeMicrophone
from exo.device import events as ev
from exo.device.ear import Ear

if TYPE_CHECKING:
    from conftest import Bench

LOUD = struct.pack("<h", 9000) * 8000  # half a second


def tap(bench: Bench) -> str:
    return bench.press(seconds=0.1)


def test_a_tap_listens_until_the_person_has_stopped_speaking(bench: Bench) -> None:
    assert tap(bench) == "listening"
    assert "Tap again" in bench.screen
    assert bench.pass_(3) == "listening"
    assert bench.do(ev.SpeechEnded(1, "pause")) == "thinking"
    assert bench.ear.names() == ["start", "finish"]
    assert bench.do(ev.Heard(1, "hello")) == "thinking"
    assert bench.link.told[-1] == ("send", 1, "hello", "voice")
    assert bench.voice.chimes == ["listen", "heard"]


def test_a_second_tap_ends_it_at_once(bench: Bench) -> None:
    tap(bench)
    bench.pass_(1)
    assert bench.do(ev.Button("talk", True)) == "thinking"
    assert bench.do(ev.Button("talk", False)) == "thinking"
    assert bench.ear.names() == ["start", "finish"]
    assert bench.do(ev.SpeechEnded(1, "pause")) == "thinking"
    assert bench.ear.names() == ["start", "finish"]


def test_two_taps_at_once_are_the_menu(bench: Bench) -> None:
    tap(bench)
    bench.pass_(0.1)
    assert tap(bench) == "menu"
    assert bench.ear.names() == ["start", "cancel"] * 2


def test_nobody_who_speaks_is_told(bench: Bench) -> None:
    tap(bench)
    assert bench.do(ev.SpeechEnded(1, "nothing")) == "notice"
    assert "I heard nothing" in bench.screen
    assert bench.ear.names()[-1] == "cancel"
    assert bench.pass_(20) == "idle"


def test_who_holds_the_key_may_pause(bench: Bench) -> None:
    bench.do(ev.Button("talk", True))
    bench.pass_(1)
    for why in ("pause", "nothing"):
        assert bench.do(ev.SpeechEnded(1, why)) == "listening"
    assert "Release" in bench.screen
    assert bench.do(ev.Button("talk", False)) == "thinking"


def test_a_late_report_ends_no_other_recording(bench: Bench) -> None:
    tap(bench)
    bench.do(ev.Button("back", True), ev.Button("back", False))
    bench.pass_(1)
    tap(bench)
    assert bench.do(ev.SpeechEnded(1, "pause")) == "listening"
    assert bench.do(ev.SpeechEnded(2, "pause")) == "thinking"


@pytest.mark.parametrize(("mode", "seconds"), [("tap", 0.1), ("tap", 2.0)])
def test_where_talk_is_tapped_the_release_means_nothing(
    bench: Bench, mode: str, seconds: float
) -> None:
    bench.device.apply("listen.mode", mode)
    assert bench.press(seconds=seconds) == "listening"
    assert bench.do(ev.SpeechEnded(1, "pause")) == "thinking"


def test_where_talk_is_held_a_tap_is_none(bench: Bench) -> None:
    bench.device.apply("listen.mode", "hold")
    assert tap(bench) == "notice"
    assert "Hold the button" in bench.screen


def test_a_terminal_tells_no_release_and_listens_to_the_end(make_bench: Any) -> None:
    bench = make_bench(toggles=True)
    bench.do(ev.Button("talk", True))
    bench.pass_(2)
    assert bench.do(ev.SpeechEnded(1, "pause")) == "thinking"
    bench.do(ev.Heard(1, ""))
    bench.pass_(10)
    # the key is let go only now, as the terminal does it
    assert bench.do(ev.Button("talk", False), ev.Button("talk", True)) == "listening"


def test_a_microphone_that_fails_in_the_middle_loses_nothing(bench: Bench) -> None:
    bench.do(ev.Button("talk", True))
    bench.pass_(1)
    assert bench.do(ev.SpeechEnded(1, "cut")) == "thinking"
    bench.do(ev.Button("talk", False), ev.Heard(1, "half a", "it was unplugged. Plug it in."))
    assert bench.link.told[-1] == ("send", 1, "half a", "voice")
    bench.wire("turn.started", turn="t1")
    bench.complete("Yes.")
    bench.do(ev.Spoken(1))
    assert bench.pass_(5) == "notice"
    assert "unplugged. Plug it in." in " ".join(bench.screen.split())
    bench.pass_(30)
    assert tap(bench) == "listening"


def test_too_loud_is_said_for_a_moment(bench: Bench) -> None:
    bench.do(ev.Button("talk", True), ev.Level(1, 1.0, True))
    assert "Too loud" in bench.screen
    bench.pass_(2)
    assert "Too loud" not in bench.screen


def test_mute_is_silence_at_once_and_the_reply_can_be_read(bench: Bench) -> None:
    bench.ask()
    bench.delta("A long answer. And more. And")
    assert bench.device.talk.reply.voice
    bench.do(ev.Silence(True))
    assert bench.voice.muted
    said = len([each for each in bench.voice.told if each[0] == "say"])
    bench.complete("A long answer. And more. And the end.")
    assert bench.device.talk.reply.voice == 0
    assert [each[1] for each in bench.voice.told if each[0] == "say"][said:] in ([], [0])
    assert bench.pass_(11) == "idle"
    assert bench.device.view().muted
    assert bench.calls("config.set") == [{"key": "voice.mute", "value": True}]
    bench.do(ev.Silence())
    assert not bench.voice.muted
    assert not bench.device.view().muted


def test_settings_of_sound_are_followed_at_once(bench: Bench) -> None:
    for name, value in (("voice.volume", 40), ("sounds", "off"), ("voice.mute", True)):
        bench.device.apply(name, value)
    assert (bench.voice.volume, bench.voice.sounds, bench.voice.muted) == (40.0, False, True)
    bench.device.apply("voice.mute", False)
    assert not bench.voice.muted


def test_a_timer_rings(bench: Bench) -> None:
    bench.do(ev.Silence(True))
    bench.wire("notice", session="", level="info", code="timer", text="Tea")
    assert bench.voice.chimes == ["timer"]


# the ear itself, on a socket


class Inbox:
    def __init__(self) -> None:
        self.events: list[ev.Event] = []

    def post(self, event: ev.Event) -> None:
        if not isinstance(event, ev.Level):
            self.events.append(event)

    def wait(self, count: int) -> list[ev.Event]:
        while len(self.events) < count:
            time.sleep(0.005)
        return self.events


def test_the_end_of_speech_comes_while_it_records(models: Any) -> None:
    inbox, microphone = Inbox(), FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post, pause=0.3)
    ear.start(3)
    microphone.sound(LOUD)
    assert inbox.wait(1) == [ev.SpeechEnded(3, "pause")]
    ear.finish()
    assert inbox.wait(2)[1] == ev.Heard(3, "what is the capital of france")


@pytest.mark.parametrize("adaptive", [True, False])
def test_pauses_follow_the_words_where_they_are_to(models: Any, adaptive: bool) -> None:
    inbox, microphone = Inbox(), FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post, pause=0.3, adaptive=adaptive)
    ear.start(1)
    microphone.sound(LOUD)
    assert inbox.wait(1) == [ev.SpeechEnded(1, "pause")]
    ear.cancel()
    assert [each.get("adaptive") for each in models.asked] == ["true" if adaptive else None]


def test_nothing_is_told_after_a_while(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exo.device.ear.NOTHING", 0.3)
    inbox = Inbox()
    ear = Ear(models.socket, FakeMicrophone(), inbox.post)
    ear.start(1)
    assert inbox.wait(1) == [ev.SpeechEnded(1, "nothing")]
    ear.cancel()


def test_what_was_recorded_before_the_card_went_is_heard(models: Any) -> None:
    inbox, microphone = Inbox(), FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post, pause=9)
    ear.start(1)
    microphone.sound(LOUD)
    time.sleep(0.6)
    microphone.broken = "it was unplugged"
    why = "it was unplugged. Plug the microphone in again."
    heard = ev.Heard(1, "what is the capital of france", why)
    assert inbox.wait(2) == [ev.SpeechEnded(1, "cut"), heard]
    microphone.broken = ""
    ear.start(2)
    microphone.sound(LOUD)
    time.sleep(0.3)
    ear.finish()
    assert inbox.wait(3)[2] == ev.Heard(2, "what is the capital of france")


def test_a_card_that_went_before_a_word_is_a_fault(models: Any) -> None:
    inbox, microphone = Inbox(), FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post)
    ear.start(1)
    time.sleep(0.5)
    microphone.broken = "it was unplugged"
    why = "it was unplugged. Plug the microphone in again."
    assert inbox.wait(2)[1] == ev.Deaf(1, "microphone", why)


def test_without_a_judge_the_level_says_when_it_ends(models: Any) -> None:
    inbox, microphone = Inbox(), FakeMicrophone()
    ear = Ear(models.socket, microphone, inbox.post, pause=0.2)
    ear.start(1)
    microphone.sound(LOUD * 2)
    time.sleep(0.3)
    models.kill()
    assert inbox.wait(1) == [ev.SpeechEnded(1, "pause")]
    models.start()
    ear.finish()
    assert inbox.wait(2)[1] == ev.Heard(1, "what is the capital of france")


def test_a_refusal_comes_while_it_records(models: Any) -> None:
    models.refuses = "run `exo models get whisper-tiny`"
    inbox = Inbox()
    ear = Ear(models.socket, FakeMicrophone(), inbox.post)
    ear.start(1)
    assert inbox.wait(1) == [ev.Deaf(1, "models", "run `exo models get whisper-tiny`")]


def test_no_thread_and_no_handle_stays(models: Any) -> None:
    ear = Ear(models.socket, FakeMicrophone(), lambda event: None)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for ticket in range(20):
        ear.start(ticket)
        time.sleep(0.02)
    ear.cancel()
    while any(each.name.startswith("ear") for each in threading.enumerate()):
        time.sleep(0.01)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
