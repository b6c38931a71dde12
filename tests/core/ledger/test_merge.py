"""Two devices of one person: what each wrote comes together, whatever the order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.ledger.entry import Draft
from exo.core.ledger.keys import Key, load_root
from exo.core.ledger.ledger import Ledger
from exo.tools.clock import FakeClock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def pair(place: Any, tmp_path: Path) -> Any:
    """(here, there): two ledgers that parted after an entry."""
    place.say("common")
    there = Ledger(place.copy(tmp_path / "two"), FakeClock(), "larger machine")
    yield place.ledger, there
    there.close()


def content(ledger: Ledger) -> list[str]:
    return [json.dumps(line, sort_keys=True) for line in ledger.export()]


def test_union_is_the_same_both_ways_and_idempotent(pair: Any) -> None:
    here, there = pair
    (mine,) = here.append(Draft("note", {"text": "mine"}))
    here.append(Draft("rule", {"text": "r"}, (mine.id,)))
    there.append(Draft("note", {"text": "theirs"}))
    assert there.merge(here.export()) == 2
    assert here.merge(there.export()) == 2
    assert here.merge(there.export()) == there.merge(here.export()) == 0
    assert content(here) == content(there)
    assert here.verify().ok and there.verify().ok and here.heads() == there.heads()
    assert here.append(Draft("note", {}))[0].lc == max(entry.lc for entry in there.entries()) + 1


def test_forgetting_travels(pair: Any) -> None:
    here, there = pair
    (mine,) = here.append(Draft("note", {"text": "a secret of mine"}))
    there.merge(here.export())
    there.forget([mine.id], "asked")
    here.merge(there.export())
    entry = here.get(mine.id)
    assert entry and entry.body is None and here.verify().ok and content(here) == content(there)
    folder = here._db.path.parent
    assert not [p for p in folder.iterdir() if p.is_file() and b"secret of mine" in p.read_bytes()]


def test_what_was_forgotten_here_does_not_come_back(pair: Any) -> None:
    here, there = pair
    (mine,) = here.append(Draft("note", {"text": "x"}))
    lines = list(here.export())
    here.forget([mine.id], "asked")
    there.merge(lines)  # it has the body
    there.append(Draft("note", {"text": "y"}))
    here.merge(there.export())
    entry = here.get(mine.id)
    assert entry and entry.body is None and here.verify().ok


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["say", "forget", "merge", "refer"]),
        st.integers(0, 9),
    ),
    max_size=14,
)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(OPERATIONS, st.randoms(use_true_random=False))
def test_any_history_converges_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, operations: list[Any], random: Any
) -> None:
    import shutil

    root = tmp_path_factory.mktemp("pair")
    one = Home(root / "a").make()
    ledgers = {"a": Ledger(one, FakeClock())}
    two, three = Home(root / "b").make(), Home(root / "c").make()
    for home in (two, three):
        keys = home.store / "private" / "keys"
        keys.mkdir(parents=True)
        shutil.copy(one.store / "private" / "keys" / "root.key", keys)
    ledgers["b"] = Ledger(two, FakeClock())
    for who, what, n in operations:
        ledger, other = ledgers[who], ledgers["b" if who == "a" else "a"]
        notes = [entry.id for entry in ledger.entries(kinds=["note", "rule"]) if entry.body]
        if what == "merge":
            ledger.merge(other.export())
        elif what == "forget" and notes:
            ledger.forget([notes[n % len(notes)]], "asked")
        elif what == "refer" and notes:
            ledger.append(Draft("rule", {"text": f"{who}{n}"}, (notes[n % len(notes)],)))
        elif what == "say":
            ledger.append(Draft("note", {"text": f"{who}{n}"}))
    lines = [*ledgers["a"].export(), *ledgers["b"].export()]
    by_author: dict[str, list[Any]] = {}
    for line in lines:
        by_author.setdefault(line["event"]["author"], []).append(line)
    queues = [sorted(queue, key=lambda line: line["event"]["seq"]) for queue in by_author.values()]
    mixed = []  # each author's in order, the authors in any
    while queues := [queue for queue in queues if queue]:
        mixed.append(random.choice(queues).pop(0))
    ledgers["c"] = Ledger(three, FakeClock(), enrol=False)
    ledgers["c"].merge(mixed)
    ledgers["a"].merge(ledgers["b"].export())
    ledgers["b"].merge(ledgers["a"].export())
    assert content(ledgers["a"]) == content(ledgers["b"]) == content(ledgers["c"])
    for ledger in ledgers.values():
        assert ledger.verify().ok
        ledger.close()


def spoil(line: dict[str, Any], what: str) -> None:
    """Make one of the ways in which a line can be wrong."""
    event = line["event"]
    other = Key(b"\x07" * 32)
    changes: dict[str, Any] = {
        "kind": lambda: event.update(kind="rule"),
        "float": lambda: event.update(ts=1.5),
        "bool": lambda: event.update(seq=True),
        "large": lambda: event.update(ts=2**60),
        "more": lambda: event.update(extra=1),
        "version": lambda: event.update(v=2),
        "body": lambda: line.update(body='{"text":"other"}'),
        "space": lambda: line.update(body='{"text": "theirs"}'),
        "salt": lambda: line.update(salt="00" * 16),
        "no salt": lambda: line.update(salt=None),
        "no body": lambda: line.update(salt=None, body=None),
        "sig": lambda: line.update(sig=other.sign(line["chain"].encode())),
        "upper": lambda: line.update(sig=line["sig"].upper()),
        "chain": lambda: line.update(chain="0" * 64),
        "id": lambda: line.update(id="0" * 64),
        "gap": lambda: event.update(seq=7),
        "nothing": lambda: line.clear(),
        "refs": lambda: event.update(refs=[1]),
    }
    changes[what]()


WRONG = [
    "kind",
    "float",
    "bool",
    "large",
    "more",
    "version",
    "body",
    "space",
    "salt",
    "sig",
    "upper",
    "chain",
    "id",
    "gap",
    "nothing",
    "refs",
]


@pytest.mark.parametrize("what", [*WRONG, "no salt", "no body"])
def test_what_does_not_verify_is_refused_and_named(pair: Any, what: str) -> None:
    here, there = pair
    there.append(Draft("note", {"text": "theirs"}))
    lines = list(there.export())
    spoil(lines[-1], what)
    before = content(here)
    with pytest.raises(ExoError) as caught:
        here.merge(lines)
    assert caught.value.code == "fault"
    assert there.author in str(caught.value) or "no entry" in str(caught.value)
    assert content(here) == before and here.verify().ok


def test_a_stranger_is_refused(place: Any, tmp_path: Path) -> None:
    stranger = Ledger(Home(tmp_path / "other").make(), FakeClock())
    stranger.append(Draft("rule", {"text": "trust me"}))
    with pytest.raises(ExoError, match="root key"):
        place.ledger.merge(stranger.export())
    lines = [line for line in stranger.export() if line["event"]["kind"] != "device"]
    with pytest.raises(ExoError):
        place.ledger.merge(lines)
    assert place.ledger.position() == 1
    stranger.close()


def test_a_twin_is_refused(pair: Any, tmp_path: Path) -> None:
    """Two copies of one device's key wrote under one number."""
    here, there = pair
    author = here.author
    there._device = here._device
    there.append(Draft("note", {"text": "twin"}))
    here.append(Draft("note", {"text": "mine"}))
    with pytest.raises(ExoError, match="another entry has this number") as caught:
        here.merge(there.export())
    assert f"entry 3 of {author}" in str(caught.value)


