"""The store's own git history: what is in it, what is not, and what is gone after forgetting."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from exo.core.store.store import NewItem
from exo.core.store.views import Views

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
RARE = "My zanzibarian quokka answers to Xylophilus"
WORDS = ("zanzibarian", "quokka", "xylophilus")


def git(bench: Any, *words: str) -> str:
    places = ["--git-dir", str(bench.folder / ".git"), "--work-tree", str(bench.folder)]
    command = ["git", *places, *words]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")


def objects(bench: Any) -> str:
    """Every object there is, reachable or not."""
    return git(bench, "cat-file", "--batch-all-objects", "--batch", "--buffer")


def forget(bench: Any, id_: str, words: Any) -> None:
    gone = set(bench.store.entry_of(id_))
    while (
        more := {
            e.id for e in bench.ledger.referring(gone) if e.body is not None and e.kind != "forget"
        }
        - gone
    ):
        gone |= more
    bench.ledger.forget(sorted(gone), "asked for")
    bench.store.erase(gone, words)


def left(bench: Any) -> list[str]:
    """Files of the home, and objects of the history, that hold one of the rare words."""
    found = [
        str(path.relative_to(bench.home.root))
        for path in bench.home.root.rglob("*")
        if path.is_file() and any(word.encode() in path.read_bytes().lower() for word in WORDS)
    ]
    return found + [word for word in WORDS if word in objects(bench).lower()]


def test_only_curated_files_are_kept_and_no_word_is_in_a_message(bench: Any) -> None:
    bench.store.init({"name": "Ada"})
    node = bench.store.remember("I like tea")
    bench.store.add_items([NewItem("1", "one")], "bookmarks", "/x")
    bench.write("nodes/.a.swp", "x")
    assert bench.store.commit()
    assert not bench.store.commit()
    names = set(git(bench, "ls-tree", "-r", "--name-only", "HEAD").split())
    assert names == set(bench.files()) - {"nodes/.a.swp"}
    log = git(bench, "log", "--format=%an %ae %cn %s")
    assert "tea" not in log
    assert node.path in names
    assert {line.split()[0] for line in log.splitlines()} == {"exo"}


def test_no_hook_runs_and_no_setting_of_the_person_counts(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.store.init({})
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for place in (hooks, bench.folder / ".git" / "hooks"):
        place.mkdir(exist_ok=True)
        (place / "pre-commit").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        (place / "pre-commit").chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = {hooks}\n[user]\nname = somebody\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    bench.store.remember("I like tea")
    assert bench.store.commit()
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "elsewhere").exists()
    assert "somebody" not in git(bench, "log", "--format=%an %cn")


def test_without_git_the_store_goes_on(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    bench.store.init({})
    node = bench.store.remember(RARE)
    assert not bench.store.commit()
    assert not (bench.folder / ".git").exists()
    forget(bench, node.id, [RARE])
    assert bench.store.node(node.id) is None


def test_a_git_that_fails_does_no_harm(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bench.store.init({})
    assert bench.store.remember("I like tea").text == "I like tea\n"
    assert not bench.store.commit()


def test_a_later_commit_holds_what_an_earlier_failure_left(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    node = bench.store.remember("I like tea")
    assert not bench.store.commit()
    monkeypatch.undo()
    assert bench.store.commit()
    assert node.path in git(bench, "ls-tree", "-r", "--name-only", "HEAD")


@pytest.mark.parametrize(
    "words",
    [[RARE], list(WORDS), ["My", "zanzibarian", "quokka", "answers", "to", "Xylophilus"], []],
)
def test_forgetting_leaves_no_word(bench: Any, words: list[str]) -> None:
    bench.store.init({"name": "Ada"})
    keep = bench.store.remember("My sister answers to Eva")
    rule = bench.store.rule("Never answer to mail")
    node = bench.store.remember(RARE + ", when I call it", load_when=["zanzibarian talk"])
    bench.store.commit()
    bench.write(node.path, bench.read(node.path) + b"The quokka by hand\n")
    bench.store.sync()
    bench.store.commit()
    newer = bench.store.remember("Xylophilus is dead", supersedes=node.id)
    bench.store.commit()
    forget(bench, newer.id, [*words, "Xylophilus is dead"] if words else [])
    forget(bench, node.id, words)
    assert left(bench) == []
    assert bench.store.node(keep.id) == keep
    assert rule.id in bench.store.pack()
    assert "My sister answers to Eva" in git(bench, "log", "-p")
    assert len(git(bench, "log", "--oneline").splitlines()) == 1  # it began anew
    assert keep.path in git(bench, "ls-tree", "-r", "--name-only", "HEAD")
    assert git(bench, "fsck", "--full", "--strict") == ""
    assert git(bench, "status", "--porcelain", "--", "PACK.md") == ""


def test_what_a_hand_wrote_beside_a_forgotten_rule_stays(bench: Any) -> None:
    bench.store.init({"name": "Ada"})
    rule = bench.store.rule(RARE)
    bench.write(
        "PACK.md", bench.read("PACK.md").replace(b"## Ask first", b"## Ask first\n\n- by hand")
    )
    bench.store.sync()
    bench.store.commit()
    forget(bench, rule.id, [RARE])
    assert left(bench) == []
    assert b"- by hand" in bench.read("PACK.md")
    assert b"Call me: Ada" in bench.read("PACK.md")
    files = bench.files()
    bench.delete_views()
    bench.store.rebuild()
    assert bench.files() == files
    assert "- by hand" in git(bench, "log", "-p")


def test_an_unrecorded_hand_edit_is_forgotten_too(bench: Any) -> None:
    bench.store.init({})
    node = bench.store.remember(RARE)
    gone = bench.store.entry_of(node.id)
    bench.write(node.path, bench.read(node.path) + b"The quokka by hand\n")
    bench.ledger.forget(gone, "asked for")
    bench.store.erase(gone, [RARE])
    assert left(bench) == []
    assert bench.store.nodes() == []


def test_forgetting_by_another_process_that_died_is_completed(bench: Any) -> None:
    bench.store.init({})
    node, note = bench.store.remember(RARE), bench.store.note(RARE, channel="typed")
    bench.store.commit()
    bench.ledger.forget(
        [*bench.store.entry_of(node.id), *bench.store.entry_of(note.id)], "asked for"
    )
    bench.again().sync()
    assert left(bench) == []
    assert bench.store.node(node.id) is None
    assert bench.store.item(note.id) is None


def test_items_and_notes_are_forgotten(bench: Any) -> None:
    bench.store.init({})
    bench.store.add_items([NewItem("1", RARE), NewItem("2", "another")], "bookmarks", "/x")
    note = bench.store.note(RARE, channel="typed")
    item = next(item for item in bench.store.items() if item.kind == "item" and item.title == RARE)
    forget(bench, note.id, [RARE])
    forget(bench, item.id, [RARE])
    assert left(bench) == []
    assert [item.title for item in bench.store.items()] == ["another"]


def test_what_an_older_store_held_is_forgotten_too(bench: Any) -> None:
    bench.write("PACK.md", "# Pack\n")
    bench.write("nodes/a/pet.md", f'+++\nid = "pet"\n+++\n{RARE}\n')
    bench.write("nodes/a/other.md", '+++\nid = "other"\n+++\nThe sister\n')
    bench.store.sync()
    forget(bench, "pet", [RARE])
    assert left(bench) == []
    assert b"The sister" in bench.read("nodes/a/other.md")


@pytest.mark.parametrize("step", ["clear", "drop", "project"])
def test_forgetting_that_was_cut_off_keeps_what_a_hand_wrote(
    bench: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    bench.store.init({})
    rule, note = bench.store.rule(RARE), bench.store.note(RARE, channel="typed")
    bench.write("PACK.md", bench.read("PACK.md") + b"\n- by hand\n")
    bench.store.sync()
    gone = [*bench.store.entry_of(rule.id), *bench.store.entry_of(note.id)]

    def cut(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Views, step, cut)
    bench.ledger.forget(gone, "asked for")
    with pytest.raises(KeyboardInterrupt):
        bench.store.erase(gone, [RARE])
    monkeypatch.undo()
    bench.again().erase(gone, [RARE])
    assert left(bench) == []
    assert b"- by hand" in bench.read("PACK.md")


def test_forgetting_that_was_cut_off_after_the_history_went_is_completed(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.store.init({})
    node = bench.store.remember(RARE)
    bench.store.commit()

    def cut(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Views, "clear", cut)
    with pytest.raises(KeyboardInterrupt):
        forget(bench, node.id, [RARE])
    assert not (bench.folder / ".git").exists()
    monkeypatch.undo()
    bench.again().commit()  # the views still hold it
    bench.store.sync()
    assert left(bench) == []
    assert len(git(bench, "log", "--oneline").splitlines()) == 1
