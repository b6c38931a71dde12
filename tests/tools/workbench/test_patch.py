"""apply_patch: both forms, all or nothing, and never outside the folder."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path

import pytest
from exo.core.base.errors import ExoError
from exo.core.toolbox.registry import Context
from exo.tools.workbench import files
from exo.tools.workbench.files import apply_patch
from exo.tools.workbench.patch import apply
from hypothesis import example, given, settings
from hypothesis import strategies as st

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def one(text: str, patch: str, name: str = "f") -> str | None:
    return apply(patch, lambda path: text if path == name else None)[name]


def unified(a: str, b: str) -> str:
    """A unified diff as `diff -u` writes it, with the mark of a missing last line's end."""
    rows = difflib.unified_diff(_lines(a), _lines(b), "a/f", "b/f")
    return "".join(
        row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in rows
    )


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


TEXTS = st.lists(
    st.sampled_from(["a", "b", "", " x", "\ty ", "é", "--- q", "+++", "@@"]), max_size=14
).flatmap(
    lambda lines: st.sampled_from(
        ["\n".join(lines), "\n".join([*lines, ""]), "\r\n".join([*lines, ""])]
    )
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS)
@example("a", "a\n")
@example("", "x")
@example("x\n", "")
def test_apply_and_then_reverse_gives_the_original(a: str, b: str) -> None:
    if a == b:
        return
    made = one(a, unified(a, b))
    assert made == b
    assert one(b, unified(b, a)) == a


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.text("xyz\n", max_size=30))
def test_a_hunk_finds_its_place_in_a_file_that_grew(at: int, above: str) -> None:
    lines = [f"line {n}\n" for n in range(40)]
    changed = [*lines]
    changed[at] = "changed\n"
    before, after = "".join(lines), "".join(changed)
    assert one(f"{above}\n{before}", unified(before, after)) == f"{above}\n{after}"


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ("@@\n two\n-three\n+3\n four\n", TEXT.replace("three", "3")),
        ("@@ two\n-three\n+3\n", TEXT.replace("three", "3")),
        ("-three\n+3\n", TEXT.replace("three", "3")),
        ("@@\n  two \n-three  \n+3\n", TEXT.replace("three", "3")),  # white space differs
        ("@@\n-one\n+1\n@@\n-seven\n+7\n", TEXT.replace("one", "1").replace("seven", "7")),
        ("@@\n-seven\n+7\n*** End of File\n", TEXT.replace("seven", "7")),
        ("@@\n+last\n", TEXT + "last\n"),
        ("@@ six\n+between\n", TEXT.replace("six\n", "six\nbetween\n")),
    ],
)
def test_the_begin_patch_form(patch: str, result: str) -> None:
    whole = f"*** Begin Patch\n*** Update File: f\n{patch}*** End Patch\n"
    assert one(TEXT, whole) == result
    assert one(TEXT, f"```diff\n{whole}```\n") == result


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("", "it has no file"),
        ("hello", "it has no file"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-one\n+1\n", "cut off"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-nine\n+9\n*** End Patch", "from line 1"),
        ("*** Begin Patch\n*** Update File: f\n@@ nine\n-one\n+1\n*** End Patch", "no line 'nine'"),
        ("*** Begin Patch\n*** Update File: g\n@@\n-one\n+1\n*** End Patch", "no such file"),
        ("*** Begin Patch\n*** Add File: f\n+x\n*** End Patch", "there already"),
        ("*** Begin Patch\n*** Add File: n\nx\n*** End Patch", "a line begins with"),
        ("*** Begin Patch\n+x\n*** End Patch", "belongs to no file"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n", "fewer lines"),
        ("--- a/f\n+++ b/f\n@@ nonsense @@\n-one\n", "no hunk of text"),
        ("--- a/f\n+++ b/f\n", "does not say what to change"),
        ("@@ -1 +1 @@\n-one\n+1\n", "without its file"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-one\n+1\n", "does not say what to change"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "no hunk of text"),
        ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "lines remain"),
        ("*** Begin Patch\n*** Move to: g\n*** End Patch", "right below an update"),
    ],
)
def test_what_does_not_fit_is_said(patch: str, says: str) -> None:
    with pytest.raises(ExoError) as caught:
        one(TEXT, patch)
    assert says in str(caught.value)


