"""Format 1, bit for bit, and the golden file that must open for ever."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.ledger.canonical import (
    START,
    NotCanonical,
    body_hash,
    canonical,
    chained,
    entry_id,
    parse,
)
from exo.core.ledger.keys import Key, device_body, make_root, signed
from exo.core.ledger.ledger import Ledger
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "vectors.json").read_text())
KEYS = {name: Key(bytes.fromhex(seed)) for name, seed in VECTORS["keys"].items()}
BY_PUBLIC = {key.public: key for key in KEYS.values()}


def test_vectors_are_reproduced_bit_for_bit() -> None:
    chains: dict[str, bytes] = {}
    for line in VECTORS["lines"]:
        event = line["event"]
        body = line["body"].encode()
        assert canonical(event) == line["canonical"].encode()
        assert canonical(json.loads(line["body"])) == body
        assert body_hash(bytes.fromhex(line["salt"]), body).decode() == event["body_hash"]
        texts = (event[key].encode() for key in ("scope", "kind"))
        author = event["author"].encode()
        numbers = event["seq"], event["lc"], event["ts"]
        refs = canonical(event["refs"])
        id_ = entry_id(author, *numbers, *texts, refs, event["body_hash"].encode())
        assert id_.decode() == line["id"]
        chain = chained(chains.get(event["author"], START), id_)
        assert chain.decode() == line["chain"]
        assert BY_PUBLIC[event["author"]].sign(chain) == line["sig"]
        assert signed(author, chain, line["sig"].encode())
        chains[event["author"]] = chain
        if event["kind"] == "device":
            told = json.loads(line["body"])
            words = told["action"], told["device"], told["lc"], told["name"]
            assert device_body(KEYS["root_seed"], *words) == told


def vector_lines() -> list[dict[str, Any]]:
    """As an export has them after the forgetting."""
    lines = []
    for line in VECTORS["lines"]:
        kept = {key: line[key] for key in ("event", "id", "chain", "sig", "salt", "body")}
        if "body_after_forget" in line:
            kept |= {"salt": None, "body": None}
        lines.append(kept)
    return lines


def test_vectors_merge_verify_and_come_out_again(tmp_path: Path) -> None:
    home = Home(tmp_path).make()
    make_root(home.store / "private" / "keys" / "root.key", KEYS["root_seed"])
    ledger = Ledger(home, FakeClock(), enrol=False)
    assert ledger.merge(vector_lines()) == 6
    assert ledger.verify().ok and len(ledger.verify().authors) == 2
    assert list(ledger.export()) == vector_lines()
    entry = ledger.get(VECTORS["lines"][1]["id"][:8])
    assert entry is not None and entry.body is None and entry.salt is None
    ledger.close()


def test_schema_is_as_fixed(place: Any) -> None:
    wanted = sqlite3.connect(":memory:")
    wanted.executescript((HERE / "schema-1.sql").read_text())
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    assert place.ledger._db.rows(query) == wanted.execute(query).fetchall()
    assert place.ledger._db.rows("PRAGMA user_version") == [(1,)]
    assert place.ledger._db.rows("PRAGMA secure_delete") == [(1,)]
    place.reopen()
    assert place.ledger._db.rows("PRAGMA secure_delete") == [(1,)]
    wanted.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET ts = 1",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events",
        "UPDATE bodies SET body = 'x'",
        "DELETE FROM bodies",
        "INSERT OR REPLACE INTO bodies SELECT * FROM bodies",
    ],
)
def test_the_file_itself_refuses_changes(place: Any, statement: str) -> None:
    place.say("one")
    link = sqlite3.connect(place.file)
    with pytest.raises(sqlite3.IntegrityError):
        link.execute(statement)
    link.close()


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        {"a": [1.5]},
        float("nan"),
        2**53,
        -(2**53),
        "\ud800",
        {"\udfff": 1},
        {1: "a"},
        {None: "a"},
        {"a": b"x"},
        {"a": {1, 2}},
        object(),
    ],
)
def test_what_does_not_read_back_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical(value)


def test_nesting_without_end_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotCanonical):
        canonical(deep)
    with pytest.raises(NotCanonical):
        parse("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        '{"a":1.0}',
        '{"a":1e3}',
        '{"a":NaN}',
        '{"a":9007199254740992}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":"\\ud800"}',
        '{"b":1,"a":2}',
        '{"a": 1}',
        '{"a":"\\u0061"}',
        "{",
        "",
    ],
)
def test_texts_of_others_are_read_strictly(text: str) -> None:
    with pytest.raises(NotCanonical):
        parse(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, VALUES)
def test_canonical_text_is_one_to_one_and_plain_json(a: Any, b: Any) -> None:
    raw = canonical(a)
    assert raw == json.dumps(a, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert canonical(parse(raw.decode())) == raw
    assert json.loads(raw) == a
    if canonical(b) == raw:
        assert a == b


@given(st.text(), st.text(), st.integers(0, 2**53 - 1))
def test_the_envelope_is_the_canonical_text(scope: str, kind: str, number: int) -> None:
    import hashlib

    event = {"v": 1, "author": "ab", "seq": number, "lc": 1, "ts": 2, "scope": scope, "kind": kind}
    event |= {"refs": ["x"], "body_hash": "cd"}
    texts = scope.encode(), kind.encode(), b'["x"]', b"cd"
    assert (
        entry_id(b"ab", number, 1, 2, *texts).decode()
        == hashlib.sha256(canonical(event)).hexdigest()
    )


def test_a_ledger_of_format_1_opens_for_ever(tmp_path: Path) -> None:
    home = Home(tmp_path).make()
    shutil.copytree(HERE / "golden" / "store", home.store)
    shutil.copy(HERE / "golden" / "device.key", home.state)
    expected = json.loads((HERE / "golden" / "entries.json").read_text())
    ledger = Ledger(home, FakeClock())
    assert ledger.notice == ""
    assert [[entry.id, entry.kind, entry.body] for entry in ledger.entries()] == expected
    assert ledger.verify().ok and ledger.verify(full=False).ok
    assert ledger.append() == []
    ledger.close()
