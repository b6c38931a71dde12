"""Bringing in what others wrote: every source, with the files that break importers."""

from __future__ import annotations

import json
import os
import socket
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.store.replay import Item
from exo.core.store.store import Store
from exo.tools import cli
from exo.tools.importers import SOURCES, bookmarks, jsonl, markdown
from exo.tools.importers.command import Tally, checked
from exo.tools.importers.record import LONGEST, NewItem, Passed, decode, moment, number
from hypothesis import given
from hypothesis import strategies as st

KEY = "sk-" + "live1234567890abcdefghij"  # looks like a secret, is none


class Read:
    """What a source made of a path."""

    def __init__(self, records: Any) -> None:
        self.records = list(records)
        self.items = [each for each in self.records if isinstance(each, NewItem)]
        self.passed = [each for each in self.records if isinstance(each, Passed)]

    def __getitem__(self, external: str) -> NewItem:
        (item,) = [each for each in self.items if each.external == external]
        return item

    def whys(self, kind: str) -> dict[str, str]:
        return {each.name: each.why for each in self.passed if each.kind == kind}


@pytest.fixture
def vault(tmp_path: Path) -> Callable[..., Read]:
    """Files by their names, read as Markdown."""

    def read(files: dict[str, str | bytes]) -> Read:
        folder = tmp_path / "vault"
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Read(markdown.read(folder))

    return read


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(content: str | bytes, name: str = "file") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# ---- Markdown ------------------------------------------------------------------------------------


def test_a_note_is_its_text_title_tags_and_date(vault: Callable[..., Read]) -> None:
    read = vault({"a/2024-02-29 walk.md": "# A walk\nWith #dog and #travel/coast, not #12.\n"})
    item = read["vault/a/2024-02-29 walk.md"]
    assert item.title == "A walk"
    assert item.text == "# A walk\nWith #dog and #travel/coast, not #12."
    assert item.tags == ("dog", "travel/coast")
    assert item.created == "2024-02-29T12:00:00Z"


def test_properties_are_strings(vault: Callable[..., Read]) -> None:
    head = "---\ntitle: T\ntags: [x, '#y']\naliases:\n- Other name\nstart: 12:30\nknown: no\ncreated: 2023-05-06\n---\nbody"
    item = vault({"n.md": head})["vault/n.md"]
    assert item.title == "T" and item.tags == ("x", "y") and item.created == "2023-05-06T12:00:00Z"
    assert item.text == "aliases: Other name\nstart: 12:30\nknown: no\nbody"


@pytest.mark.parametrize(
    "head",
    [
        "a: [1, 2",
        "a: &x [1]\nb: *x",  # aliases make gigabytes of a few lines
        "\tx: 1",
        "just words",
        "- a\n- list",
        "? {a: b}\n: c",
        "[" * 3000,
        "a: !!python/object/apply:os.system ['true']\n  - broken",
    ],
)
def test_properties_that_are_none_stay_text(vault: Callable[..., Read], head: str) -> None:
    read = vault({"n.md": f"---\n{head}\n---\nbody"})
    assert read["vault/n.md"].text.endswith("---\nbody")
    assert read.whys("remark")["n.md"] == "properties that are no YAML: kept as text"


def test_a_rule_at_the_top_is_no_property(vault: Callable[..., Read]) -> None:
    assert vault({"n.md": "---\nnever closed: x\n"})["vault/n.md"].text == "---\nnever closed: x"
    assert vault({"n.md": "---\n---\nbody"})["vault/n.md"].text == "body"


def test_wiki_links_are_resolved_over_the_whole_vault(vault: Callable[..., Read]) -> None:
    read = vault(
        {
            "a/n.md": "[[Target]] [[target|alias]] [[b/Deep#Part]] ![[Embedded]] ![[pic.png|300]] [[nowhere]] [[#Here]]",
            "a/Target.md": "near",
            "b/Target.md": "far",
            "b/Deep.md": "deep",
            "c/Embedded.md": "embedded",
        }
    )
    assert read["vault/a/n.md"].text == (
        "Target alias (Target) Deep: Part Embedded pic.png nowhere Here\n"
        "Links: a/Target.md, b/Deep.md, c/Embedded.md"
    )
    assert read.whys("remark") == {"a/n.md": "links to no note: nowhere"}


