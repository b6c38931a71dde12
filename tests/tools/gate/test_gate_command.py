"""`exo gate check` by lines."""

from __future__ import annotations

import io
import json
import sys

import pytest
from exo.core.base.home import Home
from exo.tools.cli import main


def test_a_bad_line_is_answered_and_the_next_ones_are_judged(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"id": "a", "tool": "bash", "args": {"command": "ls"}},
        {"id": 2, "tool": "bash", "args": "ls"},
        {"id": 3},
        ["no", "object"],
        {"id": 5, "tool": "bash", "args": {"command": "rm -rf /"}, "cwd": "/tmp"},
    ]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    lines += b"{\n\n\xff\n" + json.dumps({**rows[0], "id": "\ud800"}).encode()  # type: ignore[dict-item]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert main(["gate", "check", "--stdin", "--home", str(home.root)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in found[:-1]] == ["a", 2, 3, None, 5, None, None]
    assert ["error" in each for each in found] == [
        False,
        True,
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    assert found[0]["outcome"] == "allow" and found[4]["outcome"] != "allow"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.splitlines()[0])))
    assert main(["gate", "check", "--stdin", "--home", str(home.root)]) == 0
