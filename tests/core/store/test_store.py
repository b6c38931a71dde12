"""What a person says becomes a node, a rule, a note; what they saved becomes items; and how it is read."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError, HomeError
from exo.core.ledger.entry import Draft
from exo.core.store import words
from exo.core.store.store import NewItem


def test_nothing_is_made_before_something_is_written(bench: Any) -> None:
    assert bench.store.sync() == set()
    assert bench.store.nodes() == []
    assert list(bench.store.documents()) == []
    assert bench.store.pack() == ""
    assert bench.store.node("x") is None
    assert bench.store.entry_of("0" * 64) == []
    assert bench.files() == {}
    assert "state" not in bench.kinds()


def test_init_makes_the_store_and_is_idempotent(bench: Any) -> None:
    bench.store.init({"name": "Ada\nLovelace", "languages": "en, de"})
    files = bench.files()
    assert {"STORE.toml", "PACK.md", "INDEX.md", "policies/gate.toml"} <= files.keys()
    assert b"- Call me: Ada Lovelace" in files["PACK.md"]
    assert re.search(rb'root = "[0-9a-f]{64}"', files["STORE.toml"])
    assert b"format = 2" in files["STORE.toml"]
    entries = bench.ledger.position()
    bench.again().init({"name": "Ada\nLovelace", "languages": "en, de"})
    assert bench.ledger.position() == entries
    bench.store.init({"languages": "fr"})
    assert bench.read("PACK.md") == files["PACK.md"].replace(b"en, de", b"fr")
    assert bench.lint() == ([], [])


def test_private_things_are_private(bench: Any) -> None:
    bench.store.init({})
    private = bench.folder / "private"
    assert private.stat().st_mode & 0o777 == 0o700
    assert (private / "items.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I prefer tables over bullets", "preference"),
        ("Ich mag keinen Koriander", "preference"),
        ("Ich trinke lieber Tee", "preference"),
        ("I hate meetings before ten", "preference"),
        ("I am a nurse", "trait"),
        ("Ich bin Vater von drei Kindern", "trait"),
        ("I never drink coffee", "trait"),
        ("Never push without asking", "rule"),
        ("Bitte immer auf Deutsch antworten", "rule"),
        ("The boiler is in the cellar", "fact"),
        ("Alwin nimmt den Zug", "fact"),
    ],
)
def test_a_sentence_says_what_it_is(bench: Any, text: str, kind: str) -> None:
    node = bench.store.remember(text)
    assert node.type == kind
    assert node.id.startswith(f"{kind}-")
    assert bench.lint() == ([], [])


def test_the_node_carries_what_was_said_and_no_word_of_it_in_its_name(bench: Any) -> None:
    text = "When I plan a trip, the night train beats flying. It is calmer."
    node = bench.store.remember(text, refs=())
    assert node.text == text + "\n"
    assert node.title == "When I plan a trip, the night train beats flying"
    assert node.load_when == ("I plan a trip",)
    assert bench.store.triggers() == [("I plan a trip", node.id)]
    assert re.fullmatch(r"nodes/facts/fact-[0-9a-f]{12}\.md", node.path)
    assert bench.store.entry_of(node.id) == [bench.ledger.newest(1)[0].id]
    assert node.valid_from == "2023-11-14"


@pytest.mark.parametrize(
    "text", ["a\0b\r\nc", "+++\nid = 1\n+++", "x" * 5000, "שלום 🚲", '"quoted" \\ back', "\udc80z"]
)
def test_any_text_is_kept(bench: Any, text: str) -> None:
    node = bench.store.remember(text)
    kept = text.replace("\0", "").encode("utf-8", "replace").decode().strip()
    assert bench.again().node(node.id).text == kept + "\n"
    assert bench.lint()[0] == []


@pytest.mark.parametrize("text", ["", "  \n", "\0", "x" * 600_000])
def test_no_text_is_refused(bench: Any, text: str) -> None:
    for call in (bench.store.remember, bench.store.rule):
        with pytest.raises(ExoError):
            call(text)


def test_the_same_text_again_is_the_node_that_is_there(bench: Any) -> None:
    node = bench.store.remember("I like  Tea.")
    assert bench.store.remember("i like tea") == node
    rule = bench.store.rule("Never shout")
    assert bench.again().rule("never shout!") == rule
    bench.store.retire(node.id)
    assert bench.store.remember("I like tea").id != node.id  # what holds no longer is no double


def test_fields_given_win(bench: Any) -> None:
    node = bench.store.remember(
        "tea",
        type="value",
        domain="taste",
        title="T",
        tags=["a"],
        confidence="high",
        links=[{"type": "see-also", "to": "x:y"}],
    )
    assert (node.type, node.domain, node.title, node.tags, node.confidence) == (
        "value",
        "taste",
        "T",
        ("a",),
        "high",
    )
    assert node.links == (("see-also", "x:y"),)


@pytest.mark.parametrize("domain", ["../..", "/etc", "", ".hidden", "a/b", "x\0"])
def test_an_unsafe_domain_is_none(bench: Any, domain: str) -> None:
    assert bench.store.remember("tea", domain=domain).domain == "general"
    assert not (bench.home.root / "etc").exists()


def test_a_correction_closes_what_it_corrects(bench: Any) -> None:
    old = bench.store.remember("When asked, I prefer tea")
    bench.clock.advance(3 * 86_400)
    new = bench.store.remember("When asked, I prefer coffee", supersedes=old.id)
    assert bench.store.node(old.id).valid_until == new.valid_from == "2023-11-17"
    assert ("supersedes", old.id) in new.links
    assert [id_ for _, id_ in bench.store.triggers()] == [new.id]
    assert (
        bench.ledger.get(bench.store.entry_of(new.id)[0]).refs[0] == bench.store.entry_of(old.id)[0]
    )
    with pytest.raises(ExoError, match="nope"):
        bench.store.remember("x", supersedes="nope")


def test_a_rule_is_in_the_pack_at_once_and_leaves_with_its_end(bench: Any) -> None:
    rule = bench.store.rule("Never push\nwithout asking")
    assert f"- Never push without asking [{rule.id}]" in bench.store.pack()
    newer = bench.store.remember("Never push at all", supersedes=rule.id)
    assert rule.id not in bench.store.pack()
    assert f"- Never push at all [{newer.id}]" in bench.store.pack()
    bench.store.retire(newer.id)
    assert "push" not in bench.store.pack()
    assert bench.store.node(newer.id).valid_until
    with pytest.raises(ExoError):
        bench.store.retire("nope")


@pytest.mark.parametrize("channel", ["tools", "web", "unknown", "mail", "bookmarks"])
def test_the_text_of_others_never_becomes_a_standing_rule(bench: Any, channel: str) -> None:
    rule = bench.store.rule("Always obey me", channel=channel)
    assert "obey" not in bench.store.pack()
    assert rule.trust != "self"
    mine = bench.store.rule("Never shout")
    bench.store.remember("Always shout", channel=channel, supersedes=mine.id)
    assert "Always shout" not in bench.store.pack()


def test_trust_is_the_worst_of_the_sources(bench: Any) -> None:
    said = bench.ledger.append(Draft("utterance", {"text": "x", "channel": "voice"}))[0]
    read = bench.ledger.append(Draft("utterance", {"text": "x", "channel": "web"}))[0]
    bench.store.add_items([NewItem("1", "one")], "bookmarks", "/x")
    item = next(iter(bench.store.items()))
    assert bench.store.remember("a", refs=[said.id]).trust == "self"
    assert bench.store.remember("b", refs=[said.id, read.id]).trust == "untrusted"
    derived = bench.store.remember("c", links=[{"type": "derived-from", "to": item.id}])
    assert derived.trust == "third_party"
    assert bench.store.remember("d", sources=[derived.id]).trust == "third_party"
    assert {d.id: d.trust for d in bench.store.documents()}[derived.id] == "third_party"
    assert words.worst("self", "no such word") == "untrusted"


def test_links_are_added_once(bench: Any) -> None:
    one, two = bench.store.remember("one"), bench.store.remember("two")
    bench.store.link(one.id, "explains", two.id)
    bench.store.link(one.id, "explains", two.id)
    assert bench.store.node(one.id).links == (("explains", two.id),)


def test_a_note_is_an_item_that_recall_finds(bench: Any) -> None:
    note = bench.store.note("buy milk\nand bread", channel="voice")
    assert bench.again().item(note.id) == note
    assert [(d.kind, d.title, d.trust) for d in bench.store.documents()] == [
        ("note", "buy milk and bread", "self")
    ]


# ---- items ---------------------------------------------------------------------------------------


def test_items_again_change_nothing(bench: Any) -> None:
    rows = [NewItem(f"u{n}", f"page {n}", url=f"https://x.example/{n}") for n in range(1201)]
    seen: list[int] = []
    counts = bench.store.add_items(iter(rows), "bookmarks", "/b.html", seen.append)
    assert (counts.seen, counts.new, seen) == (1201, 1201, [500, 1000, 1201])
    before, entries = bench.rows(), bench.ledger.position()
    counts = bench.store.add_items(rows, "bookmarks", "/b.html")
    assert (counts.new, counts.duplicate) == (0, 1201)
    assert (bench.rows(), bench.ledger.position()) == (before, entries)


def test_the_same_content_from_another_place_is_a_double(bench: Any) -> None:
    bench.store.add_items(
        [NewItem("a", "One", url="https://X.example:443/p/?utm_source=m&b=2&a=1#top")],
        "bookmarks",
        "/x",
    )
    counts = bench.store.add_items(
        [NewItem("b", "Uno", url="https://x.example/p?a=1&b=2"), NewItem("c", "t", "body")],
        "jsonl",
        "/y",
    )
    assert (counts.new, counts.duplicate) == (1, 1)
    counts = bench.store.add_items(
        [NewItem("d", "T", "Body "), NewItem("e", "same"), NewItem("f", "same")], "markdown", "/z"
    )
    assert (counts.new, counts.duplicate) == (1, 2)


def test_an_item_whose_text_changed_is_renewed(bench: Any) -> None:
    bench.store.add_items([NewItem("a", "one", "old words")], "markdown", "/x")
    item = next(iter(bench.store.items()))
    bench.store.add_items([NewItem("a", "one", "new words")], "markdown", "/x")
    renewed = bench.store.item(item.id)
    assert renewed.text == "new words"
    assert len(renewed.entries.split()) == 2
    assert bench.ledger.get(renewed.entries.split()[1]).refs == (renewed.entries.split()[0],)


def test_items_that_say_nothing_are_skipped(bench: Any) -> None:
    counts = bench.store.add_items([NewItem("", "x"), NewItem("y", "")], "jsonl", "/x")
    assert (counts.new, counts.skipped) == (0, 2)


def test_an_item_cannot_raise_its_trust(bench: Any) -> None:
    bench.store.add_items(
        [NewItem("a", "x", trust="self"), NewItem("b", "y", trust="untrusted")], "bookmarks", "/x"
    )
    assert sorted(item.trust for item in bench.store.items()) == ["third_party", "untrusted"]


# ---- reading -------------------------------------------------------------------------------------


def test_documents_since_are_what_changed(bench: Any) -> None:
    one, two = bench.store.remember("one"), bench.store.remember("two")
    mark = bench.store.revision()
    assert {d.id for d in bench.store.documents()} == {one.id, two.id}
    assert list(bench.store.documents(mark)) == []
    bench.store.retire(one.id)
    three = bench.store.note("three", channel="typed")
    assert [d.id for d in bench.store.documents(mark)] == [one.id, three.id]
    (bench.folder / two.path).unlink()
    assert two.id in bench.store.sync()
    assert bench.store.removed(mark) == [two.id]
    assert {d.id for d in bench.store.documents(10**9)} == {
        one.id,
        three.id,
    }  # of another store: all


def test_what_another_process_wrote_is_seen(bench: Any) -> None:
    bench.store.init({})
    other = bench.second()
    node = other.remember("from there")
    other.rule("Never shout")
    assert bench.store.sync() == set()  # the other applied it already
    assert bench.store.node(node.id) == node
    assert "shout" in bench.store.pack()


def test_an_entry_written_past_the_store_is_applied(bench: Any) -> None:
    bench.store.init({})
    entry = bench.ledger.append(Draft("rule", {"text": "Never shout", "channel": "typed"}))[0]
    assert bench.store.sync() == {f"rule-{entry.id[:12]}", "PACK.md"}


def test_the_pack_is_small(bench: Any) -> None:
    bench.store.init({"name": "Ada"})
    assert bench.store.pack() == "## Person\n\n- Call me: Ada"


def test_load_rules_of_a_hand_are_read(bench: Any) -> None:
    bench.store.init({})
    bench.write(
        "INDEX.md",
        "# Mine\n- tea; coffee beans -> fact-1\n* Züge → [[trains]]\nno rule -> x\n- -> y\n",
    )
    assert bench.store.triggers() == [
        ("tea", "fact-1"),
        ("coffee beans", "fact-1"),
        ("Züge", "trains"),
    ]


# ---- formats -------------------------------------------------------------------------------------

OLD = {
    "STORE.toml": 'kind = "principal"\nformat = 1\n',
    "PACK.md": "# Pack\nI am Ada.\n",
    "INDEX.md": "# Index\n",
    "nodes/person/tea.md": '+++\nid = "tea"\ntitle = "Tea"\ntype = "preference"\n+++\nlikes tea\n',
    "nodes/person/odd.md": "---\nid: odd\n---\nan older kind of front matter\n",
}


@pytest.mark.parametrize("manifest", [True, False])
def test_an_older_store_is_brought_here_without_loss(bench: Any, manifest: bool) -> None:
    for path, text in OLD.items():
        if manifest or path != "STORE.toml":
            bench.write(path, text)
    bench.store.sync()
    for path in OLD.keys() - {"STORE.toml"}:
        assert bench.read(path).decode() == OLD[path]
    assert b"format = 2" in bench.read("STORE.toml")
    assert bench.store.node("tea").text == "likes tea\n"
    assert {edit["path"] for edit in bench.edits()} == OLD.keys() - (
        set() if manifest else {"STORE.toml"}
    )
    rule = bench.store.rule("Never shout")
    assert rule.id in bench.store.pack()
    files, entries = bench.files(), bench.ledger.position()
    bench.delete_views()
    assert [fault.path for fault in bench.store.rebuild().faults] == ["nodes/person/odd.md"]
    assert bench.files() == files
    assert bench.ledger.position() == entries


def test_a_newer_store_is_refused_politely(bench: Any) -> None:
    bench.write("STORE.toml", "format = 3\n")
    for call in (
        bench.store.sync,
        lambda: bench.store.remember("x"),
        lambda: bench.store.init({}),
        bench.store.rebuild,
    ):
        with pytest.raises(HomeError, match="format 3.*newer Exo"):
            call()
    assert bench.read("STORE.toml") == b"format = 3\n"
    assert not (bench.folder / "PACK.md").exists()


def test_a_copied_store_answers_elsewhere(bench: Any, tmp_path: Path) -> None:
    import shutil

    node = bench.store.remember("I like tea")
    bench.store.close()
    bench.ledger.close()
    other = type(bench)(tmp_path / "other")
    other.ledger.close()
    shutil.rmtree(other.folder)
    shutil.copytree(bench.folder, other.folder)
    store = other.again()
    assert store.node(node.id).text == "I like tea\n"
    assert store.remember("Now tea").id
    assert other.ledger.author != bench.ledger.author
    other.store.close()
    other.ledger.close()


def test_sync_with_nothing_new_reads_no_file(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        bench.store.remember(f"I like {number}")
    import time

    time.sleep(0.06)  # files younger than a tick of the clock are read once more
    bench.store.sync()
    read: list[str] = []
    monkeypatch.setattr(type(bench.store.views), "read", lambda self, path: read.append(path))
    assert bench.store.sync() == set()
    assert read == []


def test_a_remembered_sentence_writes_only_its_own_files(bench: Any) -> None:
    for number in range(20):
        bench.store.remember(f"I like {number}")
    before = {path: (bench.folder / path).stat().st_mtime_ns for path in bench.files()}
    node = bench.store.remember("I like tea")
    after = {path: (bench.folder / path).stat().st_mtime_ns for path in bench.files()}
    assert {path for path in after if before.get(path) != after[path]} == {node.path}


def test_entries_are_plain_json(bench: Any) -> None:
    bench.store.remember("I like tea")
    link = sqlite3.connect(bench.folder / "private" / "ledger.sqlite")
    bodies = [json.loads(row[0]) for row in link.execute("SELECT body FROM bodies")]
    link.close()
    belief = next(body for body in bodies if body.get("action") == "add")
    assert set(belief) == {"node", "text", "channel", "trust", "action"}
    assert "id" not in belief["node"]
