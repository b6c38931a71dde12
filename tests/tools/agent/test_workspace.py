"""The space of agent tools: every state can be gone back to, and a cut at any step leaves one that is whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from exo.core.base.errors import ExoError, StorageError
from exo.tools.agent import workspace as module
from exo.tools.agent.workspace import FILE, Draft, Workspace
from exo.tools.clock import FakeClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

NAMES = st.sampled_from(["a", "b.txt", "deep/er/c"])
TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=30)


def contents(space: Workspace, line: str = "main") -> dict[str, str]:
    return {name: space.read(name, line) for name in space.files(line)}


class Against(RuleBasedStateMachine):
    """A space beside a plain dict and the list of its copies."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.space = Workspace(Path(self.folder.name), self.clock)
        self.state: dict[str, str] = {}
        self.states: dict[str, dict[str, str]] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(changes=st.dictionaries(NAMES, st.none() | TEXTS, max_size=3))
    def commit(self, changes: dict[str, str | None]) -> None:
        self.clock.advance(1)
        made = self.space.commit(changes, "change")
        for name, text in changes.items():
            self.state.pop(name, None)
            if text is not None:
                self.state[name] = text
        self.states[made.id] = dict(self.state)

    @rule(pick=st.integers(0, 50))
    def rewind(self, pick: int) -> None:
        known = [each.id for each in self.space.snapshots()]
        if known:
            id_ = known[pick % len(known)]
            self.space.rewind(id_[:20])
            self.state = dict(self.states[id_])

    @rule()
    def collect(self) -> None:
        self.space.collect()

    @invariant()
    def same(self) -> None:
        assert contents(self.space) == self.state
        for each in self.space.snapshots():
            assert each.files == len(self.states[each.id])


TestAgainst = Against.TestCase
TestAgainst.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)


class Cut(Exception):
    pass


