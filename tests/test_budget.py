"""The budgets that are the same on every machine, and how a line is counted."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from exo.core.base.errors import ExoError
from exo.tools import footprint

DENSEST_FILE = 13.0  # tokens a line; 5.5 to 8.5 is the aim, see README's budgets
# 10.0 until the tables of settings, languages and patterns became data: their rows were the light ones
DENSEST = 10.1


@pytest.fixture(scope="module")
def counts() -> dict[str, footprint.Count]:
    return footprint.count(footprint.formatted(footprint.core_files()))


def test_budgets_hold(counts: dict[str, footprint.Count]) -> None:
    rows = footprint.counted_rows(counts)
    assert not [f"{row.name}: {row.used} of {row.allowed}" for row in rows if row.left < 0]


def test_core_needs_two_distributions() -> None:
    assert sorted(footprint.dependencies()) == ["PyNaCl", "httpx"]


def test_core_is_a_small_wheel() -> None:
    assert 0 < footprint.wheel_bytes() <= 1_000_000


def test_lines_are_not_joined_to_save_lines(counts: dict[str, footprint.Count]) -> None:
    python = {name: row for name, row in counts.items() if name.endswith(".py") and row.code > 20}
    dense = {name: row.tokens / row.code for name, row in python.items()}
    assert not {name: value for name, value in dense.items() if value > DENSEST_FILE}
    assert (
        sum(row.tokens for row in python.values()) / sum(row.code for row in python.values())
        <= DENSEST
    )


def test_every_area_of_the_sub_total_counts(counts: dict[str, footprint.Count]) -> None:
    parts = [footprint.code_total(counts, [area]) for area in footprint.FAST_AREAS]
    assert sum(parts) == footprint.code_total(counts, footprint.FAST_AREAS)
    assert footprint.code_total(counts, ["base"]) > 100


def test_code_is_what_counts() -> None:
    text = '"""Doc\nof two lines."""\n\nimport os  # why\n\n\n# comment\ndef f():\n    """Doc."""\n    return os\n'
    assert footprint.python_lines(text).code == 3


def test_a_text_counts_with_every_line_but_blank_ones() -> None:
    assert footprint.python_lines('x = """a\n\nb\n"""\n').code == 3


def test_a_string_that_is_no_docstring_counts() -> None:
    assert footprint.python_lines("x = 1\n'not a docstring'\n").code == 2


def test_sql_counts_without_comments() -> None:
    assert footprint.sql_lines("-- why\ncreate table t (\n  a\n);\n\n").code == 3


def test_a_prompt_counts_as_if_wrapped() -> None:
    assert footprint.prompt_lines("x" * 250 + "\n\nshort\n").code == 4


def test_sql_and_prompts_are_seen() -> None:
    assert footprint.counter("/engine/sessions.sql") is footprint.sql_lines
    assert footprint.counter("/engine/prompts/system.md") is footprint.prompt_lines
    assert footprint.counter("/router/catalog.toml") is None


def test_a_file_that_does_not_parse_is_named() -> None:
    with pytest.raises(ExoError, match="core/x.py"):
        footprint.count({"x.py": "def"})


def test_the_command_prints_one_object() -> None:
    command = [sys.executable, "-P", "-m", "exo.tools.cli", "footprint", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    rows = json.loads(done.stdout)["rows"]
    assert all({"name", "used", "allowed", "unit"} <= set(row) for row in rows)
    assert len(rows) >= 6


def test_a_page_is_renewed_between_its_markers() -> None:
    page = "a\n<!-- footprint: counted -->\nold\n<!-- /footprint: counted -->\nb\n"
    rows = [footprint.Row("lines", 1200, 11_000, "lines")]
    new = footprint.with_section(page, "counted", footprint.table(rows))
    assert "| lines | 1,200 lines | 11,000 lines | 9,800 |" in footprint.section(new, "counted")
    assert new.startswith("a\n") and new.endswith("\nb\n") and "old" not in new


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ExoError, match="markers"):
        footprint.section("nothing here", "counted")
