"""`Database.scrub`: what was deleted is gone from the files, whoever reads or writes meanwhile, and
whenever the process dies."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exo.core.base.errors import StorageError
from exo.core.base.sqlite import Database

SCHEMA = "PRAGMA secure_delete = ON;\nCREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);\n"
SECRET = "the-word-that-must-go"
PRELUDE = f"""
import os, sqlite3, sys, time
from pathlib import Path
from exo.core.base.sqlite import Database
SECRET = {SECRET!r}
path = Path(sys.argv[1])
database = Database(path, {SCHEMA!r}, 1)
"""
Child = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def child() -> Iterator[Child]:
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: object) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", PRELUDE + program, *map(str, arguments)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def fill(database: Database, rows: int = 200) -> None:
    with database.transaction(durable=True) as link:
        for n in range(rows):
            link.execute("INSERT INTO t (b) VALUES (?)", (f"{SECRET} {n} " + "x" * (n % 9 * 700),))


def remains(folder: Path) -> list[str]:
    """Names of files that hold the secret."""
    return [path.name for path in folder.iterdir() if SECRET.encode() in path.read_bytes()]


def erase(database: Database) -> None:
    with database.transaction(durable=True) as link:
        link.execute("DELETE FROM t WHERE b LIKE ?", (f"{SECRET}%",))
        link.execute("INSERT INTO t (b) VALUES ('kept')")
        database.promise_scrub()
    database.scrub()


READER = """
database.link.execute("BEGIN")
print(database.link.execute("SELECT count(*) FROM t").fetchone()[0], flush=True)
sys.stdin.readline()
print(database.link.execute("SELECT count(*) FROM t").fetchone()[0], flush=True)
database.link.execute("COMMIT")
print(database.rows("SELECT count(*) FROM t")[0][0], flush=True)
with database.transaction(durable=True) as link:
    link.execute("INSERT INTO t (b) VALUES ('from the reader')")
"""


def test_nothing_is_left_with_a_reader_in_another_process(tmp_path: Path, child: Child) -> None:
    path = tmp_path / "x.sqlite"
    database = Database(path, SCHEMA, 1)
    fill(database)
    assert remains(tmp_path)
    reader = child(READER, path)
    assert reader.stdin and reader.stdout and reader.stdout.readline() == "200\n"
    erase(database)
    assert remains(tmp_path) == []
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "x.sqlite",
        "x.sqlite-shm",
        "x.sqlite-wal",
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    out, _ = reader.communicate("\n", 60)
    assert out == "200\n1\n"  # its own moment first, then what is there now
    assert database.rows("SELECT b FROM t ORDER BY a") == [("kept",), ("from the reader",)]
    assert database.rows("PRAGMA integrity_check") == [("ok",)]
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    assert database.rows("PRAGMA secure_delete") == [(1,)]
    assert database.rows("PRAGMA user_version") == [(1,)]
    database.close()


def test_copies_in_the_gaps_of_pages_are_gone_too(tmp_path: Path) -> None:
    """secure_delete zeroes the row that is deleted, not the copies of it that SQLite left in the gaps of
    pages when it joined them; this order of deletions leaves some (SQLite 3.40: 4 of 540)."""
    database = Database(tmp_path / "x.sqlite", SCHEMA, 1)
    rows = list(range(600))
    with database.transaction() as link:
        for n in rows:
            row = n + 1, f"{SECRET} {n:05} {'y' * (n * 37 % 900)}"
            link.execute("INSERT INTO t VALUES (?, ?)", row)
    random.Random(14).shuffle(rows)
    for start in range(0, 540, 9):
        with database.transaction() as link:
            gone = [(n + 1,) for n in rows[start : start + 9]]
            link.executemany("DELETE FROM t WHERE a = ?", gone)
    database.scrub()
    raw = (tmp_path / "x.sqlite").read_bytes()
    assert all((f"{SECRET} {n:05} ".encode() in raw) == (n in rows[540:]) for n in rows)
    database.close()


def test_functions_outlive_the_change_of_the_file(tmp_path: Path) -> None:
    database = Database(tmp_path / "x.sqlite", SCHEMA, 1)
    database.function("twice", 1, lambda value: value * 2)
    link = database.link
    database.scrub()
    assert database.link is not link and database.rows("SELECT twice(21)") == [(42,)]
    database.close()


def test_who_has_the_old_file_open_writes_into_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    one, two = Database(path, SCHEMA, 1), Database(path, SCHEMA, 1)
    fill(one)
    assert len(two.rows("SELECT * FROM t")) == 200
    erase(one)
    with two.transaction() as link:
        link.execute("INSERT INTO t (b) VALUES ('two')")
    with two.transaction(write=False) as link:
        assert link.execute("SELECT count(*) FROM t").fetchone() == (2,)
    one.close()
    two.close()  # nor does closing the old connection take the new file's WAL away
    again = Database(path, SCHEMA, 1)
    assert again.rows("SELECT b FROM t ORDER BY a") == [("kept",), ("two",)]
    again.close()


WRITER = """
print("open", flush=True); sys.stdin.readline()
for n in range(300):
    with database.transaction(durable=n % 7 == 0) as link:
        link.execute("INSERT INTO t (b) VALUES (?)", (f"{sys.argv[2]} {n}",))
    time.sleep(0.002)  # SQLite's lock is not fair: else the writers may be done before the third scrub
