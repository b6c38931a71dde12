"""The ledger beside what it is made of: durable appends beside bare SQLite commits of the same rows,
verification beside bare Ed25519, and the time to read everything. Each pair takes turns, so that the load
of the machine meets both; medians."""

from __future__ import annotations

import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.tools.bench import Figure, Say

ENTRIES = 100_000
APPENDS = 200  # in a round
ROUNDS = 9
TEXT = "I decided to take the early train to the coast and to leave the heavy bag at home. "


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """`rounds` thousand entries are read and verified (default 100)."""
    count = rounds * 1000 or ENTRIES
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        ledger = Ledger(home, SystemClock())
        say(f"{ROUNDS} times {APPENDS} durable appends, one a commit, and as many bare commits")
        same = _Bare(Path(folder) / "same.sqlite", ledger, True)
        plain = _Bare(Path(folder) / "plain.sqlite", ledger, False)
        ours, theirs, least = _turns(lambda: _append(ledger), same.commit, plain.commit)
        yield Figure("durable appends, one a commit", APPENDS / ours, "/s")
        yield Figure("bare commits of such rows into such tables, FULL", APPENDS / theirs, "/s")
        yield Figure("appends / bare commits", theirs / ours, "x", ">= 0.6")
        yield Figure("the same without its triggers and two indexes", APPENDS / least, "/s")
        yield Figure("appends / bare commits without them", least / ours, "x")
        say(f"filling up to {count:,} entries")
        while (left := count - ledger.position()) > 0:
            drafts = (_draft(n) for n in range(min(left, 5000)))
            ledger.append(*drafts, durable=False)
        yield from _verify(ledger, say)
        say("reading them")
        start = time.perf_counter()
        read = sum(1 for _ in ledger.entries())
        yield Figure(
            f"read {read:,} entries in the order of replay", time.perf_counter() - start, "s"
        )
        start = time.perf_counter()
        ledger.checkpoint()
        ledger.append(_draft(0))
        if not ledger.verify(full=False).ok:
            raise AssertionError("the ledger of the bench does not verify")
        yield Figure(
            "checkpoint and quick verification", (time.perf_counter() - start) * 1000, "ms"
        )
        size = sum(path.stat().st_size for path in ledger_files(home)) / ledger.position()
        yield Figure("an entry on disk", size, "bytes")
        (entry,) = ledger.append(_draft(1))
        same.link.close()
        plain.link.close()
        start = time.perf_counter()
        ledger.forget([entry.id], "bench")
        yield Figure(f"forget one of {read:,}", time.perf_counter() - start, "s")
        ledger.close()


class _Bare:
    """Rows of the same sizes, unsigned: in tables as the ledger's (`same`), or in the tables alone."""

    def __init__(self, path: Path, ledger: Ledger, same: bool) -> None:
        self.link = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            self.link.execute(f"PRAGMA {pragma}")
        query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND (? OR type = 'table') ORDER BY rowid"
        for (statement,) in ledger._db.rows(query, same):
            self.link.execute(statement)
        self.seq = 0

    def commit(self) -> None:
        author = "a" * 64
        for n in range(APPENDS):
            self.seq += 1
            id_, body = secrets.token_hex(32), f'{{"channel":"typed","text":"{TEXT}{n}"}}'
            row = (
                id_,
                author,
                self.seq,
                self.seq,
                1,
                "principal",
                "utterance",
                "[]",
                id_,
                id_,
                id_ * 2,
            )
            self.link.execute("BEGIN IMMEDIATE")
            self.link.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
            self.link.execute("INSERT INTO bodies VALUES (?, ?, ?)", (id_, b"1" * 16, body))
            self.link.execute("COMMIT")


def _draft(n: int) -> Draft:
    return Draft("utterance", {"channel": "typed", "text": f"{TEXT}{n}"})


def _append(ledger: Ledger) -> None:
    for n in range(APPENDS):
        ledger.append(_draft(n))


def _verify(ledger: Ledger, say: Say) -> Iterator[Figure]:
    from nacl.signing import SigningKey

    count = ledger.position()
    key = SigningKey.generate()
    message = b"c" * 64
    signature, check = key.sign(message).signature, key.verify_key.verify
    batch = max(1, count // 10)

    def alone() -> None:
        for _ in range(batch):
            check(message, signature)

    say(f"verifying {count:,} entries, and bare signatures before and after")
    before = _seconds(alone)
    ours = _seconds(lambda: ledger.verify()) / count
    theirs = (before + _seconds(alone)) / 2 / batch
    yield Figure("entries verified, whole ledger", 1 / ours, "/s")
    yield Figure("bare Ed25519 verifications (PyNaCl)", 1 / theirs, "/s")
    yield Figure("verification / bare Ed25519", theirs / ours, "x", ">= 0.7")


def _turns(*calls: Callable[[], None]) -> list[float]:
    """Median seconds of each, run in turns."""
    times = [[_seconds(call) for call in calls] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ledger_files(home: Home) -> list[Path]:
    """The ledger's file and its log."""
    private = home.store / "private"
    return [private / "ledger.sqlite", private / "ledger.sqlite-wal"]
