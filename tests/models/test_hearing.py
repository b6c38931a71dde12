"""Hearing while it arrives: the end of speech is told before the recording ends; and no words where nobody
speaks. The clips are those of `noises.toml`; all of them are heard by `exo bench hearing`."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from exo.core.base.unix import connect
from exo.device import earcons
from exo.models import noises
from exo.models.audio import RATE, from_pcm, from_wav, resample, to_pcm
from exo.models.whisper import agreement
from modelkit import Server

PCM = "audio/pcm;rate=16000"
SENTENCE = "Remind me to water the plants tomorrow."


class Duplex:
    """A transcription under way, on a bare socket: what goes up and what comes down."""

    def __init__(self, server: Server, query: str = "", kind: str = PCM) -> None:
        self._link = connect(server.socket, 60)
        head = f"POST /v1/audio/transcriptions?stream=true{query} HTTP/1.1\r\nHost: x\r\n"
        head += f"Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._link.sendall(head.encode())
        self._down = self._link.makefile("rb")

    def send(self, pcm: bytes) -> None:
        for place in range(0, len(pcm), 1024):
            piece = pcm[place : place + 1024]
            self._link.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end(self) -> None:
        self._link.sendall(b"0\r\n\r\n")

    def status(self) -> int:
        return int(self._down.readline().split()[1])

    def events(self) -> Iterator[dict[str, Any]]:
        for line in self._down:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    def close(self) -> None:
        self._link.shutdown(socket.SHUT_RDWR)
        self._link.close()


def quiet(seconds: float) -> bytes:
    return bytes(2 * int(RATE * seconds))


def said(server: Server, text: str) -> bytes:
    return to_pcm(from_wav(server.raw("/v1/audio/speech", {"input": text})[1]))


def test_the_end_of_speech_is_told_while_the_recording_runs(server: Server) -> None:
    line = Duplex(server, "&language=en&pause=0.6")
    events = line.events()
    line.send(quiet(0.5) + said(server, SENTENCE) + quiet(1.0))
    assert next(events) == {"type": "speech.started"}
    assert next(events) == {"type": "speech.ended"}  # and the recording has not ended
    line.send(said(server, "Yes.") + quiet(0.5))
    assert next(events) == {"type": "speech.started"}
    line.end()
    done = next(event for event in events if event["type"] != "speech.ended")
    assert done["type"] == "transcript.text.done"
    assert "water the plants" in done["text"].lower()
    assert len(done["speech"]) >= 2 and done["language"] == "en"
    assert list(events) == []


def test_silence_has_no_events_but_the_last(server: Server) -> None:
    line = Duplex(server)
    line.send(quiet(2))
    line.end()
    assert [(each["type"], each["text"]) for each in line.events()] == [
        ("transcript.text.done", "")
    ]


@pytest.mark.parametrize("kind", ["real", "fake"])
def test_who_hangs_up_leaves_nothing_behind(server: Server, fake: Server, kind: str) -> None:
    which = server if kind == "real" else fake
    for _ in range(3):
        line = Duplex(which)
        line.send(quiet(0.3))
        line.close()
    assert which.get("/health")["status"] == "ok"
    busy = [each for each in which.get("/health")["loaded"] if each["role"] == "transcription"]
    assert not any(each["in_use"] for each in busy)


@pytest.mark.parametrize(
    ("query", "kind", "said"),
    [
        ("&pause=0", PCM, "pause"),
        ("&pause=nan", PCM, "pause"),
        ("&pause=soon", PCM, "pause"),
        ("", "audio/wav", "audio/pcm"),
        ("", "audio/pcm;rate=8000", "16000"),
        ("&language=de", PCM, "hears English alone"),
    ],
)
def test_what_cannot_be_heard_is_refused_before_anybody_speaks(
    server: Server, query: str, kind: str, said: str
) -> None:
    line = Duplex(server, query, kind)
    assert line.status() == 400
    body = line._down.read().decode()
    assert said in body and "bad_request" in body
    line.close()


def test_a_recording_that_is_too_long_ends_with_the_reason(server: Server) -> None:
    line = Duplex(server)
    line.send(b"")
    pcm = quiet(10)
    for _ in range(13):
        line._link.sendall(b"%x\r\n%b\r\n" % (len(pcm), pcm))
    assert "longer than 120 s" in list(line.events())[-1]["error"]["message"]
    line.close()


def test_the_scripted_server_tells_the_same(fake: Server) -> None:
    line = Duplex(fake, "&pause=0.5")
    line.send(to_pcm(0.5 * np.ones(RATE // 2, np.float32)) + quiet(1))
    line.end()
    kinds = [each["type"] for each in line.events()]
    assert kinds == ["speech.started", "speech.ended", "transcript.text.done"]


@pytest.mark.parametrize("name", noises.MAKERS)
@pytest.mark.parametrize("number", [3, 11])
def test_no_word_is_made_up(server: Server, name: str, number: int) -> None:
    pcm = to_pcm(noises.clip(name, "held", number))
    assert server.ask("/v1/audio/transcriptions?language=en", pcm, PCM)[1]["text"] == ""


@pytest.mark.parametrize("name", earcons.TABLE)
def test_our_own_tones_are_no_words(server: Server, name: str) -> None:
    tone = resample(from_pcm(earcons.tone(name)), earcons.RATE)
    pcm = quiet(0.3) + to_pcm(noises.at(tone, -14)) + quiet(1)
    assert server.ask("/v1/audio/transcriptions?language=en", pcm, PCM)[1]["text"] == ""


@pytest.mark.parametrize("text", noises.table()["speech"]["held"][::3])
def test_what_is_said_is_not_dropped(server: Server, text: str) -> None:
    pcm = quiet(0.3) + said(server, text) + quiet(0.5)
    heard = server.ask("/v1/audio/transcriptions?language=en", pcm, PCM)[1]["text"]
    assert agreement(text, heard) > 0.5  # the voice says nothing twice alike


def test_every_row_of_the_table_is_made_and_the_same_each_time() -> None:
    assert {row["name"] for row in noises.table()["noise"]} == set(noises.MAKERS)
    for row in noises.table()["noise"]:
        one, two = (noises.clip(row["name"], "held", 5) for _ in range(2))
        assert len(one) == noises.table()["clip"] * RATE
        assert np.array_equal(one, two)
        low, high = row["dbfs"]
        level = 20 * np.log10(np.sqrt(np.mean(one**2)))
        assert low - 3 < level < high + 3
        assert not np.array_equal(one, noises.clip(row["name"], "dev", 5))


def test_agreement_counts_words_in_order() -> None:
    assert agreement("Yes, please.", "yes please") == 1.0
    assert agreement("one two three", "three two one") < 0.5
    assert agreement("", "word") == 0.0