def test_a_cut_at_any_write_leaves_a_whole_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write of a commit, and of going back, is once the one before which the power goes."""
    real = module.write_atomic
    for action in ("commit", "rewind"):
        for n in range(1, 12):
            folder = tmp_path / f"{action}{n}"
            space = Workspace(folder, FakeClock())
            first = space.commit({"a": "1", "b": "2"}, "first")
            space.commit({"a": "3"}, "second")
            before = contents(space)
            after = {"b": "4", "c": "5"} if action == "commit" else {"a": "1", "b": "2"}
            left = [n]

            def write(*args: object, left: list[int] = left) -> None:
                left[0] -= 1
                if not left[0]:
                    raise Cut
                real(*args)  # type: ignore[arg-type]

            monkeypatch.setattr(module, "write_atomic", write)
            done = False
            try:
                if action == "commit":
                    space.commit({"a": None, "b": "4", "c": "5"}, "third")
                else:
                    space.rewind(first.id)
                done = True
            except Cut:
                pass
            monkeypatch.setattr(module, "write_atomic", real)
            again = Workspace(folder, FakeClock())
            assert contents(again) == (after if done else before)
            for each in again.snapshots():
                again.rewind(each.id)  # every state that is named can be gone back to
            if done:
                break
        assert done and n > 2


def test_a_line_begins_as_its_parent_was(tmp_path: Path) -> None:
    clock = FakeClock()
    space = Workspace(tmp_path, clock)
    space.commit({"a": "old"}, "x")
    clock.advance(10)
    then = clock.now_ms()
    clock.advance(10)
    space.commit({"a": "new"}, "y")
    space.branch("fork1", then)
    assert contents(space, "fork1") == {"a": "old"}
    space.commit({"a": "mine"}, "z", "fork1")
    space.branch("fork1", clock.now_ms())  # it is there: nothing changes
    assert contents(space, "fork1") == {"a": "mine"} and contents(space) == {"a": "new"}
    space.branch("empty", 0)
    assert contents(space, "empty") == {}


def test_what_cannot_be_kept_is_told_and_keeps_nothing(tmp_path: Path) -> None:
    space = Workspace(tmp_path, FakeClock())
    for name in ("", "/etc/passwd", "../x", "a//b", ".hidden", "a/../b", "x" * 81, "a\0", "ü"):
        with pytest.raises(ExoError, match="refused"):
            space.commit({"good": "1", name: "x"}, "bad")
    with pytest.raises(ExoError, match="refused"):
        space.commit({"big": "x" * (FILE + 1)}, "bad")
    with pytest.raises(ExoError, match="would hold"):
        space.commit({f"f{n}": str(n) for n in range(2_001)}, "many")
    assert space.files() == {} and space.snapshots() == []
    for id_ in ("", "zz", "0"):
        with pytest.raises(ExoError, match="go back"):
            space.rewind(id_)


def test_a_call_sees_its_own_changes_and_keeps_them_together(tmp_path: Path) -> None:
    space = Workspace(tmp_path, FakeClock())
    space.commit({"a": "1", "b": "2"}, "x")

    async def work() -> None:
        draft = Draft(space, "main")
        await draft.space_write("c", "3")
        await draft.space_remove("a")
        assert await draft.space_list() == ["b", "c"] and await draft.space_read("c") == "3"
        for name in ("a", "nothing"):
            with pytest.raises(ExoError):
                await draft.space_read(name)
        with pytest.raises(ExoError):
            await draft.space_write("bad name", "x")
        assert contents(space) == {"a": "1", "b": "2"}
        draft.commit("call")

    asyncio.run(work())
    assert contents(space) == {"b": "2", "c": "3"}


def test_damage_is_told(tmp_path: Path) -> None:
    space = Workspace(tmp_path, FakeClock())
    space.commit({"a": "hello"}, "x")
    path = space._path(space.files()["a"])
    path.write_text("hullo")
    with pytest.raises(ExoError, match="not what they were"):
        space.read("a")


def test_a_tool_that_writes_without_end_does_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest states go; the present one and those near it are whole."""
    monkeypatch.setattr(module, "HELD", 1_000_000)
    monkeypatch.setattr(module, "FRESH", 200_000)
    space = Workspace(tmp_path, FakeClock())
    space.commit({"kept": "from the first on"}, "first")
    for n in range(60):
        space.commit({"log": f"{n:06}" * 20_000}, f"call {n}")
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 1_500_000
    states = space.snapshots()
    assert 5 <= len(states) < 20 and states[-1].label == "call 59"
    for state in (states[0], states[-1]):
        space.rewind(state.id)
        assert space.read("kept") == "from the first on" and len(space.read("log")) == 120_000


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGE: list[Callable[[Path], object]] = [
    *(fifo, folder, link, Path.unlink),
    lambda path: os.truncate(path, 5 * 10**9),  # holes
    lambda path: path.write_bytes(b"\xff\xfe\0garbage"),
    lambda path: path.write_bytes(b"\0" * 4096),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:-20]),
    lambda path: path.write_text("../../../etc/passwd"),
    lambda path: path.write_text("[" * 100_000),
    lambda path: path.write_text('{"id": 5, "ts": "x", "label": [], "files": {}}\nnull\n5'),
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", ["head", "log", "list", "object"])
def test_a_damaged_file_costs_what_it_held_alone(
    tmp_path: Path, which: str, damage: Callable[[Path], object]
) -> None:
    """Nothing hangs, nothing else is lost, and the next commit is whole."""
    clock = FakeClock()
    space = Workspace(tmp_path, clock)
    for n in range(3):
        space.commit({f"f{n}": f"text {n}", "last": str(n)}, f"call {n}")
    line = tmp_path / "lines" / "main"
    present, object_ = space._head("main"), space.files()["f2"]
    paths = {"head": line / "head", "log": line / "log.jsonl"}
    paths |= {"list": space._path(present), "object": space._path(object_)}
    damage(paths[which])
    space = Workspace(tmp_path, clock)
    files = space.files()
    assert set(files) == ({"f0", "f1", "last"} if which == "list" else {"f0", "f1", "f2", "last"})
    assert space.read("f1") == "text 1"
    if which == "object":
        with pytest.raises(ExoError, match="not what they were"):
            space.read("f2")
    else:
        assert space.read("last") == ("1" if which == "list" else "2")
    with contextlib.suppress(ExoError):  # what a damaged list names stays as well
        space.collect()
    with contextlib.suppress(StorageError):  # a folder in the place of a file is not replaced
        space.commit({"f2": "text 2", "new": "n"}, "after")
        assert contents(space)["f1"] == "text 1" and space.read("f2") == "text 2"
        assert space.snapshots()[-1].label == "after"
        space.rewind(space.snapshots()[-1].id)
    assert space.read("f0") == "text 0"
    assert space.snapshots() or which == "log"
