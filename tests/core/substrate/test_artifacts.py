"""Versions of what decides how Exo works: latest wins, none is lost, any time can be looked at."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.engine.outbox import Row
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.core.ledger.mirror import Mirror
from exo.core.substrate.artifacts import Artifacts
from exo.tools.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    made = Ledger(Home(tmp_path).make(), clock)
    yield made
    made.close()


def test_the_latest_version_holds_and_an_older_one_comes_back(
    ledger: Ledger, clock: FakeClock
) -> None:
    artifacts = Artifacts(ledger)
    first = artifacts.put("prompt/system", "Be brief.", "person")
    clock.advance(10)
    then = clock.now_ms()
    clock.advance(10)
    artifacts.put("prompt/system", "Be long.", "model", "ab" * 32, "asked to")
    assert (
        artifacts.put("prompt/system", "Be long.", "person").number == 2
    )  # the same text makes none
    assert [each.number for each in artifacts.history("prompt/system")] == [1, 2]
    held = artifacts.get("prompt/system")
    assert held and held.text == "Be long." and (held.by, held.code) == ("model", "ab" * 32)
    was = artifacts.get("prompt/system", then)
    assert was == first
    again = artifacts.put("prompt/system", first.text, "person", why="version 1 again")
    assert (again.number, again.text, again.why) == (3, "Be brief.", "version 1 again")
    assert ledger.get(again.entry).refs == (artifacts.history("prompt/system")[1].entry,)  # type: ignore[union-attr]


def test_what_ends_is_not_lost(ledger: Ledger, clock: FakeClock) -> None:
    artifacts = Artifacts(ledger)
    artifacts.put("tool/add/text", "Add.", "person")
    clock.advance(5)
    then = clock.now_ms()
    clock.advance(5)
    artifacts.put("tool/add/text", None, "person")
    assert artifacts.get("tool/add/text") is None and artifacts.all() == {}
    assert artifacts.all(then) == {"tool/add/text": "Add."}
    assert artifacts.names("tool/") == ["tool/add/text"]
    assert artifacts.put("tool/add/text", "Add.", "person").number == 3


def test_another_process_is_seen_and_a_new_reader_knows_all(ledger: Ledger, tmp_path: Path) -> None:
    artifacts = Artifacts(ledger)
    artifacts.put("prompt/system", "one", "person")
    other = Ledger(Home(tmp_path), FakeClock())
    Artifacts(other).put("prompt/system", "two", "person")
    other.close()
    held = artifacts.get("prompt/system")
    assert held and held.text == "two" and held.number == 2
    fresh = Artifacts(ledger).history("prompt/system")
    assert [each.text for each in fresh] == ["one", "two"]
    assert ledger.verify(full=True).ok


def test_names_and_texts_that_cannot_be_are_told(ledger: Ledger) -> None:
    artifacts = Artifacts(ledger)
    for name in ("", "prompt", "../etc/x", "Prompt/x", "a/", "a/b c", "a/" + "b" * 10 + "/" * 3):
        with pytest.raises(ExoError, match="keep the artifact"):
            artifacts.put(name, "x", "person")
    with pytest.raises(ExoError, match="keep the artifact"):
        artifacts.put("prompt/x", "x" * 200_001, "person")


def test_two_processes_that_set_one_artifact_at_once_make_one_chain(
    ledger: Ledger, tmp_path: Path
) -> None:
    code = (
        "import sys, pathlib\n"
        "from exo.core.base.clock import SystemClock\nfrom exo.core.base.home import Home\n"
        "from exo.core.ledger.ledger import Ledger\nfrom exo.core.substrate.artifacts import Artifacts\n"
        "made = Artifacts(Ledger(Home(pathlib.Path(sys.argv[1])), SystemClock()))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(30): made.put('prompt/system', f'{sys.argv[2]} {n}', 'person')\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    words = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen([*words, name], **pipes) for name in "ab"]  # type: ignore[call-overload]
    for each in both:
        assert each.stdout.readline() == "ready\n"
    for each in both:
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.wait(60) for each in both] == [0, 0]
    rows = Artifacts(ledger).history("prompt/system")
    assert sorted(row.text or "" for row in rows) == sorted(
        f"{w} {n}" for w in "ab" for n in range(30)
    )
    refs = [ledger.get(row.entry).refs for row in rows]  # type: ignore[union-attr]
    assert refs == [(), *((row.entry,) for row in rows[:-1])]
    assert ledger.verify(full=True).ok


def test_a_turn_that_is_over_writes_no_more(ledger: Ledger) -> None:
    mirror = Mirror(ledger)
    artifacts = Artifacts(ledger, mirror.over)

    def hand_in(kind: str, turn: str, **body: object) -> None:
        mirror.write(
            [Row(f"{turn}{kind}", kind, "s", turn, 1, {"session": "s", "turn": turn, **body})]
        )

    hand_in("utterance", "one", message="m1", text="hi")
    assert artifacts.put("prompt/x", "1", "model", turn="one").number == 1
    hand_in("outcome", "one", call="c", ok=True)
    assert artifacts.put("prompt/x", "2", "model", turn="one").number == 2, "a call's end is no end"
    hand_in("outcome", "one", stop_reason="end", text="")
    again = Artifacts(ledger, Mirror(ledger).over)  # as after a restart
    before = ledger.position()
    for each in (artifacts, again):
        with pytest.raises(ExoError, match="is over"):
            each.put("prompt/x", "3", "model", turn="one")
    assert ledger.position() == before and artifacts.history("prompt/x")[-1].text == "2"
    hand_in("action", "late", call="c", tool="make_tool", args="{}")
    assert artifacts.put("prompt/x", "3", "model", turn="late").number == 3
    assert artifacts.put("prompt/x", "4", "person").number == 4


def test_what_comes_later_from_another_device_stands_where_it_belongs(
    ledger: Ledger, tmp_path: Path, clock: FakeClock
) -> None:
    artifacts = Artifacts(ledger)
    artifacts.put("prompt/x", "first", "person")
    shutil.copytree(tmp_path / "store", tmp_path / "other" / "store")
    other = Ledger(Home(tmp_path / "other").make(), clock)
    Artifacts(other).put("prompt/x", "theirs", "person")
    for n in range(5):
        artifacts.put("prompt/x", f"ours {n}", "person")
    ledger.merge(list(other.export()))
    other.close()
    rows = artifacts.history("prompt/x")
    assert rows == Artifacts(ledger).history("prompt/x"), "as a new reader sees them"
    assert rows[-1].text == "ours 4" and "theirs" in [row.text for row in rows]


def test_a_forgotten_text_is_gone_at_once(ledger: Ledger) -> None:
    artifacts = Artifacts(ledger)
    artifacts.put("prompt/x", "my secret", "person")
    last = artifacts.put("prompt/x", "better", "person")
    ledger.forget([last.entry], "asked to")
    assert [row.text for row in artifacts.history("prompt/x")] == ["my secret"]


def test_a_text_that_cannot_be_kept_changes_nothing(ledger: Ledger) -> None:
    artifacts = Artifacts(ledger)
    before = ledger.position()
    for text in ("\ud800", "half \udfff of one", "x" * 200_001):
        with pytest.raises(ExoError):
            artifacts.put("prompt/x", text, "person")
    assert ledger.position() == before
    odd = "".join(map(chr, range(32))) + "\x7f\u2028\U0001f600"
    assert artifacts.put("prompt/x", odd, "person").text == odd
    held = Artifacts(ledger).get("prompt/x")
    assert held and held.text == odd


@pytest.mark.parametrize(
    "body",
    [
        *({"x": 1}, {"name": "prompt/x"}, {"text": "none"}, {"name": 5, "text": "a"}),
        *({"name": None, "text": None}, {"name": ["prompt/x"], "text": "a"}, {}),
        *({"name": "prompt/x", "text": each} for each in (5, True, ["a"], {"a": "b"})),
    ],
)
def test_an_entry_that_is_no_version_is_passed_over(ledger: Ledger, body: dict[str, Any]) -> None:
    """As a program of another time, or of another device, may write one."""
    artifacts = Artifacts(ledger)
    held = artifacts.put("prompt/x", "held", "person")
    ledger.append(Draft("artifact", body))
    for reader in (artifacts, Artifacts(ledger)):
        assert reader.all() == {"prompt/x": "held"} and reader.names() == ["prompt/x"]
        assert reader.get("prompt/x") == held
    assert artifacts.put("prompt/x", "newer", "person").number == 2
