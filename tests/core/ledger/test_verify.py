"""Whatever is changed behind the ledger's back is named: whose entry, which number, which id."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from exo.core.base.errors import HomeError
from exo.core.ledger.entry import Draft
from exo.core.ledger.keys import Key
from exo.core.ledger.ledger import Ledger

TEXT = ("author", "scope", "kind", "refs", "body_hash", "chain", "sig", "id")
NUMBERS = ("seq", "lc", "ts")


def flip(value: Any, bit: int) -> Any:
    """The value with one bit of it changed."""
    if isinstance(value, int):
        return value ^ (1 << bit)
    raw = bytearray(value if isinstance(value, bytes) else value.encode())
    raw[(bit // 8) % len(raw)] ^= 1 << bit % 8
    return bytes(raw)


@pytest.mark.parametrize("bit", [0, 5, 7, 13, 40])
@pytest.mark.parametrize("column", TEXT + NUMBERS)
@pytest.mark.parametrize("seq", [1, 5, 9, 10])
def test_a_flipped_bit_of_an_entry_is_named(told: Any, column: str, bit: int, seq: int) -> None:
    query = f"SELECT id, {column} FROM events WHERE seq = ?"
    id_, value = told.ledger._db.rows(query, seq)[0]
    changed = flip(value, bit)
    cast = "CAST (? AS TEXT)" if column in TEXT else "?"
    try:
        told.raw((f"UPDATE OR FAIL events SET {column} = {cast} WHERE seq = ?", (changed, seq)))
    except sqlite3.IntegrityError:
        return  # another entry has this number: the file itself refuses
    fault = told.ledger.verify().fault
    assert fault is not None
    if column == "seq":  # found where it was, or where it is now
        assert fault.seq in (seq + 1, changed, seq, 11)
    elif (
        column == "author" and seq < 10
    ):  # two authors now: one with a gap, one who is not enrolled
        assert fault.seq in (seq, seq + 1)
    else:
        assert fault.seq == seq and (column == "id" or fault.id == id_)
    if column != "author":
        assert fault.author == told.ledger.author


@pytest.mark.parametrize("column", ["id", "salt", "body"])
@pytest.mark.parametrize("seq", [1, 5, 9, 10])
@pytest.mark.parametrize("bit", [0, 7, 21])
def test_a_flipped_bit_of_a_body_is_named(told: Any, column: str, seq: int, bit: int) -> None:
    id_ = told.ledger._db.rows("SELECT id FROM events WHERE seq = ?", seq)[0][0]
    value = told.ledger._db.rows(f"SELECT {column} FROM bodies WHERE id = ?", id_)[0][0]
    cast = "?" if column == "salt" else "CAST (? AS TEXT)"
    told.raw((f"UPDATE bodies SET {column} = {cast} WHERE id = ?", (flip(value, bit), id_)))
    fault = told.ledger.verify().fault
    assert fault and (fault.author, fault.seq, fault.id) == (told.ledger.author, seq, id_)


def test_a_deleted_entry_in_the_middle_is_named(told: Any) -> None:
    told.raw("DELETE FROM events WHERE seq = 5")
    fault = told.ledger.verify().fault
    assert fault and fault.seq == 6 and "5, is missing" in fault.what


def test_a_deleted_body_is_named_and_so_is_one_too_many(told: Any) -> None:
    id_ = told.ledger._db.rows("SELECT id FROM events WHERE seq = 5")[0][0]
    told.raw(("DELETE FROM bodies WHERE id = ?", (id_,)))
    fault = told.ledger.verify().fault
    assert fault and (fault.seq, fault.id) == (5, id_) and "not forgotten" in fault.what


def test_a_body_of_no_entry_is_named(told: Any) -> None:
    told.raw(("INSERT INTO bodies VALUES ('abc', ?, '{}')", (b"1" * 16,)))
    fault = told.ledger.verify().fault
    assert fault and fault.id == "abc" and "no entry" in fault.what


def test_a_body_that_came_back_is_named(told: Any) -> None:
    """The right salt and text, put back from an old copy after it was forgotten."""
    (entry,) = told.say("secret")
    row = told.ledger._db.rows("SELECT * FROM bodies WHERE id = ?", entry.id)[0]
    told.ledger.forget([entry.id], "asked")
    told.raw(("INSERT INTO bodies VALUES (?, ?, ?)", row))
    fault = told.ledger.verify().fault
    assert fault and fault.id == entry.id and "forgotten" in fault.what


def test_two_entries_that_changed_places_are_named(told: Any) -> None:
    told.raw(
        "UPDATE events SET seq = 100 WHERE seq = 5",
        "UPDATE events SET seq = 5 WHERE seq = 6",
        "UPDATE events SET seq = 6 WHERE seq = 100",
    )
    fault = told.ledger.verify().fault
    assert fault and fault.seq == 5


def test_two_entries_under_one_number_are_named(told: Any) -> None:
    """The same device signed twice: a restored copy of its key and store went on by itself."""
    row = list(told.ledger._db.rows("SELECT * FROM events WHERE seq = 5")[0])
    link = sqlite3.connect(told.file, isolation_level=None)
    text = link.execute("SELECT sql FROM sqlite_master WHERE name = 'events'").fetchone()[0]
    link.execute("PRAGMA foreign_keys = OFF")
    for statement in (
        "CREATE TABLE twice AS SELECT * FROM events",
        "DROP TABLE events",
        text.replace(", UNIQUE (author, seq)", ""),
        "INSERT INTO events SELECT * FROM twice",
        "DROP TABLE twice",
    ):
        link.execute(statement)
    link.execute(f"INSERT INTO events VALUES ({', '.join('?' * 11)})", ["f" * 64, *row[1:]])
    link.close()
    fault = told.ledger.verify().fault
    assert fault and fault.seq == 5


def test_a_foreign_signature_is_named(told: Any) -> None:
    chain = told.ledger._db.rows("SELECT chain FROM events WHERE seq = 5")[0][0]
    told.raw(("UPDATE events SET sig = ? WHERE seq = 5", (Key().sign(chain.encode()),)))
    fault = told.ledger.verify().fault
    assert fault and fault.seq == 5 and "signature" in fault.what


def test_a_letter_in_upper_case_is_not_the_same(told: Any) -> None:
    told.raw("UPDATE events SET sig = upper(sig) WHERE seq = 5")
    fault = told.ledger.verify().fault
    assert fault and fault.seq == 5


def test_an_author_whom_nobody_enrolled_is_named(told: Any) -> None:
    """A stranger writes a chain that is right in itself."""
    told.ledger._device.key = Key()
    told.ledger._device.seq = 0
    told.say("trust me")
    fault = told.ledger.verify().fault
    assert fault and (fault.author, fault.seq) == (told.ledger.author, 1)
    assert "not enrolled" in fault.what


def test_an_enrolment_by_another_root_key_is_named(told: Any) -> None:
    from exo.core.ledger.keys import device_body

    stranger = Key()
    told.ledger._device.key = stranger
    body = device_body(Key(), "enrol", stranger.public, 11, "stranger")
    with told.ledger._db.transaction() as link:
        told.ledger._write(link, [Draft("device", body)])
    fault = told.ledger.verify().fault
    assert fault and (fault.author, fault.seq) == (stranger.public, 1) and "root key" in fault.what


@pytest.mark.parametrize("full", [True, False])
def test_a_missing_tail_is_told_by_device_key_and_checkpoint(told: Any, full: bool) -> None:
    list(told.ledger.export())
    told.raw(
        "DELETE FROM events WHERE seq > 8",
        "DELETE FROM bodies WHERE id NOT IN (SELECT id FROM events)",
    )
    looked = Ledger(told.home, told.clock, enrol=False)
    fault = looked.verify(full).fault
    assert fault and (fault.author, fault.seq) == (told.ledger.author, 10)
    looked.close()


def test_a_checkpoint_tells_what_is_missing_of_others(told: Any, tmp_path: Any) -> None:
    other = Ledger(told.copy(tmp_path / "two"), told.clock)
    other.append(Draft("note", {"text": "x"}), Draft("note", {"text": "y"}))
    told.ledger.merge(other.export())
    told.ledger.checkpoint()
    assert told.ledger.verify().ok and told.ledger.verify(full=False).ok
    told.raw(
        ("DELETE FROM events WHERE author = ? AND seq = 3", (other.author,)),
        "DELETE FROM bodies WHERE id NOT IN (SELECT id FROM events)",
    )
    for full in (True, False):
        fault = told.ledger.verify(full).fault
        assert fault and (fault.author, fault.seq) == (other.author, 3)
        assert "checkpoint" in fault.what
    other.close()


def test_quick_goes_from_the_checkpoint_on(told: Any) -> None:
    told.ledger.checkpoint()
    told.say("after")
    told.raw("UPDATE events SET ts = 0 WHERE seq = 5")
    assert told.ledger.verify(full=False).ok and told.ledger.verify().fault.seq == 5
    told.raw("UPDATE events SET ts = 0 WHERE seq = 12")
    assert told.ledger.verify(full=False).fault.seq == 12
    told.raw("DELETE FROM events WHERE seq = 4")
    assert not told.ledger.verify(full=False).ok


def test_a_forged_checkpoint_hides_nothing(told: Any) -> None:
    told.ledger.checkpoint()
    told.raw(
        "UPDATE events SET ts = 0 WHERE seq = 11",
        """UPDATE bodies SET body = '{"heads":7}' WHERE body LIKE '{"heads"%'""",
    )
    fault = told.ledger.verify(full=False).fault
    assert fault and fault.seq == 11


@pytest.mark.parametrize(
    "heads",
    ["7", '{"a":[1]}', '{"a":[1e30,"x"]}', '{"\\ud800":[1,"x"]}', '{"a":[1,"\\ud800"]}', "{}"],
)
def test_a_checkpoint_of_nonsense_is_a_fault_not_a_crash(told: Any, heads: str) -> None:
    told.ledger.checkpoint()
    body = f'{{"heads":{heads}}}'
    told.raw(("""UPDATE bodies SET body = ? WHERE body LIKE '{"heads"%'""", (body,)))
    for full in (True, False):
        assert told.ledger.verify(full).fault


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_truncated_file_is_a_fault_not_a_crash(told: Any, part: float) -> None:
    told.say(*(f"more {n}" * 20 for n in range(200)))
    told.ledger._db.link.execute("PRAGMA wal_checkpoint (TRUNCATE)")
    told.ledger.close()
    size = told.file.stat().st_size
    with told.file.open("r+b") as file:
        file.truncate(int(size * part) // 4096 * 4096)
    try:
        looked = Ledger(told.home, told.clock, enrol=False)
    except HomeError as error:
        assert "mv " in str(error)
        return
    report = looked.verify()
    assert not report.ok and report.fault
    looked.close()


def test_bytes_changed_in_the_file_are_found(told: Any) -> None:
    """Each byte of the pages that hold entries; SQLite's own unused bytes do not count."""
    told.ledger._db.scrub()
    told.ledger.close()
    whole = told.file.read_bytes()
    rows = (
        sqlite3.connect(told.file)
        .execute("SELECT id, chain, sig, body_hash FROM events")
        .fetchall()
    )
    for values in rows:
        for value in values:
            at = whole.rfind(value.encode())
            damaged = bytearray(whole)
            damaged[at] ^= 1
            for ending in ("-wal", "-shm"):
                told.file.with_name(told.file.name + ending).unlink(missing_ok=True)
            told.file.write_bytes(damaged)
            looked = Ledger(told.home, told.clock, enrol=False)
            assert not looked.verify().ok, value
            looked.close()


def test_progress_is_told_and_all_are_counted(place: Any) -> None:
    place.ledger.append(*(Draft("note", {"n": n}) for n in range(2500)))
    steps: list[tuple[int, int]] = []
    report = place.ledger.verify(progress=lambda done, total: steps.append((done, total)))
    assert report.authors == {place.ledger.author: 2501}
    assert steps == [(1000, 2501), (2000, 2501)]
