"""read_file, write_file, list_dir, search_files: limits, odd files, and the walls around the folder."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.protocol.schema import Call
from exo.core.toolbox import results
from exo.core.toolbox.registry import Context, Output, Toolbox, ToolSpec, check_args
from exo.tools.workbench import files
from exo.tools.workbench.files import resolve, search_files
from hypothesis import example, given, settings
from hypothesis import strategies as st


@pytest.fixture
def work(tmp_path: Path) -> Context:
    folder = tmp_path / "work"
    folder.mkdir()
    return Context("s", folder, results=tmp_path / "results", closed=(folder / "state",))


def test_lines_are_read_in_parts(work: Context) -> None:
    (work.cwd / "f").write_text("".join(f"{n}\n" for n in range(1, 1001)))
    assert files.read_file(work, "f", 3, 2) == "3\n4\n[more lines: go on with offset 5]"
    assert files.read_file(work, "f", 999) == "999\n1000"
    assert files.read_file(work, "f").endswith("[more lines: go on with offset 401]")


def test_long_lines_and_long_files_are_bounded(work: Context) -> None:
    (work.cwd / "f").write_text("x" * 1_000_000 + "\ny\n")
    assert files.read_file(work, "f").endswith("x\n[more lines: go on with offset 2]")
    (work.cwd / "g").write_text(("y" * 1000 + "\n") * 300)
    text = files.read_file(work, "g")
    assert len(text) < results.LIMIT and text.endswith("[more lines: go on with offset 92]")


OUTSIDE = ["../x", "/etc/passwd", "~root/x", "link", "link/secret", "state/key", "a\0b", ""]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_tool_leaves_the_folder(work: Context, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret words")
    (work.cwd / "link").symlink_to(tmp_path / "outside")
    (work.cwd / "state").mkdir()
    (work.cwd / "state" / "key").write_text("secret words")
    for call in (
        lambda: files.read_file(work, path),
        lambda: files.write_file(work, path, "x"),
        lambda: files.edit_file(work, path, "secret", "x"),
        lambda: files.list_dir(work, path),
        lambda: search_files(work, "secret", path),
    ):
        with pytest.raises(ExoError):
            call()
    assert search_files(work, "secret") == "nothing found"
    assert (tmp_path / "outside" / "secret").read_text() == "secret words"


PARTS = st.lists(
    st.sampled_from(
        ["..", ".", "a", "link", "loop", "~", "/", "//", "up", "", "a/..", "\u2025", "%2e%2e"]
    ),
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(PARTS)
@example(["loop", "..", "up"])
def test_a_path_is_inside_or_refused(parts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "work"
        (root / "a").mkdir(parents=True)
        (root / "link").symlink_to(root / "a")
        (root / "loop").symlink_to(root / "loop")
        (root / "up").symlink_to("..")
        try:
            full = resolve("/".join(parts), Context("s", root))
        except ExoError:
            return
        assert full == full.resolve() and full.is_relative_to(root)


def test_odd_files_are_refused(work: Context) -> None:
    os.mkfifo(work.cwd / "pipe")
    (work.cwd / "bin").write_bytes(b"a\0b")
    (work.cwd / "dir").mkdir()
    for name in ("pipe", "bin", "dir", "none"):
        with pytest.raises(ExoError):
            files.read_file(work, name)
        with pytest.raises(ExoError):
            files.edit_file(work, name, "a", "b")
    for name in ("pipe", "dir"):
        with pytest.raises(ExoError):
            files.write_file(work, name, "x")
    with pytest.raises(ExoError):
        files.write_file(work, "bin/x", "x")
    with pytest.raises(ExoError, match="no such folder"):
        files.list_dir(work, "nowhere")


def test_files_are_written_whole_in_new_folders(work: Context) -> None:
    assert files.write_file(work, "a/b/c.txt", "grün\n").startswith("Made")
    assert files.write_file(work, "a/b/c.txt", "two").startswith("Replaced")
    assert (work.cwd / "a/b/c.txt").read_text() == "two"
    assert [p.name for p in (work.cwd / "a/b").iterdir()] == ["c.txt"]
    with pytest.raises(ExoError, match="half a character"):
        files.write_file(work, "x", "\ud800")


def test_folders_are_listed(work: Context) -> None:
    (work.cwd / "sub").mkdir()
    (work.cwd / "b.txt").write_text("12345")
    (work.cwd / "a").symlink_to("nowhere")
    first, second, third = files.list_dir(work).split("\n")
    assert first == "sub/" and second == "a -> nowhere" and third == "b.txt  5 bytes"
    assert files.list_dir(work, "sub") == "(empty)"


def test_search_finds_lines_and_skips_what_is_no_text(work: Context) -> None:
    (work.cwd / "sub").mkdir()
    (work.cwd / ".git").mkdir()
    (work.cwd / ".git" / "x").write_text("needle")
    (work.cwd / "sub" / "a.txt").write_text("one\nthe needle (x\n")
    (work.cwd / "bin").write_bytes(b"needle\0")
    found = search_files(work, r"ne+dle")
    assert found == "sub/a.txt:2: the needle (x"
    literal = search_files(work, "needle (x", "sub")
    assert literal.startswith("[no regular expression") and "a.txt:2" in literal
    assert "a.txt:1" in search_files(work, "one", "sub/a.txt")
    (work.cwd / "many").write_text("hit\n" * 500)
    assert "[stopped after 200 finds" in search_files(work, "hit")


def test_a_pattern_that_runs_away_holds_nobody_up(work: Context, monkeypatch: Any) -> None:
    monkeypatch.setattr(files, "DEADLINE", 0.7)
    (work.cwd / "a").write_text("found aaab\n")
    (work.cwd / "b").write_text("a" * 60 + "c\n")

    async def test() -> tuple[str, int]:
        ticks = 0
        task = asyncio.create_task(asyncio.to_thread(search_files, work, r"(a+)+b"))
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return task.result(), ticks

    text, ticks = asyncio.run(test())
    assert "a:1: found aaab" in text and "[stopped after 0.7 s" in text and ticks > 5


# ---- the registry --------------------------------------------------------------------------------


def box(handler: Any, **more: Any) -> Toolbox:
    made = Toolbox(timeout=0.3)
    made.register(ToolSpec("t", "", {"type": "object", "properties": {}}, handler, **more))
    return made


def test_long_results_are_kept_and_can_be_read_on(work: Context) -> None:
    whole = "".join(f"line {n}\n" for n in range(60_000))

    async def test() -> None:
        made = await box(lambda context: Output(whole, end="[exit code 0]")).run(
            Call("c/1", "t", {}), work
        )
        assert made.text.endswith("[exit code 0]") and len(made.text) < results.LIMIT + 500
        [kept] = list((work.results or Path()).iterdir())
        assert str(kept) in made.text and kept.read_text() == whole
        offset = int(made.text.split("from offset ")[1].split()[0])
        fresh = Context("s", work.cwd, results=work.results)
        rest = files.read_file(fresh, str(kept), offset, 2).split("\n")
        assert rest[0].startswith("line ") and f"\n{rest[0][:8]}" in made.text
        with pytest.raises(ExoError):
            files.write_file(work, str(kept), "x")

    asyncio.run(test())


def test_kept_results_are_bounded(work: Context) -> None:
    for n in range(results.KEPT_FILES + 5):
        results.cut("x" * (results.LIMIT + 1), work.results, f"c{n}")
    assert len(list((work.results or Path()).iterdir())) == results.KEPT_FILES


def test_a_handler_that_blocks_is_given_up_and_told(work: Context) -> None:
    stopped: list[bool] = []

    def block(context: Context) -> None:
        stopped.append(context.stop.wait(20))

    async def test() -> None:
        made = await box(block).run(Call("c", "t", {}), work)
        assert not made.ok and "stopped after 0.3 s" in made.text
        while not stopped:
            await asyncio.sleep(0.01)
        assert stopped == [True]

    asyncio.run(test())


def test_a_blocked_thread_and_a_stubborn_task_do_not_hold_up_the_end(tmp_path: Path) -> None:
    code = (
        "import asyncio, time\n"
        "from exo.core.toolbox import workers\n"
        "workers.GRACE = 0.2\n"
        "async def stubborn():\n"
        "    while True:\n"
        "        try: await asyncio.sleep(0.05)\n"
        "        except asyncio.CancelledError: break_at.append(1)\n"
        "        if len(break_at) > 1: return\n"
        "break_at = []\n"
        "async def main():\n"
        "    for work in (workers.in_thread(time.sleep, 1000), stubborn()):\n"
        "        try: await workers.within(0.2, work)\n"
        "        except TimeoutError: print('given up')\n"
        "asyncio.run(main())\n"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "given up\ngiven up\n", done.stderr


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (ValueError("no"), "t: ValueError: no"),
        (ExoError("do it", "no", code="no_channel"), "[no_channel] do it: no"),
        (SystemExit(1), "SystemExit"),
        (StopIteration(), "StopIteration"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_what_a_handler_raises_is_a_result(work: Context, raised: BaseException, says: str) -> None:
    def fail(context: Context) -> None:
        raise raised

    made = asyncio.run(box(fail).run(Call("c", "t", {}), work))
    assert not made.ok and says in made.text


def test_toolsets_and_availability_narrow_what_there_is(work: Context) -> None:
    made = box(lambda context: "x", toolset="a")
    assert [spec.name for spec in made.specs({"b"})] == []
    narrow = Context("s", work.cwd, toolsets=frozenset({"b"}))
    assert "there is no tool 't'" in asyncio.run(made.run(Call("c", "t", {}), narrow)).text
    broken = box(lambda context: "x", available=lambda: 1 / 0)
    assert broken.specs() == []
    assert "its check failed" in asyncio.run(broken.run(Call("c", "t", {}), work)).text
    off = box(lambda context: "x", available=lambda: "it is off")
    assert off.specs() == [] and "it is off" in asyncio.run(off.run(Call("c", "t", {}), work)).text


@pytest.mark.parametrize(
    ("rule", "value", "says"),
    [
        ({"type": "integer"}, 1.0, "a integer"),
        ({"type": ["string", "null"]}, None, ""),
        ({}, {"any": 1}, ""),
        ({"enum": ["a"]}, "b", "one of a"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": 1}, "of strings"),
        ({"type": "number", "minimum": 1}, 0, "1 to"),
        ({"type": "boolean"}, 1, "a boolean"),
    ],
)
def test_arguments_are_checked(rule: dict[str, Any], value: Any, says: str) -> None:
    fault = check_args({"properties": {"x": rule}}, {"x": value})
    assert says in fault and bool(says) == bool(fault)


def test_search_starts_quickly_enough_to_be_used(work: Context) -> None:
    begun = time.monotonic()
    assert search_files(work, "x") == "nothing found"
    assert time.monotonic() - begun < files.DEADLINE
