"""Lint: every check finds its fault with path and line, and the empty store has none."""

from __future__ import annotations

from typing import Any

import pytest

GOOD = {
    "id": '"a"',
    "title": '"A"',
    "type": '"fact"',
    "domain": '"mine"',
    "summary": '"s"',
    "load_when": "[]",
    "confidence": '"high"',
    "stability": '"core"',
    "valid_from": '"2026-11-30"',
    "sources": "[]",
    "links": "[]",
}


def node(**changes: str | None) -> str:
    keys = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    return "+++\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()) + "+++\nbody\n"


@pytest.fixture
def linted(bench: Any) -> Any:
    bench.store.init(
        {"name": "Ada", "languages": "en", "about": "a nurse", "style": "short", "ask": "paying"}
    )

    def run(path: str, text: str) -> tuple[list[Any], list[Any]]:
        bench.write(path, text)
        bench.store.sync()
        found = bench.lint()
        return tuple([(row.path, row.line, row.what) for row in rows] for rows in found)  # type: ignore[return-value]

    return run


def test_the_template_and_a_good_node_have_no_findings(linted: Any) -> None:
    assert linted("nodes/mine/a.md", node()) == ([], [])


@pytest.mark.parametrize(
    ("changes", "line", "what"),
    [
        ({"title": None}, 1, "title is missing"),
        ({"load_when": '"x"'}, 7, "wants a list"),
        ({"summary": "3"}, 6, "wants a text"),
        ({"type": '"idea"'}, 4, "one of trait"),
        ({"confidence": '"sure"'}, 8, "one of high"),
        ({"valid_from": '"tomorrow"'}, 10, "is a date"),
        ({"id": '"b"'}, 2, "does not match the path"),
        ({"domain": '"other"'}, 5, "does not match the path"),
        ({"links": '[{type = "likes", to = "a"}]'}, 12, "a link is"),
        ({"links": '[{type = "explains", to = "nobody"}]'}, 12, "nobody"),
        ({"colour": '"red"'}, 13, "not known"),
    ],
)
def test_a_key_that_is_wrong_is_an_error(
    linted: Any, changes: dict[str, str | None], line: int, what: str
) -> None:
    errors, warnings = linted("nodes/mine/a.md", node(**changes))
    assert [(path, row) for path, row, _ in errors] == [("nodes/mine/a.md", line)]
    assert what in errors[0][2]
    assert warnings == []


def test_what_leads_elsewhere_is_a_warning(linted: Any) -> None:
    text = node(
        links='[{type = "explains", to = "agent:coder/x"}]', sources=f'["{"0" * 64}", "a talk"]'
    )
    errors, warnings = linted("nodes/mine/a.md", text)
    assert errors == []
    assert [line for _, line, _ in warnings] == [11, 12]


def test_a_missing_page_and_an_unknown_node_are_errors(linted: Any, bench: Any) -> None:
    errors, _ = linted("INDEX.md", "# Index\n- tea -> nobody\n")
    assert errors == [("INDEX.md", 2, "it names the unknown node nobody")]
    (bench.folder / "PACK.md").unlink()
    assert ("PACK.md", "it is missing") in [(row.path, row.what) for row in bench.lint()[0]]


def test_a_broken_file_is_an_error_with_its_line(linted: Any) -> None:
    assert linted("nodes/mine/a.md", '+++\nid = "a"\nx = \n+++\n')[0][0][:2] == (
        "nodes/mine/a.md",
        3,
    )
    assert ("policies/gate.toml", 2) in {
        row[:2] for row in linted("policies/gate.toml", "a = 1\nb = \n")[0]
    }


def test_two_of_one_id_are_named_both(linted: Any) -> None:
    linted("nodes/mine/a.md", node())
    errors, _ = linted("nodes/other/a.md", node(domain='"other"'))
    assert {path for path, _, _ in errors} == {"nodes/mine/a.md", "nodes/other/a.md"}


@pytest.mark.parametrize(
    "secret",
    [
        "call +49 170 1234567",
        "call (555) 123-4567",
        "Tel. 0170 1234567",
        "password: hunter2",
        "api_key = abcd1234",
        "gh" + "p_" + "a1B2" * 9,
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
        "https://ada:geheim@host/x",
    ],
)
@pytest.mark.parametrize(
    "path", ["PACK.md", "skills/a/SKILL.md", "nodes/mine/a.md", "policies/own.toml"]
)
def test_a_secret_is_an_error_with_its_line(linted: Any, secret: str, path: str) -> None:
    first = node() if path.startswith("nodes") else "# x\n"
    errors, _ = linted(path, f"{first}# {secret}\n")
    assert (path, first.count("\n") + 1) in {row[:2] for row in errors}


@pytest.mark.parametrize(
    "line",
    [
        "on 2026-11-30 at 10:15",
        "version 1.2.3",
        "the token is short",
        "room 12 345",
        "f" * 64,
        "12:30-14:00",
    ],
)
def test_a_plain_line_is_no_error(linted: Any, line: str) -> None:
    assert linted("nodes/mine/a.md", f"{node()}{line}\n")[0] == []


def test_the_persons_own_secret_is_kept_and_named(bench: Any) -> None:
    kept = bench.store.remember("My door code: PIN = 4711")
    assert "4711" in kept.text
    assert kept.path in {row.path for row in bench.lint()[0]}


def test_a_pack_longer_than_a_page_is_a_warning(linted: Any) -> None:
    errors, warnings = linted("PACK.md", "word " * 2000)
    assert errors == []
    assert "one page" in warnings[0][2]
