"""What every room stands on: files, lock, settings, database, clock, lifeline."""

from __future__ import annotations

import errno
import math
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from exo.core.base import files, lifeline
from exo.core.base.clock import SystemClock
from exo.core.base.errors import (
    AlreadyRunning,
    HomeError,
    SettingError,
    StorageError,
    storage_error,
)
from exo.core.base.files import ProcessLock, make_folder, read_pid, write_atomic
from exo.core.base.home import Home
from exo.core.base.settings import BY_NAME, TABLE, Settings
from exo.core.base.sqlite import Database
from exo.core.base.unix import short_path
from exo.tools.clock import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["open", "fdopen", "fsync", "replace", "sync_folder"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_atomic_write_that_fails_anywhere_leaves_old_or_new_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")

    def fail(*args: Any, **more: Any) -> Any:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        owner: Any = {"replace": Path, "sync_folder": files}.get(call, os)
        patch.setattr(owner, call, fail)
        with pytest.raises(StorageError) as caught:
            write_atomic(path, "new")
    assert str(path) in str(caught.value) and caught.value.do
    assert path.read_text() == ("new" if call == "sync_folder" else "old")
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_write_keeps_its_mode_and_takes_bytes_and_text(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "ä")
    write_atomic(tmp_path / "b", b"\0\xff", 0o644)
    assert (tmp_path / "a").read_bytes() == "ä".encode()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o644
    with pytest.raises(StorageError):
        write_atomic(tmp_path / "none" / "x", "x")


def test_readers_never_see_a_mixture(tmp_path: Path) -> None:
    path, seen, done = tmp_path / "file", set(), threading.Event()
    write_atomic(path, "a" * 10_000)

    def read() -> None:
        while not done.is_set():
            seen.add(path.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(50):
        write_atomic(path, "ab"[n % 2] * 10_000)
    done.set()
    reader.join()
    assert seen <= {"a" * 10_000, "b" * 10_000}


def test_storage_errors_say_what_to_do(tmp_path: Path) -> None:
    assert "free some space" in str(storage_error("write x", OSError(errno.ENOSPC, "")))
    assert "read-only" in str(storage_error("write x", OSError(errno.EROFS, "")))
    assert "odd thing" in str(storage_error("write x", OSError(12345, "odd thing")))
    (tmp_path / "f").write_text("")
    with pytest.raises(StorageError):
        make_folder(tmp_path / "f" / "g")


def test_lock_is_held_by_one_process_and_freed_by_any_death(tmp_path: Path) -> None:
    path = tmp_path / "state" / "exod.pid"
    program = (
        "import sys; from pathlib import Path; from exo.core.base.files import ProcessLock;"
        f"lock = ProcessLock(Path({str(path)!r}), 'exod'); print('held', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin and child.stdout and child.stdout.readline() == b"held\n"
    with pytest.raises(AlreadyRunning) as caught:
        ProcessLock(path, "exod")
    assert f"process {child.pid}; use that one, or stop it with `kill {child.pid}`" in str(
        caught.value
    )
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()
    lock = ProcessLock(path, "exod")  # the file it left does not block
    assert read_pid(path) == os.getpid()
    lock.release()
    lock.release()
    assert read_pid(path) == 0
    assert read_pid(tmp_path / "none") == 0


# ---- settings --------------------------------------------------------------------------------------


def test_settings_say_where_a_value_came_from(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    assert Settings.load(path, {}).origin("turn.rounds") == (24, "default")
    path.write_text('"turn.rounds" = 7\nvoice.backend = "espeak"\n')
    loaded = Settings.load(path, {"EXO_TURN_SILENCE": "2.5"})
    assert loaded.origin("turn.rounds") == (7, str(path))
    assert loaded.origin("voice.backend") == ("espeak", str(path))
    assert loaded.origin("turn.silence") == (2.5, "EXO_TURN_SILENCE")
    assert Settings.load(path, {"EXO_TURN_ROUNDS": "9"}).origin("turn.rounds") == (
        9,
        "EXO_TURN_ROUNDS",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("turn.rounds", "x"),
        ("turn.rounds", ""),
        ("turn.rounds", "0"),
        ("turn.rounds", "1001"),
        ("turn.rounds", "1.5"),
        ("turn.silence", "nan"),
        ("turn.silence", "inf"),
        ("voice.backend", "shout"),
    ],
)
def test_environment_that_does_not_fit_is_named(tmp_path: Path, name: str, value: str) -> None:
    variable = "EXO_" + name.upper().replace(".", "_")
    with pytest.raises(SettingError) as caught:
        Settings.load(tmp_path / "s", {variable: value}).origin(name)
    assert name in str(caught.value) and variable in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "= 1",
        '"turn.rounds" = ',
        '"none" = 1',
        '"turn.rounds" = [1]',
        "turn = 5",
        "\0",
        '"turn.rounds" = 2024-01-01',
    ],
)
def test_settings_file_that_does_not_fit_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(SettingError):
        Settings.load(path, {})
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingError, match="mend or remove"):
        Settings.load(path, {})


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_that_was_set_is_read_back(tmp_path_factory: Any, text: str) -> None:
    path = tmp_path_factory.mktemp("s") / "settings.toml"
    Settings.load(path, {}).set("audio.microphone", text)
    Settings.load(path, {}).set("turn.rounds", 9)
    loaded = Settings.load(path, {})
    assert (loaded.text("audio.microphone"), loaded.count("turn.rounds")) == (text, 9)


