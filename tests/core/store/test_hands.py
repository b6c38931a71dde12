"""A hand at the files: noticed, recorded as it is, never written over."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.store.store import NewItem


@pytest.fixture
def node(bench: Any) -> Any:
    bench.store.init({})
    return bench.store.remember("I like tea")


def test_a_changed_file_is_recorded_with_its_bytes(bench: Any, node: Any) -> None:
    text = bench.read(node.path).decode().replace("I like tea\n", "I like tea, green\r\n🍵")
    bench.write(node.path, text)
    assert bench.store.sync() == {node.id}
    assert bench.edits() == [{"path": node.path, "text": text}]
    assert bench.store.node(node.id).text == "I like tea, green\r\n🍵"
    assert bench.ledger.newest(1)[0].refs == tuple(bench.store.entry_of(node.id)[:1])
    assert bench.store.sync() == set()


@pytest.mark.parametrize(
    "path", ["PACK.md", "INDEX.md", "policies/own.toml", "skills/greet/SKILL.md", "nodes/mine/a.md"]
)
def test_a_file_that_was_added_or_changed_is_recorded(bench: Any, node: Any, path: str) -> None:
    text = '+++\nid = "a"\n+++\nx\n' if path.startswith("nodes") else '# mine = "x"\n'
    bench.write(path, text)
    bench.store.sync()
    assert bench.edits() == [{"path": path, "text": text}]
    bench.delete_views()
    bench.store.rebuild()
    assert bench.read(path).decode() == text


def test_bytes_that_are_no_text_are_recorded_too(bench: Any, node: Any) -> None:
    bench.write("skills/a/SKILL.md", b"\xff\x00\r\n")
    bench.store.sync()
    assert bench.edits() == [{"path": "skills/a/SKILL.md", "base64": "/wANCg=="}]
    bench.delete_views()
    assert bench.store.rebuild().faults[0].path == "skills/a/SKILL.md"
    assert bench.read("skills/a/SKILL.md") == b"\xff\x00\r\n"


def test_a_changed_manifest_is_recorded_and_made_again(bench: Any, node: Any) -> None:
    manifest = bench.read("STORE.toml")
    bench.write("STORE.toml", manifest + b"mine = [\n")
    bench.again().sync()
    assert bench.read("STORE.toml") == manifest
    assert [edit["path"] for edit in bench.edits()] == ["STORE.toml"]
    assert bench.store.sync() == set()
    assert bench.lint() == ([], [])


def test_a_deleted_file_stays_deleted(bench: Any, node: Any) -> None:
    (bench.folder / node.path).unlink()
    assert bench.store.sync() == {node.id}
    assert bench.edits() == [{"path": node.path, "deleted": True}]
    assert bench.store.node(node.id) is None
    bench.delete_views()
    bench.store.rebuild()
    assert not (bench.folder / node.path).exists()


@pytest.mark.parametrize(
    "gone",
    [("PACK.md",), ("INDEX.md",), ("STORE.toml",), ("nodes",), ("nodes", "PACK.md", "policies")],
)
@pytest.mark.parametrize("act", ["sync", "rebuild"])
def test_a_store_whose_frame_is_gone_was_not_emptied_by_a_hand(
    bench: Any, node: Any, gone: tuple[str, ...], act: str
) -> None:
    files = bench.files()
    for name in gone:
        path = bench.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    getattr(bench.store, act)()
    assert bench.files() == files
    assert bench.edits() == []


def test_a_hand_and_a_program_at_one_file_both_survive(bench: Any, node: Any) -> None:
    bench.write(
        "PACK.md",
        "# All mine\r\n\r\n## Standing rules\r\n\r\n- no mail on Sundays\r\n\r\n## End\r\n",
    )
    rule = bench.store.rule("Never shout")
    pack = bench.read("PACK.md").decode()
    assert (
        pack
        == f"# All mine\r\n\r\n## Standing rules\r\n\r\n- no mail on Sundays\r\n- Never shout [{rule.id}]\r\n\r\n## End\r\n"
    )
    bench.write("PACK.md", "no heading at all")
    other = bench.store.rule("Never whisper")
    assert (
        bench.read("PACK.md").decode()
        == f"no heading at all\n\n## Standing rules\n\n- Never whisper [{other.id}]\n"
    )


def test_a_correction_keeps_what_a_hand_wrote(bench: Any, node: Any) -> None:
    bench.write(
        node.path, bench.read(node.path).replace(b"+++\n", b"+++\n# my comment\n", 1) + b"more\n"
    )
    bench.store.remember("I like coffee", supersedes=node.id)
    data = bench.read(node.path).decode()
    assert "# my comment" in data
    assert data.endswith("I like tea\nmore\n")
    assert bench.store.node(node.id).valid_until


def test_a_file_edited_between_reading_and_writing_is_not_written_over(
    bench: Any, node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack, fsync, left = bench.folder / "PACK.md", os.fsync, [1]

    def hand(handle: int) -> None:
        fsync(handle)
        if left[0] and any(bench.folder.glob(".PACK.md.*.tmp")):
            left[0] -= 1
            pack.write_text("# Mine, just now\n")

    monkeypatch.setattr(os, "fsync", hand)
    rule = bench.store.rule("Never shout")
    assert left == [0]
    text = pack.read_text()
    assert text.startswith("# Mine, just now\n")
    assert rule.id in text
    files = bench.files()
    bench.delete_views()
    bench.store.rebuild()
    assert bench.files() == files


def test_a_second_change_of_the_same_size_within_a_tick_is_noticed(bench: Any, node: Any) -> None:
    path = bench.folder / node.path
    for word in ("tee", "tii", "taa", "too"):
        path.write_bytes(path.read_bytes()[:-4] + word.encode() + b"\n")
        bench.store.sync()
        assert bench.store.node(node.id).text == f"I like {word}\n"


BROKEN = {
    "front matter": b"+++\nid = \n+++\n",
    "no fence": b"just text\n",
    "nul": b"+++\n+++\na\0b",
    "encoding": b"+++\n+++\n\xff\xfe",
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_does_not_parse_is_kept_and_named(bench: Any, node: Any, what: str) -> None:
    bench.write(node.path, BROKEN[what])
    bench.store.sync()
    assert bench.store.node(node.id) is None
    assert [d.id for d in bench.store.documents()] == []
    bench.store.rebuild()
    assert bench.read(node.path) == BROKEN[what]
    assert node.path in {finding.path for finding in bench.lint()[0]}
    bench.delete_views()
    assert [fault.path for fault in bench.store.rebuild().faults] == [node.path]
    assert bench.read(node.path) == BROKEN[what]


def test_a_broken_node_is_not_changed_by_what_comes_later(bench: Any, node: Any) -> None:
    entry = bench.store.entry_of(node.id)[0]
    bench.write(node.path, BROKEN["no fence"])
    bench.write("PACK.md", b"\xff")
    bench.store.sync()
    from exo.core.ledger.entry import Draft

    bench.ledger.append(Draft("belief", {"action": "retire", "node": {"id": node.id}}, (entry,)))
    bench.ledger.append(Draft("rule", {"text": "Never shout", "channel": "typed"}))
    bench.store.sync()
    assert bench.read(node.path) == BROKEN["no fence"]
    assert bench.read("PACK.md") == b"\xff"
    mended = b'+++\nid = "%s"\n+++\nmended\n' % node.id.encode()
    bench.write(node.path, mended)
    bench.store.sync()
    assert bench.store.node(node.id).text == "mended\n"


def test_a_rule_that_cannot_stand_in_the_pack_is_not_said_to_be_kept(bench: Any) -> None:
    bench.store.rule("Never shout")
    entries, pack = bench.kinds(), bench.read("PACK.md")
    bench.write("PACK.md", pack + b"\xff")
    with pytest.raises(ExoError, match="not UTF-8"):
        bench.store.rule("Never lie")
    (bench.folder / "PACK.md").unlink()
    (bench.folder / "PACK.md").mkdir()
    with pytest.raises(ExoError, match="something else lies in its place"):
        bench.store.rule("Never lie")
    assert bench.kinds() == entries
    (bench.folder / "PACK.md").rmdir()
    bench.write("PACK.md", pack)
    assert f"Never lie [{bench.store.rule('Never lie').id}]" in bench.store.pack()


def test_two_nodes_of_one_id_are_named_and_not_recalled(bench: Any, node: Any) -> None:
    bench.write(f"nodes/other/{node.id}.md", bench.read(node.path))
    bench.store.sync()
    assert bench.store.node(node.id) is None
    assert bench.store.nodes() == []
    paths = {finding.path for finding in bench.store.rebuild().faults}
    assert paths == {node.path, f"nodes/other/{node.id}.md"}
    (bench.folder / "nodes" / "other" / f"{node.id}.md").unlink()
    assert node.id in bench.store.sync()
    assert bench.store.node(node.id) == node


def test_a_huge_node_is_named_and_left(bench: Any, node: Any) -> None:
    for path in ("nodes/facts/huge.md", node.path):
        with (
            (bench.folder / path).open("ab")
            if (bench.folder / path).exists()
            else _made(bench.folder / path) as file
        ):
            file.truncate(50_000_000)
    bench.store.sync()
    assert bench.edits() == []
    faults = {fault.path: fault.what for fault in bench.store.rebuild().faults}
    assert "too large" in faults["nodes/facts/huge.md"]
    assert node.path in faults
    assert (bench.folder / node.path).stat().st_size == 50_000_000
    bench.store.remember("still works")
    assert bench.edits() == []


def _made(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")


def test_links_that_leave_the_store_are_not_followed(bench: Any, node: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("+++\n+++\nsecret\n")
    (bench.folder / "nodes" / "out").symlink_to(outside)
    (bench.folder / "nodes" / "preferences" / "link.md").symlink_to(outside / "secret.md")
    bench.store.sync()
    assert bench.edits() == []
    assert {"nodes/out", "nodes/preferences/link.md"} <= {
        f.path for f in bench.store.rebuild().faults
    }
    assert "secret" not in {d.id for d in bench.store.documents()}
    assert sorted(path.name for path in outside.iterdir()) == ["secret.md"]


def test_nothing_is_written_through_a_link(bench: Any, node: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(bench.folder / "nodes", outside)
    shutil.rmtree(bench.folder / "nodes")
    (bench.folder / "nodes").symlink_to(outside)
    before = sorted(outside.rglob("*"))
    node = bench.store.remember("I like coffee")
    bench.store.sync()
    assert {finding.path for finding in bench.lint()[0]} >= {"nodes", node.path}
    assert sorted(outside.rglob("*")) == before
    assert bench.edits() == []
    (bench.folder / "nodes").unlink()
    bench.store.sync()
    assert sorted(each.text for each in bench.store.nodes()) == ["I like coffee\n", "I like tea\n"]


@pytest.mark.parametrize("name", [b"nodes/a/\xff.md", b"nodes/a/x..y.md", b"nodes/a/new\nline.md"])
def test_hostile_names_are_named_and_left(bench: Any, node: Any, name: bytes) -> None:
    path = os.fsencode(bench.folder) + b"/" + name
    os.makedirs(os.path.dirname(path))  # noqa: PTH103, PTH120 - bytes
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"+++\n+++\n")
    bench.store.sync()
    assert bench.edits() == []
    assert any("name" in fault.what for fault in bench.store.rebuild().faults)
    assert os.path.exists(path)  # noqa: PTH110


def test_what_editors_leave_is_not_looked_at(bench: Any, node: Any) -> None:
    for name in (
        "nodes/.a.md.swp",
        "nodes/a.md~",
        "nodes/#a.md#",
        "nodes/.hidden/x.md",
        ".DS_Store",
    ):
        bench.write(name, "x")
    bench.store.sync()
    assert bench.edits() == []
    assert bench.lint() == ([], [])


def test_a_fifo_does_not_hang(bench: Any, node: Any) -> None:
    os.mkfifo(bench.folder / "nodes" / "pipe.md")
    bench.store.sync()
    assert any("plain" in fault.what for fault in bench.store.rebuild().faults)


def test_a_file_where_a_folder_should_be(bench: Any, node: Any) -> None:
    bench.write("nodes/rules", "not a folder")
    rule = bench.store.rule("Never shout")
    assert rule.path in {finding.path for finding in bench.lint()[0]}
    assert "Never shout" in bench.store.pack()
    (bench.folder / "nodes" / "rules").unlink()
    bench.store.rebuild()
    assert [each.type for each in bench.store.nodes()] == ["preference", "rule"]


def test_edits_refer_to_what_stands_in_them(bench: Any, node: Any) -> None:
    rule = bench.store.rule("Never shout")
    bench.store.add_items([NewItem("1", "x")], "bookmarks", "/x")
    bench.write("PACK.md", bench.read("PACK.md") + b"- mine\n")
    bench.store.sync()
    assert bench.ledger.newest(1)[0].refs == (bench.store.entry_of(rule.id)[0],)
    first = bench.ledger.newest(1)[0].id
    bench.write("PACK.md", bench.read("PACK.md") + b"- mine too\n")
    bench.store.sync()
    assert set(bench.ledger.newest(1)[0].refs) == {first, bench.store.entry_of(rule.id)[0]}


def test_a_copy_of_a_node_does_not_hide_it(bench: Any) -> None:
    node = bench.store.remember("My box is blue")
    bench.write(node.path.replace(node.id, "copy"), bench.read(node.path))
    bench.store.sync()
    assert [each.path for each in bench.store.nodes()] == [node.path]
    assert bench.store.node(node.id).path == node.path
    assert "nodes/facts/copy.md" in {row.path for row in bench.store.views.faults()}
    bench.store.retire(node.id)
    assert "valid_until" in bench.read(node.path).decode()
