"""Appending, reading, keys: what the ledger promises to those who write into it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError, HomeError
from exo.core.base.home import Home
from exo.core.ledger.canonical import NotCanonical
from exo.core.ledger.entry import Draft
from exo.core.ledger.keys import DeviceKey, Key, device_body, load_root, make_root
from exo.core.ledger.ledger import Ledger
from exo.tools.clock import FakeClock

Child = Callable[..., subprocess.Popen[str]]


def bodies(ledger: Ledger) -> list[Any]:
    return [entry.body for entry in ledger.entries() if entry.kind != "device"]


def test_what_is_appended_is_read_back(place: Any) -> None:
    drafts = [
        Draft("utterance", {"text": "Grüße, 你好\n\0", "n": -5, "no": None, "list": [True, {}]}),
        Draft("note", {}, scope="agent:coder", ts=12345),
    ]
    first, second = place.ledger.append(*drafts)
    (third,) = place.ledger.append(
        Draft("rule", {"text": "x"}, (second.id, first.id)), durable=False
    )
    assert (first.seq, first.lc, second.seq, third.seq) == (2, 2, 3, 4)
    assert first.ts == place.clock.now_ms() and second.ts == 12345
    assert third.refs == (second.id, first.id)
    place.reopen()
    assert [place.ledger.get(entry.id) for entry in (first, second, third)] == [
        first,
        second,
        third,
    ]
    assert list(place.ledger.entries(after=1)) == [first, second, third]
    assert place.ledger.newest(2) == [second, third]
    assert place.ledger.referring([first.id]) == [third]
    assert place.ledger.referring([third.id]) == place.ledger.referring([]) == []
    assert place.ledger.heads() == {place.ledger.author: (4, third.chain)}
    assert place.ledger.verify().ok


def test_entries_are_picked_by_kind_and_arrival(place: Any) -> None:
    texts = [f"t{n}" for n in range(1203)]
    place.ledger.append(*(Draft("note", {"text": text}, ts=n + 1) for n, text in enumerate(texts)))
    place.say("late")
    ledger = place.ledger
    assert [entry.body["text"] for entry in ledger.entries(kinds=["note"])] == texts
    assert [entry.kind for entry in ledger.entries(kinds=["device", "utterance"])] == [
        "device",
        "utterance",
    ]
    assert [entry.seq for entry in ledger.entries(after=1000)] == list(range(1001, 1206))
    assert [entry.seq for entry in ledger.entries(after=3)] == list(range(4, 1206))
    assert list(ledger.entries(after=ledger.position())) == []
    assert list(ledger.entries(kinds=["rule"])) == []


def test_ids_are_found_by_their_beginning(place: Any) -> None:
    (entry,) = place.say("one")
    assert place.ledger.get(entry.id[:8]) == entry
    assert place.ledger.get(entry.id[:7]) is None
    assert place.ledger.get("%" * 8) is place.ledger.get("f" * 64) is place.ledger.get("") is None
    place.raw(("UPDATE events SET id = ? WHERE seq = 1", (entry.id[:9] + "0" * 55,)))
    with pytest.raises(ExoError, match="several"):
        place.ledger.get(entry.id[:8])


@pytest.mark.parametrize(
    "draft",
    [
        Draft("note", {"p": 0.5}),
        Draft("note", {"text": "\ud800"}),
        Draft("note", {}, ("not an id",)),
        Draft("note", {}, scope="somebody"),
        Draft("note", {}, scope="agent:"),
        Draft("forget", {"reason": "x"}),
        Draft("device", {}),
        Draft("note", {}, ts=2**60),
    ],
)
def test_a_draft_that_does_not_fit_leaves_nothing(place: Any, draft: Draft) -> None:
    with pytest.raises(ExoError):
        place.ledger.append(Draft("note", {"text": "good"}), draft)
    assert place.ledger.position() == 1
    assert place.say("next")[0].seq == 2 and place.ledger.verify().ok


def test_not_canonical_is_an_error_that_callers_can_tell(place: Any) -> None:
    with pytest.raises(NotCanonical, match="carry"):
        place.ledger.append(Draft("note", {"p": 0.5}))


def test_a_clock_that_was_not_set_stands_in_the_body(place: Any) -> None:
    place.clock.unsure = True
    assert place.say("x")[0].body == {"text": "x", "clock": "unsure"}
    place.clock.unsure = False
    assert place.say("x")[0].body == {"text": "x"}


def test_durable_appends_are_full_commits(place: Any) -> None:
    levels: list[str] = []
    ledger = place.ledger

    def trace(statement: str) -> None:
        if statement.startswith("PRAGMA synchronous"):
            levels.append(statement)

    ledger._db.link.set_trace_callback(trace)
    ledger.append(Draft("note", {}), durable=False)
    assert levels == []
    ledger.append(Draft("note", {}))
    assert levels[0] == "PRAGMA synchronous = FULL"
    assert ledger._db.rows("PRAGMA synchronous") == [(1,)]


# ---- several processes ---------------------------------------------------------------------------

WRITER = """
ledger = Ledger(Home(Path(sys.argv[1])), FakeClock())
print("open", flush=True); sys.stdin.readline()
for n in range(int(sys.argv[2])):
    ledger.append(Draft("note", {"text": f"{sys.argv[3]} {n}"}), durable=n % 10 == 0)