def test_setting_that_cannot_be_saved_is_not_set(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    loaded = Settings(tmp_path / "f" / "settings.toml", {})
    with pytest.raises(StorageError):
        loaded.set("turn.rounds", 9)
    assert loaded.count("turn.rounds") == 24


def test_every_row_is_sound() -> None:
    assert len(BY_NAME) == len(TABLE)
    for row in TABLE:
        assert row.meaning and math.isinf(row.low) == math.isinf(row.high)
        if row.choices:
            assert row.default in row.choices
        if not isinstance(row.default, str):
            assert row.low <= float(row.default) <= row.high


# ---- database, clock, home, lifeline ---------------------------------------------------------------


def test_database_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    database = Database(path, "CREATE TABLE t (a);\nCREATE TABLE u (b);\n", 1)
    with pytest.raises(ValueError), database.transaction() as link:
        link.execute("INSERT INTO t VALUES (1)")
        raise ValueError
    assert database.rows("SELECT * FROM t") == []
    with database.transaction(durable=True) as link:
        link.execute("INSERT INTO t VALUES (1)")
        assert link.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert database.rows("PRAGMA synchronous") == [(1,)]
    with database.transaction() as link:
        link.execute("PRAGMA user_version = 9")
    database.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(HomeError, match="format 9"):
        Database(path, "", 1)
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(HomeError, match="mv "):
        Database(path, "", 1)
    with pytest.raises(StorageError):
        Database(tmp_path, "", 1)


def test_database_waits_for_another_writer_and_says_so_when_it_takes_too_long(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "x.sqlite", "CREATE TABLE t (a);\n", 1)
    database.link.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="locked"), database.transaction():
        pass
    other.execute("ROLLBACK")
    other.close()
    with database.transaction() as link:
        link.execute("INSERT INTO t VALUES (1)")
    database.close()


def test_clocks_agree_on_what_time_is() -> None:
    clock = FakeClock(1_700_000_000_000)
    clock.advance(1.5)
    assert clock.now_ms() == 1_700_000_001_500 and clock.monotonic() == 1001.5
    assert clock.local().timestamp() * 1000 == clock.now_ms()
    real = SystemClock()
    assert abs(real.local().timestamp() * 1000 - real.now_ms()) < 60_000
    assert real.monotonic() <= real.monotonic() and real.local().tzinfo is not None


def test_home_is_found_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXO_HOME", str(tmp_path / "env"))
    assert Home.find().root == tmp_path / "env"
    assert Home.find(tmp_path / "given").root == tmp_path / "given"
    monkeypatch.delenv("EXO_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.find().root == tmp_path / ".exo"
    home = Home.find().make()
    for folder in (home.root, home.state, home.logs, home.cache):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_short_path_names_a_long_one(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    with short_path(long / "sock") as name:
        Path(name).write_text("here")
        assert len(name) <= 107
    assert (long / "sock").read_text() == "here"


def test_lifeline_calls_when_the_other_end_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setenv(lifeline.VARIABLE, str(reading))
    gone = threading.Event()
    lifeline.watch(gone.set)
    assert lifeline.VARIABLE not in os.environ  # a child of ours has its own
    assert not gone.is_set()
    os.close(writing)
    assert gone.wait(30)
    os.close(reading)
    for text in ("", "x", "99999"):
        monkeypatch.setenv(lifeline.VARIABLE, text)
        lifeline.watch(lambda: pytest.fail("nobody holds it"))
