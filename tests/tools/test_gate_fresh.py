"""The fresh sets of labelled calls: well-formed, of the promised size, and not a copy of anything."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from typing import Any

import pytest
from exo.tools.benches.gate.calls import FILE, built, calls

FRESH = {"dev": "fresh-dev.jsonl", "held-out": "fresh-held-out.jsonl"}


def rows(half: str) -> list[dict[str, Any]]:
    lines = FILE.with_name(FRESH[half]).read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]


def call(row: dict[str, Any]) -> str:
    return json.dumps([row["tool"], built(row["args"])], sort_keys=True)


@pytest.mark.parametrize("half", FRESH)
def test_a_fresh_set_has_the_promised_rows(half: str) -> None:
    found = rows(half)
    assert Counter(row["label"] for row in found) == {"quiet": 99, "ask": 121}
    assert {row["half"] for row in found} == {half}
    assert {row["family"] for row in found} == {row["family"] for row in calls()}
    assert sum("unsure" in row for row in found) <= len(found) // 20
    assert all(row["why"] and isinstance(row["args"], dict) for row in found)


def test_no_call_stands_twice() -> None:
    every = [call(row) for row in [*calls(), *rows("dev"), *rows("held-out")]]
    assert [text for text, count in Counter(every).items() if count > 1] == []
    ids = [row["id"] for row in [*calls(), *rows("dev"), *rows("held-out")]]
    assert len(ids) == len(set(ids))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("half", FRESH)
def test_bash_reads_what_is_not_meant_to_be_unreadable(half: str) -> None:
    for row in rows(half):
        command = built(row["args"]).get("command")
        if row["tool"] == "bash" and row["family"] != "unparsable" and isinstance(command, str):
            done = subprocess.run(
                ["bash", "-n", "-c", command], capture_output=True, text=True, timeout=10
            )
            assert done.returncode == 0, (row["id"], done.stderr)
