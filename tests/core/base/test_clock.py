"""When the clock of a board may be trusted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from exo.core.base.clock import SystemClock


def test_a_machine_that_asks_for_no_proof_is_sure(tmp_path: Path) -> None:
    assert not SystemClock().unsure
    assert not SystemClock(None, tmp_path / "no chip").unsure


def test_unsure_until_the_time_service_says_so(tmp_path: Path) -> None:
    proof = tmp_path / "synchronized"
    clock = SystemClock(str(proof), tmp_path / "no chip")
    assert clock.unsure
    proof.touch()
    assert not clock.unsure
    proof.unlink()
    assert not clock.unsure  # once set it stays set


def test_a_clock_chip_that_agrees_is_proof_and_one_that_lost_its_battery_is_none(
    tmp_path: Path,
) -> None:
    chip = tmp_path / "since_epoch"
    for text, unsure in (("86400\n", True), ("rubbish", True), (f"{time.time():.0f}\n", False)):
        chip.write_text(text)
        assert SystemClock(str(tmp_path / "none"), chip).unsure is unsure


def test_a_clock_that_somebody_sets_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock(str(tmp_path / "none"), tmp_path / "no chip")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 30)
    assert clock.unsure  # the drift of a bad crystal
    monkeypatch.setattr(time, "time", lambda: now + 3e6)
    assert not clock.unsure