def test_links_out_of_the_vault_are_words(vault: Callable[..., Read], tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside")
    read = vault({"n.md": "[[../outside]] ![[/etc/passwd]]"})
    assert read["vault/n.md"].text == "outside passwd"
    assert len(read.items) == 1


def test_comments_are_dropped_but_not_in_code(vault: Callable[..., Read]) -> None:
    text = "a %%hidden `x` \n\n more%% b\n```\n%%time #no [[no]]\n```\n`%%` c %% `#no` [[n]]\n"
    item = vault({"n.md": text})["vault/n.md"]
    assert item.text == "a  b\n```\n%%time #no [[no]]\n```\n`%%` c %% `#no` n\nLinks: n.md"
    assert item.tags == ()


def test_hidden_and_other_files_are_passed_by(vault: Callable[..., Read]) -> None:
    names = (
        ".obsidian/x.md",
        ".trash/x.md",
        ".hidden.md",
        "a/.git/x.md",
        "p.png",
        "UPPER.MD",
        "b.markdown",
    )
    read = vault(dict.fromkeys(names, "words"))
    assert [item.external for item in read.items] == ["vault/UPPER.MD", "vault/b.markdown"]
    assert read.whys("skipped") == {"p.png": "not Markdown"}


def test_links_of_the_file_system_are_not_followed(
    vault: Callable[..., Read], tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/folder").symlink_to(outside)
    (tmp_path / "vault/file.md").symlink_to(outside / "secret.md")
    (tmp_path / "vault/loop").symlink_to(tmp_path / "vault")
    read = vault({"n.md": "here"})
    assert [item.text for item in read.items] == ["here"]
    assert set(read.whys("skipped")) == {"folder", "file.md", "loop"}


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"\xef\xbb\xbfcaf\xc3\xa9\r\nb\rc", "café\nb\nc", "utf-8"),
        ("Grüße".encode("utf-16"), "Grüße", "utf-16"),
        ("Grüße".encode("utf-32"), "Grüße", "utf-32"),
        ("Grüße “x”".encode("cp1252"), "Grüße “x”", "cp1252"),
        (b"a\0b", "ab", "utf-8"),
        ("👍🏽 שלום".encode(), "👍🏽 שלום", "utf-8"),
        (b"", "", "utf-8"),
        ("é".encode()[:1], "", "utf-8"),
    ],
)
def test_bytes_become_text(data: bytes, text: str, encoding: str) -> None:
    assert decode(data) == (text, encoding)


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        text, _ = decode(data)
    except ValueError:
        return
    assert "\0" not in text and "\r" not in text
    text.encode()


def test_what_is_no_text_fails_by_name(vault: Callable[..., Read]) -> None:
    read = vault({"n.md": bytes(range(32)) * 40, "ok.md": "ok"})
    assert read.whys("failed") == {"n.md": "not text"}
    assert len(read.items) == 1


def test_an_empty_note_is_skipped(vault: Callable[..., Read]) -> None:
    read = vault({"a.md": "", "b.md": " \n\t\n", "c.md": "%%all hidden%%", "d.md": b"\xef\xbb\xbf"})
    assert not read.items and set(read.whys("skipped").values()) == {"empty"}


