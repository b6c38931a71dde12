"""The fresh sets of labelled calls: well-formed, of the promised size, and not a copy of anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from typing import Any

import pytest
from exo.tools.benches.gate.calls import FILE, FRESH, built, calls

LABELS = {  # of a set: how many should pass, how many should stop
    "fresh-dev": {"quiet": 99, "ask": 121},
    "fresh-held-out": {"quiet": 99, "ask": 121},
    "third-dev": {"quiet": 110, "ask": 110},
    "third-held-out": {"quiet": 110, "ask": 110},
}


def rows(name: str) -> list[dict[str, Any]]:
    lines = FILE.with_name(f"{name}.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]


def every() -> list[dict[str, Any]]:
    return [*calls(), *(row for name in LABELS for row in rows(name))]


def call(row: dict[str, Any]) -> str:
    return json.dumps([row["tool"], built(row["args"])], sort_keys=True)


def test_every_set_is_offered_to_the_bench() -> None:
    assert set(FRESH) == set(LABELS)


@pytest.mark.parametrize("name", LABELS)
def test_a_fresh_set_has_the_promised_rows(name: str) -> None:
    found = rows(name)
    author, half = name.split("-", 1)
    assert Counter(row["label"] for row in found) == LABELS[name]
    assert {row["half"] for row in found} == {half}
    assert {row["family"] for row in found} == {row["family"] for row in calls()}
    assert sum("unsure" in row for row in found) <= len(found) // 25
    assert all(row["why"] and isinstance(row["args"], dict) for row in found)
    short = half.removesuffix("-out")
    for row in found:
        assert re.fullmatch(rf"{author}-{short}-{row['family']}-\d\d", row["id"]), row["id"]
        assert not ("unsure" in row and "axes" in row), row["id"]


def test_no_call_stands_twice() -> None:
    texts = Counter(call(row) for row in every())
    assert [text for text, count in texts.items() if count > 1] == []
    ids = [row["id"] for row in every()]
    assert len(ids) == len(set(ids))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", LABELS)
def test_bash_reads_what_is_not_meant_to_be_unreadable(name: str) -> None:
    for row in rows(name):
        command = built(row["args"]).get("command")
        if row["tool"] == "bash" and row["family"] != "unparsable" and isinstance(command, str):
            done = subprocess.run(
                ["bash", "-n", "-c", command], capture_output=True, text=True, timeout=10
            )
            assert done.returncode == 0, (row["id"], done.stderr)
