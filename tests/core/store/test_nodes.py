"""Front matter: what is written is read back, what is broken is named with its line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exo.core.store.nodes import BadNode, Node, changed, parse, render, safe_name, safe_path, toml
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(max_size=60)
BODY = TEXT.map(lambda text: text.replace("\0", ""))
WORDS = st.lists(TEXT.filter(bool), max_size=3).map(tuple)
NODE = st.builds(
    Node,
    id=TEXT,
    title=TEXT,
    type=TEXT,
    domain=TEXT,
    summary=TEXT,
    load_when=WORDS,
    valid_from=TEXT,
    sources=WORDS,
    links=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    tags=WORDS,
    text=BODY,
)


@given(NODE)
def test_what_is_written_is_read_back(node: Node) -> None:
    assert parse("nodes/a/b.md", render(node)) == node


@given(NODE, TEXT)
def test_a_key_that_is_set_leaves_the_others(node: Node, value: str) -> None:
    data = changed("nodes/a/b.md", render(node), valid_until=value)
    assert parse("nodes/a/b.md", data) == replace(node, valid_until=value)


def test_a_hands_layout_survives_a_key_that_is_set() -> None:
    text = '+++\r\n# mine\r\nid = "x"\r\nvalid_until   = ""\r\nodd = 3\r\n+++\r\nvalid_until = no key\r\n'
    data = changed("nodes/a/x.md", text.encode(), valid_until="2026-11-30").decode()
    assert data == text.replace('valid_until   = ""', 'valid_until = "2026-11-30"')


def test_a_value_over_several_lines_is_set_too() -> None:
    text = '+++\nid = "x"\nlinks = [\n  {type = "explains", to = "y"},\n]\n+++\nbody\n'
    made = changed("nodes/a/x.md", text.encode(), links=(("explains", "z"),))
    assert parse("nodes/a/x.md", made).links == (("explains", "z"),)
    assert parse("nodes/a/x.md", made).text == "body\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('+++\r\ntitle = "Tee"\r\n+++\r\nbody\r\n', "Tee"),
        ('\ufeff+++\ntitle = "Tee"\n+++\n', "Tee"),
        ('+++\ntitle = "🍵 שלום"\n+++\n', "🍵 שלום"),
        ("+++\n+++", "x"),
        ("+++\nvalid_from = 2026-11-30\n+++\n", "x"),
        ("+++\nlinks = 3\nsources = {a = 1}\ntitle = [1]\n+++\n", "x"),
    ],
)
def test_unusual_files_are_read(text: str, title: str) -> None:
    assert parse("nodes/a/x.md", text.encode()).title == title


@pytest.mark.parametrize(
    ("data", "line", "why"),
    [
        (b"no fence\n", 1, "begin"),
        (b"+++\nid = 1\n", 1, "closing"),
        (b'+++\nid = "a"\nid = \n+++\n', 3, "Invalid"),
        (b'+++\nid = "a"\n\xff\n+++\n', 3, "UTF-8"),
        (b"+++\n+++\n\nab\0c", 4, "NUL"),
        (b"", 1, "begin"),
        (b"+++\n+++\n" + b"x" * 1_000_001, 1, "at most"),
        (b"+++\na = " + b"[" * 5000 + b"\n+++\n", 1, ""),
    ],
)
def test_what_does_not_parse_is_named_with_its_line(data: bytes, line: int, why: str) -> None:
    with pytest.raises(BadNode, match=r"nodes/a/x\.md") as caught:
        parse("nodes/a/x.md", data)
    assert caught.value.line == line
    assert why in str(caught.value)


@given(st.text())
def test_a_text_is_one_line_of_toml(text: str) -> None:
    assert "\n" not in toml(text)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a..b", ".x", "x.", "a\0b", "-a", "a b", "x" * 101, "a\n"]
)
def test_unsafe_names_are_refused(name: str) -> None:
    assert not safe_name(name)


@pytest.mark.parametrize(
    "path",
    ["../x", "nodes/../x.md", "/etc/passwd", "nodes/.x/a.md", "private/ledger.sqlite", "STORE.toml"]
    + ["nodes", "nodes//a.md", "PACK.md/x", "x/PACK.md", "nodes/a/b\udc80.md", ""],
)
def test_unsafe_paths_are_refused(path: str) -> None:
    assert not safe_path(path)


@pytest.mark.parametrize(
    "path", ["PACK.md", "INDEX.md", "nodes/a/b.md", "skills/x/SKILL.md", "nodes/日本/ü b.md"]
)
def test_safe_paths_are_not(path: str) -> None:
    assert safe_path(path)
