"""edit_file: what fits, what does not, and that nothing else changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from exo.core.base.errors import ExoError
from exo.core.toolbox.registry import Context
from exo.tools.workbench import files
from exo.tools.workbench.edit import edit
from hypothesis import given, settings
from hypothesis import strategies as st

CODE = "def f(x):\n    if x:\n        return  1\n    return 2\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "result", "how"),
    [
        (CODE, "return 2", "return 3", CODE.replace("return 2", "return 3"), "exact"),
        # the indentation of the file wins over the quoted one
        (
            CODE,
            "if x:\n    return  1",
            "if x:\n    return  5",
            CODE.replace("1", "5"),
            "white space",
        ),
        (
            CODE,
            "  return 2  ",
            "  return 4  ",
            CODE.replace("return 2", "return 4  "),
            "white space",
        ),
        (
            CODE,
            "\n\nreturn 2\n\n",
            "return 4",
            CODE.replace("return 2", "return 4"),
            "white space",
        ),
        (CODE, "return 1", "return 9", CODE.replace("return  1", "return 9"), "white space"),
        (CODE, "if x: return 1", "pass", "def f(x):\n    pass\n    return 2\n", "white space"),
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n", "exact"),
        ("a\r\n  b\r\n", "b", "c", "a\r\n  c\r\n", "exact"),
        ("\ufeffa\nb", "a", "c", "\ufeffc\nb", "exact"),
        ("é\u3000ü\n", "é ü", "ok", "ok\n", "white space"),
    ],
)
def test_a_passage_is_found_in_spite_of_white_space(
    text: str, old: str, new: str, result: str, how: str
) -> None:
    made = edit(text, old, new, "f")
    assert (made.text, made.how) == (result, how)


@pytest.mark.parametrize(
    ("text", "old", "says"),
    [
        ("a\na\n", "a", "fits 2 times (exact), at lines 1, 2"),
        ("  a = 1\n\ta = 1\n", "a = 1 \n", "fits 2 times (white space)"),
        ("x  y\nx   y\n", "x y", "fits 2 times (white space)"),
        ("alpha beta\ngamma\n", "alpha betta", "1: alpha beta"),
        ("alpha\n", "zzzzzz", "nothing like it"),
        ("", "a", "not in the file"),
        ("a", "  ", "old is empty"),
        ("a", "", "old is empty"),
        ("a", "a", "are the same"),
        ("aaa", "aa", "fits 2 times"),
    ],
)
def test_none_or_several_is_an_error_that_helps(text: str, old: str, says: str) -> None:
    with pytest.raises(ExoError) as caught:
        edit(text, old, "a" if old == "a" and text == "a" else "new", "f")
    assert says in str(caught.value)


LINES = st.lists(st.text("ab .\t{}é", max_size=6), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(LINES, st.data())
def test_only_the_passage_changes(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    old, new = text[begin:end], "<NEW>"
    try:
        made = edit(text, old, new, "f")
    except ExoError:
        assert not old.strip() or text.count(old) > 1 or text.find(old) != text.rfind(old)
        return
    assert made.text == text[:begin] + new + text[end:]
    assert edit(made.text, new, old, "f").text == text  # and back


def test_a_file_keeps_its_bytes_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"#!/bin/sh\necho \xff\xfe one\n")
    path.chmod(0o755)
    context = Context("s", tmp_path)
    said = files.edit_file(context, "run.sh", "one", "two")
    assert path.read_bytes() == b"#!/bin/sh\necho \xff\xfe two\n" and "line 2" in said
    assert path.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["run.sh"]


def test_large_texts_are_quick_to_refuse() -> None:
    text = "".join(f"line number {n} of many\n" for n in range(50_000))

    async def test() -> None:
        with pytest.raises(ExoError, match="nearest lines"):
            await asyncio.to_thread(edit, text, "line numbr 7 of many", "x", "f")

    asyncio.run(test())
