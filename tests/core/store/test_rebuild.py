"""Views are computed: what was kept step by step is what the record gives at once, whatever was cut off."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base import files
from exo.core.base.errors import ExoError, StorageError
from exo.core.base.sqlite import Database
from exo.core.ledger.entry import Entry
from exo.core.store.replay import replay
from exo.core.store.store import NewItem
from exo.core.store.views import Views
from hypothesis import given, settings
from hypothesis import strategies as st

SUBJECTS = ("tea", "mails", "tables", "Köln", "the 🚲", "שלום", "branches", "long walks")


def mixed(bench: Any, count: int, seed: int) -> None:
    """Do `count` things a person and a program do to a store."""
    dice, store = random.Random(seed), bench.store
    for number in range(count):
        bench.clock.advance(dice.choice([0, 1, 86_400]))
        nodes, what = store.nodes(), f"{dice.choice(SUBJECTS)} {number}"
        act = dice.randrange(11)
        if act <= 2:
            store.remember(f"{dice.choice(['I prefer', 'When asked,', 'I am for', ''])} {what}")
        elif act == 3:
            store.rule(f"Never do {what}")
        elif act == 4:
            store.note(f"note on {what}", channel="voice")
        elif act == 5 and nodes:
            store.remember(f"Now it is {what}", supersedes=dice.choice(nodes).id)
        elif act == 6 and nodes:
            store.retire(dice.choice(nodes).id)
        elif act == 7:
            rows = [
                NewItem(f"{dice.randrange(60)}", f"saved {what}", url=f"http://x.example/{n}{what}")
                for n in range(4)
            ]
            store.add_items(rows, "bookmarks", "/there")
        elif act == 8 and nodes:
            path = dice.choice(nodes).path
            bench.write(path, bench.read(path) + f"by hand {number}\n".encode())
        elif act == 9:
            by_hand(bench, dice, number)
        elif act == 10 and dice.random() < 0.5:
            chosen = dice.choice([*nodes, *list(store.items())[:5]] or [None])
            if chosen is not None:
                forget(bench, chosen.id)
        if dice.random() < 0.2:
            store.sync()


def by_hand(bench: Any, dice: random.Random, number: int) -> None:
    kind = dice.randrange(5)
    if kind == 0:
        bench.write(
            "PACK.md",
            bench.read("PACK.md").replace(b"## Answers", b"## Answers\n\n- by hand %d" % number, 1),
        )
    elif kind == 1:
        bench.write(
            f"nodes/mine/own-{number}.md", f'+++\nid = "own-{number}"\n+++\nI wrote this {number}\n'
        )
    elif kind == 2 and (found := sorted((bench.folder / "nodes").rglob("own-*.md"))):
        dice.choice(found).unlink()
    elif kind == 3:
        bench.write("policies/budget.toml", f"month_cents = {number}\n")
    else:
        bench.write(
            "INDEX.md", bench.read("INDEX.md") + f"- topic {number} -> own-{number}\n".encode()
        )


def forget(bench: Any, id_: str) -> None:
    """As the program does it: everything that refers to it goes too."""
    bench.store.sync()
    gone = set(bench.store.entry_of(id_))
    while (
        more := {
            e.id for e in bench.ledger.referring(gone) if e.body is not None and e.kind != "forget"
        }
        - gone
    ):
        gone |= more
    bench.ledger.forget(sorted(gone), "asked for")
    bench.store.erase(gone, ())


@pytest.mark.parametrize("seed", [1, 2])
def test_after_300_mixed_operations_a_rebuild_gives_the_same_bytes_and_rows(
    bench: Any, seed: int
) -> None:
    bench.store.init({"name": "Ada", "style": "short"})
    mixed(bench, 300, seed)
    bench.store.sync()
    files_, rows = bench.files(), bench.rows()
    assert len(files_) > 60
    assert len(rows) > 20
    bench.delete_views()
    entries = bench.ledger.position()
    done = bench.store.rebuild()
    assert not done.faults
    assert bench.files() == files_
    assert bench.rows() == rows
    assert bench.ledger.position() == entries  # nothing of it was taken for a hand's work
    assert bench.ledger.verify().ok
    assert bench.store.sync() == set()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_tables_hold_what_memory_holds(seed: int) -> None:
    entries = authored(seed)
    whole = replay(entries)
    with tempfile.TemporaryDirectory() as folder:
        views = Views(Path(folder))
        with views.db.transaction():
            replay(entries, views)
        assert {path: views.file(path) for path in whole.files} == whole.files
        assert {item.id: item for item in views.select("")} == whole.items
        ids = {Path(path).stem for path in whole.files}
        assert {id_: views.paths(id_) for id_ in ids} == {id_: whole.paths(id_) for id_ in ids}
        views.db.close()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 40))
def test_entries_taken_again_after_a_crash_change_nothing(seed: int, cut: int) -> None:
    entries = authored(seed)
    again = replay(entries[cut:], replay(entries))
    whole = replay(entries)
    for name in whole.files:
        one, two = again.file(name), whole.file(name)
        assert (one and one.data) == (two and two.data), name


def authored(seed: int) -> list[Entry]:
    """Forty entries as a store would write them."""
    dice, made, nodes = random.Random(seed), [], []
    for number in range(40):
        id_ = f"{dice.getrandbits(256):064x}"
        kind, body, refs = "note", {"text": f"n{number}", "channel": "typed"}, ()
        act = dice.randrange(7)
        if number == 0:
            kind, body = (
                "state",
                {"action": "init", "store": {"id": "x"}, "answers": {"name": "Ada"}},
            )
        elif act <= 1:
            node = {"type": "preference", "domain": "d", "load_when": [f"t{number}"]}
            kind, body = (
                "belief",
                {"action": "add", "node": node, "text": f"t{number}", "trust": "self"},
            )
            nodes.append((f"preference-{id_[:12]}", id_))
        elif act == 2:
            kind, body = "rule", {"text": f"Always {number}", "channel": "typed"}
            nodes.append((f"rule-{id_[:12]}", id_))
        elif act == 3 and nodes:
            old = dice.choice(nodes)
            kind, refs = "belief", (old[1],)
            body = {
                "action": "supersede",
                "node": {"type": "rule", "domain": "d"},
                "text": f"s{number}",
                "trust": "self",
            }
            nodes.append((f"rule-{id_[:12]}", id_))
        elif act == 4 and nodes:
            kind, body = "belief", {"action": "retire", "node": {"id": dice.choice(nodes)[0]}}
        elif act == 5:
            kind, body = "edit", {"path": "PACK.md", "text": f"# mine {number}\n"}
        made.append(
            Entry(
                id_,
                "a",
                number + 1,
                number + 1,
                10**12 + number * 10**8,
                "principal",
                kind,
                refs,
                "",
                "",
                "",
                b"",
                body,
            )
        )
    return made


def test_a_forgotten_entry_means_nothing() -> None:
    entries = authored(3)
    hidden = [
        Entry(*(*_fields(e)[:-1], None)) if e.kind in ("belief", "edit") else e for e in entries
    ]
    assert (
        replay(hidden).files
        == replay([e for e in entries if e.kind not in ("belief", "edit")]).files
    )


def _fields(entry: Entry) -> tuple[Any, ...]:
    return tuple(getattr(entry, name) for name in Entry.__dataclass_fields__)


@pytest.mark.parametrize(
    "body",
    [
        {"path": "../../x", "text": "a"},
        {"path": "private/ledger.sqlite", "deleted": True},
        {"path": "STORE.toml", "text": "a"},
        {"path": "nodes/../../x.md", "text": "a"},
    ],
)
def test_an_edit_of_another_place_means_nothing(body: dict[str, Any]) -> None:
    state = replay([Entry("0" * 64, "a", 1, 1, 0, "principal", "edit", (), "", "", "", b"", body)])
    assert not state.files


@pytest.mark.parametrize("kind", ["belief", "rule", "edit", "item", "note", "state"])
def test_a_body_of_any_shape_is_survived(kind: str) -> None:
    for body in (
        {},
        {"node": None},
        {"action": "init"},
        {"node": {"type": 3, "domain": "../x"}, "text": None},
    ):
        state = replay(
            [Entry("0" * 64, "a", 1, 1, 0, "principal", kind, (), "", "", "", b"", body)]
        )
        assert all(".." not in path for path in state.files)


# ---- cut off at the n-th write -------------------------------------------------------------------


class Disk:
    """Counts what is written, by files and by databases, and fails at the n-th."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.writes, self.at = 0, 0
        replace, begin = Path.replace, Database._begin

        def replaced(path: Path, target: Any) -> Any:
            self.count()
            return replace(path, target)

        def begun(database: Database, *how: Any, **more: Any) -> None:
            self.count()
            begin(database, *how, **more)
            self.at and self.count()

        patch.setattr(Path, "replace", replaced)
        patch.setattr(Database, "_begin", begun)
        for name in ("sync_folder",):
            real = getattr(files, name)

            def synced(path: Path, real: Callable[[Path], None] = real) -> None:
                self.count()
                real(path)

            patch.setattr(files, name, synced)

    def count(self) -> None:
        self.writes += 1
        if self.writes == self.at:
            raise OSError(28, "No space left on device")

    def arm(self, at: int) -> None:
        self.writes, self.at = 0, at


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "remember": lambda bench: bench.store.remember("When cooking, I prefer rice"),
    "rule": lambda bench: bench.store.rule("Never shout"),
    "supersede": lambda bench: bench.store.remember("I hate tea", supersedes=bench.first),
    "retire": lambda bench: bench.store.retire(bench.first),
    "items": lambda bench: bench.store.add_items(
        [NewItem("1", "one"), NewItem("2", "two")], "bookmarks", "/x"
    ),
    "sync": lambda bench: bench.store.sync(),
    "rebuild": lambda bench: bench.store.rebuild(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_cut_off_at_any_write_nothing_is_lost(
    name: str, bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Bench = type(bench)
    monkeypatch.setenv("PATH", "")  # without git: its files are no part of this
    disk, finished = Disk(monkeypatch), False
    for at in range(1, 200):
        bench = Bench(tmp_path / f"{name}{at}")
        bench.store.init({"name": "Ada"})
        bench.first = bench.store.remember("I like tea").id
        bench.store.rule("Always answer briefly")
        if name in ("sync", "rebuild"):
            bench.write("PACK.md", bench.read("PACK.md") + b"\nby hand\n")
        disk.arm(at)
        try:
            OPERATIONS[name](bench)
            finished = disk.writes < at
        except (ExoError, OSError):
            pass
        disk.arm(0)
        bench.again()
        bench.store.sync()
        assert not [path for path in bench.folder.rglob("*.tmp") if path.is_file()]
        files_, rows = bench.files(), bench.rows()
        assert b"Always answer briefly" in files_["PACK.md"]
        if name in ("sync", "rebuild"):
            assert b"by hand" in files_["PACK.md"]
        if finished and name in ("remember", "rule", "supersede"):
            assert bench.ledger.newest(1)[0].kind in ("belief", "rule")
        edits = len(bench.edits())
        assert edits <= 1
        bench.delete_views()
        assert not bench.store.rebuild().faults
        assert bench.files() == files_
        assert bench.rows() == rows
        assert len(bench.edits()) == edits
        bench.store.close()
        bench.ledger.close()
        if finished:
            break
    assert finished
    assert at > 5


def test_a_rebuild_that_was_cut_off_is_run_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        bench.store.remember(f"I like the number {number}")
    files_, rows = bench.files(), bench.rows()
    bench.delete_views()
    real, left = os.replace, [7]
    path_replace = Path.replace

    def stops(path: Path, target: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return path_replace(path, target)

    monkeypatch.setattr(Path, "replace", stops)
    with pytest.raises(KeyboardInterrupt):
        bench.store.rebuild()
    monkeypatch.undo()
    assert real is os.replace
    bench.again()
    bench.store.rebuild()
    assert bench.files() == files_
    assert bench.rows() == rows
    assert not bench.edits()


def test_a_damaged_table_is_made_again(bench: Any) -> None:
    bench.store.remember("I like tea")
    bench.store.add_items([NewItem("1", "one")], "bookmarks", "/x")
    rows = bench.rows()
    bench.store.close()
    bench.write("private/items.sqlite", b"no database at all" * 100)
    bench.again()
    bench.store.rebuild()
    assert bench.rows() == rows
    assert not bench.edits()


def test_an_unapplied_entry_and_a_hand_edit_both_survive(bench: Any) -> None:
    bench.store.init({})
    from exo.core.ledger.entry import Draft

    bench.ledger.append(Draft("rule", {"text": "Never shout", "channel": "typed"}))
    bench.write(
        "PACK.md", bench.read("PACK.md").replace(b"## Answers", b"## Answers\n\n- short ones", 1)
    )
    bench.store.sync()
    pack = bench.read("PACK.md")
    assert b"Never shout" in pack
    assert b"- short ones" in pack
    assert len(bench.edits()) == 2  # the exact bytes, and what the rule makes of them
    assert b"Never shout" not in bench.edits()[0]["text"].encode()
    bench.delete_views()
    bench.store.rebuild()
    assert bench.read("PACK.md") == pack


def test_progress_reaches_the_end(bench: Any) -> None:
    bench.store.remember("I like tea")
    seen: list[tuple[int, int]] = []
    bench.store.rebuild(lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == bench.ledger.position()


def test_a_full_disk_says_so(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.store.init({})

    def full(path: Path, target: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StorageError, match="the disk is full"):
        bench.store.remember("I like tea")
    monkeypatch.undo()
    bench.again()
    bench.store.sync()
    assert [node.text for node in bench.store.nodes()] == ["I like tea\n"]


def test_the_stored_rows_can_be_read_by_others(bench: Any) -> None:
    bench.store.add_items([NewItem("1", "one", tags=("a b", "c"))], "bookmarks", "/x")
    link = sqlite3.connect(bench.folder / "private" / "items.sqlite")
    assert link.execute("SELECT title, tags, trust, tier, review FROM items").fetchall() == [
        ("one", "a-b c", "third_party", "curated", "new")
    ]
    link.close()


def test_temporary_folders_are_left_clean(bench: Any) -> None:
    before = set(Path(tempfile.gettempdir()).glob("etilqs*"))
    bench.store.remember("I like tea")
    bench.store.rebuild()
    assert not list((bench.folder / "private").glob("aside*"))
    assert set(Path(tempfile.gettempdir()).glob("etilqs*")) == before