def test_a_note_of_50_mb_is_cut_and_takes_no_memory(
    vault: Callable[..., Read], tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    with (tmp_path / "vault/big.md").open("wb") as file:
        for _ in range(50):
            file.write(b"a line of forty characters, more or less\n" * 25_000)
    tracemalloc.start()
    read = vault({})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert LONGEST // 2 < len(read["vault/big.md"].text) <= LONGEST
    assert read.whys("remark") == {"big.md": f"cut at {LONGEST:,} bytes"}
    assert peak < 8_000_000


def test_a_file_that_cannot_be_read_fails_by_name(
    vault: Callable[..., Read], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, most: int) -> bytes:
        if path.name == "locked.md":
            raise PermissionError(13, "Permission denied")
        return path.read_bytes()

    monkeypatch.setattr(markdown, "read_bytes", refuse)
    read = vault({"locked.md": "x", "open.md": "y"})
    assert read.whys("failed") == {"locked.md": "Permission denied"}
    assert [item.text for item in read.items] == ["y"]


def test_pipes_and_sockets_are_not_waited_for(vault: Callable[..., Read], tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    os.mkfifo(tmp_path / "vault/pipe.md")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(tmp_path / "vault/socket.md"))
        read = vault({"folder.md/n.md": "in a folder that is named like a note"})
    assert set(read.whys("skipped").values()) == {"not a plain file"}
    assert len(read.items) == 1
    for source in (jsonl.read, bookmarks.read):
        with pytest.raises(ExoError, match="not a plain file"):
            list(source(tmp_path / "vault/pipe.md"))


def test_strange_names_are_names(vault: Callable[..., Read], tmp_path: Path) -> None:
    names = ["a..b.md", "x/...y/z.md", "new\nline.md", "-rf.md", "cafe\u0301.md", "% s.md"]
    read = vault(dict.fromkeys(names, "words"))
    (tmp_path / "vault" / os.fsdecode(b"\xff\xfe.md")).write_text("bytes")
    read = vault({})
    externals = {item.external for item in read.items}
    assert "vault/caf\u00e9.md" in externals and "vault/\\xff\\xfe.md" in externals
    assert "vault/a..b.md" in externals and len(externals) == len(names)
    assert all(item.title.isprintable() for item in read.items)


def test_the_same_vault_elsewhere_gives_the_same_items(
    vault: Callable[..., Read], tmp_path: Path
) -> None:
    first = vault({"b.md": "[[a]]", "a.md": "2", "sub/c.md": "3"})
    (tmp_path / "other").mkdir()
    (tmp_path / "vault").rename(tmp_path / "other/vault")
    os.utime(tmp_path / "other/vault/a.md", (1, 1))
    assert Read(markdown.read(tmp_path / "other/vault")).records == first.records


def test_a_large_vault_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    for n in range(10_000):
        (folder / f"n{n:05}.md").write_text(f"note {n} [[n{n + 1:05}]]")
    records = markdown.read(folder)
    assert isinstance(next(records), NewItem)
    (folder / "n09999.md").write_text("changed while it was being read")
    rest = Read(records)
    assert len(rest.items) == 9_999
    assert rest["vault/n09999.md"].text == "changed while it was being read"


def test_hostile_markup_takes_linear_time(vault: Callable[..., Read]) -> None:
    for text in (
        "[[" * 100_000,
        "%%" * 99_999,
        "`" * 200_001,
        "#" * 200_000,
        "```\n" * 50_001,
        "![[a|" * 40_000,
    ):
        vault({"n.md": text})
    vault({"n.md": "---\n" * 60_000})


@given(st.text(max_size=400))
def test_any_text_makes_a_note_or_says_why_not(text: str) -> None:
    names = markdown._Names(["n.md"])
    item, _ = markdown._item(Path("v"), "n.md", {}, text.replace("\0", ""), names)
    assert item.title and "\0" not in item.text


def test_without_the_library_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ExoError, match="PyYAML is missing; pip install"):
        list(markdown.read(tmp_path))


def test_a_path_that_is_no_folder_is_named(tmp_path: Path, file: Callable[..., Path]) -> None:
    for path in (tmp_path / "none", file("x")):
        with pytest.raises(ExoError, match="name a folder"):
            list(markdown.read(path))


# ---- bookmarks -----------------------------------------------------------------------------------

BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>
<DL><p>
    <DT><H3 ADD_DATE="1" PERSONAL_TOOLBAR_FOLDER="true">Bar</H3>
    <DL><p>
        <DT><A HREF="https://example.org/a?x=1&amp;y=2" ADD_DATE="1700000000" TAGS="one,two words">A &amp; B</A>
        <DD>What it is
        <DT><H3>Bread &amp; butter</H3>
        <DL><p>
            <DT><A HREF="https://example.org/b" ADD_DATE="1700000000000">Nested</A>
            <HR>
        </DL><p>
    </DL><p>
    <DT><A HREF="javascript:alert(1)">Script</A>
    <DT><A HREF="https://example.org/c"></A>
</DL><p>
"""


def test_bookmarks_have_folders_dates_and_descriptions(file: Callable[..., Path]) -> None:
    read = Read(bookmarks.read(file(BOOKMARKS)))
    first = read["https://example.org/a?x=1&y=2"]
    assert (first.title, first.text, first.tags) == ("A & B", "What it is", ("one", "two words"))
    assert first.created == "2023-11-14T22:13:20Z" and first.trust == "third_party"
    nested = read["https://example.org/b"]
    assert nested.tags == ("Bread & butter",) and nested.created == first.created
    last = read["https://example.org/c"]
    assert last.title == "https://example.org/c" and last.tags == () and last.created == ""
    assert read.whys("skipped") == {"line 15": "no web address"}


def test_broken_html_gives_what_it_can(file: Callable[..., Path]) -> None:
    text = (
        "</DL></DL><DT><A HREF='https://example.org/1'>never closed\n<DT><A HREF=https://example.org/2>unquoted</A>"
        "<A>no address</A></H3><DD>stray<DL><H3>open<DL><A href='https://example.org/3' add_date='soon'>three"
    )
    read = Read(bookmarks.read(file(text)))
    assert [item.title for item in read.items] == ["never closed", "unquoted", "three"]
    assert read.items[2].created == ""
    assert len(read.whys("skipped")) == 1


def test_a_bookmark_is_read_in_whatever_pieces(
    file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file(b"\xef\xbb\xbf" + BOOKMARKS.replace("Nested", "Grüße 👍").encode())
    whole = Read(bookmarks.read(path))
    monkeypatch.setattr(bookmarks, "CHUNK", 7)
    assert [item.title for item in Read(bookmarks.read(path)).items] == [
        i.title for i in whole.items
    ]
    assert "Grüße 👍" in [item.title for item in whole.items]


def test_a_tag_without_end_stops_the_reading(file: Callable[..., Path]) -> None:
    path = file(b'<A HREF="https://example.org/1">one</A><DT><A HREF="' + b"x" * 3_000_000)
    read = Read(bookmarks.read(path))
    assert [item.title for item in read.items] == ["one"]
    assert list(read.whys("failed").values()) == ["a tag without an end; the rest is not read"]


@given(st.text(alphabet="<>!/[]-?aAdDhH3\"'= &;#x\n", max_size=80))
def test_any_markup_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.html"
    path.write_text(f"{text}<DL><A HREF='https://example.org/'>title</A>{text}")
    for each in bookmarks.read(path):
        assert isinstance(each, Passed) or each.url


@pytest.mark.parametrize("text", ["<![x[", "<!x[", "<![", "<!DOCTYPE x [<!y"])
def test_markup_that_is_none_is_passed_over(file: Callable[..., Path], text: str) -> None:
    read = Read(bookmarks.read(file(f"<DL><A HREF='https://example.org/'>one</A><DT>{text}>")))
    assert [item.title for item in read.items] == ["one"]


def test_words_between_many_tags_take_linear_time(file: Callable[..., Path]) -> None:
    path = file("<A HREF='https://example.org/'>" + "x<b>" * 200_000)
    assert len(Read(bookmarks.read(path)).items) == 1


def test_another_file_is_no_bookmarks(file: Callable[..., Path]) -> None:
    for content in ("", "words", "{}", b"\xff\xfe\x00"):
        assert list(Read(bookmarks.read(file(content))).whys("failed")) == ["file"]


@pytest.mark.parametrize(
    "value", [1_700_000_000, 1_700_000_000_000, 1_700_000_000_000_000, 13_344_473_600_000_000]
)
def test_stamps_of_any_unit_are_one_moment(value: int) -> None:
    assert number(value) == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize("value", [0, -5, 10**30, float("nan"), float("inf"), 9e17])
def test_a_stamp_that_is_none_is_unknown(value: float) -> None:
    assert number(value) == ""


# ---- JSON lines ----------------------------------------------------------------------------------


def test_lines_are_items(file: Callable[..., Path]) -> None:
    lines = [
        {
            "text": "first",
            "title": "T",
            "url": "https://example.org/",
            "tags": ["a", " b ", ""],
            "id": 7,
        },
        {"text": "second\nline", "created": "2024-01-02"},
        {"text": "third", "created": 1_700_000_000, "tags": "x,y", "unknown": {"a": 1}},
    ]
    read = Read(jsonl.read(file("\n\n".join(map(json.dumps, lines)))))
    assert read["7"] == NewItem("7", "T", "first", "https://example.org/", ("a", "b"))
    assert [item.title for item in read.items] == ["T", "second", "third"]
    assert [item.created for item in read.items] == [
        "",
        "2024-01-02T12:00:00Z",
        "2023-11-14T22:13:20Z",
    ]
    assert read.items[2].tags == ("x", "y")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ("{}", "no text"),
        ('{"text": " "}', "no text"),
        ('{"text": 1}', "text is not a string"),
        ('{"text": "x", "title": []}', "title is not a string"),
        ('{"text": "x", "tags": [1]}', "tags are neither a list of strings nor a string"),
        ('{"text": "x", "tags": {"a": 1}}', "tags are neither a list of strings nor a string"),
        ('{"text": "x", "id": true}', "id is neither a string nor a number"),
        ('{"text": "x", "created": "soon"}', "created is no date between 1970 and 2100"),
        ('{"text": "x", "created": NaN}', "created is no date between 1970 and 2100"),
        ('{"text": "x", "created": true}', "created is no date between 1970 and 2100"),
        ("[" * 100_000, "not JSON"),
        (b'{"text": "\xff"}', "not UTF-8"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_taken(
    file: Callable[..., Path], line: str | bytes, why: str
) -> None:
    data = line.encode() if isinstance(line, str) else line
    read = Read(
        jsonl.read(file(b'\xef\xbb\xbf{"text": "before"}\r\n' + data + b'\n{"text": "after"}'))
    )
    assert [item.text for item in read.items] == ["before", "after"]
    assert read.whys("failed") == {"line 2": why}


def test_a_line_too_long_is_skipped_whole(file: Callable[..., Path]) -> None:
    long = json.dumps({"text": "x" * 3_000_000})
    read = Read(jsonl.read(file(f'{long}\n{{"text": "after"}}\n{long}')))
    assert [item.text for item in read.items] == ["after"]
    assert set(read.whys("skipped")) == {"line 1", "line 3"}


def test_a_long_text_is_cut_and_said(file: Callable[..., Path]) -> None:
    read = Read(jsonl.read(file(json.dumps({"text": "word " * 100_000}))))
    assert len(read.items[0].text) <= LONGEST and list(read.whys("remark")) == ["line 1"]


def test_nul_and_half_letters_do_not_get_through(file: Callable[..., Path]) -> None:
    read = Read(jsonl.read(file(json.dumps({"text": "a\0b\ud800c", "title": "\x1b[31mred"}))))
    assert read.items[0].text == "ab?c" and read.items[0].title == "[31mred"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=9) | st.integers(),
        st.lists,
        max_leaves=4,
    )
)
def test_any_value_of_any_field_is_taken_or_named(value: Any) -> None:
    for key in ("text", "title", "url", "tags", "id", "created"):
        line = json.dumps({"text": "words", **{key: value}}).encode()
        (record,) = [each for each in jsonl._line("line 1", line) if not _remark(each)]
        assert isinstance(record, NewItem) or record.kind == "failed"


def _remark(each: NewItem | Passed) -> bool:
    return isinstance(each, Passed) and each.kind == "remark"


# ---- the way into the store ----------------------------------------------------------------------


def test_the_table_is_the_sources() -> None:
    assert set(SOURCES) == {"markdown", "bookmarks", "jsonl"}


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024-01-02T10:30:00+02:00", "2024-01-02T08:30:00Z"),
        ("2024-01-02 10:30", "2024-01-02T10:30:00Z"),
        ("1969-12-31", ""),
        ("2200-01-01", ""),
        ("02.01.2024", ""),
        ("2024-13-01", ""),
    ],
)
def test_a_date_is_that_or_unknown(text: str, time: str) -> None:
    assert moment(text) == time


def test_secrets_are_gone_from_every_field() -> None:
    records = [
        NewItem(f"e {KEY}", f"t {KEY}", f"x {KEY}", f"https://example.org/?q={KEY}", (f"g {KEY}",)),
        Passed("failed", f"notes/{KEY}.md", "not text"),
    ]
    tally = Tally()
    assert KEY not in repr(list(checked(records, tally, lambda: None)))
    assert KEY not in repr(tally)


def test_a_dry_run_counts_and_writes_nothing(
    tmp_path: Path, file: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(f'{{"text": "first", "id": 1}}\n{{"text": "again {KEY}", "id": 1}}\nbad\n')
    home = tmp_path / "home"
    code = cli.main(["import", "jsonl", str(path), "--dry-run", "--json", "--home", str(home)])
    report = json.loads(capsys.readouterr().out)
    assert code == 1 and not home.exists()
    assert [report[name] for name in ("seen", "new", "duplicate", "skipped", "failed")] == [
        3,
        1,
        1,
        0,
        1,
    ]
    assert report["titles"] == ["first"]
    assert report["names"]["failed"] == ["line 3: not JSON"]


def test_an_unknown_source_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", "diary", "x"]) == 1
    assert "one of markdown, bookmarks, jsonl" in capsys.readouterr().err


def brought(home: Path, *words: str) -> int:
    return cli.main(["import", *words, "--json", "--home", str(home)])


def kept(home: Path) -> dict[str, Item]:
    """The items of a home by their ids."""
    place = Home(home)
    ledger = Ledger(place, SystemClock())
    try:
        return {item.id: item for item in Store(place, ledger, SystemClock()).items()}
    finally:
        ledger.close()


def entries(home: Path) -> int:
    ledger = Ledger(Home(home), SystemClock())
    try:
        return ledger.position()
    finally:
        ledger.close()


@pytest.fixture
def sources(tmp_path: Path, file: Callable[..., Path]) -> list[tuple[str, str]]:
    """One path of every source."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("first [[b]]")
    (folder / "b.md").write_text("second")
    (folder / "copy of b.md").write_text("second")
    lines = [{"text": "third", "id": 1}, {"text": "fourth"}, {"text": "other third", "id": 1}]
    return [
        ("markdown", str(folder)),
        ("bookmarks", str(file(BOOKMARKS, "marks.html"))),
        ("jsonl", str(file("\n".join(map(json.dumps, lines)), "lines"))),
    ]


