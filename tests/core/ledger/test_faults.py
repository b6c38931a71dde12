"""Death, power cuts and full disks: what was acknowledged is there, and the chain verifies."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.tools.clock import FakeClock

Child = Callable[..., subprocess.Popen[str]]

# dies before its n-th step: a statement of SQL, or a call that writes, syncs or changes a folder
DYING = """
from exo.core.base import sqlite
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
opened = sqlite.Database._open
def open_(self):
    opened(self)
    self.link.set_trace_callback(step)
sqlite.Database._open = open_
for owner, name in (
    (Path, "touch"), (Path, "unlink"), (Path, "replace"), (os, "fsync"), (os, "pwrite"), (os, "open"),
):
    setattr(owner, name, stepping(getattr(owner, name)))
def say(*words):
    os.write(1, (" ".join(words) + "\\n").encode())
ledger = Ledger(Home(Path(sys.argv[1])), FakeClock())
say("opened", ledger.author)
one = ledger.append(Draft("utterance", {"text": "one"}))[0]
say("one", one.id)
two = ledger.append(Draft("note", {"text": "two, a secret"}), Draft("note", {"text": "three"}))[0]
say("two", two.id)
say("forgot", ledger.forget([two.id], "asked").id)
say("checkpoint", ledger.checkpoint().id)
lines = list(ledger.export())
say("exported", lines[-1]["id"])
os._exit(0)
"""


def test_a_death_at_any_step_loses_nothing_that_was_acknowledged(
    tmp_path: Path, child: Child
) -> None:
    said: dict[str, str] = {}
    step = 0
    while "exported" not in said:
        step += 1
        home = Home(tmp_path / str(step)).make()
        process = child(DYING, home.root, step)
        out, err = process.communicate(timeout=60)
        said = dict(line.split() for line in out.splitlines())
        assert process.returncode == (0 if "exported" in said else 9), err
        ledger = Ledger(home, FakeClock())
        assert ledger.notice == "", step
        report = ledger.verify()
        assert report.ok and len(report.authors) == 1, (step, report.fault)
        entries = {entry.id: entry for entry in ledger.entries()}
        if "opened" in said:
            assert ledger.author == said["opened"]
        for name in ("one", "two", "forgot", "checkpoint"):
            assert name not in said or said[name] in entries, (step, name)
        if any(entry.kind == "forget" for entry in entries.values()):
            assert all(
                b"a secret" not in path.read_bytes()
                for path in ledger._db.path.parent.iterdir()
                if path.is_file()
            ), step
        ledger.append(Draft("note", {"text": "after"}))
        assert ledger.verify().ok
        ledger.close()
        shutil.rmtree(home.root)
    assert step > 60


@pytest.mark.parametrize("cut", range(0, 4096, 509))
def test_a_power_cut_anywhere_in_the_log_keeps_what_was_synced(
    place: Any, tmp_path: Path, cut: int
) -> None:
    """The log is cut off at every place: what had been synced before that place must be there."""
    log = place.file.with_name("ledger.sqlite-wal")
    acknowledged = []
    for n in range(8):
        (entry,) = place.say(f"text {n} " * 30)
        acknowledged.append((log.stat().st_size, entry.id))
    private = tmp_path / "cut" / "store" / "private"
    for size in range(cut, log.stat().st_size + 4096, 4096):
        home = Home(tmp_path / "cut").make()
        shutil.copytree(place.file.parent, private)
        (private / "ledger.sqlite-shm").unlink()
        with (private / "ledger.sqlite-wal").open("r+b") as file:
            file.truncate(min(size, log.stat().st_size))
        shutil.copy(place.home.state / "device.key", home.state)
        ledger = Ledger(home, FakeClock(), enrol=False)
        there = {entry.id for entry in ledger.entries()}
        assert ledger.verify().ok
        assert all(id_ in there for end, id_ in acknowledged if end <= size), size
        ledger.close()
        shutil.rmtree(home.root)


FILLING = """
import resource, signal
from exo.core.base.errors import StorageError
ledger = Ledger(Home(Path(sys.argv[1])), FakeClock())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    while True:
        print(ledger.append(Draft("note", {"text": "x" * 300}))[0].id, flush=True)
except StorageError as error:
    print(error, file=sys.stderr)
print(ledger.position(), ledger.verify().ok)
"""


@pytest.mark.parametrize("size", [60_000, 90_001, 131_072, 200_000])
def test_a_disk_that_is_full_stops_appending_and_keeps_the_rest(
    place: Any, child: Child, size: int
) -> None:
    assert resource.RLIMIT_FSIZE
    process = child(FILLING, place.home.root, size)
    out, err = process.communicate(timeout=60)
    *ids, last = out.splitlines()
    assert process.returncode == 0 and "write" in err and "free space" in err, err
    assert last == f"{1 + len(ids)} True"
    place.reopen()
    assert [entry.id for entry in place.ledger.entries(kinds=["note"])] == ids
    place.say("after")
    assert place.ledger.verify().ok