def test_several_places_are_an_error_where_no_line_is_named() -> None:
    with pytest.raises(ExoError, match="it fits at lines 1, 3"):
        one("a\nb\na\n", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+c\n*** End Patch\n")


def test_lines_of_the_file_that_only_stand_around_keep_their_bytes() -> None:
    text = "a  \r\nb\r\nc\t\r\n"
    patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    assert one(text, patch) == "a  \r\nB\r\nc\t\r\n"


def test_many_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_text(TEXT)
    (tmp_path / "old.txt").write_text("old\n")
    (tmp_path / "gone.txt").write_text("gone\n")
    patch = (
        "*** Begin Patch\n*** Update File: keep.txt\n@@\n-one\n+1\n*** Update File: ./keep.txt\n@@\n-two\n+2\n"
        "*** Update File: old.txt\n*** Move to: sub/new.txt\n@@\n-old\n+new\n"
        "*** Delete File: gone.txt\n*** Add File: made/deep.txt\n+fresh\n*** End Patch\n"
    )
    said = apply_patch(Context("s", tmp_path), patch)
    assert (tmp_path / "keep.txt").read_text() == TEXT.replace("one", "1").replace("two", "2")
    assert (tmp_path / "sub" / "new.txt").read_text() == "new\n"
    assert (tmp_path / "made" / "deep.txt").read_text() == "fresh\n"
    assert not (tmp_path / "old.txt").exists() and not (tmp_path / "gone.txt").exists()
    assert (
        "changed keep.txt" in said and "deleted gone.txt" in said and "added made/deep.txt" in said
    )


def test_what_git_writes_is_understood(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *args]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q")
    for name, text in (("a.txt", TEXT), ("b.txt", TEXT * 3), ("empty", ""), ("c.txt", "no end")):
        (tmp_path / name).write_text(text)
    git("add", "-A")
    git("commit", "-qm", "x")
    (tmp_path / "a.txt").rename(tmp_path / "moved.txt")
    (tmp_path / "b.txt").write_text("top\n" + TEXT * 3 + "end")
    (tmp_path / "empty").unlink()
    (tmp_path / "fresh").write_text("")
    (tmp_path / "c.txt").write_text("no end\n")
    git("add", "-A")
    patch = git("diff", "--cached", "-M")
    wanted = {p.name: p.read_text() for p in tmp_path.iterdir() if p.is_file()}
    git("reset", "-q", "--hard")
    apply_patch(Context("s", tmp_path), patch)
    assert {p.name: p.read_text() for p in tmp_path.iterdir() if p.is_file()} == wanted


HOSTILE = [
    "../x",
    "/etc/x",
    "a/../../x",
    "~/x",
    "link/x",
    "b/../../x",
    "./../x",
    "\0",
    "closed/x",
    "file/x",
]


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize(
    "form",
    [
        "*** Begin Patch\n*** Add File: good\n+x\n*** Add File: {0}\n+x\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: f\n*** Move to: {0}\n@@\n-one\n+1\n*** End Patch\n",
        "--- /dev/null\n+++ {0}\n@@ -0,0 +1 @@\n+x\n",
        "--- a/f\n+++ b/{0}\n@@ -1 +1 @@\n-one\n+1\n",
        "diff --git a/f b/f\nrename from f\nrename to {0}\n",
    ],
)
def test_no_path_leads_outside(tmp_path: Path, path: str, form: str) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    (work / "closed").mkdir(parents=True)
    (work / "f").write_text(TEXT)
    (work / "file").write_text("a file")
    (work / "link").symlink_to(outside)

    def look() -> set[str]:
        return {str(p) for p in tmp_path.rglob("*")}

    before = look()
    context = Context("s", work, closed=(work / "closed",))
    with pytest.raises(ExoError):
        apply_patch(context, form.format(path))
    assert look() == before and (work / "f").read_text() == TEXT


def test_a_disk_that_refuses_midway_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / name).write_text(f"{name}\n")
    real, calls = files.save_text, []

    def save(path: Path, text: str | None) -> None:
        calls.append(path)
        if len(calls) == 2:
            raise ExoError("write", "the disk is full")
        real(path, text)

    monkeypatch.setattr(files, "save_text", save)
    patch = "*** Begin Patch\n*** Delete File: a\n" + "".join(
        f"*** Update File: {name}\n@@\n-{name}\n+new\n" for name in "bc"
    )
    with pytest.raises(ExoError, match="disk is full"):
        apply_patch(Context("s", tmp_path), patch + "*** End Patch\n")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {n: f"{n}\n" for n in "abc"}


def test_a_file_that_is_executable_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(TEXT)
    path.chmod(0o775)
    apply_patch(Context("s", tmp_path), unified(TEXT, TEXT.replace("one", "1")))
    assert path.stat().st_mode & 0o777 == 0o775 and os.access(path, os.X_OK)