def test_importing_twice_changes_nothing(
    sources: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    for source in sources:
        assert brought(home, *source) == 0
    before, items = entries(home), kept(home)
    capsys.readouterr()
    for source in sources:
        assert brought(home, *source) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["new"] == 0
        assert report["seen"] == report["duplicate"] + report["skipped"] > 0
    assert (entries(home), kept(home)) == (before, items)


def test_trust_follows_the_source(sources: list[tuple[str, str]], tmp_path: Path) -> None:
    for source in sources:
        brought(tmp_path / "home", *source)
    trusts = {item.source: item.trust for item in kept(tmp_path / "home").values()}
    assert trusts == {"markdown": "verified", "jsonl": "verified", "bookmarks": "third_party"}


def test_an_edited_note_takes_the_place_of_its_older_self(tmp_path: Path) -> None:
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    (folder / "a.md").write_text("before")
    brought(home, "markdown", str(folder))
    (folder / "a.md").write_text("after")
    brought(home, "markdown", str(folder))
    assert [item.text for item in kept(home).values()] == ["after"]


def test_two_texts_about_one_address_are_two_items(
    file: Callable[..., Path], tmp_path: Path
) -> None:
    lines = [
        {"text": text, "title": text, "url": "https://example.org/book", "id": text}
        for text in ("one", "two")
    ]
    brought(tmp_path / "home", "jsonl", str(file("\n".join(map(json.dumps, lines)))))
    assert {item.title for item in kept(tmp_path / "home").values()} == {"one", "two"}


def test_what_is_dated_is_of_that_day(file: Callable[..., Path], tmp_path: Path) -> None:
    brought(
        tmp_path / "home",
        "jsonl",
        str(file('{"text": "x", "created": "2024-01-02"}\n{"text": "y"}')),
    )
    place = Home(tmp_path / "home")
    ledger = Ledger(place, SystemClock())
    documents = {d.title: d for d in Store(place, ledger, SystemClock()).documents()}
    ledger.close()
    assert documents["x"].ts == 1_704_196_800_000
    assert documents["y"].ts > documents["x"].ts


def test_a_stopped_import_leaves_whole_items_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    for n in range(1_000):
        (folder / f"n{n:04}.md").write_text(f"note {n}")
    reading = markdown.read_bytes

    def stopping(path: Path, most: int) -> bytes:
        if path.name == "n0800.md":
            raise KeyboardInterrupt
        return reading(path, most)

    monkeypatch.setattr(markdown, "read_bytes", stopping)
    assert brought(home, "markdown", str(folder)) == 130
    part = kept(home)
    assert 0 < len(part) <= 800 and all(item.text.startswith("note ") for item in part.values())
    monkeypatch.setattr(markdown, "read_bytes", reading)
    capsys.readouterr()
    assert brought(home, "markdown", str(folder)) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["new"], report["duplicate"]) == (1_000 - len(part), len(part))
    assert len(kept(home)) == 1_000


