from __future__ import annotations

import pytest
from exo.device.keys import Keys, LineEditor, width
from hypothesis import given
from hypothesis import strategies as st


def names(raw: bytes) -> list[str]:
    keys = Keys()
    found = keys.feed(raw) + keys.idle()
    return [key.name or key.text for key in found]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a", ["a"]),
        (b"\xc3\xa9", ["é"]),
        (b"\r", ["Enter"]),
        (b"\t", ["Tab"]),
        (b" ", ["Space"]),
        (b"\x7f\x08", ["Backspace", "Backspace"]),
        (b"\x1b", ["Escape"]),
        (b"\x1b[A\x1b[B\x1bOC\x1b[D", ["Up", "Down", "Right", "Left"]),
        (b"\x1bOP\x1b[11~\x1b[[A", ["F1", "F1", "F1"]),
        (b"\x1bOQ\x1b[12~\x1b[[B", ["F2", "F2", "F2"]),
        (b"\x1bOR\x1b[13~\x1b[[C", ["F3", "F3", "F3"]),
        (b"\x1b[5~\x1b[6~\x1b[3~", ["PageUp", "PageDown", "Delete"]),
        (b"\x1b[1;5Cx", ["x"]),  # a chord that nobody uses
        (b"\x1b\x1b[A", ["Escape", "Up"]),
        (b"\x03", ["Quit"]),
        (b"\x00\x07", []),
        (b"\xff", ["\ufffd"]),
        (b"\x1b[200~two\nlines \x1b[A\x07\xc2\x9b\x1b[201~!", ["two lines [A", "!"]),
    ],
)
def test_keys(raw: bytes, expected: list[str]) -> None:
    assert names(raw) == expected


@pytest.mark.parametrize("raw", [b"\x1b[A", "日é".encode(), b"\x1b[200~pasted\x1b[201~"])
def test_bytes_may_come_one_by_one(raw: bytes) -> None:
    keys = Keys()
    one_by_one = [key for byte in raw for key in keys.feed(bytes([byte]))]
    assert "".join(key.name or key.text for key in one_by_one) == "".join(names(raw))


@given(st.binary(max_size=80))
def test_any_bytes_are_taken(raw: bytes) -> None:
    keys = Keys()
    keys.feed(raw)
    keys.idle()
    assert not keys.waiting


def test_a_long_paste_arrives_whole() -> None:
    text = "word " * 20_000
    assert names(b"\x1b[200~" + text.encode() + b"\x1b[201~") == [text]


def editor(text: str, *keys: str) -> LineEditor:
    line = LineEditor()
    line.insert(text)
    for key in keys:
        assert line.key(key)
    return line


def test_editing() -> None:
    assert editor("abc", "Left", "Backspace").text == "ac"
    assert editor("abc", "Home", "Delete").text == "bc"
    assert editor("abc", "Home", "Left", "Backspace", "End", "Right", "Delete").text == "abc"
    assert editor("abc", "Clear").text == ""
    assert not LineEditor().key("F1")


def test_what_is_one_letter_goes_at_once() -> None:
    assert editor("ae\u0301", "Backspace").text == "a"
    assert editor("a👩\u200d💻", "Backspace").text == "a"
    assert editor("日本", "Backspace").text == "日"
    assert editor("ae\u0301", "Left").cursor == 1


def test_the_window_keeps_the_cursor_in_sight() -> None:
    line = editor("0123456789" * 3)
    assert line.window(12) == ("01234567890123456789"[-11:], 11)
    assert editor("0123456789", "Home").window(5) == ("01234", 0)
    shown, column = editor("日本語" * 5).window(9)
    assert width(shown) <= 9
    assert column == width(shown)


def test_a_line_has_a_limit() -> None:
    line = LineEditor(limit=5)
    line.insert("0123456789")
    line.insert("x")
    assert line.text == "01234"


@given(st.lists(st.one_of(st.text(max_size=5), st.sampled_from(["Left", "Right", "Backspace", "Delete", "Home", "End"])), max_size=40), st.integers(3, 40))  # fmt: skip
def test_no_editing_breaks_the_line(steps: list[str], columns: int) -> None:
    line = LineEditor()
    for step in steps:
        if not line.key(step):
            line.insert(step)
        assert 0 <= line.cursor <= len(line.text)
    shown, column = line.window(columns)
    assert width(shown) <= columns
    assert 0 <= column <= columns
