"""Frames on a noisy line: whole ones arrive whatever lies around them and however they are cut."""

from __future__ import annotations

import pytest
from exo.core.base.frames import LONGEST, START, TEXT, FrameError, Reader, frame
from hypothesis import given
from hypothesis import strategies as st

FRAMES = st.lists(st.tuples(st.integers(1, 255), st.binary(max_size=300)), max_size=6)
NOISE = st.binary(max_size=40).map(lambda data: data.replace(bytes([START]), b"x"))


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    cut, at = [], 0
    for size in sizes:
        cut.append(data[at : at + size])
        at += size
    return [*cut, data[at:]]


def frames_of(rows: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return [row for row in rows if row[0] != TEXT]


def text_of(rows: list[tuple[int, bytes]]) -> bytes:
    return b"".join(data for kind, data in rows if kind == TEXT)


def test_the_bytes_of_a_frame_are_these() -> None:
    assert frame(1, b"hi").hex() == "fe010200fd6869752e01c8"


@given(FRAMES, st.lists(NOISE, min_size=7, max_size=7), st.lists(st.integers(0, 50), max_size=40))
def test_frames_between_text_arrive_in_pieces(
    sent: list[tuple[int, bytes]], noise: list[bytes], sizes: list[int]
) -> None:
    line = b"".join(text + frame(*each) for text, each in zip(noise, sent, strict=False))
    line += noise[-1]
    reader = Reader()
    rows = [row for piece in pieces(line, sizes) for row in reader.feed(piece)]
    assert frames_of(rows) == sent
    assert text_of(rows) == b"".join(noise[: len(sent)]) + noise[-1]
    assert reader.lost == 0 and not reader.waits


@given(st.binary(max_size=200), FRAMES)
def test_what_follows_any_bytes_is_found(noise: bytes, sent: list[tuple[int, bytes]]) -> None:
    reader = Reader()
    rows = reader.feed(noise + b"".join(frame(*each) for each in sent))
    while reader.waits:  # noise may have begun a long frame
        rows += reader.give_up()
    tail = frames_of(rows)
    assert tail[len(tail) - len(sent) :] == sent


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_changed_byte_is_no_frame(payload: bytes, data: st.DataObject) -> None:
    line = bytearray(frame(7, payload))
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] ^= data.draw(st.integers(1, 255))
    reader = Reader()
    rows = reader.feed(bytes(line))
    while reader.waits:
        rows += reader.give_up()
    assert (7, payload) not in rows


@given(st.binary(max_size=80), st.integers(0, 90), FRAMES)
def test_a_cut_frame_costs_itself_alone(
    payload: bytes, kept: int, sent: list[tuple[int, bytes]]
) -> None:
    begun = frame(3, payload)[: min(kept, len(payload) + 8)]
    reader = Reader()
    reader.feed(begun)
    rows = reader.give_up()
    rows += reader.feed(b"".join(frame(*each) for each in sent))
    while reader.waits:
        rows += reader.give_up()
    assert frames_of(rows)[-len(sent) :] == sent or not sent


def test_a_header_that_announces_too_much_is_noise() -> None:
    reader = Reader(limit=10)
    assert reader.feed(frame(1, bytes(11)) + frame(2, b"ok"))[-1] == (2, b"ok")
    assert reader.lost


def test_what_cannot_be_framed_is_told() -> None:
    with pytest.raises(FrameError):
        frame(0, b"")
    with pytest.raises(FrameError):
        frame(1, bytes(LONGEST + 1))
