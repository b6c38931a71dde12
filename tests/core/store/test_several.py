"""Several writers of one store: two processes at once, two devices whose records are joined."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

WRITER = """
import sys
from pathlib import Path
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.store.store import Store
home, clock = Home(Path(sys.argv[1])), SystemClock()
store = Store(home, Ledger(home, clock), clock)
for number in range(8):
    store.remember(f"{sys.argv[2]} says {number}")
    store.rule(f"Never do {sys.argv[2]} {number}")
    pack = home.store / "PACK.md"
"""


def test_two_processes_at_once_lose_nothing(bench: Any) -> None:
    bench.store.init({})
    command = [sys.executable, "-P", "-c", WRITER, str(bench.home.root)]
    running = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    bench.store.sync()
    assert len(bench.store.nodes()) == 32
    assert bench.read("PACK.md").count(b"- Never do") == 16
    assert bench.edits() == []
    assert bench.ledger.verify().ok
    files = bench.files()
    bench.delete_views()
    bench.store.rebuild()
    assert bench.files() == files


def test_two_devices_joined_in_either_order_agree(bench: Any, tmp_path: Path) -> None:
    bench.store.init({"name": "Ada"})
    first = bench.store.remember("I like tea")
    bench.store.close()
    bench.ledger.close()
    other = type(bench)(tmp_path / "other")
    other.ledger.close()
    shutil.rmtree(other.folder)
    shutil.copytree(bench.folder, other.folder)
    for each, name in ((bench, "here"), (other, "there")):
        each.again()
        each.store.rule(f"Never shout {name}")
        each.store.note(f"a note from {name}", channel="typed")
        each.store.remember(f"I like coffee {name}", supersedes=first.id)
        each.write(
            "PACK.md",
            each.read("PACK.md").replace(b"## Answers", f"## Answers\n\n- {name}".encode(), 1),
        )
        each.store.sync()
    for one, two in ((bench, other), (other, bench)):
        one.ledger.merge(list(two.ledger.export()))
        one.store.sync()
    assert bench.files() == other.files()
    assert bench.rows() == other.rows()
    assert len(bench.store.nodes()) == 5
    files = bench.files()
    bench.delete_views()
    bench.store.rebuild()
    assert bench.files() == files
    other.store.close()
    other.ledger.close()
