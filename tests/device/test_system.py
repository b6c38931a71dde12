"""The machine around the handheld: what a reset deletes, and when."""

from __future__ import annotations

from pathlib import Path

import pytest
from exo.core.base.errors import AlreadyRunning, StorageError
from exo.core.base.files import ProcessLock
from exo.core.base.home import Home
from exo.device.locale import Texts
from exo.device.system import MARK, System, finish_reset


@pytest.fixture
def lived(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home").make()
    for folder in (home.store, home.plugins):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "file").write_text("x" * 2000)
    (home.state / "settings.toml").write_text("")
    (home.root / "own.txt").write_text("not ours")
    (tmp_path / "outside").write_text("x")
    (home.store / "link").symlink_to(tmp_path / "outside")
    return home


def test_a_reset_marks_and_the_next_start_deletes(lived: Home, tmp_path: Path) -> None:
    ended: list[bool] = []
    system = System(lived, "sim", Texts(), lambda: ended.append(True))
    assert not finish_reset(lived)
    system.actions["reset"]()
    assert ended == [True] and lived.store.exists()
    assert finish_reset(lived)
    assert not (lived.store.exists() or lived.plugins.exists() or lived.state.exists())
    assert (lived.root / "own.txt").exists() and (tmp_path / "outside").exists()
    assert not finish_reset(lived)


def test_a_reset_that_was_cut_off_goes_on(lived: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (lived.root / MARK).write_text("")

    def cut(path: Path) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="input/output"):
        patch.setattr("exo.device.system.shutil.rmtree", cut)
        finish_reset(lived)
    assert (lived.root / MARK).exists()
    assert finish_reset(lived)


def test_nothing_is_deleted_under_an_exod_that_runs(lived: Home) -> None:
    (lived.root / MARK).write_text("")
    lock = ProcessLock(lived.lock_file("exod"), "exod")
    with pytest.raises(AlreadyRunning, match="stop it"):
        finish_reset(lived)
    assert lived.store.exists()
    lock.release()
    assert finish_reset(lived)


def test_storage_and_about_can_be_read(lived: Home) -> None:
    system = System(lived, "sim", Texts(), lambda: None)
    assert "free" in system.storage() and "What it knows: 2 kB" in system.storage()
    assert "Board: sim" in system.about()