def test_an_export_verifies_elsewhere_and_tampering_is_found(
    pair: Any, root: Path, tmp_path: Path
) -> None:
    here, there = pair
    (gone,) = there.append(Draft("note", {"text": "gone"}, scope="agent:coder"))
    there.append(Draft("note", {"text": "Grüße, 你好"}, (gone.id,)))
    there.forget([gone.id], "asked")
    here.merge(there.export())
    lines = [json.dumps(line, ensure_ascii=False) for line in here.export()]
    tool, path = root / "tools" / "verify_export.py", tmp_path / "export.jsonl"
    known = load_root(here._db.path.parent / "keys" / "root.key").public

    def run(text: list[str], *more: str) -> tuple[int, str]:
        path.write_text("\n".join(text) + "\n")
        words = [sys.executable, "-I", str(tool), str(path), *more]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, out = run(lines, known)
    assert code == 0 and f"{there.author}: 4 good" in out and f"{here.author}: 2 good" in out
    assert run(lines)[0] == 0 and run(lines, "0" * 64)[0] == 1
    missing = [line for line in lines if json.loads(line)["id"] != gone.id]
    assert run(lines[1:])[0] == run(missing)[0] == 1
    swapped = [lines[1], lines[0], *lines[2:]]
    assert run(swapped)[0] == 1
    for n, text in enumerate(lines):
        line = json.loads(text)
        event = line["event"]
        tampered = [
            {**line, "event": {**event, key: value}}
            for key, value in (("ts", 1), ("kind", "x"), ("scope", "x"), ("refs", []), ("lc", 99))
            if event[key] != value
        ]
        tampered += [{**line, key: "0" * len(line[key])} for key in ("id", "chain", "sig")]
        if line["body"] is not None:
            tampered += [{**line, "body": "{}"}, {**line, "salt": "0" * 32}]
            tampered += [{**line, "body": None, "salt": None}]
        # one process a line: the other spoilings in this one, by the tool's own function
        code, out = run([*lines[:n], json.dumps(tampered[0]), *lines[n + 1 :]])
        assert code == 1 and "FAULT" in out and event["author"] in out
        from exo.tools import verify_export

        for each in tampered:
            with pytest.raises((ValueError, KeyError)):
                verify_export.verify([*lines[:n], json.dumps(each), *lines[n + 1 :]])
