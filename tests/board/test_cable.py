"""Both ends' common words: long messages in parts, the proof of the PIN, the bounded queue."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from exo.board.cable import JSON, PART, SIZE, Joiner, Outgoing, key, pack, proof
from exo.board.logs import Tail
from exo.core.base.frames import Reader
from hypothesis import given
from hypothesis import strategies as st

CHALLENGE = {"salt": "00" * 16, "n": 2**14, "r": 8, "p": 1}


def joined(frames: list[bytes]) -> list[bytes]:
    joiner, found = Joiner(), []
    for kind, payload in Reader().feed(b"".join(frames)):
        whole = payload if kind == JSON else joiner.take(payload) if kind == PART else None
        if whole is not None:
            found.append(whole)
    return found


@given(st.lists(st.integers(0, 5 * SIZE), max_size=6))
def test_messages_of_any_length_come_whole(sizes: list[int]) -> None:
    messages = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    frames = [part for n, raw in enumerate(messages) for part in pack(raw, n)]
    assert joined(frames) == messages


@given(st.integers(2, 6), st.data())
def test_one_that_lost_a_part_is_dropped_and_the_next_is_not(
    count: int, data: st.DataObject
) -> None:
    parts = pack(b"x" * (SIZE * count), 1)
    lost = data.draw(st.integers(0, len(parts) - 1))
    after = b"y" * (3 * SIZE)
    assert joined([*parts[:lost], *parts[lost + 1 :], *pack(after, 2)]) == [after]


def test_parts_of_two_messages_may_come_in_turns() -> None:
    first, second = b"a" * 3000, b"b" * 3000
    frames = [part for pair in zip(pack(first, 1), pack(second, 2), strict=True) for part in pair]
    assert joined(frames) == [first, second]


def test_a_message_without_end_takes_no_memory() -> None:
    joiner = Joiner()
    for number in range(1000):
        joiner.take(pack(b"x" * 3000, number)[0][5:-4])
    assert len(joiner._open) <= 5


def test_the_key_is_what_the_device_keeps() -> None:
    kept = hashlib.scrypt(b"2468", salt=bytes(16), dklen=32, maxmem=2**26, n=2**14, r=8, p=1)
    assert key("2468", CHALLENGE) == kept
    assert proof(kept, "client", "a", "b") != proof(kept, "device", "a", "b")


@pytest.mark.parametrize("change", [{"n": 2**30}, {"r": 1000}, {"salt": "zz"}, {"p": 0}])
def test_a_challenge_that_would_cost_too_much_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        key("2468", CHALLENGE | change)


def drained(out: Outgoing, step: int = 1000) -> bytes:
    found = b""
    while piece := out.peek()[:step]:
        found += piece
        out.wrote(len(piece))
    return found


@given(
    st.lists(st.tuples(st.integers(1, 20), st.sampled_from("elf")), max_size=30), st.integers(1, 9)
)
def test_nothing_that_was_put_is_lost_or_mixed(rows: list[tuple[int, str]], step: int) -> None:
    out, events = Outgoing(lambda: None), 0
    wanted = []
    for n, (size, sort) in enumerate(rows):
        data = bytes([n + 1]) * size
        wanted.append(data)
        events += sort == "e"
        out.put(data, events if sort == "e" else 0, first=sort == "f")
        if n % 3 == 0:
            piece = out.peek()[:1]
            out.wrote(len(piece))
            wanted[-1:] = [data]
    assert out.size >= 0
    rest = drained(out, step)
    assert out.size == 0 and out.written == events
    runs = [bytes([b]) for n, b in enumerate(rest) if n == 0 or rest[n - 1] != b]
    assert len(runs) == len(set(runs))  # no row stands inside another


def test_answers_overtake_events_and_the_links_words_overtake_all() -> None:
    out = Outgoing(lambda: None)
    out.put(b"begun", 1)
    out.wrote(2)
    out.put(b"event", 2)
    out.put(b"answer")
    out.put(b"pong", first=True)
    assert drained(out) == b"gun" + b"pong" + b"answer" + b"event"


def test_events_are_forgotten_but_what_has_begun_is_ended() -> None:
    out = Outgoing(lambda: None)
    out.put(b"begun", 1)
    out.wrote(1)
    out.put(b"event", 2)
    out.put(b"answer")
    out.forget_events()
    assert drained(out) == b"egunanswer" and out.written == 1
    out.put(b"half")
    out.wrote(1)
    assert out.close() == b"alf"
    out.put(b"late")
    assert out.peek() == b""


def test_a_tail_reads_new_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("old\n")
    tail = Tail(tmp_path)
    with log.open("a") as file:
        file.write("new\nhalf")
    assert tail.read() == [("a", "new")]
    with log.open("a") as file:
        file.write(" and half\n")
    (tmp_path / "b.log").write_text("first\n")
    assert tail.read() == [("a", "half and half"), ("b", "first")]
    log.write_text("anew\n")
    assert tail.read() == [("a", "anew")]
