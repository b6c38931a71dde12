"""What a shell would run of a text."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from exo.tools.gate.shell import parse
from hypothesis import given, settings
from hypothesis import strategies as st

KNOWN = {"HOME": "/home/u", "PWD": "/w"}
PIECES = [
    *"'\"\\$`|&;<>(){}*?[]~#=! \n\t",
    *("$(", "${", "$((", "))", "<<", "<<<", "<<E\n", "\nE\n", "$'", "&&", "||", ";;", "\\\n", "\0"),
    *(
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "function",
        "[[",
        "]]",
    ),
    *(
        "rm",
        "-rf",
        "X=",
        "$X",
        "ls",
        "echo",
        "a",
        "f()",
        "{a,b}",
        "{1..3}",
        "é",
        "\u200b",
        "\ud800",
    ),
]

LIVELY = [
    *(
        "M ",
        "M",
        " M ",
        "M\n",
        "echo ",
        "true ",
        ";",
        " ; ",
        "|",
        "&&",
        "||",
        "&",
        "\n",
        "(M)",
        "{ M; }",
    ),
    *(
        "'",
        '"',
        "$(",
        ")",
        "`",
        "\\",
        "$'",
        "#",
        " # ",
        "X=M;",
        "X=",
        "$X",
        "${X}",
        "{M,b}",
        "<(M)",
        "'M'",
    ),
    *(
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case x in ",
        "x)",
        ";;",
        "esac",
        "f()",
        "[[ ",
    ),
    *(
        "]]",
        "<<E\n",
        "\nE\n",
        "<<<",
        ">",
        "((",
        "))",
        "$((",
        "${",
        "}",
        "\\\n",
        " ",
        "\t",
        "a ",
        "eval ",
    ),
]


def words(text: str) -> list[list[str]]:
    """The sure words of each command; a word that is not sure is "?"."""
    script = parse(text, KNOWN)
    assert not script.faults
    return [[word.text if word.sure else "?" for word in each.words] for each in script.commands]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ls -la | grep 'a b'", [["ls", "-la"], ["grep", "a b"]]),
        ('r""m -r\\f x', [["rm", "-rf", "x"]]),
        ("$'\\x72\\155' x", [["rm", "x"]]),
        ("X=rm; $X -rf ~/a", [[], ["rm", "-rf", "/home/u/a"]]),
        ("X='rm -rf'; $X a; \"$X\" a", [[], ["rm", "-rf", "a"], ["rm -rf", "a"]]),
        ("rm${IFS}-rf${IFS}/", [["rm", "-rf", "/"]]),
        ("{rm,-rf,/}", [["rm", "-rf", "/"]]),
        ("echo a{b,c}d", [["echo", "abd", "acd"]]),
        ("echo $(rm x)", [["rm", "x"], ["echo", "?"]]),
        ('echo "`rm x`"', [["rm", "x"], ["echo", "?"]]),
        ("echo '$(rm x)' \\$\\(rm\\)", [["echo", "$(rm x)", "$(rm)"]]),
        ("diff <(ls a) >(wc)", [["ls", "a"], ["wc"], ["diff", "?", "?"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("for f in a b; do x $f; done", [["x", "a", "b"]]),
        ("case $x in a|b) c;; (d) e;; esac; f", [["c"], ["e"], ["f"]]),
        ("f() { a; }; function g { b; }; f", [["a"], ["b"], ["f"]]),
        ("( a; b ) && { c; }", [["a"], ["b"], ["c"]]),
        ("a # b; c\nd", [["a"], ["d"]]),
        ("a # b \\\nc", [["a"], ["c"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("echo a#b", [["echo", "a#b"]]),
        ("((i++)); echo $((1 + (2 * 3)))", [["(("], ["echo", "0"]]),
        ("$((rm x) | (cat))", [["rm", "x"], ["cat"], ["?"]]),
        ("[[ $a =~ ^(x|y)$ && -f b ]] || c", [["[["], ["c"]]),
        ("A=1 B=2 env -i c", [["env", "-i", "c"]]),
        ("export P=x; echo $P", [["export"], ["echo", "x"]]),
        ("read a; echo $a $1", [["read", "a"], ["echo", "?", "?"]]),
        ("time ! a", [["a"]]),
        ("cat <<'E'\n$(rm x)\nE\nls", [["cat"], ["ls"]]),
        ("cat <<-E\n\t$(rm x)\n\tE\nls", [["cat"], ["rm", "x"], ["ls"]]),
        ("a=(1 2 $(b)); c", [["b"], [], ["c"]]),
        ("", []),
    ],
)
def test_the_commands_of_a_text(text: str, wanted: list[list[str]]) -> None:
    assert words(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "echo 'a",
        'echo "a',
        "echo $(a",
        "echo `a",
        "( a",
        "a )",
        "{ a",
        "if a",
        "fi",
        "echo ${a",
        "a <<E\nb",
        "a >",
        "x\0y",
    ],
)
def test_what_is_broken_is_a_fault(text: str) -> None:
    assert parse(text, KNOWN).faults


def test_a_variable_that_may_have_another_value_is_not_sure() -> None:
    for text in ("x=ls; x=rm; true && $x a", "true && x=ls; $x a", "if a; then x=ls; fi; $x a"):
        last = parse(text, KNOWN).commands[-1]
        assert not last.words[0].sure or last.words[0].choice, text


def test_pipes_and_heredocs_say_what_is_read() -> None:
    script = parse("{ a; b; } | c | d <<< text", KNOWN)
    assert [list(each.feeds) for each in script.commands] == [[], [], [0, 1], [0, 1, 2]]
    assert script.commands[3].here is not None and script.commands[3].here.text == "text"
    assert parse("a > b 2>&1 < c", KNOWN).commands[0].redirects[0][0] == ">"


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=80))
def test_never_raises(text: str) -> None:
    script = parse(text, KNOWN)
    assert all(each.scope < len(script.scopes) for each in script.commands)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which alone bash finds a program, M, that leaves a mark when it runs."""
    folder = tmp_path_factory.mktemp("bash")
    (folder / "bin").mkdir()
    (folder / "work").mkdir()
    (folder / "bin" / "M").write_text(f"#!/bin/sh\n: > {folder}/ran\n")
    (folder / "bin" / "M").chmod(0o755)
    return folder


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(LIVELY), min_size=1, max_size=14).map("".join))
def test_what_bash_runs_is_found(marked: Path, text: str) -> None:
    script = parse(text, {"HOME": "/h"})
    firsts = [each.words[0] for each in script.commands if each.words]
    if script.faults or any(
        not word.sure or word.choice or word.glob or word.text in ("M", "eval") for word in firsts
    ):
        return
    (marked / "ran").unlink(missing_ok=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["/bin/bash", "-c", text],
            cwd=marked / "work",
            env={"PATH": str(marked / "bin")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
        )
        assert not (marked / "ran").exists()


@pytest.mark.parametrize(
    "piece",
    [
        "a;",
        "(",
        "$(",
        "\\a",
        '"',
        "`",
        "$((",
        "{a,b}",
        "a=$a$a;",
        "<<a ",
        "${",
        "\n",
        "{",
        "[[",
        "((1",
        "{,..",
        "a|",
        "#\n",
        "a)b;;",
        "'",
        "if ",
        "$'",
        "<(",
        "${a:-",
    ],
)
def test_a_megabyte_ends(piece: str) -> None:
    assert parse(piece * (1_000_000 // len(piece)), KNOWN).faults or piece in ("#\n", "\n", "'")
