"""What was forgotten is nowhere, and the chain still verifies."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from exo.core.base.errors import ExoError, StorageError

Child = Callable[..., subprocess.Popen[str]]
SECRET = "the blue heron nests at the mill"


def remains(place: Any, text: str = SECRET) -> list[str]:
    return [path.name for path in place.files() if text.encode() in path.read_bytes()]


READER = """
ledger = Ledger(Home(Path(sys.argv[1])), FakeClock(), enrol=False)
entries = ledger.entries()
ledger._db.link.execute("BEGIN")
ledger._db.link.execute("SELECT count(*) FROM bodies").fetchone()
print("reading", flush=True)
sys.stdin.readline()
ledger._db.link.execute("COMMIT")
print(sum(entry.body is None for entry in ledger.entries()), ledger.verify().ok, flush=True)
sys.stdin.readline()
"""


def test_no_byte_stays_with_a_reader_in_another_process(place: Any, child: Child) -> None:
    texts = [f"{SECRET} {n} " * (1 + n * 60) for n in range(5)]  # the longest over many pages
    secrets = place.say(*texts)
    kept = place.say("kept")[0]
    reader = child(READER, place.home.root)
    assert reader.stdin and reader.stdout and reader.stdout.readline() == "reading\n"
    assert remains(place)
    entry = place.ledger.forget([each.id for each in secrets], "asked")
    assert remains(place) == []
    assert entry.refs == tuple(each.id for each in secrets) and entry.body == {"reason": "asked"}
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert reader.stdout.readline() == "5 True\n"
    for each in secrets:
        found = place.ledger.get(each.id)
        assert (
            found
            and found.body is None
            and found.salt is None
            and found.body_hash == each.body_hash
        )
    assert place.ledger.get(kept.id) == kept
    assert place.ledger.verify().ok
    place.reopen()
    assert place.ledger.verify().ok and remains(place) == []


def test_answers_are_clear(place: Any) -> None:
    one, two = place.say("one", "two")
    device = place.ledger.newest(3)[0]
    with pytest.raises(ExoError, match="no such entry") as caught:
        place.ledger.forget([one.id, "f" * 64], "asked")
    assert caught.value.code == "unknown_entry"
    with pytest.raises(ExoError) as caught:
        place.ledger.forget([device.id], "asked")
    assert caught.value.code == "lasting"
    assert place.ledger.get(one.id) == one  # all or nothing
    forget = place.ledger.forget([one.id[:8], one.id], "asked")
    assert forget.refs == (one.id,)
    with pytest.raises(ExoError, match="already") as caught:
        place.ledger.forget([one.id], "asked")
    assert caught.value.code == "forgotten"
    with pytest.raises(ExoError) as caught:
        place.ledger.forget([forget.id], "asked")
    assert caught.value.code == "lasting"
    assert place.ledger.forget([one.id, two.id], "asked").refs == (two.id,)
    with pytest.raises(ExoError):
        place.ledger.forget([], "asked")
    assert place.ledger.verify().ok


def test_position_changes_when_something_is_forgotten(place: Any) -> None:
    (entry,) = place.say("one")
    before = place.ledger.position()
    place.ledger.forget([entry.id], "asked")
    assert place.ledger.position() == before + 1
    assert [each.kind for each in place.ledger.entries(after=before)] == ["forget"]


def test_a_scrub_that_fails_is_told_and_done_at_the_next_opening(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = place.say(SECRET)

    def full() -> None:
        raise StorageError("scrub", "the disk is full")

    monkeypatch.setattr(place.ledger._db, "scrub", full)
    with pytest.raises(StorageError):
        place.ledger.forget([entry.id], "asked")
    found = place.ledger.get(entry.id)
    assert found and found.body is None and remains(place)
    place.reopen()
    assert remains(place) == [] and place.ledger.verify().ok