def test_no_secret_is_in_any_file_after_an_import(
    file: Callable[..., Path], tmp_path: Path
) -> None:
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    (folder / f"{KEY}.md").write_text(f"---\napi: {KEY}\ntags: [{KEY}]\n---\nkey {KEY} [[{KEY}]]")
    (folder / "bad.md").write_bytes(bytes(range(32)) * 40 + KEY.encode())
    brought(home, "markdown", str(folder))
    brought(
        home,
        "jsonl",
        str(file(json.dumps({"text": "x", "id": KEY, "url": f"https://example.org/?key={KEY}"}))),
    )
    mark = f'<A HREF="https://me:{KEY}@example.org/{KEY}">{KEY}</A><DD>{KEY}'
    brought(home, "bookmarks", str(file(mark, f"{KEY}.html")))
    assert len(kept(home)) == 3
    for path in home.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_the_record_keeps_what_was_passed_by(file: Callable[..., Path], tmp_path: Path) -> None:
    home = tmp_path / "home"
    brought(home, "jsonl", str(file('{"text": "x"}\nbad\n{"text": "x"}')))
    ledger = Ledger(Home(home), SystemClock())
    (entry,) = ledger.entries(kinds=("import",))
    ledger.close()
    counts = {"seen": 3, "new": 1, "duplicate": 1, "skipped": 0, "failed": 1}
    assert entry.body == {"source": "jsonl", "path": str(tmp_path / "file"), **counts}


def test_names_that_are_one_without_their_secrets_are_said(tmp_path: Path) -> None:
    items = [NewItem(f"x {KEY}{n}", str(n), str(n)) for n in range(2)]
    tally = Tally()
    assert len(list(checked(items, tally, lambda: None))) == 1
    assert tally.counts.skipped == 1 and KEY not in repr(tally)
