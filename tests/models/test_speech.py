"""Speech in and out, with the real voice and the real ears."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from exo.core.base.unix import UnixConnection
from exo.models.audio import RATE, from_wav, to_pcm, wav_bytes
from modelkit import Server

SENTENCES = [
    "What time is it?",
    "Remind me to call my mother tomorrow morning.",
    "Yes, please do that.",
]
PCM = "audio/pcm;rate=16000"


def plain(text: str) -> str:
    return re.sub(r"[^a-z0-9 ]", "", text.lower()).strip()


def by_espeak(text: str) -> bytes:
    command = ["espeak-ng", "-v", "en-us", "-s", "140", "--stdin", "--stdout"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def form(wav: bytes, **fields: str) -> tuple[bytes, str]:
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode()
        for k, v in fields.items()
    ]
    head = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    return b"".join([*parts, head, wav, b"\r\n--B--\r\n"]), "multipart/form-data; boundary=B"


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_the_voice_says_is_what_the_ears_hear(server: Server, sentence: str) -> None:
    status, wav = server.raw("/v1/audio/speech", {"input": sentence})
    assert status == 200 and wav[:4] == b"RIFF"
    heard = server.ask("/v1/audio/transcriptions", *form(wav))[1]
    assert plain(heard["text"]) == plain(sentence)
    assert heard["language"] == "en" and heard["speech"] and heard["duration"] > 0.5


def test_speech_of_another_synthesiser_is_heard(server: Server) -> None:
    wav = by_espeak("Remind me to call my mother tomorrow morning.")
    body, kind = form(wav, language="en", response_format="text")
    status, raw = server.raw("/v1/audio/transcriptions", body, kind)
    assert status == 200 and plain(raw.decode()) == "remind me to call my mother tomorrow morning"


def test_a_stream_of_sound_is_transcribed_as_it_comes(server: Server) -> None:
    sound = from_wav(server.raw("/v1/audio/speech", {"input": "What time is it?"})[1])
    raw = to_pcm(np.pad(sound, (0, RATE)))

    def pieces() -> Iterator[bytes]:
        for place in range(0, len(raw), 3201):  # odd sizes: a sample may be cut in two
            yield raw[place : place + 3201]

    heard = server.ask("/v1/audio/transcriptions", pieces(), PCM)[1]
    assert plain(heard["text"]) == "what time is it" and len(heard["speech"]) == 1


def test_speech_after_a_pause_is_not_lost_to_the_guess_before_it(server: Server) -> None:
    one = from_wav(server.raw("/v1/audio/speech", {"input": "Yes, please do that."})[1])
    raw = to_pcm(np.concatenate((one, np.zeros(RATE, np.float32), one)))

    def pieces() -> Iterator[bytes]:
        for place in range(0, len(raw), 6400):
            yield raw[place : place + 6400]

    heard = server.ask("/v1/audio/transcriptions", pieces(), PCM)[1]
    assert plain(heard["text"]).count("please") == 2 and len(heard["speech"]) >= 2


@pytest.mark.parametrize("kind", ["silence", "noise", "hum", "click", "empty"])
def test_no_speech_is_no_text(server: Server, kind: str) -> None:
    random = np.random.default_rng(1)
    sound = {
        "silence": np.zeros(RATE * 2),
        "noise": random.normal(0, 0.02, RATE * 2),
        "hum": 0.2 * np.sin(2 * np.pi * 50 * np.arange(RATE * 2) / RATE),
        "click": np.concatenate((np.zeros(RATE), [0.9] * 40, np.zeros(RATE))),
        "empty": np.zeros(0),
    }[kind].astype(np.float32)
    heard = server.ask("/v1/audio/transcriptions", to_pcm(sound), PCM)[1]
    assert heard["text"] == "" and heard["speech"] == []


def test_activity_says_where_somebody_speaks(server: Server) -> None:
    sound = from_wav(by_espeak("Hello, my friend."))
    quiet = np.zeros(RATE, np.float32)
    wav = wav_bytes(to_pcm(np.concatenate((quiet, sound, quiet))), RATE)
    found = server.ask("/v1/audio/activity", wav, "audio/wav")[1]
    assert 0.9 < found["speech"][0]["start"] < 1.4
    assert found["speech"][-1]["end"] < found["duration"] - 0.7


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"no wav", "audio/wav", "bad_audio"),
        (b"x" * 300, "multipart/form-data", "bad_request"),
        (b"x" * 300, "multipart/form-data; boundary=B", "bad_request"),
        (
            b"--B\r\nno end of headers\r\n--B--\r\n",
            "multipart/form-data; boundary=B",
            "bad_request",
        ),
        (form(b"")[0], "multipart/form-data; boundary=B", "bad_audio"),
        (
            form(b"x")[0].replace(b'"file"', b'"fool"'),
            "multipart/form-data; boundary=B",
            "bad_request",
        ),
        (b"\0\0" * 100, "audio/pcm;rate=8000", "bad_request"),
        (b"\0\0" * 100, "audio/pcm; rate=160000", "bad_request"),
        (b"\0\0" * RATE * 125, PCM, "bad_audio"),
    ],
)
def test_broken_recordings_are_refused_by_name(
    server: Server, body: bytes, kind: str, code: str
) -> None:
    status, answer = server.ask("/v1/audio/transcriptions", body, kind)
    assert status == 400 and answer["error"]["code"] == code


def test_an_unknown_language_is_refused(server: Server) -> None:
    body, kind = form(by_espeak("Hello, my friend, how are you?"), language="klingon")
    status, answer = server.ask("/v1/audio/transcriptions", body, kind)
    assert status == 400 and "klingon" in answer["error"]["message"]


def test_an_unknown_voice_is_refused(server: Server) -> None:
    asked = {"input": "hello", "model": "espeak", "voice": "xx"}
    status, answer = server.ask("/v1/audio/speech", asked)
    assert status == 400 and "voice does not exist" in answer["error"]["message"]


@pytest.mark.parametrize(("language", "status"), [("de", 400), ("en", 200), ("auto", 200)])
def test_a_language_that_the_model_cannot_hear_is_said(
    server: Server, language: str, status: int
) -> None:
    body, kind = form(by_espeak("Hello, my friend, how are you?"), language=language)
    found, answer = server.ask("/v1/audio/transcriptions", body, kind)
    assert found == status, answer
    if status == 400:
        assert "hears English alone" in answer["error"]["message"]


@pytest.mark.parametrize("text", ["", "   ", "\U0001f600", "\u200b", "...", "```\ncode\n```"])
def test_what_cannot_be_said_is_silence_and_no_fault(server: Server, text: str) -> None:
    status, wav = server.raw("/v1/audio/speech", {"input": text})
    assert status == 200 and len(from_wav(wav)) == 0


@pytest.mark.parametrize("model", ["piper", "espeak"])
def test_a_voice_streams_raw_sound_at_the_rate_it_names(server: Server, model: str) -> None:
    body = {"input": "One. Two; `three`, $(four) & five!", "model": model, "response_format": "pcm"}
    link = UnixConnection(server.socket, 60)
    link.request("POST", "/v1/audio/speech", json.dumps(body), {"Content-Type": "application/json"})
    answer = link.getresponse()
    rate, raw = int(answer.headers["X-Sample-Rate"]), answer.read()
    link.close()
    assert rate == 22050 and 1.0 < len(raw) / 2 / rate < 8.0
    assert np.abs(np.frombuffer(raw, "<i2")).max() > 3000


@pytest.mark.parametrize("heard", [0, 1000])
def test_a_listener_that_goes_away_ends_the_speech(server: Server, heard: int) -> None:
    text = "This is a rather long sentence about nothing. " * 200
    link = UnixConnection(server.socket, 60)
    asked = json.dumps({"input": text, "response_format": "pcm"})
    link.request("POST", "/v1/audio/speech", asked, {"Content-Type": "application/json"})
    if heard:
        assert link.getresponse().read(heard)
    link.sock.close()
    link.close()
    end = time.monotonic() + 20
    while any(
        each["role"] == "speech" and each["in_use"] for each in server.get("/health")["loaded"]
    ):
        assert time.monotonic() < end, "it still speaks"


def test_espeak_speaks_where_the_voices_file_is_missing(another: Any, tmp_path: Any) -> None:
    (tmp_path / "none").mkdir()
    server = another(EXO_MODELS=str(tmp_path / "none")).start()
    status, wav = server.raw("/v1/audio/speech", {"input": "Hello there, my friend."})
    assert status == 200 and len(from_wav(wav)) > RATE / 2
    status, answer = server.ask("/v1/audio/transcriptions", wav, "audio/wav")
    assert status == 503 and "exo models get whisper-tiny" in answer["error"]["message"]
    assert server.end() == 0


def test_a_language_that_the_voice_does_not_speak_is_spoken_by_espeak(server: Server) -> None:
    text = {"input": "Guten Morgen, mein Freund.", "response_format": "pcm"}
    german = server.raw("/v1/audio/speech", {**text, "voice": "de"})[1]
    other = server.raw("/v1/audio/speech", {**text, "voice": "de", "model": "espeak"})[1]
    assert german == other  # espeak-ng says the same each time, Piper does not
    assert server.raw("/v1/audio/speech", {**text, "voice": "en"})[1] != german