print(ledger.position(), flush=True)
"""


def test_two_processes_append_at_once(place: Any, child: Child) -> None:
    writers = [child(WRITER, place.home.root, 500, name) for name in "ab"]
    for writer in writers:
        assert writer.stdout and writer.stdout.readline() == "open\n"
    before = place.ledger.position()
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.wait(120) == 0
    assert place.ledger.position() == before + 1000
    texts = [body["text"] for body in bodies(place.ledger)]
    for name in "ab":
        assert [text for text in texts if text[0] == name] == [f"{name} {n}" for n in range(500)]
    report = place.ledger.verify()
    assert report.ok and report.authors == {place.ledger.author: 1001}


def test_many_processes_open_a_new_home_at_once(tmp_path: Path, child: Child) -> None:
    Home(tmp_path / "new").make()
    writers = [child(WRITER, tmp_path / "new", 3, name) for name in "abcd"]
    for writer in writers:
        out, err = writer.communicate("\n", 120)
        assert writer.returncode == 0, err
    ledger = Ledger(Home(tmp_path / "new"), FakeClock())
    assert ledger.verify().authors == {ledger.author: 13}
    ledger.close()


# ---- keys ----------------------------------------------------------------------------------------


def test_keys_are_private_files_and_the_seed_of_the_device_stays_in_state(place: Any) -> None:
    root, device = (
        place.home.store / "private" / "keys" / "root.key",
        place.home.state / "device.key",
    )
    assert root.stat().st_mode & 0o777 == device.stat().st_mode & 0o777 == 0o600
    assert root.parent.stat().st_mode & 0o777 == 0o700
    data = json.loads(device.read_text())
    assert set(data) == {"seed", "left"} and data["left"] is None
    assert Key(bytes.fromhex(data["seed"])).public == place.ledger.author
    assert all(data["seed"].encode() not in path.read_bytes() for path in place.files())


def test_a_copied_store_is_opened_by_a_new_author(place: Any, tmp_path: Path) -> None:
    place.say("one")
    copy = Ledger(place.copy(tmp_path / "two"), FakeClock())
    assert copy.author != place.ledger.author and copy.notice == ""
    assert bodies(copy) == [{"text": "one"}]
    copy.append(Draft("note", {"text": "two"}))
    assert copy.verify().authors == {place.ledger.author: 2, copy.author: 2}
    copy.close()


def test_an_older_store_put_back_is_noticed_and_written_under_a_new_key(
    place: Any, tmp_path: Path
) -> None:
    place.say("one")
    place.copy(tmp_path / "old")
    place.say("two")
    assert [line["event"]["seq"] for line in place.ledger.export()] == [1, 2, 3]
    place.say("three")
    place.reopen()
    assert place.ledger.notice == ""
    author = place.ledger.author
    place.ledger.close()
    shutil.rmtree(place.home.store)
    shutil.copytree(tmp_path / "old" / "store", place.home.store)
    looked = Ledger(place.home, place.clock, enrol=False)
    fault = looked.verify().fault  # a look alone makes no key: the missing tail is told
    assert fault and (fault.author, fault.seq) == (author, 3) and "left this device" in fault.what
    looked.close()
    place.reopen()
    assert place.ledger.author != author and "older store was put back" in place.ledger.notice
    place.say("four")
    assert place.ledger.verify().authors == {author: 2, place.ledger.author: 2}
    place.reopen()
    assert place.ledger.notice == ""


def test_an_older_store_put_back_while_it_is_open_is_not_written_into(
    place: Any, tmp_path: Path
) -> None:
    place.copy(tmp_path / "old")
    place.say("one")
    list(place.ledger.export())
    place.ledger.close()
    shutil.rmtree(place.home.store)
    shutil.copytree(tmp_path / "old" / "store", place.home.store)
    place.ledger._db._open()
    with pytest.raises(HomeError, match="start again"):
        place.say("two")


def test_a_device_key_without_its_store_enrols_again(place: Any) -> None:
    author = place.ledger.author
    place.ledger.close()
    place.file.unlink()
    for path in place.files():
        path.unlink()
    place.reopen()  # nothing had left: the key is as good as new
    assert place.ledger.author == author and place.ledger.verify().authors == {author: 1}


def test_a_missing_root_key_is_told_where_it_is_needed(place: Any, tmp_path: Path) -> None:
    place.say("one")
    root = place.home.store / "private" / "keys" / "root.key"
    root.unlink()
    place.reopen()  # an enrolled device goes on without
    place.say("two")
    assert place.ledger.verify().ok
    with pytest.raises(HomeError, match="root.key is missing; put the file back"):
        Ledger(place.copy(tmp_path / "two"), FakeClock())
    make_root(root)
    with pytest.raises(HomeError, match="not the key of its devices"):
        Ledger(place.copy(tmp_path / "three"), FakeClock())


@pytest.mark.parametrize(
    "data", ["", "{}", "[]", '{"seed": 1, "left": null}', '{"seed": "zz", "left": null}']
)
def test_a_broken_key_file_is_named(place: Any, data: str) -> None:
    place.ledger.close()
    (place.home.state / "device.key").write_text(data)
    with pytest.raises(HomeError, match="device.key"):
        Ledger(place.home, place.clock)


def test_looking_makes_no_key(tmp_path: Path) -> None:
    home = Home(tmp_path).make()
    ledger = Ledger(home, FakeClock(), enrol=False)
    assert ledger.author == "" and ledger.verify().ok and ledger.heads() == {}
    assert not (home.state / "device.key").exists() and list(ledger.export()) == []
    with pytest.raises(HomeError, match="not enrolled"):
        ledger.append(Draft("note", {}))
    ledger.close()


def test_export_keeps_the_head_that_left(place: Any) -> None:
    head = place.say("one")[0]
    list(place.ledger.export())
    kept = DeviceKey.load(place.home.state / "device.key")
    assert kept and (kept.seq, kept.chain) == (head.seq, head.chain)


def test_a_revoked_device_is_a_fault_from_then_on(place: Any) -> None:
    root = load_root(place.home.store / "private" / "keys" / "root.key")
    assert root
    place.say("one")
    body = device_body(root, "revoke", place.ledger.author, 3, "lost")
    with place.ledger._db.transaction() as link:
        place.ledger._write(link, [Draft("device", body)])
    assert place.ledger.verify().ok
    place.say("after")
    fault = place.ledger.verify().fault
    assert fault and (fault.author, fault.seq) == (place.ledger.author, 4)
    assert "revoked" in fault.what
