"""Sound cards by their names: which card is meant, what a fault says, and streams of the real libasound
on pseudo devices that a configuration of ALSA describes."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.board import alsa
from exo.board.alsa import CAPTURE, PLAYBACK, AlsaMicrophone, AlsaSpeaker, cards, find
from exo.board.pcm import samples
from exo.core.base.errors import BoardError

PI = """\
 0 [vc4hdmi0       ]: vc4-hdmi - vc4-hdmi-0
                      vc4-hdmi-0
 1 [Device         ]: USB-Audio - USB PnP Sound Device
                      C-Media Electronics Inc. USB PnP Sound Device at usb-20980000.usb-1, full speed
 2 [seeed2micvoicec]: seeed2micvoicec - seeed2micvoicec
                      seeed2micvoicec
"""
PARTS = {0: ["pcm0p"], 1: ["pcm0c", "pcm0p"], 2: ["pcm0p", "pcm0c"]}


def proc(root: Path, text: str = PI, parts: dict[int, list[str]] = PARTS) -> Path:
    """A /proc/asound."""
    root.mkdir(exist_ok=True)
    (root / "cards").write_text(text)
    for number, names in parts.items():
        for name in names:
            (root / f"card{number}" / name / "sub0").mkdir(parents=True, exist_ok=True)
    return root


def test_cards_are_read_with_all_their_names(tmp_path: Path) -> None:
    found = cards(proc(tmp_path / "a"))
    assert [(card.number, card.id) for card in found] == [
        (0, "vc4hdmi0"),
        (1, "Device"),
        (2, "seeed2micvoicec"),
    ]
    assert "C-Media" in found[1].names
    assert cards(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("name", "stream", "number"),
    [
        ("seeed2micvoicec", CAPTURE, 2),
        ("seeed", CAPTURE, 2),
        ("c-media", PLAYBACK, 1),
        ("device", CAPTURE, 1),  # an id before a name
        ("", CAPTURE, 1),  # a USB card before others
        ("", PLAYBACK, 1),
        ("hdmi", PLAYBACK, 0),
    ],
)
def test_a_card_is_found_by_a_part_of_its_name(
    tmp_path: Path, name: str, stream: int, number: int
) -> None:
    assert find(name, stream, proc(tmp_path / "a"))[0].number == number


def test_a_card_is_found_under_its_new_number(tmp_path: Path) -> None:
    root = proc(tmp_path / "a")
    moved = PI.replace(" 2 [seeed", " 5 [seeed")
    proc(root, moved, {5: ["pcm2c"]})
    card, device = find("seeed", CAPTURE, root)
    assert (card.number, device) == (5, 2)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("wm8960", PI, "no card is called wm8960, there is vc4hdmi0, Device, seeed2micvoicec"),
        ("hdmi", PI, "the card hdmi does not record"),
        ("", "--- no soundcards ---\n", "there is no sound card"),
        ("usb", "", "there is no sound card"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(BoardError, match=f"open the microphone: {why}"):
        find(name, CAPTURE, proc(tmp_path / "a", text))


def test_a_microphone_that_is_not_there_says_so_and_is_found_later(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="there is no sound card"):
        next(iter(AlsaMicrophone("seeed", tmp_path).record(threading.Event())))


# a libasound that is told to fail


class Library:
    """Calls of libasound: `codes` gives what a call returns next, else it works."""

    def __init__(self) -> None:
        self.codes: dict[str, list[int]] = {}
        self.calls: list[str] = []
        self.devices: list[str] = []
        self.open = 0
        self.rates: tuple[int, ...] = (16_000, 22_050, 48_000)
        self.rate = 0
        self.written, self.read = b"", 0

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            short = name.removeprefix("snd_pcm_")
            self.calls.append(short)
            if self.codes.get(short):
                code = self.codes[short].pop(0)
                if code < 0:
                    return code
            does = getattr(type(self), f"_{short}", None)
            return int(does(self, *arguments)) if does else 0

        return call

    def _open(self, handle: Any, device: bytes, stream: int, mode: int) -> int:
        self.devices.append(device.decode())
        self.open += 1
        handle._obj.value = 77
        return 0

    def _close(self, handle: Any) -> int:
        self.open -= 1
        return 0

    def _set_params(self, handle: Any, form: int, access: int, channels: int, rate: int, soft: int, latency: int) -> int:  # fmt: skip
        self.rate = rate
        return 0 if soft or rate in self.rates else -errno.EINVAL

    def _readi(self, handle: Any, buffer: Any, frames: int) -> int:
        self.read += frames
        ctypes.memmove(buffer, struct.pack("<h", 1000) * frames, 2 * frames)
        return frames

    def _writei(self, handle: Any, pcm: bytes, frames: int) -> int:
        self.written += pcm[: 2 * frames]
        return frames

    def _delay(self, handle: Any, frames: Any) -> int:
        frames._obj.value = 0
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr(alsa, "library", lambda: made)
    monkeypatch.setattr(alsa, "BUSY", 0.3)
    return made


def record(microphone: AlsaMicrophone, blocks: int) -> bytes:
    stop, heard = threading.Event(), b""
    for number, block in enumerate(microphone.record(stop), 1):
        heard += block
        if number >= blocks:
            stop.set()
    return heard


def test_a_card_is_opened_by_its_id_and_closed(tmp_path: Path, library: Library) -> None:
    microphone = AlsaMicrophone("seeed", proc(tmp_path / "a"))
    assert set(samples(record(microphone, 3))) == {1000}
    assert library.devices == ["plughw:CARD=seeed2micvoicec,DEV=0"]
    assert library.open == 0


def test_a_card_that_only_does_another_rate_is_changed_here(
    tmp_path: Path, library: Library
) -> None:
    library.rates = (48_000,)
    heard = record(AlsaMicrophone("seeed", proc(tmp_path / "a")), 4)
    assert library.rate == 48_000
    assert len(heard) / 2 == pytest.approx(library.read / 3, abs=32)


def test_a_rate_that_a_card_does_not_play_is_made_by_alsa(tmp_path: Path, library: Library) -> None:
    library.rates = (48_000,)
    speaker = AlsaSpeaker("seeed", proc(tmp_path / "a"))
    speaker.play(b"\1\0" * 10, 22_050)
    assert library.rate == 22_050
    assert library.written == b"\1\0" * 10


def test_a_busy_card_is_waited_for(tmp_path: Path, library: Library) -> None:
    library.codes["open"] = [-errno.EBUSY, -errno.EBUSY]
    assert record(AlsaMicrophone("seeed", proc(tmp_path / "a")), 1)


def test_who_holds_a_busy_card_is_named(tmp_path: Path, library: Library) -> None:
    root = proc(tmp_path / "a")
    status = root / "card2" / "pcm0c" / "sub0" / "status"
    status.write_text(f"state: RUNNING\nowner_pid   : {os.getpid()}\n")
    library.codes["open"] = [-errno.EBUSY] * 100
    with pytest.raises(BoardError, match=f"another program holds it .*process {os.getpid()}"):
        record(AlsaMicrophone("seeed", root), 1)
    library.codes.clear()
    assert record(AlsaMicrophone("seeed", root), 1)  # and the next press works


@pytest.mark.parametrize("code", [-errno.ENODEV, -errno.EIO, -errno.EBADFD])
def test_a_card_that_is_unplugged_in_the_middle_is_told(
    tmp_path: Path, library: Library, code: int
) -> None:
    library.codes["readi"] = [0, 0, code]
    heard = []
    with pytest.raises(BoardError, match="record: the microphone was unplugged; plug it in again"):
        heard += list(AlsaMicrophone("seeed", proc(tmp_path / "a")).record(threading.Event()))
    assert library.open == 0


def test_a_renumbered_card_is_found_by_the_next_recording(tmp_path: Path, library: Library) -> None:
    root = proc(tmp_path / "a")
    microphone = AlsaMicrophone("seeed", root)
    record(microphone, 1)
    (root / "cards").write_text("")
    with pytest.raises(BoardError, match="no sound card"):
        record(microphone, 1)
    proc(root, PI.replace(" 2 [seeed", " 4 [seeed"), {4: ["pcm1c"]})
    assert record(microphone, 1)
    assert library.devices[-1] == "plughw:CARD=seeed2micvoicec,DEV=1"


def test_an_overrun_is_mended(tmp_path: Path, library: Library) -> None:
    library.codes["readi"] = [0, -errno.EPIPE, 0]
    assert record(AlsaMicrophone("seeed", proc(tmp_path / "a")), 3)
    assert "recover" in library.calls


def test_a_card_that_falls_silent_is_given_up(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alsa, "DEAD", 0.05)
    library.codes["readi"] = [-errno.EAGAIN] * 100_000
    with pytest.raises(BoardError, match="fell silent"):
        record(AlsaMicrophone("seeed", proc(tmp_path / "a")), 1)


def test_the_speaker_writes_in_order_and_closes(tmp_path: Path, library: Library) -> None:
    speaker = AlsaSpeaker("seeed", proc(tmp_path / "a"))
    library.codes["writei"] = [0, -errno.EAGAIN, -errno.EPIPE]
    for value in (1, 2, 3):
        speaker.play(struct.pack("<h", value) * 100, 22_050)
    speaker.drain()
    assert list(samples(library.written)) == [1] * 100 + [2] * 100 + [3] * 100
    assert library.open == 0


def test_what_was_stopped_is_not_played(tmp_path: Path, library: Library) -> None:
    speaker = AlsaSpeaker("seeed", proc(tmp_path / "a"))
    before = speaker.stops
    speaker.stop()
    speaker.play(struct.pack("<h", 5) * 100, 22_050, before)
    assert library.written == b""
    speaker.play(struct.pack("<h", 6) * 100, 22_050, speaker.stops)
    assert len(library.written) == 200


def test_a_stop_gives_the_card_back(tmp_path: Path, library: Library) -> None:
    root = proc(tmp_path / "a")
    speaker = AlsaSpeaker("seeed", root)
    speaker.play(b"\0\0" * 10, 22_050)
    speaker.stop()
    assert library.open == 0
    proc(root, PI.replace(" 2 [seeed", " 3 [seeed"), {3: ["pcm1p"]})
    speaker.play(b"\0\0" * 10, 22_050)
    assert library.devices[-1] == "plughw:CARD=seeed2micvoicec,DEV=1"


def test_a_speaker_that_is_unplugged_is_told_and_opened_anew(
    tmp_path: Path, library: Library
) -> None:
    speaker = AlsaSpeaker("seeed", proc(tmp_path / "a"))
    library.codes["writei"] = [0, -errno.ENODEV]
    speaker.play(b"\0\0" * 10, 22_050)
    with pytest.raises(BoardError, match="play: the speaker was unplugged"):
        speaker.play(b"\0\0" * 10, 22_050)
    speaker.play(b"\0\0" * 10, 22_050)
    speaker.drain()
    assert library.open == 0 and library.calls.count("open") == 2


def test_a_speaker_whose_buffer_stays_full_is_given_up(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alsa, "DEAD", 0.05)
    library.codes["writei"] = [-errno.EAGAIN] * 100_000
    speaker = AlsaSpeaker("seeed", proc(tmp_path / "a"))
    with pytest.raises(BoardError, match="stopped playing"):
        speaker.play(b"\0\0" * 10, 22_050)
    assert library.open == 0


# the real libasound


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """ALSA with a device that records a file and one that plays into another."""
    try:
        alsa.library()
    except BoardError:
        pytest.skip("libasound is not here")
    (tmp_path / "in.raw").write_bytes(struct.pack("<h", 4321) * 160_000)
    (tmp_path / "asound.conf").write_text(
        f"""
pcm.nothing {{ type null }}
pcm.ears {{ type file; slave.pcm nothing; file /dev/null; infile {tmp_path}/in.raw; format raw }}
pcm.mouth {{ type file; slave.pcm nothing; file {tmp_path}/out.raw; format raw }}
"""
    )
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(tmp_path / "asound.conf"))
    yield tmp_path


def test_the_real_library_records(real: Path) -> None:
    assert 4321 in samples(record(AlsaMicrophone("pcm:ears"), 3))


def test_the_real_library_plays(real: Path) -> None:
    speaker = AlsaSpeaker("pcm:mouth")
    speaker.play(struct.pack("<h", 1234) * 2205, 22_050)
    speaker.drain()
    assert list(samples((real / "out.raw").read_bytes())).count(1234) == 2205


def test_the_real_library_says_what_is_not_there(real: Path) -> None:
    with pytest.raises(BoardError, match="open the microphone: it is not there"):
        record(AlsaMicrophone("pcm:nobody"), 1)