"""


def test_two_writers_lose_nothing_while_the_file_changes(tmp_path: Path, child: Child) -> None:
    path = tmp_path / "x.sqlite"
    database = Database(path, SCHEMA, 1)
    fill(database)
    writers = [child(WRITER, path, name) for name in "ab"]
    for writer in writers:
        assert writer.stdin and writer.stdout and writer.stdout.readline() == "open\n"
        writer.stdin.write("\n")
        writer.stdin.flush()
    erase(database)
    changes = 1
    while any(writer.poll() is None for writer in writers):
        database.scrub()
        changes += 1
    assert [writer.returncode for writer in writers] == [0, 0] and changes > 2
    texts = [text for (text,) in database.rows("SELECT b FROM t ORDER BY a")]
    for name in "ab":
        assert [text for text in texts if text[0] == name] == [f"{name} {n}" for n in range(300)]
    assert "kept" in texts and remains(tmp_path) == []
    assert database.rows("PRAGMA integrity_check") == [("ok",)]
    database.close()


# dies before its n-th step: a statement of SQL, or a call that changes the folder
DYING = """
left = int(sys.argv[2])
def step(*args):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
def stepping(call):
    def run(*args, **more):
        step()
        return call(*args, **more)
    return run
class Watched(Database):
    def _open(self):
        super()._open()
        self.link.set_trace_callback(step)
database.close()
database = Watched(path, "", 1)
for owner, name in ((Path, "touch"), (Path, "unlink"), (Path, "replace"), (os, "fsync"), (os, "pwrite")):
    setattr(owner, name, stepping(getattr(owner, name)))
with database.transaction(durable=True) as link:
    link.execute("DELETE FROM t WHERE b LIKE ?", (f"{SECRET}%",))
    link.execute("INSERT INTO t (b) VALUES ('kept')")
    database.promise_scrub()
print("acknowledged", flush=True)
database.scrub()
with database.transaction(durable=True) as link:
    link.execute("INSERT INTO t (b) VALUES ('after')")
print("whole", flush=True)
os._exit(0)
"""


def test_a_death_at_any_step_leaves_a_whole_file_that_the_next_opening_scrubs(
    tmp_path: Path, child: Child
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    database = Database(made / "x.sqlite", SCHEMA, 1)
    fill(database, 20)
    database.close()
    said, step = "", 0
    while "whole" not in said:
        step += 1
        folder = tmp_path / str(step)
        shutil.copytree(made, folder)
        path = folder / "x.sqlite"
        # a process that lives through it all, with the file open: it must not write into a lost one
        witness = Database(path, SCHEMA, 1)
        before = witness.rows("SELECT count(*) FROM t")[0][0]
        process = child(DYING, path, step)
        said = process.communicate(timeout=60)[0]
        assert process.returncode == (0 if "whole" in said else 9)
        with witness.transaction(durable=True) as link:
            link.execute("INSERT INTO t (b) VALUES ('witness')")
        opened = Database(path, SCHEMA, 1)
        texts = [text for (text,) in opened.rows("SELECT b FROM t ORDER BY a")]
        assert "witness" in texts, step
        if "acknowledged" in said:
            assert "kept" in texts, step
        if "kept" in texts:
            assert not [text for text in texts if SECRET in text] and remains(folder) == [], step
        else:
            assert len(texts) == before + 1, step
        assert opened.rows("PRAGMA integrity_check") == [("ok",)]
        assert witness.rows("SELECT count(*) FROM t") == [(len(texts),)]
        left = {each.name for each in folder.iterdir()}
        assert left == {"x.sqlite", "x.sqlite-wal", "x.sqlite-shm"}, step
        opened.close()
        witness.close()
        shutil.rmtree(folder)
    assert step > 20


def test_no_room_for_the_copy_is_told_and_made_good_later(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    program = """
import resource, signal
from exo.core.base.errors import StorageError
database.link.execute("PRAGMA wal_checkpoint (TRUNCATE)")
with database.transaction(durable=True) as link:
    link.execute("DELETE FROM t WHERE a < 50")
    database.promise_scrub()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    database.scrub()
except StorageError as error:
    print(error)
print(len(database.rows("SELECT * FROM t")))
"""
    database = Database(path, SCHEMA, 1)
    fill(database)
    database.close()
    words = [sys.executable, "-c", PRELUDE + program, str(path)]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert out.startswith(f"write {path}: ") and out.endswith("151\n")
    assert (tmp_path / "x.sqlite-scrub").exists()
    database = Database(path, SCHEMA, 1)
    assert len(database.rows("SELECT * FROM t")) == 151
    assert not (tmp_path / "x.sqlite-scrub").exists()
    assert f"{SECRET} 3 ".encode() not in path.read_bytes()
    database.close()


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    database = Database(path, SCHEMA, 1)
    path.unlink()
    for read in (database.scrub, lambda: database.rows("SELECT 1")):
        with pytest.raises(StorageError, match="No such file"):
            read()
    with pytest.raises(OSError, match="No such file"), database.transaction():
        pass
    database.close()
    assert not path.exists()  # nobody made an empty one instead
