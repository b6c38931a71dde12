"""The labelled set of tool calls for the gate: well-formed, and what it promises can be counted."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter
from typing import Any

import pytest
from exo.tools.benches.gate.calls import CWD, FILE, HALVES, built, calls

RAW: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text().splitlines()]
CALLS = calls()
NEEDED = {"id", "tool", "args", "family", "label", "half", "why"}
OPTIONAL = {"cwd", "axes", "hard", "unsure"}
LABELS = {"quiet", "ask"}
AXES: dict[str, tuple[str | bool, ...]] = {
    "reversibility": ("reversible", "recoverable", "irreversible"),
    "exposure": ("private", "shared", "public"),
    "cost": ("none", "money"),
    "third_party": (True, False),
}
FAMILIES = {
    "cloud",
    "copy-remote",
    "database",
    "delete",
    "everyday",
    "forge",
    "git-local",
    "git-remote",
    "http",
    "leak",
    "mail",
    "overwrite",
    "payment",
    "publish",
    "quoting",
    "secret",
    "startfile",
    "store",
    "system",
    "tools",
    "unparsable",
    "wrapper",
}
TOOLS = {
    "bash",
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "list_dir",
    "search_files",
    "http_request",
    "send_message",
    "time",
    "timer",
    "reminder",
    "note",
    "recall",
    "remember",
    "forget",
    "why",
}


def of(family: str) -> list[dict[str, Any]]:
    return [row for row in RAW if row["family"] == family]


def test_there_are_enough_of_each() -> None:
    assert len(RAW) >= 440
    assert {row["family"] for row in RAW} == FAMILIES
    assert {family: len(of(family)) for family in FAMILIES if len(of(family)) < 15} == {}
    labels = Counter(row["label"] for row in RAW)
    assert min(labels.values()) >= 200
    assert sum(row.get("hard", False) for row in RAW) >= len(RAW) // 2
    assert sum(row.get("unsure", False) for row in RAW) <= len(RAW) // 15


def test_both_labels_stand_in_every_family() -> None:
    for family in FAMILIES - {"everyday"}:
        assert {row["label"] for row in of(family)} == LABELS, family
    assert {row["label"] for row in of("everyday")} == {"quiet"}


def test_ids_and_calls_are_unique() -> None:
    assert len({row["id"] for row in RAW}) == len(RAW)
    seen = Counter(json.dumps([row["tool"], row["args"], row.get("cwd")]) for row in RAW)
    assert [call for call, times in seen.items() if times > 1] == []


def test_every_row_has_its_fields() -> None:
    for row in RAW:
        assert set(row) >= NEEDED and set(row) <= NEEDED | OPTIONAL, row["id"]
        assert re.fullmatch(rf"{row['family']}-\d\d", row["id"])
        assert isinstance(row["tool"], str) and isinstance(row["args"], dict), row["id"]
        assert row["label"] in LABELS and row["half"] in HALVES, row["id"]
        assert len(row["why"]) >= 4 and "\n" not in row["why"], row["id"]
        assert row.get("hard", True) is True and row.get("unsure", True) is True, row["id"]
        assert row.get("cwd", CWD).startswith("/"), row["id"]


def test_axes_are_those_of_the_command_line() -> None:
    for row in RAW:
        for axis, value in row.get("axes", {}).items():
            assert value in AXES[axis], row["id"]


def test_quiet_calls_are_harmless_on_their_axes() -> None:
    for row in RAW:
        axes = row.get("axes", {})
        if row["label"] == "quiet":
            assert axes.get("reversibility") != "irreversible", row["id"]
            assert axes.get("exposure") != "public" and axes.get("cost") != "money", row["id"]
            assert not axes.get("third_party"), row["id"]


def test_quiet_calls_use_known_tools() -> None:
    assert {row["tool"] for row in RAW if row["label"] == "quiet"} <= TOOLS
    assert {row["tool"] for row in RAW} >= TOOLS


def test_halves_follow_their_rule() -> None:
    for family in FAMILIES:
        rows = sorted(of(family), key=lambda row: hashlib.sha256(row["id"].encode()).hexdigest())
        cut = len(rows) // 2
        assert [row["half"] for row in rows] == ["dev"] * cut + ["held-out"] * (len(rows) - cut)
    assert len(calls("dev")) + len(calls("held-out")) == len(CALLS) == len(RAW)


def test_generators_build_text() -> None:
    assert built({"join": ["a", {"repeat": "b", "times": 3}]}) == "abbb"
    assert built({"x": [{"repeat": "-", "times": 2}], "n": 7}) == {"x": ["--"], "n": 7}
    sizes = [len(str(row["args"].get("command", ""))) for row in CALLS]
    assert sum(size >= 900_000 for size in sizes) >= 4
    for row in CALLS:
        assert not re.search(r"\{'(?:repeat|join)':", str(row["args"])[:1000]), row["id"]


def test_secrets_are_whole_only_when_built() -> None:
    marks = re.compile(
        r"AKIA[0-9A-Z]{16}\b|ghp_\w{36}|xoxb-\w{10,}|\bsk-\w{32,}|BEGIN OPENSSH PRIV" + "ATE"
    )
    for row in RAW:
        assert not marks.search(json.dumps(row["args"])), row["id"]
    assert sum(bool(marks.search(json.dumps(row["args"]))) for row in CALLS) >= 5


def test_bash_accepts_what_is_not_called_unparsable() -> None:
    """`bash -n` reads a command and runs nothing."""
    if not (bash := shutil.which("bash")):
        pytest.skip("bash is not installed")
    commands = [
        (row["id"], row["args"]["command"])
        for row in CALLS
        if row["tool"] == "bash" and row["family"] != "unparsable"
    ]
    for name, command in commands:
        done = subprocess.run(
            [bash, "-n"], input=command.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0 and not done.stderr, (name, done.stderr)
