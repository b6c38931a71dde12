"""Versions of what decides how Exo works: latest wins, none is lost, any time can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
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
    again = artifacts.use("prompt/system", 1, "person")
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
    assert artifacts.use("tool/add/text", 1, "person").number == 3


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


def test_names_and_versions_that_cannot_be_are_told(ledger: Ledger) -> None:
    artifacts = Artifacts(ledger)
    for name in ("", "prompt", "../etc/x", "Prompt/x", "a/", "a/b c", "a/" + "b" * 10 + "/" * 3):
        with pytest.raises(ExoError, match="keep the artifact"):
            artifacts.put(name, "x", "person")
    with pytest.raises(ExoError, match="keep the artifact"):
        artifacts.put("prompt/x", "x" * 200_001, "person")
    for number in (0, 1, -1):
        with pytest.raises(ExoError, match="no such version"):
            artifacts.use("prompt/x", number, "person")
